"""What a launch's job has left in its stage folder: its node, its clock, how it ended."""

import os
import re
from pathlib import Path
from typing import Any

import reframe as rfm
import reframe.utility.sanity as sn

from records import disturbance, instants, nodes
from records.causes import one_line
from records.ending import told_in
from records.environment import NAME
from records.image_file import ImageFile, image_file
from reframe_checks.mixins.job_script import UNSEEN

NODE = "launch_node"
STARTED = "launch_started"
ENDED = "launch_ended"
#: What a job's script saw of the node's processes and links before and after, and its own stops.
BEFORE, AFTER, STOPS = "launch_seen_before", "launch_seen_after", "launch_stops"
#: Which file the image was before and after.
IMAGE_BEFORE, IMAGE_AFTER = "launch_image_before", "launch_image_after"
#: The fields of the first line of /proc/stat, in the order of proc(5): user, nice, system, idle,
#: iowait, irq, softirq, steal. Guests' time is part of user's.
PROCESSORS = {"busy": (0, 1, 2, 5, 6), "idle": (3, 4), "stolen": (7,)}
EXIT_CODE = "launch_exit_code"
#: The programs that a launch left running on its nodes, a line for each process.
LEFT_RUNNING = "launch_left"
#: The variables of the node that into_container removed.
REMOVED = "launch_removed"
#: How much of standard error is searched for how ranks ended, and of each end for a complaint.
MOST_SAID_BYTES = 100_000
#: What that of MPICH and that of Intel MPI print last of a rank that the kernel ended.
OF_HYDRA = re.compile(
    r"^(?:YOUR APPLICATION TERMINATED WITH THE EXIT STRING: |=   KILLED BY SIGNAL: ).*$",
    re.MULTILINE,
)


class NotingCheck(rfm.RegressionTestPlugin):
    """A check that reads what the script of its job noted beside the program's output."""

    def output_path(self, stream: str) -> Path:
        """Return where the launch's stdout or stderr is."""
        return Path(self.stagedir) / str(sn.evaluate(getattr(self, stream)))

    def noted(self, name: str) -> list[str]:
        """Return the lines that the launch noted in a file: the time, the processors' time."""
        try:
            return (Path(self.stagedir) / name).read_text(errors="replace").splitlines()
        except OSError:
            return []

    def noted_variables(self) -> dict[str, Any]:
        """Return what the record says about variables: which were removed on the launch's node."""
        names = {name for line in self.noted(REMOVED) for name in line.split()}
        return {"variables_removed": sorted(filter(NAME.fullmatch, names))} if names else {}

    def node(self) -> dict[str, Any]:
        """Return the facts of the launch's first node; None for those that it did not report."""
        return nodes.facts("\n".join(self.noted(NODE)))

    def instants(self) -> tuple[instants.Instant | None, instants.Instant | None]:
        """Return when the launch began and ended, by the clocks of its first node."""
        return instants.instant(self.noted(STARTED)), instants.instant(self.noted(ENDED))

    def launch_seconds(self) -> tuple[float, float] | None:
        """Return when the launch began and ended, in seconds since the epoch, if it did both.

        Both are by the clock as it was when the launch began, even if it was set meanwhile.
        """
        began, ended = self.instants()
        seconds = began.seconds_until(ended) if began and ended else None
        return None if began is None or seconds is None else (began.utc_s, began.utc_s + seconds)

    def processor_seconds(self) -> dict[str, float]:
        """Return how long the first node's processors were busy, idle and stolen meanwhile.

        In seconds over all its processors; stolen is what a hypervisor gave to other guests while
        there was something to do here. Nothing where the kernel does not tell.
        """
        try:
            before, after = (
                [int(ticks) for ticks in self.noted(name)[1].split()[1:9]]
                for name in (STARTED, ENDED)
            )
            spent = {
                name: sum(after[field] - before[field] for field in fields)
                / os.sysconf("SC_CLK_TCK")
                for name, fields in PROCESSORS.items()
            }
        except (IndexError, ValueError):
            return {}
        # The kernel's count of waiting for input and output may go back, says proc(5).
        return spent if min(spent.values()) >= 0 else {}

    def image_files(self) -> tuple[ImageFile | None, ImageFile | None]:
        """Return which file the image was before and after the launch, as far as is recorded."""
        return image_file(self.noted(IMAGE_BEFORE)), image_file(self.noted(IMAGE_AFTER))

    def left_on_nodes(self) -> list[str]:
        """Return the names of what a scheduler's job left running on its nodes, which it ended."""
        return [name for line in self.noted(LEFT_RUNNING) if (name := one_line(line, 16))]

    def has_unseen_nodes(self) -> bool:
        """Return whether a scheduler's job could not look what it left on all of its nodes."""
        return (Path(self.stagedir) / f"{LEFT_RUNNING}{UNSEEN}").exists()

    def exit_code(self) -> int | None:
        """Return the launch's exit code, or None if the job ended before the launch did."""
        try:
            return int((Path(self.stagedir) / EXIT_CODE).read_text())
        except (OSError, ValueError):
            # A scheduler that runs the script here knows how the script itself ended.
            code: int | None = self.job.exitcode
            signal = self.signal_of_script()
            return code if signal is None else 128 + signal

    def signal_of_script(self) -> int | None:
        """Return the signal that ended the job's script itself, if it is known here."""
        signal: int | None = getattr(self.job, "signal", None)
        return signal

    def said(self) -> str:
        """Return the end of standard error, where launchers say how ranks ended.

        They say it last; a program may have written any amount before. Hydra says it on standard
        output, among what programs print there: these lines of it come first.
        """
        said = {stream: self._end_of(stream) for stream in ("stdout", "stderr")}
        return "\n".join([*OF_HYDRA.findall(said["stdout"]), said["stderr"]])

    def _end_of(self, stream: str) -> str:
        try:
            with self.output_path(stream).open("rb") as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - MOST_SAID_BYTES))
                return file.read().decode(errors="replace")
        except OSError:
            return ""

    def told_by_ranks(self) -> dict[str, Any]:
        """Return what the record says of where ranks were and how they waited, if they told."""
        told = told_in(self.output_path("stdout"))
        found = {"placement": told.placement, "waiting": told.waiting}
        return {name: one.model_dump() for name, one in found.items() if one}

    def disturbance(self) -> disturbance.Disturbance | None:
        """Return the disturbances during the launch, as far as its first node shows them.

        A program of ours says it of all its ranks and their nodes.
        """
        told = told_in(self.output_path("stdout"))
        script = disturbance.stops_noted(Path(self.stagedir) / STOPS)
        return disturbance.disturbance(
            self.noted(BEFORE), self.noted(AFTER), bool(self.job.scheduler.is_local),
            stopped=disturbance.stops_of(script, told.stopped, *self.other_stops()),
            carriers=told.carriers,
        )  # fmt: skip

    def other_stops(self) -> list[int | None]:
        """Return the stops that the launch's other programs counted; None for those that do not."""
        return []
