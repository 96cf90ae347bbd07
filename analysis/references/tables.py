"""What accepting proposed references would change, as tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from analysis.comparison.verdict import POWER, SLOWDOWN
from analysis.tables.table import (
    COUNT,
    PREFIXED,
    Column,
    Printed,
    Row,
    Table,
    Untold,
    formatted,
)
from analysis.tables.units import percent, prefixed
from inference.prediction import CHANCE
from records import layout
from records.base import CampaignError
from records.references import CellReference, MetricReference
from records.yaml_text import from_yaml

#: A threshold beyond this share is said to be wide.
WIDE = 1.0


def handwritten(folder: Path) -> dict[str, Any]:
    """Return a site's hand-written references by check; raises CampaignError."""
    path = layout.seen(folder / "references.yaml")
    try:
        found = from_yaml(path.read_text()) or {}
    except FileNotFoundError:
        return {}
    except (OSError, yaml.YAMLError) as error:
        raise CampaignError(f"{path} cannot be read: {error}") from None
    return found if isinstance(found, dict) else {}


def value_by_hand(of: Mapping[str, Any], cell: CellReference, site: str, metric: str) -> Any:
    """Return the hand-written reference tuple that a cell's metric has, or None."""
    found: Any = of.get(cell.experiment)
    if not isinstance(found, dict):
        return None
    words = dict(word.split("=", 1) for word in cell.cell.split()[1:] if "=" in word)
    for key in [words.get(name) for name in found["$index"]] if "$index" in found else [site]:
        found = found.get(key) if isinstance(found, dict) else None
    return found.get(metric) if isinstance(found, dict) else None


def wide(reference: MetricReference) -> bool:
    """Return whether a launch may be so much worse that this is hardly a test."""
    value = reference.reference[0]
    return max(value / reference.worst, reference.worst / value) - 1 > WIDE


def changes(
    old: Mapping[tuple[str, str, str], CellReference], new: Iterable[CellReference]
) -> list[tuple[CellReference, str, MetricReference | None]]:
    """Return each new cell and metric with what it had before, except unchanged ones.

    This includes metrics that the cell no longer has.
    """
    found: list[tuple[CellReference, str, MetricReference | None]] = []
    for cell in new:
        before = old.get(cell.key)
        same_source = before is not None and before.model_copy(
            update={"metrics": cell.metrics}
        ) == cell  # fmt: skip
        for name, reference in cell.metrics.items():
            had = before.metrics.get(name) if before else None
            if had != reference or not same_source:
                found.append((cell, name, had))
        lost = before.metrics.keys() - cell.metrics.keys() if before else ()
        found += [(cell, name, before.metrics[name]) for name in sorted(lost) if before]
    return found


def source_lines(
    old: Mapping[tuple[str, str, str], CellReference], new: Iterable[CellReference]
) -> list[str]:
    """Return a line for each source of references: image, rounds, campaigns and when they ended.

    An image that replaces another one is shown with it.
    """
    rounds: dict[tuple[str, str, str, str, str], set[int]] = {}
    for cell in new:
        before = old.get(cell.key)
        image = cell.image_sha256[:12]
        if before and before.image_sha256 != cell.image_sha256:
            image = f"{image} (before: {before.image_sha256[:12]})"
        source = (cell.tier, cell.implementation, image, ", ".join(cell.campaigns),
                  cell.measured_utc[:10])  # fmt: skip
        rounds.setdefault(source, set()).add(cell.rounds)
    return [
        f"source: {implementation}, tier {tier}, image {image}: "
        f"{' to '.join(str(one) for one in sorted({min(counts), max(counts)}))} rounds of "
        f"{campaigns}, until {ended}"
        for (tier, implementation, image, campaigns, ended), counts in sorted(rounds.items())
    ]


def difference_table(
    site: str,
    old: Mapping[tuple[str, str, str], CellReference],
    new: list[CellReference],
    by_hand: Mapping[str, Any],
    looked_at: int | None = None,
) -> Table:
    """Return what accepting the new references changes, a row for each metric.

    `looked_at` is how many metrics the proposal was chosen from, if known.
    """
    rows: list[Row] = []
    for cell, name, had in changes(old, new):
        about = (cell.cell, cell.implementation, name)
        was = (
            Printed(had.reference[0], prefixed(had.reference[0], had.reference[3])) if had else None
        )
        if name not in cell.metrics and had:
            rows.append(Row((*about, was, had.reference[3], *[Untold("none")] * 5, None)))
            continue
        reference = cell.metrics[name]
        value, _, _, unit = reference.reference
        floor = value_by_hand(by_hand, cell, site, name)
        if not had and floor:
            was = Printed(float(floor[0]), f"by hand {prefixed(float(floor[0]), unit)}")
        change, worst = reference.worst / value - 1, prefixed(reference.worst, unit)
        rows.append(Row((
            *about, was, unit, value,
            value / had.reference[0] - 1 if had else Untold("new"),
            Printed(
                reference.worst, f"{worst} ({change:+.1%}{', wide' if wide(reference) else ''})"
            ),
            reference.better_beyond,
            Untold("unknown") if reference.sees is None else reference.sees,
            reference.launches,
        )))  # fmt: skip
    columns = (
        Column("cell", "cell"), Column("implementation", "implementation"),
        Column("metric", "metric"), Column("old", "old", PREFIXED, "unit"), Column("unit"),
        Column("new", "new", PREFIXED, "unit"), Column("change", "change", formatted("+.1%"), "1"),
        Column("fails_beyond", "fails beyond", PREFIXED, "unit"),
        Column("said_beyond", "said beyond", PREFIXED, "unit"),
        Column("sees", "sees a slowdown of", formatted(".0%"), "1"),
        Column("launches", "launches", COUNT, "1"),
    )  # fmt: skip
    count = sum(len(cell.metrics) for cell in new)
    notes = [
        "fails beyond: a launch that is worse fails its check; said beyond: a launch that is "
        "better gets a warning.",
    ]
    if looked_at:
        notes.append(
            f"Of {looked_at} metrics examined, {count} have references; unchanged launches fail "
            f"one or more of them in {percent(1 - (1 - CHANCE) ** looked_at)} of rounds if noise "
            "is normal. "
            "docs/method/references.md gives rates for other noise."
        )
    every = [metric for cell in new for metric in cell.metrics.values()]
    blind = sum(metric.sees is None or metric.sees > SLOWDOWN for metric in every)
    notes.append(
        f"sees a slowdown of: the smallest one with which a launch fails with a probability of "
        f"{POWER:.0%}."
    )
    if blind:
        notes.append(
            f"{blind} of {count} would not show a slowdown of {percent(SLOWDOWN)}, so meeting them "
            "says little."
        )
    loose = sum(map(wide, every))
    if loose:
        notes.append(
            f"{loose} of {count} are wide, since there are few launches for their spread: none of "
            "them would catch a launch twice as slow. More campaigns and rounds narrow them."
        )
    return Table("references", f"References of site {site}", columns, rows, notes)
