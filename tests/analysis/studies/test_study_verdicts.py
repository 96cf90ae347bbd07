"""What a claim's verdict is on campaigns with a known truth, and with what certainty."""

import json
import math
import re
import shutil
from pathlib import Path

import numpy
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from analysis.studies.declaration import Statement
from analysis.studies.one_number import (
    FAILS,
    HOLDS,
    IN_PART,
    UNTOLD,
    interval_of,
    judged,
    untold_because,
)
from analysis.studies.reading import read_paper
from analysis.studies.relations import TodaysTables
from analysis.studies.verdicts import TESTED, UNTESTABLE, evaluate
from records.campaign import read_campaign
from tests.analysis.support.study_samples import DEMO_CLAIM, DEMO_STUDY, demo, measured


@pytest.mark.parametrize(("faster", "verdict"), [(1.5, HOLDS), (1.0, UNTOLD), (0.7, FAILS)])
def test_the_same_expression_is_evaluated_on_a_campaign(
    tmp_path: Path, faster: float, verdict: str
) -> None:
    found = measured(demo(tmp_path), tmp_path, faster)
    (one,) = evaluate(found.paper, found)
    assert one.report.verdict == HOLDS and one.values["ratio"] == pytest.approx(2)
    assert one.here is not None and one.here.verdict == verdict
    (finding,) = one.here.findings
    assert finding.number is not None and finding.number.interval is not None
    assert finding.number.rounds == 6
    assert finding.number.interval.low < faster < finding.number.interval.high
    assert (one.needed.verdict == TESTED) == (verdict != UNTOLD)


def test_one_round_tells_nothing(tmp_path: Path) -> None:
    found = measured(demo(tmp_path), tmp_path, 1.5, rounds=1)
    (one,) = evaluate(found.paper, found)
    assert one.here is not None and one.here.verdict == UNTOLD
    assert "one round has no interval" in one.here.sentences[0]
    assert any("ROUNDS=6" in sentence for sentence in one.needed.sentences)


def test_identical_rounds_need_six(tmp_path: Path) -> None:
    """Without any noise a spread cannot be estimated; the order statistics' coverage decides."""
    for rounds, verdict in ((5, UNTOLD), (6, HOLDS)):
        root = demo(tmp_path / str(rounds))
        found = measured(root, tmp_path / str(rounds), 1.5, rounds=rounds, noise=0.0)
        (one,) = evaluate(found.paper, found)
        assert one.here is not None and one.here.verdict == verdict


@pytest.mark.parametrize("among", [1, 8, 50])
def test_many_identical_rounds_are_reported_even_when_corrected(among: int) -> None:
    confidence = 1 - 0.05 / among
    for count, told in ((5, False), (100, True)):
        found = interval_of(count * [1.5], "ratio", confidence)
        assert found.interval is not None
        assert (found.interval.coverage >= confidence) == told
        assert (untold_because(found, confidence) == "") == told


def test_one_of_many_statements_fails_only_beyond_chance() -> None:
    """Rounds whose 95% interval just leaves out what is claimed, alone and among ten."""
    values = [1.0, 1.1, 1.2, 1.3, 1.4, 1.5]
    at_95, at_995 = interval_of(values, "linear"), interval_of(values, "linear", 0.995)
    assert at_95.interval is not None and at_995.interval is not None
    limit = at_95.interval.low - 1e-6
    statement = Statement.model_validate({"that": "x", "below": limit})
    assert judged(statement, at_95.interval.low, at_95.interval.high) == FAILS
    assert judged(statement, at_995.interval.low, at_995.interval.high) == UNTOLD


@pytest.mark.parametrize(("rate", "verdict"), [(1.035, UNTOLD), (1.5, IN_PART)])
def test_a_claim_of_many_statements_is_stricter(tmp_path: Path, rate: float, verdict: str) -> None:
    """Alone the statement fails at either rate; among twenty only where it clearly does."""
    one, others = {"that": "ratio", "below": 1}, {"that": "ratio", "above": 0.1}
    alone = measured(demo(tmp_path, claim=DEMO_CLAIM | {"here": [one]}), tmp_path, rate)
    (found,) = evaluate(alone.paper, alone)
    assert found.here is not None and found.here.verdict == FAILS
    root = demo(tmp_path / "many", claim=DEMO_CLAIM | {"here": [one] + 19 * [others]})
    among = TodaysTables(read_paper(root, "demo"), alone.campaign)
    (found,) = evaluate(among.paper, among)
    assert found.here is not None and found.here.verdict == verdict


@pytest.mark.parametrize(("rate", "verdict"), [(1.035, FAILS), (1.5, IN_PART)])
def test_what_holds_beside_failures_holds_beyond_chance(
    tmp_path: Path, rate: float, verdict: str
) -> None:
    """Where nineteen fail, one that just holds at 95% may be the luckiest of twenty."""
    one, others = {"that": "ratio", "above": 1}, {"that": "ratio", "below": 0.1}
    alone = measured(demo(tmp_path, claim=DEMO_CLAIM | {"here": [one]}), tmp_path, rate)
    (found,) = evaluate(alone.paper, alone)
    assert found.here is not None and found.here.verdict == HOLDS
    root = demo(tmp_path / "many", claim=DEMO_CLAIM | {"here": [one] + 19 * [others]})
    among = TodaysTables(read_paper(root, "demo"), alone.campaign)
    (found,) = evaluate(among.paper, among)
    assert found.here is not None and found.here.verdict == verdict
    by_chance = "one of 20 may lie this little inside by chance" in found.here.sentences[0]
    assert by_chance == (verdict == FAILS)


def test_cells_that_hold_beside_failures_hold_beyond_chance(tmp_path: Path) -> None:
    one = {"that": "many", "above": 1, "cells": "every"}
    claim = DEMO_CLAIM | {"quantities": {"many": CELLS}, "report": [one], "here": [one]}
    alone = measured(demo(tmp_path, claim=claim), tmp_path, 1.05)
    (found,) = evaluate(alone.paper, alone)
    assert found.here is not None and found.here.verdict == HOLDS
    others = 19 * [{"that": "many", "below": 0.1, "cells": "some"}]
    root = demo(tmp_path / "many", claim=claim | {"here": [one, *others]})
    among = TodaysTables(read_paper(root, "demo"), alone.campaign)
    (found,) = evaluate(among.paper, among)
    assert found.here is not None and found.here.verdict == FAILS


def test_what_no_campaign_decides_is_said(tmp_path: Path) -> None:
    """More rounds do not decide it, and the page does not ask for them."""
    one, never = {"that": "ratio", "above": 1}, {"untold": "How flat a curve is"}
    found = measured(demo(tmp_path, claim=DEMO_CLAIM | {"here": [one, never]}), tmp_path, 1.5)
    (both,) = evaluate(found.paper, found)
    assert both.here is not None and both.here.verdict == UNTOLD
    assert both.here.notes == [
        "1 of 2 statements holds.", "1 of 2 statements cannot be decided by any campaign, so the "
        "claim stays inconclusive however many rounds are measured.",
    ]  # fmt: skip
    assert both.needed.verdict == TESTED
    root = demo(tmp_path / "never", claim=DEMO_CLAIM | {"here": [never]})
    among = TodaysTables(read_paper(root, "demo"), found.campaign)
    (alone,) = evaluate(among.paper, among)
    assert alone.needed.verdict == UNTESTABLE and "How flat a curve" in alone.needed.notes[0]


def test_a_round_that_lacks_a_cell_is_left_out(tmp_path: Path) -> None:
    root = demo(tmp_path)
    measured(root, tmp_path, 1.5)
    shutil.rmtree(next((tmp_path / "campaign" / "launches").glob("round004_Linpack*1x2*alpha*")))
    again = TodaysTables(read_paper(root, "demo"), read_campaign(tmp_path / "campaign"))
    (one,) = evaluate(again.paper, again)
    assert one.here is not None and one.here.findings[0].number is not None
    assert one.here.findings[0].number.rounds == 5


CELLS = {"of": "wide", "each": ["procs"], "value": "A / B", "scale": "ratio"}
OF_B = {"of": "hpl", "where": "mpi = 'B'", "each": ["procs"], "value": "rate", "scale": "ratio"}
GAIN = {
    "of": "hpl", "each": ["mpi", "procs"], "value": "gain", "scale": "ratio",
    "steps": [{"derive": {"gain": "rate / LAG(rate) OVER (PARTITION BY mpi ORDER BY procs)"}}],
}  # fmt: skip


@pytest.mark.parametrize(("quantity", "cells", "verdict", "named"), [
    (CELLS, "every", UNTOLD, "procs 2"), (CELLS, "some", HOLDS, "procs 2"),
    (CELLS, 0.5, HOLDS, "procs 2"), (CELLS, 0.6, UNTOLD, "procs 2"),
    (OF_B, "every", UNTOLD, "procs 2"), (GAIN, "every", UNTOLD, "mpi B, procs 2"),
])  # fmt: skip
def test_a_cell_that_one_implementation_never_managed_is_open_and_named(
    tmp_path: Path, quantity: dict[str, object], cells: object, verdict: str, named: str
) -> None:
    statement = {"that": "many", "above": 1, "cells": cells}
    claim = DEMO_CLAIM | {
        "quantities": {"many": quantity}, "report": [statement], "here": [statement],
    }  # fmt: skip
    whole = measured(demo(tmp_path, claim=claim), tmp_path, 1.5)
    (one,) = evaluate(whole.paper, whole)
    # The first gain of each is none, and lacks nothing.
    assert one.here is not None and one.here.verdict == HOLDS
    assert "2 of 2 cells satisfy it" in one.here.sentences[0]
    assert "not measured" not in one.here.sentences[0]
    for folder in (tmp_path / "campaign" / "launches").glob("*Linpack*1x2*beta*"):
        shutil.rmtree(folder)
    again = TodaysTables(read_paper(tmp_path, "demo"), read_campaign(tmp_path / "campaign"))
    (one,) = evaluate(again.paper, again)
    assert one.here is not None and one.here.verdict == verdict
    assert "1 of 2 cells satisfy it, 0 do not, 1 inconclusive (6 rounds)" in one.here.sentences[0]
    assert f"not measured with every implementation it needs: {named}" in one.here.sentences[0]


def test_an_implementation_by_itself_is_held_to_the_cells_of_the_others(tmp_path: Path) -> None:
    study = json.loads(json.dumps(DEMO_STUDY)) | {"stands_for": {}}
    study["tables"]["hpl"]["today"]["columns"]["mpi"] = "implementation"
    quantity = {"of": "hpl", "each": ["procs"], "value": "AVG(rate)", "scale": "ratio"}
    statement = {"that": "many", "above": 1, "cells": "every"}
    claim = DEMO_CLAIM | {"quantities": {"many": quantity}, "here": [statement]}
    claim |= {"report": [{"untold": "x"}]}
    measured(demo(tmp_path, study, claim), tmp_path, 1.5)
    for folder in (tmp_path / "campaign" / "launches").glob("*Linpack*1x2*beta*"):
        shutil.rmtree(folder)
    found = TodaysTables(read_paper(tmp_path, "demo"), read_campaign(tmp_path / "campaign"))
    (one,) = evaluate(found.paper, found)
    assert one.here is not None
    verdicts = {finding.of: finding.verdict for finding in one.here.findings}
    assert verdicts == {"alpha-1.0": HOLDS, "beta-2.0": UNTOLD}


def with_block_sizes(tmp_path: Path, rows: list[str]) -> TodaysTables:
    """Return a campaign with two block sizes of each grid; HPL with 256 is faster by three."""
    study = json.loads(json.dumps(DEMO_STUDY))
    study["tables"]["wide"]["steps"][0]["side_by_side"]["rows"] = rows
    if "nb" in rows:
        table = study["tables"]["hpl"]
        table["today"]["columns"]["nb"] = "nb"
        table["columns"] = {"procs": "procs", "mpi": "mpi", "rate": "rate", "nb": "0"}
    root = demo(tmp_path, study)
    measured(root, tmp_path, 1.5)
    for folder in list((tmp_path / "campaign" / "launches").glob("*Linpack*")):
        other = folder.with_name(folder.name.replace("nb=192", "nb=256"))
        shutil.copytree(folder, other)
        record = (other / "launch.json").read_text().replace("nb=192", "nb=256")
        (other / "launch.json").write_text(record.replace('"nb": 192', '"nb": 256'))
        output = (other / "stdout").read_text().replace("   192  ", "   256  ")
        time, rate = re.findall(r"^WR.* (\S+) +(\S+)$", output, re.MULTILINE)[0]
        faster = f"{float(time) / 3:.2f}   {3 * float(rate):.3e}"
        output = re.sub(r"^(WR.*?) +\S+ +\S+$", rf"\1   {faster}", output, flags=re.MULTILINE)
        (other / "stdout").write_text(output)
    return TodaysTables(read_paper(root, "demo"), read_campaign(tmp_path / "campaign"))


def test_one_of_several_is_not_taken_in_silence(tmp_path: Path) -> None:
    found = with_block_sizes(tmp_path, ["procs"])
    with pytest.raises(ValueError, match="several rows have procs 1, mpi A; name the column"):
        evaluate(found.paper, found)


def test_a_block_size_that_one_side_lacks_leaves_its_round_out(tmp_path: Path) -> None:
    """Paired with another block size, the round would have a ratio three times too large."""
    with_block_sizes(tmp_path, ["procs", "nb"])
    lacking = (tmp_path / "campaign" / "launches").glob("round002_Linpack*1x2*nb=256_beta*")
    shutil.rmtree(next(lacking))
    found = TodaysTables(read_paper(tmp_path, "demo"), read_campaign(tmp_path / "campaign"))
    (one,) = evaluate(found.paper, found)
    assert one.here is not None and one.here.verdict == HOLDS
    (finding,) = one.here.findings
    assert finding.number is not None and finding.number.rounds == 5
    assert isinstance(finding.number.value, float) and 1.4 < finding.number.value < 1.6


def test_a_launch_that_no_column_tells_apart_is_missed(tmp_path: Path) -> None:
    """The table takes the faster of two block sizes, and in one round there is one alone."""
    with_block_sizes(tmp_path, ["procs"])
    study = json.loads(json.dumps(DEMO_STUDY))
    study["tables"]["hpl"]["today"]["steps"] = [
        {"group": {"by": ["procs", "mpi"], "of": {"rate": "MAX(rate)"}}}
    ]
    (tmp_path / "literature" / "demo" / "study.yaml").write_text(yaml.safe_dump(study))
    shutil.rmtree(next((tmp_path / "campaign" / "launches").glob("round002_*nb=256_beta*")))
    found = TodaysTables(read_paper(tmp_path, "demo"), read_campaign(tmp_path / "campaign"))
    (one,) = evaluate(found.paper, found)
    assert one.here is not None and one.here.findings[0].number is not None
    assert one.here.findings[0].number.rounds == 5


def test_what_stands_for_nothing_is_named(tmp_path: Path) -> None:
    found = measured(demo(tmp_path), tmp_path, 1.5, names=("alpha-1.0", "gamma-1"))
    (one,) = evaluate(found.paper, found)
    assert one.here is not None and one.here.verdict == UNTOLD
    assert "stands for B" in one.here.sentences[0]
    assert any("beta-9, beta-*" in sentence for sentence in one.needed.sentences)


def test_an_experiment_that_was_not_run_is_named(tmp_path: Path) -> None:
    study = json.loads(json.dumps(DEMO_STUDY))
    study["experiments"]["hpl"]["check"] = "Nas"
    found = measured(demo(tmp_path, study), tmp_path, 1.5)
    (one,) = evaluate(found.paper, found)
    assert one.here is not None and one.here.verdict == UNTOLD
    assert one.here.sentences == ["Nas was not run, or has no sound launch."]


def test_one_node_does_not_tell_of_a_network(tmp_path: Path) -> None:
    study = json.loads(json.dumps(DEMO_STUDY))
    study["experiments"]["hpl"]["nodes"] = 2
    found = measured(demo(tmp_path, study), tmp_path, 1.5)
    (one,) = evaluate(found.paper, found)
    assert one.here is not None and one.here.verdict == UNTOLD
    assert "2 nodes or more" in one.here.sentences[0] and "1.5" in one.here.sentences[0]


def test_without_families_each_implementation_is_tested(tmp_path: Path) -> None:
    study = json.loads(json.dumps(DEMO_STUDY)) | {"stands_for": {}}
    study["tables"]["hpl"]["today"]["columns"]["mpi"] = "implementation"
    growth = {"of": "hpl", "value": "MAX(rate) / MIN(rate)", "scale": "ratio"}
    claim = DEMO_CLAIM | {
        "quantities": {"growth": growth},
        "report": [{"that": "growth", "above": 1}],
        "here": [{"that": "growth", "between": [1.8, 2.2]}],
    }
    found = measured(demo(tmp_path, study, claim), tmp_path, 1.5)
    (one,) = evaluate(found.paper, found)
    assert one.here is not None and one.here.verdict == HOLDS
    assert [finding.of for finding in one.here.findings] == ["alpha-1.0", "beta-2.0"]


@given(
    st.sampled_from([{"above": 1.0}, {"at_most": 1.0}, {"about": 1.0, "within": 0.5}]),
    st.floats(-3, 3), st.floats(0.001, 3), st.floats(0.1, 0.9),
)  # fmt: skip
def test_a_narrower_interval_never_turns_a_verdict_round(
    asked: dict[str, float], low: float, width: float, part: float
) -> None:
    statement = Statement.model_validate({"that": "x", **asked})
    wide = judged(statement, low, low + width)
    narrow = judged(statement, low, low + width * part)
    assert wide in (UNTOLD, narrow)


@pytest.mark.parametrize("scale", ["linear", "ratio"])
def test_intervals_cover_the_truth(scale: str) -> None:
    """Nineteen of twenty, of rounds with the noise that each scale assumes."""
    random = numpy.random.default_rng(5)
    truth, covered, trials = 2.0, 0, 3000
    for _ in range(trials):
        noise = 0.2 * random.standard_normal(6)
        values = truth * numpy.exp(noise) if scale == "ratio" else truth + noise
        interval = interval_of(values.tolist(), scale).interval
        assert interval is not None
        covered += interval.low <= truth <= interval.high
    assert 0.93 <= covered / trials <= 0.97


def test_a_ratio_is_a_geometric_mean() -> None:
    assert interval_of([0.5, 2.0], "ratio").value == pytest.approx(1)
    assert math.isclose(interval_of([1.0, 2.0], "linear").value, 1.5)  # type: ignore[arg-type]
