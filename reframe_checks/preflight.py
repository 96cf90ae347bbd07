"""Preflight: the ranks form one world on the requested nodes, before anything is timed."""

from pathlib import Path

import reframe as rfm
from reframe.core.builtins import performance_function, run_after, run_before
from reframe.core.exceptions import SanityError

from containers import images
from containers.table import TableError, load_table
from records import packs
from records.base import NotKept
from records.budget import experiment_of
from records.causes import one_line
from records.kept import found_in
from records.launch import record_in
from records.limits.plausibility import latency_above_link
from records.schedule import Schedule
from reframe_checks.mixins.experiment import Experiment
from reframe_checks.mixins.image import ROOT
from reframe_checks.mixins.recording import SCHEDULES, Suspect
from reframe_checks.mixins.tiers import TIERS

# The message, in bytes, that the program measures latency with.
SHORT = 8
#: What the job's script was told by the node's Apptainer.
APPTAINER = "launch_apptainer"


def is_version(family: str, version: str, said: str) -> bool:
    """Return whether a library's description of itself names exactly this family and version.

    A last part of 0 may be left out: 2021.19 is 2021.19.0. If the table does not say how a family
    describes itself, the description only has to contain the version.
    """
    try:
        common = load_table(ROOT).families.get(family)
    except TableError as error:
        raise SanityError(str(error)) from None
    if common is None or common.says is None:
        return version in said
    found = common.version_in(said)
    return found is not None and found.removesuffix(".0") == version.removesuffix(".0")


def first_apptainer(schedule: Schedule) -> str | None:
    """Return what a campaign's first preflight on record says that it was started by."""
    for one in schedule.state.of(None):
        if one.place and experiment_of(one.planned.cell) == Preflight.__name__:
            for kept in found_in(schedule.campaign / packs.FOLDER / one.place.pack, [one]):
                return record_in(kept).apptainer
    return None


@rfm.simple_test
class Preflight(Experiment):
    """One world of the requested size and spread, its library, transport and rough latency."""

    descr = "one world, its library, transport and rough latency"
    program = "preflight"
    spread = True
    needs_preflight = False
    # A rough latency is not compared with anything; PointToPoint measures it properly.
    require_reference = False
    # A latency beyond its reference would keep all that waits for this from being measured.
    is_calibrated = False

    @run_after("init")
    def belong_to_every_tier(self) -> None:
        """Run in every tier: what the tier measures waits for this."""
        self.tags |= set(TIERS)

    @run_after("setup")
    def say_what_is_asked(self) -> None:
        """Make the program itself refuse a world of another size or spread."""
        self.program_arguments = ["--ranks", str(self.num_tasks), "--hosts", str(self.nodes)]

    @run_before("run")
    def look_at_apptainer(self) -> None:
        """Ask the node which Apptainer it has, before the launch's time begins."""
        self.prerun_cmds[:0] = [f"apptainer --version >{APPTAINER} 2>/dev/null"]

    def apptainer(self) -> str | None:
        """Return what the node's Apptainer says of itself."""
        return one_line(" ".join(self.noted(APPTAINER)), 200) or None

    def refuse_another_apptainer(self) -> None:
        """Raise NotKept where launches start by another Apptainer than when the campaign began.

        Nothing has failed then: it is measured when the one of before is back.
        """
        now = self.apptainer()
        for schedule in SCHEDULES:
            before = first_apptainer(schedule)
            if before and now and before != now:
                raise NotKept(
                    f"launches would start by {now}, and those of {schedule.campaign.name} have "
                    f"started by {before}; put that back and resume, or measure a new campaign"
                )

    def cell_parameters(self) -> dict[str, int]:
        """Return what identifies the cell."""
        return {"ranks": self.num_tasks, "nodes": self.nodes}

    def examine(self) -> None:
        """Refuse a library that is not the image's, and a world without a latency."""
        self.refuse_another_apptainer()
        output = self.read_records()
        labels, bound = self.image.labels, self.image.labels.bound
        family, version = labels.family, labels.version
        if not is_version(family, version, output.header.library):
            where = "the bound MPI is" if bound else "the image holds"
            raise SanityError(
                f"{where} {family} {version}, but the library that ran reports: "
                f"{output.header.library}"
            )
        # How a bound MPI describes itself outside; a version alone does not identify a build.
        said = bound.library.partition("\n")[0] if bound else ""
        if said and said.split() != output.header.library.split():
            raise SanityError(
                f"the machine's own MPI reports {said}, but the library that ran reports: "
                f"{output.header.library}"
            )
        self.refuse_another_file([r.path for r in output.results if r.operation == "library"])
        round_trips = [
            result.time_s.median
            for result in output.results
            if result.operation == "latency" and result.message_bytes == SHORT
        ]
        if len(round_trips) != self.num_tasks - 1:
            raise SanityError(
                f"{len(round_trips)} latencies were reported for {self.num_tasks} ranks"
            )
        by_memory = [r.evidence for r in output.results if r.operation == "transport"
                     and r.transport == "shared memory"]  # fmt: skip
        if self.nodes == self.num_tasks > 1 and by_memory:
            raise SanityError(
                f"each rank has a node of its own, yet they share memory: {by_memory[0]}"
            )
        link = self.site()["link_bytes_per_s"] if self.nodes > 1 else None
        for result in output.results:
            sentence = (
                latency_above_link(result, link) if link and result.operation == "latency" else None
            )
            if sentence:
                raise Suspect(sentence)
        self.slowest_round_trip = max(round_trips)

    def refuse_another_file(self, paths: list[str]) -> None:
        """Refuse ranks that loaded MPI from different files, or not from the one that is bound.

        `paths` are the files that they loaded it from. Two builds of one version describe
        themselves alike.
        """
        if len(paths) > 1:
            raise SanityError(f"the ranks loaded MPI from {len(paths)} files: {', '.join(paths)}")
        if self.image.labels.bound is None:
            return
        taken = self.image.labels.bound.taken
        if not paths:
            raise SanityError(
                "the image's preflight does not report which file its MPI came from, so the "
                f"bound MPI cannot be confirmed: rebuild the image: {images.BUILD_COMMAND}"
            )
        # The MPI's folder has the same path in the container.
        if Path(paths[0]).resolve() not in {Path(path).resolve() for path in taken}:
            raise SanityError(
                f"the machine's own MPI is {' '.join(taken)}, but the library that ran is "
                f"{paths[0] or 'linked into the program'}"
            )

    @performance_function("s")
    def latency(self) -> float:
        """Return half the slowest median round trip between rank 0 and another rank."""
        return float(self.slowest_round_trip / 2)
