"""A campaign's rows in a history: each is its median of one cell and implementation.

A campaign's end writes them next to its tables, where a history that does not have them yet reads
them. They count as long as the campaign's manifest and the list of its launches are as they were,
which their stamp says; a change within a launch's folder, which nothing here makes, is noticed by
`make audit` alone, and so is one of the rows themselves.
"""

from __future__ import annotations

import io
import math
import os
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from analysis.comparison.cells import measured_cells
from records.acting_user import owner_of, rights_of_owner
from records.base import CampaignError
from records.campaign import Campaign, is_imported, read_campaign
from records.experiments import DIGITS, compared, experiments
from records.files import belongs_to_us, write_whole
from records.kept import FOLDERS, pack_files
from records.launch import Launch
from records.manifest import Manifest, read_manifest
from records.proof import proof_of

#: The file of a campaign that keeps its rows, even when its raw output is removed.
KEPT = "tables/history.parquet"
#: Changed whenever the rows of an unchanged campaign would change: part of every stamp.
VERSION = 7
#: The versions whose kept rows are still right. Those of version 2 differ where sizes were added to
#: the requested ones (`--refine`): their sizes make them a separate series. Until 3 they had no
#: clock, until 4 no doubts, until 5 no `more_ranks`, until 6 no `launch_cell`.
READABLE = (2, 3, 4, 5, 6, VERSION)
#: The digest of the metrics in older stamps, when it was that of a whole file, and today's.
EARLIER = {"3bc2da492600": "f08709e85c56fd7ee622d9e1c86742872cc6f89dc5afb5d4119f4aeb"}
#: The doubts of rows whose raw output was removed before doubts were recorded.
NEVER_LOOKED = "unproven: raw output removed"
#: How often a first reading of many campaigns is saved, so that little is lost if it is stopped.
KEPT_EVERY = 500

#: `launch_cell` is the cell of the launches: without the series, of which a cell is one (null where
#: the raw output was removed before this was recorded); `level` is the median over launches of the
#: mean logarithm over message sizes, in the metric's unit; `deviation` that of the launches (null
#: of one); `more_ranks` is whether there are more than processors, `oversubscribed` whether they
#: waited for these too long; `doubts` say in few words why the campaign was not proven when its
#: rows were made (records.proof), null where it was. A campaign without such a row has one without
#: a cell, and with a sentence where something is wrong with it.
COLUMNS: dict[str, Any] = {
    "folder": pl.String, "stamp": pl.String, "sentence": pl.String, "campaign": pl.String,
    "created_utc": pl.String, "site": pl.String, "tier": pl.String, "experiment": pl.String,
    "cell": pl.String, "launch_cell": pl.String, "implementation": pl.String, "nodes": pl.Int64,
    "more_ranks": pl.Boolean, "oversubscribed": pl.Boolean, "sizes": pl.String,
    "clock": pl.String, "launches": pl.Int64, "level": pl.Float64, "deviation": pl.Float64,
    "doubts": pl.String,
}  # fmt: skip
#: What a history has of them in memory and in its file: of text, of which most rows have the same,
#: a number for each word.
ROWS = pl.Schema({
    name: pl.Categorical() if kind == pl.String else kind for name, kind in COLUMNS.items()
    if name not in ("launches", "deviation")
})  # fmt: skip


def stamp_of(folder: Path, digest: str | None = None) -> str:
    """Return what changes when a campaign does: times of its manifest and of its launches.

    `digest` is that of the metrics, where the caller knows it.
    """
    parts = [str(VERSION), digest or metrics_digest()]
    places = [folder / FOLDERS, *pack_files(folder)]
    for path in (folder / "manifest.json", *places):
        try:
            status = os.stat(path)
            parts.append(f"{status.st_mtime_ns}:{status.st_size}")
        except OSError:
            parts.append("none")
    return " ".join(parts)


def metrics_digest() -> str:
    """Return a digest of how launches' values are obtained, with a part for each experiment."""
    return "".join(one.digest for one in compared().values())


def is_of_today(stamp: str, experiment: str | None) -> bool:
    """Return whether an experiment's rows with this stamp would be the same today."""
    version, digests = stamp.split()[:2]
    digests = EARLIER.get(digests, digests)
    then = {digests[at : at + DIGITS] for at in range(0, len(digests), DIGITS)}
    one = compared().get(experiment or "")
    return int(version) in READABLE and (not experiment or (one is not None and one.digest in then))


def rows_of(campaign: Campaign) -> list[dict[str, Any]]:
    """Return the rows of a campaign."""
    manifest = campaign.manifest
    common: dict[str, Any] = {
        "campaign": manifest.campaign, "site": manifest.site, "tier": manifest.tier,
        "created_utc": datetime.fromisoformat(manifest.created_utc).isoformat(),
        "doubts": proof_of(campaign).words,
    }  # fmt: skip
    rows = []
    for cell in measured_cells(campaign):
        for implementation, launches in cell.values.items():
            sizes = sorted(set.intersection(*(set(values) for values in launches.values())))
            if not sizes:
                continue
            levels = [
                sum(math.log(values[size]) for size in sizes) / len(sizes)
                for values in launches.values()
            ]
            record = cell.launches[implementation].record
            rows.append(common | {
                "experiment": record.experiment, "cell": cell.name,
                "launch_cell": record.cell, "implementation": implementation, "nodes": record.nodes,
                "more_ranks": record.has_more_ranks, "oversubscribed": cell.oversubscribed,
                "sizes": words_of(sizes),
                "clock": clock_of(cell.launches[implementation]), "launches": len(levels),
                "level": float(np.median(levels)),
                "deviation": float(np.std(levels, ddof=1)) if len(levels) > 1 else None,
            })  # fmt: skip
    if rows:
        return rows
    return [common | {"sentence": None if campaign.launches else "it has no readable launch"}]


def clock_of(launch: Launch) -> str:
    """Return what timed a launch; empty if its output does not say."""
    return launch.values.clock or ""


def words_of(sizes: list[int]) -> str:
    """Return a short text for message sizes in bytes that differs if the sizes do."""
    if sizes == [0]:
        return ""
    checksum = zlib.crc32(repr(sizes).encode())
    return f"{len(sizes)} sizes, {sizes[0]} to {sizes[-1]} B, {checksum:08x}"


def keep_rows(campaign: Campaign, stamp: str) -> None:
    """Write a campaign's rows next to its tables; `stamp` is that of its folder before it was read.

    A first reading of many campaigns uses them, and they are all that is left of one whose raw
    output has been removed: for that one nothing is written any more.
    Raises CampaignError if its time cannot be read, and OSError.
    """
    if campaign.manifest.raw_removed_utc:
        return
    measured_again = again_of(campaign.manifest)
    write_kept(campaign.path, measured_again if measured_again else rows_of(campaign), stamp)


def again_of(manifest: Manifest) -> list[dict[str, Any]]:
    """Return the only row for a night's repetition: chosen for being slow, it is not history.

    Other campaigns have no such row.
    """
    if manifest.night and manifest.night.again_of:
        return [{"campaign": manifest.campaign}]
    return []


def write_kept(folder: Path, rows: list[dict[str, Any]], stamp: str) -> None:
    """Write a campaign's rows next to its tables in one step; raises OSError."""
    path = folder / KEPT
    path.parent.mkdir(exist_ok=True)
    buffer = io.BytesIO()
    pl.DataFrame([row | {"stamp": stamp} for row in rows], COLUMNS).write_parquet(buffer)
    write_whole(path, buffer.getvalue())


def read_kept(paths: list[Path]) -> pl.DataFrame:
    """Return the rows of many such files, with their campaigns' folders, except damaged files."""
    empty = pl.DataFrame(schema=ROWS)
    if not paths:
        return empty
    try:
        frame = pl.read_parquet(paths, glob=False, include_file_paths="file")
    except (OSError, pl.exceptions.PolarsError):
        # One unreadable file spoils the whole list, so its halves are tried.
        if len(paths) == 1:
            return empty
        middle = len(paths) // 2
        return pl.concat([read_kept(paths[:middle]), read_kept(paths[middle:])])
    if frame.drop("file").schema != pl.Schema(COLUMNS):
        return empty
    folders = pl.DataFrame({
        "file": [str(path) for path in paths], "folder": [path.parents[1].name for path in paths],
    })  # fmt: skip
    # A join takes a tenth of the time of replacing by a dictionary.
    named = frame.drop("folder").join(folders, on="file", how="inner", maintain_order="left")
    return named.select(ROWS.keys()).cast(ROWS)


def kept_as_stamped(runs: Path, stamps: dict[str, str]) -> pl.DataFrame:
    """Return the rows that are kept next to campaigns' tables and still match their content.

    Those of a campaign that was copied, resumed or changed have another stamp.
    """
    # Root opens another user's one by one, with their owner's rights (`summarise`).
    passed_over = {name for name in stamps if os.geteuid() == 0 and owner_of(runs / name)}
    paths = [
        runs / name / KEPT for name in stamps
        if name not in passed_over and not is_imported(runs / name)
    ]  # fmt: skip
    there = [path for path in paths if path.is_file()]
    # In parts: text that is not yet numbers takes several times the memory.
    parts = [read_kept(there[at : at + KEPT_EVERY]) for at in range(0, len(there), KEPT_EVERY)]
    return as_stamped(pl.concat([pl.DataFrame(schema=ROWS), *parts]), stamps)


def as_stamped(frame: pl.DataFrame, stamps: dict[str, str]) -> pl.DataFrame:
    """Return the rows of the folders whose rows all have today's stamp."""
    found = of_folders(frame, "folder", "stamp").cast(pl.String).iter_rows()
    other = [folder for folder, stamp in found if stamps.get(folder) != stamp]
    if not other:
        return frame
    return frame.join(categories(folder=other), on="folder", how="anti", maintain_order="left")


def of_folders(frame: pl.DataFrame, *names: str) -> pl.DataFrame:
    """Return the distinct values of rows in some columns, in their order.

    Rows of a folder follow each other and have the same values there, so that nothing is looked up
    for most of them.
    """
    own = pl.col(names)
    begin = frame.select(names).filter(pl.any_horizontal(own.ne_missing(own.shift())))
    return begin.unique(maintain_order=True)


def categories(**columns: Sequence[str]) -> pl.DataFrame:
    """Return text columns in the type that a history uses."""
    return pl.DataFrame(columns, dict.fromkeys(columns, pl.Categorical()))


def kept_rows(folder: Path) -> list[dict[str, Any]]:
    """Return the rows that were kept of a campaign without raw output; raises CampaignError."""
    try:
        rows = pl.read_parquet(folder / KEPT).to_dicts()
    except (OSError, pl.exceptions.PolarsError) as error:
        raise CampaignError(f"{folder / KEPT} cannot be read: {error}") from None
    # The rest of a stamp concerns the raw output.
    if not all(is_of_today(row["stamp"], row["experiment"]) for row in rows):
        raise CampaignError(
            "its raw output was removed by the retention of nights, and the tables kept from it "
            "use metrics other than today's"
        )
    return [
        {
            "clock": experiments()[row["experiment"]].earlier_clock if row["cell"] else None,
            "doubts": NEVER_LOOKED,
            # Nobody measured then whether ranks waited: that there were more was enough.
            "more_ranks": row["oversubscribed"],
            "launch_cell": None,
        }
        | {k: v for k, v in row.items() if k not in ("folder", "stamp")}
        for row in rows
    ]


def are_changed(folder: Path) -> bool:
    """Return whether rows are kept of a campaign, as it is now, that its launches do not give.

    What is kept of an earlier state, or cannot be read, is made anew by who needs it; of a campaign
    without raw output nobody can tell. Raises CampaignError where the campaign cannot be read.
    """
    try:
        kept = pl.read_parquet(folder / KEPT)
    except (OSError, pl.exceptions.PolarsError):
        return False
    stamp = stamp_of(folder)
    is_of_now = kept.schema == pl.Schema(COLUMNS) and set(kept["stamp"]) == {stamp}
    if not is_of_now or read_manifest(folder).raw_removed_utc:
        return False
    campaign = read_campaign(folder)
    rows = again_of(campaign.manifest) or rows_of(campaign)
    given = pl.DataFrame([row | {"stamp": stamp} for row in rows], COLUMNS)
    return len(given) != len(kept) or not all(
        map(is_alike, kept.iter_rows(named=True), given.iter_rows(named=True))
    )


def is_alike(kept: Mapping[str, Any], given: Mapping[str, Any]) -> bool:
    """Return whether rows say the same, whatever libraries computed them; doubts come later."""
    return all(
        math.isclose(value, given[name], rel_tol=1e-9)
        if isinstance(value, float) and isinstance(given[name], float)
        else value == given[name]
        for name, value in kept.items()
        if name != "doubts"
    )


def summarise(folder: Path, stamp: str) -> list[dict[str, Any]]:
    """Return a campaign's rows, or a single one with a sentence on what is wrong with it.

    Rows of its launches are kept next to its tables if that can be written, but never in a
    campaign that is not finished, which may be measuring, nor in another user's; `stamp` is the one
    that the folder had before.
    """
    with suppress(OSError):
        ours = belongs_to_us(folder)
        with rights_of_owner(folder):
            return _summarise(folder, stamp, ours)
    return [{"sentence": f"{folder} cannot be read"}]


def _summarise(folder: Path, stamp: str, ours: bool) -> list[dict[str, Any]]:
    try:
        if not (folder / "manifest.json").exists():
            raise CampaignError(f"{folder} has no manifest.json: not a campaign, or one cut short")
        if is_imported(folder):
            # Another machine's, whose site may have the name of one here.
            return [{}]
        manifest = read_manifest(folder)
        rows = again_of(manifest)
        if not rows and manifest.raw_removed_utc:
            return kept_rows(folder)
        rows = rows or rows_of(read_campaign(folder))
        if ours and manifest.finished_utc and not any(row.get("sentence") for row in rows):
            with suppress(OSError):
                write_kept(folder, rows, stamp)
        return rows
    except (CampaignError, OSError, ValueError, ArithmeticError) as error:
        return [{"sentence": " ".join(str(error).split())}]
