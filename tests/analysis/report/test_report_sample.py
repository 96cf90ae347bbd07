"""What a reader of the sample's report does: goes to a section, saves the tables, reads at night.

What its report shares with that of a synthetic campaign is tested beside it, by `any_report`.
"""

import base64
import csv
import gzip
import io
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from records.manifest import read_manifest
from tests.analysis.report.test_profile_report import brightness
from tests.analysis.report.test_report import browser, open_page  # noqa: F401

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("width", [1280, 360])
def test_navigation_leads_to_every_section(
    browser: Browser,  # noqa: F811
    sample_report: Path,
    width: int,
) -> None:
    page = open_page(browser, sample_report, width)
    links = page.locator("nav a").all()
    assert len(links) == page.locator("main > section").count() > 8
    for link in links:
        place = str(link.get_attribute("href"))
        link.focus()
        page.keyboard.press("Enter")
        # The browser goes there in its own time.
        page.wait_for_function("place => location.hash === place", arg=place)
        top = page.locator(place).evaluate("one => one.getBoundingClientRect().top")
        at_the_end = page.evaluate(
            "scrollY + innerHeight >= document.documentElement.scrollHeight - 1"
        )
        # The legend stays in view above it.
        assert -2 < top < 100 or at_the_end or place == "#answer", place
    page.close()


def test_every_table_is_there_whole(browser: Browser, sample_report: Path) -> None:  # noqa: F811
    page = open_page(browser, sample_report, 1280)
    # The name of the file, what is said of it, and the file.
    links: list[list[str]] = page.locator("a.csv").evaluate_all(
        "all => all.map(one => [one.textContent, one.parentElement.textContent, one.href])"
    )
    assert len({name for name, _, _ in links}) == len(links) > 20
    digest = read_manifest(sample_report.parent)["images"]["mpich-5.0.2"]["sha256"]
    for name, said, href in links:
        rows = int(said.split(": ")[1].split()[0].replace(",", ""))
        text = gzip.decompress(base64.b64decode(href.split("base64,")[1])).decode()
        header, *found = list(csv.reader(io.StringIO(text)))
        assert len(found) == rows and {len(row) for row in found} == {len(header)}, name
        if name.startswith(("medians", "launches", "start-up-parts", "profile")):
            assert digest in {row[header.index("image_sha256")] for row in found}, name
    page.close()


@pytest.mark.parametrize("dark", [False, True])
def test_all_words_stand_out_from_the_paper(
    browser: Browser,  # noqa: F811
    sample_report: Path,
    dark: bool,
) -> None:
    page = open_page(browser, sample_report, 1280, dark)
    paper = brightness(page.evaluate("getComputedStyle(document.body).backgroundColor"))
    inks = page.evaluate(
        "[...document.querySelectorAll('p, li, td, th, a, dd, dt, h2, code, button, caption')]"
        ".map(one => [one.tagName, getComputedStyle(one).color])"
        ".concat([...document.querySelectorAll('svg text')]"
        ".map(one => ['text', getComputedStyle(one).fill]))"
    )
    assert len(inks) > 500
    assert {(tag, ink) for tag, ink in inks if abs(brightness(ink) - paper) < 0.3} == set()
    page.close()


def test_provenance_says_that_it_is_a_sample(
    browser: Browser,  # noqa: F811
    sample_report: Path,
) -> None:
    page = open_page(browser, sample_report, 1280)
    page.locator("#provenance summary").first.click()
    said = page.locator("#provenance").inner_text()
    assert "paths and host names replaced" in said and "of 552 launches" in said
    # Facts of several names are words, not how Python writes them.
    assert "{'" not in said and "eth0 (state up" in said
    page.close()
