"""The history for other watchers: Apache Otava's CSV, and annotations for Grafana."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path

import numpy as np
import polars as pl
import yaml

from analysis.comparison.metrics import direction, metrics
from analysis.history.campaign_rows import of_folders
from analysis.history.series import Series, what_changed
from analysis.history.tables import better_or_worse
from analysis.tables.csv import csv_text
from analysis.tables.table import Column, Row, Table, file_name
from records.causes import harmless


def times_of(frame: pl.DataFrame) -> dict[str, str]:
    """Return when each campaign of a history was begun, by its folder."""
    return dict(of_folders(frame, "folder", "created_utc").cast(pl.String).iter_rows())


def named(series: Sequence[Series]) -> dict[str, Series]:
    """Return the series by names that files can have; of equal ones the later have a number."""
    found: dict[str, Series] = {}
    for one in series:
        parts = (one.site, one.tier, one.implementation, one.cell, one.clock, one.sizes)
        stem = file_name(" ".join(parts))[:150]
        name, number = stem, 1
        while name in found:
            number += 1
            name = f"{stem}-{number}"
        found[name] = one
    return found


def otava(series: Sequence[Series], times: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Return Otava's files by name: a CSV for each series, and otava.yaml, which names them.

    The configuration names the files as they lie in `folder`. A value is a campaign's median, in
    the metric's unit.
    """
    files: dict[str, str] = {}
    tests: dict[str, object] = {}
    for name, one in named(series).items():
        about = metrics()[one.experiment]
        rows = [
            Row((times[campaign], campaign, level))
            for campaign, level in zip(one.campaigns, np.exp(one.levels).tolist(), strict=True)
        ]
        columns = tuple(Column(head) for head in ("time", "campaign", "value"))
        files[f"{name}.csv"] = csv_text(Table(name, name, columns, rows))
        tests[name] = {
            "type": "csv", "file": str(folder / f"{name}.csv"), "time_column": "time",
            "attributes": ["campaign"],
            "metrics": {
                f"{about['metric']} ({about['unit']})": {
                    "column": "value", "direction": direction(one.experiment),
                },
            },
        }  # fmt: skip
    files["otava.yaml"] = yaml.safe_dump({"tests": tests}, sort_keys=False)
    return files


def grafana(runs: Path, series: Sequence[Series], times: Mapping[str, str]) -> str:
    """Return the changes of level as Grafana's annotations in JSON, the first one first.

    Each is an object as its API takes it (`POST /api/annotations`): the time in ms since the epoch,
    tags to filter by, and what changed.
    """
    found = []
    for one in series:
        for change in one.changes:
            also = what_changed(runs, change, one.implementation)
            found.append({
                "time": round(datetime.fromisoformat(times[change.since]).timestamp() * 1000),
                "tags": ["wyeast", one.site, one.experiment, one.implementation,
                         "better" if change.ratio > 1 else "worse"],
                "text": harmless(
                    f"{one.cell}, {one.implementation} ({one.site} {one.tier}): "
                    f"{better_or_worse(change.ratio)} from {change.since} on; changed: "
                    f"{', '.join(also) if also else 'nothing that the manifests record'}"
                ),
            })  # fmt: skip
    return json.dumps(sorted(found, key=lambda one: one["time"]), indent=1) + "\n"
