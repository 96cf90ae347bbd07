"""What the clock is too coarse for is shown with the reason, and decides nothing."""

import json
import math
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from analysis.comparison.answer import answer, tally
from analysis.comparison.caveats.limited import limited_sentences
from analysis.comparison.compare import compare
from analysis.comparison.result import Comparison
from analysis.history.two_campaigns import compare_campaigns
from analysis.report.headline import headlines
from analysis.report.one_cell import cell_tables
from analysis.report.report import write_report
from records.campaign import read_campaign
from records.limits.plausibility import limited_by_clock
from tests.analysis.support.synthetic import TWICE, Synthetic

COARSE, OTHER = "alpha-1.0", "beta-2.0"
#: A round trip of alpha takes 2 us and a half nanosecond a byte: 5000 bytes 4.5 us, 43,000 23.5 us.
SHORT, MEDIUM = "message_range=short", "message_range=medium"


def change_output(folder: Path, name: str, change: dict[str, float], where: str = "_") -> int:
    """Change the clock of an implementation's launches; return how many there are."""
    count = 0
    for path in folder.glob(f"launches/*{where}*_{name}/stdout"):
        header, *rest = path.read_text().splitlines(keepends=True)
        if '"header"' in header:
            path.write_text(json.dumps(json.loads(header) | change) + "\n" + "".join(rest))
            count += 1
    return count


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a campaign in which alpha has a clock of 1 us."""
    made = Synthetic(tmp_path / "c", TWICE, rounds=6, pairs=["Send/Recv"]).write()
    assert change_output(made, COARSE, {"clock_resolution_s": 1e-6}) == 18
    return made


def cell_of(comparison: Comparison, words: str):  # type: ignore[no-untyped-def]
    [cell] = [one for one in comparison.cells if words in one.name]
    return cell


def test_ten_steps_are_enough() -> None:
    assert limited_by_clock(9.99e-6, 1e-6) and not limited_by_clock(10e-6, 1e-6)


def test_limited_sizes_are_in_no_ratio_verdict_or_rank(folder: Path) -> None:
    comparison = compare(read_campaign(folder), base=OTHER)
    limited = [(one.cell.split("=")[-1], one.implementation, one.point.message_bytes)
               for one in comparison.limited]  # fmt: skip
    assert limited == [
        ("short", COARSE, 300), ("short", COARSE, 1800), ("short", COARSE, 4800),
        ("medium", COARSE, 5000),
    ]  # fmt: skip
    short = cell_of(comparison, SHORT)
    assert list(short.estimates) == [OTHER] and not short.verdicts
    medium = cell_of(comparison, MEDIUM)
    assert [one.message_bytes for one in medium.estimates[COARSE]] == [43_000, 100_000]
    assert [one.message_bytes for one in medium.estimates[OTHER]] == [5000, 43_000, 100_000]
    # The rest of the launches stays, and is compared over the sizes that both have.
    verdict = medium.verdicts[COARSE]
    assert verdict.ratio.pairs == 6 and verdict.words == "slower"
    assert verdict.ratio.value == pytest.approx(0.5, rel=0.1)
    assert not any("Short" in sentence and COARSE in sentence for sentence in answer(comparison))


def test_what_the_clock_cannot_time_was_measured_in_the_same_round(folder: Path) -> None:
    """Alpha has no size of the short messages that counts, whichever of the two is the base."""
    for base in (COARSE, OTHER):
        [headline] = headlines(compare(read_campaign(folder), base=base))
        assert headline.too_short == 1 and headline.without_pairs == 0
        assert "; 1 too short for the clock at every size that both have" in headline.sentence
        assert "never measured" not in headline.sentence
    # In another round is another thing.
    for path in folder.glob(f"launches/*{SHORT.replace('=', '*')}*_{COARSE}"):
        shutil.rmtree(path)
    found = compare(read_campaign(folder))
    for path in folder.glob(f"launches/round00[1-5]*medium*_{COARSE}"):
        shutil.rmtree(path)
    for path in folder.glob(f"launches/round006*medium*_{OTHER}"):
        shutil.rmtree(path)
    [headline] = headlines(compare(read_campaign(folder), base=OTHER))
    assert found.limited and headline.without_pairs == 1


def test_a_third_implementation_that_was_late_is_not_held_against_these_two(folder: Path) -> None:
    comparison = compare(read_campaign(folder), base=OTHER)
    [short] = [one for one in comparison.limited if one.point.message_bytes == 300]
    late = replace(short, point=replace(short.point, late=True))
    comparison.limited.append(replace(late, implementation="gamma-3.0"))
    [headline] = headlines(comparison)
    assert (headline.too_short, headline.late) == (1, 0)
    comparison.limited.append(late)
    [headline] = headlines(comparison)
    assert (headline.too_short, headline.late) == (0, 1)


def test_the_order_is_over_the_sizes_that_all_have(folder: Path) -> None:
    medium = cell_of(compare(read_campaign(folder)), MEDIUM)
    # Of all its own sizes beta's mean bandwidth is the lower one: it has the short message, too.
    slow = [type(one)(one.message_bytes, one.median / 1e3, one.interval, one.launches)
            if one.message_bytes == 5000 else one for one in medium.estimates[OTHER]]  # fmt: skip
    medium.estimates[OTHER] = slow
    assert medium.ranked() == [OTHER, COARSE]


def test_what_is_limited_is_shown_with_the_reason(folder: Path) -> None:
    comparison = compare(read_campaign(folder))
    [sentence] = limited_sentences(comparison)
    assert sentence == (
        "Limited by the clock: 4 points of alpha-1.0, left out of ratios, verdicts and ranks."
    )
    assert sentence in tally(comparison)
    tables = cell_tables(comparison, cell_of(comparison, MEDIUM))
    [shown] = [table for table in tables if table.title == "Limited by the clock"]
    [row] = shown.rows
    words = shown.words(row)
    assert words[1:3] == (COARSE, "5000") and float(words[-1]) == pytest.approx(4.5, rel=0.1)
    assert "below 10 steps of the clock" in shown.notes[0]
    report = write_report(folder, None, None).read_text()
    assert "<h3>Limited by the clock</h3>" in report.split('<section id="left-out">')[1]
    assert "limited-by-the-clock.csv" in report


def test_a_fine_clock_limits_nothing(tmp_path: Path) -> None:
    made = Synthetic(tmp_path / "c", TWICE, rounds=2, pairs=["Send/Recv"]).write()
    comparison = compare(read_campaign(made))
    assert comparison.limited == [] and limited_sentences(comparison) == []
    assert "Limited by the clock" not in write_report(made, None, None).read_text()


def test_rounds_are_judged_together(tmp_path: Path) -> None:
    """A size whose launches are on both sides of the limit stays in all rounds or in none."""
    made = Synthetic(tmp_path / "c", TWICE, rounds=6, pairs=["Send/Recv"], noise=0.2).write()
    times = [
        json.loads(path.read_text().splitlines()[1])["time_s"]["median"]
        for path in made.glob(f"launches/*medium*_{COARSE}/stdout")
    ]
    low, high = min(times), max(times)
    for share, rounds in ((0.1, 6), (0.9, 0)):
        limit = low * (high / low) ** share
        change_output(made, COARSE, {"clock_resolution_s": limit / 10})
        medium = cell_of(compare(read_campaign(made)), MEDIUM)
        own = [values for values in medium.values[COARSE].values() if 5000 in values]
        assert low < limit < high and len(own) == rounds


def test_what_a_reading_costs_is_no_step_of_the_clock(tmp_path: Path) -> None:
    """A clock that counts nanoseconds does, although two readings are 30 ns apart."""
    made = Synthetic(tmp_path / "c", TWICE, rounds=3, pairs=["Send/Recv"]).write()
    steps = []
    for resolution_s in (3e-8, 2e-7):
        change_output(made, COARSE, {"clock_resolution_s": resolution_s})
        steps.append(cell_of(compare(read_campaign(made)), MEDIUM).step)
    assert steps[0] < 3e-4 and steps[1] > 1e-3


def test_two_campaigns_are_judged_by_their_clocks_step(tmp_path: Path) -> None:
    """Launches that differ by less than a step say nothing by Student's test."""
    made = [
        Synthetic(tmp_path / name, TWICE, rounds=3, pairs=["Send/Recv"], noise=0.001,
                  iterations=1001, seed=seed).write()
        for seed, name in enumerate("cd")
    ]  # fmt: skip
    for path in made:
        for record in path.glob(f"launches/*medium*_{COARSE}/stdout"):
            first, *rest = record.read_text().splitlines()
            header = json.loads(first) | {"clock_tick_s": 1e-6, "clock_resolution_s": 1e-6}
            record.write_text("\n".join([json.dumps(header), *rest, ""]))
    one, other = map(read_campaign, made)
    both = compare_campaigns(one, other)
    [medium] = [row.verdict.ratio for row in both.rows
                if MEDIUM in row.cell and row.verdict.implementation == COARSE]  # fmt: skip
    assert "agree to the last digit" in medium.counted


def test_a_cell_with_nothing_else_is_not_a_cell(folder: Path) -> None:
    change_output(folder, OTHER, {"clock_tick_s": 1e-6}, where="short")
    comparison = compare(read_campaign(folder))
    assert not any(SHORT in cell.name for cell in comparison.cells)
    assert {one.implementation for one in comparison.limited if SHORT in one.cell} == {
        COARSE, OTHER,
    }  # fmt: skip
    assert comparison.implementations == [COARSE, OTHER] and write_report(folder, None, None)


def test_two_campaigns_are_compared_without_it(folder: Path, tmp_path: Path) -> None:
    other = Synthetic(tmp_path / "d", TWICE, rounds=6, pairs=["Send/Recv"], seed=2).write()
    rows = compare_campaigns(read_campaign(folder), read_campaign(other)).rows
    cells = {row.cell for row in rows if row.verdict.implementation == COARSE}
    assert not any(SHORT in cell for cell in cells) and any(MEDIUM in cell for cell in cells)
    [medium] = [row for row in rows
                if MEDIUM in row.cell and row.verdict.implementation == COARSE]  # fmt: skip
    assert math.isclose(medium.verdict.ratio.value, 1, rel_tol=0.2)
