"""A check that lost its launches takes the verdict from no other, and is named as left out."""

import math
import shutil
from pathlib import Path

import pytest

from analysis.comparison.answer import sentences_of
from analysis.comparison.compare import compare, log_ratios
from analysis.comparison.families import over_cells
from analysis.comparison.ranking import ranked
from analysis.comparison.result import Group, enough_rounds
from analysis.comparison.tables import (
    contradicts,
    group_table,
    one_below_the_other,
    side_by_side,
    sizes_beside,
)
from analysis.history.tables import group_sentences
from analysis.history.two_campaigns import compare_campaigns
from analysis.precision.rounds_needed import plans
from records.campaign import read_campaign
from tests.analysis.support.synthetic import TWICE, Synthetic, Truth

ROUNDS = 4
PAIRS = ["Send/Recv", "Isend/Irecv", "Ssend/Recv"]
LOST = "PointToPoint pair=Send/Recv message_range=short"


def flaky(folder: Path, seed: int = 1) -> Path:
    """Write a campaign in which one implementation keeps one launch of a check, of four."""
    path = Synthetic(folder, TWICE, rounds=ROUNDS, pairs=PAIRS, noise=0.05, seed=seed).write()
    for number in range(2, ROUNDS + 1):
        pattern = f"round{number:03d}_*=Send_Recv_message_range=short_beta*"
        [lost] = (path / "launches").glob(pattern)
        shutil.rmtree(lost)
    return path


def short(folder: Path) -> Group:
    groups = compare(read_campaign(folder)).groups
    return next(group for group in groups if group.name.startswith("Short messages"))


def test_a_group_is_judged_without_a_check_that_cannot_be(tmp_path: Path) -> None:
    group = short(flaky(tmp_path / "c"))
    verdict = group.verdicts["beta-2.0"]
    assert verdict.words == "faster" and (verdict.cells, len(group.cells)) == (2, 3)
    assert group.left_out == {"beta-2.0": [LOST]}
    [sentence] = sentences_of(group)
    assert sentence.startswith(
        f"{group.name}, without {LOST} (too few rounds): beta-2.0 is faster than alpha-1.0 by "
    )
    # The ratio is over the others alone.
    others = [cell for cell in group.cells if cell.name != LOST]
    logs = [value for cell in others for value in cell.log_ratios["beta-2.0"].values()]
    assert math.log(verdict.ratio.value) == pytest.approx(sum(logs) / len(logs))
    assert verdict.ratio.counted == f"{ROUNDS} paired rounds"


def test_what_is_left_out_is_in_no_rank_and_in_no_plan(tmp_path: Path) -> None:
    path = flaky(tmp_path / "c")
    group = short(path)
    ranks = ranked(group, "alpha-1.0")
    assert [list(ranks.words(row)[:3]) for row in ranks.rows] == [
        ["1", "beta-2.0", "2 of 3"], ["2", "alpha-1.0", "3 of 3"],
    ]  # fmt: skip
    comparison = compare(read_campaign(path))
    [plan] = [one for one in plans(comparison, 0.02, 0.8) if one.name == group.name]
    assert plan.seen == ROUNDS
    table = group_table(comparison)
    places = [column.name for column in table.columns]
    name, launches = places.index("group"), places.index("launch_names")
    names = [row.values[launches] for row in table.rows if row.values[name] == group.name]
    assert len(names) == 1 and "Isend_Irecv" in names[0] and "=Send_Recv" not in names[0]


def test_a_group_of_which_one_check_is_left_has_its_verdict(tmp_path: Path) -> None:
    path = flaky(tmp_path / "c")
    for lost in (path / "launches").glob("round00[2-4]_*Ssend_Recv_message_range=short_beta*"):
        shutil.rmtree(lost)
    group = short(path)
    [left] = [cell for cell in group.cells if "Isend" in cell.name]
    assert group.verdicts["beta-2.0"] is left.verdicts["beta-2.0"]
    assert len(group.left_out["beta-2.0"]) == 2


def test_where_no_check_can_be_judged_the_group_says_so(tmp_path: Path) -> None:
    path = Synthetic(tmp_path / "c", TWICE, rounds=1, pairs=PAIRS).write()
    group = short(path)
    assert group.verdicts["beta-2.0"].words == "inconclusive (1 paired round)"
    assert group.verdicts["beta-2.0"].cells == 3 and not group.left_out


def test_so_it_is_between_two_campaigns(tmp_path: Path) -> None:
    whole = Synthetic(tmp_path / "b", TWICE, rounds=ROUNDS, pairs=PAIRS, noise=0.05, seed=3)
    found = compare_campaigns(read_campaign(flaky(tmp_path / "a")), read_campaign(whole.write()))
    [group] = [
        row
        for row in found.groups
        if row.cell.startswith("Short") and row.verdict.implementation == "beta-2.0"
    ]
    assert group.verdict.words == "no difference shown" and group.verdict.is_told
    assert group.cells == group.verdict.cells == 2 and group.left_out == (LOST,)
    assert any(
        f"(2 cells, without {LOST} (too few rounds))" in one for one in group_sentences(found)
    )
    assert all(row.left_out == () for row in found.groups if row is not group)


def test_two_rounds_are_needed_that_all_series_of_a_check_have() -> None:
    whole, half, one = {1, 2, 3}, {1, 2}, {3}
    assert enough_rounds([("a", [whole]), ("b", [one]), ("b", [half])]) == [True, False, True]
    assert enough_rounds([("a", [half]), ("a", [{2, 3}]), ("b", [half])]) == [False, False, True]
    assert enough_rounds([("a", [whole, one]), ("b", [half, half])]) == [False, True]
    assert enough_rounds([("a", [one]), ("b", [one])]) == [True, True]
    assert enough_rounds([]) == []


def test_a_median_is_of_the_sizes_of_the_ratio_beside_it(tmp_path: Path) -> None:
    """Beta is far faster at small messages and slower at the largest: the ratio is over both."""
    truths = {"alpha-1.0": Truth(1e-6, 8e9, 30e9), "beta-2.0": Truth(2e-7, 2e9, 60e9)}
    path = Synthetic(tmp_path / "c", truths, pairs=["Send/Recv"]).write()
    comparison = compare(read_campaign(path))
    cells = {cell.name: cell for cell in comparison.cells}
    short = cells[LOST]
    largest = [short.estimate(name, short.message_sizes()[-1]) for name in truths]
    assert largest[0] and largest[1] and largest[0].median > largest[1].median
    assert short.verdicts["beta-2.0"].ratio.value > 1 and not contradicts(short, "beta-2.0")
    table = side_by_side(comparison, "PointToPoint", True)
    words = [dict(zip([c.heading for c in table.shown], table.words(row), strict=True))
             for row in table.rows]  # fmt: skip
    count = len(short.message_sizes())
    assert words[0]["medians over"].startswith(f"{count}: ")
    assert words[0]["medians over"].endswith(" to 4.8 kB")
    medians = [table.value(table.rows[0], f"median of {name}") for name in truths]
    assert medians[1] / medians[0] == pytest.approx(
        short.verdicts["beta-2.0"].ratio.value, rel=0.02
    )
    assert table.notes == [
        "Medians, like the ratios beside them, cover the sizes named; over several sizes they "
        "are geometric means."
    ]
    # Where there are no messages there is no size to name, and where all agree nothing to say.
    table = side_by_side(comparison, "Linpack", True)
    assert "medians over" not in [column.heading for column in table.shown] and not table.notes


def test_a_median_of_other_sizes_than_the_ratio_s_is_not_shown(tmp_path: Path) -> None:
    path = Synthetic(tmp_path / "c", TWICE, pairs=["Send/Recv"]).write()
    comparison = compare(read_campaign(path))
    [cell] = [cell for cell in comparison.cells if cell.name == LOST]
    assert sizes_beside(cell) == cell.message_sizes()
    # In one round a size is lost: the ratio is of other sizes in that round.
    number = next(iter(cell.values["beta-2.0"]))
    cell.values["beta-2.0"][number].pop(4800)
    assert sizes_beside(cell) == [] and not contradicts(cell, "beta-2.0")
    for table in (side_by_side(comparison, "PointToPoint", True),
                  one_below_the_other(comparison, "PointToPoint", True)):  # fmt: skip
        [row] = [one for one in table.rows if one.values[0] == "Send/Recv short"][:1]
        assert not [value for column, value in zip(table.columns, row.values, strict=True)
                    if column.name.startswith("median") and value is not None]  # fmt: skip
        assert "No medians are given beside the ratios of 1 (Send/Recv short)" in table.notes[1]
    cell.values["beta-2.0"].clear()
    cell.verdicts.clear()
    assert sizes_beside(cell) == []


def test_blocks_are_in_the_order_in_which_they_were_finished() -> None:
    """A look at the first two is the same before and after a RESUME fills the second round."""
    base = {number: {0: 1.0} for number in (1, 2, 3)}
    of = {1: {0: 2.0}, 2: {0: 8.0}, 3: {0: 4.0}}
    assert list(log_ratios(of, base, 1)) == [1, 2, 3]
    finished = {1: "2026-01-01T00:00:01.000Z", 3: "2026-01-01T00:00:03.000Z",
                2: "2026-01-01T00:00:09.000Z"}  # fmt: skip
    ordered = log_ratios(of, base, 1, finished)
    assert list(ordered) == [1, 3, 2]
    assert over_cells([ordered, log_ratios(of, base, 1, finished)])[:2] == [
        math.log(2),
        math.log(4),
    ]
