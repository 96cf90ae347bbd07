"""Read a campaign folder: the manifest, every launch, and what is wrong with any of them."""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from records import layout, sample
from records.acting_user import rights_of_owner
from records.archive import BundleError
from records.base import CampaignError, RecordError
from records.budget import awaits_test, left_out
from records.causes import one_line
from records.counting import how_many
from records.digests import LaunchFiles
from records.files import read_json
from records.fold import State, changed_manifest, refuse_another
from records.journal import FILE as JOURNAL
from records.kept import Shelf, has_launches, kept_by
from records.launch import Launch, read_launch
from records.manifest import FILE as MANIFEST
from records.manifest import Manifest, read_manifest
from records.nodes import differing, possible
from records.program_output import ProgramOutput
from records.schedule import state_of

#: In the folder of a campaign that came in a bundle: whose site is another machine's.
IMPORTED = "imported.json"


@dataclass
class KnownLaunches:
    """What was read of a campaign: by names of launches and the digests that the journal has."""

    launches: dict[tuple[str, str | None], Launch] = field(default_factory=dict)
    shelf: Shelf = field(default_factory=Shelf)


@dataclass(frozen=True)
class LeftOut:
    """Something that was left out, and why."""

    where: str
    sentence: str

    def __post_init__(self) -> None:
        """Turn text printed by others into one line of bounded length."""
        object.__setattr__(self, "where", one_line(self.where))
        object.__setattr__(self, "sentence", one_line(self.sentence))


@dataclass
class Campaign:
    """A campaign as far as it can be read."""

    path: Path
    manifest: Manifest
    launches: list[Launch] = field(default_factory=list)
    problems: list[LeftOut] = field(default_factory=list)
    #: The compared cells for which its budget had no room.
    no_room: list[str] = field(default_factory=list)
    #: Whether nothing of it is judged yet, since all of it is tested once, at the end.
    awaits_test: bool = False
    #: The cells, each with an implementation, that still have something to be measured.
    open: set[tuple[str, str]] = field(default_factory=set)
    #: What is kept of each of its launches, by name.
    kept: Mapping[str, LaunchFiles] = field(default_factory=dict)
    #: What opens the packs of these.
    shelf: Shelf = field(default_factory=Shelf)
    #: Blocks, by round and cell: those that were cut, as by a kill, and finished by another
    #: session, and those that were measured again since something from outside came between.
    split: set[tuple[int, str]] = field(default_factory=set)
    repeated: set[tuple[int, str]] = field(default_factory=set)

    def sound(self) -> list[Launch]:
        """Return the launches that enter statistics."""
        return [launch for launch in self.launches if launch.is_sound]

    def moved(self) -> set[tuple[int, str]]:
        """Return the blocks, by round and cell, whose launches began on different nodes.

        By the first node of each launch; of a launch that does not name it nobody can tell.
        """
        nodes: dict[tuple[int, str], set[str]] = defaultdict(set)
        for launch in self.sound():
            # The file of a node is named after it and a digest.
            if name := str(launch.record.node.get("facts") or "").rpartition("-")[0]:
                nodes[launch.record.round, launch.record.cell].add(name)
        return {block for block, names in nodes.items() if len(names) > 1}

    def leave_out_unreadable(self) -> None:
        """Leave out each launch whose output this version refuses, though its values were kept.

        It reads all outputs, as who makes tables or models of them does in any case.
        """
        readable = []
        with rights_of_owner(self.path), self.shelf.held():
            for launch in self.launches:
                try:
                    launch.output  # noqa: B018
                except (RecordError, OSError) as error:
                    self.problems.append(LeftOut(launch.record.launch, unread_because(error)))
                else:
                    readable.append(launch)
        self.launches[:] = readable

    def unproven(self) -> int:
        """Return how many launches have no digests: changes to them would go unnoticed."""
        return sum(not launch.record.sha256 for launch in self.launches)


def unread_because(error: RecordError | OSError) -> str:
    """Return why a launch cannot be read, in words and not in Python's."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}"
    return str(error)


def say_passed_over(sentence: str) -> None:
    """Report on stderr why the latest campaign is not the one that is meant."""
    print(f"passed over: {sentence}", file=sys.stderr)


def find_campaign(root: Path, name: str, say: Callable[[str], None] = say_passed_over) -> Path:
    """Return the folder of a campaign: a path, a name in runs/, or the latest of a kind.

    `latest` is that of all, the name of a site that of the site, and eight digits (20261121) or
    the beginning of a time that of the day; imported ones, and those that have measured nothing,
    are found only by their names. One whose manifest cannot be read hides none before it: `say`
    gets the sentence. `sample` is unpacked from its archive. Raises CampaignError if there is none.
    """
    runs = layout.runs(root)
    if not name.strip():
        raise CampaignError("an empty name is not a campaign; see: ls runs")
    if name == sample.NAME and (root / sample.ARCHIVE).is_file():
        try:
            return sample.sample_folder(root)
        except BundleError as error:
            raise CampaignError(str(error)) from None
        except OSError as error:
            raise CampaignError(
                f"{error.filename or runs} cannot be written: {error.strerror or error}; the "
                f"sample is unpacked into {runs}"
            ) from None
    for path in (layout.meant(name), runs / name):
        try:
            if (path / "manifest.json").is_file():
                return path
        except OSError as error:
            raise CampaignError(f"{path} cannot be read: {error.strerror}") from None
    found = sorted(
        path.parent
        for path in runs.glob("*/manifest.json")
        if not is_imported(path.parent) and has_measured(path.parent)
    )
    if name == "latest" and not found:
        raise CampaignError("runs/ holds no campaign yet; measure one with: make run")
    unreadable = []
    for path in sorted(found, key=lambda path: path.name[:16], reverse=True):
        if not may_fit(name, path):
            continue
        try:
            manifest = read_manifest(path)
        except CampaignError as error:
            unreadable.append(one_line(str(error)))
            continue
        if is_day(name) or name in ("latest", manifest.site):
            for sentence in unreadable:
                say(sentence)
            return path
    if unreadable:
        raise CampaignError(unreadable[0])
    raise CampaignError(f"{name} is not a campaign: it has no manifest.json; see: ls runs")


def is_imported(folder: Path) -> bool:
    """Return whether a campaign came in a bundle, so that its site is another machine's."""
    return (folder / IMPORTED).exists()


def has_measured(folder: Path) -> bool:
    """Return whether a campaign has a complete launch, or the tables of removed ones."""
    return has_launches(folder) or (folder / "tables").is_dir()


def is_day(name: str) -> bool:
    """Return whether a campaign is asked for by its day, or the beginning of its time."""
    return len(name) >= 8 and name[:8].isdigit()


def may_fit(name: str, folder: Path) -> bool:
    """Return whether a campaign, in `<UTC time>-<site>-<name>`, is of a day, or may be of a site.

    A site's name may have the same beginning as another one's.
    """
    time, _, rest = folder.name.partition("-")
    if is_day(name):
        return time.startswith(name)
    return name == "latest" or rest.startswith(f"{name}-")


def measured_on(path: Path, manifest: Manifest) -> Manifest:
    """Return a manifest whose `machine` describes the nodes that measured, if they are recorded.

    If they differ, each value is named. Raises CampaignError for a node's file that
    cannot be read.
    """
    nodes: list[dict[str, Any]] = []
    for file in sorted((path / "nodes").glob("*.json")):
        try:
            told = dict(read_json(file))
            possible(told)
            nodes.append(told)
        except (OSError, ValueError, TypeError) as error:
            raise CampaignError(f"{file} cannot be read: {error}") from None
    if not nodes:
        return manifest
    # A node's file may have been written without it.
    machine: dict[str, Any] = {"cpu_model": None}
    for key in dict.fromkeys(key for node in nodes for key in node):
        values = list({json.dumps(node.get(key)): node.get(key) for node in nodes}.values())
        machine[key] = values[0] if len(values) == 1 else differing(values)
    return manifest.changed(machine=machine)


def manifest_of_nodes(campaign: Campaign) -> Manifest:
    """Return a campaign's manifest as `measured_on` does, for pages that people read.

    A node's file that cannot be read becomes one of the campaign's problems; `machine` is then the
    one that the campaign was started on.
    """
    try:
        manifest = measured_on(campaign.path, campaign.manifest)
        return manifest.changed(machine={"cpu_model": None, **manifest.machine})
    except CampaignError as error:
        campaign.problems.append(
            LeftOut("nodes", f"{error}; the machine shown is the one that started the campaign")
        )
        return campaign.manifest


def read_campaign(path: Path, known: KnownLaunches | None = None, anew: bool = False) -> Campaign:
    """Read a campaign; what cannot be read is listed in `problems`, the rest is kept.

    What is `known` of packs, by what the journal says of it, is not read again; what is read is
    added. If `anew`, all values are computed from what programs printed, and those that were kept
    must be the same (`read_launch`).
    """
    known = known or KnownLaunches()
    with rights_of_owner(path), known.shelf.held():
        return _read_campaign(path, known, anew)


def _read_campaign(path: Path, known: KnownLaunches, anew: bool) -> Campaign:
    campaign = Campaign(path, read_manifest(path), shelf=known.shelf)
    seen: dict[tuple[int, str, str], str] = {}
    if removed := campaign.manifest.raw_removed_utc:
        campaign.problems.append(
            LeftOut(path.name, f"its raw output was removed {removed} by the retention of nights; "
                    "its tables and report are there")
        )  # fmt: skip
    state: State | None = None
    try:
        state = state_of(path)
        if state:
            refuse_another(path, state, campaign.manifest.campaign)
            if changed := changed_manifest(state, campaign.manifest):
                campaign.problems.append(LeftOut(MANIFEST, changed))
    except CampaignError as error:
        state = None
        unknown = [LeftOut(JOURNAL, f"{error}; so what is missing is unknown")]
    else:
        unknown = []
    if state:
        campaign.no_room = left_out(state)
        campaign.awaits_test = awaits_test(state)
        campaign.open = {(one.planned.cell, one.planned.implementation) for one in state.open()}
    found = kept_by(path, state, known.shelf)
    campaign.kept = {one.name: one for one in reversed(found)}
    for one in found:
        told = (one.name, one.sha256)
        try:
            launch = known.launches.get(told) or read_launch(one, anew)
            if one.sha256:
                known.launches[told] = launch
        except (RecordError, OSError) as error:
            campaign.problems.append(LeftOut(one.name, unread_because(error)))
            continue
        record = launch.record
        key = (record.round, record.cell, record.implementation)
        if key in seen:
            campaign.problems.append(
                LeftOut(one.name, f"{one.where}: the same launch as {seen[key]}, left out")
            )
            continue
        seen[key] = one.name
        if record.round > campaign.manifest.rounds:
            campaign.problems.append(
                LeftOut(
                    one.name,
                    f"{one.where}: belongs to round {record.round}, but the campaign has only "
                    f"{campaign.manifest.rounds}",
                )
            )
            continue
        image = campaign.manifest.images.get(record.implementation)
        if image is None or image.sha256 != record.image_sha256:
            campaign.problems.append(
                LeftOut(one.name, f"{one.where}: ran an image other than the one in the manifest")
            )
            continue
        if not launch.is_sound:
            said = record.sentence or "no reason was recorded"
            campaign.problems.append(LeftOut(one.name, f"{record.outcome}: {said}"))
        campaign.launches.append(launch)
    if not campaign.manifest.raw_removed_utc:
        campaign.problems += unknown
        if state:
            campaign.split = state.split()
            campaign.repeated = {
                (one.round, one.planned.cell) for one in state.of(None) if one.is_repeat
            }
            campaign.problems += unmeasured(path, campaign.manifest, state, set(campaign.kept))
    return campaign


def unmeasured(
    path: Path, manifest: Manifest, state: State, names: Collection[str]
) -> list[LeftOut]:
    """Return what a campaign should have measured and has not, by its journal; `names` are there.

    What is missing is named, launch by launch; what a campaign has not reached yet is counted. A
    campaign older than journals cannot tell.
    """
    found = []
    for one in state.of(None):
        if one.status == "missing":
            found.append(LeftOut(one.name, f"missing: {one.cause}; RESUME measures it"))
        elif one.status == "failed":
            found.append(LeftOut(one.name, f"failed: it was never started: {one.cause}"))
        elif one.status == "recorded" and one.name not in names:
            where = f"it is no longer in {one.place.pack}" if one.place else "its folder is gone"
            found.append(LeftOut(one.name, f"missing: it was measured, and {where}"))
    for number in range(1, manifest.rounds + 1):
        left, of = state.open(number), state.rounds.get(number, [])
        if left:
            sentence = f"{len(left)} of {len(of)} launches are not measured; RESUME measures them"
            found.append(LeftOut(f"round {number}", f"missing: {sentence}"))
        elif number not in state.rounds and not manifest.finished_utc:
            found.append(LeftOut(f"round {number}", "missing: it was not begun; RESUME begins it"))
    if (
        state.design
        and not manifest.finished_utc
        and (state.ended is None or state.ended.why == "interrupted")
    ):
        sentence = "missing: its budget is not used up; RESUME measures what is still open"
        found.append(LeftOut(path.name, sentence))
    if others := left_out(state):
        sentence = (
            f"the budget had no room for {how_many(len(others), 'cell')}: {', '.join(others)}"
        )
        found.append(LeftOut(path.name, sentence))
    if state.stopped:
        found.append(LeftOut(path.name, f"stopped: {state.stopped}"))
    return found


def cells_with(
    launches: Iterable[Launch], kinds: type | tuple[type, ...]
) -> dict[str, tuple[str, ...]]:
    """Return the cells by implementation whose launches have results of some kinds."""
    found: dict[str, dict[str, None]] = defaultdict(dict)
    for launch in launches:
        if not isinstance(launch.output, ProgramOutput):
            continue
        if any(isinstance(result, kinds) for result in launch.output.results):
            found[launch.record.implementation][launch.record.cell] = None
    return {name: tuple(cells) for name, cells in found.items()}
