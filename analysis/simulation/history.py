"""`python -m analysis.simulation.history`: how long the history of many campaigns takes.

Makes campaigns that nobody measured in a temporary folder, and runs `python -m analysis history`
on them: with nothing but launches, with the rows that a campaign's end keeps beside its tables (the
run before wrote them) and no index, with the index, and with a campaign more. A campaign has three
rounds of two implementations of a launch that times 13 collective operations, so 26 series.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from analysis.history.index import FILE
from records.communication import OPERATIONS
from records.launch import LAUNCH_SCHEMA, RECORD, LaunchRecord, record_of, record_text
from records.manifest import FILE as MANIFEST
from records.manifest import MANIFEST_SCHEMA, manifest_of, manifest_text

IMPLEMENTATIONS = ("alpha-1.0", "beta-2.0")
ROUNDS = 3
TIMED = OPERATIONS[:13]
NOISE = 0.03
#: In the second half of the campaigns the first operation of one implementation takes longer.
STEP = 1.1


def digest_of(implementation: str) -> str:
    """Return what stands for an image's digest."""
    return f"{IMPLEMENTATIONS.index(implementation) + 1:064x}"


def stdout_of(implementation: str, times: np.ndarray) -> str:
    """Return what a launch prints; times are in seconds, one for each operation."""
    records: list[dict[str, Any]] = [{
        "record": "header", "format": "wyeast-records-1", "program": "collective",
        "program_version": "1.0.0", "library": implementation, "mpi_standard": "4.1", "ranks": 2,
        "hosts": ["a", "a"], "processors": [[0], [1]], "clock": "MPI_Wtime",
        "clock_tick_s": 1e-9, "clock_resolution_s": 2e-8, "started_utc": "2026", "parameters": {},
    }]  # fmt: skip
    for operation, seconds in zip(TIMED, times.tolist(), strict=True):
        summary = dict.fromkeys(("min", "quartile1", "median", "mean", "quartile3", "max"), seconds)
        records.append({
            "record": "result", "operation": operation, "method": "", "group": "world",
            "message_bytes": 1024, "ranks": 2, "iterations": 100, "warmup": 2,
            "synchronisation": "barrier", "discarded": 0, "clock_error_s": 0.0,
            "time_s": summary, "median_by_rank_s": [seconds, seconds], "moved_bytes": 2048,
            "verified_bytes": 2048,
        })  # fmt: skip
    records.append({"record": "end", "results": len(TIMED)})
    return "".join(json.dumps(record) + "\n" for record in records)


def write_campaign(
    runs: Path, number: int, slower: bool, cells: int = 1, name: str | None = None
) -> Path:
    """Write a campaign's folder and return it, the launches' numbers from its own seed."""
    random = np.random.default_rng(number)
    created = datetime(2000, 1, 1, tzinfo=UTC) + timedelta(days=number)
    name = name or str(number)
    folder = runs / f"{created:%Y%m%dT%H%M%SZ}-local-{name}"
    (folder / "launches").mkdir(parents=True)
    manifest = {
        "schema": MANIFEST_SCHEMA, "campaign": folder.name, "name": name, "site": "local",
        "tier": "quick", "created_utc": created.isoformat(), "finished_utc": created.isoformat(),
        "rounds": ROUNDS, "machine": {"cpu_model": None}, "software": {}, "commands": [],
        "order_seed": number, "inputs": {},
        "images": {name: {"sha256": digest_of(name)} for name in IMPLEMENTATIONS},
    }  # fmt: skip
    (folder / MANIFEST).write_text(manifest_text(manifest_of(manifest, folder.name)))
    for number_of_round, implementation, suite in product(
        range(1, ROUNDS + 1), IMPLEMENTATIONS, range(cells)
    ):
        times = 1e-5 * np.exp(NOISE * random.standard_normal(len(TIMED)))
        if slower and implementation == IMPLEMENTATIONS[0] and not suite:
            times[0] *= STEP
        parameters = {"suite": f"simulated{suite or ''}", "ranks": 2}
        launch_name = f"round{number_of_round:03d}_{implementation}_{suite}"
        launch = {
            "schema": LAUNCH_SCHEMA, "launch": launch_name, "round": number_of_round,
            "position": 1, "experiment": "Collectives", "parameters": parameters,
            "cell": f"Collectives suite={parameters['suite']} ranks=2",
            "implementation": implementation,
            "image_sha256": digest_of(implementation), "program": "collective",
            "output_format": "wyeast-records-1", "ranks": 2, "nodes": 1, "site": "local",
            "partition": "default", "tier": "quick", "command": "", "wall_s": 1.0,
            "started_utc": created.isoformat(), "ended_utc": created.isoformat(),
            "exit_code": 0, "outcome": "sound", "sentence": None,
            "reframe": {"name": launch_name},
        }  # fmt: skip
        (folder / "launches" / launch_name).mkdir()
        record = record_of(LaunchRecord, launch, launch_name)
        (folder / "launches" / launch_name / RECORD).write_text(record_text(record))
        stdout = folder / "launches" / launch_name / "stdout"
        stdout.write_text(stdout_of(implementation, times))
    return folder


def processors_s() -> float:
    """Return the processor time of all commands that have ended, in seconds."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def timed_history(runs: Path) -> tuple[str, str]:
    """Return how long the command takes, with the start of Python, and its output."""
    started, used = time.monotonic(), processors_s()
    done = subprocess.run(
        [sys.executable, "-m", "analysis", "history", "--runs", str(runs), "--most", "3"],
        stdout=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    took = f"{time.monotonic() - started:.1f} s | {processors_s() - used:.1f} s"
    return took, done.stdout


def main(
    campaigns: Annotated[int, typer.Option(help="how many campaigns", min=20)] = 10_000,
) -> None:
    """Print a table of how long the history of many campaigns takes."""
    with tempfile.TemporaryDirectory(prefix="wyeast-history-") as temporary:
        runs = Path(temporary)
        started = time.monotonic()
        for number in range(campaigns):
            write_campaign(runs, number, slower=number >= campaigns // 2)
        made = time.monotonic() - started
        raw, _ = timed_history(runs)
        (runs / FILE).unlink()
        first, _ = timed_history(runs)
        second, shown = timed_history(runs)
        write_campaign(runs, campaigns, slower=True)
        third, _ = timed_history(runs)
        size = (runs / FILE).stat().st_size
        found = [line for line in shown.splitlines() if line.startswith("- ")]
    most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    print("| what | | of processors |\n|---|---|---|")
    launches = campaigns * ROUNDS * len(IMPLEMENTATIONS)
    for what, value in (
        (f"{campaigns:,} campaigns of {launches:,} launches made", f"{made:.1f} s |"),
        ("history of launches alone", raw),
        ("history of rows kept by campaigns' ends, no index", first),
        ("history again, with the index", second),
        ("history with a campaign more", third),
        ("index", f"{size / 1e6:.1f} MB |"),
        ("most memory", f"{most / 1e6:.0f} MB |"),
        ("changes found, of one made", f"{len(found)} |"),
    ):
        print(f"| {what} | {value} |")
    for line in found:
        print(line)


if __name__ == "__main__":
    typer.run(main)
