"""Every launch is judged once and, in a campaign, kept whole whatever the judgement."""

import os
import re
from pathlib import Path
from typing import Any

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import run_after, run_before, sanity_function
from reframe.core.exceptions import SanityError

from analysis.record_types import RecordError
from campaign import folder, node_facts

CAMPAIGN = os.environ.get("WYEAST_CAMPAIGN")
ROUND = int(os.environ.get("WYEAST_ROUND", "1"))
NODE = "launch_node"
STARTED = "launch_started"
ENDED = "launch_ended"
#: Of what the first line of /proc/stat says, in the order of proc(5): user, nice, system, idle,
#: iowait, irq, softirq, steal. Guests' time is part of user's.
PROCESSORS = {"busy": (0, 1, 2, 5, 6), "idle": (3, 4), "stolen": (7,)}
EXIT_CODE = "launch_exit_code"
ASKED = "launch_asked.json"


class Suspect(Exception):
    """The launch gave a number that cannot be; the text is a sentence with the numbers."""


def complaint_in(path: Path, *programs: str) -> str:
    """Return the last sentence of one of the programs in a file, else the last line, if any."""
    if not path.is_file():
        return ""
    lines = [line for line in path.read_text(errors="replace").splitlines() if line.strip()]
    # Launchers put a banner of their own after what the program said, and what they end complains.
    own = [
        line
        for line in lines
        if line.startswith(tuple(f"{name}: " for name in programs)) and ": left out: " not in line
    ]
    others = [line for line in lines if not line.startswith(("srun: ", "slurmstepd"))]
    return (own or others or lines or [""])[-1].strip()


def end_by_scheduler(path: Path) -> str | None:
    """Return why Slurm says in a job's standard error that it ended the job, if it did."""
    if not path.is_file():
        return None
    reasons = re.findall(r"CANCELLED AT \S+ DUE TO (.+?) \*\*\*", path.read_text(errors="replace"))
    return reasons[-1].lower() if reasons else None


class Recorded(rfm.RegressionTestPlugin):
    """A check whose launch is judged by `examine` and written to the campaign.

    The check defines `cell_parameters()` and `examine()`; the latter returns nothing for a sound
    launch, raises `Suspect` for an impossible number and `SanityError` or `RecordError` for a
    failed one.
    """

    #: Launches of this process so far: the realised order in the round.
    position = [0]

    @run_after("init")
    def leave_out_what_is_done(self) -> None:
        """When a campaign goes on, skip the launches that it already has."""
        # A skipped preflight would skip all that waits for it, so it is run again.
        if self.needs_preflight and self.is_kept():
            self.skip("this launch is already in the campaign")

    @run_before("run")
    def time_the_launch(self) -> None:
        """Note the launch's own beginning and end, and keep the program's exit code."""
        now = "{ date +%s.%N; head -n 1 /proc/stat; }"
        # Before the launch's time begins.
        self.prerun_cmds += [f"{node_facts.COMMAND} >{NODE}", f"{now} >{STARTED}"]
        self.postrun_cmds += [
            "launch_exit_code=$?",
            f"{now} >{ENDED}",
            "exit $launch_exit_code",
        ]

    @run_after("setup", always_last=True)
    def write_what_is_wanted(self) -> None:
        """Leave word of the launch in its stage folder, should it never get to be started."""
        folder.write_json(Path(self.stagedir) / ASKED, self.asked())

    @run_before("run", always_last=True)
    def write_what_is_asked(self) -> None:
        """Leave word of the launch in its stage folder, should it never get to be judged."""
        # However the script ends: not every scheduler can be asked for its exit code.
        self.prerun_cmds[:0] = [f"trap 'echo $? >{EXIT_CODE}' EXIT", "trap 'exit 143' TERM"]
        folder.write_json(Path(self.stagedir) / ASKED, self.asked())

    def cell(self) -> str:
        """Return the cell: the experiment with all parameters fixed but the implementation."""
        named = [f"{name}={value}" for name, value in self.cell_parameters().items()]
        return " ".join([type(self).__name__, *named])

    def launch_name(self) -> str:
        """Return the name of the launch in the campaign."""
        return folder.launch_name(ROUND, self.cell(), self.implementation())

    def is_kept(self) -> bool:
        """Return whether the campaign has this launch already."""
        return bool(CAMPAIGN) and self.launch_name() in folder.finished_launches(Path(CAMPAIGN))

    @sanity_function
    def launch_is_sound(self) -> object:
        """Judge the launch, keep it, and fail the check with a sentence unless it is sound."""
        outcome, sentence = "sound", None
        try:
            self.judge()
        except Suspect as suspicion:
            outcome, sentence = "suspect", f"suspect: {suspicion}"
        except (RecordError, SanityError) as error:
            outcome, sentence = "failed", str(error)
        if CAMPAIGN and not self.is_kept():
            try:
                self.keep(Path(CAMPAIGN), outcome, sentence)
            except folder.CampaignError as error:
                sentence = str(error)
        if sentence:
            raise SanityError(sentence)
        return sn.assert_true(True)

    def judge(self) -> None:
        """Raise unless the launch ended well and its output is what was asked for."""
        code, end = self.exit_code(), end_by_scheduler(self.output_path("stderr"))
        if code == 0 and not end:
            self.examine()
            return
        launcher = self.image.labels.get("org.wyeast.mpiexec", self.program)
        complaint = (
            complaint_in(self.output_path("stderr"), self.program, launcher)
            or "it said nothing on stderr"
        )
        if end or code is None:
            raise SanityError(f"the launch was ended by the scheduler: {end or complaint}")
        self.explain_failure()
        raise SanityError(f"{self.program} ended with exit code {code}: {complaint}")

    def explain_failure(self) -> None:
        """Raise what the output of a program that failed says better than its standard error."""

    def exit_code(self) -> int | None:
        """Return the launch's exit code, or None where the job ended before the launch did."""
        try:
            return int((Path(self.stagedir) / EXIT_CODE).read_text())
        except (OSError, ValueError):
            # A scheduler that runs the script here knows how the script itself ended.
            return self.job.exitcode

    def output_path(self, stream: str) -> Path:
        """Return where the launch's stdout or stderr is."""
        return Path(self.stagedir) / str(sn.evaluate(getattr(self, stream)))

    def noted(self, name: str) -> list[str]:
        """Return the lines that the launch noted in a file: the time, the processors' time."""
        try:
            return (Path(self.stagedir) / name).read_text().splitlines()
        except OSError:
            return []

    def node(self) -> dict[str, Any]:
        """Return the facts of the launch's first node; None for what it did not tell."""
        return node_facts.facts("\n".join(self.noted(NODE)))

    def launch_seconds(self) -> tuple[float, float] | None:
        """Return when the launch began and ended, in seconds since the epoch, if it did both."""
        try:
            return float(self.noted(STARTED)[0]), float(self.noted(ENDED)[0])
        except (IndexError, ValueError):
            return None

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
            return {
                name: sum(after[field] - before[field] for field in fields)
                / os.sysconf("SC_CLK_TCK")
                for name, fields in PROCESSORS.items()
            }
        except (IndexError, ValueError):
            return {}

    def other_times(self) -> dict[str, float]:
        """Return what the check timed outside the program, in seconds, by name."""
        return {}

    def other_files(self) -> dict[str, Path]:
        """Return what else the launch leaves behind and the campaign keeps, by name."""
        return {}

    def asked(self) -> dict[str, Any]:
        """Return what is known of the launch before it starts."""
        return {
            "launch": self.launch_name(),
            "round": ROUND,
            "experiment": type(self).__name__,
            "parameters": self.cell_parameters(),
            "cell": self.cell(),
            "implementation": self.implementation(),
            "image_sha256": self.image.sha256,
            "image_signature": self.image.signature,
            "program": self.program,
            "output_format": self.output_format,
            "ranks": self.num_tasks,
            "nodes": self.nodes,
            "oversubscribed": self.oversubscribed(),
            "site": self.current_system.name,
            "partition": self.current_partition.fullname,
            "tier": self.tier,
            # Nothing yet where the launch is only wanted.
            "command": self.container_platform.command if self.container_platform else "",
            "reframe": {"name": self.display_name, "hash": self.hashcode},
            "started_utc": folder.utc_now(),
        }

    def keep(self, campaign: Path, outcome: str, sentence: str | None) -> None:
        """Write the launch to the campaign folder, and the facts of a node that is new to it."""
        self.position[0] += 1
        span = self.launch_seconds()
        record = self.asked() | {
            "position": self.position[0],
            "ended_utc": folder.utc_of(span[1]) if span else folder.utc_now(),
            "wall_s": span[1] - span[0] if span else None,
            "times_s": self.other_times(),
            "processors_s": self.processor_seconds(),
            "node": node_facts.keep(campaign, "\n".join(self.noted(NODE))),
            "exit_code": self.exit_code(),
            "outcome": outcome,
            "sentence": sentence,
        }
        if span:
            record["started_utc"] = folder.utc_of(span[0])
        stage = Path(self.stagedir)
        files = {
            "stdout": self.output_path("stdout"),
            "stderr": self.output_path("stderr"),
            "job.sh": stage / self.job.script_filename,
            **self.other_files(),
        }
        folder.write_launch(campaign, record, files)
