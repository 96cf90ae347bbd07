"""Start-ups of a known truth: parts, verdicts, tables and the report's rows."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy
import polars
import pytest

from analysis.comparison.compare import compare
from analysis.models.start_up import parts_of, start_up_rows, start_up_table
from analysis.report.report import write_report
from analysis.tables.parquet import write_tables
from records.base import RecordError
from records.campaign import read_campaign
from records.program_output import read_program_output
from records.start_up import points_out_of_order, start_up_times
from tests.analysis.support.synthetic import TWICE, Synthetic
from tests.busy_campaign import busy_campaign
from tests.reframe_checks.conftest import header, lines

SAMPLE = busy_campaign()
LAUNCHED = datetime(2026, 1, 1, tzinfo=UTC).timestamp()


def output(hosts: list[str], main: list[float], done: list[float], last: float) -> str:
    """Return an output; times are seconds after the launch."""
    result: dict[str, Any] = {
        "record": "result", "operation": "startup", "clock": "CLOCK_REALTIME",
        "ranks": len(hosts), "main_s": [LAUNCHED + time for time in main],
        "initialised_s": [LAUNCHED + time for time in done], "last_integer_s": LAUNCHED + last,
    }  # fmt: skip
    head = header("startup", len(hosts), hosts=hosts)
    return lines(head, result, {"record": "end", "results": 1})


def read(tmp_path: Path, *arguments: Any) -> Any:
    path = tmp_path / "out"
    path.write_text(output(*arguments))
    return read_program_output(path)


def test_parts_take_no_difference_of_two_clocks(tmp_path: Path) -> None:
    # Node b's clock is an hour ahead.
    found = read(tmp_path, ["a", "b", "a"], [0.2, 3600.3, 0.25], [0.5, 3600.9, 0.5], 1.0)
    times = start_up_times(found, LAUNCHED)
    assert times.start_up == pytest.approx(1.0, abs=1e-6)
    assert times.to_main == pytest.approx(0.25, abs=1e-6)
    assert times.initialisation == pytest.approx(0.6, abs=1e-6)
    assert points_out_of_order(found, LAUNCHED, LAUNCHED + 1.1) is None
    sentence = points_out_of_order(found, LAUNCHED + 0.21, LAUNCHED + 1.1)
    assert sentence and sentence.startswith("rank 0 entered main 0.010000 s before the launch")
    with pytest.raises(RecordError, match="before the launch began"):
        start_up_times(found, LAUNCHED + 2)


@pytest.fixture
def campaign(tmp_path: Path) -> Path:
    """Return a campaign in which beta's ranks start twice as fast, and boot daemons."""
    synthetic = Synthetic(tmp_path / "campaign", TWICE, rounds=6, pairs=[])
    synthetic.write()
    random = numpy.random.default_rng(2)
    for number in range(1, 7):
        for name, total in (("alpha-1.0", 1.0), ("beta-2.0", 0.5)):
            for ranks in (2, 8):
                noise = 1 + 0.01 * random.standard_normal()
                text = output(["a"] * ranks, [0.2 * noise] * ranks, [0.3 * noise] * ranks,
                              total * noise)  # fmt: skip
                times = {"container": 0.1}
                if name == "beta-2.0":
                    times["daemons"] = 0.15
                synthetic.launch(
                    number, name, "StartUp", {"ranks": ranks, "cache": "cold"}, text, ranks=ranks,
                    program="startup", started_utc="2026-01-01T00:00:00.000000Z", times_s=times,
                )  # fmt: skip
    return synthetic.folder


def test_faster_start_is_seen(campaign: Path) -> None:
    comparison = compare(read_campaign(campaign))
    cells = comparison.experiment("StartUp")
    assert [cell.parameters["ranks"] for cell in cells] == [2, 8]
    for cell in cells:
        assert cell.verdicts["beta-2.0"].ratio.value == pytest.approx(2, rel=0.05)
        assert cell.verdicts["beta-2.0"].words == "faster" and cell.ranked()[0] == "beta-2.0"
    [group] = [group for group in comparison.groups if group.experiment == "StartUp"]
    assert group.name == "Process start-up, cold image cache, 2 and 8 ranks"
    rows = start_up_rows(comparison, start_up_table(parts_of(comparison.campaign)))
    assert [(row["cell"].parameters["ranks"], row["implementation"]) for row in rows] == [
        (2, "alpha-1.0"), (2, "beta-2.0"), (8, "alpha-1.0"), (8, "beta-2.0"),
    ]  # fmt: skip
    assert "daemons" not in rows[0]["parts"]
    assert rows[1]["parts"] == pytest.approx(
        {"start_up": 0.5, "to_main": 0.2, "initialisation": 0.1, "container": 0.1,
         "daemons": 0.15}, rel=0.05,
    )  # fmt: skip


def test_tables_and_report_show_the_parts(campaign: Path) -> None:
    write_tables(read_campaign(campaign))
    launches = polars.read_parquet(campaign / "tables" / "launches.parquet")
    assert launches["container_s"].count() == 24 and launches["daemons_s"].count() == 12
    results = polars.read_parquet(campaign / "tables" / "results.parquet")
    found = results.filter(polars.col("operation") == "startup")
    assert found.height == 24
    assert found["start_up_s"].max() == pytest.approx(1.0, rel=0.1)
    text = write_report(campaign, None, None).read_text()
    section = text.partition('<section id="start-up">')[2].partition("</section>")[0]
    table = section.partition('<table class="rows">')[2]
    assert table.count("<tr>") == 1 + 4
    assert '<td class="number">1.42</td>' in section, "Table 9: MPICH with 8 processes"


def test_launch_that_cannot_be_is_left_out(campaign: Path) -> None:
    [path] = campaign.glob("launches/round001_StartUp_ranks=2_*alpha*/launch.json")
    record = json.loads(path.read_text())
    path.write_text(
        json.dumps(
            record | {"started_utc": "2026-01-02T00:00:00Z", "ended_utc": "2026-01-02T00:00:02Z"}
        )
    )
    found = read_campaign(campaign)
    [problem] = found.problems
    assert "stdout: rank 0 received the last integer before the launch began" in problem.sentence
    assert len(compare(found).experiment("StartUp")) == 2


def test_parts_to_be_saved_are_those_of_the_report() -> None:
    comparison = compare(read_campaign(SAMPLE))
    table = start_up_table(parts_of(comparison.campaign))
    rows = [dict(zip(table.heads, table.record(row), strict=True)) for row in table.rows]
    shown = start_up_rows(comparison, table)
    assert len(shown) == 8 and len(rows) == sum(len(row["parts"]) for row in shown)
    for row in shown:
        own = {
            one["part"]: one
            for one in rows
            if (one["cell"], one["implementation"]) == (row["cell"].name, row["implementation"])
        }
        assert {part: one["median (s)"] for part, one in own.items()} == row["parts"]
        assert own["start_up"]["median (s)"] == row["estimate"].median
        assert all(one["least (s)"] <= one["median (s)"] <= one["most (s)"] for one in own.values())
        assert {one["launches (1)"] for one in own.values()} == {3}
