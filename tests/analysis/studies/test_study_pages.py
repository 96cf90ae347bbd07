"""A study's pages and figures, and the command that makes them."""

import csv
import io
import json
import re
import shutil
import subprocess
import sys
from html import unescape
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import escape
from playwright.sync_api import Browser

from analysis.figures.axes import MARKERS
from analysis.figures.lines import axis, shape, ticks
from analysis.studies.exhibits import show
from analysis.studies.one_number import HOLDS
from analysis.studies.page import standing, tally, write_pages
from analysis.studies.reading import read_paper
from analysis.studies.relations import Report, TodaysTables, table_of
from analysis.studies.verdicts import TESTED, evaluate
from records.campaign import read_campaign
from tests.analysis.report.conftest import INJECTION
from tests.analysis.report.test_report import browser, luminance, open_page
from tests.analysis.report.test_traces import unfolded
from tests.analysis.support.in_process import analysis
from tests.analysis.support.study_samples import (
    DEMO_STUDY,
    PAPERS,
    PROJECT,
    demo,
    evaluated,
    measured,
)
from tests.analysis.support.synthetic import Synthetic, Truth

__all__ = ["browser"]


@given(st.floats(1e-6, 1e9), st.floats(1.01, 1e6))
def test_axes_have_ticks_inside(low: float, factor: float) -> None:
    across = axis([low, low * factor], 0.0, 100.0)
    found = ticks(across)
    assert len(found) >= 2
    assert all(across.low * 0.999 <= tick <= across.high * 1.001 for tick in found)
    assert found == sorted(found)


def test_a_figure_with_many_lines_tells_them_apart() -> None:
    looks = {(style % 6, shape(style) % len(MARKERS)) for style in range(36)}
    assert len(looks) == 36


def in_one_line(text: str) -> str:
    return " ".join(text.split())


def pages(found: TodaysTables, tmp_path: Path) -> tuple[Path, Path]:
    html, text = tmp_path / "study.html", tmp_path / "study.md"
    evaluated = evaluate(found.paper, found)
    write_pages(found.paper, found, evaluated, {html: "study.html", text: "study.md"})
    return html, text


def test_pages_have_both_numbers_and_all_verdicts(tmp_path: Path) -> None:
    html, text = pages(measured(demo(tmp_path), tmp_path, 1.5, noise=0.0), tmp_path)
    for content in (html.read_text(), text.read_text()):
        assert "demo-1" in content and "alpha-1.0" in content
        # 8 GFLOPS printed at 2 processes, and the synthetic truth's 90.
        assert "8" in content and "90" in content and INJECTION not in content
        for word in (HOLDS, TESTED):
            assert word in content
    assert "| procs | A GFLOPS, report | A GFLOPS, today |" in text.read_text()
    assert html.read_text().count("<svg viewBox") == 2


def test_what_stands_for_what_is_said_by_check(tmp_path: Path) -> None:
    """The newer beta has no sound launch of HPL: verdicts take the older one, and the page too."""
    study = json.loads(json.dumps(DEMO_STUDY))
    other = {"check": "PointToPoint", "choose": "^PointToPoint", "difference": "none"}
    study["experiments"]["bandwidth"] = other
    root = demo(tmp_path, study)
    truths = {
        name: Truth(latency=1e-6, bandwidth=4e9, linpack=30e9 * faster)
        for name, faster in (("alpha-1.0", 1.5), ("beta-2.0", 1.0), ("beta-3.0", 9.0))
    }
    folder = Synthetic(tmp_path / "campaign", truths, rounds=6, pairs=["Send/Recv"]).write()
    for launch in (folder / "launches").glob("*Linpack*beta-3.0"):
        shutil.rmtree(launch)
    found = TodaysTables(read_paper(root, "demo"), read_campaign(folder))
    (one,) = evaluate(found.paper, found)
    assert one.here is not None and one.here.verdict == HOLDS
    assert [(family, name) for family, name, _ in standing(found.paper, found)] == [
        ("A", "alpha-1.0"), ("B", "beta-3.0 (PointToPoint); beta-2.0 (Linpack)"),
    ]  # fmt: skip


def test_a_single_claim_is_told_in_the_singular() -> None:
    told = "By the report's own tables: "
    every = evaluated("iit")
    assert tally(every) == [
        told + "8 claims, of which 1 holds, 0 hold in part, 0 do not hold, 7 are inconclusive."
    ]
    [alone] = (one for one in evaluated("ntnu2008") if one.claim.id == "ntnu-pp-7")
    assert tally([alone]) == [
        told + "1 claim, of which 0 hold, 0 hold in part, 1 does not hold, 0 are inconclusive."
    ]


@pytest.mark.parametrize("name", PAPERS)
def test_pages_without_a_campaign(name: str, tmp_path: Path) -> None:
    paper = read_paper(PROJECT, name)
    html, text = tmp_path / "study.html", tmp_path / "study.md"
    write_pages(paper, None, evaluated(name), {html: "study.html", text: "study.md"})
    every, page, plain = evaluated(name), html.read_text(), text.read_text()
    # Each claim stands once, in its own words, with its verdict and what that rests on.
    assert re.findall(r'<article id="([^"]+)">', page) == [claim.id for claim in paper.claims]
    for one in every:
        article = page.partition(f'<article id="{one.claim.id}">')[2].partition("</article>")[0]
        [said] = re.findall(r"own tables\?</dt>\s*<dd><strong[^>]*>([^<]+)</strong>", article)
        row = page.partition(f'<a href="#{one.claim.id}">')[2].partition("</tr>")[0]
        assert said == one.report.verdict and f">{said}</td>" in row
        shown = unescape(re.sub("<[^>]+>", " ", article))
        for sentence in (one.claim.claim, *one.report.sentences, *one.needed.sentences):
            assert in_one_line(sentence) in in_one_line(shown), (one.claim.id, sentence)
        assert one.claim.id in plain
    assert tally(every)[0] in unescape(page)
    # Each table and figure stands with all of the report's rows, or with why it does not.
    of_exhibits = page.partition('<section id="exhibits">')[2].partition('<section id="standing">')
    sections = of_exhibits[0].split("<section>")[1:]
    assert len(sections) == len(paper.study.exhibits) > 3
    for section, exhibit in zip(sections, paper.study.exhibits, strict=True):
        shown_here = show(exhibit, Report(paper), None)
        title = unescape(re.findall("<h3>(.*?)</h3>", section)[0])
        assert title == f"{exhibit.number}: {exhibit.title}"
        assert section.count("</tr>") == len(shown_here.rows) + bool(shown_here.rows)
        if exhibit.absent:
            assert "Not shown: " in section and "<table" not in section and "<svg" not in section
        elif not paper.study.tables[str(exhibit.table)].today:
            printed = table_of(Report(paper), str(exhibit.table))
            assert not printed.is_empty() and ("<table" in section or "<svg" in section)
        cells = [cell.text for _, of in shown_here.rows for cell in of if cell.text]
        missing = [cell for cell in cells if f">{escape(cell)}</td>" not in section]
        assert missing == [], exhibit.number


@pytest.mark.browser
@pytest.mark.parametrize(("width", "dark"), [(1280, False), (360, True)])
def test_page_is_legible(browser: Browser, tmp_path: Path, width: int, dark: bool) -> None:
    html, _ = pages(measured(demo(tmp_path), tmp_path, 1.5), tmp_path)
    page = open_page(browser, html, width, dark)
    assert page.title() == "Demo · Wyeast"
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert (luminance(page) < 0.2) == dark
    assert INJECTION in page.locator("#demo-1 blockquote").inner_text()
    assert page.locator("#exhibits img, #exhibits script, #claims script").count() == 0
    assert page.locator("figure svg").count() == 2
    page.close()


@pytest.mark.browser
def test_each_of_todays_numbers_leads_to_its_launches(browser: Browser, tmp_path: Path) -> None:
    found = measured(demo(tmp_path), tmp_path, 1.5)
    html, _ = pages(found, tmp_path)
    page = open_page(browser, html, 1280)
    digests = {name: one["sha256"][:12] for name, one in found.campaign.manifest["images"].items()}
    table = page.locator("#exhibits table")
    heads = table.locator("thead th")
    cells = table.locator("tbody tr").first.locator("td")
    of_today = {"A GFLOPS, today": "alpha-1.0", "B GFLOPS, today": "beta-2.0"}
    seen = []
    for place in range(heads.count()):
        name = heads.nth(place).inner_text()
        links = heads.nth(place).locator("a.trace")
        assert links.count() == (name in of_today)
        if name not in of_today:
            continue
        seen.append(name)
        entry = page.locator(str(links.get_attribute("href")))
        own, other = of_today[name], next(one for one in of_today.values() if one != of_today[name])
        text = entry.inner_text()
        assert found.campaign.path.name in text and digests[own] in text
        assert f"round[001-006]_Linpack_grid=1x1_n=4000_nb=192_{own}" in text
        assert other not in text and "PointToPoint" not in text
        assert "rate = rate_flops / 1000000000" in text and "median over rounds" in text
        cells.nth(place).hover()
        assert f"_{own}" in str(cells.nth(place).get_attribute("title"))
    assert seen == list(of_today)
    # A report's own number is not of the campaign.
    place = [one.inner_text() for one in heads.all()].index("A GFLOPS, report")
    cells.nth(place).hover()
    assert "round" not in str(cells.nth(place).get_attribute("title"))
    for link in page.locator("#demo-1 a.trace, figure a.trace").all():
        text = page.locator(str(link.get_attribute("href"))).inner_text()
        assert "alpha-1.0" in text and "beta-2.0" in text and "Linpack_grid=1x2" in text
    assert page.locator("#demo-1 a.trace").count() == 1
    assert page.locator("figure a.trace").count() == 1
    page.close()


@pytest.mark.browser
def test_tables_and_figures_of_a_study_are_saved(browser: Browser, tmp_path: Path) -> None:
    found = measured(demo(tmp_path), tmp_path, 1.5)
    html, _ = pages(found, tmp_path)
    page = open_page(browser, html, 1280, downloads=True)
    assert page.locator("button.svg").count() == page.locator("figure").count() == 2
    with page.expect_download() as started:
        page.locator("button.svg").last.press("Enter")
    assert started.value.suggested_filename == "Figure-1-today-s.svg"
    rows: dict[str, list[dict[str, str]]] = {}
    for link in page.locator("a.csv").all():
        with page.expect_download() as started:
            link.click()
        text = Path(started.value.path()).read_bytes().decode()
        rows[started.value.suggested_filename] = list(csv.DictReader(io.StringIO(text)))
    assert set(rows) == {"table-1.csv", "table-1-drawn-figure-1.csv"}
    page.close()
    shown = {(row["procs"], row["mpi"], row["whose"]): row for row in rows["table-1.csv"]}
    # Two numbers of processes, two implementations, the report's and today's.
    assert len(shown) == 8 == len(rows["table-1-drawn-figure-1.csv"])
    printed, today = shown["2", "A", "report"], shown["2", "A", "today"]
    assert float(printed["number"]) == 8.0 and printed["launch_names"] == ""
    assert printed["source"] == "nowhere, Table 1: literature/demo/hpl.csv"
    assert float(today["number"]) == pytest.approx(90, rel=0.05) and today["rounds (1)"] == "6"
    assert float(today["interval_low"]) <= float(today["number"]) <= float(today["interval_high"])
    assert today["implementations"] == "alpha-1.0" and today["source"] == ""
    assert today["image_sha256"] == found.campaign.manifest["images"]["alpha-1.0"]["sha256"]
    assert "rate_flops / 1000000000" in today["formula"] and today["campaign"] == "campaign"
    for row in (one for of in rows.values() for one in of if one["whose"] == "today"):
        names = unfolded(row["launch_names"])
        assert names and all((found.campaign.path / "launches" / one).is_dir() for one in names)


@pytest.mark.browser
def test_a_study_without_a_campaign_is_saved_too(browser: Browser, tmp_path: Path) -> None:
    paper = read_paper(demo(tmp_path), "demo")
    html = tmp_path / "study.html"
    write_pages(paper, None, evaluate(paper), {html: "study.html"})
    page = open_page(browser, html, 1280, downloads=True)
    assert page.locator("a.trace").count() == 0 and page.locator("a.csv").count() == 2
    page.close()


def test_command_prints_tables_and_claims(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    done = subprocess.run(
        [sys.executable, "-m", "analysis", "study", "kearns2003", "--html", str(page)],
        cwd=PROJECT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Table 9: Process start-up" in done.stdout and "2.402" in done.stdout
    # What it comes to is said first.
    assert "29 claims, of which 18 hold" in done.stdout.splitlines()[1] and page.is_file()


def test_command_refuses_with_a_sentence() -> None:
    done = analysis("study", "kearns")
    assert done.returncode == 1
    assert "literature/ has: iit, kearns2003" in done.stderr
    assert analysis("study", "iit", "--page").returncode == 1


def test_a_campaign_of_the_thesis_gets_its_pages(tmp_path: Path) -> None:
    """Of LAM and MPICH with a known truth: LAM's HPL is half as fast again."""
    truths = {
        "lam-7.1.4": Truth(latency=1e-6, bandwidth=4e9, linpack=45e9),
        "mpich-5.0.2": Truth(latency=1e-6, bandwidth=4e9, linpack=30e9),
    }
    folder = Synthetic(tmp_path / "campaign", truths, rounds=6).write()
    done = analysis("study", "kearns2003", str(folder), "--page", "--no-tables")
    assert done.returncode == 0, done.stderr
    page = (folder / "study.html").read_text()
    for name in ("kearns-hpl-1", "kearns-hpl-3"):
        article = page.split(f'<article id="{name}">')[1].split("</article>")[0]
        here = article.split("Holds here?")[1].split("</dd>")[0]
        assert "told holds" in here and "6 rounds" in here
    assert "2 nodes or more" in page.split('<article id="kearns-bw-1">')[1].split("</article>")[0]
    assert (folder / "study.md").is_file()
