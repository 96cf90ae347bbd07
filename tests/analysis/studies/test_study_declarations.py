"""Studies and claims as data: what can be written, and the sentence on what cannot."""

from pathlib import Path

import pytest

from analysis.studies.one_number import HOLDS, UNTOLD
from analysis.studies.page import write_pages
from analysis.studies.reading import read_paper
from analysis.studies.verdicts import evaluate
from tests.analysis.support.study_samples import DEMO_CLAIM, PROJECT, RATIO, demo


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


CELLS = {"of": "wide", "each": ["procs"], "value": "A / B", "scale": "ratio"}
EVERY = {key: [{"that": "ratio", "cells": "every", "above": 1}] for key in ("report", "here")}
MISTAKES = [
    ({"quantities": {"ratio": RATIO | {"valu": "1"}}}, "quantities.ratio.valu: Extra inputs"),
    ({"quantities": {"ratio": RATIO | {"of": "narrow"}}}, "ratio.of: narrow is not a table"),
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
    ({"quantities": {"ratio": CELLS}}, "ratio has each, so say for how many cells"),
    ({"report": [{"that": "ratio", "above": 1, "cells": "every"}]}, "cells is for a quantity with"),
    ({"report": [{"that": "ratio", "above": 1, "cells": 1.5}]}, "cells: every, some, or a share"),
    ({"quantities": {"ratio": RATIO | {"value": ["A / B", "A"]}}}, "in value need each"),
    ({"quantities": {"one": CELLS, "ratio": {"from": ["one"], "value": "one"}}}, "one has each"),
    ({"quantities": {"ratio": CELLS | {"of": "hpl", "value": "rate"}}, **EVERY},
     "gives several values for procs 1; each lacks a column"),
    ({"quantities": {"ratio": CELLS | {"value": "A / C"}}, **EVERY}, "ratio.value: "),
    ({"quantities": {"ratio": RATIO | {"of": "hpl", "steps": [
        {"derive": {"kind": "1"}},
        {"side_by_side": {"of": ["rate"], "by": "mpi", "rows": ["kind"]}}]}}},
     "several rows have kind 1, mpi A; name the column"),
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
