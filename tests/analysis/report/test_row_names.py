"""Every row of the report has a name of its own."""

from dataclasses import replace
from pathlib import Path

from analysis.comparison.compare import compare
from analysis.report.report import row_names, write_report
from records.campaign import read_campaign
from tests.analysis.support.synthetic import TWICE, Synthetic


def test_series_of_one_name_are_told_apart_by_their_cells(tmp_path: Path) -> None:
    folder = Synthetic(tmp_path / "c", TWICE, rounds=2, pairs=["Send/Recv"]).write()
    comparison = compare(read_campaign(folder))
    one, other = comparison.cells[:2]
    alike = [
        replace(one, experiment="C", name=f"C ranks={ranks} alltoall [world]", series=series)
        for ranks, series in ((2, "alltoall [world]"), (4, "alltoall [world]"))
    ]
    alone = replace(other, experiment="C", name="C ranks=2 bcast [world]", series="bcast [world]")
    names = row_names(replace(comparison, cells=[*alike, alone]))
    assert list(names.values()) == [
        "ranks=2 alltoall [world]", "ranks=4 alltoall [world]", "bcast [world]",
    ]  # fmt: skip
    assert write_report(folder, None, None).stat().st_size > 10_000
