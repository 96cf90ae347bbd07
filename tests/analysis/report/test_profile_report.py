"""The report's section of profiles in a real browser: legible in the dark, and without scripts."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser

from analysis.report.report import write_report
from tests.analysis.models.test_profile import RECORDS_OF_RANKS, campaign, text_of
from tests.analysis.report.conftest import INJECTION
from tests.analysis.report.test_report import browser  # noqa: F401

pytestmark = pytest.mark.browser


def brightness(colour: str) -> float:
    """Return how bright a colour is that a browser names, from 0 to 1."""
    red, green, blue = (float(part) for part in colour[4:-1].split(",")[:3])
    return (0.2126 * red + 0.7152 * green + 0.0722 * blue) / 255


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_profiles_are_legible_without_scripts(
    browser: Browser,  # noqa: F811
    tmp_path: Path,
    scheme: str,
) -> None:
    folder = campaign(tmp_path, text_of(RECORDS_OF_RANKS, INJECTION))
    context = browser.new_context(
        java_script_enabled=False, color_scheme="dark" if scheme == "dark" else "light"
    )
    page = context.new_page()
    page.goto(write_report(folder, None, None).as_uri())
    section = page.locator("#profiles")
    assert section.locator("svg").count() == 2
    assert section.locator("svg .bar").count() == 3 and section.locator("svg .cell").count() == 2
    for figure in section.locator("svg").all():
        assert figure.locator("> title").text_content() and figure.locator("> desc").text_content()
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    for kind in (".inside", ".tick", ".axis"):
        ink = section.locator(f"svg {kind}").first.evaluate("one => getComputedStyle(one).fill")
        assert abs(brightness(ink) - brightness(paper)) > 0.3, (kind, ink, paper)
    assert section.locator("img, script").count() == 0 and page.title() != "injected"
    context.close()
