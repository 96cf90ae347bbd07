"""What all campaigns of runs/ measured, in one file that each reading brings up to date.

For a campaign that is not in the file, its rows are read from where its end wrote them
(campaign_rows.py). Its launches are read again when they are newer than its rows; `--rebuild` reads
everything. The file can be deleted or damaged at any time: what does not match is rebuilt.
"""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Callable, Iterable
from pathlib import Path

import polars as pl

from analysis.history.campaign_rows import (
    KEPT_EVERY,
    ROWS,
    as_stamped,
    kept_as_stamped,
    metrics_digest,
    of_folders,
    stamp_of,
    summarise,
)
from records.base import CampaignError
from records.files import write_whole

FILE = ".history.index"


def index_of(runs: Path) -> Path:
    """Return this user's file for the rows of all campaigns, which is separate from root's."""
    others = runs.is_dir() and runs.stat().st_uid != os.geteuid() and os.access(runs, os.W_OK)
    return runs / (f"{FILE}.{os.geteuid()}" if others else FILE)


def read_index(path: Path) -> tuple[pl.DataFrame, str | None]:
    """Return the kept rows, and a sentence if the file is damaged; empty if there is none."""
    empty = pl.DataFrame(schema=ROWS)
    try:
        # Root trusts only its own files.
        if os.geteuid() == 0 and path.lstat().st_uid:
            return empty, None
        content = path.read_bytes()
    except FileNotFoundError:
        return empty, None
    except OSError as error:
        return empty, f"{path} cannot be read ({error.strerror}) and is rebuilt"
    digest, _, body = content.partition(b"\n")
    if digest.decode(errors="replace") != hashlib.sha256(body).hexdigest():
        return empty, f"{path} is damaged and is rebuilt"
    frame = pl.read_parquet(io.BytesIO(body))
    return (frame, None) if frame.schema == ROWS else (empty, None)


def write_index(path: Path, frame: pl.DataFrame) -> str | None:
    """Replace the file in one step; return a sentence if that cannot be done."""
    buffer = io.BytesIO()
    frame.write_parquet(buffer)
    body = buffer.getvalue()
    try:
        write_whole(path, hashlib.sha256(body).hexdigest().encode() + b"\n" + body)
    except OSError as error:
        return (
            f"{path} cannot be written ({error.strerror}): the next history will take "
            "as long as this one"
        )
    return None


def campaign_folders(runs: Path) -> Iterable[Path]:
    """Return the folders of runs/ that are not hidden."""
    return sorted(
        Path(entry.path)
        for entry in os.scandir(runs)
        if entry.is_dir() and not entry.name.startswith(".")
    )


def history_rows(runs: Path, say: Callable[[str], None], rebuild: bool = False) -> pl.DataFrame:
    """Return the rows of all campaigns, in order of time; `say` gets what is wrong.

    Raises CampaignError where runs/ cannot be read.
    """
    path = index_of(runs)
    kept, damaged = read_index(path)
    if damaged:
        say(damaged)
    try:
        folders = campaign_folders(runs)
        # Another user's folder may have any name, and tables hold text alone.
        strange = [folder.name for folder in folders if not folder.name.isprintable()]
        digest = metrics_digest()
        stamps = {
            folder.name: stamp_of(folder, digest)
            for folder in folders if folder.name not in strange
        }  # fmt: skip
    except OSError as error:
        raise CampaignError(f"{runs} cannot be read: {error.strerror}") from None
    for name in strange:
        say(f"left out: {name!a}: its name is not plain text")
    frame = kept.clear() if rebuild else as_stamped(kept, stamps)
    known = set(of_folders(frame, "folder")["folder"])
    missing = [name for name in stamps if name not in known]
    unkept: str | None = None
    if missing and not rebuild:
        beside = kept_as_stamped(runs, {name: stamps[name] for name in missing})
        frame = pl.concat([frame, beside]) if beside.height else frame
        known |= set(beside["folder"].unique())
        missing = [name for name in missing if name not in known]
    for start in range(0, len(missing), KEPT_EVERY):
        rows = [
            {"folder": name, "stamp": stamps[name], **row}
            for name in missing[start : start + KEPT_EVERY]
            for row in summarise(runs / name, stamps[name])
        ]
        frame = pl.concat([frame, pl.DataFrame(rows, ROWS)])
        unkept = write_index(path, frame)
    if not missing and frame is not kept:
        unkept = write_index(path, frame)
    if unkept:
        say(unkept)
    for folder, sentence in frame.filter(pl.col("sentence").is_not_null()).select(
        "folder", "sentence"
    ).iter_rows():  # fmt: skip
        say(f"left out: {folder}: {sentence}")
    return without_copies(frame.drop("stamp", "sentence"), say)


def without_copies(frame: pl.DataFrame, say: Callable[[str], None]) -> pl.DataFrame:
    """Return the rows of cells, in order of time.

    Folders with a copy of another folder's campaign are left out.
    """
    of_each = of_folders(frame, "campaign", "folder", "created_utc").cast(pl.String)
    folders = of_each.drop_nulls("campaign").sort("campaign", "folder")
    first = folders.group_by("campaign", maintain_order=True).first()
    for campaign, folder, _ in folders.join(first, on=["campaign", "folder"], how="anti").rows():
        say(f"left out: {folder}: a copy of {campaign}")
    # Folders are sorted, of which there are hundreds of times fewer than rows.
    order = first.sort("created_utc", "folder").select("folder").with_row_index("place")
    found = frame.filter(pl.col("cell").is_not_null()).join(
        order.cast({"folder": pl.Categorical()}), on="folder", how="inner", maintain_order="left"
    )
    if not found["place"].is_sorted():
        found = found.sort("place", maintain_order=True)
    return found.drop("place")
