"""Communications with more ranks are held against those with the fewest, launch by launch."""

import math
from pathlib import Path

import pytest

from analysis.comparison.compare import compare
from analysis.models.over_ranks import over_ranks, over_ranks_table
from analysis.report.report import write_report
from records.campaign import read_campaign
from tests.analysis.models.test_guidelines import collective
from tests.analysis.support.synthetic import TWICE, Synthetic


def test_times_that_double_with_the_ranks_are_found_to(tmp_path: Path) -> None:
    made = Synthetic(tmp_path / "c", TWICE, rounds=0)
    made.write()
    for number in (1, 2, 3):
        for name in TWICE:
            for ranks in (2, 4, 8):
                drift = math.exp(0.01 * number)
                times = {("bcast", size): size * 1e-8 * ranks * drift for size in (1000, 4000)}
                crowded = {"oversubscribed": True} if ranks == 8 else {}
                collective(made, number, name, times, ranks=ranks, **crowded)
    comparison = compare(read_campaign(made.folder))
    rows = over_ranks(comparison)
    assert {(one.series, one.implementation, one.ranks, one.base_ranks) for one in rows} == {
        ("Collectives suite=s0-2 bcast [world]", name, 4, 2) for name in TWICE
    }
    for one in rows:
        assert one.ratio.value == pytest.approx(2, rel=1e-6) and one.ratio.pairs == 3
        assert one.base == pytest.approx(4000 * 1e-8 * 2, rel=0.05) and one.unit == "s"
    table = over_ranks_table(comparison)
    assert table and len(table.rows) == 2
    report = write_report(made.folder, None, None).read_text()
    assert "Communication over the number of ranks" in report


def test_a_campaign_of_one_number_of_ranks_has_no_such_table(tmp_path: Path) -> None:
    made = Synthetic(tmp_path / "c", TWICE, rounds=1, pairs=["Send/Recv"]).write()
    assert over_ranks_table(compare(read_campaign(made))) is None
