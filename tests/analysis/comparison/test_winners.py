"""Every two implementations are compared in one family, and winners are those that it shows."""

from pathlib import Path

import pytest

from analysis.comparison.answer import answer
from analysis.comparison.compare import compare, compare_all_pairs
from analysis.comparison.confirmed import held_against
from analysis.comparison.families import family_in, family_of
from analysis.comparison.result import Comparison
from analysis.comparison.winners import contests, winners_table
from analysis.precision.outlook import open_cells
from analysis.precision.rounds_needed import family_sizes
from analysis.precision.waves import open_series
from analysis.report.all_tables import compared_tables
from analysis.report.campaign_end import ending
from analysis.report.headline import headlines
from analysis.report.report import report_on
from inference.families import DIFFERENCE_ERROR
from records.campaign import read_campaign
from tests.analysis.support.in_process import analysis
from tests.analysis.support.synthetic import TWICE, Synthetic, Truth

#: Beta and gamma are alike at messages, alpha is beaten; at Linpack gamma is the slowest.
THREE = {
    "alpha-1.0": Truth(1e-6, 4e9, 30e9),
    "beta-2.0": Truth(5e-7, 8e9, 30e9),
    "gamma-3.0": Truth(5e-7, 8e9, 20e9),
}


def campaign(folder: Path, seed: int = 1, **more: object) -> Path:
    made = Synthetic(folder, THREE, rounds=6, pairs=["Send/Recv"], seed=seed)
    for key, value in more.items():
        setattr(made, key, value)
    return made.write()


def test_a_family_is_of_all_pairs(tmp_path: Path) -> None:
    path = campaign(tmp_path / "c")
    comparisons = compare_all_pairs(read_campaign(path))
    pairs = [(one.base, name) for one in comparisons for name in one.cells[0].verdicts]
    assert pairs == [
        ("alpha-1.0", "beta-2.0"), ("alpha-1.0", "gamma-3.0"), ("beta-2.0", "gamma-3.0"),
    ]  # fmt: skip
    family = [
        verdict
        for one in comparisons
        for verdict in family_of(
            one.experiment("Linpack"), [g for g in one.groups if g.experiment == "Linpack"]
        )
    ]
    # Two cells and their group, of three pairs.
    assert len(family) == 9
    least = min(family, key=lambda one: one.ratio.p_value or 1)
    assert least.adjusted_p == pytest.approx(9 * (least.ratio.p_value or 0))
    with_base = compare(read_campaign(path)).cells[-1].verdicts["gamma-3.0"]
    of_pairs = comparisons[0].cells[-1].verdicts["gamma-3.0"]
    assert with_base.ratio == of_pairs.ratio
    assert (with_base.adjusted_p or 0) <= (of_pairs.adjusted_p or 0) < DIFFERENCE_ERROR
    assert with_base.interval and of_pairs.interval
    assert of_pairs.interval.low < with_base.interval.low


def test_of_two_implementations_pairs_are_what_a_base_has(tmp_path: Path) -> None:
    path = Synthetic(tmp_path / "c", TWICE, pairs=["Send/Recv"]).write()
    [one], other = compare_all_pairs(read_campaign(path)), compare(read_campaign(path))
    assert one.cells == other.cells and one.groups == other.groups
    alone = Synthetic(tmp_path / "a", {"alpha-1.0": TWICE["alpha-1.0"]}, pairs=["Send/Recv"])
    assert compare_all_pairs(read_campaign(alone.write())) == []


@pytest.fixture(scope="module")
def declared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a campaign whose design compares all pairs."""
    return campaign(tmp_path_factory.mktemp("declared") / "c", facts={"all_pairs": True})


def claims_of(comparisons: list[Comparison]) -> dict[tuple[str, ...], tuple[float, bool]]:
    """Return each pair's corrected p and whether it differs, by cell, whatever its base is."""
    return {
        (cell.name, *sorted((name, one.base))): (verdict.adjusted_p or 0.0, verdict.is_different)
        for one in comparisons
        for cell in one.cells
        for name, verdict in cell.verdicts.items()
    }


def test_a_series_has_one_verdict_for_each_pair_whatever_the_base_is(declared: Path) -> None:
    read = read_campaign(declared)
    expected = claims_of(compare_all_pairs(read))
    assert len(expected) == 3 * len(compare(read).cells)
    for base in THREE:
        found = compare(read, base)
        assert found.base == base and len(found.pairs) == 2
        assert claims_of(found.pairs) == {key: pytest.approx(of) for key, of in expected.items()}
        # An interval leaves out 1 only with a verdict, from either side.
        for cell in [cell for one in found.pairs for cell in one.cells]:
            for one in cell.verdicts.values():
                assert one.interval is not None
                assert (one.interval.low > 1 or one.interval.high < 1) == one.is_different
    assert family_sizes(compare(read))["Linpack"] == 9
    # That the base alone is compared is the same as before.
    assert not compare(read_campaign(campaign(declared.parent / "other"))).among_others


def test_what_is_open_in_any_pair_gets_time(declared: Path) -> None:
    comparison = compare(read_campaign(declared), "alpha-1.0")
    pairs = {pair for pair, _ in open_series(comparison)}
    # Beta and gamma are alike at messages, and no time would be spent on them against a base.
    assert ("beta-2.0", "gamma-3.0") in pairs
    series = [one for pair, one in open_series(comparison) if pair == ("beta-2.0", "gamma-3.0")]
    [message] = {one.difference_level for one in series if one.experiment == "PointToPoint"}
    still = [one for one in family_in(comparison.pairs, "PointToPoint") if not one.is_different]
    assert message == pytest.approx(DIFFERENCE_ERROR / len(still))
    found = open_cells(comparison)
    assert {(one.base, one.implementation) for one in found.cells} == pairs
    assert [(one.base, one.implementation) for one in headlines(comparison, found)] == [
        ("alpha-1.0", "beta-2.0"), ("alpha-1.0", "gamma-3.0"), ("beta-2.0", "gamma-3.0"),
    ]  # fmt: skip


def test_all_pairs_are_in_the_tables_the_report_and_the_last_lines(declared: Path) -> None:
    read = read_campaign(declared)
    comparison = compare(read)
    tables = {table.name: table for table in compared_tables(comparison)}
    assert tables["winners"].rows == winners_table([read]).rows
    [named] = [
        place for place, of in enumerate(tables["answers"].columns) if of.name == "implementations"
    ]
    pairs = [row.values[named] for row in tables["answers"].rows]
    assert len(pairs) == 3 * len(comparison.groups) and ("gamma-3.0", "beta-2.0") in pairs
    assert len(tables["ratios-Linpack"].rows) == 3 * len(comparison.experiment("Linpack"))
    said = "\n".join(ending(comparison))
    assert "Differences between every two" in said and "gamma-3.0 slower than beta-2.0 by" in said
    assert len(said.splitlines()) <= 25
    assert any("gamma-3.0 is slower than beta-2.0" in one for one in answer(comparison))
    # Against another base, what both campaigns have is held against each other the same way round.
    claims = held_against(comparison, compare(read, "gamma-3.0"))
    assert {(one.own.implementation, one.own.base) for one in claims} == {("beta-2.0", "alpha-1.0")}
    held = held_against(comparison, compare(read))
    assert len({(one.own.implementation, one.own.base) for one in held}) == 3
    page = report_on(read, comparison, declared / "report.html").read_text()
    assert "gamma-3.0 against beta-2.0" in page and "Which implementation to use" in page
    # Beside the curves: a band that leaves out 1 is no verdict.
    assert "there is no correction over curves" in page and "Only verdicts say whether" in page


def test_winners_and_ties(tmp_path: Path) -> None:
    found = {
        one.name: one
        for one in contests([compare_all_pairs(read_campaign(campaign(tmp_path / "c")))])
    }
    short, linpack = found["Short messages, all pairs"], found["Linpack, all cells"]
    assert sorted(short.unbeaten()) == ["beta-2.0", "gamma-3.0"] and short.beaten["alpha-1.0"] == 1
    assert sorted(linpack.unbeaten()) == ["alpha-1.0", "beta-2.0"] and linpack.beaten["gamma-3.0"]
    assert linpack.best_first()[-1] == "gamma-3.0" and short.best_first()[-1] == "alpha-1.0"


def test_the_table_of_one_campaign_and_of_several(tmp_path: Path) -> None:
    one = Synthetic(tmp_path / "one", TWICE, rounds=6, pairs=["Send/Recv"]).write()
    done = analysis("winners", str(one), "--no-pager")
    assert done.returncode == 0
    [short] = [line for line in done.stdout.splitlines() if "Short messages" in line]
    assert [word.strip() for word in short.split("│")[2:-1]] == ["1", "beta-2.0", "–", "alpha-1.0"]
    [linpack] = [line for line in done.stdout.splitlines() if "Linpack" in line]
    cells = [word.strip() for word in linpack.split("│")[3:-1]]
    assert cells[0] == cells[2] == "–" and sorted(cells[1].split(", ")) == ["alpha-1.0", "beta-2.0"]
    # The other day it is the other way round, and nothing wins.
    swapped = dict(zip(TWICE, reversed(TWICE.values()), strict=True))
    other = Synthetic(tmp_path / "other", swapped, rounds=6, pairs=["Send/Recv"], seed=2).write()
    table = winners_table([read_campaign(one), read_campaign(other)])
    row = dict(zip([c.name for c in table.columns], table.rows[0].values, strict=True))
    assert row["winner"] is None and row["tied"] is None and row["campaigns"] == 2
    assert sorted(str(row["slower"]).split(", ")) == [
        "alpha-1.0 (in 1 of 2)", "beta-2.0 (in 1 of 2)",
    ]  # fmt: skip
    assert any("2 campaigns" in note for note in table.notes)


def test_what_cannot_be_contested_is_one_sentence(tmp_path: Path) -> None:
    one = str(campaign(tmp_path / "one"))
    other = str(campaign(tmp_path / "other", facts={"site": "big"}))
    alone = Synthetic(tmp_path / "a", {"alpha-1.0": TWICE["alpha-1.0"]}, pairs=["Send/Recv"])
    for arguments, sentence in (
        ((one, other), "are not of one site and tier: one: local, quick; other: big, quick"),
        ((one, one), "a campaign is named twice; each counts once"),
        ((str(alone.write()),), "no two implementations have sound launches"),
    ):
        done = analysis("winners", *arguments)
        assert done.returncode == 1 and sentence in done.stderr
