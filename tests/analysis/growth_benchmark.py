"""`python -m tests.analysis.growth_benchmark`: how what analysis costs grows, an axis at a time.

Campaigns that nobody measured are written into a temporary folder, in three sizes or more along
each axis, and read by the commands that people use, each in a process of its own. The smallest size
stands for a start: the exponent is with which power of the work beyond that the processors' time
beyond that grows, between the two largest sizes, as the mean over repetitions with its 95%
interval. One above 1.2 fails, and so does a command that takes more than 2 GB; of memory less than
this process itself takes is not seen. From the same two sizes follows the largest that a command
would finish within 60 s of processors and 8 GB. `--curves` draws what was found.

With `--of FIRST SECOND` it is two campaigns that were measured, in one folder, that the commands
read; what they leave in the folder of a campaign is what people leave there.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from inference.means import Mean
from records.kept import read_records
from records.manifest import read_manifest
from tests.analysis.support import curves as drawn
from tests.analysis.support.commands import costs_of_foreign, costs_of_pair, perflogs_of
from tests.analysis.support.costs import (
    MOST_EXPONENT,
    Cost,
    cost_of,
    growth,
    largest_within,
    start_of,
)
from tests.analysis.support.large import write_large
from tests.analysis.support.nights import CELLS, costs_of_nights, make
from tests.analysis.support.synthetic import SIZES, TWICE, Synthetic
from tests.reframe_checks.conftest import StandIn, stand_in_at
from tests.reframe_checks.loading import environment, with_images

PROJECT = Path(__file__).resolve().parents[2]
SAMPLES_OF_A_LAUNCH = 1000
MOST_MEMORY_BYTES = 2e9
#: What somebody waits for at most where nothing else is done, and has at least.
PATIENCE_S, ROOM_BYTES = 60.0, 8e9
#: What stays as it is along the other axes.
IMPLEMENTATIONS, CELLS_OF_EACH, ROUNDS = 2, 16, 5
#: As many implementations as a site may well have at once, and of how many cells: 300 rounds are
#: 14,400 launches.
TWELVE, CELLS_OF_TWELVE = 12, 4
#: What has by its nature more work than its size: every two implementations are compared.
POWER_OF_WORK = {("implementations", "winners"): 2}
#: Of how many rounds, the first and the last of a measured campaign, their own times are told.
OWN_ROUNDS = 10
#: All checks are loaded and none is printed: a campaign prints no list of them.
NO_CHECK = ("-n", "^none is named so$")
Costs = dict[str, Cost]


def campaign_of(folder: Path, samples: int) -> None:
    """Write a campaign of about so many iterations."""
    whole = Synthetic(folder / "runs" / "made-up", TWICE)
    launches_of_a_round = len(TWICE) * len(whole.pairs) * len(SIZES)
    whole.rounds = max(1, round(samples / SAMPLES_OF_A_LAUNCH / launches_of_a_round))
    sizes = sum(len(of_range) for of_range in SIZES.values())
    results = whole.rounds * len(TWICE) * len(whole.pairs) * sizes
    whole.iterations = max(1, round(samples / results))
    whole.write()


def two_campaigns(
    folder: Path, size: int, implementations: int = IMPLEMENTATIONS,
    cells: int = CELLS_OF_EACH, rounds: int = ROUNDS, axis: str = "",
) -> None:  # fmt: skip
    """Write a campaign whose `axis` has a size, and one of the same that is later."""
    of = {"implementations": implementations, "cells": cells, "rounds": rounds, axis: size}
    for number in (1, 2):
        name = f"2026010{number}T000000Z-local-made-up"
        write_large(folder / "runs" / name, **of, seed=number)


def of_iterations(folder: Path) -> Costs:
    """Return what it costs to read a campaign of many iterations."""
    [path] = (folder / "runs").iterdir()
    return {name: cost_of("-m", "analysis", name, str(path)) for name in ("ingest", "report")}


def of_campaigns(folder: Path) -> Costs:
    """Return what it costs to read a large campaign, and to compare it with another one."""
    # A repetition finds beside them the index that the history of the one before has left.
    first, second = sorted(path for path in (folder / "runs").iterdir() if path.is_dir())
    return costs_of_pair(first, second, folder)


def of_nights(folder: Path) -> Costs:
    """Return what many nights cost those who look back at them."""
    return costs_of_nights(folder, max((folder / "runs").glob("*-nightly")))


def checkout_of(folder: Path, images: int) -> None:
    """Write a checkout with so many images, and a campaign that has launches of as many."""
    with_images(stand_in_at(folder), images)
    write_large(folder / "runs" / "20260101T000000Z-local-made-up", images, 16, 2)


def of_checks(folder: Path) -> Costs:
    """Return what it costs to load all checks while a campaign has launches."""
    lock = json.loads((folder / "containers" / "images.lock").read_text())
    [campaign] = (folder / "runs").iterdir()
    told = environment(StandIn(folder), list(lock["images"])) | {"WYEAST_CAMPAIGN": str(campaign)}
    checks = ("-c", str(PROJECT / "reframe_checks"), "-l", *NO_CHECK)
    return {"load of checks": cost_of("-m", "reframe_checks.bin.guards", *checks, environment=told)}


@dataclass(frozen=True)
class Growing:
    """What grows: sizes, what writes it in a folder, and what that costs."""

    sizes: tuple[int, ...]
    write: Callable[[Path, int], object]
    costs: Callable[[Path], Costs]


def perflogs(folder: Path, size: int) -> None:
    """Write the history of another program, of so many runs."""
    perflogs_of(folder / "perflogs", size)


AXES = {
    "iterations": Growing((10_000, 100_000, 1_000_000), campaign_of, of_iterations),
    **{
        axis: Growing(sizes, partial(two_campaigns, axis=axis), of_campaigns)
        for axis, sizes in (
            ("implementations", (2, 12, 40)), ("cells", (4, 64, 512)), ("rounds", (3, 30, 300)),
        )
    },
    "rounds-of-twelve": Growing(
        (3, 30, 300),
        partial(two_campaigns, axis="rounds", implementations=TWELVE, cells=CELLS_OF_TWELVE),
        of_campaigns,
    ),
    "runs": Growing((40, 2500, 10_000), perflogs, costs_of_foreign),
    "nights": Growing((40, 2500, 10_000), partial(make, cells=CELLS), of_nights),
    "images": Growing((2, 10, 40), checkout_of, of_checks),
}  # fmt: skip


def parsed() -> argparse.Namespace:
    """Return the command line; `axes` are names, each with its sizes."""
    parser = argparse.ArgumentParser(description=__doc__)
    every = " ".join(AXES)
    parser.add_argument("--axes", default=every, help=f"such as rounds=3,30,300; all: {every}")
    parser.add_argument("--repeat", type=int, default=3, help="how often each size is run")
    parser.add_argument(
        "--curves",
        type=Path,
        help="a folder for the seconds and the curves of the axes; those of others stay",
    )
    parser.add_argument(
        "--of",
        nargs=2,
        type=Path,
        metavar=("FIRST", "SECOND"),
        help="two measured campaigns to read instead, in one folder",
    )
    parser.add_argument("--make", nargs=3, metavar=("AXIS", "SIZE", "FOLDER"),
                        help=argparse.SUPPRESS)  # fmt: skip
    options = parser.parse_args()
    asked = [word.partition("=") for word in options.axes.split()]
    if unknown := [name for name, _, _ in asked if name not in AXES]:
        parser.error(f"there is no axis {unknown[0]}; there are {', '.join(AXES)}")
    try:
        options.axes = {
            name: sorted({int(float(one)) for one in sizes.split(",")}) if sizes
            else list(AXES[name].sizes)
            for name, _, sizes in asked
        }  # fmt: skip
    except ValueError as error:
        parser.error(f"the sizes of an axis are numbers: {error}")
    if few := [name for name, sizes in options.axes.items() if len(sizes) < 3]:
        parser.error(f"{few[0]} needs three sizes: the smallest stands for a start")
    if options.repeat < 1:
        parser.error("each size is run once at least")
    return options


def measured(axis: str, size: int, folder: Path, repeat: int) -> dict[str, list[Cost]]:
    """Return what each command costs at a size, so often."""
    root = folder / f"{axis}-{size}"
    root.mkdir()
    # In a process of its own: what this one has taken would count as a command's.
    subprocess.run(
        [sys.executable, "-m", "tests.analysis.growth_benchmark", "--make", axis, str(size), root],
        check=True,
    )
    found = defaultdict(list)
    for _ in range(repeat):
        for name, cost in AXES[axis].costs(root).items():
            found[name].append(cost)
    shutil.rmtree(root)
    return dict(found)


HEADER = (
    "| axis | size | command | wall (s) | processors (s) | memory (MB) | exponent (95% interval) "
    "| largest in 60 s of processors and 8 GB |\n|---|---|---|---|---|---|---|---|"
)


def print_row(axis: str, size: int, name: str, costs: list[Cost], *told: str) -> None:
    """Print the Markdown row of a command at a size: its median repetition, its most memory."""
    cost = sorted(costs, key=lambda one: one.cpu_s)[len(costs) // 2]
    memory = max(one.memory_bytes for one in costs)
    more = " | ".join(told or ("–", "–"))
    print(
        f"| {axis} | {size:,} | `{name}` | {cost.wall_s:.1f} | {cost.cpu_s:.1f} | "
        f"{memory / 1e6:,.0f} | {more} |", flush=True,
    )  # fmt: skip


def in_words(power: Mean) -> str:
    """Return an exponent with its interval, if there is one."""
    if not power.interval:
        return f"{power.value:.2f}"
    return f"{power.value:.2f} ({power.interval.low:.2f} – {power.interval.high:.2f})"


def grown(axis: str, sizes: list[int], repeat: int, curves: Path | None) -> list[str]:
    """Print a row for each size and command; return what grows too fast."""
    found: dict[str, dict[int, list[Cost]]] = defaultdict(dict)
    beyond = []
    with tempfile.TemporaryDirectory(prefix="wyeast-growth-") as temporary:
        for size in sizes:
            for name, costs in measured(axis, size, Path(temporary), repeat).items():
                found[name][size] = costs
                told: tuple[str, ...] = ()
                if size == sizes[-1]:
                    power = growth(
                        found[name][sizes[-2]], costs,
                        (size - sizes[0]) / (sizes[-2] - sizes[0]),
                        start_of(found[name]).cpu_s,
                    )  # fmt: skip
                    largest = largest_within(found[name], power.value, PATIENCE_S, ROOM_BYTES)
                    told = (
                        in_words(power),
                        f"{float(f'{largest:.2g}'):,.0f}",
                    )
                    if power.value > MOST_EXPONENT * POWER_OF_WORK.get((axis, name), 1):
                        beyond.append(f"{name} over {axis}: an exponent of {power.value:.2f}")
                print_row(axis, size, name, costs, *told)
                memory = max(one.memory_bytes for one in costs)
                if memory > MOST_MEMORY_BYTES:
                    beyond.append(f"{name} of {size:,} {axis}: {memory / 1e9:.1f} GB")
    if curves:
        seconds = {
            name: {size: [one.cpu_s for one in costs] for size, costs in of.items()}
            for name, of in found.items()
        }
        drawn.keep(curves, axis, seconds)
    return beyond


def own_times(campaign: Path) -> list[str]:
    """Return by how much a campaign's first and its last rounds took longer than their launches."""
    records, rounds = list(read_records(campaign)), read_manifest(campaign).rounds_done
    sentences = []
    for part in filter(None, (rounds[:OWN_ROUNDS], rounds[-OWN_ROUNDS:])):
        numbers = [one.round for one in part]
        of = [record.wall_s or 0.0 for record in records if record.round in numbers]
        own = (sum(one.wall_s for one in part) - sum(of)) / max(len(of), 1)
        sentences.append(
            f"rounds {min(numbers)} to {max(numbers)}: {len(of)} launches, the campaign's own time "
            f"{own:.3f} s a launch"
        )
    return sentences


def of_measured(first: Path, second: Path) -> list[str]:
    """Print what commands take of measured campaigns, and their own time; return what is beyond."""
    beyond = []
    launches = sum(1 for _ in read_records(first))
    with tempfile.TemporaryDirectory(prefix="wyeast-growth-") as temporary:
        found = costs_of_pair(first.absolute(), second.absolute(), Path(temporary))
    for name, cost in found.items():
        print_row("launches", launches, name, [cost])
        if cost.memory_bytes > MOST_MEMORY_BYTES:
            beyond.append(f"{name}: {cost.memory_bytes / 1e9:.1f} GB")
    for sentence in own_times(first):
        print(sentence, flush=True)
    return beyond


def main() -> None:
    """Print the table; exit with 1 where an exponent or the memory is above its bound."""
    options = parsed()
    if options.make:
        axis, size, folder = options.make
        AXES[axis].write(Path(folder), int(size))
        return
    os.environ["PYTHONPATH"] = str(PROJECT)
    print(HEADER)
    beyond = []
    if options.of:
        beyond += of_measured(*options.of)
    else:
        for axis, sizes in options.axes.items():
            beyond += grown(axis, sizes, options.repeat, options.curves)
    if beyond:
        raise SystemExit(
            f"above an exponent of {MOST_EXPONENT:g} or {MOST_MEMORY_BYTES / 1e9:g} GB: "
            + "; ".join(beyond)
        )


if __name__ == "__main__":
    main()
