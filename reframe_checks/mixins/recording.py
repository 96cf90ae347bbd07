"""Every launch is judged once and, in a campaign, kept whole, whatever the judgement."""

import math
import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType

import reframe.utility.sanity as sn
from reframe.core.builtins import run_after, run_before, sanity_function
from reframe.core.exceptions import SanityError

from containers.apptainer import state_folder
from records import disturbance, instants, launch, nodes
from records import files as folder
from records.base import RecordError
from records.budget import BEYOND, is_beyond
from records.causes import (
    BY_SOMEBODY,
    known_in,
    of_scheduler,
    of_signal,
    one_line,
    sentence_in,
)
from records.image_file import COMMAND as FILE_OF
from records.launch import AskedLaunch
from records.left_behind import ends_left, open_left
from records.schedule import Schedule
from reframe_checks.mixins.asking import NoAnswer, ask
from reframe_checks.mixins.guest import collect_outputs
from reframe_checks.mixins.job_script import (
    OWN_FILES,
    OWN_MEMORY,
    OWN_TMP,
    end_what_is_left,
    found_on_nodes,
    own_folders,
    quoted,
)
from reframe_checks.mixins.noted import (
    AFTER,
    BEFORE,
    ENDED,
    EXIT_CODE,
    IMAGE_AFTER,
    IMAGE_BEFORE,
    LEFT_RUNNING,
    MOST_SAID_BYTES,
    NODE,
    STARTED,
    STOPS,
    NotingCheck,
)
from reframe_checks.mixins.stage_disk import refuse_full_disk

CAMPAIGN = os.environ.get("WYEAST_CAMPAIGN")
#: The schedule that says which launches of the round are left while it is measured: one or none.
SCHEDULES: list[Schedule] = []
#: The round that is being measured; a session of several rounds sets it for each.
current_round = int(os.environ.get("WYEAST_ROUND", "1"))
#: How many processes the last job left running here or on its nodes, which were ended.
left_running = 0
#: Files that no job leaves empty, whatever its node has; the last one is written last.
NOTES = (STARTED, ENDED, EXIT_CODE)


class Suspect(Exception):
    """The launch gave an impossible number; the text is a sentence with the numbers."""


def complaint_in(path: Path, *programs: str) -> str:
    """Return the last sentence of one of the programs in a file, else the file's, if any.

    Of a long file, of its beginning and its end. Raises RecordError for what is not a file.
    """
    try:
        lines = ends_left(path, MOST_SAID_BYTES).splitlines()
    except FileNotFoundError:
        return ""
    # Launchers print a banner after the program's message, and the processes they end complain.
    own = [
        line
        for line in lines
        if line.startswith(tuple(f"{name}: " for name in programs)) and ": left out: " not in line
    ]
    if own:
        return one_line(own[-1])
    others = [line for line in lines if not line.startswith(("srun: ", "slurmstepd"))]
    return sentence_in("\n".join(others)) or sentence_in("\n".join(lines))


class RecordedCheck(NotingCheck):
    """A check whose launch is judged by `examine` and kept in the campaign.

    The check defines `cell_parameters()` and `examine()`; the latter returns nothing for a sound
    launch, raises `Suspect` for an impossible number and `SanityError` or `RecordError` for a
    failed one.
    """

    #: Whether the launch was judged, and nothing is wrong with it.
    is_sound = False
    #: The commands that make the folder of OWN_FILES, of a check that needs one.
    lends_for_files: Sequence[str] = ()
    #: The request for the launch, once it is known. Nothing of it is read back from its folder.
    wanted: AskedLaunch | None = None

    @run_before("run")
    def wait_as_long_as_the_site_says(self) -> None:
        """Have a job that waits too long in the queue cancelled, if the site says how long."""
        if longest_s := self.current_partition.extras["site"].get("longest_wait_s"):
            self.max_pending_time = f"{math.ceil(longest_s)}s"

    @run_before("run")
    def time_the_launch(self) -> None:
        """Note the launch's own beginning and end, and keep the program's exit code."""
        file_of_image = f"{{ {FILE_OF} {quoted(self.image.path)}; }}"
        # Before the launch's time begins, and after it ended.
        self.prerun_cmds += [
            f"{nodes.COMMAND} >{NODE}",
            f"{file_of_image} >{IMAGE_BEFORE} 2>/dev/null",
            f"trap 'echo >>{STOPS}' CONT",
            f"{disturbance.COMMAND} >{BEFORE}",
            f"{instants.COMMAND} >{STARTED}",
        ]
        self.postrun_cmds += [
            "launch_exit_code=$?",
            f"{instants.COMMAND} >{ENDED}",
            f"{disturbance.COMMAND} >{AFTER}",
            f"{file_of_image} >{IMAGE_AFTER} 2>/dev/null",
            "exit $launch_exit_code",
        ]

    @run_after("setup")
    def leave_out_what_the_budget_has_no_room_for(self) -> None:
        """Measure of a first round what is most important, as long as the budget has room."""
        name = self.launch_name()
        for schedule in self.schedules():
            self.skip_if(is_beyond(schedule.state, schedule.journal.entries, name), BEYOND)

    @run_after("setup", always_last=True)
    def note_what_is_wanted(self) -> None:
        """Note the request for the launch, in case it is never started."""
        self.wanted = self.asked()

    @run_before("run", always_last=True)
    def note_what_is_asked(self) -> None:
        """Note the request for the launch, in case it is never judged."""
        given_up = list(self.given_up())
        end_left = self.end_what_is_left()
        then = "end_left; " if end_left else ""
        own = f'"${OWN_TMP}" "${OWN_MEMORY}" "${OWN_FILES}"'
        self.prerun_cmds[:0] = [
            *given_up,
            *found_on_nodes(state_folder() / "bin"),
            f"{OWN_TMP}= {OWN_MEMORY}= {OWN_FILES}=",
            *end_left,
            # However the script ends: not every scheduler can be asked for its exit code.
            f"trap 'echo $? >{EXIT_CODE}; {then}"
            # A program may have closed what it made there.
            f"{{ rm -rf {own} || {{ chmod -R u+rwX {own}; rm -rf {own}; }}; }} 2>/dev/null' EXIT",
            "trap 'exit 143' TERM",
            *(own_folders() if getattr(self.container_platform, "has_own_folders", False) else ()),
            *self.lends_for_files,
        ]
        self.wanted = self.asked()
        self.is_sound = False

    def given_up(self) -> Iterator[str]:
        """Intend the launch and name its job; yield what ends a job that was given up meanwhile."""
        for schedule in self.schedules():
            name = self.launch_name()
            schedule.intend(name)
            attempt = schedule.state.launches[name].attempts
            # This identifies the job, and tells a late one that it was given up.
            self.job._name = schedule.job_name(name, attempt)
            mark = shlex.quote(str(schedule.mark_of(name, attempt).absolute()))
            yield f"[ ! -e {mark} ] || exit 1"

    def end_what_is_left(self) -> list[str]:
        """Return the commands by which a job knows what is left of its launch, where it has to.

        A container that has all ranks has process ids of its own: all in it ends with it. On this
        machine whoever started the job looks after it (records/processes.py).
        """
        starts = self.current_partition.extras["site"]["launch"]
        in_one = starts == "mpiexec" and not self.image.runs
        if self.job.scheduler.is_local or in_one:
            return []
        return end_what_is_left(self.job.name, starts == "srun", self.nodes, LEFT_RUNNING)

    def cell(self) -> str:
        """Return the cell: the experiment with all parameters fixed but the implementation."""
        named = [f"{name}={value}" for name, value in self.cell_parameters().items()]
        return " ".join([type(self).__name__, *named])

    def launch_name(self) -> str:
        """Return the name of the launch in the campaign."""
        return launch.launch_name(current_round, self.cell(), self.implementation())

    def schedules(self) -> list[Schedule]:
        """Return the schedule that this launch is still part of; nothing if there is none.

        A proof of an image that is done again, since others wait for it, is no launch anew.
        """
        name = self.launch_name()
        return [one for one in SCHEDULES
                if name in one.state.launches and one.state.launches[name].is_open]  # fmt: skip

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
        for schedule in self.schedules():
            # A disk that others filled is not the launch's fault; what is missing may be anything.
            said = self.said() if sentence else ""
            refuse_full_disk(Path(self.stagedir), self.work_places(), NOTES, said)
            if sentence:
                self.keep(schedule, outcome, sentence)
        if sentence:
            raise SanityError(one_line(sentence))
        self.is_sound = True
        return sn.assert_true(True)

    @run_before("performance", always_last=True)
    def keep_what_is_sound(self) -> None:
        """Keep a launch that is sound, with what its check reports."""
        if not self.is_sound:
            return
        more: dict[str, Path | bytes] = {}
        try:
            more = self.reports()
        finally:
            for schedule in self.schedules():
                self.keep(schedule, "sound", None, more)

    def reports(self) -> dict[str, Path | bytes]:
        """Return what the check reports on a sound launch, as files that the campaign keeps."""
        return {}

    def work_places(self) -> tuple[str, ...]:
        """Return what the launch's programs call the folder that they work in."""
        platform = self.container_platform
        return (platform.workdir,) if platform and platform.workdir else ()

    def judge(self) -> None:
        """Raise unless the launch succeeded and its output is what was requested."""
        for stream in ("stdout", "stderr"):
            with suppress(FileNotFoundError):
                open_left(self.output_path(stream)).close()
        code, said = self.exit_code(), self.said()
        end = of_scheduler(said)
        collected = self.collected()
        if code == 0 and not end:
            if collected:
                raise collected
            self.refuse_another_image()
            self.refuse_replaced_file()
            self.refuse_set_clock()
            self.examine()
            return
        launcher = self.image.labels.mpiexec or self.program
        complaint = (
            complaint_in(self.output_path("stderr"), self.program, launcher)
            or "it printed nothing on stderr"
        )
        if end == BY_SOMEBODY:
            end = f"{end}{self.who_cancelled()}"
        if end:
            raise SanityError(f"the launch was ended by the scheduler: {end}")
        if signal := of_signal(code, said):
            who = "the job's script" if self.signal_of_script() else self.program
            raise SanityError(f"{who} ended by {signal}: {complaint}")
        if code is None:
            raise SanityError(f"the launch was ended by the scheduler: {complaint}")
        self.explain_failure()
        # What a program said of itself may come of it; not of what is said in sound launches, too.
        is_own = complaint.startswith(f"{self.program}: ")
        known = known_in(said)
        if known and known.sentence not in complaint and not (is_own and known.may_be_harmless):
            complaint = f"{complaint}; {known.sentence}"
        raise SanityError(f"{self.program} ended with exit code {code}: {complaint}")

    def outputs(self) -> list[str]:
        """Return the names of files that programs leave in their work folder."""
        return []

    def collected(self) -> RecordError | None:
        """Collect what programs left in their work folder; return what is wrong with it."""
        try:
            collect_outputs(Path(self.stagedir), self.outputs())
        except RecordError as error:
            return error
        return None

    def who_cancelled(self) -> str:
        """Return who cancelled the job according to Slurm's accounting, if it says so."""
        if self.job.scheduler.registered_name != "slurm":
            return ""
        command = ["sacct", "--noheader", "--allocations", "--parsable2", "--format=State"]
        try:
            state = ask([*command, f"--jobs={self.job.jobid}"])
        except NoAnswer:
            return ""
        found = re.search(r"CANCELLED by (\d+)", state)
        return f": user {found[1]}" if found else ""

    def refuse_another_image(self) -> None:
        """Raise if the launch may have run another image than the one that was admitted."""

    def refuse_replaced_file(self) -> None:
        """Raise if another file was in the image's place after the launch than before it."""
        before, after = self.image_files()
        if before and after and before.is_another(after):
            raise SanityError(
                "it is uncertain which image ran: its file was replaced or written during the "
                "launch; start a new campaign"
            )

    def refuse_set_clock(self) -> None:
        """Raise Suspect if the node's clock was set: a library may take its times from it."""
        began, ended = self.instants()
        step = began.step_until(ended) if began and ended else None
        if step is not None:
            raise Suspect(
                f"the clock of the launch's first node was set {'back' if step < 0 else 'forward'} "
                f"by {abs(step):.2f} s while it ran, and its times may be off by as much"
            )

    def explain_failure(self) -> None:
        """Raise if the output of a failed program explains more than its standard error does."""

    def apptainer(self) -> str | None:
        """Return the version of the Apptainer that started the launch, if it was checked."""
        return None

    def other_times(self) -> dict[str, float]:
        """Return what the check timed outside the program, in seconds, by name."""
        return {}

    def other_files(self) -> dict[str, Path]:
        """Return what else the launch leaves behind and the campaign keeps, by name."""
        return {}

    def asked(self) -> AskedLaunch:
        """Return what is known about the launch before it starts."""
        return launch.asked_launch(
            launch=self.launch_name(),
            round=current_round,
            experiment=type(self).__name__,
            parameters=self.cell_parameters(),
            cell=self.cell(),
            implementation=self.implementation(),
            image_sha256=self.image.sha256,
            image_signature=self.image.signature,
            **({"runs": self.image.runs} if self.image.runs else {}),
            program=self.program,
            output_format=self.output_format,
            ranks=self.num_tasks,
            nodes=self.nodes,
            oversubscribed=self.oversubscribed(),
            site=self.current_system.name,
            partition=self.current_partition.fullname,
            tier=self.tier,
            # Nothing yet if the launch is only planned.
            command=(self.container_platform.command if self.container_platform else "") or "",
            reframe={"name": self.display_name, "hash": self.hashcode},
            started_utc=folder.utc_now(),
        )

    def keep(
        self, schedule: Schedule, outcome: str, sentence: str | None,
        more: Mapping[str, Path | bytes] = MappingProxyType({}),
    ) -> None:  # fmt: skip
        """Put the launch into the campaign, and the facts of a node that is new to it.

        Raises CampaignError if it cannot be kept, and OSError.
        """
        campaign = schedule.campaign
        span = self.launch_seconds()
        before, after = self.image_files()
        record = launch.finished_launch(
            self.asked(),
            **({"started_utc": folder.utc_of(span[0])} if span else {}),
            position=schedule.state.next_position(current_round),
            ended_utc=folder.utc_of(span[1]) if span else folder.utc_now(),
            wall_s=span[1] - span[0] if span else None,
            times_s=self.other_times(),
            processors_s=self.processor_seconds(),
            node=nodes.keep(campaign, "\n".join(self.noted(NODE))),
            **self.noted_variables(),
            apptainer=self.apptainer(),
            left_running=left_running,
            disturbance=found.model_dump() if (found := self.disturbance()) else None,
            image_file=after.model_dump() if before and after else None,
            **self.told_by_ranks(),
            exit_code=self.exit_code(),
            outcome=outcome,
            sentence=sentence,
        )
        stage = Path(self.stagedir)
        files: dict[str, Path | bytes] = {
            "stdout": self.output_path("stdout"),
            "stderr": self.output_path("stderr"),
            "job.sh": stage / self.job.script_filename,
            **self.other_files(),
            **more,
        }
        schedule.keep(record, files)
