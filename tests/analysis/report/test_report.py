"""The report in a real browser: readable at any size, without network, with nothing injected."""

import itertools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from tests.analysis.report.conftest import INJECTION
from tests.analysis.support.synthetic import PAIRS

pytestmark = pytest.mark.browser
CHROMIUM = "/usr/bin/chromium"
# Without these, Chromium asks hosts of its own at every start.
QUIET = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update",
         "--disable-sync"]  # fmt: skip
AGAINST = re.compile("(beta-2.0 against alpha-1.0|openmpi-5.0.11 against mpich-5.0.2)")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield chromium
        chromium.close()


def open_page(
    browser: Browser, report: Path, width: int, dark: bool = False, downloads: bool = False
) -> Page:
    """Open the report; any message on the console or request to elsewhere is an error.

    With `downloads` what the page itself has made may be asked for.
    """
    page = browser.new_page(
        viewport={"width": width, "height": 900}, color_scheme="dark" if dark else "light"
    )
    page.on("console", lambda message: pytest.fail(f"console: {message.text}"))
    page.on("pageerror", lambda error: pytest.fail(f"page error: {error}"))

    def only_the_file(request) -> None:  # type: ignore[no-untyped-def]
        own = downloads and request.url.startswith("blob:")
        assert own or request.url == report.as_uri(), f"the report asks for {request.url}"

    page.on("request", only_the_file)
    page.goto(report.as_uri())
    return page


def luminance(page: Page) -> float:
    colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
    red, green, blue = (int(part) for part in colour[4:-1].split(",")[:3])
    return (0.2126 * red + 0.7152 * green + 0.0722 * blue) / 255


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (1280, True), (360, False)])
def test_legible(browser: Browser, any_report: Path, width: int, dark: bool) -> None:
    page = open_page(browser, any_report, width, dark)
    assert page.title().endswith("Wyeast")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert (luminance(page) < 0.2) == dark
    for size in page.evaluate(
        "[...document.querySelectorAll('p, td, th, li, dd')]"
        ".map(e => parseFloat(getComputedStyle(e).fontSize))"
    ):
        assert size >= 12
    page.close()


def test_figures_and_rows(browser: Browser, report: Path) -> None:
    page = open_page(browser, report, 1280)
    # The two that are asked for first; of each pair the bandwidth, then the ratio with its band.
    captions = [text.strip() for text in page.locator("figcaption").all_text_contents()]
    assert captions == ["Latency: Send/Recv", "Bandwidth: Send/Recv", *PAIRS, *PAIRS]
    assert page.locator("figure").count() == 2 + 2 * len(PAIRS)
    assert page.locator("figure svg .band").count() >= 2 * len(PAIRS)
    assert page.locator("#point-to-point .picture tbody tr").count() == len(PAIRS)
    rows = page.locator("#point-to-point .rows tbody").first.locator("tr")
    assert rows.count() == 24
    assert page.locator("#linpack .rows tbody").first.locator("tr").count() == 2 * 2
    page.close()


def test_front_page_ranks_every_experiment(browser: Browser, report: Path) -> None:
    page = open_page(browser, report, 1280)
    page.get_by_text("The same in sentences").click()
    tables = page.locator("#answer table.ranking")
    captions = [text.split(",")[0] for text in tables.locator("caption").all_inner_texts()]
    assert captions == ["PointToPoint", "Linpack"]
    groups = tables.first.locator("tbody")
    assert groups.count() == 3
    for group in groups.all():
        rows = [row.locator("td").all_inner_texts() for row in group.locator("tr").all()[1:]]
        ratios = [float(row[3]) for row in rows]
        assert [row[0] for row in rows] == ["1", "2"] and ratios == sorted(ratios, reverse=True)
        # Its latency is half, its bandwidth twice that of the base.
        assert rows[0][1] == "beta-2.0" and 1.5 < ratios[0] < 2.5
        cells = len(PAIRS)
        assert rows[1][1:] == ["alpha-1.0", f"{cells} of {cells}", "1.000", "–", "base"]
        assert rows[0][2] == f"{cells} of {cells}"
    page.close()
    # On a phone the verdicts are there without scrolling sideways.
    page = open_page(browser, report, 360)
    page.get_by_text("The same in sentences").click()
    for region in page.locator("#answer .rankings .scroll").all():
        assert region.evaluate("one => one.scrollWidth <= one.clientWidth")
    page.close()


def test_intervals_are_drawn(browser: Browser, report: Path) -> None:
    page = open_page(browser, report, 1280)
    # Three ranges of sizes, two implementations, eight pairs: nothing joins the ranges' gaps
    # where sizes jump more than tenfold.
    assert page.locator("polygon.band").count() >= 2 * len(PAIRS)
    box = page.locator("polygon.band").first.bounding_box()
    assert box is not None and box["height"] > 0
    # Of each pair, and once more of the one whose bandwidth is among the first curves.
    assert page.locator("polyline.limit").count() == len(PAIRS) + 1
    page.close()


def test_toggle_works_by_keyboard(browser: Browser, any_report: Path) -> None:
    page = open_page(browser, any_report, 1280)
    buttons = page.locator("#legend [data-toggle]")
    first, second = (
        str(name) for name in buttons.evaluate_all("all => all.map(one => one.dataset.toggle)")
    )
    curves = page.locator(f'.curve[data-name="{second}"]')
    button = page.get_by_role("button", name=second, exact=True)
    assert curves.first.is_visible()
    button.focus()
    page.keyboard.press("Enter")
    assert button.get_attribute("aria-pressed") == "false" and not curves.first.is_visible()
    assert page.locator(f'.curve[data-name="{first}"]').first.is_visible()
    page.keyboard.press("Enter")
    assert curves.first.is_visible()
    page.close()


def test_nothing_is_injected(browser: Browser, report: Path) -> None:
    page = open_page(browser, report, 1280)
    assert page.title() != "injected"
    assert INJECTION in page.locator("#left-out").inner_text()
    assert page.locator("#left-out img, #left-out script").count() == 0
    page.close()


def test_readable_without_scripts_and_on_paper(browser: Browser, any_report: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(any_report.as_uri())
    assert page.locator("figure svg polyline.line").first.is_visible()
    assert page.get_by_text(AGAINST).first.is_visible()
    context.close()


def test_accessible_names(browser: Browser, any_report: Path) -> None:
    page = open_page(browser, any_report, 1280)
    for figure in page.locator('svg[role="img"]').all():
        assert figure.locator("> title").text_content()
        assert re.search(r"\d", str(figure.locator("> desc").text_content()))
    headings = page.evaluate("[...document.querySelectorAll('h1,h2,h3')].map(e => +e.tagName[1])")
    assert headings[0] == 1 and headings.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(headings))
    assert page.locator("html").get_attribute("lang") == "en"
    page.close()
