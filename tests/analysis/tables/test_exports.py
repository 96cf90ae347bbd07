"""Exports say what the report says; what a cell or a sentence holds stays text in all of them."""

import csv
import io
import re
import shutil
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from analysis.__main__ import app
from analysis.comparison.compare import compare
from analysis.comparison.ranking import ranked
from analysis.comparison.tables import group_table, median_table, ratio_table
from analysis.models.all_tables import Models
from analysis.report.all_tables import tables_of
from analysis.report.junit import junit
from analysis.report.markdown import markdown
from analysis.tables.csv import csv_field, csv_text, downloads_of
from analysis.tables.latex import latex_cell, latex_table
from analysis.tables.markdown import markdown_cell
from analysis.tables.table import Column, Row, Table, plain_columns
from records.campaign import read_campaign
from tests.analysis.report.test_traces import unfolded
from tests.analysis.support.synthetic import TWICE, Synthetic, Truth

PROJECT = Path(__file__).resolve().parents[3]
HOSTILE = "=cmd|'/C calc'!A0 \\input{/etc/passwd} <b>&amp; | `x` $x_1^2$ %\n#~ \x00\x1b[31m"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a campaign in which one launch failed, one is suspect, and one cannot be read."""
    pairs = ["Send/Recv", "Isend/Irecv"]
    synthetic = Synthetic(tmp_path_factory.mktemp("export") / "c", TWICE, rounds=4, pairs=pairs)
    path = synthetic.write()
    for number, outcome in ((7, "failed"), (8, "suspect")):
        synthetic.launch(number, "alpha-1.0", "PointToPoint",
                         {"pair": "Send/Recv", "message_range": "short"}, "",
                         outcome=outcome, sentence=HOSTILE)  # fmt: skip
    (path / "launches" / "broken").mkdir()
    return path


def givenof(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_every_number_of_a_csv_can_be_traced(folder: Path) -> None:
    campaign = read_campaign(folder)
    comparison = compare(campaign)
    rows = givenof(csv_text(median_table(comparison, "PointToPoint")))
    estimates = sum(
        len(of) for cell in comparison.experiment("PointToPoint") for of in cell.estimates.values()
    )
    assert len(rows) == estimates > 0
    for row in rows:
        assert row["campaign"] == "c" and row["formula"] and int(row["launches (1)"]) == 4
        digest = campaign.manifest["images"][row["implementation"]]["sha256"]
        assert row["image_sha256"] == digest
    [cell] = [
        cell
        for cell in comparison.cells
        if cell.name == "PointToPoint pair=Send/Recv message_range=short"
    ]
    own = [r for r in rows if r["cell"] == cell.name and r["implementation"] == "beta-2.0"]
    # Numbers are written in full.
    assert [float(row["median_bandwidth (B/s)"]) for row in own] == [
        estimate.median for estimate in cell.estimates["beta-2.0"]
    ]


def test_a_verdict_has_all_that_it_is_judged_by(folder: Path) -> None:
    """The words of a row follow from its numbers alone: corrected p values, ratio and margin."""
    rows = givenof(csv_text(ratio_table(compare(read_campaign(folder)), "PointToPoint")))
    rows += givenof(csv_text(ratio_table(compare(read_campaign(folder)), "Linpack")))
    told = [row for row in rows if row["p_adjusted (1)"]]
    assert told
    for row in told:
        margin = float(row["margin (1)"])
        equivalent = float(row["p_equivalence_adjusted (1)"]) < 0.01
        different = float(row["p_adjusted (1)"]) < 0.04
        faster = "faster" if float(row["ratio (1)"]) > 1 else "slower"
        words = f"equivalent within {100 * margin:.3g}%" if equivalent else "no difference shown"
        assert row["verdict"] == (faster if different else words)
        low, high = (float(row[f"interval_{end} (1)"]) for end in ("low", "high"))
        assert (not low <= 1 <= high) == different
        own_low, own_high = (float(row[f"own_95_interval_{end} (1)"]) for end in ("low", "high"))
        assert own_low < own_high


def test_every_column_of_a_number_has_its_unit(folder: Path) -> None:
    campaign = read_campaign(folder)
    tables = tables_of(compare(campaign), PROJECT)
    assert "lines-between-protocol-switches" in {table.name for table in tables}
    for table in tables:
        for place, name in enumerate(table.heads):
            values = [table.record(row)[place] for row in table.rows]
            if any(isinstance(value, float) for value in values):
                assert re.search(r" \(.+\)$", name), f"{table.name}: {name}"


def test_answers_are_those_of_the_comparison(folder: Path) -> None:
    comparison = compare(read_campaign(folder))
    rows = givenof(csv_text(group_table(comparison)))
    verdicts = [verdict for group in comparison.groups for verdict in group.verdicts.values()]
    assert [row["verdict"] for row in rows] == [verdict.words for verdict in verdicts]
    assert [float(row["ratio (1)"]) for row in rows] == [v.ratio.value for v in verdicts]


def test_every_row_of_a_cell_names_its_launches(folder: Path) -> None:
    """Those of derived tables too; a sweep's row has the launches of all its ranges of sizes."""
    campaign = read_campaign(folder)
    comparison = compare(campaign)
    derived = Models(campaign, PROJECT).derived
    assert derived and not any("launch_names" in table.heads for table in derived)
    tables = tables_of(comparison, PROJECT)
    having = [table for table in tables if {"cell", "implementation"} <= set(table.heads)]
    known = {launch.record.launch: launch.record for launch in campaign.sound()}
    assert {table.name for table in derived if "cell" in table.heads} <= {t.name for t in having}
    for table in (one for one in having if one.name != "launches"):
        for row in givenof(csv_text(table)):
            names = unfolded(row["launch_names"])
            assert names and names <= known.keys(), table.name
            parts = set(row["cell"].split())
            for record in (known[name] for name in names):
                assert record.implementation == row["implementation"]
                # A row of a sweep names no range of sizes, another only its own.
                ranged = any("message_range" in part for part in parts)
                assert {p for p in record.cell.split() if ranged or "range" not in p} <= parts


def test_no_field_is_a_formula() -> None:
    given = [Row((HOSTILE, -1.5)), Row(("-2 s", None)), Row(("@x", True))]
    table = Table("t", "t", (Column("a"), Column("b", unit="s")), given)
    rows = list(csv.reader(io.StringIO(csv_text(table))))
    assert rows[1][0].startswith("'=cmd") and rows[1][1] == "-1.5"
    assert rows[2] == ["'-2 s", ""] and rows[3] == ["'@x", "true"]
    assert not any(ord(sign) < 32 and sign not in "\n\t" for row in rows for sign in row[0])


@pytest.mark.parametrize(
    ("text", "field"),
    [
        (";=cmd|' /C calc'!A0", "';'=cmd|' /C calc'!A0"), ("a;=1+1;b", "a;'=1+1;b"),
        ("a\n@x", "a\n'@x"), ("\uff1dcmd", "'\uff1dcmd"), ("a; b = c", "a; b = c"),
    ],
)  # fmt: skip
def test_no_field_is_a_formula_where_semicolons_separate(text: str, field: str) -> None:
    """As in countries that have a comma in their numbers; a comma's quotes do not help there."""
    assert csv_field(text) == field


def test_no_head_is_a_formula() -> None:
    table = Table("t", "t", (Column("=cmd|' /C calc'!A0"), Column("b")), [])
    [heads] = csv.reader(io.StringIO(csv_text(table)))
    assert heads == ["'=cmd|' /C calc'!A0", "b"]


@pytest.mark.parametrize("text", ["-1+cmd|' /C calc'!A0", "+1+HYPERLINK(A1)", "-.5+A1", "-", "+A1"])
def test_a_sign_before_a_digit_makes_no_number(text: str) -> None:
    assert csv_field(text) == f"'{text}"


@pytest.mark.parametrize("text", ["-1", "+2.5e-3", "-.5", "-inf", "a-b", "1+1"])
def test_a_number_with_its_sign_stays_one(text: str) -> None:
    assert csv_field(text) == text


@given(st.text())
def test_latex_is_escaped_whatever_the_text(text: str) -> None:
    found = latex_cell(text)
    # Every command, group and sign with a meaning must be one that the escape wrote.
    known = (r"\\(textbackslash|textasciicircum|textasciitilde|textasciigrave|textless|textgreater|"
             r"textbar|textquotedbl|textmu|allowbreak)\{\}|\\[{}$&%#_]|\$\\times\$")  # fmt: skip
    assert not re.search(r"[\\{}$&%#_^~<>|\n]", re.sub(known, "", found))


def test_a_hostile_cell_is_text_in_latex() -> None:
    columns, row = ("cell", "median (s)"), (HOSTILE, 1.5e-6)
    text = latex_table(HOSTILE, columns, [row])
    assert r"\input" not in text and r"\textbackslash{}input\{" in text and "\x1b" not in text
    # The head stands on the first page and, after \endfirsthead, on each that follows.
    assert text.count(r"\toprule") == text.count(r"\midrule") == 2
    assert text.count(r"\bottomrule") == 1
    assert "{lr}" in text and "1.5e-06" in text
    # One line is one row: a line's end in a name does not begin another.
    assert sum(line.endswith(r" \\") for line in text.splitlines()) == 3


def test_a_latex_table_fits_its_page() -> None:
    narrow = latex_table("T", ("a", "b (s)"), [("x", 1.0), ("y", 2.0)])
    assert "landscape" not in narrow and "{lr}" in narrow and r"\shortstack[r]{b\\(s)}" in narrow
    words = "PointToPoint pair=Send/Recv message_range=short " * 4
    rows: list[tuple[object, ...]] = [(f"{words}{i}", words, 1.5 * i, f"w{i}") for i in range(2)]
    wide = latex_table("PointToPoint", ("cell", "base", "time (s)", "verdict"), rows)
    assert wide.count("landscape") == 2
    [width] = re.findall(r"p\{([0-9.]+)\\linewidth\}", wide)
    assert 0.5 < float(width) < 1
    # What all rows have in common stands in the title.
    assert f"PointToPoint; base {latex_cell(words)}" in wide
    assert "\nPointToPoint" not in wide and r"pair=\allowbreak{}Send/\allowbreak{}Recv" in wide


def test_latex_of_a_campaign_has_balanced_environments(folder: Path) -> None:
    done = CliRunner().invoke(app, ["export", str(folder), "--format", "latex", "-o", "-"])
    assert done.exit_code == 0
    assert done.stdout.count(r"\begin{longtable}") == done.stdout.count(r"\end{longtable}") > 2
    for table in done.stdout.split(r"\begin{longtable}{")[1:]:
        kinds = re.sub(r">\{\\raggedright\\arraybackslash\}p\{[0-9.]+\\linewidth\}", "l", table)
        columns = len(kinds.split("}", 1)[0])
        rows = table.split(r"\toprule")[1].split(r"\bottomrule")[0]
        body = [line for line in rows.splitlines() if line.endswith(r" \\")]
        assert {len(re.findall(r"(?<!\\)&", line)) + 1 for line in body} == {columns}


@given(st.text(alphabet=st.characters(codec="utf-8")))
def test_a_markdown_cell_is_one_cell(text: str) -> None:
    found = markdown_cell(text)
    assert "\n" not in found and not re.search(r"(?<!\\)(\\\\)*[|<`]", re.sub(r"\\\\", "", found))


def test_the_markdown_answers_in_words_and_ranks(folder: Path) -> None:
    comparison = compare(read_campaign(folder))
    text = markdown(comparison)
    assert text.startswith("# Which MPI is faster on local?")
    assert "beta-2.0 is faster than alpha-1.0" in text
    ranks = text.split("## Short messages, all pairs")[1].split("##")[0]
    base = "| 2 | alpha-1.0 | 2 of 2 | 1.000 | – | base |"
    assert ranks.index("| 1 | beta-2.0 | 2 of 2 |") < ranks.index(base)
    left_out = text.split("## Left out")[1]
    assert "broken" in left_out and "failed: " in left_out and "\x1b" not in text


def test_what_lacks_cells_has_no_rank(tmp_path: Path) -> None:
    """Gamma is slow but in the cells that it has; so it is not called the best."""
    truths = TWICE | {"gamma-1.0": Truth(latency=2e-7, bandwidth=2e10, linpack=30e9)}
    folder = Synthetic(tmp_path / "c", truths, rounds=3, pairs=["Send/Recv", "Isend/Recv"]).write()
    for launch in (folder / "launches").glob("*Isend_Recv*gamma-1.0"):
        shutil.rmtree(launch)
    table = next(ranked(group, "alpha-1.0") for group in compare(read_campaign(folder)).groups
                 if group.name == "Short messages, all pairs")  # fmt: skip
    rows = [table.words(row) for row in table.rows]
    assert [row[:3] for row in rows] == [
        ("1", "beta-2.0", "2 of 2"), ("2", "alpha-1.0", "2 of 2"), ("–", "gamma-1.0", "1 of 2"),
    ]  # fmt: skip
    assert float(rows[2][3]) > float(rows[0][3]) and rows[2][5] == "faster"


def test_where_each_lacks_another_cell_nothing_has_a_rank(tmp_path: Path) -> None:
    truths = TWICE | {"gamma-1.0": TWICE["beta-2.0"]}
    folder = Synthetic(tmp_path / "c", truths, rounds=3, pairs=["Send/Recv"]).write()
    for fits in ("*1x2*beta-2.0", "*1x1*gamma-1.0"):
        for launch in (folder / "launches").glob(fits):
            shutil.rmtree(launch)
    table = next(ranked(group, "alpha-1.0") for group in compare(read_campaign(folder)).groups
                 if group.experiment == "Linpack")  # fmt: skip
    rows = [table.words(row) for row in table.rows]
    assert [row[0] for row in rows] == ["–"] * 3
    assert {row[1]: row[2] for row in rows} == {
        "alpha-1.0": "2 of 2", "beta-2.0": "1 of 2", "gamma-1.0": "1 of 2",
    }  # fmt: skip


#: JUnit as Ant began it and Jenkins and GitLab read it: element -> (children, attributes needed,
#: attributes allowed).
JUNIT = {
    "testsuites": ({"testsuite"}, set(), {"name", "tests", "failures", "errors", "time"}),
    "testsuite": (
        {"testcase"}, {"name", "tests"},
        {"name", "tests", "failures", "errors", "skipped", "time", "timestamp", "hostname"},
    ),
    "testcase": ({"failure", "error", "skipped"}, {"name", "classname"},
                 {"name", "classname", "time"}),
    "failure": (set(), set(), {"message", "type"}),
    "error": (set(), set(), {"message", "type"}),
}  # fmt: skip


def test_junit_has_the_usual_structure(folder: Path) -> None:
    campaign = read_campaign(folder)
    text = junit(campaign)
    root = ElementTree.fromstring(text)
    for element in root.iter():
        children, needed, allowed = JUNIT[element.tag]
        assert {child.tag for child in element} <= children
        assert needed <= set(element.keys()) <= allowed
    cases = list(root.iter("testcase"))
    assert len(cases) == len(campaign.launches) + 1 == int(root.get("tests", 0))
    failures = {failure.get("type"): failure for failure in root.iter("failure")}
    assert set(failures) == {"failed", "suspect"}
    assert "=cmd|'/C calc'" in str(failures["failed"].get("message"))
    assert "\x1b" not in text and "\x00" not in text
    [error] = root.iter("error")
    assert "broken" in str(error.text)
    for suite in root:
        assert int(suite.get("tests", 0)) == len(list(suite))
        assert int(suite.get("failures", 0)) == len(list(suite.iter("failure")))
        # No two cases are called the same, so that a history of them can be kept.
        names = [(case.get("classname"), case.get("name")) for case in suite]
        assert len(set(names)) == len(names)


@pytest.mark.parametrize(
    ("format_", "names"),
    [
        ("csv", {"answers.csv", "medians-PointToPoint.csv", "ratios-Linpack.csv", "launches.csv",
                 "left-out.csv", "high-performance-linpack.csv"}),
        ("markdown", {"summary.md"}), ("latex", {"tables.tex"}), ("junit", {"junit.xml"}),
    ],
)  # fmt: skip
def test_command(folder: Path, tmp_path: Path, format_: str, names: set[str]) -> None:
    into = tmp_path / "out"
    done = CliRunner().invoke(app, ["export", str(folder), "--format", format_, "-o", str(into)])
    assert done.exit_code == 0
    written = {path.name for path in into.iterdir()}
    assert names <= written and all((into / name).stat().st_size for name in written)
    printed = CliRunner().invoke(app, ["export", str(folder), "--format", format_, "-o", "-"])
    assert printed.exit_code == 0 and printed.stdout


def test_mistakes_are_one_sentence(folder: Path, tmp_path: Path) -> None:
    in_the_way = tmp_path / "file"
    in_the_way.write_text("")
    for words, sentence in (
        (["--base", "gamma"], "gamma was not measured"),
        (["-o", str(in_the_way)], "is a file; name a folder"),
    ):
        done = CliRunner().invoke(app, ["export", str(folder), *words])
        assert done.exit_code == 1 and sentence in done.stderr
        assert "Traceback" not in done.output


def test_links_keep_to_their_budget() -> None:
    tables = [
        Table(
            f"t{size}",
            "t",
            plain_columns("a", "b"),
            [Row((n, hash((size, n)))) for n in range(size)],
        )
        for size in (10, 10_000)
    ]
    links = downloads_of(tables, budget=10_000)
    assert links["t10"].href is not None and links["t10000"].href is None
    assert links["t10000"].rows == 10_000
