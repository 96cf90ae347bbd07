"""`python -m tests.analysis.nights_benchmark`: what many nights cost those who look back at them.

Nights that nobody measured are written into a temporary folder: of the last one the launches, of
the others the rows that a night leaves for the history. Each command is a process of its own. The
exponent is that of the processor's time over the nights, between two sizes and without what a
command takes for the fewest nights; one above 1.2 fails, as does one above the memory asked for.
docs/performance.md has a table of a run.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np

from tests.analysis.support.costs import MOST_EXPONENT, Cost, cost_of, exponent

PROJECT = Path(__file__).resolve().parents[2]
#: Two implementations of 13 operations each.
SERIES_OF_A_CELL = 26
FEWEST, KEEP_NIGHTS = 40, 30
MOST_MEMORY_BYTES = 2e9
RETENTION = """
import sys
from pathlib import Path
from campaign import retention
found = retention.plan(Path(sys.argv[1]), "local", int(sys.argv[2]))
assert not found.removals, found
"""


def make(root: Path, nights: int, cells: int) -> Path:
    """Write so many nights below a folder, and return the last one."""
    import polars as pl

    from analysis.history.index import COLUMNS, KEPT, rows_of, stamp_of
    from analysis.simulation.history import NOISE, write_campaign
    from records.campaign import read_campaign

    runs = root / "runs"
    site = root / "site_configs" / "local"
    site.mkdir(parents=True)
    (site / "site.yaml").write_text("description: made up\n")
    last = write_campaign(runs, nights, False, cells, "nightly")
    whole = json.loads((last / "manifest.json").read_text()) | {"night": {"broken": {}}}
    (last / "manifest.json").write_text(json.dumps(whole))
    campaign = read_campaign(last)
    frame = pl.DataFrame(rows_of(campaign), COLUMNS)
    ended = datetime.fromisoformat(campaign.manifest.created_utc)
    random = np.random.default_rng(nights)
    for back in range(1, nights):
        created = ended - timedelta(days=back)
        folder = runs / f"{created:%Y%m%dT%H%M%SZ}-local-nightly"
        (folder / "tables").mkdir(parents=True)
        facts = {"campaign": folder.name, "created_utc": created.isoformat()}
        removed = {"raw_removed_utc": created.isoformat()} if back >= KEEP_NIGHTS else {}
        (folder / "manifest.json").write_text(json.dumps(whole | facts | removed))
        (folder / "night.json").write_text('{"verdict": "nothing"}')
        if not removed:
            (folder / "launches").mkdir()
        level = pl.col("level") + NOISE * random.standard_normal(frame.height)
        stamp = {"stamp": stamp_of(folder)}
        literals = {name: pl.lit(value) for name, value in (facts | stamp).items()}
        frame.with_columns(level=level, **literals).write_parquet(folder / KEPT)
    return last


def costs(root: Path, last: Path) -> dict[str, Cost]:
    """Return what each command takes."""
    runs = ("--runs", str(last.parent))
    history = ("-m", "analysis", "history", *runs, "--most", "3")
    return {
        "history, no index": cost_of(*history),
        "history": cost_of(*history),
        "regress": cost_of(
            "-m", "analysis", "regress", str(last), "--against", "history", *runs,
            allowed=(0, 1, 3, 5),
        ),
        "night": cost_of("-m", "analysis", "night", str(last), *runs, allowed=(0, 3, 4, 6, 7)),
        "retention": cost_of("-c", RETENTION, str(root), str(KEEP_NIGHTS)),
    }  # fmt: skip


def main() -> None:
    """Print a Markdown row for each number of nights and command; exit with 1 above the bounds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nights", default="2500,10000", help="how many, with commas")
    parser.add_argument("--series", type=int, default=390, help="how many each night has, about")
    parser.add_argument("--make", nargs=2, metavar=("FOLDER", "NIGHTS"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    cells = max(1, round(options.series / SERIES_OF_A_CELL))
    if options.make:
        print(make(Path(options.make[0]), int(options.make[1]), cells))
        return
    os.environ["PYTHONPATH"] = str(PROJECT)
    print(
        "| nights | series | command | wall (s) | processors (s) | memory (MB) | exponent |\n"
        "|---|---|---|---|---|---|---|"
    )
    before: dict[str, Cost] = {}
    least: dict[str, Cost] = {}
    count, beyond = 0, []
    for nights in (FEWEST, *(round(float(text)) for text in options.nights.split(","))):
        with tempfile.TemporaryDirectory(prefix="wyeast-nights-") as temporary:
            # In a process of its own: what this one has taken would count as a command's.
            made = subprocess.run(
                [sys.executable, "-m", "tests.analysis.nights_benchmark", "--series",
                 str(options.series), "--make", temporary, str(nights)],
                check=True, stdout=subprocess.PIPE, text=True,
            )  # fmt: skip
            found = costs(Path(temporary), Path(made.stdout.strip()))
        for name, cost in found.items():
            power = None
            if name in before and before[name] is not least[name]:
                power = exponent(before[name], cost, nights / count, least[name].cpu_s)
            told = "–" if power is None else f"{power:.2f}"
            if (power or 0) > MOST_EXPONENT or cost.memory_bytes > MOST_MEMORY_BYTES:
                beyond.append(f"{name} at {nights:,} nights")
            print(
                f"| {nights:,} | {cells * SERIES_OF_A_CELL} | `{name}` | {cost.wall_s:.1f} | "
                f"{cost.cpu_s:.1f} | {cost.memory_bytes / 1e6:,.0f} | {told} |", flush=True,
            )  # fmt: skip
        least = least or found
        before, count = found, nights
    if beyond:
        raise SystemExit(
            f"an exponent above {MOST_EXPONENT:g} or more than {MOST_MEMORY_BYTES / 1e9:g} GB: "
            + ", ".join(beyond)
        )


if __name__ == "__main__":
    main()
