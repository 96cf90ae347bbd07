"""The campaign's tables in Parquet; docs/reference/tables.md has every column with its unit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from statistics import fmean
from typing import Any

import polars as pl

from records.campaign import Campaign
from records.communication import Startup
from records.emulation import EmulationResult
from records.files import replacing
from records.launch import Launch
from records.node_pairs import NodePairsRound
from records.node_rates import Rate
from records.npb import NpbRun
from records.program_output import ProgramOutput
from records.start_up import start_up_times
from records.su3 import Su3Result

LAUNCHES: dict[str, Any] = {
    "launch": pl.String, "round": pl.Int64, "position": pl.Int64, "experiment": pl.String,
    "cell": pl.String, "implementation": pl.String, "image_sha256": pl.String,
    "site": pl.String, "partition": pl.String, "tier": pl.String, "ranks": pl.Int64,
    "nodes": pl.Int64, "oversubscribed": pl.Boolean, "started_utc": pl.String,
    "wall_s": pl.Float64, "exit_code": pl.Int64,
    "outcome": pl.String, "sentence": pl.String, "library": pl.String,
    "container_s": pl.Float64, "daemons_s": pl.Float64,
    "processors_busy_s": pl.Float64, "processors_idle_s": pl.Float64,
    "processors_stolen_s": pl.Float64,
    "image_signature": pl.String, "runs": pl.String,
    "node_facts": pl.String, "node_load_average": pl.Float64,
    "node_running": pl.Int64, "node_memory_available_bytes": pl.Int64,
    "node_clock_hz": pl.Float64, "others_s": pl.Float64, "stopped": pl.Int64,
    "carriers": pl.Int64, "left_running": pl.Int64, "split": pl.Boolean,
    "moved": pl.Boolean,
}  # fmt: skip
RESULTS: dict[str, Any] = {
    "launch": pl.String, "operation": pl.String, "pair": pl.String, "order": pl.String,
    "method": pl.String, "group": pl.String, "message_bytes": pl.Int64, "iterations": pl.Int64,
    "min_s": pl.Float64, "quartile1_s": pl.Float64, "median_s": pl.Float64, "mean_s": pl.Float64,
    "quartile3_s": pl.Float64, "max_s": pl.Float64, "memory_copy_s": pl.Float64,
    "n": pl.Int64, "nb": pl.Int64, "p": pl.Int64, "q": pl.Int64, "time_s": pl.Float64,
    "benchmark": pl.String, "problem_class": pl.String, "rate_ops": pl.Float64,
    "rate_flops": pl.Float64, "residual": pl.Float64, "start_up_s": pl.Float64,
    "to_main_s": pl.Float64, "initialisation_s": pl.Float64, "synchronisation": pl.String,
    "discarded": pl.Int64, "clock_error_s": pl.Float64, "moved_bytes": pl.Int64,
    "application": pl.Int64, "graph": pl.String, "steps": pl.Int64, "step_bytes": pl.Int64,
    "median_alone_s": pl.Float64, "median_together_s": pl.Float64,
    "median_slowdown": pl.Float64, "overlap": pl.Float64, "kernel": pl.String,
    "array_bytes": pl.Int64, "clock_hz": pl.Float64,
    "plaquette": pl.Float64, "plaquette_error": pl.Float64, "site_updates": pl.Int64,
    "wall_s": pl.Float64, "cpu_s": pl.Float64, "exchange_s": pl.Float64,
}  # fmt: skip
ITERATIONS: dict[str, Any] = {
    "launch": pl.String, "operation": pl.String, "pair": pl.String, "order": pl.String,
    "method": pl.String, "group": pl.String, "message_bytes": pl.Int64,
    "application": pl.Int64, "graph": pl.String, "situation": pl.String,
    "iteration": pl.Int64, "time_s": pl.Float64,
}  # fmt: skip
#: What each rank took itself, where a program was asked for it.
RANK_ITERATIONS: dict[str, Any] = {
    "launch": pl.String, "operation": pl.String, "method": pl.String, "group": pl.String,
    "message_bytes": pl.Int64, "rank": pl.Int64, "iteration": pl.Int64, "time_s": pl.Float64,
}  # fmt: skip
#: How many iterations become rows at a time: a row takes some 150 bytes until it is written.
AT_ONCE = 500_000
#: How many rows, or series of iterations, are in memory one by one: a row of Python takes 2 kB.
ROWS_AT_ONCE = 10_000
PROBLEMS: dict[str, Any] = {"where": pl.String, "sentence": pl.String}


def launch_row(launch: Launch) -> dict[str, Any]:
    """Return a launch's row."""
    row = {name: getattr(launch.record, name, None) for name in LAUNCHES}
    if seen := launch.record.disturbance:
        row |= {name: getattr(seen, name) for name in ("others_s", "stopped", "carriers")}
    row |= {f"{name}_s": seconds for name, seconds in launch.record.times_s.items()}
    row |= {f"processors_{name}_s": time for name, time in launch.record.processors_s.items()}
    row |= {f"node_{name}": value for name, value in launch.record.node.items()}
    if isinstance(launch.output, ProgramOutput):
        row["library"] = launch.output.header.library
    return row


def result_rows(launch: Launch) -> list[dict[str, Any]]:
    """Return the rows of a launch's results."""
    rows: list[dict[str, Any]] = []
    if isinstance(launch.output, ProgramOutput):
        for result in launch.output.results:
            if isinstance(result, NodePairsRound):
                rows += way_rows(launch, result)
                continue
            row: dict[str, Any] = {"launch": launch.record.launch}
            for name in RESULTS.keys() & type(result).model_fields.keys():
                if name != "time_s":
                    row[name] = getattr(result, name)
            summary = getattr(result, "time_s", None)
            if summary is not None:
                row |= {f"{name}_s": value for name, value in summary.model_dump().items()}
            if isinstance(result, Startup):
                times = start_up_times(launch.output, launch.record.started_s())
                row |= {f"{name}_s": value for name, value in asdict(times).items()}
            if isinstance(result, EmulationResult):
                row["median_alone_s"] = result.alone_s.median
                row["median_together_s"] = result.together_s.median
                row["median_slowdown"] = result.slowdown.median
            if isinstance(result, Rate):
                row["clock_hz"] = result.clock_hz
                row["rate_flops"] = getattr(result, "rate_flops", None)
            if isinstance(result, Su3Result):
                row["cpu_s"] = fmean(result.cpu_by_rank_s)
                row["exchange_s"] = fmean(result.exchange_by_rank_s)
            rows.append(row)
    elif isinstance(launch.output, NpbRun):
        row = {"launch": launch.record.launch, "operation": "npb"}
        printed = asdict(launch.output)
        rows.append(row | {name: printed[name] for name in RESULTS.keys() & printed.keys()})
    elif launch.output is not None:
        for run in launch.output:
            row = {"launch": launch.record.launch, "operation": "linpack"}
            names = ("n", "nb", "p", "q", "time_s", "rate_flops", "residual")
            rows.append(row | {name: getattr(run, name) for name in names})
    return rows


def way_rows(launch: Launch, result: NodePairsRound) -> list[dict[str, Any]]:
    """Return a row for each way of a round of pairs of nodes."""
    ways = zip(
        result.source, result.to, result.min_s, result.median_s, result.means_s, result.max_s,
        strict=True,
    )  # fmt: skip
    return [
        {
            "launch": launch.record.launch, "operation": result.operation,
            "method": result.measure, "group": f"rank {source} to {to}, sweep {result.sweep}",
            "message_bytes": result.message_bytes, "iterations": result.iterations,
            "min_s": least, "median_s": median, "mean_s": mean, "max_s": most,
        }
        for source, to, least, median, mean, most in ways
    ]  # fmt: skip


def series_rows(launch: Launch, schema: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a row for each series of times of a launch, with its times as one list."""
    if not isinstance(launch.output, ProgramOutput):
        return []
    output = launch.output
    found: Iterable[Any] = output.rank_iterations if "rank" in schema else output.iterations
    key = [name for name in schema if name not in ("launch", "iteration", "time_s")]
    return [
        {
            "launch": launch.record.launch,
            **{name: getattr(series, name, None) for name in key},
            "time_s": pl.Series(series.time_s, dtype=pl.Float64),
        }
        for series in found
    ]


def parts_of(rows: Iterable[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Yield the series in parts of about AT_ONCE iterations."""
    part: list[dict[str, Any]] = []
    count = 0
    for row in rows:
        part.append(row)
        count += len(row["time_s"])
        if count >= AT_ONCE or len(part) >= ROWS_AT_ONCE:
            yield part
            part, count = [], 0
    yield part


def iterations_of(campaign: Campaign, schema: dict[str, Any]) -> pl.LazyFrame:
    """Return a row for each iteration; the rows are made part by part as they are written."""
    by_series = {name: of for name, of in schema.items() if name not in ("iteration", "time_s")}
    by_series["time_s"] = pl.List(pl.Float64)
    count = pl.int_ranges(0, pl.col("time_s").list.len()).alias("iteration")
    rows = (row for launch in campaign.launches for row in series_rows(launch, schema))
    return pl.concat(
        pl.LazyFrame(part, by_series)
        .with_columns(count)
        .explode("iteration", "time_s", empty_as_null=False)
        .select(*schema)
        for part in parts_of(rows)
    )


def frame_of(rows: Iterable[dict[str, Any]], schema: dict[str, Any]) -> pl.LazyFrame:
    """Return rows as a table, made part by part."""
    left = iter(rows)
    parts = iter(lambda: list(islice(left, ROWS_AT_ONCE)), [])
    return pl.concat([pl.LazyFrame([], schema), *(pl.LazyFrame(part, schema) for part in parts)])


def write_table(frame: pl.LazyFrame, path: Path) -> None:
    """Replace a table in one step."""
    with replacing(path) as file:
        frame.sink_parquet(file)


def write_tables(campaign: Campaign) -> dict[str, int]:
    """Write the tables of a campaign; return the number of rows of each."""
    campaign.leave_out_unreadable()
    folder = campaign.path / "tables"
    folder.mkdir(exist_ok=True)
    rows = (row for launch in campaign.launches for row in result_rows(launch))
    moved = campaign.moved()
    problems = [{"where": p.where, "sentence": p.sentence} for p in campaign.problems]
    tables = {
        "launches": frame_of(
            (
                launch_row(one)
                | {
                    "split": (one.record.round, one.record.cell) in campaign.split,
                    "moved": (one.record.round, one.record.cell) in moved,
                }
                for one in campaign.launches
            ),
            LAUNCHES,
        ),
        "results": frame_of(rows, RESULTS),
        "iterations": iterations_of(campaign, ITERATIONS),
        "rank_iterations": iterations_of(campaign, RANK_ITERATIONS),
        "problems": pl.LazyFrame(problems, PROBLEMS),
    }
    counted = {}
    for name, frame in tables.items():
        path = folder / f"{name}.parquet"
        write_table(frame, path)
        counted[name] = int(pl.scan_parquet(path).select(pl.len()).collect().item())
    return counted
