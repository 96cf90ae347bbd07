"""All nights on one page: what it shows, how large it gets, and that its filters work."""

import html
import json
import re
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import yaml
from playwright.sync_api import Browser, Page

from analysis.figures.spark import PARTS, Mark, drawn_places, spark
from analysis.history.index import history_rows
from analysis.history.series import Series, history
from analysis.nights.page import MOST_BYTES, page
from tests.analysis.history.test_history import DAYS, nightly  # noqa: F401
from tests.analysis.report.test_report import browser  # noqa: F401
from tests.analysis.support.in_process import analysis


@pytest.fixture(scope="module")
def written(nightly: Path) -> Path:  # noqa: F811
    """Return the page of two weeks in which a new kernel made all slower; one night is judged."""
    last = sorted(one for one in nightly.iterdir() if one.is_dir())[-1]
    (last / "report.html").write_text("<p id='launches'>a report</p>")
    (last / "night.md").write_text("a night")
    (last / "night.json").write_text(json.dumps({"verdict": "regression"}))
    done = analysis("history", "--runs", str(nightly), "--html", str(nightly / "history.html"))
    assert done.returncode == 0 and done.stdout == f"history: {nightly / 'history.html'}\n"
    return nightly / "history.html"


def words_of(text: str) -> str:
    return " ".join(html.unescape(re.sub("<[^>]+>", " ", text)).split())


def test_the_page_says_what_changed_and_why(written: Path) -> None:
    text = written.read_text()
    said = words_of(text)
    assert "14 campaigns," in said and "worse by" in said
    assert "Between the two changed: kernel" in said
    # Links lead to what is there, and to nothing else.
    links = set(re.findall(r'href="([^"#]+)[^"]*"', text))
    assert links and all((written.parent / link).is_file() for link in links)
    assert 'report.html#launches">launches</a>' in text
    assert "Something became slower, and three measurements confirm it." in said
    assert text.count("<svg") == text.count("<tr data-cell")
    assert not re.search(r"<[a-z][^>]*\s(?:style|on[a-z]+)=", text)


def test_a_page_elsewhere_leads_to_the_campaigns(nightly: Path, tmp_path: Path) -> None:  # noqa: F811
    out = tmp_path / "elsewhere.html"
    analysis("history", "--runs", str(nightly), "--html", str(out))
    links = re.findall(r'href="(file:[^"#]+)', out.read_text())
    assert links == [] or all(link.startswith(nightly.resolve().as_uri()) for link in links)


def many(series: int, campaigns: int) -> Iterator[Series]:
    """Yield made-up series, of which each third changed."""
    random = np.random.default_rng(1)
    begun = datetime(2000, 1, 1, tzinfo=UTC)
    names = [f"{begun + timedelta(days=day):%Y%m%dT%H%M%SZ}-local-nightly" for day in
             range(campaigns)]  # fmt: skip
    folders = pl.Series("folder", names, pl.Categorical())
    for number in range(series):
        levels = random.normal(-10, 0.1, campaigns)
        levels[campaigns // 2 :] += 1.0 * (number % 3 == 0)
        yield Series(
            "local", "quick", "Collectives", f"Collectives suite=all {number}", "mpich-5.0.2", "",
            "MPI_Wtime", folders, 0, levels, [], True,
        )  # fmt: skip


def test_a_large_history_fits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert MOST_BYTES == 5_000_000
    monkeypatch.setattr("analysis.nights.page.MOST_BYTES", 800_000)
    text = page(tmp_path, list(many(400, 400)), {}, tmp_path)
    assert 200_000 < len(text.encode()) < 800_000
    assert re.search(r"There is no room for [\d,]+ more series", text)
    few = page(tmp_path, list(many(26, 400)), {}, tmp_path)
    assert len(few.encode()) < 26 * 3000 + 30_000 and "There is no room" not in few


def test_a_line_loses_no_value_that_stands_out() -> None:
    values = np.zeros(10_000)
    values[1234], values[9876] = 5.0, -3.0
    places = drawn_places(values)
    assert {1234, 9876} <= set(places.tolist()) and len(places) <= 2 * PARTS
    drawing = spark(values, [Mark(5000, True)], "a <b>")
    assert "a &lt;b&gt;" in drawing and 'class="faster"' in drawing and len(drawing) < 2500
    one = spark(np.array([1.0]), [], "one")
    assert "<circle" in one and "nan" not in one


@pytest.mark.browser
@pytest.mark.parametrize("width", [1280, 390])
def test_filters_and_widths(browser: Browser, written: Path, width: int) -> None:  # noqa: F811
    opened: Page = browser.new_page(viewport={"width": width, "height": 900})
    errors: list[str] = []
    opened.on("pageerror", lambda error: errors.append(str(error)))
    opened.on("console", lambda said: errors.append(said.text) if said.type == "error" else None)
    opened.goto(written.as_uri())
    rows = opened.locator("tr[data-cell]:visible")
    every = rows.count()
    opened.locator("select[data-by=experiment]").select_option(label="Linpack")
    assert 0 < rows.count() < every
    assert all("Linpack" in one for one in rows.all_inner_texts())
    kept = opened.url
    opened.locator("#words").fill("n=no-such-size")
    assert rows.count() == 0
    opened.goto("about:blank")
    opened.goto(kept)
    assert 0 < opened.locator("tr[data-cell]:visible").count() < every
    wide = opened.evaluate("document.documentElement.scrollWidth - innerWidth")
    assert wide <= 0 and errors == []
    opened.close()


def test_a_night_without_any_launch_is_shown(nightly: Path, tmp_path: Path) -> None:  # noqa: F811
    """The worst night has no series: it is missed where only what was measured is listed."""
    runs = tmp_path / "runs"
    shutil.copytree(nightly, runs, ignore=shutil.ignore_patterns("history.html"))
    newest = sorted(one for one in runs.iterdir() if one.is_dir())[-1]

    def night(day: int, **facts: object) -> Path:
        name = f"202602{day:02d}T000000Z-local-nightly"
        shutil.copytree(newest, runs / name)
        shutil.rmtree(runs / name / "launches")
        told = json.loads((runs / name / "manifest.json").read_text())
        told |= {"campaign": name, "finished_utc": "2026-02-28T00:00:00Z", **facts}
        (runs / name / "manifest.json").write_text(json.dumps(told))
        for file in ("night.json", "night.md", "report.html"):
            (runs / name / file).unlink(missing_ok=True)
        return runs / name

    night(1, night={"broken": {"alpha-1.0": "no image"}})
    judged = night(2, night={"broken": {}})
    (judged / "night.json").write_text(json.dumps({"verdict": "incomplete"}))
    # A campaign by day, a repetition of a night and somebody else's are no nights of here.
    night(3)
    night(4, night={"again_of": judged.name, "number": 1, "broken": {}})
    (night(5, night={"broken": {}}) / "imported.json").write_text("{}")
    night(6, night={"broken": {}}, site="elsewhere")

    def nights(*words: str) -> dict[str, str]:
        analysis("history", "--runs", str(runs), "--html", str(runs / "history.html"), *words)
        text = (runs / "history.html").read_text().partition('<section id="nights">')[2]
        rows = re.findall(r"<tr data-site.*?</tr>", text.partition("</section>")[0])
        assert all('class="bad"' in row for row in rows if "202602" in row and "yet" not in row)
        return {words_of(row)[:8]: words_of(row) for row in rows}

    found = nights()
    assert {day for day in found if day >= "20260201"} == {"20260201", "20260202", "20260206"}
    assert "No launch of it counts. It was not judged." in found["20260201"]
    assert "No launch of it counts. No regression is shown, but not" in found["20260202"]
    assert "elsewhere" in found["20260206"] and "20260206" not in nights("--site", "local")

    # One that is not finished is none that broke, unless another one has begun since then.
    night(7, night={"broken": {}}, finished_utc=None)
    night(8, night={"broken": {}}, finished_utc=None)
    found = nights()
    assert "It was interrupted before it was finished." in found["20260207"]
    assert "It is not finished yet." in found["20260208"]
    assert "counts" not in found["20260207"] + found["20260208"]

    # One of which nothing can be read may be a night, unless somebody else's.
    for day in (9, 10):
        (night(day) / "manifest.json").write_text("{")
    (runs / "20260210T000000Z-local-nightly" / "imported.json").write_text("{}")
    for words in ((), ("--site", "local")):
        found = nights(*words)
        assert "Its manifest cannot be read: it may be a night." in found["20260209"]
        assert "20260210" not in found
    text = (runs / "history.html").read_text()
    assert 'class="bad">It was interrupted' in text and "<td>It is not finished yet." in text


@pytest.mark.parametrize("words", [["--experiment", "Linpack"], ["--cell", "Linpack*"]])
def test_a_sound_night_without_what_is_shown_is_not_broken(
    nightly: Path,  # noqa: F811
    tmp_path: Path,
    words: list[str],
) -> None:
    runs = tmp_path / "runs"
    shutil.copytree(nightly, runs, ignore=shutil.ignore_patterns("history.html"))
    newest = sorted(one for one in runs.iterdir() if one.is_dir())[-1]
    shutil.copytree(newest, runs / "20260201T000000Z-local-nightly")
    newest = runs / "20260201T000000Z-local-nightly"
    for launch in (newest / "launches").glob("*Linpack*"):
        shutil.rmtree(launch)
    told = json.loads((newest / "manifest.json").read_text())
    told |= {"campaign": newest.name, "night": {"broken": {}}}
    (newest / "manifest.json").write_text(json.dumps(told))
    (newest / "night.json").write_text(json.dumps({"verdict": "nothing"}))
    out = tmp_path / "history.html"
    done = analysis("history", "--runs", str(runs), "--html", str(out), *words)
    assert done.returncode == 0, done.stderr
    row = next(one for one in re.findall(r"<tr data-site.*?</tr>", out.read_text())
               if newest.name in one)  # fmt: skip
    assert "No regression is shown." in row and "No launch" not in row and 'class="bad"' not in row


def test_a_night_renews_the_page(nightly: Path) -> None:  # noqa: F811
    last = sorted(one for one in nightly.iterdir() if one.is_dir())[-1]
    (nightly / "history.html").unlink(missing_ok=True)
    done = analysis("night", str(last), "--runs", str(nightly))
    assert f"all nights: {nightly / 'history.html'}" in done.stdout
    assert "14 campaigns," in words_of((nightly / "history.html").read_text())


def test_exports_of_a_history(nightly: Path, tmp_path: Path) -> None:  # noqa: F811
    done = analysis("history", "--runs", str(nightly), "--otava", str(tmp_path / "otava"),
                    "--grafana", str(tmp_path / "annotations.json"))  # fmt: skip
    assert done.returncode == 0, done.stderr
    tests = yaml.safe_load((tmp_path / "otava" / "otava.yaml").read_text())["tests"]
    for one in tests.values():
        lines = Path(one["file"]).read_text().splitlines()
        assert lines[0] == "time,campaign,value" and len(lines) == DAYS + 1
        assert all(float(line.split(",")[2]) > 0 for line in lines[1:])
        [(name, metric)] = one["metrics"].items()
        assert metric["direction"] == (-1 if name.endswith("(s)") else 1)
    found = json.loads((tmp_path / "annotations.json").read_text())
    assert found and all("worse" in one["tags"] and "kernel" in one["text"] for one in found)
    assert {datetime.fromtimestamp(one["time"] / 1000, UTC).year for one in found} == {2026}


def test_history_is_what_the_page_shows(nightly: Path) -> None:  # noqa: F811
    series = history(history_rows(nightly, lambda sentence: None))
    changed = sum(bool(one.changes) for one in series)
    text = page(nightly, series, {}, nightly)
    assert text.count("data-same") == len(series) - changed
