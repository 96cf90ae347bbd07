"""Make the tables and the report of a measured campaign."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from campaign import beginning
from records import schedule
from records.base import CampaignError
from records.events import Reported


def conclusion(campaign: Path, study: str | None) -> list[str]:
    """Return the arguments of `python -m analysis` after a campaign."""
    return ["conclude", str(campaign), *(["--study", study] if study else [])]


def report(campaign: Path, study: str | None) -> bool:
    """Make the tables and the report, print the answer; return whether that succeeded.

    If so, the journal records it, so that nothing is left to do. Raises CampaignError if that
    cannot be written.
    """
    command = [sys.executable, "-m", "analysis", *conclusion(campaign, study)]
    if subprocess.run(command, cwd=beginning.ROOT, check=False).returncode:
        print(
            f"campaign: what was measured of {campaign.name} is kept; the sentences above say what "
            "could not be made from it, and why. Put that right and make it: "
            f"make run RESUME={campaign.name}",
            file=sys.stderr,
        )
        return False
    try:
        with schedule.held(campaign) as held:
            held.add(Reported())
    except OSError as error:
        raise CampaignError(f"{campaign} cannot be written: {error.strerror}") from None
    return True
