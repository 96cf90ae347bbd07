"""What looks back at many nights goes through them once: by counts, with few nights."""

import sys
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from analysis.history import limits
from analysis.history.campaign_rows import ROWS
from analysis.history.index import history_rows
from analysis.history.series import against_history
from campaign import retention
from records.campaign import read_campaign
from tests.analysis.support.costs import Cost, exponent, largest_within
from tests.analysis.support.nights import KEEP_NIGHTS, make

#: What goes through all rows of a history.
PASSES = ("filter", "join", "sort", "group_by", "partition_by", "unique")
OPENED: Counter[str] = Counter()


def heard(event: str, words: tuple[Any, ...]) -> None:
    """Count what this process opens, while anybody counts."""
    if event == "open" and OPENED.total():
        OPENED[Path(str(words[0])).name] += 1


# A hook stays for as long as the process.
sys.addaudithook(heard)


def passes_of(nights: int, cells: int, folder: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """Return how often all that a night does goes through a frame."""
    last = make(folder, nights, cells)
    night, count = read_campaign(last), 0

    def counting(whole: Any) -> Any:
        def counted(*words: Any, **more: Any) -> Any:
            nonlocal count
            count += 1
            return whole(*words, **more)

        return counted

    with monkeypatch.context() as patched:
        for name in PASSES:
            patched.setattr(pl.DataFrame, name, counting(getattr(pl.DataFrame, name)))
        frame = history_rows(last.parent, lambda sentence: pytest.fail(sentence))
        left, refused = limits.without_refused(night, frame, last.parent)
        rows = against_history(night, left)
        limits.caveats_of(night, frame, last.parent)
    assert not refused and len(rows) == 26 * cells
    assert {row.verdict.ratio.pairs for row in rows} == {nights - 1}
    return count


def test_more_series_and_more_nights_take_no_more_passes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = passes_of(4, 1, tmp_path / "few", monkeypatch)
    assert passes_of(4, 3, tmp_path / "wide", monkeypatch) == few
    assert passes_of(12, 1, tmp_path / "long", monkeypatch) == few


def test_words_of_a_history_are_numbers(tmp_path: Path) -> None:
    last = make(tmp_path, 4, 1)
    frame = history_rows(last.parent, lambda sentence: pytest.fail(sentence))
    again = history_rows(last.parent, lambda sentence: pytest.fail(sentence))
    assert frame.equals(again) and frame.height == 4 * 26
    assert not [name for name, kind in frame.schema.items() if kind == pl.String]
    assert set(frame.columns) < set(ROWS)


def test_retention_reads_each_file_once(tmp_path: Path) -> None:
    """Also where there is something to remove."""
    nights = KEEP_NIGHTS + 10
    last = make(tmp_path, nights, 1)
    for folder in last.parent.iterdir():
        (folder / "launches").mkdir(exist_ok=True)
    OPENED["counting"] = 1
    try:
        found = retention.plan(tmp_path, "local", KEEP_NIGHTS)
        opened = Counter(OPENED)
    finally:
        OPENED.clear()
    assert len(found.removals) == 10
    assert opened["site.yaml"] == 1 and opened["manifest.json"] == nights
    assert opened["night.json"] == 10


@pytest.mark.parametrize(("more", "power"), [(11.0, 1.0), (101.0, 2.0), (1.0, -0.699)])
def test_exponents_are_without_the_start(more: float, power: float) -> None:
    less = Cost(9.9, 2.0, 0)
    assert exponent(less, Cost(9.9, more, 0), 10, 1.0) == pytest.approx(power, abs=1e-3)
    # A start of 40 s scatters by seconds.
    assert exponent(Cost(9.9, 40.1, 0), Cost(9.9, 43.0, 0), 10, 40.0) == 0


@pytest.mark.parametrize(
    ("power", "cpu_s", "memory_bytes", "largest"),
    [
        (1.0, 21.0, 10**12, 2010), (2.0, 41.0, 10**12, 2010), (0.5, 21.0, 10**12, 2010),
        (1.0, 10**6, 3 * 10**9, 3010), (1.0, 6.0, 10**12, 510), (2.0, 1.0, 10**12, 10),
    ],
)  # fmt: skip
def test_the_largest_that_somebody_would_wait_for(
    power: float, cpu_s: float, memory_bytes: float, largest: float
) -> None:
    found = {
        # What disturbed one start makes no other command seem to grow faster.
        10: [Cost(9.0, 3.0, 10**6), Cost(1.0, 1.0, 10**6)],
        510: [Cost(3.5, 6.0, 5 * 10**8)],
        # On a busy machine it takes long, and no more of its processors.
        1010: [Cost(99.0, 11.0, 10**9), Cost(12.0, 12.0, 10**9)],
    }  # fmt: skip
    assert largest_within(found, power, cpu_s, memory_bytes) == pytest.approx(largest)
