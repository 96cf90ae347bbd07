"""Two campaigns with a known ratio give it, and what differs between them is said or refused."""

import copy
import json
import math
from pathlib import Path
from typing import Any

import pytest

from analysis.comparison.caveats.comparability import differences, rules, shown
from analysis.comparison.metrics import metrics
from analysis.history.two_campaigns import IncomparableError, compare_campaigns
from records.campaign import read_campaign
from tests.analysis.support.in_process import analysis
from tests.analysis.support.synthetic import TWICE, Synthetic, Truth, timed_anew

SLOWER = {
    "alpha-1.0": Truth(latency=1.25e-6, bandwidth=3.2e9, linpack=30e9),
    "beta-2.0": TWICE["beta-2.0"],
}


@pytest.fixture
def before(tmp_path: Path) -> Path:
    return Synthetic(tmp_path / "before", TWICE, rounds=6, pairs=["Send/Recv"]).write()


@pytest.fixture
def after(tmp_path: Path) -> Path:
    """Return a campaign in which alpha takes a quarter longer for messages; beta is the same."""
    return Synthetic(tmp_path / "after", SLOWER, rounds=5, seed=2, pairs=["Send/Recv"]).write()


def change(folder: Path, *places: tuple[str, Any]) -> None:
    """Change values of a manifest; a place is keys with slashes."""
    file = folder / "manifest.json"
    manifest = json.loads(file.read_text())
    for place, value in places:
        *path, last = place.split("/")
        inner = manifest
        for key in path:
            inner = inner.setdefault(key, {})
        inner[last] = value
    file.write_text(json.dumps(manifest))


def test_known_ratio_of_campaigns(before: Path, after: Path) -> None:
    found = compare_campaigns(read_campaign(before), read_campaign(after))
    assert len(found.rows) == 2 * 5 and not found.refused
    for row in found.rows:
        verdict = row.verdict
        assert verdict.base == "before" and verdict.ratio.counted == "5 and 6 launches"
        if row.experiment == "PointToPoint" and verdict.implementation == "alpha-1.0":
            assert verdict.words == "slower"
            assert verdict.ratio.value == pytest.approx(0.8, rel=0.04)
        else:
            assert not (verdict.is_different and abs(math.log(verdict.ratio.value)) > 0.06)
    groups = {(row.cell, row.verdict.implementation): row for row in found.groups}
    assert len(groups) == 2 * 4
    assert groups["Short messages, all pairs", "alpha-1.0"].verdict.words == "slower"
    assert groups["Linpack, all cells", "beta-2.0"].cells == 2


def test_swapped_campaigns_invert_the_ratio(before: Path, after: Path) -> None:
    one, other = read_campaign(before), read_campaign(after)
    there, back = compare_campaigns(one, other).rows, compare_campaigns(other, one).rows
    for first, second in zip(there, back, strict=True):
        assert first.verdict.ratio.value == pytest.approx(1 / second.verdict.ratio.value)
        assert first.verdict.adjusted_p == pytest.approx(second.verdict.adjusted_p)


def test_images_of_two_campaigns(before: Path, after: Path) -> None:
    found = compare_campaigns(
        read_campaign(before), read_campaign(after), ("alpha-1.0", "beta-2.0")
    )
    ratios = [r.verdict.ratio.value for r in found.rows if r.experiment == "PointToPoint"]
    assert ratios == [pytest.approx(2.0, rel=0.05)] * 3
    assert any("image of alpha-1.0 and beta-2.0" in caveat for caveat in found.caveats)


def test_same_campaigns_have_no_caveat_but_that_they_are_unproven(
    before: Path, tmp_path: Path
) -> None:
    again = Synthetic(tmp_path / "again", TWICE, rounds=3, pairs=["Send/Recv"]).write()
    said = compare_campaigns(read_campaign(before), read_campaign(again)).caveats
    assert [one.split(":")[0] for one in said] == [
        f"{path.name} is unproven" for path in (before, again)
    ]


@pytest.mark.parametrize("rule", [rule for rule in rules() if rule.of == "campaign"],
                         ids=lambda rule: rule.name)  # fmt: skip
def test_each_fact_of_a_campaign_that_differs_is_told(rule: Any) -> None:
    manifest: dict[str, Any] = {"images": {}}
    inner = manifest
    for key in rule.at[:-1]:
        inner = inner.setdefault(key, {})
    inner[rule.at[-1]] = "one"
    other = copy.deepcopy(manifest)
    inner[rule.at[-1]] = "another"
    found = [d for d in differences(manifest, other, []) if d.rule == rule]
    assert [d.sentence for d in found] == [f"{rule.name}: another and one: {rule.reason}"]
    assert differences(manifest, manifest, []) == []


def test_rules_name_experiments_that_exist() -> None:
    assert {name for rule in rules() for name in rule.experiments} <= metrics().keys()
    assert any(rule.effect == "refuse" for rule in rules())


def test_files_of_another_file_system_are_not_compared() -> None:
    scratch = {"site_data": {"files_folder": "/scratch"}}
    for other in ({"files_folder": "/home"}, dict[str, str]()):
        [found] = differences(scratch, {"site_data": other}, [])
        assert (found.rule.effect, found.rule.experiments) == ("refuse", ["Files"])
    assert differences(scratch, scratch, []) == []


def test_differences_are_caveats_on_stderr(before: Path, after: Path) -> None:
    change(
        after, ("machine/kernel", "6.1.0"), ("site", "other"), ("finished_utc", None),
        ("images/beta-2.0/labels", {"org.wyeast.builder": "spack"}),
    )  # fmt: skip
    done = analysis("compare", str(before), str(after))
    assert done.returncode == 0 and "slower" in done.stdout
    for sentence in ("caveat: kernel: none and 6.1.0", "caveat: site: local and other",
                     "caveat: builder of beta-2.0: unknown for the first, spack",
                     "caveat: after is not finished"):  # fmt: skip
        assert sentence in done.stderr


def test_cells_that_ran_elsewhere_are_refused(before: Path, tmp_path: Path) -> None:
    other = Synthetic(tmp_path / "nodes", TWICE, rounds=3, pairs=["Send/Recv"]).write()
    for file in (other / "launches").glob("*PointToPoint*/launch.json"):
        file.write_text(json.dumps(json.loads(file.read_text()) | {"nodes": 2}))
    found = compare_campaigns(read_campaign(before), read_campaign(other))
    assert {row.experiment for row in found.rows} == {"Linpack"}
    [refused] = found.refused
    assert refused.startswith("nodes: 1 and 2: messages in memory") and "(3 cells)" in refused


#: Of launches with more ranks than processors: a rank that spins, and one that hardly waits.
SPINNING = {"rank": 0, "counted_s": 1.0, "waited_s": 0.5, "turns": 200}
LITTLE = SPINNING | {"waited_s": 1e-7}


def with_more_ranks(folder: Path, waiting: dict[str, Any]) -> Path:
    for file in (folder / "launches").glob("*PointToPoint*/launch.json"):
        facts = json.loads(file.read_text())
        file.write_text(json.dumps(facts | {"oversubscribed": True, "waiting": waiting}))
    return folder


def test_what_waited_in_either_campaign_is_not_judged(before: Path, after: Path) -> None:
    """In alpha's launches a quarter is lost, which ranks without a processor may have lost."""
    one, other = with_more_ranks(before, SPINNING), with_more_ranks(after, LITTLE)
    for ours, theirs in ((one, other), (other, one)):
        found = compare_campaigns(read_campaign(ours), read_campaign(theirs))
        rows = [row for row in found.rows if row.experiment == "PointToPoint"]
        assert len(rows) == 6 and not found.refused
        assert {row.verdict.unjudged for row in rows} == {"oversubscribed"}
        assert {row.experiment for row in found.groups} == {"Linpack"}


def test_with_more_ranks_than_processors_is_another_experiment_whoever_waited(
    before: Path, after: Path
) -> None:
    """How long ranks waited is a result: it does not choose what is compared."""
    found = compare_campaigns(read_campaign(before), read_campaign(with_more_ranks(after, LITTLE)))
    assert {row.experiment for row in found.rows} == {"Linpack"}
    [refused] = found.refused
    assert refused.startswith("oversubscription: False and True: ") and "(3 cells)" in refused


def test_cells_that_another_clock_timed_are_refused(before: Path, tmp_path: Path) -> None:
    """HPL's output names no clock, so Linpack goes on."""
    other = timed_anew(Synthetic(tmp_path / "clock", TWICE, rounds=3, pairs=["Send/Recv"]).write())
    found = compare_campaigns(read_campaign(before), read_campaign(other))
    assert {row.experiment for row in found.rows} == {"Linpack"}
    [refused] = found.refused
    assert refused.startswith("clock that timed: MPI_Wtime and CLOCK_MONOTONIC: "), refused
    assert "(3 cells)" in refused
    both = timed_anew(before)
    assert not compare_campaigns(read_campaign(both), read_campaign(other)).refused


@pytest.mark.parametrize(
    ("truths", "images", "sentence"),
    [
        ({"gamma-1.0": Truth(1e-6, 4e9, 30e9)}, None, "they have no implementation in common"),
        (TWICE, ("alpha-1.0", "gamma-1.0"), "gamma-1.0 has no sound launch in other; choose"),
    ],
)
def test_nothing_to_compare_is_refused(
    before: Path, tmp_path: Path, truths: dict[str, Truth], images: Any, sentence: str
) -> None:
    other = Synthetic(tmp_path / "other", truths, rounds=2, pairs=["Send/Recv"]).write()
    with pytest.raises(IncomparableError, match=sentence):
        compare_campaigns(read_campaign(before), read_campaign(other), images)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["{}", "{}"], "before was given as both campaigns"),
        (["{}", "no-such"], "no-such is not a campaign"),
        (["{}", "{}", "--base", "alpha-1.0"], "--base is for implementations of one campaign"),
        (["{}", "--images", "alpha-1.0"], "must name two implementations"),
        (["{}", "--images", "alpha-1.0,gamma"], "gamma has no sound launch"),
    ],
)
def test_mistakes_are_one_sentence(before: Path, arguments: list[str], sentence: str) -> None:
    done = analysis("compare", *(word.format(before) for word in arguments))
    assert done.returncode == 1 and sentence in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_images_within_a_campaign_are_paired(before: Path) -> None:
    done = analysis("compare", str(before), "--images", "beta-2.0,alpha-1.0")
    assert done.returncode == 0
    assert "caveat: image of beta-2.0 and alpha-1.0" in done.stderr
    assert "alpha-1.0 is slower than beta-2.0" in done.stdout


def test_long_values_are_cut() -> None:
    assert shown("a" * 64) == "a" * 16 + "…" and shown(None) == "None"
