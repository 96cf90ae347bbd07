"""Communications with more ranks are held against those with the fewest, launch by launch."""

import json
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
                collective(
                    made, number, name, times, ranks=ranks, nodes=max(1, ranks // 2), **crowded
                )
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
    names = [column.name for column in table.columns]
    for column, value in (("ranks", 4), ("nodes", 2), ("base_ranks", 2), ("base_nodes", 1)):
        assert [row.values[names.index(column)] for row in table.rows] == [value] * 2
    report = write_report(made.folder, None, None).read_text()
    assert "Communication over the number of ranks" in report


@pytest.mark.parametrize(("program", "rows"), [("collective", 2), ("su3", 0), ("emulator", 0)])
def test_programs_that_compute_have_less_to_do_and_are_no_communication(
    tmp_path: Path, program: str, rows: int
) -> None:
    made = Synthetic(tmp_path / "c", TWICE, rounds=0)
    made.write()
    for name in TWICE:
        for ranks in (2, 4):
            collective(made, 1, name, {("bcast", 1000): 1e-5 / ranks}, ranks=ranks)
    for path in made.folder.glob("launches/*/launch.json"):
        path.write_text(json.dumps(json.loads(path.read_text()) | {"program": program}))
    assert len(over_ranks(compare(read_campaign(made.folder)))) == rows


def test_a_campaign_of_one_number_of_ranks_has_no_such_table(tmp_path: Path) -> None:
    made = Synthetic(tmp_path / "c", TWICE, rounds=1, pairs=["Send/Recv"]).write()
    assert over_ranks_table(compare(read_campaign(made))) is None
