"""Where a checkout may be: refuse paths that the programs of a campaign cannot handle."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from records import layout
from records.base import CampaignError
from reframe_checks.mixins.hidden_places import places_of, why_seen

#: The schedulers into whose job scripts or options ReFrame writes the folder of a launch unquoted.
UNQUOTED = ("pbs", "pbspro", "torque", "sge", "oar", "ssh")


def refuse_path(root: Path, site: Mapping[str, Any]) -> None:
    """Raise CampaignError for a checkout at a path where a site's campaigns cannot run.

    Spaces, letters beyond ASCII and characters special to a shell are quoted; what is left is what
    third-party programs cannot handle.
    """
    path = str(root)
    reason = None
    if ":" in path:
        reason = "it has a colon, which separates the folders of PATH and PYTHONPATH"
    elif any(ord(letter) < 32 or ord(letter) == 127 for letter in path):
        reason = "it has a control character, which ends a line of a job script"
    elif "$" in path or "`" in path:
        reason = "ReFrame takes a dollar sign or a backquote in a path for a variable or a command"
    elif any(0xD800 <= ord(letter) < 0xE000 for letter in path):
        reason = "it is not text in this locale's encoding, and a job script is text"
    elif site.get("scheduler") in UNQUOTED and shlex.quote(path) != path:
        reason = (
            f"ReFrame writes the folder of a launch unquoted for the scheduler {site['scheduler']},"
            " which accepts only ASCII letters, digits and _-./+@%="
        )
    reason = reason or why_seen(places_of(root, layout.runs(root)))
    if reason:
        raise CampaignError(
            f"this checkout is at {path!a}, where it cannot measure: {reason}; move it"
        )
