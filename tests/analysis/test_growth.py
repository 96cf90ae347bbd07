"""What analysis costs grows no faster than the work, by counts: a small growth_benchmark.py.

Three sizes along each axis, each twice the one before, are read by the commands that people use, in
this process. support/counts.py says which counts there are, and how a power follows from them.
"""

import importlib
import shutil
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock
from xml.etree import ElementTree

import polars as pl
import pytest

from analysis.history.index import FILE
from analysis.history.lost_cells import lost_cells
from analysis.precision.waves import is_in_vain, sound_rounds
from campaign import retention
from inference.change_points import scores_by_chance
from records.events import PlannedLaunch, Wave, WaveRound
from records.fold import LaunchState, State
from tests.analysis import growth_benchmark
from tests.analysis.support import curves
from tests.analysis.support.costs import Cost
from tests.analysis.support.counts import Counts, counted, power_of, too_fast
from tests.analysis.support.in_process import analysis
from tests.analysis.support.large import write_large
from tests.analysis.support.nights import KEEP_NIGHTS, make

Found = dict[str, Counts]
FIRST, SECOND = "20260101T000000Z-local-made-up", "20260102T000000Z-local-made-up"


def run(*words: str, allowed: tuple[int, ...] = (0,)) -> Counts:
    """Return what a command does, which it has done once before: what is loaded once is not it."""
    with counted() as counts:
        done = analysis(*words)
    assert done.returncode in allowed, (words, done.stdout, done.stderr)
    return counts


def of_campaigns(root: Path, implementations: int, cells: int, rounds: int) -> Found:
    for number, name in enumerate((FIRST, SECOND), 1):
        write_large(root / name, implementations, cells, rounds, seed=number)
    first, second = str(root / FIRST), str(root / SECOND)
    return {
        "table": run("table", first, "--no-pager"),
        "conclude": run("conclude", first),
        "export": run("export", first, "--output", str(root / "export")),
        "compare": run("compare", first, second, "--no-pager"),
    }


def of_nights(root: Path, nights: int, cells: int) -> Found:
    last = make(root, nights, cells)
    runs = ("--runs", str(last.parent))
    (last.parent / FILE).unlink(missing_ok=True)
    # Whoever used as many nights in this process before has left what they score by chance.
    scores_by_chance.cache_clear()
    found = {
        "history, no index": run("history", *runs, "--most", "3"),
        "history": run("history", *runs, "--most", "3"),
        "regress": run("regress", str(last), "--against", "history", *runs, allowed=(0, 1, 3, 5)),
        "night": run("night", str(last), *runs, allowed=(0, 3, 4, 6, 7)),
    }
    with counted() as found["retention"]:
        assert not retention.plan(root, "local", KEEP_NIGHTS).removals
    return found


#: What is measured along each axis: three sizes, and what the commands do at one. Along
#: implementations and cells no table is so long that it goes on in a page of its own.
AXES: dict[str, tuple[tuple[int, int, int], Callable[[Path, int], Found]]] = {
    "implementations": ((2, 4, 8), lambda root, size: of_campaigns(root, size, 2, 3)),
    "cells": ((2, 4, 8), lambda root, size: of_campaigns(root, 2, size, 2)),
    "rounds": ((4, 8, 16), lambda root, size: of_campaigns(root, 2, 2, size)),
    "nights": ((40, 80, 160), lambda root, size: of_nights(root, size, 1)),
}


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Have done before what a process does once, such as to load what commands need.

    Nothing is counted of it: that takes four times as long.
    """
    with mock.patch(f"{__name__}.counted", lambda: nullcontext(Counts())):
        of_campaigns(tmp_path_factory.mktemp("campaigns"), 2, 2, 2)
        of_nights(tmp_path_factory.mktemp("nights"), 2, 1)
    # Campaigns and nights as few as these need no power.
    importlib.import_module("scipy.stats")


@pytest.mark.usefixtures("loaded")
@pytest.mark.parametrize("axis", AXES)
def test_no_command_grows_faster_than_its_work(axis: str, tmp_path: Path) -> None:
    sizes, costs = AXES[axis]
    found = []
    for size in sizes:
        found.append(costs(tmp_path / f"{size}", size))
        shutil.rmtree(tmp_path / f"{size}")
    assert not too_fast(sizes, found)


def test_a_repetition_reads_the_same_campaigns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[tuple[str, str]] = []

    def costs(first: Path, second: Path, folder: Path) -> dict[str, Cost]:
        read.append((first.name, second.name))
        assert analysis("history", "--runs", str(first.parent), "--rebuild").returncode == 0
        return {}

    monkeypatch.setattr(growth_benchmark, "costs_of_pair", costs)
    growth_benchmark.two_campaigns(tmp_path, 1, cells=1, axis="rounds")
    for _ in range(2):
        growth_benchmark.of_campaigns(tmp_path)
    assert (tmp_path / "runs" / FILE).exists() and read == [(FIRST, SECOND)] * 2


def test_the_curves_of_an_axis_replace_those_of_an_earlier_run_alone(tmp_path: Path) -> None:
    curves.keep(tmp_path, "rounds", {"table": {3: [1.0], 30: [2.0, 2.5]}})
    curves.keep(tmp_path, "cells", {"table": {4: [1.0], 64: [3.0]}})
    curves.keep(tmp_path, "rounds", {"table": {3: [1.0], 300: [4.0]}, "<report>": {3: [1.5]}})
    assert curves.kept(tmp_path) == {
        "rounds": {"table": {3: [1.0], 300: [4.0]}, "<report>": {3: [1.5]}},
        "cells": {"table": {4: [1.0], 64: [3.0]}},
    }
    for axis in ("rounds", "cells"):
        root = ElementTree.parse(tmp_path / f"{axis}.svg").getroot()
        assert "table" in "".join(root.itertext())


def test_the_curves_of_the_documentation_are_of_the_numbers_beside_them(tmp_path: Path) -> None:
    """They are drawn anew by python -m tests.analysis.support.curves docs/growth."""
    folder = Path(__file__).resolve().parents[2] / "docs" / "growth"
    curves.draw(folder, tmp_path)
    found = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert found == {path.name: path.read_text() for path in folder.glob("*.svg")}
    page = (folder.parent / "performance.md").read_text()
    assert found and all(f"growth/{name}" in page for name in found)
    # Each curve has the sizes of its axis, and so can be repeated by the command.
    for axis, seconds in curves.kept(folder).items():
        sizes = set(growth_benchmark.AXES[axis].sizes)
        assert all(set(of) == sizes for of in seconds.values()), axis


def looks(folder: Path, size: int) -> None:
    for _ in range(size):
        list(folder.iterdir())


def looks_for_each(folder: Path, size: int) -> None:
    for _ in range(size):
        looks(folder, size)


def opens_for_each(folder: Path, size: int) -> None:
    for _ in range(size * size):
        (folder / "file").read_bytes()


def rows_for_each(folder: Path, size: int) -> None:
    frame = pl.DataFrame({"series": range(10 * size)})
    for one in range(size):
        frame.filter(pl.col("series") == one)


def memory_for_each(folder: Path, size: int) -> None:
    [bytes(10_000) for _ in range(size * size)]


def calls_for_each(folder: Path, size: int) -> None:
    for number in range(50 * size * size):
        abs(number)


@pytest.mark.parametrize(
    ("faulty", "count"),
    [(looks_for_each, "looks"), (opens_for_each, "opened"), (opens_for_each, "read_bytes"),
     (rows_for_each, "rows"), (memory_for_each, "memory_bytes"), (calls_for_each, "calls")],
)  # fmt: skip
def test_what_grows_with_the_square_is_seen(
    faulty: Callable[[Path, int], None], count: str, tmp_path: Path
) -> None:
    (tmp_path / "file").write_bytes(bytes(10_000))
    sizes, found = (20, 40, 80), []
    for size in sizes:
        with counted() as counts:
            faulty(tmp_path, size)
        found.append({"faulty": counts})
    assert any(f"faulty: {count} grow by a power of" in one for one in too_fast(sizes, found))


def test_what_grows_with_the_work_is_not(tmp_path: Path) -> None:
    sizes, found = (20, 40, 80), []
    for size in sizes:
        with counted() as counts:
            looks(tmp_path, size)
        found.append({"sound": counts})
    assert found[-1]["sound"].looks >= 80 and not too_fast(sizes, found)


@pytest.mark.parametrize("power", [0.5, 1.0, 1.5, 2.0])
def test_a_power_is_distinguished_from_what_a_start_takes(power: float) -> None:
    counts = [round(10**6 + 10**4 * size**power) for size in (4, 8, 16)]
    assert power_of((4, 8, 16), counts, 1) == pytest.approx(power, abs=1e-3)
    assert power_of((4, 8, 16), counts, 10**9) == 0


def made_up_waves(cells: int) -> State:
    """Return a campaign of which a wave measured so many cells, half of them in vain."""
    names = [f"Linpack n={number}" for number in range(cells)]
    rounds = (WaveRound(round=1, cells=tuple(names)),)
    wave = Wave(number=1, why="begin", rounds=rounds, scores=(), predicted_s=None, spent_s=0.0)
    every = [
        LaunchState(
            PlannedLaunch(launch=f"{number}_{name}", cell=cell, implementation=name), 1, "recorded",
            outcome="failed" if number % 2 and name == "b" else "sound",
        )
        for number, cell in enumerate(names)
        for name in ("a", "b")
    ]  # fmt: skip
    return State(waves=[wave], rounds={1: every}, launches={one.name: one for one in every})


def choose(cells: int) -> None:
    """Find what a wave brought nothing for."""
    sound = sound_rounds(made_up_waves(cells))
    vain = [cell for cell in sound if is_in_vain(sound[cell], "a", "b")]
    assert len(vain) == cells // 2 and not is_in_vain(sound["Linpack n=0"], "a", "b")


def lose(cells: int) -> None:
    """Tell what a campaign lost of which every launch failed."""
    names = [f"PointToPoint pair={number}" for number in range(cells)]
    facts: dict[str, Any] = {"site": "local", "tier": "quick", "checks": None, "images": {"a": 1}}
    records = [
        SimpleNamespace(cell=name, implementation="a", sentence="it hung", outcome="failed")
        for name in names
    ]
    after: Any = SimpleNamespace(
        path=Path("new"), manifest=SimpleNamespace(**facts), no_room=[], open=set(),
        launches=[SimpleNamespace(is_sound=False, record=one) for one in records],
    )  # fmt: skip
    before: Any = mock.MagicMock(**facts)
    had = [
        (f"{name} series {number}", name, "PointToPoint", "a")
        for name in names for number in (1, 2)
    ]  # fmt: skip
    lost = lost_cells(had, set(), before, after)
    assert len(lost) == 2 * cells and all("failed: it hung" in one.sentence for one in lost)


@pytest.mark.parametrize("work", [choose, lose])
def test_what_is_looked_up_for_each_cell_is_not_searched_for(work: Callable[[int], None]) -> None:
    sizes, found = (500, 1000, 2000), []
    work(1)
    for size in sizes:
        with counted() as counts:
            work(size)
        found.append({work.__name__: counts})
    assert not too_fast(sizes, found)
