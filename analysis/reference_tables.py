"""What accepting proposed references changes, for people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from analysis.campaign import CampaignError
from analysis.figures import prefixed
from analysis.reference_limits import CHANCE
from analysis.references import CellReference, MetricReference
from analysis.text_table import TextTable
from analysis.verdict import percent

#: A threshold beyond this share is said to be wide.
WIDE = 1.0


def handwritten(folder: Path) -> dict[str, Any]:
    """Return a site's hand-written references by check; raises CampaignError."""
    path = folder / "references.yaml"
    try:
        found = yaml.safe_load(path.read_text()) or {}
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
    """Return whether a launch may be so much worse that it hardly is a test."""
    value = reference.reference[0]
    return max(value / reference.worst, reference.worst / value) - 1 > WIDE


def changes(
    old: Mapping[tuple[str, str, str], CellReference], new: Iterable[CellReference]
) -> list[tuple[CellReference, str, MetricReference | None]]:
    """Return each new cell and metric with what it had before, without those that stay.

    A metric that the cell had and has no longer is one of them.
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

    An image in place of which the cells had another one is shown with that.
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
) -> TextTable:
    """Return what accepting the new references changes, a row for each metric.

    `looked_at` is how many metrics the proposal was chosen from, where that is known.
    """
    rows: list[tuple[str, ...]] = []
    for cell, name, had in changes(old, new):
        if name not in cell.metrics and had:
            was = prefixed(had.reference[0], had.reference[3])
            rows.append((cell.cell, cell.implementation, name, was, *["none"] * 4, "–"))
            continue
        reference = cell.metrics[name]
        value, _, _, unit = reference.reference
        floor = value_by_hand(by_hand, cell, site, name)
        change, worst = reference.worst / value - 1, prefixed(reference.worst, unit)
        before = (
            prefixed(had.reference[0], unit) if had
            else f"by hand {prefixed(float(floor[0]), unit)}" if floor
            else "–"
        )  # fmt: skip
        rows.append((
            cell.cell, cell.implementation, name, before, prefixed(value, unit),
            f"{value / had.reference[0] - 1:+.1%}" if had else "new",
            f"{worst} ({change:+.1%}{', wide' if wide(reference) else ''})",
            prefixed(reference.better_beyond, unit), f"{reference.launches}",
        ))  # fmt: skip
    columns = ("cell", "implementation", "metric", "old", "new", "change", "fails beyond",
               "said beyond", "launches")  # fmt: skip
    count = sum(len(cell.metrics) for cell in new)
    notes = [
        "fails beyond: a launch that is worse fails its check; said beyond: one that is better "
        "gets a warning.",
    ]
    if looked_at:
        notes.append(
            f"Of {looked_at} metrics that were looked at, {count} have references; launches "
            "without a change fail by one or more in "
            f"{percent(1 - (1 - CHANCE) ** looked_at)} of rounds if noise is normal. "
            "docs/method.md has other noise."
        )
    loose = sum(wide(metric) for cell in new for metric in cell.metrics.values())
    if loose:
        notes.append(
            f"{loose} of {count} are wide, since there are few launches for their spread: twice as "
            "slow is found by none of them. More campaigns and rounds make them narrow."
        )
    return TextTable(f"References of site {site}", columns, rows, 3, notes)
