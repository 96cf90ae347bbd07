"""What came from outside: others' work, stops, lost carriers, blocks that were cut or moved.

No launch is left out because of it, and no library causes it. Pairs of a round share what
affects all of them alike; a launch that was disturbed alone did not have the machine to itself.
"""

from collections import Counter
from collections.abc import Sized
from dataclasses import dataclass

from analysis.tables.units import prefixed
from records.campaign import Campaign
from records.counting import how_many
from records.disturbance import MARKED_SHARE
from records.launch import LaunchRecord

#: So many programs are named.
MOST_NAMED = 3


@dataclass(frozen=True)
class FromOutside:
    """Something that came from outside: in few words, and in a sentence."""

    few: str
    sentence: str


def from_outside(campaign: Campaign) -> list[FromOutside]:
    """Return what came from outside during the launches that count, if anything did."""
    records = [launch.record for launch in campaign.sound()]
    found = [others(records), stops(records), carriers(records), leftovers(records)]
    found.append(variables(records))
    found += limits(campaign.manifest.machine.get("limited"))
    if campaign.repeated:
        found.append(
            FromOutside(
                "blocks measured again",
                "Measured again, once, because a process was stopped or a link lost its carrier: "
                f"{blocks(campaign.repeated)}. The first results are kept separately in the "
                "campaign.",
            )
        )
    if campaign.split:
        found.append(
            FromOutside(
                "interrupted blocks",
                f"Interrupted, and finished by a later session: {blocks(campaign.split)}, with "
                "launches further apart than others (column `split` of launches.parquet).",
            )
        )
    if moved := campaign.moved():
        found.append(
            FromOutside(
                "blocks that moved",
                f"The launches of {blocks(moved)} began on different nodes: what differs between "
                "those nodes also differs between the launches (column `moved` of "
                "launches.parquet).",
            )
        )
    return [one for one in found if one is not None]


def blocks(found: Sized) -> str:
    """Return how many blocks these are, in words."""
    return how_many(len(found), "block")


def launches(found: Sized) -> str:
    """Return how many launches these are, in words."""
    return how_many(len(found), "launch", "launches")


def limits(said: object) -> list[FromOutside]:
    """Return the limits that a campaign was told to have on its machine when it began."""
    if not isinstance(said, list):
        return []
    return [FromOutside("a limit of the machine", one) for one in said if isinstance(one, str)]


def variables(records: list[LaunchRecord]) -> FromOutside | None:
    """Return which variables containers had that neither Wyeast nor the site has set."""
    found = {one.implementation: one.from_elsewhere for one in records if one.from_elsewhere}
    if not found:
        return None
    said = "; ".join(f"{name}: {', '.join(names)}" for name, names in sorted(found.items()))
    return FromOutside(
        "variables from elsewhere",
        "Some variables that may change times were set in containers by the machine's "
        "apptainer.conf or by a script of the image, not by Wyeast or by the site "
        f"({said}): the preflights' launch.json have their values.",
    )


def others(records: list[LaunchRecord]) -> FromOutside | None:
    """Return who else used the processors beyond the stated share."""
    shares = {
        one.launch: one.disturbance.share
        for one in records
        if one.disturbance and one.disturbance.is_shared
    }
    if not shares:
        return None
    worst, by_name = max(shares, key=lambda name: shares[name]), Counter[str]()
    for one in records:
        if one.launch in shares and one.disturbance:
            by_name.update(one.disturbance.others)
    names = ", ".join(
        f"{name} {prefixed(seconds, 's')}" for name, seconds in by_name.most_common(MOST_NAMED)
    )
    return FromOutside(
        "others used the processors",
        f"During {len(shares)} of {len(records)} launches other processes used more than "
        f"{MARKED_SHARE:.0%} of a processor on the first node, most during {worst} "
        f"({shares[worst]:.2g} processors); in total {names}. That affects these "
        "launches' rates.",
    )


def stops(records: list[LaunchRecord]) -> FromOutside | None:
    """Return which launches had a process that was stopped for a while."""
    found = [one.launch for one in records if one.disturbance and one.disturbance.stopped]
    if not found:
        return None
    return FromOutside(
        "stopped processes",
        f"In {launches(found)} a process was stopped and continued, as in {found[0]}: their times "
        "include the pause.",
    )


def carriers(records: list[LaunchRecord]) -> FromOutside | None:
    """Return which launches had a link that went down or came up."""
    found = [one.launch for one in records if one.disturbance and one.disturbance.carriers]
    if not found:
        return None
    return FromOutside(
        "a link went down",
        f"During {launches(found)} a link lost or regained its carrier, as during {found[0]}.",
    )


def leftovers(records: list[LaunchRecord]) -> FromOutside | None:
    """Return which launches left processes running."""
    found = [one for one in records if one.left_running]
    if not found:
        return None
    names = ", ".join(dict.fromkeys(one.implementation for one in found))
    return FromOutside(
        "processes left running",
        f"{launches(found)} of {names} left processes running, which were killed before the next "
        "launch.",
    )
