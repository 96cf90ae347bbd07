"""The overlap of non-blocking operations: by hand, and in a campaign of known times."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from analysis.__main__ import app
from analysis.comparison.cells import measured_cells
from analysis.models.messages import sweeps_of
from analysis.models.overlap import Overlapped, overlap_table
from analysis.models.scaling import bandwidths_per_rank
from records.campaign import read_campaign
from records.communication import ALONE, BESIDE, COMPUTING
from tests.analysis.support.synthetic import Synthetic, Truth

CALL_S = 1e-4


@pytest.mark.parametrize(
    ("together_s", "overlap"),
    [
        (CALL_S, 1.0),  # All of it passed meanwhile.
        (2 * CALL_S, 0.0),  # One after the other.
        (1.25 * CALL_S, 0.75),
        (3 * CALL_S, 0.0),  # What computing delayed is less than no overlap,
        (0.9 * CALL_S, 1.0),  # and noise more than all.
    ],
)
def test_overlap_by_hand(together_s: float, overlap: float) -> None:
    assert Overlapped(CALL_S, CALL_S, together_s).overlap == pytest.approx(overlap)


def test_a_longer_computation_hides_as_much_of_the_call() -> None:
    assert Overlapped(CALL_S, 5 * CALL_S, 5.5 * CALL_S).overlap == pytest.approx(0.5)


def empty(folder: Path) -> Synthetic:
    """Return a campaign of one implementation without launches."""
    synthetic = Synthetic(folder / "campaign", {"one": Truth(1e-6, 1e9, 1e9)}, rounds=0)
    synthetic.write()
    return synthetic


def launch(synthetic: Synthetic, number: int, together_s: float, **more: Any) -> None:
    """Add a launch of an alltoall of which all but `together_s` less CALL_S was hidden."""
    header = {
        "record": "header", "format": "wyeast-records-1", "program": "collective",
        "program_version": "1.0.0", "library": "one", "mpi_standard": "4.1", "ranks": 2,
        "hosts": ["a", "a"], "processors": [[0], [1]], "clock": "MPI_Wtime", "clock_tick_s": 1e-9,
        "clock_resolution_s": 2e-8, "started_utc": "2026", "parameters": {},
    }  # fmt: skip
    records: list[dict[str, Any]] = [header]
    for method, time in ((ALONE, CALL_S), (BESIDE, together_s), (COMPUTING, CALL_S)):
        moved = 0 if method == COMPUTING else 16
        records.append({
            "record": "result", "operation": "alltoall", "method": method, "group": "world",
            "message_bytes": 8, "ranks": 2, "iterations": 1, "warmup": 1,
            "synchronisation": "barrier", "discarded": 0, "clock_error_s": 0.0,
            "time_s": dict.fromkeys(
                ("min", "quartile1", "median", "mean", "quartile3", "max"), time
            ),
            "median_by_rank_s": [time, time], "moved_bytes": moved, "verified_bytes": moved,
        })  # fmt: skip
    records.append({"record": "end", "results": 3})
    text = "".join(json.dumps(record) + "\n" for record in records)
    synthetic.launch(number, "one", "CollectiveForms", {"suite": "non-blocking", "ranks": 2}, text,
                     program="collective", ranks=2, **more)  # fmt: skip


def test_the_table_of_a_campaign(tmp_path: Path) -> None:
    synthetic = empty(tmp_path)
    for number, together in ((1, 1.1e-4), (2, 1.2e-4), (3, 1.5e-4)):
        launch(synthetic, number, together)
    path = synthetic.folder
    campaign = read_campaign(path)
    table = overlap_table(campaign)
    assert table is not None and len(table.rows) == 1
    [row] = table.rows
    assert row.values[:6] == ("one", "alltoall", "world", 2, 8, 3)
    assert row.values[6:10] == pytest.approx((CALL_S, CALL_S, 1.2e-4, 0.8))
    assert row.values[10] == pytest.approx((0.5, 0.9))
    done = CliRunner().invoke(app, ["overlap", str(path), "--no-pager"])
    assert done.exit_code == 0 and "80.0%" in done.output
    # Times that are the longer the slower the call are compared with no other implementation's.
    assert {cell.series for cell in measured_cells(campaign)} == {"alltoall non-blocking [world]"}
    assert {one.series for one in sweeps_of(campaign)} == {"alltoall non-blocking [world]"}
    # NASA's all-to-all is a blocking call.
    assert bandwidths_per_rank(campaign) == {}
    crowded = empty(tmp_path / "crowded")
    launch(crowded, 1, 9e-4, oversubscribed=True)
    assert overlap_table(read_campaign(crowded.folder)) is None


def test_a_campaign_without_any_gets_a_sentence(tmp_path: Path) -> None:
    path = empty(tmp_path).folder
    done = CliRunner().invoke(app, ["overlap", str(path)])
    assert done.exit_code == 1 and "no sound non-blocking operation" in done.output
