"""What a person reads when a campaign ends: the answer in a few lines, and where the rest is."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path

from analysis.comparison.caveats.from_outside import from_outside
from analysis.comparison.caveats.image_caveats import image_caveats
from analysis.comparison.caveats.stolen_time import stolen_time
from analysis.comparison.metrics import metrics
from analysis.comparison.option_effects import option_sentences
from analysis.comparison.result import Comparison
from analysis.comparison.verdict import Verdict
from analysis.precision.outlook import OpenCells, open_cells
from analysis.report.differences import distance
from analysis.report.headline import headlines, without_room
from analysis.tables.units import about, prefixed, within
from inference.outlook import FARTHEST
from records import layout

#: All lines together; the campaign says after them where the report and a study's page are.
MOST_LINES = 22
#: How many of them caveats on the verdicts may take, and open series.
MOST_CAVEATS, MOST_OPEN = 3, 7
#: Names the PATH of the shell that make was called from (Makefile).
CALLERS_PATH = "WYEAST_CALLERS_PATH"
#: A sentence is wrapped after this many characters.
WIDTH = 110


def ending(comparison: Comparison) -> list[str]:
    """Return the lines: headlines, the differences shown, what is open and would decide it.

    For a single implementation they are its levels.
    """
    name = shlex.quote(comparison.campaign.path.name)
    tables = f"All tables{beforehand()}: python -m analysis table {name}"
    outside = [one.sentence for one in from_outside(comparison.campaign)]
    said = [*stolen_time(comparison.campaign), *outside]
    bears = [line for one in said for line in wrapped(one)]
    parts = [line for one in without_room(comparison.campaign) for line in wrapped(one)]
    if len(comparison.implementations) < 2:
        bears = shortened(parts + bears, MOST_CAVEATS, "lines")
        return [*levels(comparison, MOST_LINES - 1 - len(bears)), *bears, tables]
    found = open_cells(comparison)
    of_images = [one.sentence for one in image_caveats(comparison)]
    of_images = [*option_sentences(comparison), *of_images]
    bears = [line for one in of_images for line in wrapped(one)] + bears
    bears = shortened(parts + bears, MOST_CAVEATS, "lines of caveats, each in the report")
    still_open = open_lines(comparison, found)
    room = MOST_LINES - len(bears) - len(still_open) - 1
    top = [line for one in headlines(comparison, found) for line in wrapped(one.sentence)]
    top = shortened(top, room // 2, "lines of headlines, each in the report")
    # Where nothing is judged yet, no difference could be shown.
    is_judged = not comparison.campaign.awaits_test
    shown = difference_lines(comparison, room - len(top)) if is_judged else []
    sentences = f"; all answers in sentences: python -m analysis compare {name}"
    if len(comparison.implementations) > 2:
        what = "which to use" if comparison.among_others else "of every two"
        sentences += f"; {what}: python -m analysis winners {name}"
    return [*top, *shown, *still_open, *bears, tables + sentences]


def beforehand() -> str:
    """Return what to do before a command of the analysis can be typed; empty where nothing is.

    `make` needs no environment of ours, and the `python` of a shell is another one, or none.
    """
    # What make starts is activated; the shell that make was called from may not be.
    python = shutil.which("python", path=os.environ.get(CALLERS_PATH))
    is_ours = python is not None and Path(python).parent == Path(sys.prefix) / "bin"
    root = layout.installation()
    place = root if layout.is_shared(root) else "."
    return "" if is_ours else f" (after . {place}/activate)"


def wrapped(sentence: str) -> list[str]:
    """Return a sentence wrapped into lines; all but the first are indented."""
    return textwrap.wrap(
        sentence, WIDTH, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
    )


def shortened(lines: Sequence[str], most: int, what: str) -> list[str]:
    """Return the first lines, as many as there is room for; the last says how many are left."""
    if len(lines) <= most:
        return list(lines)
    kept = list(lines[: max(0, most - 1)])
    return [*kept, f"  … and {len(lines) - len(kept)} more {what}"]


def differences(comparison: Comparison) -> list[tuple[str, Verdict]]:
    """Return what shows a difference with its name, the largest first: series and groups of them.

    A group of one series is that series.
    """
    every = [
        (cell.name, one)
        for of in comparison.pairs
        for cell in of.cells
        for one in cell.verdicts.values()
    ]
    every += [
        (f"{group.name} ({one.cells} of {len(group.cells)} series)", one)
        for of in comparison.pairs
        for group in of.groups
        for one in group.verdicts.values()
        if one.cells > 1
    ]
    shown = [(name, one) for name, one in every if one.is_different]
    return sorted(shown, key=lambda pair: -distance(pair[1]))


def difference_lines(comparison: Comparison, room: int) -> list[str]:
    """Return the differences shown in as many lines as there is room for."""
    lines = []
    for name, verdict in differences(comparison):
        ratio = verdict.ratio
        times = max(ratio.value, 1 / ratio.value)
        sure = within(verdict.interval) if verdict.interval else ratio.counted
        than = f" than {verdict.base}" if comparison.among_others else ""
        lines.append(
            f"  {name}: {verdict.implementation} {verdict.words}{than} by a factor of {times:.2f} "
            f"({ratio.words}; {sure})"
        )
    if not lines:
        return ["No difference is shown."]
    of = "between every two" if comparison.among_others else f"from {comparison.base}"
    title = f"Differences {of}, largest first (ratio; simultaneous interval):"
    return [title, *shortened(lines, room - 1, "differences")]


def open_lines(comparison: Comparison, found: OpenCells) -> list[str]:
    """Return what is open and what would probably decide it, a line for each experiment.

    What decides most per second comes first; what no number of rounds decides comes last, together.
    """
    if not found.cells:
        return []
    lines: list[tuple[float, str]] = []
    unlikely, untold = [], []
    for experiment in dict.fromkeys(one.cell.experiment for one in found.cells):
        own = found.of(experiment=experiment)
        if own.unlikely:
            unlikely.append(f"{experiment} ({own.unlikely})")
        if own.untold:
            untold.append(f"{experiment} ({own.untold})")
        if own.soon:
            line = (
                f"  {experiment}: {len(own.soon)} of {len(own.cells)} open series with "
                f"{own.rounds[experiment]} rounds, about {about(own.seconds)} of launches"
            )
            lines.append((len(own.soon) / max(own.seconds, 1e-9), line))
    last = []
    if unlikely:
        many = f"  probably not decided even by {FARTHEST} times as many rounds: "
        last += wrapped(many + ", ".join(unlikely))
    if untold:
        last += wrapped(f"  too few data to predict: {', '.join(untold)}")
    first = [line for _, line in sorted(lines, key=lambda of: -of[0])]
    first = shortened(first, max(2, MOST_OPEN - len(last)), "experiments")
    if first:
        title = f"Still open; a new campaign would probably decide these: {run_command(comparison)}"
    else:
        title = "Still open:"
    return [title, *first, *last]


def run_command(comparison: Comparison) -> str:
    """Return the command that measures an experiment again, to be completed by hand."""
    manifest = comparison.campaign.manifest
    given = {"SITE": manifest.site, "TIER": manifest.tier}
    if not any("+host-" in name for name in manifest.images):
        given["IMAGES"] = ",".join(manifest.images)
    words = [f"{key}={shlex.quote(value)}" for key, value in given.items()]
    return " ".join(["make run", *words, "ROUNDS=<rounds> CHECKS='^<experiment>'"])


def levels(comparison: Comparison, room: int) -> list[str]:
    """Return the results of a single implementation, without a comparison.

    They are its cells' medians; if there is no room for all, each experiment's range.
    """
    [name] = comparison.implementations
    missing = [other for other in comparison.campaign.manifest.images if other != name]
    rounds = len({launch.record.round for launch in comparison.campaign.sound()})
    title = [
        f"{name}: medians over the launches of {rounds} round{'' if rounds == 1 else 's'}, at the "
        "largest message of each series"
    ]
    if missing:
        title.append(f"No sound launch that could be compared with it: {', '.join(missing)}")
    room -= len(title)
    cells = [(cell, cell.estimates[name][-1]) for cell in comparison.cells]
    lines = [
        f"  {cell.name}: {prefixed(one.median, metrics()[cell.experiment]['unit'])}"
        + (f" at {prefixed(one.message_bytes, 'B')}" if one.message_bytes else "")
        for cell, one in cells
    ]
    if len(lines) > room:
        lines = []
        for experiment in dict.fromkeys(cell.experiment for cell, _ in cells):
            about_it = metrics()[experiment]
            own = [one.median for cell, one in cells if cell.experiment == experiment]
            low, high = (prefixed(of(own), about_it["unit"]) for of in (min, max))
            span = low if low == high else f"{low} to {high}"
            lines.append(f"  {experiment}, {about_it['label']}: {span} in {len(own)} series")
    return [*title, *shortened(lines, room, "experiments")]
