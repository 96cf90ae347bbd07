"""docs/how-to/add-an-experiment.md, done as it says: its files, and nothing else, in a checkout."""

import csv
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.analysis.support.synthetic import Synthetic
from tests.bare_mpi import install
from tests.reframe_checks.conftest import IMPLEMENTATION, stand_in_at
from tests.reframe_checks.test_communicating import output, result
from tests.unmeasured import unmeasured

PROJECT = Path(__file__).resolve().parents[1]
PAGE = PROJECT / "docs" / "how-to" / "add-an-experiment.md"
#: A file of the page: its name in a line of its own, and the block after it.
FILE = re.compile(r"^(At the end of )?`([\w./]+)`:\n\n```\w+\n(.*?)^```$", re.M | re.S)
NAME, CELL = "RingShift", "RingShift ranks=2"
ENTRY = "records/experiments.yaml"
ROOMS = (
    "analysis", "benchmarks", "campaign", "containers", "inference", "literature", "records",
    "reframe_checks", "site_configs",
)  # fmt: skip
#: How long a shift takes with each of two implementations, in s, in each of two rounds.
SECONDS = {f"{IMPLEMENTATION}+0": (1e-5, 1e-5), f"{IMPLEMENTATION}+1": (2.05e-5, 2.15e-5)}


def tracked() -> list[str]:
    """Return the files of the checkout that the rooms are made of."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *ROOMS],
        cwd=PROJECT, text=True, capture_output=True, check=True,
    ).stdout.split("\0")  # fmt: skip
    return [name for name in listed if name and (PROJECT / name).is_file()]


def add_as_the_page_says(checkout: Path) -> set[str]:
    """Write the page's files into a checkout; return which."""
    written = set()
    for at_the_end, name, text in FILE.findall(PAGE.read_text()):
        path = checkout / name
        assert path.exists() == bool(at_the_end), name
        path.parent.mkdir(exist_ok=True)
        path.write_text((path.read_text() if at_the_end else "") + text)
        written.add(name)
    return written


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the checkout in which the page was followed."""
    folder = tmp_path_factory.mktemp("added") / "checkout"
    for name in tracked():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(PROJECT / name, folder / name)
    # What runs ReFrame takes the checkout's own packages.
    (folder / ".wyeast").mkdir()
    (folder / ".wyeast" / "venv").symlink_to(PROJECT / ".wyeast" / "venv")
    add_as_the_page_says(folder)
    return folder


def python(checkout: Path, *words: str) -> str:
    """Return what Python prints in a checkout."""
    done = subprocess.run(
        [sys.executable, *words], cwd=checkout, text=True, capture_output=True, check=False,
        env={**unmeasured(), "PYTHONPATH": str(checkout), "COLUMNS": "200"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_page_adds_in_three_places(tmp_path: Path) -> None:
    (tmp_path / "records").mkdir()
    for room in ("benchmarks", "reframe_checks"):
        (tmp_path / room).mkdir()
    shutil.copy(PROJECT / ENTRY, tmp_path / ENTRY)
    assert add_as_the_page_says(tmp_path) == {
        "benchmarks/ring_shift/ring_shift.c", "benchmarks/ring_shift/program.mk",
        "reframe_checks/ring_shift.py", ENTRY,
    }  # fmt: skip
    added = (tmp_path / ENTRY).read_text()
    assert added.startswith((PROJECT / ENTRY).read_text()) and added.count(NAME) == 1


@pytest.fixture(scope="module")
def measured(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a campaign of the new check in runs/ of the checkout: two rounds, judged by ReFrame.

    The program's output is played, so its times are known.
    """
    stand_in = stand_in_at(tmp_path_factory.mktemp("played"))
    stand_in.project = checkout
    plays = [{"stdout": shifts(first)} for first, _ in SECONDS.values()]
    for outcome in stand_in.play(*plays, only=NAME):
        assert outcome.code == 0, outcome.text
    for number, (_, second) in enumerate(SECONDS.values()):
        (stand_in.root / "plays" / str(number) / "stdout").write_text(shifts(second))
    stand_in.variables |= {"WYEAST_ROUND": "2", "WYEAST_IMAGES": ",".join(SECONDS)}
    again = stand_in.run(only=NAME)
    assert again.code == 0, again.text
    folder = checkout / "runs" / "20260101T000000Z-local-added"
    digests = {str(launch["implementation"]): launch["image_sha256"] for launch in again.launches}
    images = {
        name: {"sha256": digests[name], "labels": {}, "manifest": None} for name in sorted(digests)
    }
    Synthetic(folder, {}, rounds=0, facts={"rounds": 2, "images": images}).write()
    shutil.copytree(stand_in.root / "runs" / "campaign", folder, dirs_exist_ok=True)
    return folder


def shifts(seconds: float) -> str:
    """Return what the program prints where every shift takes so long."""
    points = [result("ring-shift", "sendrecv", size, seconds) for size in (8, 8192)]
    whole = [{**one, "group": "world", "moved_bytes": 2 * int(str(one["message_bytes"])),
              "verified_bytes": 2 * int(str(one["message_bytes"]))} for one in points]  # fmt: skip
    return output(whole, "ring_shift").replace("[1e-05", f"[{seconds}")


def commands() -> list[list[str]]:
    """Return the page's commands of the analysis, without what they print."""
    lines = re.findall(r"^python (-m analysis .*)$", PAGE.read_text(), re.M)
    return [shlex.split(line, comments=True) for line in lines]


def test_it_is_seen_in_table_report_export_and_history(checkout: Path, measured: Path) -> None:
    printed = {words[2]: python(checkout, *words) for words in commands()}
    assert set(printed) == {"table", "report", "export", "history"}
    table = printed["table"]
    assert f"{NAME}: time, medians over launches" in table and "10 µs" in table and "21 µs" in table
    slower, faster = f"{IMPLEMENTATION}+1", f"{IMPLEMENTATION}+0"
    assert f"- Ring shifts, 2 ranks: {slower} is slower than {faster} by a factor of 2.10" in table
    report = (measured / "report.html").read_text()
    assert f"<h3>{NAME}</h3>" in report and "Ring shifts, 2 ranks" in report
    assert "the median shift, which ends when the last rank has its message" in report
    [medians] = (measured).rglob(f"medians-{NAME}.csv")
    rows = list(csv.DictReader(medians.open()))
    found = {(row["implementation"], f"{row['cell']} {row['series']}") for row in rows}
    assert found == {(name, f"{CELL} ring-shift sendrecv [world]") for name in SECONDS}
    of_first = [row for row in rows if row["implementation"] == f"{IMPLEMENTATION}+0"]
    assert len(of_first) == 2 and all(repr(1e-5) in row.values() for row in of_first)
    [ratios] = measured.rglob(f"ratios-{NAME}.csv")
    assert [row["implementation"] for row in csv.DictReader(ratios.open())] == [slower]
    assert f"{CELL} ring-shift sendrecv [world]" in printed["history"]


def test_without_its_entry_a_check_measures_nothing(checkout: Path, measured: Path) -> None:
    """What the test above sees comes from the entry alone."""
    there, here = (
        python(folder, "-c", "from records.experiments import compared; print(*compared())")
        for folder in (checkout, PROJECT)
    )
    assert there.split() == [*here.split(), NAME]


@pytest.mark.real
def test_the_program_of_the_page_prints_what_its_check_asks_for(
    checkout: Path, tmp_path: Path
) -> None:
    prefix = install(PROJECT, "mpich-5.0.2")
    build = tmp_path / "build"
    made = subprocess.run(
        ["make", "-C", checkout / "benchmarks", f"CC={prefix}/bin/mpicc", f"BUILD={build}",
         build / "bin/ring_shift"],
        text=True, capture_output=True, check=False,
    )  # fmt: skip
    assert made.returncode == 0 and "warning" not in made.stderr, made.stderr
    words = ["--sizes", "8", "--sizes", "8192", "--iterations", "20", "--raw"]
    done = subprocess.run(
        [prefix / "bin/mpiexec", "-n", "2", build / "bin/ring_shift", *words],
        text=True, capture_output=True, check=False, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (tmp_path / "stdout").write_text(done.stdout)
    read = (
        "import sys, pathlib; from records.program_output import read_program_output as read\n"
        "print(*(f'{one.series} {one.message_bytes} {one.iterations} {one.verified_bytes}'"
        " for one in read(pathlib.Path(sys.argv[1])).results), sep='\\n')"
    )
    assert python(checkout, "-c", read, str(tmp_path / "stdout")).splitlines() == [
        "ring-shift sendrecv [world] 8 20 16", "ring-shift sendrecv [world] 8192 20 16384",
    ]  # fmt: skip
