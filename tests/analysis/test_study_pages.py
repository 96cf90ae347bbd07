"""A study's pages and figures, and the command that makes them."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from playwright.sync_api import Browser

from analysis.campaign import read_campaign
from analysis.figures import MARKERS
from analysis.studies.drawing import axis, shape, ticks
from analysis.studies.judging import HOLDS
from analysis.studies.page import standing, write_pages
from analysis.studies.reading import read_paper
from analysis.studies.tables import Measured, Report, table_of
from analysis.studies.verdicts import TESTED, evaluate
from tests.analysis.study_samples import DEMO_STUDY, PAPERS, PROJECT, demo, evaluated, measured
from tests.analysis.synthetic import Synthetic, Truth
from tests.analysis.test_report import INJECTION, browser, luminance, open_page

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


def pages(found: Measured, tmp_path: Path) -> tuple[Path, Path]:
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
    found = Measured(read_paper(root, "demo"), read_campaign(folder))
    (one,) = evaluate(found.paper, found)
    assert one.here is not None and one.here.verdict == HOLDS
    assert [(family, name) for family, name, _ in standing(found.paper, found)] == [
        ("A", "alpha-1.0"), ("B", "beta-3.0 (PointToPoint); beta-2.0 (Linpack)"),
    ]  # fmt: skip


@pytest.mark.parametrize("name", PAPERS)
def test_pages_without_a_campaign(name: str, tmp_path: Path) -> None:
    paper = read_paper(PROJECT, name)
    html, text = tmp_path / "study.html", tmp_path / "study.md"
    write_pages(paper, None, evaluated(name), {html: "study.html", text: "study.md"})
    for claim in paper.claims:
        assert f'id="{claim.id}"' in html.read_text() and claim.id in text.read_text()
    for exhibit in paper.study.exhibits:
        assert exhibit.absent or not table_of(Report(paper), str(exhibit.table)).is_empty() or (
            paper.study.tables[str(exhibit.table)].today
        )  # fmt: skip


@pytest.mark.browser
@pytest.mark.parametrize(("width", "dark"), [(1280, False), (360, True)])
def test_page_is_legible(browser: Browser, tmp_path: Path, width: int, dark: bool) -> None:
    html, _ = pages(measured(demo(tmp_path), tmp_path, 1.5), tmp_path)
    page = open_page(browser, html, width, dark)
    assert page.title() == "Demo · Wyeast"
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert (luminance(page) < 0.2) == dark
    assert INJECTION in page.locator("#demo-1 blockquote").inner_text()
    assert page.locator("#exhibits img, script").count() == 0
    assert page.locator("figure svg").count() == 2
    page.close()


def command(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "analysis", "study", *words],
        cwd=PROJECT, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_command_prints_tables_and_claims(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    done = command("kearns2003", "--html", str(page))
    assert done.returncode == 0, done.stderr
    assert "Table 9: Process start-up" in done.stdout and "2.402" in done.stdout
    assert "29 claims, of which 18 hold" in done.stdout and page.is_file()


def test_command_refuses_with_a_sentence() -> None:
    done = command("kearns")
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert "literature/ has: iit, kearns2003" in done.stderr
    assert command("iit", "--page").returncode == 1


def test_a_campaign_of_the_thesis_gets_its_pages(tmp_path: Path) -> None:
    """Of LAM and MPICH with a known truth: LAM's HPL is half as fast again."""
    truths = {
        "lam-7.1.4": Truth(latency=1e-6, bandwidth=4e9, linpack=45e9),
        "mpich-5.0.2": Truth(latency=1e-6, bandwidth=4e9, linpack=30e9),
    }
    folder = Synthetic(tmp_path / "campaign", truths, rounds=6).write()
    done = command("kearns2003", str(folder), "--page", "--no-tables")
    assert done.returncode == 0, done.stderr
    page = (folder / "study.html").read_text()
    for name in ("kearns-hpl-1", "kearns-hpl-3"):
        article = page.split(f'<article id="{name}">')[1].split("</article>")[0]
        here = article.split("Holds here?")[1].split("</dd>")[0]
        assert "told holds" in here and "6 rounds" in here
    assert "2 nodes or more" in page.split('<article id="kearns-bw-1">')[1].split("</article>")[0]
    assert (folder / "study.md").is_file()
