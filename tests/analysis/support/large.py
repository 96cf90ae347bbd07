"""Campaigns as large as is asked for, that nobody measured, kept as a session of today keeps them.

Of every four cells three are of ping-pongs, with three message sizes each, and one is of collective
operations, which is 13 series; so that all that a report has grows with the cells.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from analysis.simulation.history import TIMED, stdout_of
from records import schedule
from records.events import PlannedLaunch
from records.launch import LaunchRecord
from tests.analysis.support.synthetic import PAIRS, SIZES, Synthetic, Truth

#: Of every so many cells one is of collective operations.
ONE_IN = 4
#: How much launches differ, and the implementations: some beyond the margin, some within it.
NOISE, STEP = 0.02, 0.01


def cells_of(count: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield so many cells: the experiment of each, and its parameters."""
    settings = (
        {"pair": pair, "message_range": message_range, "ranks": ranks}
        for ranks, message_range, pair in product(range(2, 10_000), SIZES, PAIRS)
    )
    for number in range(count):
        if number % ONE_IN == ONE_IN - 1:
            yield "Collectives", {"suite": f"simulated{number}", "ranks": 2}
        else:
            yield "PointToPoint", next(settings)


def names_of(count: int) -> list[str]:
    """Return the names of so many implementations, as versions and transports make them long."""
    return [f"openmpi-5.0.{number}+transport{number}" for number in range(count)]


def write_large(folder: Path, implementations: int, cells: int, rounds: int, seed: int = 1) -> Path:
    """Write a campaign; `folder` is named as the campaign is. Return it."""
    truths = {
        name: Truth(1e-6 * (1 + STEP * number), 4e9 / (1 + STEP * number), 30e9)
        for number, name in enumerate(names_of(implementations))
    }
    made = Synthetic(folder, truths, rounds=0, noise=NOISE, iterations=3)
    made.facts = {"rounds": rounds}
    made.write()
    (folder / "launches").rmdir()
    random = np.random.default_rng(seed)
    every = list(cells_of(cells))
    # A campaign that is made up need not outlast the machine's power.
    with mock.patch("os.fsync"), mock.patch("os.fdatasync"):
        schedule.begin(folder)
        with schedule.held(folder) as book:
            for number in range(1, rounds + 1):
                launches = [
                    launch_of(made, number, name, experiment, parameters, random)
                    for (experiment, parameters), name in product(every, truths)
                ]
                book.plan(number, [
                    PlannedLaunch(launch=record.launch, cell=record.cell,
                                  implementation=record.implementation)
                    for record, _ in launches
                ])  # fmt: skip
                for record, text in launches:
                    book.intend(record.launch)
                    book.keep(record, {"stdout": text.encode(), "stderr": b""})
    return folder


def launch_of(
    made: Synthetic, number: int, name: str, experiment: str, parameters: dict[str, Any],
    random: np.random.Generator,
) -> tuple[LaunchRecord, str]:  # fmt: skip
    """Return the record of a launch and what it printed."""
    if experiment == "Collectives":
        noise = NOISE * random.standard_normal(len(TIMED))
        text = stdout_of(name, 10 * made.truths[name].latency * np.exp(noise))
    else:
        text, _ = made.ping_pongs(
            random, name, made.truths[name], parameters["pair"],
            SIZES[parameters["message_range"]],
        )  # fmt: skip
    cell = " ".join([experiment, *(f"{key}={value}" for key, value in parameters.items())])
    launch = f"round{number:03d}_{cell}_{name}".replace(" ", "_").replace("/", "_")
    return LaunchRecord.model_validate({
        "schema": "wyeast-launch-1", "launch": launch, "round": number, "position": 1,
        "experiment": experiment, "parameters": parameters, "cell": cell, "implementation": name,
        "image_sha256": made.digest(name),
        "program": "collective" if experiment == "Collectives" else "pingpong",
        "output_format": "wyeast-records-1", "ranks": 2, "nodes": 1, "site": "local",
        "partition": "local:default", "tier": "quick", "command": "none",
        "started_utc": "2026-01-01T00:00:00Z", "ended_utc": "2026-01-01T00:00:01Z", "wall_s": 1.0,
        "exit_code": 0, "outcome": "sound", "sentence": None,
        "reframe": {"name": cell, "hash": "0"},
    }), text  # fmt: skip
