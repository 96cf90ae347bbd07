"""What the tables of models need, computed once for a report or an export."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

from analysis.models.guidelines.tables import guideline_tables
from analysis.models.library_choices import nearness_table, variables_table
from analysis.models.linpack import Hpl, hpl_in, hpl_table
from analysis.models.message_tables import model_tables
from analysis.models.messages import Fitted, fitted_in
from analysis.models.nodes.pairs import JudgedPairs, node_pairs_in
from analysis.models.nodes.rates import cycles_table, node_table, rates_in
from analysis.models.nodes.tables import tables_of_nodes
from analysis.models.overlap import overlap_table
from analysis.models.scaling_tables import scaling_tables
from analysis.tables.table import Table
from records.campaign import Campaign


class Models:
    """A campaign's tables of models, by name."""

    def __init__(self, campaign: Campaign, root: Path) -> None:
        """Compute nothing yet; `root` has the literature."""
        self.campaign, self.root = campaign, root

    @cached_property
    def fitted(self) -> Fitted:
        """Return the models of messages."""
        return fitted_in(self.campaign)

    @cached_property
    def hpl(self) -> Hpl:
        """Return the rates of HPL."""
        return hpl_in(self.campaign)

    @cached_property
    def node_pairs(self) -> list[JudgedPairs]:
        """Return the findings on nodes and the links between them."""
        return node_pairs_in(self.campaign)

    @cached_property
    def rates(self) -> list[Table]:
        """Return the tables of HPL and of a node's own rates, as far as they were measured."""
        campaign, rates = self.campaign, rates_in(self.campaign)
        tables = (
            hpl_table(campaign, self.hpl), node_table(campaign, rates),
            cycles_table(campaign, rates, self.fitted.one_way, self.root),
            *tables_of_nodes(campaign, self.node_pairs),
        )  # fmt: skip
        return [table for table in tables if table]

    @cached_property
    def derived(self) -> list[Table]:
        """Return the tables of messages, scaling, guidelines, overlap and libraries' choices."""
        overlap = overlap_table(self.campaign)
        tables = (
            *model_tables(self.fitted), *scaling_tables(self.campaign, self.hpl),
            *guideline_tables(self.campaign), *([overlap] if overlap else []),
            variables_table(self.campaign), nearness_table(self.campaign),
        )  # fmt: skip
        return [table for table in tables if table.rows]
