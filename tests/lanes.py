"""All tests, lane by lane: what may run side by side does, and what measures runs alone.

`python -m tests.lanes [--long] [--only LANE] [TEST ...]`; `make test` calls it.
"""

import argparse
import ctypes
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

PROJECT = Path(__file__).resolve().parents[1]
#: How many of the slowest tests are listed, and what is too quick to be.
SLOWEST, AT_LEAST_S = 40, 3.0
#: Outcomes of tests with which nothing lands.
BAD = ("failed", "errors")
#: What pytest ends with where it was not asked for any test of a lane.
NOTHING = 5
#: Names, to the lanes, a folder in which what one has built from sources is there for the next.
BUILDS = "WYEAST_TESTS_BUILDS"
#: Linux's prctl: orphans of our children become ours, and not init's.
PR_SET_CHILD_SUBREAPER = 36


@dataclass(frozen=True)
class Lane:
    """Tests that run together."""

    name: str
    marks: str
    #: How pytest shares them out to the cores; nothing where they have all cores to themselves.
    shared_out: str

    def command(self, options: argparse.Namespace, record: Path) -> list[str]:
        """Return what runs its tests and writes their outcomes into a file."""
        marks = self.marks if options.long else f"({self.marks}) and not long"
        python = [sys.executable, "-m", *(["coverage", "run", "-m"] if options.long else [])]
        cores = ["-n", str(len(os.sched_getaffinity(0))), f"--dist={self.shared_out}"]
        return [
            *python, "pytest", "-q", f"-m={marks}", f"--junitxml={record}",
            *(cores if self.shared_out else []), *options.tests,
        ]  # fmt: skip


LANES = (
    Lane("fast", "not real and not browser and not cluster", "load"),
    Lane("real", "(real or browser) and not measures and not cluster", "loadgroup"),
    Lane("measures", "measures and not cluster", ""),
    Lane("cluster", "cluster", ""),
)


@dataclass(frozen=True)
class Done:
    """A test that has run, or a file of which none could."""

    name: str
    lane: str
    outcome: str
    seconds: float


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
        yield Done(name, lane, outcome, float(case.get("time") or 0))
    if not is_told:
        yield Done(f"the lane ended with exit code {code}", lane, "errors", 0)


def closing_line(done: list[Done], seconds: float) -> str:
    """Return what pytest would end with, had it run all lanes."""
    counts = Counter(one.outcome for one in done)
    words = [f"{counts[kind]} {kind}" for kind in ("failed", "passed", "skipped", "errors")
             if counts[kind] or kind == "passed"]  # fmt: skip
    words = ["1 error" if word == "1 errors" else word for word in words]
    minutes, rest = divmod(round(seconds), 60)
    clock = f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"
    return f" {', '.join(words)} in {seconds:.2f}s ({clock}) ".center(80, "=")


def summary(done: list[Done], taken: dict[str, float]) -> list[str]:
    """Return the slowest tests, the minutes of each lane, what failed, and how all ended."""
    slow = sorted(done, key=lambda one: -one.seconds)[:SLOWEST]
    slow = [one for one in slow if one.seconds >= AT_LEAST_S]
    bad = [one for one in done if one.outcome in BAD]
    lanes = ", ".join(f"{lane} {seconds / 60:.1f}" for lane, seconds in taken.items())
    return [
        *(["slowest tests:"] if slow else []),
        *(f"{one.seconds:8.1f} s  {one.lane:8}  {one.name}" for one in slow),
        f"minutes of each lane: {lanes}",
        *(f"{'FAILED' if one.outcome == 'failed' else 'ERROR'} {one.name}" for one in bad),
        closing_line(done, sum(taken.values())),
    ]


def become_subreaper() -> None:
    """Have orphans of this process' children become its own children, and not init's."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)


def run(command: list[str], environment: dict[str, str]) -> int:
    """Run a command in the project; return its exit code.

    Orphans that end meanwhile are waited for, as init would: else they were still to be seen.
    """
    process = subprocess.Popen(command, cwd=PROJECT, env=environment)
    while True:
        pid, status = os.wait()
        if pid == process.pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            return process.returncode


def children(process: int | str = "self") -> set[int]:
    """Return a process' children, of all its threads; none of one that is gone."""
    found = set()
    for path in Path(f"/proc/{process}/task").glob("*/children"):
        # A thread may end while we look; its children go to another one.
        with suppress(OSError):
            found |= {int(child) for child in path.read_text().split()}
    return found


def end_with_descendants(processes: Collection[int]) -> None:
    """End children of this process with what they have started, but for what is an orphan."""
    for process in processes:
        tree, held = {process}, set[int]()
        # Held first, so that nothing is started that was not seen.
        while new := tree - held:
            for one in new:
                with suppress(OSError):
                    os.kill(one, signal.SIGSTOP)
            held |= new
            tree |= {child for one in new for child in children(one)}
        for one in tree:
            with suppress(OSError):
                os.kill(one, signal.SIGKILL)
        with suppress(OSError):
            os.waitpid(process, 0)


def end_what_is_left(stay: Collection[int] = ()) -> list[str]:
    """End the processes that a lane has left, and those that these leave; return their names.

    A rank that looks for messages without rest would take a processor from the lanes that come.
    Those that are to stay do, and those that we may not end.
    """
    names, stays = [], set(stay)
    while left := children() - stays:
        for child in left:
            with suppress(OSError):
                state = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[0]
                if state != "Z":
                    name = Path(f"/proc/{child}/comm").read_text().strip()
                    try:
                        os.kill(child, signal.SIGKILL)
                    except PermissionError:
                        names.append(f"{name} (process {child} may not be ended, and stays)")
                        stays.add(child)
                        continue
                    names.append(name)
                os.waitpid(child, 0)
    return names


def arguments() -> argparse.Namespace:
    """Return what the command line says."""
    parser = argparse.ArgumentParser(prog="python -m tests.lanes", description=__doc__)
    parser.add_argument("--long", action="store_true", help="with coverage, and with long tests")
    parser.add_argument("--only", choices=[lane.name for lane in LANES], help="of one lane")
    parser.add_argument("tests", nargs="*", help="files or names of tests, as pytest has them")
    return parser.parse_args()


def main() -> int:
    """Run the lanes; return 0 where every test that was asked for passed."""
    options = arguments()
    become_subreaper()
    records = PROJECT / ".wyeast" / "tests"
    records.mkdir(parents=True, exist_ok=True)
    coverage = [sys.executable, "-m", "coverage"]
    if options.long:
        subprocess.run([*coverage, "erase"], cwd=PROJECT, check=True)
    done: list[Done] = []
    taken: dict[str, float] = {}
    codes: list[int] = []
    builds = tempfile.TemporaryDirectory(prefix="wyeast-tests-builds-")
    environment = {**os.environ, BUILDS: builds.name}
    for lane in LANES:
        if options.only not in (None, lane.name):
            continue
        record = records / f"{lane.name}.xml"
        record.unlink(missing_ok=True)
        print(f"lane {lane.name}:", flush=True)
        began = time.monotonic()
        codes.append(run(lane.command(options, record), environment))
        taken[lane.name] = time.monotonic() - began
        if left := end_what_is_left():
            print(f"processes that lane {lane.name} had left, ended: {', '.join(left)}", flush=True)
        done += outcomes(lane.name, record, codes[-1])
    if options.long:
        subprocess.run([*coverage, "combine", "-q"], cwd=PROJECT, check=True)
        subprocess.run([*coverage, "report"], cwd=PROJECT, check=True)
    print("\n".join(summary(done, taken)))
    # A lane without tests is none that passed, unless only some tests were asked for.
    fine = {0, NOTHING} if options.tests else {0}
    return 0 if set(codes) <= fine and codes.count(NOTHING) < len(codes) else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
