"""Preflight: the ranks form one world on the requested nodes, before anything is timed."""

import os
import re
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import reframe as rfm
from reframe.core.builtins import performance_function, run_after, run_before
from reframe.core.exceptions import SanityError

from containers import images
from containers.table import TableError, load_table, split_variant
from records import packs
from records.base import MOST_RANKS_LISTED, NotKept, RecordError
from records.budget import experiment_of
from records.causes import one_line
from records.communication import Fabric
from records.counting import how_many
from records.environment import NAME, from_elsewhere, values
from records.kept import found_in
from records.launch import LONGEST_NAME, MOST_VARIABLES, record_in
from records.left_behind import read_left
from records.limits.fabric import passed_devices, wrong_fabric
from records.limits.plausibility import latency_above_link
from records.node_ailments import COMMAND as LOOK_AT_NODE
from records.schedule import Schedule
from reframe_checks.mixins.experiment import Experiment
from reframe_checks.mixins.image import ROOT
from reframe_checks.mixins.job_script import quoted
from reframe_checks.mixins.launching import Start, started_by
from reframe_checks.mixins.recording import SCHEDULES, Suspect
from reframe_checks.mixins.tiers import TIERS

#: Where a rank begins to look for a number that no other one has: at its own, if it was told it.
#: If many ranks all began at 0, they would try as many folders as there are ranks, squared.
FIRST_NUMBER = "n=${PMI_RANK:-${PMIX_RANK:-${SLURM_PROCID:-0}}}; case $n in *[!0-9]*) n=0;; esac; "
#: What each rank leaves: its variables; and each container, before its launcher begins.
OF_RANK, OF_CONTAINER = "environment_of_rank", "environment_of_container"
#: What each rank sees of its node; and the file that it goes to where `make doctor` asks for it.
OF_NODE = "node_of_rank"
NODES_TOLD = os.environ.get("WYEAST_NODES_TOLD")
#: For how many milliseconds a campaign has it look how quiet nodes are.
NOISE_MS = os.environ.get("WYEAST_NOISE_MS")
#: What the program says where a rank is the whole world, though others were asked for.
ALONE = re.compile(r"^preflight: 1 rank\(s\) formed a world, not", re.M)
#: What helps, by a site's `launch`.
WHERE_PMI_IS_CHOSEN = {
    "mpiexec": "its label `mpiexec` names another MPI's launcher: rebuild the image",
    "srun": "have Slurm's plugin for that MPI installed (`srun --mpi=list`), or use `launch: "
            "mpirun` with that MPI's own launcher",
    "mpirun": "name that MPI's own launcher in `launcher`, in the image's version",
}  # fmt: skip
#: And of an installation of the site, whose file names the launcher.
OF_INSTALLATION = "name that MPI's own launcher as `mpiexec` of the installation"
#: Of one of these files.
MOST_BYTES = 2**20
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


def noting(kind: str, besides: str = "") -> str:
    """Return what a shell does to note its variables in a file that no other one has.

    What it is to do `besides` has the number of that file as $n. It becomes what its words are
    then. Their numbers, from 0 on, need not be the ranks'. Where no folder can be made, nothing is
    noted, which is noticed when the launch is examined.
    """
    return (
        f"{FIRST_NUMBER}until mkdir {kind}.$n.taken 2>/dev/null; do "
        # On a full disk none can be made, and every number would fail.
        f"[ -d {kind}.$n.taken ] || break; n=$((n + 1)); done; "
        f'env -0 >{kind}.$n; {besides} exec "$@"'
    )


def trips_told(hosts: Sequence[str]) -> int:
    """Return how many ranks' round trips are told where the ranks of a world are on such hosts.

    Those of all but rank 0; of a large world a host tells two at most (preflight/trips.h).
    """
    if len(hosts) <= MOST_RANKS_LISTED:
        return len(hosts) - 1
    return sum(min(ranks, 2) for ranks in Counter(hosts).values()) - 1


def first_apptainer(schedule: Schedule) -> str | None:
    """Return what a campaign's first preflight on record says that it was started by."""
    for one in schedule.state.of(None):
        if one.place and experiment_of(one.planned.cell) == Preflight.__name__:
            for kept in found_in(schedule.campaign / packs.FOLDER / one.place.pack, [one]):
                # Of what runs outside of containers there is none.
                if (record := record_in(kept)).runs is None:
                    return record.apptainer
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

    def prove_nodes(self, nodes: int) -> None:
        """Run on as many nodes as the largest launch that waits for this, a rank on each."""
        self.num_tasks = max(2, nodes)

    @run_after("setup")
    def say_what_is_asked(self) -> None:
        """Make the program itself refuse a world of another size or spread."""
        looks = ["--noise-ms", NOISE_MS] if NOISE_MS else []
        self.program_arguments = [
            "--ranks", str(self.num_tasks), "--hosts", str(self.nodes), *looks
        ]  # fmt: skip

    def start_of(self, program: list[str]) -> Start:
        """Return how the ranks start, and how they and their containers note their variables."""
        look = f"{LOOK_AT_NODE} >{OF_NODE}.$n;" if NODES_TOLD else ""
        start = super().start_of(["sh", "-c", noting(OF_RANK, look), "sh", *program])
        before = quoted("sh", "-c", noting(OF_CONTAINER), "sh")
        return replace(start, command=f"{before} {start.command}")

    def outputs(self) -> list[str]:
        """Return the names of files that programs leave: those with their variables."""
        kinds = (OF_RANK, OF_CONTAINER, *((OF_NODE,) if NODES_TOLD else ()))
        return [f"{kind}.{number}" for kind in kinds for number in range(self.num_tasks)]

    def collected(self) -> RecordError | None:
        """Collect what programs left; hand on what they saw of their nodes, however they ended."""
        found = super().collected()
        if NODES_TOLD:
            with Path(NODES_TOLD).open("a") as told:
                for number in range(self.num_tasks):
                    with suppress(FileNotFoundError, RecordError):
                        left = read_left(Path(self.stagedir) / f"{OF_NODE}.{number}", MOST_BYTES)
                        told.write(left.decode(errors="replace"))
        return found

    def variables_of(self, kind: str) -> dict[str, str]:
        """Return the variables that ranks, or containers when they began, have noted, of all."""
        found: dict[str, str] = {}
        for number in range(self.num_tasks):
            # What is no file is as one that was not left.
            with suppress(FileNotFoundError, RecordError):
                left = read_left(Path(self.stagedir) / f"{kind}.{number}", MOST_BYTES)
                pairs = (
                    entry.partition("=") for entry in left.decode(errors="replace").split("\0")
                )
                found |= {name: one_line(value) for name, _, value in pairs
                          if NAME.fullmatch(name) and len(name) <= LONGEST_NAME}  # fmt: skip
        return dict(sorted(found.items())[:MOST_VARIABLES])

    def noted_variables(self) -> dict[str, Any]:
        """Return what the record has of variables: also the ranks' own, and whose nobody's are."""
        return {
            **super().noted_variables(),
            "environment": values(self.variables_of(OF_RANK)),
            "from_elsewhere": self.from_elsewhere(),
        }

    def from_elsewhere(self) -> list[str]:
        """Return which variables containers had when they began that nobody here has set.

        On the machine itself they are of what the site prepares, and recorded as the ranks' own.
        """
        if self.image.runs:
            return []
        implementation, _ = split_variant(self.implementation())
        of_image: dict[str, str] = {}
        # Of an image that is in no table nobody here has set any.
        with suppress(TableError):
            of_image = load_table(ROOT).resolve(implementation).environment
        platform = self.container_platform
        words = (word.removeprefix("--env=") for word in platform.options if "--env=" in word)
        explained = {*of_image, *platform.variables, *(word.partition("=")[0] for word in words)}
        inside = self.variables_of(OF_CONTAINER)
        return from_elsewhere(inside, explained, platform.launch)

    @run_before("run")
    def look_at_apptainer(self) -> None:
        """Ask the node which Apptainer it has, before the launch's time begins."""
        if self.image.runs:
            return
        self.prerun_cmds[:0] = [f"apptainer --version >{APPTAINER} 2>/dev/null"]

    def apptainer(self) -> str | None:
        """Return what the node's Apptainer says of itself."""
        return one_line(" ".join(self.noted(APPTAINER)), 200) or None

    def refuse_another_apptainer(self) -> None:
        """Raise NotKept if launches would use another Apptainer than when the campaign began.

        Nothing has failed then: the launch is measured when the previous one is back.
        """
        now = self.apptainer()
        for schedule in SCHEDULES:
            before = first_apptainer(schedule)
            if before and now and before != now:
                raise NotKept(
                    f"launches would use {now}, but those of {schedule.campaign.name} have used "
                    f"{before}; put that back and resume, or measure a new campaign"
                )

    def cell_parameters(self) -> dict[str, int]:
        """Return what identifies the cell."""
        return {"ranks": self.num_tasks, "nodes": self.nodes}

    def explain_failure(self) -> None:
        """Raise if each rank believes that it is alone."""
        if self.num_tasks == 1 or not ALONE.search(self.said()):
            return
        labels, launch = self.image.labels, self.site()["launch"]
        what = "installation" if self.image.runs else "image"
        own = self.image.runs and launch == "mpiexec"
        raise SanityError(
            "each rank believes that it is alone: "
            f"{started_by(labels, self.site(), what)} and the {what}'s MPI ({labels.family} "
            f"{labels.version}) do not share PMI; "
            f"{OF_INSTALLATION if own else WHERE_PMI_IS_CHOSEN[launch]}"
        )

    def examine(self) -> None:
        """Refuse a library that is not the image's, and a world without a latency."""
        self.refuse_another_apptainer()
        output = self.read_records()
        for kind in (OF_RANK, OF_CONTAINER):
            if not self.variables_of(kind):
                raise SanityError(f"the launch left no {kind}: which variables it had is unknown")
        labels, bound = self.image.labels, self.image.labels.bound
        family, version = labels.family, labels.version
        if not is_version(family, version, output.header.library):
            where = "the bound MPI is" if bound else "the image holds"
            where = "the site's file says" if self.image.runs else where
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
        hosts = output.header.hosts
        if len(round_trips) != trips_told(hosts):
            raise SanityError(
                f"{len(round_trips)} latencies were reported for {self.num_tasks} ranks"
            )
        by_memory = [r.evidence for r in output.results if r.operation == "transport"
                     and r.transport == "shared memory"]  # fmt: skip
        fabric = [one for one in output.results if isinstance(one, Fabric)]
        # A link without a rate may be as fast; what was counted is more than a guess by time.
        if self.nodes == self.num_tasks > 1 and by_memory and not passed_devices(fabric):
            raise SanityError(
                f"each rank has a node of its own, yet they share memory: {by_memory[0]}"
            )
        link = self.site()["link_bytes_per_s"] if self.nodes > 1 else None
        for result in output.results:
            passes = result.operation == "latency" and hosts[result.source] != hosts[result.to]
            if link and passes and (sentence := latency_above_link(result, link)):
                raise Suspect(sentence)
        self.refuse_another_fabric(fabric)
        self.slowest_round_trip = max(round_trips)

    def refuse_another_file(self, paths: list[str]) -> None:
        """Refuse ranks that loaded MPI from different files, or not from the one that is bound.

        `paths` are the files that they loaded it from. Two builds of one version describe
        themselves alike.
        """
        if len(paths) > 1:
            raise SanityError(f"the ranks loaded MPI from {len(paths)} files: {', '.join(paths)}")
        if self.image.runs:
            known = {Path(path).resolve() for path in self.image.mpi_files}
            if known and {Path(path).resolve() for path in paths} - known:
                raise SanityError(
                    f"the ranks loaded MPI from {paths[0]}, and not from what the loader named "
                    f"when it was asked: {', '.join(self.image.mpi_files)}: have `prepare` of the "
                    "installation load one MPI alone"
                )
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

    def refuse_another_fabric(self, hosts: list[Fabric]) -> None:
        """Refuse messages that other devices carried than those that the site says must."""
        fabric = self.site().get("fabric")
        if fabric is None:
            return
        if len(hosts) != self.nodes:
            raise SanityError(
                f"the image's preflight does not report what carried messages on "
                f"{how_many(self.nodes, 'node')}, so `fabric` is not proven: rebuild the image: "
                f"{images.BUILD_COMMAND}"
            )
        if sentence := wrong_fabric(hosts, fabric):
            raise SanityError(sentence)

    @performance_function("s")
    def latency(self) -> float:
        """Return half the slowest median round trip of a rank with the one it was timed with."""
        return float(self.slowest_round_trip / 2)
