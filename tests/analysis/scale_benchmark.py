"""`python -m tests.analysis.scale_benchmark`: what ingest and report cost over a campaign's size.

A synthetic campaign of each size is written into a temporary folder, then read by the commands that
people use, each in a process of its own. docs/performance.md has a table of a run.
"""

import argparse
import os
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from tests.analysis.support.synthetic import SIZES, TWICE, Synthetic

PROJECT = Path(__file__).resolve().parents[2]
SAMPLES_OF_A_LAUNCH = 1000


@dataclass
class Cost:
    """What a command took: seconds on the clock and of processors, the most memory in bytes."""

    wall_s: float
    cpu_s: float
    memory_bytes: int


def cost_of(*words: str) -> Cost:
    """Run a command of the analysis; raise SystemExit with its code where it fails."""
    begun = time.perf_counter()
    child = os.posix_spawn(
        sys.executable, [sys.executable, "-m", "analysis", *words], dict(os.environ),
        file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)],
    )  # fmt: skip
    _, status, usage = os.wait4(child, 0)
    if code := os.waitstatus_to_exitcode(status):
        raise SystemExit(f"analysis {' '.join(words)} ended with {code}")
    seconds = time.perf_counter() - begun
    return Cost(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024)


def campaign_of(samples: int, folder: Path) -> tuple[Path, int, int]:
    """Write a campaign of about so many iterations; return it, its launches and iterations."""
    whole = Synthetic(folder / f"of-{samples}", TWICE)
    launches_of_a_round = len(TWICE) * len(whole.pairs) * len(SIZES)
    whole.rounds = max(1, round(samples / SAMPLES_OF_A_LAUNCH / launches_of_a_round))
    sizes = sum(len(of_range) for of_range in SIZES.values())
    results = whole.rounds * len(TWICE) * len(whole.pairs) * sizes
    whole.iterations = max(1, round(samples / results))
    path = whole.write()
    return path, len(list((path / "launches").iterdir())), results * whole.iterations


def main() -> None:
    """Print a Markdown row for each size and command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", default="1e5,1e6", help="iterations in all, with commas")
    sizes = [round(float(text)) for text in parser.parse_args().samples.split(",")]
    os.environ["PYTHONPATH"] = str(PROJECT)
    print(
        "| iterations | launches | command | wall (s) | processors (s) | memory (MB) | file (MB) |"
    )
    print("|---|---|---|---|---|---|---|")
    for samples in sizes:
        with tempfile.TemporaryDirectory() as temporary:
            path, launches, iterations = campaign_of(samples, Path(temporary))
            for command, made in (
                ("ingest", "tables/iterations.parquet"),
                ("report", "report.html"),
            ):
                cost = cost_of(command, str(path))
                size = (path / made).stat().st_size
                print(
                    f"| {iterations:,} | {launches:,} | `{command}` | {cost.wall_s:.1f} | "
                    f"{cost.cpu_s:.1f} | {cost.memory_bytes / 1e6:,.0f} | {size / 1e6:.2f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
