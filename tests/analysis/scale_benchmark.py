"""`python -m tests.analysis.scale_benchmark`: what ingest and report cost over a campaign's size.

A synthetic campaign of each size is written into a temporary folder, then read by the commands that
people use, each in a process of its own. The exponent is that of the processor's time over the
iterations, from one size to the next and without a command's start; one above 1.2 fails.
docs/performance.md has a table of a run.
"""

import argparse
import os
import tempfile
from pathlib import Path

from tests.analysis.support.costs import MOST_EXPONENT, Cost, cost_of, exponent
from tests.analysis.support.synthetic import SIZES, TWICE, Synthetic

PROJECT = Path(__file__).resolve().parents[2]
SAMPLES_OF_A_LAUNCH = 1000


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
    """Print a Markdown row for each size and command; exit with 1 where one grows too fast."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", default="1e5,1e6", help="iterations in all, with commas")
    sizes = [round(float(text)) for text in parser.parse_args().samples.split(",")]
    os.environ["PYTHONPATH"] = str(PROJECT)
    print(
        "| iterations | launches | command | wall (s) | processors (s) | memory (MB) | file (MB) "
        "| exponent |\n|---|---|---|---|---|---|---|---|"
    )
    start_s = cost_of("-m", "analysis", "report", "--help").cpu_s
    before: dict[str, tuple[int, Cost]] = {}
    beyond = []
    for samples in sizes:
        with tempfile.TemporaryDirectory() as temporary:
            path, launches, iterations = campaign_of(samples, Path(temporary))
            for command, made in (
                ("ingest", "tables/iterations.parquet"),
                ("report", "report.html"),
            ):
                cost = cost_of("-m", "analysis", command, str(path))
                size = (path / made).stat().st_size
                told = "–"
                if command in before and before[command][0] != iterations:
                    fewer, less = before[command]
                    power = exponent(less, cost, iterations / fewer, start_s)
                    told = f"{power:.2f}"
                    if power > MOST_EXPONENT:
                        beyond.append(f"{command} of {iterations:,} iterations")
                before[command] = (iterations, cost)
                print(
                    f"| {iterations:,} | {launches:,} | `{command}` | {cost.wall_s:.1f} | "
                    f"{cost.cpu_s:.1f} | {cost.memory_bytes / 1e6:,.0f} | {size / 1e6:.2f} | "
                    f"{told} |",
                    flush=True,
                )
    if beyond:
        raise SystemExit(f"an exponent above {MOST_EXPONENT:g}: {', '.join(beyond)}")


if __name__ == "__main__":
    main()
