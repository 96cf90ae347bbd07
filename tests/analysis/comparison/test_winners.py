"""Every two implementations are compared in one family, and winners are those that it shows."""

from pathlib import Path

import pytest

from analysis.comparison.compare import compare, compare_all_pairs
from analysis.comparison.families import family_of
from analysis.comparison.winners import contests, winners_table
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


def test_winners_and_ties(tmp_path: Path) -> None:
    found = {one.name: one for one in contests([read_campaign(campaign(tmp_path / "c"))])}
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
