"""The report is under 5 MB, however large the campaign: long tables go on beside it."""

import re
from pathlib import Path

import jinja2
import pytest

from analysis.report import report as report_module
from analysis.report.differences import MOST_ROWS
from analysis.report.more_rows import ROWS_OF_A_PAGE
from analysis.report.report import write_report
from records.communication import OPERATIONS
from tests.analysis.models.test_guidelines import collective
from tests.analysis.support.synthetic import TWICE, Synthetic


def test_three_thousand_series_are_a_small_report(tmp_path: Path) -> None:
    made = Synthetic(tmp_path / "c", TWICE, rounds=0)
    folder = made.write()
    operations = [one for one in OPERATIONS if one != "barrier"]
    cells = -(-3000 // len(operations))
    for number in (1, 2):
        for name in TWICE:
            for cell in range(cells):
                times = {
                    (one, size): (1e-6 + size / 1e9) * (1 + 0.01 * number * (cell % 7))
                    for one in operations
                    for size in (100, 1000)
                }
                collective(made, number, name, times, scrub=cell)
    path = write_report(folder, None, None)
    text = path.read_text()
    assert path.stat().st_size < 5_000_000
    # What there was no room for is said, and where it is; each number leads to where it is from.
    assert " more figures do not fit here: " in text
    led = set(re.findall(r'href="#(trace-[^"]+)"', text))
    assert len(led) > 100 and led <= set(re.findall(r'id="(trace-[^"]+)"', text))
    for name, count in (("ratios-Collectives", len(operations) * cells),
                        ("medians-Collectives", len(operations) * cells * 2)):  # fmt: skip
        assert f"{MOST_ROWS} of {count:,} rows, those that differ most first" in text
        assert f'href="report-{name}.html"' in text
    # All rows are in the pages, which lead to each other and back.
    rows, address = 0, "report-ratios-Collectives.html"
    while address:
        page = (folder / address).read_text()
        found = page.count("<tr>") - 1
        rows += found
        assert 0 < found <= ROWS_OF_A_PAGE and 'href="report.html"' in page
        assert "<script" not in page and "Content-Security-Policy" in page
        after = re.findall(r'href="([^"]+)">Rows after', page)
        address = after[0] if after else ""
    assert rows == len(operations) * cells > ROWS_OF_A_PAGE
    page = (folder / "report-ratios-Collectives.html").read_text()
    assert "alltoall" in page and "round[001-002]_" in page


def test_a_short_table_has_no_page(tmp_path: Path) -> None:
    folder = Synthetic(tmp_path / "c", TWICE, rounds=2).write()
    assert "all rows</a>" not in write_report(folder, None, None).read_text()
    assert [one.name for one in folder.glob("*.html")] == ["report.html"]


def test_a_report_that_is_too_large_has_fewer_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tables stay, then the files go; after two renderings it is as small as it gets."""
    folder = Synthetic(tmp_path / "c", TWICE, rounds=2).write()
    whole = write_report(folder, None, None).read_text()
    rendered = []
    render = jinja2.Template.render

    def counted(self: jinja2.Template, *values: object, **more: object) -> str:
        rendered.append(self.name)
        return render(self, *values, **more)

    monkeypatch.setattr(jinja2.Template, "render", counted)
    for less, files in ((10_000, True), (len(whole), False)):
        most = max(1, len(whole.encode()) - less)
        monkeypatch.setattr(report_module, "MOST_BYTES", most)
        smaller = write_report(folder, None, None).read_text()
        assert smaller.count("<figure") < whole.count("<figure")
        assert "more figures do not fit here" in smaller
        assert ('class="csv"' in smaller) == files
        rows = [len(re.findall("<tr>", re.sub("(?s)<details.*?</details>", "", text)))
                for text in (smaller, whole)]  # fmt: skip
        assert rows[0] == rows[1] > 20
        assert len(smaller.encode()) <= most or not files
    assert rendered == ["report.html"] * 4


def test_rows_that_have_no_place_are_on_pages_with_their_verdicts(tmp_path: Path) -> None:
    """Of an experiment without message sizes, whose rows have verdicts and medians."""
    truths = {f"mpi{number}-1.0": TWICE["alpha-1.0"] for number in range(52)}
    path = write_report(Synthetic(tmp_path / "c", truths, pairs=[], rounds=2).write(), None, None)
    text = path.read_text()
    assert f"{MOST_ROWS} of 104 rows, those that differ most first: all" in text
    assert f"{MOST_ROWS} of 102 comparisons, those that differ most first" in text
    for name in ("ratios-Linpack", "medians-Linpack"):
        assert f'href="report-{name}.html"' in text
        assert (path.parent / f"report-{name}.html").is_file()
    assert "no difference shown" in (path.parent / "report-ratios-Linpack.html").read_text()
