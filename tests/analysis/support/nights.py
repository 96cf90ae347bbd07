"""Nights that nobody measured, and what they cost those who look back at them.

Of the last one there are the launches, of the others the rows that a night leaves for the history.
"""

import json
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import polars as pl

from analysis.history.campaign_rows import COLUMNS, KEPT, rows_of, stamp_of
from analysis.history.index import FILE
from analysis.simulation.history import NOISE, write_campaign
from records.campaign import read_campaign
from tests.analysis.support.costs import Cost, cost_of

KEEP_NIGHTS = 30
#: Of 13 operations and two implementations each: 390 series.
CELLS = 15
RETENTION = """
import sys
from pathlib import Path
from campaign import retention
found = retention.plan(Path(sys.argv[1]), "local", int(sys.argv[2]))
assert not found.removals, found
"""


def make(root: Path, nights: int, cells: int) -> Path:
    """Write so many nights below a folder, and return the last one."""
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


def costs_of_nights(root: Path, last: Path) -> dict[str, Cost]:
    """Return what each command takes."""
    runs = ("--runs", str(last.parent))
    history = ("-m", "analysis", "history", *runs, "--most", "3")
    (last.parent / FILE).unlink(missing_ok=True)
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
