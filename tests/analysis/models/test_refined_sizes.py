"""Sizes that `--refine` added differ from round to round: curves and models have them, ratios not.

Which sizes a launch adds follows from its times, so a mean over them would be over sizes that the
result chose.
"""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import polars
import pytest

from analysis.comparison.cells import measured_cells
from analysis.comparison.compare import compare
from analysis.history.campaign_rows import (
    COLUMNS,
    EARLIER,
    KEPT,
    VERSION,
    kept_rows,
    metrics_digest,
    rows_of,
)
from analysis.models.log_gp import gap_per_byte
from analysis.models.message_tables import line_table, segment_table
from analysis.models.messages import fitted_in, model_of, sweeps_of
from analysis.models.one_way_times import one_way_times
from analysis.tables.units import prefixed
from records.base import CampaignError
from records.campaign import Campaign, read_campaign
from records.experiments import compared
from tests.analysis.support.synthetic import TWICE, Synthetic

ASKED = [0, 1024, 8192, 32_768, 131_072, 524_288]
#: Two sizes that each of three rounds alone added, one on either side of the switch.
ADDED = [[4096, 262_144], [16_384, 393_216], [20_480, 196_608]]
SWITCH = 65_536


def one_way(n: int) -> float:
    """Return a one-way time in s: alpha 2 us and 12 us, 10 GB/s and 20 GB/s around the switch."""
    return 2e-6 + 1e-10 * n if n <= SWITCH else 12e-6 + 5e-11 * n


def output(times: dict[int, float], parameters: dict[str, Any]) -> str:
    """Return the output of a ping-pong of one-way times in s by size in bytes."""
    records: list[dict[str, Any]] = [{
        "record": "header", "format": "wyeast-records-1", "program": "pingpong",
        "program_version": "1.0.0", "library": "none", "mpi_standard": "4.1", "ranks": 2,
        "hosts": ["a", "a"], "processors": [[0], [1]], "clock": "MPI_Wtime", "clock_tick_s": 1e-9,
        "clock_resolution_s": 1e-9, "started_utc": "2026", "parameters": parameters,
    }]  # fmt: skip
    names = ("min", "quartile1", "median", "mean", "quartile3", "max")
    records += [
        {"record": "result", "operation": "pingpong", "pair": "Send/Recv", "order": "modified",
         "message_bytes": size, "iterations": 10, "warmup": 1,
         "time_s": dict.fromkeys(names, 2 * seconds), "verified_bytes": 2 * size,
         "memory_copy_s": 0.0}
        for size, seconds in times.items()
    ]  # fmt: skip
    records.append({"record": "end", "results": len(times)})
    return "".join(json.dumps(record) + "\n" for record in records)


def campaign(
    folder: Path, added: list[list[int]], base: Callable[[int], float] = one_way,
    asked: list[int] = ASKED, **more: Any,
) -> Campaign:  # fmt: skip
    """Return a campaign without noise: beta is half as fast as alpha up to 8 KiB, and equal above.

    Each round has added sizes of its own.
    """
    synthetic = Synthetic(folder, TWICE, rounds=0, **more)
    synthetic.write()
    for number, sizes in enumerate(added, 1):
        for name in TWICE:
            times = {
                n: base(n) * (2 if name == "beta-2.0" and n <= 8192 else 1)
                for n in [*asked, *sizes]
            }
            synthetic.launch(
                number, name, "Mpptest", {"suite": "protocols", "ranks_per_node": 1},
                output(times, {"sizes": asked, "refine": 0.05}),
            )  # fmt: skip
    return read_campaign(folder)


def test_ratios_are_over_the_sizes_asked_for(tmp_path: Path) -> None:
    """Of five sizes beta takes twice as long at two: 0.758 in every round, whatever it added."""
    comparison = compare(campaign(tmp_path / "c", [[4096], [16_384, 262_144], [2048, 512, 64]]))
    [cell] = comparison.cells
    ratios = [math.exp(one) for one in cell.log_ratios["beta-2.0"].values()]
    assert ratios == pytest.approx([0.5 ** (2 / 5)] * 3)
    [group] = comparison.groups
    assert group.verdicts["beta-2.0"].ratio.value == pytest.approx(0.5 ** (2 / 5))
    # All that was measured is in the curve, each size with the launches that have it.
    assert {2048, 262_144, *ASKED[1:]} <= set(cell.message_sizes())
    estimate = cell.estimate("beta-2.0", 262_144)
    assert estimate is not None and len(estimate.launches) == 1
    names = comparison.launch_names.of_size(cell, "beta-2.0", 262_144)
    assert names == "round002_Mpptest_suite=protocols_ranks_per_node=1_beta-2.0"


def test_ranks_are_over_the_sizes_asked_for(tmp_path: Path) -> None:
    """Alpha is quicker at all sizes but one that both added, where it is 1000 times as slow."""
    folder = tmp_path / "c"
    campaign(folder, [[262_144]] * 2)
    for launch in (folder / "launches").glob("*alpha*"):
        times = {n: one_way(n) * (1000 if n == 262_144 else 1) for n in [*ASKED, 262_144]}
        (launch / "stdout").write_text(output(times, {"sizes": ASKED, "refine": 0.05}))
    [cell] = compare(read_campaign(folder)).cells
    assert cell.ranked() == ["alpha-1.0", "beta-2.0"]


def test_campaigns_that_added_other_sizes_are_one_series(tmp_path: Path) -> None:
    one, other = (
        rows_of(campaign(tmp_path / f"c{n}", added)) for n, added in enumerate((ADDED, ADDED[:1]))
    )
    assert [row["sizes"] for row in one] == [row["sizes"] for row in other]
    assert [row["level"] for row in one] == pytest.approx([row["level"] for row in other])
    assert one[0]["sizes"].startswith("5 sizes, 1024 to 524288 B")


@pytest.mark.parametrize("version", [2, VERSION])
def test_rows_that_were_kept_before_are_still_read(tmp_path: Path, version: int) -> None:
    """The raw output of a night may be gone: what was kept of it is not lost with a version."""
    found = campaign(tmp_path / "c", ADDED)
    rows = [row | {"stamp": f"{version} {metrics_digest()}"} for row in rows_of(found)]
    (found.path / KEPT).parent.mkdir()
    frame, is_today = polars.DataFrame(rows, COLUMNS), version == VERSION
    (frame if is_today else frame.drop("launch_cell")).write_parquet(found.path / KEPT)
    kept = kept_rows(found.path)
    assert [row["cell"] for row in kept] == [row["cell"] for row in rows]
    assert [row["launch_cell"] for row in kept] == [
        row["cell"] if is_today else None for row in rows
    ]
    polars.DataFrame([rows[0] | {"stamp": f"1 {metrics_digest()}"}], COLUMNS).write_parquet(
        found.path / KEPT
    )
    with pytest.raises(CampaignError, match="use metrics other than today's"):
        kept_rows(found.path)


def test_another_experiment_takes_no_kept_rows_away(tmp_path: Path) -> None:
    """Rows go by the entries of their own experiments, also by a digest of all entries of once."""
    found = campaign(tmp_path / "c", ADDED)
    (found.path / KEPT).parent.mkdir()
    [name] = {row["experiment"] for row in rows_of(found)}
    of_itself = compared()[name].digest
    others = metrics_digest().replace(of_itself, "")
    for digests, is_read in (
        (of_itself, True), (*EARLIER, True), (f"0000{metrics_digest()}", True), (others, False),
    ):  # fmt: skip
        rows = [row | {"stamp": f"{VERSION} {digests}"} for row in rows_of(found)]
        polars.DataFrame(rows, COLUMNS).write_parquet(found.path / KEPT)
        if is_read:
            assert len(kept_rows(found.path)) == len(rows)
        else:
            with pytest.raises(CampaignError, match="use metrics other than today's"):
                kept_rows(found.path)


def test_a_size_that_the_clock_cannot_time_is_in_no_curve_either(tmp_path: Path) -> None:
    found = campaign(tmp_path / "c", [[4096]] * 2)
    for stdout in (found.path / "launches").glob("*/stdout"):
        stdout.write_text(stdout.read_text().replace('1e-09, "started', '1e-06, "started'))
    [cell] = measured_cells(read_campaign(found.path))
    assert {point.message_bytes for point in cell.limited["alpha-1.0"]} == {1024, 4096, 8192}
    assert "alpha-1.0" not in cell.refined
    assert set(cell.values["alpha-1.0"][1]) == set(ASKED[3:])


@pytest.mark.parametrize("parameters", [{}, {"refine": 0.05}, {"sizes": [0], "refine": 0}])
def test_without_refinement_every_size_was_asked_for(
    tmp_path: Path, parameters: dict[str, Any]
) -> None:
    """Also where a header has no such parameters, as of other programs."""
    found = campaign(tmp_path / "c", [[4096]])
    for stdout in (found.path / "launches").glob("*/stdout"):
        times = {n: one_way(n) for n in [*ASKED, 4096]}
        stdout.write_text(output(times, parameters))
    [cell] = measured_cells(read_campaign(found.path))
    assert set(cell.values["alpha-1.0"][1]) == {4096, *ASKED[1:]}


@pytest.mark.parametrize("count", [1, 2])
def test_models_fit_each_round_at_its_own_sizes(tmp_path: Path, count: int) -> None:
    """One or two sizes of each round's own: both lines are there, each by all three rounds."""
    asked = [0, 1024, 8192, 32_768, 65_536, 131_072, 262_144, 524_288]
    added = [[4096, 393_216], [16_384, 196_608], [20_480, 458_752]]
    model = model_of(
        sweeps_of(campaign(tmp_path / "c", [n[-count:] for n in added], asked=asked))[0]
    )
    assert model is not None and not model.unfitted
    assert [(one.below_bytes, one.above_bytes) for one in model.switches] == [(65_536, 131_072)]
    for segment, alpha, beta in zip(model.segments, (2e-6, 12e-6), (1e-10, 5e-11), strict=True):
        assert segment.alpha.launches == 3 and segment.left_out == 0
        assert segment.alpha.value == pytest.approx(alpha)
        assert segment.beta.value == pytest.approx(beta)
    assert model.segments[-1].line.last_bytes == 524_288
    table = segment_table([model])
    assert len(table.rows) == 2 and not any("left out" in note for note in table.notes)


def test_a_round_without_enough_sizes_of_a_line_is_told(tmp_path: Path) -> None:
    """131,072 and 524,288 are asked for: the first round added none between, the others did."""
    found = campaign(tmp_path / "c", [[4096], [196_608, 262_144], [393_216]])
    fitted = fitted_in(found)
    model = next(one for one in fitted.models if one.sweep.implementation == "alpha-1.0")
    last = model.segments[-1]
    assert last.line.last_bytes == 524_288 and (last.alpha.launches, last.left_out) == (2, 1)
    assert last.beta.value == pytest.approx(5e-11)
    assert any("1 of 3 of Mpptest" in note for note in segment_table(fitted.models).notes)


def test_a_line_that_fits_no_round_is_reported_and_gives_no_gap(tmp_path: Path) -> None:
    """Together the rounds have three sizes above the switch, none of them has three itself."""
    del_last = [0, 1024, 8192, 32_768, 131_072]
    found = campaign(tmp_path / "c", [[262_144], [524_288], [393_216]], asked=del_last)
    model = model_of(sweeps_of(found)[0])
    assert model is not None
    [line] = model.unfitted
    assert line.last_bytes == 524_288
    assert any("which has no row" in note for note in segment_table([model]).notes)
    gap = gap_per_byte([model])
    assert gap is not None and gap.value is None and gap.how.startswith("not known: no round has")


def test_one_line_through_all_sizes_is_by_those_asked_for(tmp_path: Path) -> None:
    table = line_table(one_way_times(campaign(tmp_path / "c", ADDED)), "")
    assert table is not None and not any("Left out" in note for note in table.notes)
    assert [table.value(row, "rounds") for row in table.rows] == [3, 3]
    slope, start = numpy.polyfit(ASKED, [one_way(n) for n in ASKED], 1)
    assert table.words(table.rows[0])[7:9] == (prefixed(start, "s"), prefixed(1 / slope, "B/s"))


def test_rounds_that_lack_a_size_asked_for_are_told(tmp_path: Path) -> None:
    found = campaign(tmp_path / "c", ADDED)
    [first] = (found.path / "launches").glob("round001*alpha*")
    times = {n: one_way(n) for n in ASKED[:-1]}
    (first / "stdout").write_text(output(times, {"sizes": ASKED[:-1], "refine": 0.05}))
    table = line_table(one_way_times(read_campaign(found.path)), "")
    assert table is not None and [table.value(row, "rounds") for row in table.rows] == [2, 3]
    assert "1 of 3 of Mpptest suite=protocols ranks_per_node=1 (alpha-1.0)" in table.notes[-1]
