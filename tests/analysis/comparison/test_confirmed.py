"""A campaign's verdicts are held against those of another one that measured the same cells."""

from dataclasses import replace
from pathlib import Path

import pytest

from analysis.comparison.compare import compare
from analysis.comparison.confirmed import Held, confirmed_tables, held_against
from analysis.comparison.result import Comparison
from analysis.comparison.verdict import Verdict
from inference.families import FamilyClaim
from inference.intervals import Interval, Ratio
from records.campaign import read_campaign
from tests.analysis.support.in_process import analysis
from tests.analysis.support.synthetic import TWICE, Synthetic, Truth

SAME = dict.fromkeys(TWICE, TWICE["alpha-1.0"])
SWAPPED = dict(zip(TWICE, reversed(TWICE.values()), strict=True))


def campaign(folder: Path, truths: dict[str, Truth], **more: object) -> Path:
    made = Synthetic(folder, truths, rounds=8, pairs=["Send/Recv"])
    for key, value in more.items():
        setattr(made, key, value)
    return made.write()


def comparison(folder: Path, truths: dict[str, Truth], **more: object) -> Comparison:
    return compare(read_campaign(campaign(folder, truths, **more)))


def outcomes(one: Comparison, other: Comparison) -> dict[str, str | None]:
    return {held.name: held.outcome for held in held_against(one, other)}


def test_a_longer_campaign_confirms_and_contradicts(tmp_path: Path) -> None:
    short = comparison(tmp_path / "short", TWICE)
    long = comparison(tmp_path / "long", TWICE, rounds=12, seed=2)
    other = comparison(tmp_path / "other", SWAPPED, rounds=12, seed=3)
    of_long = outcomes(short, long)
    differing = {cell.name for cell in short.cells for v in cell.verdicts.values()
                 if v.is_different}  # fmt: skip
    assert len(differing) == 3 and "Linpack" not in "".join(differing)
    assert {name: of_long[name] for name in differing} == dict.fromkeys(differing, "confirmed")
    contradicted = {name for name, said in outcomes(short, other).items() if said == "contradicted"}
    assert differing <= contradicted and not any("Linpack" in name for name in contradicted)
    # The other way round just the same.
    assert outcomes(other, short).items() >= dict.fromkeys(differing, "contradicted").items()


def test_what_is_equivalent_here_and_differs_there_by_more_than_the_margin(tmp_path: Path) -> None:
    equal = comparison(tmp_path / "equal", SAME, noise=0.0005, rounds=12, iterations=301)
    differs = comparison(tmp_path / "differs", TWICE)
    told = outcomes(equal, differs)
    messages = {name: said for name, said in told.items() if "PointToPoint" in name}
    assert len(messages) == 3 and set(messages.values()) == {"contradicted"}
    assert {said for name, said in outcomes(differs, equal).items() if name in messages} == {
        "contradicted"
    }
    assert outcomes(equal, equal).items() >= dict.fromkeys(messages, "confirmed").items()


def verdict(value: float, low: float, high: float, words: str) -> Verdict:
    """Return a verdict with an interval, that shows what it says."""
    interval = Interval(low, high, 0.95)
    claim = FamilyClaim(
        0.001 if words == "differs" else 1.0, 0.001 if words == "equals" else 1.0, interval
    )
    ratio = Ratio(value, interval, 0.001, 8, counted="8 paired rounds")
    return Verdict("b", "a", ratio, 0.02, claim)


@pytest.mark.parametrize(
    ("own", "other", "said"),
    [
        # A small difference may well be within the margin, so both may be true.
        ((1.01, 1.005, 1.015, "differs"), (1.0, 0.99, 1.01, "equals"), "not told"),
        ((1.10, 1.05, 1.15, "differs"), (1.0, 0.99, 1.01, "equals"), "contradicted"),
        ((0.90, 0.85, 0.95, "differs"), (1.0, 0.99, 1.01, "equals"), "contradicted"),
        ((1.0, 0.99, 1.01, "equals"), (1.10, 1.05, 1.15, "differs"), "contradicted"),
        ((1.0, 0.99, 1.01, "equals"), (1.01, 1.005, 1.015, "differs"), "not told"),
        ((1.10, 1.05, 1.15, "differs"), (0.97, 0.90, 1.04, "nothing"), "not told"),
        ((1.0, 0.99, 1.01, "equals"), (1.0, 0.90, 1.10, "nothing"), "not told"),
        ((1.0, 0.90, 1.10, "nothing"), (1.10, 1.05, 1.15, "differs"), None),
    ],
)
def test_only_what_cannot_both_be_true_is_a_contradiction(
    own: tuple[float, float, float, str], other: tuple[float, float, float, str], said: str | None
) -> None:
    held = Held("c", "Linpack", "Linpack n=1", True, verdict(*own), verdict(*other))
    assert held.outcome == said
    assert held.is_apart == (own[1] > other[2] or other[1] > own[2])
    assert held.points_away == (own[3] == "differs" and other[0] == 0.97)


def test_tables_count_series_claims_and_contradictions(tmp_path: Path) -> None:
    short = comparison(tmp_path / "short", TWICE)
    other = comparison(tmp_path / "other", SWAPPED, rounds=12, seed=3)
    by_experiment, by_campaign = confirmed_tables(other, [short, other])
    rows = {row.values[0]: by_experiment.record(row)[1:] for row in by_experiment.rows}
    held = held_against(short, other) + held_against(other, other)
    series = [one for one in held if one.is_series]
    last = rows["all experiments"]
    assert list(rows) == ["PointToPoint", "Linpack", "all experiments"]
    assert last[:2] == (len(series), sum(one.outcome is not None for one in series))
    of_short = held_against(short, other)
    wrong = [one for one in of_short if one.outcome == "contradicted"]
    assert rows["PointToPoint"][5] == last[5] == len(wrong) > 2
    assert last[6] == pytest.approx(len(wrong) / sum(one.outcome is not None for one in held))
    assert [by_campaign.value(row, "contradicted") for row in by_campaign.rows] == [len(wrong), 0]
    assert sum(
        "contradicted" in note and "there slower" in note for note in by_experiment.notes
    ) == (len(wrong))
    headings = [column.heading for column in by_experiment.shown]
    assert len(set(headings)) == len(headings)
    assert {"decided, of series", "contradicted, of claims"} <= set(headings)
    # What the other one does not judge counts nowhere.
    cells = [replace(cell, verdicts={name: replace(one, unjudged="oversubscribed")
                                     for name, one in cell.verdicts.items()})
             for cell in other.cells]  # fmt: skip
    assert not [one for one in held_against(short, replace(other, cells=cells)) if one.is_series]


def test_what_cannot_be_held_against_each_other_is_one_sentence(tmp_path: Path) -> None:
    one = str(campaign(tmp_path / "one", TWICE))
    two = str(campaign(tmp_path / "two", TWICE, seed=2))
    done = analysis("confirm", two, one, "--no-pager")
    assert done.returncode == 0 and "all experiments" in done.stdout and "one" in done.stdout
    elsewhere = str(campaign(tmp_path / "elsewhere", TWICE, facts={"site": "big"}))
    rebuilt = str(campaign(tmp_path / "rebuilt", TWICE, first_image=7))
    more = str(campaign(tmp_path / "more", {"aardvark-1.0": SAME["alpha-1.0"], **TWICE},
                        first_image=0))  # fmt: skip
    for arguments, sentence in (
        ((one, elsewhere), "are not of one site and tier: one: local, quick; elsewhere: big"),
        ((one, one), "a campaign is named twice; each counts once"),
        ((one, rebuilt), "did not measure the same image alpha-1.0: their digests differ"),
        ((one, more), "one compares with alpha-1.0, and another one with aardvark-1.0"),
    ):
        done = analysis("confirm", *arguments)
        assert done.returncode == 1 and sentence in done.stderr
    done = analysis("confirm", one, more, "--base", "alpha-1.0", "--no-pager")
    assert done.returncode == 0
