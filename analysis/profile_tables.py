"""Profiles as tables: of words for the terminal, of numbers in SI units to be saved."""

from __future__ import annotations

from collections.abc import Sequence

from analysis.campaign import Campaign
from analysis.data_tables import DataTable, digests
from analysis.figures import prefixed
from analysis.profile import ProfiledCell
from analysis.text_table import TextTable

SHARE = "of the sum of the ranks' wall time, over all launches"


def profile_tables(cells: Sequence[ProfiledCell], most: int) -> list[TextTable]:
    """Return the shares of all cells, and of each the functions and sizes that are most."""
    rows: list[tuple[str, ...]] = []
    for cell in cells:
        one = cell.shares()
        name = cell.cell + (" (oversubscribed)" if cell.oversubscribed else "")
        shares = (one.cpu, one.communication, one.least, one.most)
        rows.append(
            (name, cell.implementation, str(one.ranks), prefixed(one.wall_s, "s"),
             *(f"{share:.1%}" for share in shares))
        )  # fmt: skip
    columns: tuple[str, ...] = (
        "cell", "implementation", "ranks", "wall time", "CPU", "inside MPI", "least rank",
        "most rank",
    )  # fmt: skip
    title = "Shares of the ranks' time, as in Table 8 of the thesis"
    tables = [TextTable(title, columns, rows, 2)]
    for cell in cells:
        calls: list[tuple[str, ...]] = [
            (of.function, str(of.calls), prefixed(of.time_s, "s"), f"{of.share_of_mpi:.1%}",
             f"{of.share_of_wall:.1%}", prefixed(of.sent_bytes, "B"))
            for of in cell.functions()[:most]
        ]  # fmt: skip
        columns = ("function", "calls", "time", "of MPI", "of wall", "bytes sent or given")
        title = f"Calls of MPI by time, as in Figure 14: {cell.title}"
        tables.append(TextTable(title, columns, calls, 1))
        sizes: list[tuple[str, ...]] = [
            (name, str(size), str(count)) for name, size, count in cell.sizes()[:most]
        ]
        columns = ("function", "at least bytes", "messages")
        tables.append(TextTable(f"Most frequent message sizes: {cell.title}", columns, sizes, 1))
    return tables


def profile_data(campaign: Campaign, cells: Sequence[ProfiledCell]) -> list[DataTable]:
    """Return the shares of the ranks' time, and every function that was called."""
    digest = digests(campaign)
    head = ("campaign", "cell", "oversubscribed", "implementation", "image_sha256")
    abouts = [
        (campaign.path.name, cell.cell, cell.oversubscribed, cell.implementation,
         digest.get(cell.implementation))
        for cell in cells
    ]  # fmt: skip
    shares = DataTable(
        "profile-shares",
        "Shares of the ranks' time",
        (*head, "ranks (1)", "launches (1)", "wall (s)", "cpu (1)", "inside_mpi (1)",
         "least_rank (1)", "most_rank (1)", "formula"),
        [
            (*about, one.ranks, len(cell.profiles), one.wall_s, one.cpu, one.communication,
             one.least, one.most, f"shares {SHARE}; wall: median of the slowest rank's")
            for about, cell in zip(abouts, cells, strict=True)
            for one in (cell.shares(),)
        ],
    )  # fmt: skip
    functions = DataTable(
        "profile-functions",
        "Calls of MPI by time",
        (*head, "function", "calls (1)", "time (s)", "share_of_mpi (1)", "share_of_wall (1)",
         "sent (B)", "formula"),
        [
            (*about, of.function, of.calls, of.time_s, of.share_of_mpi, of.share_of_wall,
             of.sent_bytes, f"sums over ranks and launches; share_of_wall {SHARE}")
            for about, cell in zip(abouts, cells, strict=True)
            for of in cell.functions()
        ],
    )  # fmt: skip
    return [shares, functions]
