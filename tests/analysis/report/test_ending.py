"""How a campaign ends in the terminal: the answer in few lines, each of which is true."""

import json
import re
import sys
from pathlib import Path

import pytest

from analysis.comparison.compare import compare
from analysis.comparison.result import Comparison
from analysis.precision.outlook import is_open, open_cells
from analysis.report.campaign_end import CALLERS_PATH, MOST_LINES, beforehand, differences, ending
from analysis.report.headline import Headline, headlines
from analysis.report.report import write_report
from records import layout
from records.campaign import read_campaign
from tests.analysis.support.in_process import analysis
from tests.analysis.support.synthetic import TWICE, Synthetic, Truth
from tests.busy_campaign import busy_campaign

PROJECT = Path(__file__).resolve().parents[3]


def of(folder: Path, **more: object) -> Comparison:
    """Return the comparison of a synthetic campaign."""
    made = Synthetic(folder / "campaign", TWICE, noise=0.02)
    for key, value in more.items():
        setattr(made, key, value)
    return compare(read_campaign(made.write()))


@pytest.fixture(scope="module")
def sample() -> Comparison:
    return compare(read_campaign(busy_campaign()))


def counted(one: Headline) -> tuple[int, ...]:
    return (one.series, one.faster, one.slower, one.equivalent, one.open)


def test_the_headline_counts_verdicts_on_series(sample: Comparison) -> None:
    [one] = headlines(sample)
    verdicts = [verdict for cell in sample.cells for verdict in cell.verdicts.values()]
    assert one.unjudged == sum(bool(verdict.unjudged) for verdict in verdicts) > 0
    judged = [verdict for verdict in verdicts if not verdict.unjudged]
    words = [verdict.words for verdict in judged]
    assert one.series == len(judged) == one.faster + one.slower + one.equivalent + one.open
    assert (one.faster, one.slower) == (words.count("faster"), words.count("slower"))
    assert one.faster and one.slower and one.open == sum(map(is_open, judged))
    assert one.outlook and len(one.outlook.cells) == one.open
    assert len(one.outlook.soon) + one.outlook.unlikely + one.outlook.untold == one.open
    assert one.sentence.startswith(
        f"openmpi-5.0.11 is faster than mpich-5.0.2 in {one.faster} of {one.series} series, "
        f"slower in {one.slower}; {one.open} open: "
    )


def test_equivalent_series_are_counted_with_their_margin(tmp_path: Path) -> None:
    same = {"alpha-1.0": TWICE["alpha-1.0"], "beta-2.0": TWICE["alpha-1.0"]}
    [one] = headlines(of(tmp_path, truths=same, noise=0.0005, rounds=9))
    assert one.equivalent > 0 and one.margins == (0.02,)
    assert f"equivalent within 2% in {one.equivalent}" in one.sentence


def test_of_one_round_nothing_is_foretold(tmp_path: Path) -> None:
    comparison = of(tmp_path, rounds=1)
    [one] = headlines(comparison)
    assert counted(one) == (26, 0, 0, 0, 26) and one.outlook is None
    assert one.sentence.endswith("; 26 open.")
    said = ending(comparison)
    assert "No difference is shown." in said
    assert "  too few data to predict: PointToPoint (24), Linpack (2)" in said


def test_the_time_is_of_all_launches_of_the_experiment(tmp_path: Path) -> None:
    """Linpack's two series differ in nothing; each of its four launches takes a second a round."""
    close = {"alpha-1.0": Truth(1e-6, 4e9, 30e9), "beta-2.0": Truth(1e-6, 4e9, 33e9)}
    found = open_cells(of(tmp_path, truths=close, noise=0.03)).of(experiment="Linpack")
    assert found.round_s["Linpack"] == 4
    assert found.rounds and found.seconds == 4 * found.rounds["Linpack"]


def test_an_ending_is_short_and_has_the_largest_differences_first(tmp_path: Path) -> None:
    comparison = of(tmp_path, rounds=8)
    said = ending(comparison)
    assert len(said) <= MOST_LINES
    factors = [float(one.split("factor of ")[1].split()[0]) for one in said if "factor of" in one]
    every = differences(comparison)
    assert len(every) > len(factors) > 10 and factors == sorted(factors, reverse=True)
    assert f"  … and {len(every) - len(factors)} more differences" in said
    largest = max(verdict.ratio.value for _, verdict in every)
    assert factors[0] == pytest.approx(largest, abs=0.01)
    assert "python -m analysis table campaign" in said[-1]


def test_what_comes_before_a_command_is_said_where_the_shell_has_another_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv(CALLERS_PATH, raising=False)
    assert beforehand() == " (after . ./activate)"
    other = tmp_path / "python"
    other.symlink_to("/bin/true")
    assert beforehand() == " (after . ./activate)"
    monkeypatch.setenv("PATH", f"{sys.prefix}/bin:{tmp_path}")
    assert beforehand() == ""
    # As in what make starts: its recipes are activated, and the shell that it was called from not.
    monkeypatch.setenv(CALLERS_PATH, str(tmp_path))
    assert beforehand() == " (after . ./activate)"
    monkeypatch.setenv(layout.HOME, str(tmp_path))
    assert beforehand() == f" (after . {layout.installation()}/activate)"


def test_what_is_open_is_named_with_what_would_decide_it(sample: Comparison) -> None:
    said = ending(sample)
    assert len(said) <= MOST_LINES
    [title] = [place for place, one in enumerate(said) if one.startswith("Still open; ")]
    assert "make run SITE=local TIER=quick IMAGES=openmpi-5.0.11,mpich-5.0.2 ROUNDS=" in said[title]
    found = open_cells(sample)
    rounds, own = found.rounds["PointToPoint"], found.of(experiment="PointToPoint")
    assert said[title + 1].startswith(
        f"  PointToPoint: {len(own.soon)} of {len(own.cells)} open series with {rounds} rounds"
    )
    unlikely = sum(map(int, re.findall(r"\((\d+)\)", said[title + 2])))
    assert unlikely == found.unlikely > 0


#: A line of a difference: the direction, the factor, the ratio, the ends of its interval.
DIFFERS = re.compile(
    r"  .+: [\w.-]+ (faster|slower) by a factor of ([\d.]+) \(([\d.]+); (.+) – (.+)\)"
)


def test_the_readme_shows_an_answer_as_it_is_printed_today(
    sample: Comparison, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its campaign is not in the repository, so its numbers are held against each other."""
    monkeypatch.setenv(CALLERS_PATH, "/usr/bin:/bin")
    [block] = [
        one for one in (PROJECT / "README.md").read_text().split("```")[1::2]
        if "Differences from" in one
    ]  # fmt: skip
    lines = block.strip().splitlines()
    [first] = [place for place, one in enumerate(lines) if " is faster than " in one]
    shown = lines[first:]
    assert len(shown) <= MOST_LINES + 3 and shown[-1].startswith("report: runs/")
    # The sentences without numbers are those of today.
    frame = [
        one
        for one in ending(sample)
        if one.startswith(("Differences from", "Still open; ", "All "))
    ]
    name = shown[-1].split("/")[1]
    assert len(frame) == 3 and all(one.replace("sample", name) in shown for one in frame)
    said = " ".join(" ".join(shown[:3]).split())
    numbers = re.match(
        r"[\w.-]+ is faster than [\w.-]+ in (\d+) of (\d+) series, slower in (\d+)"
        r"(?:, equivalent within [\w% ]+ in (\d+))?; (\d+) open: ",
        said,
    )
    assert numbers, said
    faster, series, slower, equivalent, still_open = (int(one or 0) for one in numbers.groups())
    assert faster + slower + equivalent + still_open == series
    told = [found.groups() for one in shown if (found := DIFFERS.fullmatch(one))]
    factors = [float(factor) for _, factor, *_ in told]
    assert len(told) > 3 and factors == sorted(factors, reverse=True)
    for way, factor, ratio, low, high in told:
        assert max(float(ratio), 1 / float(ratio)) == pytest.approx(float(factor), rel=0.01)
        beyond = low if way == "faster" else high
        assert beyond in ("over 1", "under 1") or (float(beyond) > 1) == (way == "faster")
    [more] = [int(one.split()[2]) for one in shown if one.endswith("more differences")]
    assert len(told) + more >= faster + slower


def test_three_implementations_have_a_headline_each(tmp_path: Path) -> None:
    three = {**TWICE, "gamma-3.0": Truth(1e-6, 4e9, 20e9)}
    comparison = of(tmp_path, truths=three, rounds=8)
    assert [one.implementation for one in headlines(comparison)] == ["beta-2.0", "gamma-3.0"]
    said = ending(comparison)
    assert len(said) <= MOST_LINES
    assert said[-1].endswith("python -m analysis winners campaign")
    assert [one.split()[0] for one in said if " is faster than alpha-1.0 " in one] == [
        "beta-2.0", "gamma-3.0",
    ]  # fmt: skip


COMPARING = re.compile(r"faster|slower|ratio|verdict|difference|base|equivalent|open\b", re.I)


@pytest.mark.parametrize(("pairs", "first"), [(2, "  PointToPoint pair="), (8, "  PointToPoint, ")])
def test_one_implementation_has_levels_and_no_comparison(
    tmp_path: Path, pairs: int, first: str
) -> None:
    made = Synthetic(tmp_path / "campaign", {"alpha-1.0": TWICE["alpha-1.0"]})
    made.pairs = made.pairs[:pairs]
    done = analysis("answer", str(made.write()))
    said = done.stdout.splitlines()
    assert done.returncode == 0 and len(said) <= MOST_LINES
    assert said[0].startswith("alpha-1.0: medians over the launches of 3 rounds")
    assert said[1].startswith(first) and " 4 GB/s" not in said[0]
    assert sum("Linpack" in one for one in said) == (2 if pairs == 2 else 1)
    assert not COMPARING.search(done.stdout), done.stdout


def test_what_was_to_be_compared_and_is_not_there_is_named(tmp_path: Path) -> None:
    made = Synthetic(tmp_path / "campaign", TWICE, pairs=["Send/Recv"])
    path = made.write()
    for file in path.glob("launches/*beta-2.0/launch.json"):
        record = json.loads(file.read_text())
        file.write_text(json.dumps({**record, "outcome": "failed", "sentence": "it failed"}))
    said = ending(compare(read_campaign(path)))
    assert said[1] == "No sound launch that could be compared with it: beta-2.0"


def test_the_headline_stands_at_the_top_of_the_report(tmp_path: Path) -> None:
    comparison = of(tmp_path)
    [one] = headlines(comparison)
    page = write_report(comparison.campaign.path, None, tmp_path / "r.html").read_text()
    assert page.index(one.sentence) < page.index("<table")
    # Of one implementation there is none.
    alone = Synthetic(tmp_path / "alone", {"alpha-1.0": TWICE["alpha-1.0"]}, pairs=["Send/Recv"])
    page = write_report(alone.write(), None, tmp_path / "a.html").read_text()
    assert " is faster than " not in page


def test_where_nothing_could_be_judged_the_answer_says_why(tmp_path: Path) -> None:
    path = Synthetic(tmp_path / "campaign", TWICE, pairs=["Send/Recv"]).write()
    for file in path.glob("launches/*/launch.json"):
        file.write_text(json.dumps({**json.loads(file.read_text()), "oversubscribed": True}))
    comparison = compare(read_campaign(path))
    [one] = headlines(comparison)
    assert one.series == 0 < one.unjudged
    assert one.sentence == (
        f"Nothing is known about beta-2.0 against alpha-1.0; {one.unjudged} not judged "
        "(oversubscribed)."
    )
    assert ending(comparison)[0] == one.sentence
    page = write_report(path, None, tmp_path / "r.html").read_text()
    assert one.sentence in page and "fewer than two implementations" not in page
    assert "No group could be judged" in page
