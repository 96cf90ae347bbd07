"""What a pointer shows in the report can be read without one: intervals, names of machines."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.analysis.report.test_report import browser, open_page  # noqa: F401

pytestmark = pytest.mark.browser


def test_intervals_and_machines_are_words_on_the_page(
    browser: Browser,  # noqa: F811
    sample_report: Path,
) -> None:
    page = open_page(browser, sample_report, 360)
    page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    for section in ("#nas", "#linpack", "#start-up"):
        rows = page.locator(f"{section} .rows tbody").first.locator("tr").all()
        assert rows
        for row in rows:
            words = row.locator("td.number .within").all_inner_texts()
            within = [word for word in words if re.fullmatch(r"[\d.]+ – [\d.]+ \(75%\)", word)]
            assert len(within) == 1, (section, words)
    names = page.locator("#communication").inner_text()
    assert "IBM SP-2 MPI" in names and "Paragon" in names
    said = page.locator("main > section:not(#provenance)").all_inner_texts()
    assert not [text for text in said if "hovering" in text or "pointed at" in text]
    page.close()
