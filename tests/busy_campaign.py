"""A campaign of which tests know every number: three rounds, on a machine that others used.

The sample that users see is of another one, and is made anew now and then; this one stays.
"""

import os
from pathlib import Path

from records.locks import exclusive
from records.sample import ARCHIVE, sample_folder

PROJECT = Path(__file__).resolve().parents[1]
PACKED = PROJECT / "tests" / "analysis" / "support" / "busy_campaign.tar.gz"


def busy_campaign() -> Path:
    """Return the campaign's folder, unpacked as the sample of a checkout of its own."""
    root = PROJECT / ".wyeast" / "tests" / "busy"
    archive = root / ARCHIVE
    archive.parent.mkdir(parents=True, exist_ok=True)
    with exclusive(root / "linking.lock", str(os.getpid()), wait=True):
        if not archive.is_symlink() or archive.resolve() != PACKED:
            archive.unlink(missing_ok=True)
            archive.symlink_to(PACKED)
    return sample_folder(root)
