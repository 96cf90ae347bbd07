"""The first screen answers: a picture of all groups, two curves, warnings; the page is short."""

import re
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy
import pytest
from playwright.sync_api import Browser, Page

from analysis.comparison.compare import compare
from analysis.comparison.result import Comparison
from analysis.comparison.verdict import Verdict
from analysis.report.differences import MOST_BELOW, difference, foremost, shown_differences
from analysis.report.drawings.forest import SIGNS, forest
from analysis.report.drawings.heat_map import heat_maps
from analysis.report.drawings.size_figures import RatioCurves, curves_of, figures_of
from analysis.report.first_screen import first_curves, in_seconds, warnings
from analysis.report.report import median_rows, subject_of_medians, write_report
from analysis.tables.units import interval_text
from inference.intervals import median
from records.campaign import read_campaign
from tests.analysis.report.test_report import browser, open_page  # noqa: F401
from tests.analysis.support.synthetic import PAIRS, SIZES, TWICE, Synthetic
from tests.busy_campaign import busy_campaign

PROJECT = Path(__file__).resolve().parents[3]
#: How high a screen is, in px: of a desk, of a phone.
DESK, PHONE = 900, 844
#: A line's share of the drawing's width, in percent.
LINE = re.compile(r'class="line" x1="([\d.]+)%" x2="([\d.]+)%"')


@pytest.fixture(scope="module")
def sample() -> Comparison:
    """Return the comparison of the sample."""
    return compare(read_campaign(busy_campaign()))


def assert_nothing_is_cut(page: Page) -> None:
    """Open all that is folded, and look for what is wider than its place."""
    page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    cut = page.evaluate(
        "[...document.querySelectorAll('.scroll')].filter(one => one.scrollWidth > one.clientWidth)"
        ".map(one => one.getAttribute('aria-label'))"
    )
    beyond = page.evaluate(
        "[...document.querySelectorAll('td, th, p, li, figure')].filter(one =>"
        " one.checkVisibility() && one.getBoundingClientRect().right > innerWidth + 1)"
        ".map(one => one.innerText.slice(0, 40))"
    )
    assert cut == [] and beyond == []


def of_groups(comparison: Comparison) -> list[tuple[str, Verdict]]:
    return [(group.name, one) for group in comparison.groups for one in group.verdicts.values()]


def test_every_group_is_drawn_with_the_interval_of_its_verdict(sample: Comparison) -> None:
    found = of_groups(sample)
    picture = forest(found)
    assert picture is not None and [row.what for row in picture.rows] == [name for name, _ in found]
    ones = set()
    for row in picture.rows:
        one = row.verdict
        assert SIGNS[one.kind] in row.drawing and f'class="value {one.kind}"' in row.drawing
        assert one.interval and interval_text(one.interval) in row.drawing
        [(low, high)] = [(float(a), float(b)) for a, b in LINE.findall(row.drawing)]
        [middle] = re.findall(r'class="limit" x1="([\d.]+)%"', row.drawing)
        ones.add(middle)
        # The line crosses that of 1 exactly where no difference is shown.
        assert (low <= float(middle) <= high) == (not one.is_different)
    assert ones == {"50.0"}
    assert len({one.kind for _, one in found}) == 3


def test_what_no_round_compares_has_no_mark(sample: Comparison) -> None:
    _, one = of_groups(sample)[0]
    lacking = replace(one, ratio=replace(one.ratio, value=float("nan")), claim=None)
    picture = forest([("a", one), ("b", lacking)])
    assert picture is not None and forest([]) is None
    assert 'class="sign"' in picture.rows[0].drawing
    assert 'class="sign"' not in picture.rows[1].drawing


def test_the_first_curves_are_of_the_echo_test(sample: Comparison) -> None:
    first = first_curves(sample, figures_of(sample))
    assert first is not None and {one.experiment for one in first.bandwidth.cells} == {"EchoTest"}
    assert first.latency.count('class="curve') == len(sample.implementations)
    for curve in curves_of(sample, first.bandwidth.cells):
        for one, time in zip(curve.estimates, in_seconds(curve).estimates, strict=True):
            assert time.median == median([one.message_bytes / rate for rate in one.launches])
            assert time.interval.low == one.message_bytes / one.interval.high
            assert time.interval.coverage == one.interval.coverage


def test_without_an_echo_test_they_are_of_a_sweep(tmp_path: Path) -> None:
    comparison = compare(read_campaign(Synthetic(tmp_path / "c", TWICE, rounds=2).write()))
    first = first_curves(comparison, figures_of(comparison))
    assert first is not None and first.bandwidth.caption == "Send/Recv"
    assert first_curves(comparison, {}) is None


def test_warnings_say_what_to_beware_of(sample: Comparison) -> None:
    few = [one.few for one in warnings(sample)]
    assert few == ["a hypervisor took time", "2 cells oversubscribed", "answers from 3 rounds"]
    assert "Below 6 no interval of a median reaches 95%" in warnings(sample)[2].sentence


def test_nothing_to_beware_of_is_no_warning(tmp_path: Path) -> None:
    folder = Synthetic(tmp_path / "c", TWICE, rounds=6, pairs=["Send/Recv"]).write()
    assert warnings(compare(read_campaign(folder))) == []


def test_differences_are_the_largest_first(sample: Comparison) -> None:
    found = shown_differences(sample)
    factors = [max(one.ratio.value, 1 / one.ratio.value) for _, one in found]
    assert factors == sorted(factors, reverse=True) and len(found) == 4
    assert all(one.is_different for _, one in found)
    # A table that is cut keeps them, whatever its order.
    kept = foremost(sample.cells, lambda cell: (cell, None), len(found))
    assert [cell.name for cell in kept] == [cell.name for cell, _ in found]
    assert foremost(sample.cells, lambda cell: (cell, None), len(sample.cells)) is sample.cells
    assert difference(replace(sample.cells[0], verdicts={})) == (False, 0.0)


@pytest.fixture(scope="module")
def of_twelve(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the report of twelve implementations, of which the sixth is faster in one cell."""
    names = [f"openmpi-5.0.{number}+transport{number}" for number in range(12)]
    folder = tmp_path_factory.mktemp("twelve") / "c"
    made = Synthetic(folder, dict.fromkeys(names, TWICE["alpha-1.0"]), rounds=0)
    made.write()
    random = numpy.random.default_rng(1)
    for number, name, pair in product(range(1, 7), names, PAIRS[:2]):
        for message_range, sizes in SIZES.items():
            best = name == names[6] and (pair, message_range) == (PAIRS[1], "long")
            truth = TWICE["beta-2.0" if best else "alpha-1.0"]
            made.point_to_point(random, number, name, truth, pair, message_range, sizes)
    return write_report(folder, None, None)


def test_of_many_implementations_those_that_differ_come_first(of_twelve: Path) -> None:
    comparison = compare(read_campaign(of_twelve.parent))
    cells = comparison.experiment("PointToPoint")
    name = "openmpi-5.0.6+transport6"
    rows = [(cell, other) for cell in cells for other in cell.verdicts]
    [(cell, first), *rest] = foremost(rows, lambda row: row, 20)
    assert first == name and cell.verdicts[name].is_different
    assert cell.parameters["message_range"] == "long"
    # Not the whole cell for the one of it that differs.
    assert [row for row in rest if row[0] is cell] != [(cell, one) for one in cell.verdicts][1:]
    medians = median_rows(cells, comparison.implementations)
    assert all(len(names) == 1 for _, _, names in medians)
    assert len(medians) == 12 * sum(len(cell.message_sizes()) for cell in cells)
    assert subject_of_medians((cell, 200_000, [name])) == (cell, name)
    few = median_rows(cells, comparison.implementations[:4])
    assert {len(names) for _, _, names in few} == {4} and len(few) < len(medians) / 4 + 1


@pytest.mark.browser
@pytest.mark.parametrize("width", [1200, 390])
def test_nothing_is_cut_of_twelve_implementations(
    browser: Browser,  # noqa: F811
    of_twelve: Path,
    width: int,
) -> None:
    page = open_page(browser, of_twelve, width)
    # The picture of all groups begins on the first screen of a desk.
    if width > DESK:
        box = page.locator(".forest tbody tr").first.bounding_box()
        assert box is not None and box["y"] < DESK
    assert_nothing_is_cut(page)
    page.close()
    # The page that has the rest of a table is read as the report is, without a script.
    page = open_page(browser, of_twelve.with_name("report-medians-PointToPoint.html"), width)
    assert page.locator("tbody tr").count() == 192
    assert_nothing_is_cut(page)
    page.close()


def test_a_heat_map_has_the_colours_of_verdicts(sample: Comparison) -> None:
    """Colour and sign say what is shown, of every size that points the same way."""
    ratios = RatioCurves(sample.base)
    seen = set()
    for experiment in dict.fromkeys(cell.experiment for cell in sample.cells):
        for picture in heat_maps(sample, experiment, ratios):
            for row in picture.rows:
                points = {
                    point.message_bytes: (point.ratio, cell.verdicts[picture.implementation])
                    for cell in row.cells
                    for point in ratios.of(cell, picture.implementation)
                }
                drawn = re.findall(
                    r'class="value ([\w-]+)"><title>[^<]*?, (\d+) bytes: ratio ([\d.]+);'
                    r"[^<]*</title>"
                    r"<rect[^>]*>(?:<text[^>]*>(\D?)[\d.]+</text>)?",
                    row.drawing,
                )
                assert len(drawn) == len(points) > 2
                for way, size, number, sign in drawn:
                    ratio, verdict = points[int(size)]
                    assert number == f"{ratio:.3f}"
                    if verdict.is_different and (ratio > 1) == (verdict.ratio.value > 1):
                        assert way == verdict.kind
                        assert sign in ("", SIGNS[verdict.kind])
                    else:
                        assert (way, sign) == ("no-difference", "")
                    seen.add((way, verdict.is_different, sign != ""))
    assert {
        ("faster", True, True), ("no-difference", True, False), ("no-difference", False, False)
    } <= seen  # fmt: skip
    assert heat_maps(sample, "Linpack", ratios) == []


@pytest.mark.browser
@pytest.mark.parametrize("dark", [False, True])
def test_the_first_screen_has_all_groups_and_what_to_beware_of(
    browser: Browser,  # noqa: F811
    sample_report: Path,
    sample: Comparison,
    dark: bool,
) -> None:
    page = open_page(browser, sample_report, 1280, dark)
    rows = page.locator(".forest tbody tr")
    assert rows.count() == len(of_groups(sample))
    for row, (name, verdict) in zip(rows.all(), of_groups(sample), strict=True):
        box = row.bounding_box()
        assert box is not None and box["y"] + box["height"] < DESK
        said = row.inner_text()
        assert name in said and verdict.words in said and interval_text(verdict.interval) in said
        place = str(row.locator("th a").get_attribute("href"))
        assert page.locator(place).count() == 1
    beware = page.locator(".warnings")
    assert "2 cells oversubscribed" in beware.inner_text()
    beware.locator("summary").press("Enter")
    beware.get_by_text("85.8% in").wait_for()
    top = page.locator("#curves figure").first.bounding_box()
    assert top is not None and top["y"] < DESK
    page.close()


@pytest.mark.browser
@pytest.mark.parametrize(("width", "height", "most"), [(1280, DESK, 15), (390, PHONE, 40)])
def test_the_page_is_short(
    browser: Browser,  # noqa: F811
    any_report: Path,
    width: int,
    height: int,
    most: int,
) -> None:
    page = open_page(browser, any_report, width)
    assert page.evaluate("document.documentElement.scrollHeight") / height <= most
    page.close()


@pytest.mark.browser
def test_what_grows_with_a_campaign_is_folded(
    browser: Browser,  # noqa: F811
    sample_report: Path,
) -> None:
    """So a report of ten times as many series is hardly longer."""
    page = open_page(browser, sample_report, 1280)
    shown, folded = page.evaluate(
        """[true, false].map(shown => ["communication", "nas", "linpack", "start-up"]
        .flatMap(id => [...document.querySelectorAll(`#${id} table.rows`)])
        .filter(table => table.checkVisibility() === shown)
        .map(table => table.tBodies[0].rows.length))"""
    )
    assert max(shown, default=0) <= MOST_BELOW < max(folded)
    figures = page.locator("#profiles figure")
    assert figures.count() and not figures.first.is_visible()
    page.close()


@pytest.mark.browser
@pytest.mark.parametrize("width", [1200, 1920, 390])
def test_nothing_is_cut(browser: Browser, any_report: Path, width: int) -> None:  # noqa: F811
    page = open_page(browser, any_report, width)
    assert_nothing_is_cut(page)
    page.close()


@pytest.mark.browser
def test_the_legend_stays_in_view(browser: Browser, any_report: Path) -> None:  # noqa: F811
    page = open_page(browser, any_report, 390)
    page.locator("#provenance").scroll_into_view_if_needed()
    page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
    page.wait_for_function("scrollY > 5000")
    box = page.locator("#legend").bounding_box()
    assert box is not None and -1 <= box["y"] < 2 and box["height"] < PHONE / 6
    page.close()


@pytest.mark.browser
def test_a_tap_shows_a_value(browser: Browser, sample_report: Path) -> None:  # noqa: F811
    context = browser.new_context(viewport={"width": 390, "height": PHONE}, has_touch=True)
    page = context.new_page()
    page.goto(sample_report.as_uri())
    said = page.locator("#told")
    assert not said.is_visible()
    page.locator("#linpack summary", has_text="Verdicts").tap()
    for mark, words in (
        ("#curves .mark", r"^mpich-5.0.2, 8 bytes: median "),
        ("#point-to-point .picture .value", r"openmpi-5.0.11, 300 bytes: ratio "),
        (".forest .value", r"ratio 1.446, no difference shown, simultaneous interval 0.158"),
        ("#linpack .rows td.number[title]", r"paired rounds; p = "),
    ):
        page.locator(mark).first.tap()
        page.wait_for_function(
            "words => new RegExp(words).test(document.querySelector('#told').textContent)",
            arg=words,
        )
        assert said.is_visible()
    page.keyboard.press("Escape")
    assert not said.is_visible()
    context.close()


@pytest.mark.browser
def test_every_row_has_a_name_of_its_own(
    browser: Browser,  # noqa: F811
    any_report: Path,
) -> None:
    page = open_page(browser, any_report, 1280)
    tables: list[list[str]] = page.evaluate(
        """[...document.querySelectorAll('table.rows, table.forest, table.picture')].map(table =>
        [...table.querySelectorAll('tbody tr')].map(row => row.cells[0].textContent.trim()))"""
    )
    assert len(tables) > 5
    for names in tables:
        assert len(set(names)) == len(names) and all(names), names
    page.close()


@pytest.mark.browser
def test_what_is_oversubscribed_is_marked(
    browser: Browser,  # noqa: F811
    sample_report: Path,
) -> None:
    page = open_page(browser, sample_report, 1280)
    page.locator("#start-up summary", has_text="Verdicts").click()
    rows = page.locator("#start-up tbody tr").all()
    assert sum("ranks=4" in row.locator("th").inner_text() for row in rows) > 2
    for row in rows:
        assert ("oversubscribed" in row.locator("th").inner_text()) == (
            "ranks=4" in row.locator("th").inner_text()
        )
    page.close()


@pytest.mark.browser
def test_a_link_opens_what_is_folded(browser: Browser, any_report: Path) -> None:  # noqa: F811
    page = open_page(browser, any_report, 1280)
    link = page.locator(".forest td a.trace").first
    entry = page.locator(str(link.get_attribute("href")))
    assert not entry.is_visible()
    link.press("Enter")
    entry.wait_for(state="visible")
    page.close()
