"""All tests, lane by lane: what may run side by side does, and what measures runs alone.

`python -m tests.lanes [--long] [--only LANE] [TEST ...]`; `make test` calls it.
"""

import argparse
import asyncio
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

from tests import processes

PROJECT = Path(__file__).resolve().parents[1]
#: How many of the slowest tests are listed, and which are too quick to be.
MOST_LISTED, AT_LEAST_S = 40, 1.0
#: What a test's record calls its seconds of the processors (tests/conftest.py).
BUSY = "processors_s"
#: Outcomes of tests with which nothing lands.
BAD = ("failed", "errors")
#: What pytest ends with where it was not asked for any test of a lane.
NOTHING = 5
#: Names, to the lanes, a folder in which what one has built from sources is there for the next.
BUILDS = "WYEAST_TESTS_BUILDS"
#: Has tests start each ReFrame by its own program, and fork none (tests/reframe_checks/forked.py).
REALLY = "WYEAST_TESTS_START_REALLY"
#: Stands in a build's folder while that is as its last command has left it, which ended well.
SOUND = "sound"
#: Where these change, as with another compiler, tests build all anew: how they do, archives, and a
#: library that is made without an object. Else each object is taken over where compiling it again
#: would be the same (`what_is_left` in tests/benchmarks/conftest.py).
BUILT_OF = ("benchmarks/lam", "tests/benchmarks/conftest.py", "containers/sources.lock")


def cores() -> int:
    """Return on how many processors the tests may run."""
    return len(os.sched_getaffinity(0))


@dataclass(frozen=True)
class Lane:
    """Tests that run together."""

    name: str
    marks: str
    #: How pytest shares them out to the cores; nothing where they have all cores to themselves.
    shared_out: str
    #: How far it stands back (nice(1)) behind a lane beside it. Each has its own session, since
    #: Linux shares processors out among sessions, and then only among the processes of each.
    niceness: int = 0
    #: How many of its tests run beyond one for each core: for those that wait.
    beyond: int = 0
    #: Markers of which its tests have one; nothing where that is no condition.
    marked: tuple[str, ...] = ()

    def files(self) -> list[str]:
        """Return the files that may have tests of it: all others take seconds to be imported."""
        if not self.marked:
            return []
        words = tuple(f"mark.{name}" for name in self.marked)
        return [
            str(path.relative_to(PROJECT))
            for path in sorted((PROJECT / "tests").rglob("test_*.py"))
            if any(word in path.read_text() for word in words)
        ]

    def command(self, options: argparse.Namespace, record: Path, folder: Path) -> list[str]:
        """Return what runs its tests in a folder and writes their outcomes into a file."""
        marks = self.marks if options.long else f"({self.marks}) and not long"
        python = [sys.executable, "-m", *(["coverage", "run", "-m"] if options.long else [])]
        shared_out = ["-n", str(cores() + self.beyond), f"--dist={self.shared_out}"]
        one_library = [] if options.long or options.tests else ["-p", "tests.one_library"]
        return [
            "nice", f"-n{self.niceness}", sys.executable, "-m", "tests.processes",
            *python, "pytest", "-q", f"-m={marks}",
            f"--junitxml={record}", f"--basetemp={folder / self.name}",
            *one_library, *(shared_out if self.shared_out else []),
            *(options.tests or self.files()),
        ]  # fmt: skip


#: What runs one by one leaves much of two processors to others, and waits for things with limits.
#: Fast tests wait for processes that they start, and for a disk; ranks take what they get.
FAST = Lane("fast", "not real and not browser and not cluster", "load", niceness=10, beyond=2)
REAL = Lane(
    "real", "(real or browser) and not (cluster or serial or measures)", "loadgroup", niceness=10,
    beyond=1, marked=("real", "browser"),
)  # fmt: skip
CLUSTER = Lane("cluster", "cluster and not measures", "", marked=("cluster",))
SERIAL = Lane("serial", "serial and not (cluster or measures)", "", marked=("serial",))
MEASURES = Lane("measures", "measures", "", marked=("measures",))
#: One stage after the other; in each, rows of lanes beside each other.
STAGES = (((FAST, REAL), (CLUSTER, SERIAL)), ((MEASURES,),))
LANES = tuple(lane for stage in STAGES for row in stage for lane in row)


@dataclass(frozen=True)
class Done:
    """A test that has run, or a file of which none could."""

    name: str
    lane: str
    outcome: str
    seconds: float
    #: Of the processors, with what it has started and waited for.
    busy: float = 0.0


def outcomes(lane: str, record: Path, code: int) -> Iterator[Done]:
    """Return the tests of a lane, of the file that pytest has written and of its exit code.

    A lane that ended badly without a bad test, as one that was killed, is an error by itself.
    """
    is_told = code in (0, NOTHING)
    for case in ElementTree.parse(record).iter("testcase") if record.exists() else ():
        kinds = [kind for kind in ("error", "failure", "skipped") if case.find(kind) is not None]
        words = {"error": "errors", "failure": "failed", "skipped": "skipped"}
        outcome = words[kinds[0]] if kinds else "passed"
        name = f"{case.get('classname') or ''}::{case.get('name')}".removeprefix("::")
        is_told = is_told or outcome in BAD
        told = {one.get("name"): one.get("value") for one in case.iter("property")}
        busy = float(told.get(BUSY) or 0)
        yield Done(name, lane, outcome, float(case.get("time") or 0), busy)
    if not is_told:
        yield Done(f"the lane ended with exit code {code}", lane, "errors", 0)


@dataclass(frozen=True)
class Taken:
    """What a lane took, in seconds: on the clock, and of the processors, with all it started."""

    lasted: float
    busy: float


def stand_back(session: int, niceness: int) -> None:
    """Have a session stand back behind others, where Linux knows of that (sched(7), autogroup)."""
    with suppress(OSError):
        Path(f"/proc/{session}/autogroup").write_text(str(niceness))


def ended(process: subprocess.Popen[bytes]) -> float:
    """Wait for a process; return the processors' seconds of all that was waited for in it."""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_utime + usage.ru_stime


def closing_line(done: list[Done], seconds: float) -> str:
    """Return what pytest would end with, had it run all lanes."""
    counts = Counter(one.outcome for one in done)
    words = [f"{counts[kind]} {kind}" for kind in ("failed", "passed", "skipped", "errors")
             if counts[kind] or kind == "passed"]  # fmt: skip
    words = ["1 error" if word == "1 errors" else word for word in words]
    minutes, rest = divmod(round(seconds), 60)
    clock = f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"
    return f" {', '.join(words)} in {seconds:.2f}s ({clock}) ".center(80, "=")


def summary(done: list[Done], taken: dict[str, Taken], seconds: float) -> list[str]:
    """Return the slowest tests, the minutes of each lane, what failed, and how all ended.

    Of lanes beside each other, all of which took so many seconds. What the tests left of the
    processors was idle, or others had it. On the clock a test may take long because of others.
    """
    slowest = sorted(done, key=lambda one: -one.seconds)[:MOST_LISTED]
    slowest = [one for one in slowest if one.seconds >= AT_LEAST_S]
    bad = [one for one in done if one.outcome in BAD]
    lanes = ", ".join(f"{lane} {one.lasted / 60:.1f}" for lane, one in taken.items())
    busy = ", ".join(f"{lane} {one.busy / 60:.1f}" for lane, one in taken.items())
    share = sum(one.busy for one in taken.values()) / (seconds * cores())
    return [
        *(["slowest tests, in seconds, and in seconds of processor time:"] if slowest else []),
        *(f"{one.seconds:8.1f} {one.busy:8.1f}  {one.lane:8}  {one.name}" for one in slowest),
        f"minutes of each lane: {lanes}",
        f"minutes of processors: {busy}; {share:.0%} of {cores()} processors' time",
        *(f"{'FAILED' if one.outcome == 'failed' else 'ERROR'} {one.name}" for one in bad),
        closing_line(done, seconds),
    ]


def arguments() -> argparse.Namespace:
    """Return what the command line says."""
    parser = argparse.ArgumentParser(prog="python -m tests.lanes", description=__doc__)
    parser.add_argument("--long", action="store_true", help="with coverage, each MPI, long tests")
    parser.add_argument("--only", choices=[lane.name for lane in LANES], help="of one lane")
    parser.add_argument("tests", nargs="*", help="files or names of tests, as pytest has them")
    return parser.parse_args()


@dataclass
class Run:
    """The lanes that were run, with what became of them."""

    options: argparse.Namespace
    #: Where each lane's outcomes are kept, and the output of those beside another.
    records: Path
    environment: dict[str, str]
    done: list[Done] = field(default_factory=list)
    #: Times and exit code, by lane.
    taken: dict[str, Taken] = field(default_factory=dict)
    codes: dict[str, int] = field(default_factory=dict)
    #: Folders of lanes that run, and of those of which a test failed: until they have run again.
    kept: set[Path] = field(default_factory=set)

    def new_folder(self, lane: Lane) -> Path:
        """Return a new folder for what a lane's tests write, which a link in the records names."""
        folder = Path(tempfile.mkdtemp(prefix="wyeast-"))
        (self.records / f"{lane.name}.{folder.name}").symlink_to(folder)
        self.kept.add(folder)
        return folder

    def remove_folders(self) -> subprocess.Popen[bytes]:
        """Begin to remove the lanes' folders, and then their links, by a process that outlives us.

        Of those that were run, earlier runs' too, which were killed or failed. There are so many
        files that it takes minutes, for which nobody needs to wait. Not beside tests: for minutes
        after so many files were deleted, ext4 without a journal passes over each of them again for
        a new one.
        """
        links = [link for lane in self.codes for link in self.records.glob(f"{lane}.wyeast-*")]
        gone = [link for link in links if link.readlink() not in self.kept]
        paths = [str(path) for link in gone for path in (link.readlink(), link)]
        remove = ["nice", "-n19", "rm", "-rf", "--one-file-system", *paths]
        null = subprocess.DEVNULL
        return subprocess.Popen(
            remove, stdin=null, stdout=null, stderr=null, start_new_session=True
        )

    def output(self, lane: Lane) -> Path:
        """Return the file for the output of a lane beside another."""
        return self.records / f"{lane.name}.log"

    async def row(self, lanes: Sequence[Lane], is_beside: bool) -> None:
        """Run lanes one after the other; the output of a row beside another goes into files."""
        for lane in lanes:
            record = self.records / f"{lane.name}.xml"
            record.unlink(missing_ok=True)
            folder = self.new_folder(lane)
            said = f", beside, with its output at the end; until then in {self.output(lane)}"
            print(f"lane {lane.name}{said if is_beside else ''}:", flush=True)
            began = time.monotonic()
            with self.output(lane).open("w") if is_beside else nullcontext() as file:
                process = subprocess.Popen(
                    lane.command(self.options, record, folder),
                    cwd=PROJECT, env=self.environment, stdout=file, stderr=file,
                    start_new_session=True,
                )  # fmt: skip
                if lane.niceness:
                    stand_back(process.pid, lane.niceness)
                ending = asyncio.ensure_future(asyncio.to_thread(ended, process))
                try:
                    busy = await asyncio.shield(ending)
                except asyncio.CancelledError:
                    # It is interrupted as well, and ends what its tests have begun.
                    with suppress(ProcessLookupError):
                        os.killpg(process.pid, signal.SIGINT)
                    await ending
                    raise
            code = self.codes[lane.name] = process.returncode
            self.taken[lane.name] = Taken(time.monotonic() - began, busy)
            self.done += outcomes(lane.name, record, code)
            if code in (0, NOTHING):
                self.kept.remove(folder)

    async def stage(self, rows: Sequence[Sequence[Lane]]) -> None:
        """Run rows of lanes beside each other, the first with its output to the terminal.

        What asks us to end ends them first: a terminal that closes, a make that is stopped.
        """
        if this := asyncio.current_task():
            for number in (signal.SIGTERM, signal.SIGHUP):
                asyncio.get_running_loop().add_signal_handler(number, this.cancel)
        await asyncio.gather(*(self.row(row, number > 0) for number, row in enumerate(rows)))
        for lane in (lane for row in rows[1:] for lane in row):
            print(f"lane {lane.name}:\n{self.output(lane).read_text()}", end="", flush=True)


def builds(folder: Path) -> Path:
    """Return the folder for what tests build by this compiler; what is by others goes."""
    digest = hashlib.sha256(subprocess.check_output(["cc", "--version"]))
    files = [path for name in BUILT_OF for path in ((PROJECT / name), *(PROJECT / name).rglob("*"))]
    for path in sorted(files):
        if path.is_file() and "build" not in path.relative_to(PROJECT).parts:
            digest.update(f"{path.relative_to(PROJECT)}\0".encode() + path.read_bytes())
    own = folder / digest.hexdigest()[:16]
    own.mkdir(parents=True, exist_ok=True)
    for path in [*folder.iterdir(), *own.iterdir()]:
        if path.is_dir() and path != own and not (path / SOUND).exists():
            shutil.rmtree(path)
    return own


def main() -> int:
    """Run the lanes; return 0 where every test that was asked for passed."""
    options = arguments()
    records = PROJECT / ".wyeast" / "tests"
    records.mkdir(parents=True, exist_ok=True)
    coverage = [sys.executable, "-m", "coverage"]
    if options.long:
        subprocess.run([*coverage, "erase"], cwd=PROJECT, check=True)
    if left := processes.end_marked(processes.is_abandoned):
        print(f"processes that earlier tests have left here, ended: {', '.join(left)}", flush=True)
    environment = {**os.environ, BUILDS: str(builds(records / "builds"))}
    # Tests start Python a thousand times: what it has compiled once it is to find again.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    # Tables of tests are small, and cores are taken: threads would only wait for each other.
    environment["POLARS_MAX_THREADS"] = "1"
    if options.long:
        environment[REALLY] = "1"
    run = Run(options, records, environment)
    began = time.monotonic()
    for stage in STAGES:
        rows = [[lane for lane in row if options.only in (None, lane.name)] for row in stage]
        asyncio.run(run.stage([row for row in rows if row]))
    if options.long:
        subprocess.run([*coverage, "combine", "-q"], cwd=PROJECT, check=True)
        subprocess.run([*coverage, "report"], cwd=PROJECT, check=True)
    run.remove_folders()
    print("\n".join(summary(run.done, run.taken, time.monotonic() - began)))
    # A lane without tests is none that passed, unless only some tests were asked for.
    codes = list(run.codes.values())
    fine = {0, NOTHING} if options.tests else {0}
    return 0 if set(codes) <= fine and codes.count(NOTHING) < len(codes) else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
    except asyncio.CancelledError:
        sys.exit(143)
