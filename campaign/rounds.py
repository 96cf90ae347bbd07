"""A campaign's rounds: each cell and implementation once per round, in random order."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from campaign import leftovers, provenance
from campaign.progress import CampaignProgress
from containers import selection
from records import files as folder
from records import processes, reframe_reports, schedule
from records.base import CampaignError
from records.causes import one_line, sentence_in
from records.environment import for_reframe
from records.fold import State
from records.journal import Stopped
from records.kept import read_records
from records.locks import LockHeld, NotShared, exclusive, holder_of, on_machine
from records.manifest import Manifest, RoundDone, read_manifest
from records.once import left_to_others
from records.schedule import Schedule
from reframe_checks.bin.telling import ONCE, OVER, TOLD, is_over
from reframe_checks.mixins.tiers import VALIDATION
from site_configs.site_file import LOCAL

PR_SET_PDEATHSIG = 1
#: The most rounds that one process measures: what ReFrame keeps of each launch adds up.
MOST_ROUNDS = 200
#: So often on end ReFrame may end with launches left and none measured.
MOST_IN_VAIN = 3


class TimeIsOver(CampaignError):
    """What drives the campaign has no more time, and the next goes on; the text is a sentence."""


class SiteIsBusy(CampaignError):
    """Another campaign is using the site; the text is a sentence."""


@contextmanager
def only_campaign(root: Path, site: str, has_machine: bool = False) -> Iterator[None]:
    """Reserve the site for one campaign: two at once would disturb each other.

    Without a scheduler that separates jobs, the whole machine is reserved: checkouts share its
    processors. This is skipped for a caller that already `has_machine` through another site.
    Raises SiteIsBusy if another campaign is measuring, and CampaignError for an unknown site.
    """
    scheduler = selection.site_data(root, site)["scheduler"]
    note = f"process {os.getpid()} of {root} since {folder.utc_now()}"
    lock = selection.campaign_lock(root, site)
    with ExitStack() as held:
        try:
            place = f"site {site}"
            held.enter_context(exclusive(lock, note))
            if selection.runs_here(root, site) and not has_machine:
                place = "this machine"
                refuse_beside_the_box(root, site)
                # The cluster in a box has its own folders, which nobody else looks into.
                if scheduler == LOCAL:
                    held.enter_context(on_machine(note))
        except LockHeld as holder:
            is_build = str(holder).startswith("build")
            who = "a build is under way" if is_build else "another campaign is measuring"
            raise SiteIsBusy(
                f"{who} on {place} ({holder}), and two at once would disturb each other; wait "
                "until it has ended"
            ) from None
        except OSError as error:
            raise CampaignError(
                f"{lock} cannot be opened: {error.strerror}; if this checkout belongs to another "
                "user, use one of your own"
            ) from None
        except NotShared as error:
            print(
                f"campaigns of other checkouts on this machine would not be noticed: {error}",
                file=sys.stderr,
            )
        yield


def refuse_beside_the_box(root: Path, site: str) -> None:
    """Raise LockHeld if this checkout builds, or measures on another site of this machine.

    One of them is the cluster in a box: others exclude each other by the machine's lock.
    """
    locks = [selection.campaign_lock(root, other)
             for other in selection.sites_here(root) if other != site]  # fmt: skip
    if holder := next(filter(None, map(holder_of, locks)), None):
        raise LockHeld(holder)
    if holder := holder_of(root / ".wyeast" / "locks" / "build"):
        raise LockHeld(f"build, process {holder}")


def end_with_parent() -> None:
    """Make the kernel end this process when its parent dies, so that no launch is left behind."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def run_round(
    root: Path, campaign: Path, manifest: Manifest, number: int, progress: CampaignProgress,
    session: ReframeSession | None = None,
) -> RoundDone:  # fmt: skip
    """Measure what is left of a round with ReFrame; return the outcome.

    The given `session` may measure more rounds; without it, one is made for this round alone.

    The round is over when the journal says that each of its launches is done or missing, however
    often ReFrame ends before that. Raises CampaignError if ReFrame gets nowhere, or has measured
    nothing, TimeIsOver if another job is to continue, and OSError if the campaign cannot be
    written.
    """
    session = session or ReframeSession(root, campaign, manifest, progress)
    before, state = 0, schedule.state_of(campaign)
    if state:
        before = state.recorded()
    began, began_utc = time.monotonic(), folder.utc_now()
    code = vain = 0
    # Of a round that is settled only the entry may be missing, and ReFrame has nothing to do.
    is_settled = state is not None and state.is_settled(number)
    if is_settled:
        # A kill may have come between a round's last launch and what is to be measured again.
        with schedule.held(campaign) as held:
            for sentence in held.repeat_blocks(number, manifest.repeat_beyond):
                progress.say(sentence)
            state = held.state
            is_settled = state.is_settled(number)
    others = others_may_measure(state, number, manifest)
    has_been_measured = is_settled and not others
    while not is_settled or others:
        if is_over():
            raise TimeIsOver(f"round {number} continues in the next job")
        recorded, known = (state.recorded(), state.sessions) if state else (0, 0)
        asked = len(state.rounds[number]) if state and is_settled else None
        code = session.measure(number)
        with schedule.held(campaign) as held:
            # A session that waits for another round has ended its launches, and is not a leftover.
            ended = (
                0 if session.is_running else end_leftovers(scheduler_of(root, manifest.site), held)
            )
            if ended:
                progress.say(f"ended {ended} processes that ReFrame had left behind")
            held.settle(f"ReFrame {how_it_ended(code)} during the launch")
            held.find_gone(number)
            state = held.state
            if circuit := state.circuit():
                held.add(Stopped(cause=circuit))
                raise CampaignError(
                    f"{circuit}; ReFrame's messages are in {log_of(campaign)}; put that right "
                    f"and resume: {resume_command(campaign, manifest)}"
                )
            if again := held.repeat_blocks(number, manifest.repeat_beyond):
                for sentence in again:
                    progress.say(sentence)
                is_settled = False
                continue
            is_settled = state.is_settled(number)
            # One that waits for another round has asked them all, as has one that found no more.
            is_alike = asked is not None and len(state.rounds[number]) == asked
            has_asked = session.is_running or (code >= 0 and is_alike)
            others = [] if has_asked else others_may_measure(state, number, manifest)
            if is_settled and not others:
                # ReFrame fails where it finds nothing to do, and here that is as it should be; so
                # is a kill after the last launch.
                code = max(code, 0) if state.sessions > known else 0
                break
            if is_over():
                raise TimeIsOver(f"round {number} continues in the next job")
            vain = vain + 1 if state.recorded() <= recorded else 0
            if state.sessions == known and code >= 0:
                said = sentence_in(reframe_reports.last_messages(log_of(campaign)))
                raise CampaignError(
                    f"round {number} measured nothing{f': {said}' if said else ''}; ReFrame's "
                    f"messages are in {log_of(campaign)}"
                )
            left, of = state.open(number), state.rounds.get(number)
            sentence = f"ReFrame {how_it_ended(code)} " + (
                f"and images that were not asked may measure {others[0]}"
                if is_settled
                else f"with {len(left)} of {len(of)} launches of round {number} left"
                if of is not None
                else f"before it had planned round {number}"
            )
            # The last loss says more than how the process that saw it ended.
            causes = [one.cause for one in state.of(number) if one.cause and one.is_left]
            sentence += f" ({causes[-1]})" if causes else ""
            if vain == MOST_IN_VAIN:
                held.add(Stopped(cause=one_line(sentence)))
                raise CampaignError(
                    f"{sentence}, {vain} times without measuring anything; its messages are "
                    f"in {log_of(campaign)}; put that right and resume: "
                    f"{resume_command(campaign, manifest)}"
                )
        progress.say(f"{sentence}; it is started again")
    assert state is not None
    if not state.recorded():
        causes = [f" ({one.cause})" for one in state.of(number) if one.cause]
        raise CampaignError(
            f"round {number} measured nothing{''.join(causes[:1])}; ReFrame's messages are in "
            f"{log_of(campaign)}; put that right and resume: {resume_command(campaign, manifest)}"
        )
    wall_s = time.monotonic() - began
    if has_been_measured:
        # At least as long as its launches, which is all that is known of it.
        wall_s = sum(one.wall_s or 0.0 for one in read_records(campaign) if one.round == number)
    return RoundDone(
        round=number,
        started_utc=began_utc,
        wall_s=wall_s,
        launches=state.recorded() - before,
        load_average=os.getloadavg()[0],
        # Including what failed before a RESUME, which this ReFrame did not measure.
        reframe_exit_code=code or int(progress.has_failures(number) or state.has_failures(number)),
    )


def measures_once(manifest: Manifest) -> bool:
    """Return whether a campaign has what is compared with nothing measured but once.

    Who names checks and a number of rounds wants them so often.
    """
    return manifest.design is not None or not manifest.checks


def others_may_measure(state: State | None, number: int, manifest: Manifest) -> list[str]:
    """Return the cells of a round that its images could not measure, and others were not asked to.

    ReFrame asks them at the round's end, unless it was killed, or has ended for a launch.
    """
    if state is None or not measures_once(manifest):
        return []
    return left_to_others(state, number, manifest.images)


def end_leftovers(scheduler: str, held: Schedule, goes_on: bool = False) -> int:
    """End what a dead ReFrame left here and in the queue; return how many processes ended here.

    If somebody `goes_on`, a job of a scheduler that cannot be queried is only reported, and starts
    nothing if it has not begun yet; otherwise that raises NotAsked. Raises CampaignError if
    something does not end, and OSError if the campaign cannot be written.
    """
    jobs = held.jobs_in_flight()
    if scheduler == LOCAL:
        return leftovers.end_all(held.campaign, processes.known(list(jobs.values())))
    try:
        leftovers.end_queued(held.campaign, scheduler, jobs, held.give_up_unanswered())
    except leftovers.NotAsked as left:
        if not goes_on:
            raise
        held.give_up_in_flight()
        print(
            f"job {left.jobs} of {held.campaign.name}, whose ReFrame has died, may still run and "
            f"disturb what is measured now: the scheduler {scheduler} is not queried here; if it "
            "has begun, stop this, end the job and resume; if not, it will start nothing",
            file=sys.stderr,
        )
    return leftovers.end_all(held.campaign)


def end_leftovers_of_the_dead(root: Path, site: str) -> None:
    """End what killed campaigns of this checkout left behind, here or on a site.

    The caller holds the site, and campaigns that are measuring are not touched. Raises
    CampaignError if something does not end, and OSError if a campaign cannot be written.
    """
    runs = root / "runs"
    at_work = {Path(one.works_for) for one in processes.processes().values() if one.works_for}
    for campaign in sorted(runs.iterdir()) if runs.is_dir() else ():
        try:
            manifest = read_manifest(campaign)
        except CampaignError:
            continue
        is_killed = manifest.site == site and not manifest.finished_utc
        if not (is_killed or campaign in at_work) or not folder.belongs_to_us(campaign):
            continue
        with ExitStack() as stack:
            try:
                if manifest.site != site:
                    # Even if both are here: the lock of the machine may have been refused.
                    has_machine = are_here(root, site, manifest.site)
                    stack.enter_context(only_campaign(root, manifest.site, has_machine))
            except CampaignError:
                # It is being measured, or its site is no longer there.
                continue
            if ended := leftovers.end_all(campaign) + end_in_flight(root, campaign, manifest.site):
                print(f"ended {ended} process(es) that runs/{campaign.name} had left running")


def are_here(root: Path, *sites: str) -> bool:
    """Return whether the launches of all these sites run on this machine."""
    return all(selection.runs_here(root, site) for site in sites)


def end_in_flight(root: Path, campaign: Path, site: str) -> int:
    """End what a killed campaign's journal has in flight; return how many processes.

    Its journal is not changed: resuming the campaign settles it.
    """
    try:
        state = schedule.state_of(campaign)
        if not state or not any(one.in_flight or one.unanswered for one in state.of(None)):
            return 0
        held = ExitStack()
        book = held.enter_context(schedule.held(campaign))
    except CampaignError:
        # It is unknown, or somebody measures it by hand, which no lock prevents.
        return 0
    with held:
        return end_leftovers(scheduler_of(root, site), book, goes_on=True)


def scheduler_of(root: Path, site: str) -> str:
    """Return ReFrame's name of a site's scheduler."""
    return str(selection.site_data(root, site)["scheduler"])


def resume_command(campaign: Path, manifest: Manifest) -> str:
    """Return the command that resumes a campaign, or the night that it belongs to."""
    night = manifest.night
    if night is None:
        return f"make run RESUME={campaign.name}"
    return f"make nightly RESUME={night.again_of or campaign.name}"


def how_it_ended(code: int) -> str:
    """Return how a process ended, to be printed after its name."""
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"


def log_of(campaign: Path) -> Path:
    """Return the log of ReFrame's messages: all rounds' in one file, one after the other."""
    return campaign / reframe_reports.FOLDER / "rounds.log"


class ReframeSession:
    """A ReFrame process that measures one round, or all rounds that it is told of.

    One that is told of rounds loads the checks once, and measures a cell's implementations one
    after the other. Between two rounds it waits, and the journal is the campaign's.
    """

    def __init__(
        self, root: Path, campaign: Path, manifest: Manifest, progress: CampaignProgress,
        is_told: bool = False,
    ) -> None:  # fmt: skip
        self.root, self.campaign, self.manifest = root, campaign, manifest
        self.progress = progress
        self.is_told = is_told
        self.process: subprocess.Popen[str] | None = None
        #: How many rounds the process has measured.
        self.rounds = 0
        self.tell: int | None = None
        self.log = log_of(campaign)

    def __enter__(self) -> ReframeSession:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind and self.process:
            self.process.terminate()
        self.end()

    @property
    def is_running(self) -> bool:
        """Return whether the process waits for another round."""
        return self.process is not None

    def measure(self, number: int) -> int:
        """Measure what is left of a round; return the exit code, negative for a signal.

        It is 0 where the process waits for another round.
        """
        self.log.parent.mkdir(exist_ok=True)
        if self.rounds >= MOST_ROUNDS:
            self.end()
        if self.process is None:
            self.start(number)
        else:
            assert self.tell is not None
            with suppress(BrokenPipeError):
                os.write(self.tell, f"{number}\n".encode())
        self.rounds += 1
        assert self.process is not None and self.process.stdout is not None
        over = f"{OVER.format(number)}\n" if self.is_told else None
        with self.log.open("a") as messages:
            messages.write(f"\n{reframe_reports.BEGINNING}{number}, {folder.utc_now()}\n")
            if self.progress.follow(number, self.process.stdout, messages, over):
                return 0
        return self.end()

    def end(self) -> int:
        """Make the process end; return its exit code, 0 if there is no process."""
        if self.tell is not None:
            os.close(self.tell)
            self.tell = None
        if self.process is None:
            return 0
        process, self.process, self.rounds = self.process, None, 0
        assert process.stdout is not None
        with self.log.open("a") as messages:
            messages.writelines(process.stdout)
        code = process.wait()
        reframe_reports.keep_last(self.campaign)
        return code

    def start(self, number: int) -> None:
        """Start ReFrame with a round; raise CampaignError where the campaign's inputs changed."""
        manifest = self.manifest
        provenance.refuse_changes(self.root, manifest)
        # Of one that ended after who drove it.
        reframe_reports.keep_last(self.campaign)
        command = [
            str(self.root / "reframe_checks" / "bin" / "reframe"),
            "-c", str(self.root / "reframe_checks"),
            "-r",
            "--exec-policy=serial",
            "--exec-order=random",
            f"--report-file={self.log.with_name(reframe_reports.LAST)}",
        ]  # fmt: skip
        environment = {
            **for_reframe(
                os.environ,
                RFM_CONFIG_PATH=str(self.root / "site_configs"),
                RFM_SYSTEM=manifest.site,
                RFM_COLORIZE="no",
            ),
            "WYEAST_TIER": manifest.tier,
            "WYEAST_IMAGES": ",".join(manifest.images),
            "WYEAST_CAMPAIGN": str(self.campaign),
            processes.MARK: str(self.campaign),
            "WYEAST_ROUND": str(number),
            "WYEAST_ORDER_SEED": str(manifest.order_seed + (0 if self.is_told else number)),
        }
        # What proves the programs and compares no implementations is run when asked for by name.
        command += ["-n", manifest.checks] if manifest.checks else ["-T", VALIDATION]
        if measures_once(manifest):
            environment[ONCE] = "1"
        if manifest.time_limit:
            command += ["-S", f"time_limit={manifest.time_limit}"]
        if manifest.raw_by_rank:
            command += ["-S", "raw_by_rank=yes"]
        told: tuple[int, ...] = ()
        if self.is_told:
            read, self.tell = os.pipe()
            told = (read,)
            environment[TOLD] = str(read)
        try:
            self.process = subprocess.Popen(
                command,
                cwd=self.root,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                preexec_fn=end_with_parent,
                pass_fds=told,
            )
        finally:
            for descriptor in told:
                os.close(descriptor)
