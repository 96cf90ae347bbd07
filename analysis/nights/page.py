"""All nights on one page: a line for each series, what changed and when, the verdicts of nights.

The page lies beside the campaigns and leads into their folders. A file of more than five million
bytes no browser shows with ease: then the series that never changed are left out, the shortest
first, and the page says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from urllib.parse import quote

import numpy as np
import polars as pl
from markupsafe import Markup

from analysis.comparison.metrics import metrics
from analysis.figures.spark import PARTS, Mark, spark
from analysis.history.series import Series, what_changed
from analysis.history.tables import better_or_worse, chance_words
from analysis.nights.summary import VERDICTS
from analysis.tables.pages import page_environment
from analysis.tables.units import prefixed
from records.base import CampaignError
from records.campaign import is_imported
from records.causes import harmless
from records.counting import how_many
from records.files import read_json, write_whole
from records.manifest import read_manifest

NAME = "history.html"
#: What the file may have, in bytes, and what of it is left for all but the series.
MOST_BYTES, REST_BYTES = 5_000_000, 500_000
#: How many nights and changes are listed, the newest first, and among how many campaigns nights
#: are looked for.
MOST_NIGHTS, MOST_CHANGES, MOST_LOOKED = 14, 300, 400
#: How many changes are not folded: those of the last nights are what is looked for.
MOST_OPEN = 20


@dataclass(frozen=True)
class CampaignPages:
    """A campaign's folder and the pages in it, as addresses from the page; empty without one."""

    name: str
    report: str
    night: str


@dataclass(frozen=True)
class ChangeRow:
    """A change of level: `why` is what else differs between the campaigns around it."""

    series: Series
    words: str
    chance: str
    is_better: bool
    before: CampaignPages
    since: CampaignPages
    why: Sequence[str]


@dataclass(frozen=True)
class SeriesRow:
    """A series as it is shown."""

    series: Series
    drawing: Markup
    median: str
    change: str
    last: CampaignPages

    @property
    def characters(self) -> int:
        """Return about how many bytes its row takes."""
        named = len(self.series.cell) + len(self.last.name) * 3 + len(self.change)
        return len(self.drawing) + 2 * named + 500


@dataclass(frozen=True)
class NightRow:
    """A night and its verdict in words."""

    place: CampaignPages
    site: str
    verdict: str
    is_bad: bool


def write_page(
    runs: Path, series: Sequence[Series], measured: Mapping[str, str], out: Path,
    site: str | None = None,
) -> None:  # fmt: skip
    """Write the page of some series of the campaigns of runs/; raises OSError."""
    write_whole(out, page(runs, series, measured, out.parent, site))


def sites_of(frame: pl.DataFrame) -> dict[str, str]:
    """Return the site of each campaign that rows of a history are of."""
    every = frame.select(pl.col("folder", "site").cast(pl.String)).unique()
    return dict(every.iter_rows())


def page(
    runs: Path, series: Sequence[Series], measured: Mapping[str, str], beside: Path,
    site: str | None = None,
) -> str:  # fmt: skip
    """Return the page, with addresses from a file in the folder `beside`; nights of a `site`.

    `measured` has the site of each campaign of which launches count, whether one of these series
    is of it or not.
    """
    lead = "" if beside.resolve() == runs.resolve() else f"{runs.resolve().as_uri()}/"
    place = cache(lambda name: place_of(runs, name, lead))
    changed = sorted(
        ((one, change) for one in series for change in one.changes),
        key=lambda found: found[1].since, reverse=True,
    )  # fmt: skip
    known: dict[tuple[str, str, str], list[str]] = {}
    changes = []
    for one, change in changed[:MOST_CHANGES]:
        key = (change.before, change.since, one.implementation)
        if key not in known:
            known[key] = list(map(harmless, what_changed(runs, change, one.implementation)))
        changes.append(
            ChangeRow(
                one, better_or_worse(change.ratio), chance_words(change), change.ratio > 1,
                place(change.before), place(change.since), known[key],
            )
        )  # fmt: skip
    rows, room = [], MOST_BYTES - REST_BYTES
    for one in sorted(series, key=lambda one: (not one.changes, -len(one.levels))):
        row = series_row(one, place(one.campaigns[-1]))
        room -= row.characters
        if room < 0:
            break
        rows.append(row)
    choices = {
        "site": sorted({one.site for one in series}),
        "experiment": sorted({one.experiment for one in series}),
        "implementation": sorted({one.implementation for one in series}),
    }
    numbers = {by: {name: at for at, name in enumerate(names)} for by, names in choices.items()}
    every = sorted(set(pl.concat([one.campaigns.cast(pl.String) for one in series])))
    return page_environment(__file__).get_template("history.html").render(
        rows=rows, changes=changes, left_changes=len(changed) - len(changes),
        left_series=len(series) - len(rows), nights=nights_in(runs, measured, site, place),
        choices=choices, number=lambda by, name: numbers[by].get(name, -1),
        campaigns=len(every), first=every[0][:8], last=every[-1][:8], series=len(series),
        short=sum(not one.can_show for one in series),
        unproven=any(one.unproven for one in series), parts=PARTS, most_open=MOST_OPEN,
    )  # fmt: skip


def place_of(runs: Path, name: str, lead: str) -> CampaignPages:
    """Return where a campaign's pages are, as far as they are there."""
    found = {
        file: f"{lead}{quote(name)}/{file}" if (runs / name / file).is_file() else ""
        for file in ("report.html", "night.md")
    }
    return CampaignPages(name, found["report.html"], found["night.md"])


def series_row(one: Series, last: CampaignPages) -> SeriesRow:
    """Return the row of a series."""
    unit = str(metrics()[one.experiment]["unit"])
    sign = 1 if metrics()[one.experiment]["better"] == "higher" else -1
    marks = [Mark(change.place, change.ratio > 1) for change in one.changes]
    values = np.exp(one.levels)
    ends = [prefixed(float(end), unit) for end in (values.min(), values.max())]
    first, last_one = one.campaigns[0][:8], one.campaigns[-1][:8]
    label = (
        f"{how_many(len(one.levels), 'campaign')}, {first} to {last_one}: "
        f"{ends[0]} to {ends[1]}; {'lower' if sign < 0 else 'higher'} is better"
    )
    newest = one.changes[-1] if one.changes else None
    change = (
        f"{better_or_worse(newest.ratio)} from {newest.since[:8]}" if newest
        else "none shown" if one.can_show else "too few to judge"
    )  # fmt: skip
    return SeriesRow(one, spark(one.levels, marks, label), prefixed(one.median, unit), change, last)


def nights_in(
    runs: Path, measured: Mapping[str, str], site: str | None,
    place: Callable[[str], CampaignPages],
) -> list[NightRow]:  # fmt: skip
    """Return the newest nights with their verdicts; one whose file is damaged has none.

    A campaign whose manifest cannot be read is among them: it may be a night.

    A night of which no launch counts has no series, and is shown for that. One that is not
    finished has no verdict yet; with a later one at its site it was interrupted.
    """
    found: list[NightRow] = []
    folders = {path.parent.name for path in runs.glob("*/manifest.json")}
    later: set[str] = set()
    # The names begin with the time.
    for name in sorted(folders | set(measured), reverse=True)[:MOST_LOOKED]:
        if len(found) == MOST_NIGHTS:
            break
        told = night_of(runs / name)
        of_site = measured.get(name) or (told.site if told else "")
        is_unfinished = False
        if (runs / name / "night.json").is_file():
            verdict, words = verdict_in(runs / name / "night.json")
        elif told is None and not is_imported(runs / name):
            verdict, words = "damaged", "Its manifest cannot be read: it may be a night."
        elif told is None or not told.is_night:
            continue
        elif is_unfinished := not told.is_finished:
            verdict = "broken" if told.site in later else "unfinished"
            words = ("It was interrupted before it was finished." if told.site in later
                     else "It is not finished yet.")  # fmt: skip
        else:
            verdict, words = "broken", "It was not judged."
        if name not in measured and not is_unfinished:
            verdict, words = "broken", f"No launch of it counts. {words}"
        later.add(of_site)
        # What has no manifest has the site in its name, which may have more parts.
        if site is not None and (of_site != site if of_site else f"-{site}-" not in name):
            continue
        bad = verdict in ("regression", "incomplete", "damaged", "broken")
        found.append(NightRow(place(name), of_site, words, bad))
    return found


def verdict_in(path: Path) -> tuple[str, str]:
    """Return the verdict of a night's file, and its sentence."""
    try:
        verdict = read_json(path)["verdict"]
        return verdict, VERDICTS[verdict]
    except (OSError, ValueError, TypeError, KeyError):
        return "damaged", "Its night.json cannot be read."


@dataclass(frozen=True)
class ToldNight:
    """What a manifest says: whether it is a night of this machine, and no repetition of one."""

    site: str
    is_night: bool
    is_finished: bool


def night_of(folder: Path) -> ToldNight | None:
    """Return what a campaign's manifest says of a night, None if it cannot be read."""
    try:
        manifest = read_manifest(folder)
    except CampaignError:
        return None
    is_night = manifest.night is not None and manifest.night.again_of is None
    finished = manifest.finished_utc is not None
    return ToldNight(manifest.site, is_night and not is_imported(folder), finished)
