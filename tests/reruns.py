"""Tests again and again on a busy machine: `python -m tests.reruns [--times N] [TEST ...]`.

What judges how long something takes runs alone in `make test`, and has to be right on a machine
that others use as well. Here it runs a number of times while processes compute on each core: all
of the lane that measures, or the tests that are named.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from tests import lanes
from tests.processes import end_with_descendants

#: What cannot be right there, and why; named, it runs all the same.
NOT_BESIDE = {
    "tests/cluster/test_nightly.py": "a rank that waits for a processor leaves the link idle, and "
    "nights then differ by more than the tenth of the link that is to be found",
}
#: Starts processes that compute until what has started this one is gone.
BUSY = """
import os, sys
parent = os.getppid()
first = os.getpid()
for _ in range(int(sys.argv[1]) - 1):
    if os.getpid() == first:
        os.fork()
while os.path.exists(f"/proc/{parent}"):
    sum(range(10**6))
"""


@contextmanager
def busy(processes: int) -> Iterator[int]:
    """Have processes compute meanwhile, in a session of their own; yield its number, or 0.

    As those of another user: Linux shares processors out among sessions (sched(7), autogroup).
    """
    if not processes:
        yield 0
        return
    first = subprocess.Popen([sys.executable, "-c", BUSY, str(processes)], start_new_session=True)
    try:
        yield first.pid
    finally:
        with suppress(ProcessLookupError):
            os.killpg(first.pid, signal.SIGKILL)
        first.wait()


def command(tests: Sequence[str], record: Path) -> list[str]:
    """Return what runs the tests once and keeps their outcomes."""
    lane = lanes.MEASURES
    files = [name for name in lane.files() if name not in NOT_BESIDE]
    chosen = tests or [f"-m={lane.marks} and not long", *files]
    return [
        sys.executable, "-m", "tests.processes", sys.executable, "-m", "pytest", "-q",
        f"--junitxml={record}", *chosen,
    ]  # fmt: skip


def rerun(tests: Sequence[str]) -> list[lanes.Done]:
    """Run the tests once; return their outcomes, and print what pytest said if one failed."""
    environment = {
        **os.environ, lanes.BUILDS: str(lanes.builds(lanes.PROJECT / ".wyeast/tests/builds")),
    }  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="wyeast-") as folder:
        record = Path(folder) / "outcomes.xml"
        process = subprocess.Popen(
            command(tests, record), cwd=lanes.PROJECT, env=environment, text=True,
            errors="replace", stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        try:
            said, _ = process.communicate()
        except BaseException:
            end_with_descendants([process.pid])
            raise
        if process.returncode:
            print(said, flush=True)
        return list(lanes.outcomes("reruns", record, process.returncode))


def table(runs: Sequence[Sequence[lanes.Done]]) -> list[str]:
    """Return a line for each test, in how many runs it passed, those that failed first."""
    by_test: dict[str, list[lanes.Done]] = {}
    for one in (one for run in runs for one in run):
        by_test.setdefault(one.name, []).append(one)
    lines = []
    for name, found in by_test.items():
        passed = sum(one.outcome == "passed" for one in found)
        bad = sum(one.outcome in lanes.BAD for one in found)
        skipped = f", {len(found) - passed - bad} skipped" if passed + bad < len(found) else ""
        longest = max(one.seconds for one in found)
        lines.append(
            (-bad, f"{passed} passed, {bad} failed{skipped}, {longest:.1f} s at most: {name}")
        )
    return [line for _, line in sorted(lines)]


def arguments() -> argparse.Namespace:
    """Return what the command line says."""
    parser = argparse.ArgumentParser(prog="python -m tests.reruns", description=__doc__)
    parser.add_argument("--times", type=int, default=12, help="how often (%(default)s)")
    parser.add_argument(
        "--busy", type=int, default=1, metavar="N",
        help="processes for each core that compute meanwhile (%(default)s)",
    )  # fmt: skip
    parser.add_argument("tests", nargs="*", help="files or names of tests, as pytest has them")
    return parser.parse_args()


def main() -> int:
    """Run the tests; return 0 where each run passed."""
    options = arguments()
    # What was started ends with it, as by a limit of time from outside.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    for name, why in NOT_BESIDE.items() if not options.tests else ():
        print(f"left out: {name}: {why}", flush=True)
    runs: list[list[lanes.Done]] = []
    began = time.monotonic()
    try:
        with busy(options.busy * lanes.cores()):
            for number in range(1, options.times + 1):
                runs.append(rerun(options.tests))
                bad = sum(one.outcome in lanes.BAD for one in runs[-1])
                words = f"{len(runs[-1])} tests, {bad} failed"
                print(f"run {number} of {options.times}: {words}", flush=True)
    finally:
        # Also of one that was ended before its last run.
        print("\n".join(table(runs)))
        print(
            f"{len(runs)} runs beside {options.busy} busy process(es) a core, "
            f"{(time.monotonic() - began) / 60:.1f} min", flush=True,
        )  # fmt: skip
    every = [one for run in runs for one in run]
    return 0 if every and not any(one.outcome in lanes.BAD for one in every) else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
