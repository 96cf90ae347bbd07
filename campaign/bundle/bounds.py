"""How long a bundle's campaign may hold the machine that repeats it, whatever its sender meant."""

from __future__ import annotations

import re

from campaign.patterns import refuse_pattern
from records.archive import BundleError
from records.manifest import Manifest

#: A campaign of more rounds would take weeks.
MOST_ROUNDS = 300
#: Of one launch, in seconds: one that hangs holds the machine for as long.
MOST_TIME_LIMIT_S = 6 * 3600
#: ReFrame's way to write a time.
TIME = re.compile(
    r"(?:([0-9]{1,9})d)?(?:([0-9]{1,9})h)?(?:([0-9]{1,9})m)?(?:([0-9]{1,9})s)?", re.ASCII
)


def refuse_unbounded(manifest: Manifest, most_rounds: int) -> None:
    """Raise BundleError, or CampaignError, for a campaign that would hold the machine too long."""
    # It would be matched while the machine is held.
    refuse_pattern(manifest.checks)
    if manifest.rounds > most_rounds:
        raise BundleError(
            f"{manifest.campaign} has {manifest.rounds} rounds, and at most {most_rounds} are "
            "repeated; MOST_ROUNDS= raises that"
        )
    if manifest.time_limit is None:
        return
    found = TIME.fullmatch(manifest.time_limit)
    parts = [int(part or 0) for part in found.groups()] if found else [0]
    seconds = sum(part * unit for part, unit in zip(parts, (86400, 3600, 60, 1), strict=False))
    if not 0 < seconds <= MOST_TIME_LIMIT_S:
        raise BundleError(
            f"{manifest.campaign} allows each launch a time of {manifest.time_limit[:40]!a}, and "
            f"at most {MOST_TIME_LIMIT_S // 3600}h are allowed; it is in runs/, and to repeat it "
            f"all the same: python -m campaign --like {manifest.campaign}"
        )
