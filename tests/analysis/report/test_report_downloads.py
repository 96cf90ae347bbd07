"""What can be saved from the report, without a network, with scripts and without."""

import base64
import gzip
from pathlib import Path
from xml.etree import ElementTree

import pytest
from playwright.sync_api import Browser

from analysis.comparison.compare import compare
from analysis.comparison.tables import median_table
from analysis.report.report import write_report
from analysis.tables.csv import csv_text
from records.campaign import read_campaign
from tests.analysis.report.test_report import browser, open_page  # noqa: F401
from tests.analysis.support.synthetic import PAIRS, TWICE, Synthetic

pytestmark = pytest.mark.browser


def test_tables_are_saved_as_csv(browser: Browser, any_report: Path) -> None:  # noqa: F811
    page = open_page(browser, any_report, 1280, downloads=True)
    page.locator("#point-to-point summary").get_by_text("Medians by message size").click()
    link = page.locator('a.csv[download^="medians-PointToPoint"]')
    assert link.inner_text() == "medians-PointToPoint.csv"
    with page.expect_download() as started:
        link.click()
    saved = Path(started.value.path()).read_bytes().decode()
    comparison = compare(read_campaign(any_report.parent))
    assert started.value.suggested_filename == "medians-PointToPoint.csv"
    assert saved == csv_text(median_table(comparison, "PointToPoint"))
    page.close()


def test_tables_are_there_without_scripts(browser: Browser, report: Path) -> None:  # noqa: F811
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(report.as_uri())
    page.get_by_text("The same in sentences").click()
    link = page.locator('a.csv[download="answers.csv.gz"]')
    assert link.is_visible() and link.inner_text() == "answers.csv.gz"
    href = str(link.get_attribute("href"))
    text = gzip.decompress(base64.b64decode(href.split("base64,")[1])).decode()
    assert text.startswith("campaign,experiment,group,") and "beta-2.0" in text
    assert page.locator("button.svg").count() == 0
    context.close()


def test_every_table_has_a_file(browser: Browser, report: Path) -> None:  # noqa: F811
    page = open_page(browser, report, 1280)
    names = page.evaluate("[...document.querySelectorAll('a.csv')].map(link => link.textContent)")
    assert len(set(names)) == len(names)
    assert {"answers.csv", "ratios-PointToPoint.csv", "medians-Linpack.csv", "launches.csv",
            "left-out.csv", "high-performance-linpack.csv",
            "lines-between-protocol-switches.csv"} <= set(names)  # fmt: skip
    page.close()


def test_figures_are_saved_as_drawings_of_their_own(
    browser: Browser,  # noqa: F811
    any_report: Path,
    tmp_path: Path,
) -> None:
    page = open_page(browser, any_report, 1280, downloads=True)
    assert page.locator("button.svg").count() == page.locator("figure").count() > 1
    with page.expect_download() as started:
        page.locator("button.svg").first.press("Enter")
    name = started.value.suggested_filename
    assert name in ("Latency-Send-Recv.svg", "Latency-EchoTest-ranks-2.svg")
    path = tmp_path / "alone.svg"
    started.value.save_as(path)
    root = ElementTree.fromstring(path.read_text())
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    page.close()
    text = path.read_text()
    assert "var(" not in text and "<style" not in text and "prefers-color-scheme" not in text
    # In a reader's dark page it is as it was saved: its lines' colours, on its own paper.
    alone = browser.new_page(color_scheme="dark")
    alone.goto(path.as_uri())
    colours = "(s => [s.stroke, s.fill])(getComputedStyle(document.querySelector('.line')))"
    assert alone.evaluate(colours) == ["rgb(11, 98, 164)", "none"]
    paper = alone.locator("rect").first
    assert paper.evaluate("one => getComputedStyle(one).fill") == "rgb(253, 253, 251)"
    box = paper.bounding_box()
    assert box is not None and box["width"] > 0 and box["height"] > 0
    alone.close()


def test_many_launches_are_drawn_as_quantiles(
    browser: Browser,  # noqa: F811
    tmp_path: Path,
) -> None:
    folder = Synthetic(tmp_path / "c", TWICE, rounds=40, iterations=1, pairs=PAIRS[:2]).write()
    path = write_report(folder, None, None)
    page = open_page(browser, path, 1280)
    # Forty launches are drawn as quantiles of them.
    places = (
        page.locator("figure")
        .first.locator(".launch")
        .evaluate_all("all => all.map(one => one.getAttribute('d')).join('')")
    )
    launches = str(places).count("h0")
    markers = page.locator("figure").first.locator(".mark").count()
    assert launches == 25 * markers
    page.close()
