"""Every number of the report and of its tables leads to its launches, image and formula."""

import csv
import io
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from playwright.sync_api import Browser

from analysis.campaign import read_campaign
from analysis.comparison import compare
from analysis.data_tables import group_table, median_table, ratio_table
from analysis.exports import csv_text
from analysis.launch_names import folded
from analysis.text_table import TextTable
from analysis.traces import Traces
from tests.analysis.synthetic import TWICE, Synthetic
from tests.analysis.test_report import (  # noqa: F401
    any_report,
    browser,
    open_page,
    report,
    sample_report,
)

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
    # A sweep is named without its ranges of sizes.
    table = TextTable("Lines", ("cell", "implementation", "alpha"), [], 2, ["by least squares"])
    traces.words(table, ("PointToPoint pair=Send/Recv", "beta-2.0", "1"))
    assert traces.entries[0].formulas == ("by least squares",)
    [source] = traces.entries[0].sources
    assert source.implementation == "beta-2.0" and len(source.launches) == 3
    table = TextTable("What a node does by itself", ("implementation", "x"), [], 1, ["none"])
    traces.words(table, ("a machine of 1996", "1"))
    assert traces.entries[1].sources == ()


@pytest.mark.browser
@pytest.mark.parametrize("width", [1280, 360])
def test_every_number_leads_to_its_launches(
    browser: Browser,  # noqa: F811
    any_report: Path,  # noqa: F811
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
    report: Path,  # noqa: F811
) -> None:
    page = open_page(browser, report, 1280)
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
    report: Path,  # noqa: F811
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
