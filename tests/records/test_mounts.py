"""What is mounted where, as processes in a namespace of mounts see it."""

import os
import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
AS_ROOT = [] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user"]
SCRIPT = """
set -e
mkdir "$1/open" "$1/covered" "$1/open/a b" "$1/covered/gone"
mount -t tmpfs none "$1/open/a b"
mount -t tmpfs none "$1/covered/gone"
mount -t tmpfs none "$1/covered"
shift
exec "$@"
"""
ASKING = """
import sys
from pathlib import Path
from records.mounts import mount_points
print(*(path.name for path in mount_points(Path(sys.argv[1]))), sep="|")
"""


def test_a_mount_below_a_covered_folder_is_passed_over(tmp_path: Path) -> None:
    done = subprocess.run(
        [*AS_ROOT, "unshare", "--mount", "--propagation=private", "sh", "-c", SCRIPT, "sh",
         tmp_path, sys.executable, "-c", ASKING, tmp_path],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "a b|covered\n", "")
