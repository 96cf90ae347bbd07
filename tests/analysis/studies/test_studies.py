"""Every claim of the five reports is evaluated by its own tables, and could be by a campaign."""

import math
import re
import shutil
from pathlib import Path

import polars as pl
import pytest

from analysis.studies.declaration import Claim, Statement
from analysis.studies.one_number import FAILS, HOLDS, IN_PART, UNTOLD
from analysis.studies.reading import read_paper
from analysis.studies.relations import OneRound, Report, TodaysTables, table_of
from analysis.studies.verdicts import UNTESTABLE, Evaluated, evaluate, one_here
from analysis.tables.parquet import LAUNCHES, RESULTS
from records.campaign import Campaign
from tests.analysis.support.study_samples import PAPERS, PROJECT, evaluated, named

CLAIMS = [(name, claim.id) for name in PAPERS for claim in read_paper(PROJECT, name).claims]


@pytest.fixture
def one(request: pytest.FixtureRequest) -> Evaluated:
    name, claim = request.param
    return named(evaluated(name), claim)


each_claim = pytest.mark.parametrize(
    "one", CLAIMS, ids=[claim for _, claim in CLAIMS], indirect=True
)


def significant(value: float) -> float:
    return float(f"{value:.4g}")


def test_the_five_reports_have_a_study() -> None:
    assert PAPERS == ["iit", "kearns2003", "nas2003", "ntnu2008", "ornl1996"]


@each_claim
def test_computed_values_are_those_of_the_transcription(one: Evaluated) -> None:
    """Another program computed them when the reports were transcribed, from the same CSV files."""
    for name, value in one.claim.computed.items():
        if isinstance(value, str):
            assert one.values[name] == value
        else:
            found = one.values[name]
            assert isinstance(found, float)
            assert significant(found) == significant(value), name


@each_claim
def test_verdicts_are_those_of_the_transcription(one: Evaluated) -> None:
    """A person judged then which claims the tables bear out, wholly, in part or not at all."""
    assert (
        one.report.verdict
        == {
            "reproduced": HOLDS,
            "partly-reproduced": IN_PART,
            "not-reproduced": FAILS,
            "not-computable": UNTOLD,
        }[one.claim.status]
    )


def as_printed(claim: Claim, bound: float) -> bool:
    """Return whether a number stands in a claim, or is one that only says which side is ahead."""
    words = re.findall(r"\d*\.?\d+(?:e-?\d+)?", claim.claim.replace(",", ""))
    numbers = {0.0, 1.0, *claim.claimed.values(), *map(float, words)}
    return any(math.isclose(bound, number) for number in numbers)


def last_digit(number: float) -> float:
    """Return what one in the last digit of a number is worth: 0.1 of 2.6."""
    text = f"{number:.12g}"
    return 10.0 ** -len(text.partition(".")[2])


def ours(claim: Claim, statement: Statement) -> bool:
    """Return whether a statement has a threshold that the author did not give."""
    one = statement
    if isinstance(one.cells, float):
        return True
    if one.about is not None:
        # Half of the last printed digit, and a tenth more since our numbers are rounded too.
        rounding = 0.55 * last_digit(one.about) + 1e-12
        return not as_printed(claim, one.about) or (one.within or 0.0) > rounding
    bounds = [one.above, one.below, one.at_least, one.at_most, *(one.between or ())]
    return not all(as_printed(claim, bound) for bound in bounds if bound is not None)


@each_claim
def test_a_threshold_of_ours_is_said_to_be_ours(one: Evaluated) -> None:
    claim = one.claim
    today = claim.here if isinstance(claim.here, list) else []
    for statement in [*claim.report, *today]:
        if statement.that is not None and ours(claim, statement):
            assert statement.reading, f"{claim.id}: {statement.that}"
    for finding in one.report.findings:
        if finding.reading:
            assert f"Wyeast reads “{finding.reading}” as {finding.asked}" in finding.sentence
            assert finding.reading in claim.claim


@each_claim
def test_every_claim_says_what_its_test_needs(one: Evaluated) -> None:
    assert one.here is None and one.needed.sentences
    assert (one.needed.verdict == UNTESTABLE) == isinstance(one.claim.here, str)
    if one.needed.verdict != UNTESTABLE:
        assert any("make study PAPER=" in sentence for sentence in one.needed.sentences)


@pytest.mark.parametrize("name", PAPERS)
def test_experiments_are_checks(name: str) -> None:
    sources = "".join(path.read_text() for path in (PROJECT / "reframe_checks").glob("*.py"))
    for experiment in read_paper(PROJECT, name).study.experiments.values():
        assert f"class {experiment.check}(" in sources


#: Parameters of checks, of which a campaign's results have a column each.
PARAMETERS = {
    "suite": "experiment-1", "scaling": "strong", "cache": "warm", "message_range": "short",
    "ranks_per_node": 1, "via": "memory", "route": "direct",
}  # fmt: skip


@pytest.mark.parametrize("name", PAPERS)
def test_expressions_for_today_fit_a_campaigns_results(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where no campaign has measured it: every column is there, and steps follow."""
    paper = read_paper(PROJECT, name)
    families = list(paper.study.stands_for) or ["any"]
    rows = [
        {"round": 1, "experiment": check, "implementation": family, "ranks": 2, "nodes": 2,
         "group": "1 near pair", "method": "asynchronous single-sided", "message_bytes": size,
         **{f"parameter_{key}": value for key, value in PARAMETERS.items()}}
        for check in {one.check for one in paper.study.experiments.values()}
        for family in families for size in (8, 100)
    ]  # fmt: skip
    schema = LAUNCHES | RESULTS | {"launch_wall_s": pl.Float64}
    schema |= {key: pl.Series([value]).dtype for key, value in rows[0].items()}
    everything = pl.DataFrame(rows, schema)

    def of_check(_: object, check: str) -> pl.DataFrame:
        return everything.filter(pl.col("experiment") == check)

    monkeypatch.setattr("analysis.studies.relations.campaign_frame", of_check)
    monkeypatch.setattr(TodaysTables, "implementations", lambda *_: families)
    monkeypatch.setattr(
        "analysis.studies.relations.families", lambda *_: {family: family for family in families}
    )
    found = TodaysTables(paper, Campaign(Path("none"), {}))
    for key, table in paper.study.tables.items():
        if table.today:
            columns = set(found.base(key, table).columns) | {"round", "implementation"}
            assert columns >= table.today.columns.keys()
            one = OneRound(found, 1).base(key, table)
            printed = set(table_of(Report(paper), key).columns)
            assert not printed or set(one.columns) & printed


@pytest.mark.parametrize("name", PAPERS)
def test_a_campaign_that_repeats_the_report_gives_its_numbers(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the report's tables in the place of each round's, `here` computes what `report` does."""
    paper = read_paper(PROJECT, name)
    report = Report(paper)
    monkeypatch.setattr(OneRound, "base", lambda _, key, table: report.base(key, table))
    monkeypatch.setattr("analysis.studies.verdicts.complete_rounds", lambda *_: [1, 2])
    monkeypatch.setattr("analysis.studies.verdicts.families_lacking", lambda *_: [])
    found = TodaysTables(paper, Campaign(Path("none"), {}))
    for one in evaluated(name):
        for statement in one.claim.here if isinstance(one.claim.here, list) else []:
            if statement.that is None:
                continue
            finding = one_here(found, one.claim, statement, None)
            if statement.that in one.cells:
                count = len(one.cells[statement.that])
                assert (f" of {count} cells satisfy it" in finding.counted) == (count > 0)
                continue
            value = one.values[statement.that]
            assert (finding.number is None) == (value is None)
            if finding.number is not None:
                assert finding.number.value == pytest.approx(value)


def copied(name: str, tmp_path: Path) -> Path:
    shutil.copytree(PROJECT / "literature" / name, tmp_path / "literature" / name)
    return tmp_path


def test_altered_tables_alter_the_verdict(tmp_path: Path) -> None:
    """With the names of LAM and MPICH exchanged, LAM is no longer better."""
    root = copied("kearns2003", tmp_path)
    table = root / "literature" / "kearns2003" / "hpl.csv"
    text = table.read_text()
    table.write_text(
        text.replace(",LAM,", ",X,").replace(",MPICH,", ",LAM,").replace(",X,", ",MPICH,")
    )
    name = "kearns-hpl-3"
    assert named(evaluated("kearns2003"), name).report.verdict == HOLDS
    assert named(evaluate(read_paper(root, "kearns2003")), name).report.verdict == FAILS


def test_a_claim_that_holds_in_part_says_in_how_much() -> None:
    load = named(evaluated("nas2003"), "nas-load-1").report
    assert load.verdict == IN_PART and load.sentences[-1] == "3 of 4 statements hold."
