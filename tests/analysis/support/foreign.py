"""What other programs would print of runs with known times, and a database as ReFrame writes it."""

import json
import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy

SIZES = (0, 1, 2, 4, 8, 16, 32, 64, 128, 256)
#: Of ReFrame's perflogs, the fields of `format` and those of one performance variable.
FIELDS = ("result", "job_completion_time", "environ", "job_nodelist", "name", "partition",
          "copy_value", "copy_unit", "copy_ref", "copy_lower_thres", "copy_upper_thres",
          "system")  # fmt: skip


def noisy(count: int, seed: int, spread: float = 0.01) -> list[float]:
    """Return factors around 1."""
    random = numpy.random.default_rng(seed)
    return [float(one) for one in numpy.exp(random.normal(0.0, spread, count))]


def osu(times_us: Sequence[float], sizes: Sequence[int] = SIZES) -> str:
    """Return a run of the latency test."""
    rows = [f"{size:<10}{time:>20.2f}" for size, time in zip(sizes, times_us, strict=False)]
    return "\n".join([
        "# OSU MPI Latency Test v7.4", "# Datatype: MPI_CHAR.",
        "# Size       Avg Latency(us)", *rows, "",
    ])  # fmt: skip


def osu_set(folder: Path, level_us: float, count: int, seed: int) -> Path:
    """Write a folder of runs."""
    folder.mkdir(parents=True)
    for number, factor in enumerate(noisy(count, seed), 1):
        times = [level_us * factor * (1 + place / 10) for place in range(len(SIZES))]
        (folder / f"run{number}.txt").write_text(osu(times))
    return folder


def google(times_ns: Sequence[float], date: str = "2026-01-01T00:00:00+00:00") -> dict[str, Any]:
    """Return a process' repetitions of one benchmark, with their aggregates."""
    common = {"name": "BM_copy/64", "run_name": "BM_copy/64", "time_unit": "ns", "threads": 1}
    return {
        "context": {"date": date, "host_name": "vm", "executable": "./bench"},
        "benchmarks": [
            *({**common, "run_type": "iteration", "repetition_index": at, "iterations": 1000,
               "real_time": time, "cpu_time": time} for at, time in enumerate(times_ns)),
            {**common, "run_type": "aggregate", "aggregate_name": "stddev", "real_time": 1.0},
        ],
    }  # fmt: skip


def google_set(folder: Path, level_ns: float, count: int, seed: int) -> Path:
    """Write a folder of processes, each with five repetitions that differ little."""
    folder.mkdir(parents=True)
    for number, factor in enumerate(noisy(count, seed)):
        times = [level_ns * factor * one for one in noisy(5, seed + 100 + number, 0.001)]
        day = f"2026-01-{number + 1:02d}T00:00:00+00:00"
        (folder / f"{number}.json").write_text(json.dumps(google(times, day)))
    return folder


def perflog(rates: Sequence[float], environ: str = "gnu", month: int = 1) -> str:
    """Return the lines of a log, without the one that names the fields."""
    return "".join(
        f"pass|2026-{month:02d}-{day:02d}T00:00:00+00:00|{environ}|nid[01-02]|StreamTest|cpu|"
        f"{rate:.2f}|MB/s|100|-0.1|null|cluster\n"
        for day, rate in enumerate(rates, 1)
    )


def perflog_file(path: Path, lines: str) -> Path:
    """Write a log."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("|".join(FIELDS) + "\n" + lines)
    return path


def session(number: int, values: Sequence[float | None], retried: Sequence[float] = ()) -> Any:
    """Return the report of a session with some runs of a test, and with retries."""
    uuid = f"2026010{number}T000000+0000"
    seconds = 1767225600.0 + 86400 * number

    def case(run: int, place: int, value: float | None) -> Mapping[str, Any]:
        return {
            "name": "StreamTest", "system": "cluster", "partition": "cpu", "environ": "gnu",
            "result": "pass" if value else "fail", "fail_phase": None if value else "sanity",
            "uuid": f"{uuid}:{run}:{place}", "job_completion_time_unix": seconds,
            "perfvalues": {"cluster:cpu:copy": [value, 100, -0.1, None, "MB/s", "pass"]},
        }  # fmt: skip

    runs = [values, retried] if retried else [values]
    return {
        "session_info": {"uuid": uuid, "time_start_unix": seconds},
        "runs": [
            {"testcases": [case(run, place, value) for place, value in enumerate(of)]}
            for run, of in enumerate(runs)
        ],
    }


def database(path: Path, sessions: Sequence[Any]) -> Path:
    """Write a database with the tables of ReFrame 4.10."""
    with sqlite3.connect(path) as db:
        db.execute(
            "CREATE TABLE IF NOT EXISTS sessions(uuid TEXT PRIMARY KEY, session_start_unix REAL, "
            "session_end_unix REAL, json_blob TEXT, report_file TEXT)"
        )
        for one in sessions:
            info = one["session_info"]
            db.execute(
                "INSERT INTO sessions VALUES (?, ?, ?, ?, ?)",
                (info["uuid"], info["time_start_unix"], info["time_start_unix"],
                 json.dumps(one), ""),
            )  # fmt: skip
    db.close()
    return path
