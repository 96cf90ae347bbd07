"""`why A B`: what differs is ordered by a stated rule, and where nothing does that is said."""

import json
from pathlib import Path

import pytest

from analysis.comparison.caveats.comparability import in_words, rules
from analysis.history.suspects import Explanation, explain, sentences
from analysis.history.two_campaigns import compare_campaigns
from records.campaign import read_campaign
from tests.analysis.history.test_campaign_comparison import SLOWER, change
from tests.analysis.support.in_process import analysis
from tests.analysis.support.synthetic import TWICE, Synthetic, Truth

DIGEST = "f" * 64


@pytest.fixture
def before(tmp_path: Path) -> Path:
    return Synthetic(tmp_path / "before", TWICE, rounds=5, pairs=["Send/Recv"]).write()


@pytest.fixture
def after(tmp_path: Path) -> Path:
    """Return a campaign in which alpha's messages take a quarter longer, and no more."""
    return Synthetic(tmp_path / "after", SLOWER, rounds=5, seed=2, pairs=["Send/Recv"]).write()


def explained(before: Path, after: Path) -> Explanation:
    return explain(read_campaign(before), read_campaign(after))


def names(found: Explanation) -> list[str]:
    return [suspect.difference.rule.name for suspect in found.suspects]


def another_image(folder: Path, implementation: str) -> None:
    """Have a campaign measured with another image."""
    change(folder, (f"images/{implementation}/sha256", DIGEST))
    for file in (folder / "launches").glob("*/launch.json"):
        record = json.loads(file.read_text())
        if record["implementation"] == implementation:
            file.write_text(json.dumps(record | {"image_sha256": DIGEST}))


def in_launches(folder: Path, **facts: object) -> None:
    for file in (folder / "launches").glob("*/launch.json"):
        file.write_text(json.dumps(json.loads(file.read_text()) | facts))


def test_nothing_that_is_recorded_differs(before: Path, after: Path) -> None:
    done = analysis("why", str(before), str(after))
    assert done.returncode == 0
    assert "What moved: 3 of 10 cells and implementations" in done.stdout
    assert done.stdout.rstrip().endswith("Nothing that is recorded differs.")


def test_the_image_that_moved_is_suspected_before_the_other(before: Path, after: Path) -> None:
    another_image(after, "alpha-1.0")
    another_image(after, "beta-2.0")
    found = explained(before, after)
    assert {row.verdict.implementation for row in found.moved} == {"alpha-1.0"}
    assert [one.difference.where for one in found.suspects] == ["alpha-1.0", "beta-2.0"]
    assert [one.score(found.moved) for one in found.suspects] == [3.0, 0.0]
    # What concerns all would have moved all.
    change(after, ("machine/kernel", "6.1.0"))
    assert names(explained(before, after)) == ["image", "kernel", "image"]
    # The other way round the other one is first.
    again = explained(after, before)
    assert [one.difference.where for one in again.suspects] == ["alpha-1.0", "", "beta-2.0"]


def test_what_changed_more_is_suspected_more(before: Path, after: Path) -> None:
    change(
        before, ("machine/memory_bytes", 1000), ("machine/cores", 2), ("machine/governor", "old")
    )
    change(
        after, ("machine/memory_bytes", 1010), ("machine/cores", 4), ("machine/governor", "new"),
        ("software/wyeast_commit", "1" * 40),
    )  # fmt: skip
    found = explained(before, after)
    assert names(found) == ["processors", "frequency governor", "Wyeast's commit", "memory"]
    assert [round(one.score(found.moved), 2) for one in found.suspects] == [4.0, 3.0, 0.5, 0.01]


def test_a_link_explains_nothing_within_a_node(before: Path, after: Path) -> None:
    change(before, ("site_data/link_bytes_per_s", 1e9))
    change(after, ("site_data/link_bytes_per_s", 1e8), ("machine/microcode", "0x2"))
    found = explained(before, after)
    assert names(found) == ["microcode", "link rate"]
    assert found.suspects[-1].score(found.moved) == 0
    for folder in (before, after):
        in_launches(folder, nodes=2)
    assert names(explained(before, after))[0] == "link rate"


def test_load_and_stolen_time_are_suspects_by_the_median_launch(before: Path, after: Path) -> None:
    quiet = {"busy": 1.0, "idle": 1.0, "stolen": 0.0}
    in_launches(before, processors_s=quiet, node={"facts": "nodes/a.json", "running": 0})
    in_launches(after, processors_s=quiet, node={"facts": "nodes/a.json", "running": 0})
    [one] = (after / "launches").glob("round001*short*alpha*/launch.json")
    one.write_text(json.dumps(json.loads(one.read_text()) | {"node": {"running": 9}}))
    assert names(explained(before, after)) == []
    in_launches(after, processors_s={**quiet, "stolen": 0.5}, node={"running": 1})
    found = explained(before, after)
    assert names(found) == ["stolen time", "neighbours"]
    assert [one.extent for one in found.suspects] == [1.0, 0.5]
    assert any(
        "stolen time: 0 and 0.3" in said or "stolen time: 0.0 and 0.3" in said
        for said in compare_campaigns(read_campaign(before), read_campaign(after)).caveats
    )


def test_where_nothing_can_be_compared_what_differs_is_still_said(
    before: Path, tmp_path: Path
) -> None:
    other = Synthetic(tmp_path / "other", {"gamma-1.0": Truth(1e-6, 4e9, 3e10)}, rounds=2).write()
    change(other, ("site", "elsewhere"))
    said = sentences(explained(before, other))
    assert (
        said[0].startswith("Nothing can be compared: ") and "no implementation in common" in said[0]
    )
    assert any(line.startswith("1. site: local and elsewhere") for line in said)
    done = analysis("compare", str(before), str(other), "--why")
    assert done.returncode == 1 and done.stdout.splitlines() == said
    assert "no implementation in common" not in done.stderr, "it is said once"


def test_a_comparison_says_why_when_it_is_asked(before: Path, after: Path) -> None:
    change(after, ("machine/kernel", "6.1.0"))
    plain = analysis("compare", str(before), str(after))
    reasons = analysis("why", str(before), str(after))
    both = analysis("compare", str(before), str(after), "--why")
    assert (both.returncode, both.stdout) == (0, plain.stdout + reasons.stdout)
    assert both.stderr == plain.stderr and "caveat: kernel" in both.stderr
    alone = analysis("compare", str(before), "--why")
    assert alone.returncode == 1 and "--why is for two campaigns" in alone.stderr


def test_other_ranks_come_first_and_are_not_compared(before: Path, after: Path) -> None:
    change(after, ("machine/kernel", "6.1.0"))
    for file in (after / "launches").glob("*long*/launch.json"):
        file.write_text(json.dumps(json.loads(file.read_text()) | {"ranks": 4}))
    found = explained(before, after)
    assert names(found) == ["ranks", "kernel"]
    assert any(line.startswith("- not compared: ranks: 2 and 4") for line in sentences(found))


def test_long_values_are_shown_by_what_differs() -> None:
    assert in_words("a b c d e f g", "a b c d e f h") == (
        "only the first has g and only the second has h"
    )
    assert in_words("a b c d e f g", "a b c d e f") == "only the first has g"
    assert in_words({"eth0": {"speed": "1"}}, {"eth0": {"speed": "10"}}) == "eth0 speed 1 and 10"


def test_mistakes_are_a_sentence(before: Path) -> None:
    done = analysis("why", str(before), str(before))
    assert done.returncode == 1 and "before was given as both campaigns" in done.stderr
    (before / "nodes").mkdir()
    (before / "nodes" / "a-0.json").write_text("[")
    other = Synthetic(before.parent / "o", TWICE, rounds=2, pairs=["Send/Recv"]).write()
    done = analysis("why", str(before), str(other))
    assert done.returncode == 1 and "a-0.json cannot be read" in done.stderr


def test_every_rule_says_how_much_it_moves() -> None:
    assert all(1 <= rule.moves <= 4 for rule in rules())
    assert all(rule.full for rule in rules() if rule.of == "conditions")


def test_what_is_a_little_slower_has_moved(tmp_path: Path) -> None:
    """A difference within the margin is a difference that is claimed."""
    one, two = (
        Synthetic(tmp_path / name, {"alpha-1.0": Truth(1e-6, 4e9, rate)}, rounds=8, noise=0.0005,
                  seed=seed, pairs=["Send/Recv"]).write()
        for seed, (name, rate) in enumerate((("one", 30e9), ("two", 29.8e9)))
    )  # fmt: skip
    found = explain(read_campaign(one), read_campaign(two))
    little = [row for row in found.moved if row.experiment == "Linpack"]
    assert little and all(row.verdict.claim and row.verdict.claim.is_within_margin
                          for row in little)  # fmt: skip
