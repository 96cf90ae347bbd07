"""Every claim of every report is evaluated, by its tables and by campaigns with a known truth."""

import json
import math
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy
import polars as pl
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from playwright.sync_api import Browser

from analysis.campaign import Campaign, read_campaign
from analysis.figures import MARKERS
from analysis.studies.declaration import Statement
from analysis.studies.drawing import axis, shape, ticks
from analysis.studies.page import write_pages
from analysis.studies.reading import papers, read_paper
from analysis.studies.tables import Measured, OneRound, Report, table_of
from analysis.studies.verdicts import (
    FAILS,
    HOLDS,
    TESTED,
    UNTESTABLE,
    UNTOLD,
    Evaluated,
    evaluate,
    interval_of,
    judged,
    one_here,
)
from analysis.tables import LAUNCHES, RESULTS
from tests.analysis.synthetic import Synthetic, Truth
from tests.analysis.test_report import INJECTION, browser, luminance, open_page

__all__ = ["browser"]
PROJECT = Path(__file__).resolve().parents[2]
PAPERS = papers(PROJECT)
CLAIMS = [(name, claim.id) for name in PAPERS for claim in read_paper(PROJECT, name).claims]


def named(found: list[Evaluated], name: str) -> Evaluated:
    return next(one for one in found if one.claim.id == name)


@cache
def evaluated(name: str) -> list[Evaluated]:
    """Return a report's claims, evaluated by its own tables when a test first asks."""
    return evaluate(read_paper(PROJECT, name))


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
    verdicts = {finding.verdict for finding in one.report.findings}
    status = {
        frozenset({HOLDS}): "reproduced",
        frozenset({UNTOLD}): "not-computable",
        frozenset({FAILS}): "not-reproduced",
    }.get(frozenset(verdicts), "partly-reproduced")
    assert status == one.claim.status
    assert (one.report.verdict == HOLDS) == (one.claim.status == "reproduced")


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

    monkeypatch.setattr("analysis.studies.tables.campaign_frame", of_check)
    monkeypatch.setattr(Measured, "implementations", lambda *_: families)
    monkeypatch.setattr(
        "analysis.studies.tables.families", lambda *_: {family: family for family in families}
    )
    found = Measured(paper, Campaign(Path("none"), {}))
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
    found = Measured(paper, Campaign(Path("none"), {}))
    for one in evaluated(name):
        for statement in one.claim.here if isinstance(one.claim.here, list) else []:
            if statement.that is None:
                continue
            finding = one_here(found, one.claim, statement, None)
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


# A report that nobody wrote: a folder with a table and two files of YAML, and no code.
DEMO_STUDY = {
    "title": "Demo", "source": "nowhere", "summary": "A demonstration.", "site": "local",
    "rounds": 6,
    "stands_for": {
        "A": {"implementations": ["alpha-*"], "image": "alpha-1.0", "because": "it is alpha"},
        "B": {"implementations": ["beta-9", "beta-*"], "because": "it is beta"},
    },
    "experiments": {"hpl": {"check": "Linpack", "choose": "^Linpack", "difference": "none"}},
    "tables": {
        "hpl": {
            "file": "hpl.csv",
            "today": {
                "experiment": "hpl",
                "columns": {"procs": "ranks", "mpi": "mpi", "rate": "rate_flops / 1000000000"},
            },
        },
        "wide": {
            "of": "hpl",
            "steps": [{"side_by_side": {"of": ["rate"], "by": "mpi", "rows": ["procs"]}}],
        },
    },
    "exhibits": [
        {"number": "Table 1", "title": INJECTION, "table": "hpl", "rows": ["procs"],
         "across": "mpi", "values": {"rate": "GFLOPS"},
         "figures": [{"across": "procs", "up": "rate", "lines": ["mpi"], "label": "Figure 1"}]},
    ],
}  # fmt: skip
RATIO = {"of": "wide", "value": "EXP(AVG(LN(A / B)))", "scale": "ratio", "label": "A over B"}
DEMO_CLAIM = {
    "id": "demo-1", "kind": "claim", "source": "Table 1", "claim": f"A is faster {INJECTION}",
    "status": "reproduced", "quantities": {"ratio": RATIO},
    "report": [{"that": "ratio", "above": 1}], "here": [{"that": "ratio", "above": 1}],
}  # fmt: skip
DEMO_TABLE = "procs,mpi,rate\n1,A,2.0\n1,B,1.0\n2,A,8.0\n2,B,4.0\n"


def demo(root: Path, study: object = DEMO_STUDY, claim: object = DEMO_CLAIM) -> Path:
    folder = root / "literature" / "demo"
    folder.mkdir(parents=True)
    (folder / "hpl.csv").write_text(DEMO_TABLE)
    (folder / "study.yaml").write_text(yaml.safe_dump(study))
    (folder / "claims.yaml").write_text(yaml.safe_dump({"claims": [claim]}))
    return root


def measured(root: Path, tmp_path: Path, faster: float, rounds: int = 6, noise: float = 0.02,
             names: tuple[str, str] = ("alpha-1.0", "beta-2.0")) -> Measured:  # fmt: skip
    """Return a campaign in which the first implementation's HPL is faster by a known factor."""
    truths = {
        names[0]: Truth(latency=1e-6, bandwidth=4e9, linpack=30e9 * faster),
        names[1]: Truth(latency=1e-6, bandwidth=4e9, linpack=30e9),
    }
    folder = tmp_path / "campaign"
    Synthetic(folder, truths, rounds=rounds, noise=noise, pairs=["Send/Recv"]).write()
    return Measured(read_paper(root, "demo"), read_campaign(folder))


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


def test_one_of_many_statements_fails_only_beyond_chance() -> None:
    """Rounds whose 95% interval just leaves out what is claimed, alone and among ten."""
    values = [1.0, 1.1, 1.2, 1.3, 1.4, 1.5]
    at_95, at_995 = interval_of(values, "linear"), interval_of(values, "linear", 0.995)
    assert at_95.interval is not None and at_995.interval is not None
    limit = at_95.interval.low - 1e-6
    statement = Statement.model_validate({"that": "x", "below": limit})
    assert judged(statement, at_95.interval.low, at_95.interval.high) == FAILS
    assert judged(statement, at_995.interval.low, at_995.interval.high) == UNTOLD


@pytest.mark.parametrize(("rate", "verdict"), [(1.035, UNTOLD), (1.5, FAILS)])
def test_a_claim_of_many_statements_is_stricter(tmp_path: Path, rate: float, verdict: str) -> None:
    """Alone the statement fails at either rate; among twenty only where it clearly does."""
    one, others = {"that": "ratio", "below": 1}, {"that": "ratio", "above": 0.1}
    alone = measured(demo(tmp_path, claim=DEMO_CLAIM | {"here": [one]}), tmp_path, rate)
    (found,) = evaluate(alone.paper, alone)
    assert found.here is not None and found.here.verdict == FAILS
    root = demo(tmp_path / "many", claim=DEMO_CLAIM | {"here": [one] + 19 * [others]})
    among = Measured(read_paper(root, "demo"), alone.campaign)
    (found,) = evaluate(among.paper, among)
    assert found.here is not None and found.here.verdict == verdict


def test_a_round_that_lacks_a_cell_is_left_out(tmp_path: Path) -> None:
    root = demo(tmp_path)
    measured(root, tmp_path, 1.5)
    shutil.rmtree(next((tmp_path / "campaign" / "launches").glob("round004_Linpack*1x2*alpha*")))
    again = Measured(read_paper(root, "demo"), read_campaign(tmp_path / "campaign"))
    (one,) = evaluate(again.paper, again)
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
    assert one.here.sentences == ["Nas was not run (or no launch of it is sound)."]


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


def test_the_example_of_the_documentation_is_a_study(tmp_path: Path) -> None:
    text = (PROJECT / "docs" / "how-to" / "study.md").read_text()
    folder = tmp_path / "literature" / "smith2030"
    folder.mkdir(parents=True)
    for block in text.split("```")[1::2]:
        first = block.strip().splitlines()[0]
        if first.startswith("# literature/smith2030/"):
            (tmp_path / first.removeprefix("# ")).write_text(block)
    (folder / "hpl.csv").write_text(
        "procs,n,mpi,gflops\n4,15000,MPICH 4,2.000\n4,15000,Open MPI 4,2.100\n"
        "8,15000,MPICH 4,4.000\n8,15000,Open MPI 4,4.202\n"
    )
    paper = read_paper(tmp_path, "smith2030")
    (one,) = evaluate(paper)
    assert one.report.verdict == HOLDS and one.claim.status == "reproduced"
    assert one.values["pct"] == pytest.approx(one.claim.computed["pct"], rel=1e-3)
    write_pages(paper, None, [one], {tmp_path / "study.html": "study.html"})
    assert "Figure 2: rate over processes" in (tmp_path / "study.html").read_text()


STEPS = [
    ([{"where": "mpi = 'A'"}], "SUM(rate)", 10),
    ([{"derive": {"x": "rate * 2", "y": "x + 1"}}], "MAX(y)", 17),
    ([{"group": {"by": ["mpi"], "of": {"most": "MAX(rate)"}}}], "SUM(most)", 12),
    ([{"group": {"by": [], "of": {"most": "MAX(rate)"}}}], "SUM(most)", 8),
    ([{"sort": "rate desc"}], "FIRST(rate)", 8),
    ([{"sort": "mpi desc, procs"}], "FIRST(rate)", 1),
    ([{"join": {"table": "wide", "match": ["procs"]}}], "SUM(rate / A)", 3),
    ([{"derive": {"gap": "CASE WHEN procs = 1 THEN rate END"}}, {"fill_down": ["gap"]}],
     "SUM(gap)", 5),
    ([{"sort": "mpi, procs"},
      {"derive": {"before": "LAG(rate) OVER (PARTITION BY mpi ORDER BY procs)"}}],
     "MIN(rate / before)", 4),
]  # fmt: skip


@pytest.mark.parametrize(("steps", "value", "expected"), STEPS)
def test_steps(tmp_path: Path, steps: list[object], value: str, expected: float) -> None:
    quantity = {"of": "hpl", "steps": steps, "value": value}
    claim = DEMO_CLAIM | {"quantities": {"ratio": quantity}}
    (one,) = evaluate(read_paper(demo(tmp_path, claim=claim), "demo"))
    assert one.values["ratio"] == pytest.approx(expected)


def test_nothing_to_compute_is_no_number(tmp_path: Path) -> None:
    quantity = {"of": "hpl", "where": "procs = 64", "value": "MAX(rate)"}
    claim = DEMO_CLAIM | {"quantities": {"ratio": quantity}}
    (one,) = evaluate(read_paper(demo(tmp_path, claim=claim), "demo"))
    assert one.values["ratio"] is None and one.report.verdict == UNTOLD


MISTAKES = [
    ({"quantities": {"ratio": RATIO | {"valu": "1"}}}, "quantities.ratio.valu: Extra inputs"),
    ({"quantities": {"ratio": RATIO | {"of": "narrow"}}}, "ratio.of: narrow is no table"),
    ({"report": [{"that": "ratoi", "above": 1}]}, "ratoi is not among the quantities"),
    ({"report": [{"that": "ratio", "above": 1, "below": 2}]}, "it has above and below"),
    ({"report": [{"that": "ratio", "about": 1}]}, "about and within belong together"),
    ({"report": [{"that": "ratio", "above": 1, "families": ["C"]}]}, "C is not among stands_for"),
    ({"quantities": {"ratio": RATIO | {"steps": [{"where": "x", "sort": "x"}]}}}, "where and sort"),
    ({"quantities": {"ratio": RATIO | {"value": "EXP("}}}, "demo-1: quantities.ratio.value: "),
    ({"quantities": {"ratio": RATIO | {"value": "MAX(C)"}}}, 'unable to find column "C"'),
    ({"quantities": {"ratio": RATIO | {"value": "A / B"}}}, "gives 2 values, not one"),
    ({"here": [{"that": "ratio", "equals": "2"}]}, "equals is for the report alone"),
    ({"report": [{"that": "ratio", "equals": "2"}]}, "ratio is no text"),
    ({"quantities": {"ratio": RATIO | {"value": "FIRST('x')"}}}, "ratio is a text"),
    ({"claim": " "}, "claim demo-1: claim: is empty"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "sentence"), MISTAKES)
def test_a_mistake_is_a_sentence_with_file_and_claim(
    tmp_path: Path, change: dict[str, object], sentence: str
) -> None:
    root = demo(tmp_path, claim=DEMO_CLAIM | change)
    with pytest.raises(ValueError, match=r"demo/claims\.yaml: claim demo-1: ") as caught:
        evaluate(read_paper(root, "demo"))
    assert sentence in str(caught.value)


def test_broken_yaml_is_a_sentence_with_a_line(tmp_path: Path) -> None:
    path = demo(tmp_path) / "literature" / "demo" / "study.yaml"
    path.write_text("title: Demo\nsource: [\n")
    with pytest.raises(ValueError, match=r"study\.yaml:3: "):
        read_paper(tmp_path, "demo")


def test_an_unknown_report_is_a_sentence_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="literature/ has: iit, kearns2003, nas2003"):
        read_paper(PROJECT, "kearns")


def test_expressions_reach_no_files(tmp_path: Path) -> None:
    quantity = {"of": "hpl", "value": "(SELECT COUNT(*) FROM read_csv('/etc/passwd'))"}
    root = demo(tmp_path, claim=DEMO_CLAIM | {"quantities": {"ratio": quantity}})
    with pytest.raises(ValueError, match=r"demo/claims\.yaml: claim demo-1: "):
        evaluate(read_paper(root, "demo"))


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


def test_a_claim_that_holds_in_part_says_in_how_much() -> None:
    load = named(evaluated("nas2003"), "nas-load-1").report
    assert load.verdict == FAILS and load.sentences[-1] == "3 of 4 statements hold."


@given(st.floats(1e-6, 1e9), st.floats(1.01, 1e6))
def test_axes_have_ticks_inside(low: float, factor: float) -> None:
    across = axis([low, low * factor], 0.0, 100.0)
    found = ticks(across)
    assert len(found) >= 2
    assert all(across.low * 0.999 <= tick <= across.high * 1.001 for tick in found)
    assert found == sorted(found)


def test_a_figure_with_many_lines_tells_them_apart() -> None:
    looks = {(style % 6, shape(style) % len(MARKERS)) for style in range(36)}
    assert len(looks) == 36


def test_a_ratio_is_a_geometric_mean() -> None:
    assert interval_of([0.5, 2.0], "ratio").value == pytest.approx(1)
    assert math.isclose(interval_of([1.0, 2.0], "linear").value, 1.5)  # type: ignore[arg-type]


def pages(found: Measured, tmp_path: Path) -> tuple[Path, Path]:
    html, text = tmp_path / "study.html", tmp_path / "study.md"
    evaluated = evaluate(found.paper, found)
    write_pages(found.paper, found, evaluated, {html: "study.html", text: "study.md"})
    return html, text


def test_pages_have_both_numbers_and_all_verdicts(tmp_path: Path) -> None:
    html, text = pages(measured(demo(tmp_path), tmp_path, 1.5, noise=0.0), tmp_path)
    for content in (html.read_text(), text.read_text()):
        assert "demo-1" in content and "alpha-1.0" in content
        # 8 GFLOPS printed at 2 processes, and the synthetic truth's 90.
        assert "8" in content and "90" in content and INJECTION not in content
        for word in (HOLDS, TESTED):
            assert word in content
    assert "| procs | A GFLOPS, report | A GFLOPS, today |" in text.read_text()
    assert html.read_text().count("<svg viewBox") == 2


@pytest.mark.parametrize("name", PAPERS)
def test_pages_without_a_campaign(name: str, tmp_path: Path) -> None:
    paper = read_paper(PROJECT, name)
    html, text = tmp_path / "study.html", tmp_path / "study.md"
    write_pages(paper, None, evaluated(name), {html: "study.html", text: "study.md"})
    for claim in paper.claims:
        assert f'id="{claim.id}"' in html.read_text() and claim.id in text.read_text()
    for exhibit in paper.study.exhibits:
        assert exhibit.absent or not table_of(Report(paper), str(exhibit.table)).is_empty() or (
            paper.study.tables[str(exhibit.table)].today
        )  # fmt: skip


@pytest.mark.browser
@pytest.mark.parametrize(("width", "dark"), [(1280, False), (360, True)])
def test_page_is_legible(browser: Browser, tmp_path: Path, width: int, dark: bool) -> None:
    html, _ = pages(measured(demo(tmp_path), tmp_path, 1.5), tmp_path)
    page = open_page(browser, html, width, dark)
    assert page.title() == "Demo · Wyeast"
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert (luminance(page) < 0.2) == dark
    assert INJECTION in page.locator("#demo-1 blockquote").inner_text()
    assert page.locator("#exhibits img, script").count() == 0
    assert page.locator("figure svg").count() == 2
    page.close()


def command(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "analysis", "study", *words],
        cwd=PROJECT, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_command_prints_tables_and_claims(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    done = command("kearns2003", "--html", str(page))
    assert done.returncode == 0, done.stderr
    assert "Table 9: Process start-up" in done.stdout and "2.402" in done.stdout
    assert "29 claims, of which 18 hold" in done.stdout and page.is_file()


def test_command_refuses_with_a_sentence() -> None:
    done = command("kearns")
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert "literature/ has: iit, kearns2003" in done.stderr
    assert command("iit", "--page").returncode == 1


def test_a_campaign_of_the_thesis_gets_its_pages(tmp_path: Path) -> None:
    """Of LAM and MPICH with a known truth: LAM's HPL is half as fast again."""
    truths = {
        "lam-7.1.4": Truth(latency=1e-6, bandwidth=4e9, linpack=45e9),
        "mpich-5.0.2": Truth(latency=1e-6, bandwidth=4e9, linpack=30e9),
    }
    folder = Synthetic(tmp_path / "campaign", truths, rounds=6).write()
    done = command("kearns2003", str(folder), "--page", "--no-tables")
    assert done.returncode == 0, done.stderr
    page = (folder / "study.html").read_text()
    for name in ("kearns-hpl-1", "kearns-hpl-3"):
        article = page.split(f'<article id="{name}">')[1].split("</article>")[0]
        here = article.split("Holds here?")[1].split("</dd>")[0]
        assert "told holds" in here and "6 rounds" in here
    assert "2 nodes or more" in page.split('<article id="kearns-bw-1">')[1].split("</article>")[0]
    assert (folder / "study.md").is_file()
