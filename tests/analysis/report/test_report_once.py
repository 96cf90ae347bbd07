"""A report reads its campaign once, and finds each number once."""

import sys
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

from analysis.comparison.caveats.limited import limited_tables
from analysis.comparison.compare import compare
from analysis.comparison.tables import group_table
from analysis.models.guidelines.trials import times_in, trials_by
from analysis.models.linpack import dgemm_in, rows_of, solved_in
from analysis.models.log_gp import parameters_of
from analysis.models.messages import models_of, sweeps_of
from analysis.models.nodes.rates import rates_in
from analysis.models.one_way_times import one_way_times
from analysis.models.profile import ProfiledCell, profiled_cells
from analysis.models.scaling import powers_in, programs_in
from analysis.models.start_up import parts_of, start_up_table
from analysis.report.report import write_report
from records.campaign import read_campaign
from records.launch import read_launch
from tests.busy_campaign import busy_campaign

SAMPLE = busy_campaign()
ONCE = (compare, dgemm_in, group_table, limited_tables, models_of, one_way_times, parameters_of,
        parts_of, powers_in, profiled_cells, programs_in, rates_in, read_campaign, rows_of,
        solved_in, start_up_table, sweeps_of, times_in, trials_by)  # fmt: skip


def test_nothing_is_computed_twice(tmp_path: Path) -> None:
    calls: Counter[Any] = Counter()

    def count(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            calls[frame.f_code] += 1

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        write_report(SAMPLE, None, tmp_path / "report.html")
    finally:
        sys.setprofile(before)
    assert {one.__name__: calls[one.__code__] for one in ONCE} == {one.__name__: 1 for one in ONCE}
    assert calls[read_launch.__code__] == len(list((SAMPLE / "launches").iterdir()))
    cells, _ = profiled_cells(read_campaign(SAMPLE))
    for name in ("functions", "shares", "sizes"):
        assert calls[vars(ProfiledCell)[name].func.__code__] == len(cells) > 0
