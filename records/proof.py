"""Whether a campaign proves that nothing of it was lost or mixed, by what it recorded itself.

Each campaign is proven, unproven for reasons (it was measured before what would prove it was
recorded, or is not whole), or damaged: what it recorded is no longer there as it was.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Literal

from records.acting_user import rights_of_owner
from records.base import CampaignError
from records.campaign import Campaign, is_imported, read_campaign
from records.causes import one_line
from records.counting import how_many
from records.events import Entry, Lost
from records.fold import State, changed_manifest, fold, refuse_another
from records.journal import Content, read_journal
from records.launch import LaunchRecord
from records.manifest import Manifest

ProofVerdict = Literal["proven", "unproven", "damaged"]
#: Of what was computed of it for histories.
ROWS_CHANGED = "history rows changed"
#: What is no longer as it was recorded; all other doubts are of what was never recorded.
DAMAGES = ("manifest damaged", "journal damaged", "launches gone", "launches damaged",
           "launches unknown", ROWS_CHANGED)  # fmt: skip
#: How much, in seconds, two readings of clocks may differ that were not set.
CLOCK_S = 1.0
#: By so much clocks of different nodes may differ, in seconds.
NODES_S = 2.0
#: Schedulers that are asked for the jobs of a dead campaign before anything is measured again.
ASKED = ("local", "slurm", "squeue")
LAUNCH = re.compile(r"round[0-9]+_")


@dataclass(frozen=True)
class Doubt:
    """Why a campaign is not proven: in few words that are the same for all, and in a sentence."""

    word: str
    sentence: str

    @property
    def is_damage(self) -> bool:
        """Return whether something that was recorded is no longer as it was."""
        return self.word in DAMAGES


@dataclass(frozen=True)
class Proof:
    """What speaks against a campaign; `site` and `launches` as far as they can be read."""

    campaign: str
    site: str | None
    launches: int
    doubts: tuple[Doubt, ...]

    @property
    def verdict(self) -> ProofVerdict:
        """Return what the doubts amount to."""
        if any(one.is_damage for one in self.doubts):
            return "damaged"
        return "unproven" if self.doubts else "proven"

    @property
    def words(self) -> str | None:
        """Return the verdict with the doubts in few words; None of a proven campaign."""
        if not self.doubts:
            return None
        return f"{self.verdict}: {', '.join(one.word for one in self.doubts)}"

    @property
    def caveat(self) -> str:
        """Return the finding in a short sentence, for something that depends on the campaign."""
        return f"{self.campaign} is {self.words or 'proven'}; what that means: make audit"

    @property
    def sentence(self) -> str:
        """Return what is found, for people."""
        if not self.doubts:
            return f"{self.campaign} is proven"
        return f"{self.campaign} is {self.verdict}: {'; '.join(x.sentence for x in self.doubts)}"


def proof_in(folder: Path) -> Proof:
    """Return what speaks against the campaign in a folder, all of whose files are read.

    What was kept of its launches' values is computed anew.
    """
    try:
        with rights_of_owner(folder):
            return proof_of(read_campaign(folder, anew=True))
    except (CampaignError, OSError) as error:
        return Proof(folder.name, None, 0, (Doubt("manifest damaged", one_line(str(error))),))


def proof_of(campaign: Campaign) -> Proof:
    """Return what casts doubt on a campaign that was read."""
    with rights_of_owner(campaign.path):
        doubts = tuple(_doubts(campaign))
    return Proof(campaign.path.name, campaign.manifest.site, len(campaign.launches), doubts)


def _doubts(campaign: Campaign) -> Iterator[Doubt]:
    manifest = campaign.manifest
    if is_imported(campaign.path):
        yield Doubt("imported", "it came in a bundle: only its sender can say how proven it is")
    content: Content | None = None
    state: State | None = None
    try:
        content = read_journal(campaign.path)
        if content is not None:
            state = fold(content.events)
            refuse_another(campaign.path, state, manifest.campaign)
            if changed := changed_manifest(state, manifest):
                yield Doubt("manifest damaged", changed)
    except CampaignError as error:
        state = None
        yield Doubt("journal damaged", one_line(str(error)))
    else:
        yield from _of_journal(manifest, content, state)
    if manifest.raw_removed_utc:
        yield from _of_removed(manifest)
        return
    if state is not None:
        yield from _of_places(campaign, state)
    elif damaged := list(_damaged(campaign)):
        yield Doubt("launches damaged", _named(damaged, "cannot be read as it was recorded"))
    yield from _of_records([launch.record for launch in campaign.launches])


def _of_journal(
    manifest: Manifest, content: Content | None, state: State | None
) -> Iterator[Doubt]:
    """Yield the doubts that the journal raises, or that there is no journal."""
    if content is None or state is None:
        gone_on = len(manifest.commands) > 1
        yield Doubt(
            "no journal",
            "it was measured without a journal, so launches may be lost without anybody noticing"
            + (", and when it was resumed, jobs of the first part may still have been running"
               if gone_on else ""),
        )  # fmt: skip
    elif state.is_converted:
        yield Doubt(
            "begun without a journal",
            "its first launches were measured without a journal, so some may be lost without "
            "anybody noticing",
        )
    if not manifest.finished_utc:
        left = len(state.left()) if state else 0
        yield Doubt(
            "interrupted",
            "it is not finished"
            + (f", and {left} of its planned launches are not measured" if left else ""),
        )
    if content is None:
        return
    scheduler = (manifest.site_data or {}).get("scheduler", "local")
    lost = sum(isinstance(event, Lost) for event in content.events)
    if lost and scheduler not in ASKED:
        yield Doubt(
            "jobs beside",
            f"{how_many(lost, 'attempt')} at launching failed without a result, and the scheduler "
            f"{scheduler} was not asked whether their jobs were still running during the next "
            "launches",
        )
    if steps := list(clock_steps(content.entries)):
        yield Doubt(
            "clock set",
            f"the clock of the machine that drove it was set {how_many(len(steps), 'time')}, by at "
            f"most {max(steps, key=abs):+.0f} s",
        )


def clock_steps(entries: Iterable[Entry]) -> Iterator[float]:
    """Yield by how many seconds the wall clock was set between entries of a journal.

    A machine that slept cannot be distinguished from one whose clock was set forward.
    """
    before: Entry | None = None
    for entry in entries:
        if before is not None and before.boot == entry.boot:
            passed = datetime.fromisoformat(entry.utc) - datetime.fromisoformat(before.utc)
            step = passed.total_seconds() - (entry.monotonic_s - before.monotonic_s)
            if abs(step) > CLOCK_S:
                yield step
        before = entry


def _of_removed(manifest: Manifest) -> Iterator[Doubt]:
    """Yield the doubts about a campaign when its raw output was removed."""
    if manifest.doubts is None:
        sentence = "its raw output was removed before it was checked whether it is proven"
        yield Doubt("raw output removed", sentence)
    for text in manifest.doubts or ():
        word, _, sentence = text.partition(": ")
        yield Doubt(word, f"{sentence} (as of {manifest.raw_removed_utc}, when its raw output was "
                    "removed)")  # fmt: skip


def kept_doubts(proof: Proof) -> list[str]:
    """Return the doubts as a manifest keeps them."""
    return [f"{one.word}: {one.sentence}" for one in proof.doubts]


def _of_places(campaign: Campaign, state: State) -> Iterator[Doubt]:
    """Yield what is in the journal but not in the folder, and the other way round."""
    read = {launch.record.launch for launch in campaign.launches}
    said = {one.where: one.sentence for one in campaign.problems}
    recorded = {one.name for one in state.of(None) if one.status == "recorded"}
    absent = sorted(recorded - read)
    gone = [name for name in absent if said.get(name, "missing: ").startswith("missing: ")]
    damaged = [name for name in absent if name not in gone]
    in_flight = {one.name for one in state.of(None) if one.in_flight}
    if gone:
        yield Doubt("launches gone", _named(gone, "was recorded and is no longer there"))
    if damaged:
        of = [f"{name} ({said[name]})" for name in damaged]
        yield Doubt("launches damaged", _named(of, "cannot be read as it was recorded"))
    # A converted journal takes in what was there when its rounds are planned again.
    if not state.is_converted and (unknown := sorted(read - recorded - in_flight)):
        yield Doubt("launches unknown", _named(unknown, "is there but not in the journal"))


def _damaged(campaign: Campaign) -> Iterator[str]:
    """Yield the launches that cannot be read, for a campaign without a readable journal."""
    read = {launch.record.launch for launch in campaign.launches}
    for one in campaign.problems:
        if LAUNCH.match(one.where) and one.where not in read:
            yield f"{one.where} ({one.sentence})"


def _of_records(records: list[LaunchRecord]) -> Iterator[Doubt]:
    """Yield what the records of launches say, or do not say."""
    if beside := list(overlaps(records)):
        yield Doubt(
            "overlapping",
            _named(beside, "by the clocks: they were set, or the two ran side by side"),
        )
    of = f"of its {len(records)} launches"
    if bare := sum(not one.sha256 for one in records):
        yield Doubt(
            "no digests",
            f"{bare} {of} have no digests, so a change of their files would not be noticed",
        )
    if unnoted := sum(one.outcome == "sound" and one.image_file is None for one in records):
        yield Doubt(
            "image not noted",
            f"{unnoted} {of} do not say which file their image was before and after they ran, so "
            "it may have been replaced meanwhile",
        )


def overlaps(records: Iterable[LaunchRecord]) -> Iterator[str]:
    """Yield the launches of a round that began before the one before them had ended."""
    rounds: dict[int, list[LaunchRecord]] = defaultdict(list)
    for one in records:
        if one.position is not None:
            rounds[one.round].append(one)
    for of in rounds.values():
        of.sort(key=lambda one: one.position or 0)
        for before, after in pairwise(of):
            apart = after.started_s() - datetime.fromisoformat(before.ended_utc).timestamp()
            if apart < -NODES_S:
                yield f"{after.launch} began {-apart:.0f} s before {before.launch} ended"


def _named(names: list[str], what: str) -> str:
    """Return the first of some launches with what is wrong with them all, and how many more."""
    more = f" (and {len(names) - 1} more)" if len(names) > 1 else ""
    return one_line(f"{names[0]}{more} {what}")
