"""All tables of words that a campaign has, by name: for the report and for exports."""

from __future__ import annotations

from pathlib import Path

from analysis.campaign import Campaign
from analysis.guidelines import guideline_tables
from analysis.linpack_tables import hpl_table
from analysis.message_models import Fitted
from analysis.model_tables import model_tables
from analysis.node_rates import cycles_table, node_table
from analysis.scaling_tables import scaling_tables
from analysis.text_table import TextTable


def rate_tables(campaign: Campaign, root: Path) -> list[TextTable]:
    """Return HPL's table and those of what a node does by itself, of what was measured."""
    tables = (hpl_table(campaign), node_table(campaign), cycles_table(campaign, root))
    return [table for table in tables if table]


def derived_tables(campaign: Campaign, fitted: Fitted) -> list[TextTable]:
    """Return the tables of models, scaling and guidelines."""
    return [
        table
        for table in (
            *model_tables(campaign, fitted), *scaling_tables(campaign, shares=False),
            *guideline_tables(campaign),
        )
        if table.rows
    ]  # fmt: skip
