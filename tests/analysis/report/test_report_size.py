"""The report is one file under 5 MB, however large the campaign."""

from pathlib import Path

import pytest

from analysis.report import report as report_module
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
    # What there was no room for is said, and where it is.
    assert "The first 500 of 3," in text and " more figures do not fit here: " in text
    assert 'id="trace-others"' in text


def test_a_report_that_is_too_large_shows_fewer_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Synthetic(tmp_path / "c", TWICE, rounds=2).write()
    whole = write_report(folder, None, None).read_text()
    most = len(whole.encode()) - 10_000
    monkeypatch.setattr(report_module, "MOST_BYTES", most)
    smaller = write_report(folder, None, None).read_text()
    assert len(smaller.encode()) <= most and smaller.count("<tr>") < whole.count("<tr>")
    assert "the file has all of them" in smaller and "the file has all of them" not in whole
