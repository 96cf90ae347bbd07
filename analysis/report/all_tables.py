"""The report's tables: units in the headers, and in each row the origin of its number."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from analysis.comparison.caveats.limited import limited_tables
from analysis.comparison.caveats.placement import placement_table
from analysis.comparison.metrics import metrics
from analysis.comparison.option_effects import option_table
from analysis.comparison.result import Comparison
from analysis.comparison.tables import (
    group_table,
    launch_table,
    median_table,
    problem_table,
    ratio_table,
)
from analysis.comparison.winners import winners_of
from analysis.models.all_tables import Models
from analysis.models.over_ranks import over_ranks_table
from analysis.models.profile import ProfiledCell, profile_data, profiled_cells
from analysis.models.start_up import parts_of, start_up_table
from analysis.report.drawings.latency_plane import Plane, latency_plane
from analysis.tables.table import Table, with_origin


def compared_tables(comparison: Comparison) -> list[Table]:
    """Return answers, ratios and medians, of what was measured."""
    experiments = [name for name in metrics() if comparison.experiment(name)]
    groups = group_table(comparison)
    tables = [
        groups,
        option_table(comparison, groups),
        *(ratio_table(comparison, name) for name in experiments),
        *(median_table(comparison, name) for name in experiments),
    ]
    if comparison.among_others:
        tables.append(winners_of([comparison.pairs], comparison.implementations))
    return [table for table in tables if table.rows]


def all_tables(
    comparison: Comparison, models: Models, plane: Plane | None, start_ups: Table,
    profiles: Sequence[ProfiledCell],
) -> list[Table]:  # fmt: skip
    """Return every table that is not empty, each row with its origin."""
    campaign, names = comparison.campaign, comparison.launch_names
    others = [
        *models.rates, *models.derived, over_ranks_table(comparison),
        *limited_tables(comparison), placement_table(comparison),
        plane.points if plane else None, start_ups, *profile_data(profiles),
    ]  # fmt: skip
    return each_named_once([
        *compared_tables(comparison),
        *(with_origin(table, campaign, names) for table in others if table and table.rows),
        *(table for table in (launch_table(campaign), problem_table(campaign)) if table.rows),
    ])  # fmt: skip


def each_named_once(tables: list[Table]) -> list[Table]:
    """Return the tables; raises ValueError if two have one name, and so one file for both."""
    twice = [name for name, count in Counter(one.name for one in tables).items() if count > 1]
    if twice:
        raise ValueError(f"two tables have the name {', '.join(twice)}")
    return tables


def tables_of(comparison: Comparison, root: Path) -> list[Table]:
    """Return every table of a comparison that is not empty; `root` has the literature."""
    campaign = comparison.campaign
    plane = latency_plane(campaign, comparison.implementations, root)
    profiles, _ = profiled_cells(campaign)
    start_ups = start_up_table(parts_of(campaign))
    return all_tables(comparison, Models(campaign, root), plane, start_ups, profiles)
