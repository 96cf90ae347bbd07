"""Every number of the report and of its tables leads to its launches, image and formula."""

import csv
import io
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from playwright.sync_api import Browser

from analysis.comparison.compare import compare
from analysis.comparison.tables import group_table, median_table, ratio_table
from analysis.models.message_tables import parameter_table, segment_table
from analysis.models.messages import fitted_in
from analysis.report.all_tables import tables_of
from analysis.report.traces import Traces
from analysis.tables.csv import csv_text
from analysis.tables.launch_names import folded
from analysis.tables.table import Column, Row, Table
from records.campaign import read_campaign
from tests.analysis.models.test_refined_sizes import campaign as refined_campaign
from tests.analysis.report.test_report import browser, open_page  # noqa: F401
from tests.analysis.support.synthetic import TWICE, Synthetic
from tests.busy_campaign import busy_campaign

PROJECT = Path(__file__).resolve().parents[3]
CELL = "PointToPoint_pair=Send_Recv_message_range=short"


def unfolded(text: str) -> set[str]:
    """Return the names that were folded, as Slurm would."""
    names = set()
    for word in text.split(" "):
        found = re.fullmatch(r"round\[([^]]+)\](.*)", word)
        if not found:
            names.add(word)
            continue
        for part in found[1].split(","):
            first, last = part.split("-") if "-" in part else (part, part)
            names |= {
                f"round{number:0{len(first)}d}{found[2]}"
                for number in range(int(first), int(last) + 1)
            }
    return names


@given(st.sets(st.tuples(st.integers(0, 1200), st.sampled_from("ab")), min_size=1))
def test_folded_names_are_all_of_them(launches: set[tuple[int, str]]) -> None:
    names = {f"round{number:03d}_{rest}" for number, rest in launches} | {"foreign"}
    assert unfolded(folded(names)) == names


def test_many_rounds_are_few_words() -> None:
    assert folded(f"round{n:03d}_x" for n in range(1, 901)) == "round[001-900]_x"
    assert folded(["round007_x"]) == "round007_x"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a campaign in which a launch of the third of four rounds failed."""
    made = Synthetic(tmp_path_factory.mktemp("t") / "c", TWICE, rounds=4, pairs=["Send/Recv"])
    path = made.write()
    (path / "launches" / f"round003_{CELL}_beta-2.0" / "stdout").write_text("")
    return path


def test_tables_name_the_launches_that_entered(folder: Path) -> None:
    comparison = compare(read_campaign(folder))
    medians = list(csv.DictReader(io.StringIO(csv_text(median_table(comparison, "PointToPoint")))))
    for row in medians:
        names = unfolded(row["launch_names"])
        assert len(names) == int(row["launches (1)"])
        assert all((folder / "launches" / name / "launch.json").is_file() for name in names)
    [short] = {r["launch_names"] for r in medians if row_is(r, "short", "beta-2.0")}
    assert short == f"round[001-002,004]_{CELL}_beta-2.0"
    ratios = list(csv.DictReader(io.StringIO(csv_text(ratio_table(comparison, "PointToPoint")))))
    [ratio] = [row for row in ratios if row_is(row, "short", "beta-2.0")]
    # The base was measured in the third round too, but there is nothing to pair it with.
    assert ratio["base_launch_names"] == f"round[001-002,004]_{CELL}_alpha-1.0"
    answers = list(csv.DictReader(io.StringIO(csv_text(group_table(comparison)))))
    assert {row["group"]: row["launch_names"] for row in answers}[
        "Short messages, all pairs"
    ] == short


def row_is(row: dict[str, str], message_range: str, implementation: str) -> bool:
    return row["cell"].endswith(message_range) and row["implementation"] == implementation


def test_entries_are_bounded(folder: Path) -> None:
    comparison = compare(read_campaign(folder))
    every = Traces(comparison)
    ids = [every.cell(cell) for cell in comparison.cells]
    assert len(set(ids)) == len(every.entries) == 5
    assert [every.cell(cell) for cell in comparison.cells] == ids
    few = Traces(comparison, room=2000)
    ids = [few.cell(cell) for cell in comparison.cells]
    assert ids[0] == "trace-1" and set(ids[-2:]) == {"trace-others"}
    assert [one.id for one in few.entries].count("trace-others") == 1
    assert all(source.digest for one in few.entries for source in one.sources)


def test_a_row_of_a_table_takes_the_launches_of_its_cell(folder: Path) -> None:
    traces = Traces(compare(read_campaign(folder)))
    # A sweep is named without its ranges of sizes, and is of all of them.
    table = segment_table(fitted_in(read_campaign(folder)).models)
    row = next(row for row in table.rows if row.implementation == "beta-2.0")
    assert table.words(row)[0] == "PointToPoint pair=Send/Recv"
    traces.row(table, row)
    assert traces.entries[0].formulas == tuple(table.notes)
    [source] = traces.entries[0].sources
    assert source.implementation == "beta-2.0" and len(source.launches) == 3
    table = Table("node", "Node", (Column("implementation", "implementation"),), notes=["none"])
    traces.row(table, Row(("a machine of 1996",)))
    assert traces.entries[1].sources == ()


@pytest.fixture(scope="module")
def sample() -> dict[str, list[dict[str, str]]]:
    """Return the rows of the sample's tables by name."""
    campaign = read_campaign(busy_campaign())
    tables = tables_of(compare(campaign), PROJECT)
    return {table.name: list(csv.DictReader(io.StringIO(csv_text(table)))) for table in tables}


def cells_of(row: dict[str, str]) -> set[str]:
    """Return the cells of a row's launches, as folders have them."""
    name = next(row[key] for key in row if key.startswith("implementation"))
    return {
        re.sub(r"^round\d+_|_[^_]*$", "", one)
        for one in unfolded(row["launch_names"])
        if one and one.endswith(f"_{name}")
    }


def test_derived_numbers_lead_to_the_launches_that_they_are_of(
    sample: dict[str, list[dict[str, str]]],
) -> None:
    parameters = {row["parameter"]: row for row in sample["loggp-parameters"]}
    assert cells_of(parameters["L + o_s + o_r"]) == {"EchoTest_ranks=2"}
    assert {one.split("_")[0] for one in cells_of(parameters["G"])} <= {"EchoTest", "PointToPoint"}
    assert len({one.split("_message")[0] for one in cells_of(parameters["G"])}) == 1
    assert parameters["g"]["launch_names"] == ""
    speedups = {row["program"]: row for row in sample["speedup-and-serial-part"]}
    assert cells_of(speedups["HPL 1x2 N=2000 NB=192"]) == {
        f"Linpack_grid={grid}_n=2000_nb=192" for grid in ("1x1", "1x2")
    }
    assert cells_of(speedups["NAS CG.S"]) == {f"Nas_benchmark=CG_size=S_ranks={n}" for n in (1, 2)}
    for row in sample["high-performance-linpack"]:
        own = {f"Linpack_grid={grid}_n={row['N (1)']}_nb=192" for grid in ("1x1", row["grid"])}
        assert cells_of(row) == {*own, "Dgemm_ranks=2_n=1500"}
    assert {frozenset(cells_of(row)) for row in sample["self-consistency-guidelines"]} == {
        frozenset(["Collectives_suite=ata_ranks=2"])
    }
    assert {frozenset(cells_of(row)) for row in sample["what-a-node-does-by-itself"]} == {
        frozenset(["Dgemm_ranks=2_n=1500", "Stream_ranks=2", "SerialLinpack_ranks=1"])
    }
    cycles = sample["operations-and-latency-in-cycles"]
    assert [cells_of(row) for row in cycles[:2]] == [
        {"SerialLinpack_ranks=1", "EchoTest_ranks=2"}
    ] * 2
    assert all(row["image_sha256"] for row in cycles[:2])
    assert not any(row["launch_names"] or row["image_sha256"] for row in cycles[2:])


def test_every_table_of_an_implementation_has_launches(
    sample: dict[str, list[dict[str, str]]],
) -> None:
    """But for what is not known, and for machines of a report."""
    for name, rows in sample.items():
        if name in ("launches", "left-out") or not any(k.startswith("impl") for k in rows[0]):
            continue
        for row in rows:
            told = "not known" not in row["formula"] and row["image_sha256"]
            assert not told or row["launch_names"], (name, row)


def test_a_row_of_the_report_leads_to_its_own_cells() -> None:
    """Half the round trip of 0 bytes in EchoTest: nothing of any other experiment."""
    campaign = read_campaign(busy_campaign())
    table = parameter_table(fitted_in(campaign))
    assert table is not None
    traces = Traces(compare(campaign))
    row = next(row for row in table.rows if table.value(row, "parameter") == "L + o_s + o_r")
    traces.row(table, row)
    [source] = traces.entries[0].sources
    assert source.launches == (f"round[001-003]_EchoTest_ranks=2_{row.implementation}",)


def test_what_was_not_told_leads_to_what_was_looked_at(tmp_path: Path) -> None:
    """Also to Mpptest, of which LogGP's parameters are taken."""
    campaign = refined_campaign(tmp_path / "c", [[4096]] * 2)
    table = parameter_table(fitted_in(campaign))
    assert table is not None
    traces = Traces(compare(campaign))
    for row in table.rows:
        traces.row(table, row)
    assert {name for entry in traces.entries for one in entry.sources for name in one.launches} == {
        f"round[001-002]_Mpptest_suite=protocols_ranks_per_node=1_{name}" for name in TWICE
    }
    assert all(source.launches for entry in traces.entries for source in entry.sources)


@pytest.mark.browser
@pytest.mark.parametrize("width", [1280, 360])
def test_every_number_leads_to_its_launches(
    browser: Browser,  # noqa: F811
    any_report: Path,
    width: int,
) -> None:
    page = open_page(browser, any_report, width)
    page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    # Each number with what the link of its row, or of its group of rows, leads to.
    found: list[list[str]] = page.evaluate(
        """[...document.querySelectorAll('td.number')].filter(one => /[0-9]/.test(one.innerText))
        .map(one => {
          const link = one.closest('tr').querySelector('a.trace')
            || one.closest('tbody').querySelector('th a.trace');
          const entry = link && document.querySelector(link.getAttribute('href'));
          return [one.innerText, entry ? entry.innerText : 'nothing'];
        })"""
    )
    assert len(found) > 100
    campaign = any_report.parent.name
    folders = {path.name for path in (any_report.parent / "launches").iterdir()}
    for number, said in found:
        assert f"campaign {campaign}" in said, number
        if "not measured in this campaign" in said:
            # The machines of 1996.
            assert "ORNL 1996, Table" in said
            continue
        names = re.findall(r"round\S+?_[^\s,]+", said)
        assert names and unfolded(" ".join(names)) <= folders, (number, said)
        assert re.search(r"image sha256 [0-9a-f]{12}: round", said)
        assert said.count("\n") >= 2
    page.close()


@pytest.mark.browser
def test_hovering_says_where_a_number_is_from(
    browser: Browser,  # noqa: F811
    report: Path,
) -> None:
    page = open_page(browser, report, 1280)
    page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    for table in ("#answer", "#point-to-point", "#linpack"):
        cell = page.locator(f"{table} td.number").nth(2)
        cell.hover()
        title = str(cell.get_attribute("title"))
        assert re.search(r"image sha256 0{12}: round\[001-003\]_\w+", title), title
        assert "campaign campaign" in title and "medians over launches of" in title
    page.close()


@pytest.mark.browser
def test_links_lead_there_by_keyboard_without_scripts(
    browser: Browser,  # noqa: F811
    report: Path,
) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(report.as_uri())
    link = page.locator("#linpack a.trace").first
    link.focus()
    page.keyboard.press("Enter")
    entry = page.locator("li:target")
    entry.wait_for()
    assert "Linpack grid=1x1" in entry.inner_text()
    context.close()
