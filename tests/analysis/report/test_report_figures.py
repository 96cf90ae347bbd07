"""The figures of the report: of every experiment, with the limit that holds there, and bounded."""

import json
import re
from pathlib import Path

import numpy
import pytest
from playwright.sync_api import Browser

from analysis.comparison.compare import compare
from analysis.figures.axes import BOTTOM, HEIGHT
from analysis.report.drawings.size_figures import COPY, LINK, figures_of, link_times
from analysis.report.report import write_report
from records.base import CampaignError
from records.campaign import read_campaign
from tests.analysis.report.test_report import browser, open_page  # noqa: F401
from tests.analysis.support.synthetic import TWICE, Synthetic

SIZES = [100, 1000, 10_000, 100_000]


def echoes(folder: Path, nodes: int, link: float | None = None, alone: bool = False) -> Path:
    """Write a campaign that has echo tests alone, on a number of nodes."""
    truths = {"alpha-1.0": TWICE["alpha-1.0"]} if alone else TWICE
    made = Synthetic(folder, truths, rounds=0, facts={"site_data": {"link_bytes_per_s": link}})
    made.write()
    random = numpy.random.default_rng(1)
    for number in (1, 2):
        for name, truth in truths.items():
            text, _ = made.ping_pongs(random, name, truth, "Send/Recv", SIZES)
            made.launch(number, name, "EchoTest", {"ranks": 2}, text, nodes=nodes)
    return folder


def test_between_nodes_the_limit_is_the_link(tmp_path: Path) -> None:
    comparison = compare(read_campaign(echoes(tmp_path / "c", nodes=2, link=12.5e9)))
    [one] = figures_of(comparison)["EchoTest"].drawn
    assert one.limit == LINK and LINK in one.svg and COPY not in one.svg
    page = write_report(tmp_path / "c", None, None).read_text()
    assert f"dotted grey: {LINK}" in page and COPY + "," not in page


@pytest.mark.parametrize("link", [None, 0, "fast"])
def test_a_link_that_nobody_knows_is_not_drawn(tmp_path: Path, link: float | None) -> None:
    folder = echoes(tmp_path / "c", nodes=2, link=link)
    [one] = figures_of(compare(read_campaign(folder)))["EchoTest"].drawn
    assert one.limit is None and 'class="limit"' not in one.svg
    assert "dotted grey" not in write_report(folder, None, None).read_text()


def test_an_infinite_link_is_not_a_number(tmp_path: Path) -> None:
    with pytest.raises(CampaignError, match=r"json cannot be read: Infinity is not a number"):
        read_campaign(echoes(tmp_path / "c", nodes=2, link=float("inf")))


def test_in_memory_the_limit_is_a_copy(tmp_path: Path) -> None:
    comparison = compare(read_campaign(echoes(tmp_path / "c", nodes=1, link=12.5e9)))
    [one] = figures_of(comparison)["EchoTest"].drawn
    assert one.limit == COPY and COPY in one.svg


def pairs(folder: Path, ranks: int, nodes: int, method: str, moved: int) -> Path:
    """Write a campaign of messages of a pair that move so many times their size in 1.5e-8 s/B."""
    made = Synthetic(folder, {"alpha-1.0": TWICE["alpha-1.0"]}, rounds=0,
                     facts={"site_data": {"link_bytes_per_s": 1e8}})  # fmt: skip
    made.write()
    random = numpy.random.default_rng(1)
    header, _ = made.ping_pongs(random, "alpha-1.0", TWICE["alpha-1.0"], "Send/Recv", [])
    lines = header.splitlines()[:1]
    for size in SIZES:
        time = 2e-6 + 1.5e-8 * moved * size
        summary = dict.fromkeys(("min", "quartile1", "median", "quartile3", "max", "mean"), time)
        lines.append(json.dumps({
            "record": "result", "operation": "pairs", "method": method, "group": "1 near pair",
            "message_bytes": size, "ranks": 2, "iterations": 3, "warmup": 1,
            "synchronisation": "barrier", "discarded": 0, "clock_error_s": 0.0,
            "time_s": summary, "median_by_rank_s": [time, time],
            "moved_bytes": moved * size, "verified_bytes": moved * size,
        }))  # fmt: skip
    lines.append(json.dumps({"record": "end", "results": len(SIZES)}))
    made.launch(1, "alpha-1.0", "Pairs", {"suite": "lbw"}, "\n".join(lines) + "\n",
                ranks=ranks, nodes=nodes, program="pairs")  # fmt: skip
    return folder


@pytest.mark.parametrize(("method", "times"), [("send-recv", 2.0), ("exchange", 1.0)])
def test_a_time_between_two_nodes_is_the_links_at_least(
    method: str, times: float, tmp_path: Path
) -> None:
    """A round trip's two messages follow each other, those of an exchange do not."""
    comparison = compare(read_campaign(pairs(tmp_path / "c", 2, 2, method, 2)))
    [one] = figures_of(comparison)["Pairs"].drawn
    assert one.limit == LINK and f"<title>{LINK}: no message can be faster" in one.svg
    least = link_times(comparison.campaign)[comparison.cells[0].name]
    assert least == {size: pytest.approx(times * size / 1e8) for size in SIZES}
    # Lower on the page is less: the line is below the curve, and all of it within the drawing.
    found = {kind: re.findall(rf'class="{kind}" points="([^"]+)"', one.svg)[0].split()
             for kind in ("limit", "line")}  # fmt: skip
    drawn = {kind: [tuple(map(float, point.split(","))) for point in points]
             for kind, points in found.items()}  # fmt: skip
    assert drawn["limit"][-1][0] == drawn["line"][-1][0]
    assert drawn["line"][-1][1] < drawn["limit"][-1][1]
    assert all(y <= HEIGHT - BOTTOM for _, y in drawn["limit"])


@pytest.mark.parametrize(("ranks", "nodes"), [(2, 1), (4, 2)])
def test_other_times_have_no_limit(ranks: int, nodes: int, tmp_path: Path) -> None:
    folder = pairs(tmp_path / "c", ranks, nodes, "send-recv", 2)
    [one] = figures_of(compare(read_campaign(folder)))["Pairs"].drawn
    assert one.limit is None and 'class="limit"' not in one.svg


def test_one_implementation_has_curves_too(tmp_path: Path) -> None:
    comparison = compare(read_campaign(echoes(tmp_path / "c", nodes=1, alone=True)))
    [one] = figures_of(comparison)["EchoTest"].drawn
    assert one.svg.count('class="mark"') == len(SIZES) and one.ratio is None


def test_figures_have_a_budget(tmp_path: Path) -> None:
    comparison = compare(read_campaign(Synthetic(tmp_path / "c", TWICE, rounds=2).write()))
    every = figures_of(comparison)["PointToPoint"]
    assert len(every.drawn) == 8 and every.left == 0
    room = 3 * len(every.drawn[0].svg) + 3 * len(every.drawn[0].ratio or "") + 500
    few = figures_of(comparison, room)["PointToPoint"]
    assert (len(few.drawn), few.left) == (3, 5)
    assert sum(len(one.svg) + len(one.ratio or "") for one in few.drawn) <= room


@pytest.mark.browser
def test_toggles_are_there_without_point_to_point(
    browser: Browser,  # noqa: F811
    tmp_path: Path,
) -> None:
    path = write_report(echoes(tmp_path / "c", nodes=1), None, None)
    page = open_page(browser, path, 360)
    assert page.locator("#point-to-point figure").count() == 0
    page.locator("#communication summary").get_by_text("over message size, all").click()
    curves = page.locator('#communication .curve[data-name="beta-2.0"]')
    assert curves.first.is_visible()
    page.locator('#legend [data-toggle="beta-2.0"]').press("Enter")
    assert not curves.first.is_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    page.close()


@pytest.mark.browser
def test_each_launch_is_shown_on_demand(browser: Browser, report: Path) -> None:  # noqa: F811
    # A drawing of dots alone has no width of its own, so its style says whether it is shown.
    shown = "getComputedStyle(document.querySelector('#point-to-point .launch')).display !== 'none'"
    page = open_page(browser, report, 1280)
    button = page.get_by_role("button", name="each launch")
    for pressed in ("false", "true", "false"):
        assert button.get_attribute("aria-pressed") == pressed
        assert page.evaluate(shown) == (pressed == "true")
        button.press("Enter")
    page.close()
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(report.as_uri())
    assert page.evaluate(shown)
    context.close()
