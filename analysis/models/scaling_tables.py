"""Scaling as tables: speedups, shares of communication, exponents over ranks."""

from __future__ import annotations

from collections.abc import Sequence

from analysis.models.linpack import Hpl
from analysis.models.profile import PROFILED_CELL, ProfiledCell
from analysis.models.scaling import (
    Scaled,
    ScaledProblem,
    hpl_scaled,
    powers_in,
    programs_in,
    scaled_of,
)
from analysis.tables.table import (
    COUNT,
    FIRST,
    PERCENT,
    PREFIXED,
    RATIO,
    Column,
    Kind,
    Row,
    Table,
    Untold,
    ends,
    formatted,
    interval,
    of_ratio,
    of_several,
    several,
)
from inference.means import AGREE, mean_of_launches
from records.campaign import Campaign
from records.counting import how_many


def scaled_row(row: Scaled) -> Row:
    """Return the row of a speedup."""
    values = (
        row.what, row.problem, row.implementation, row.ranks, row.base_ranks, row.base, row.unit,
        row.speedup.pairs, *of_ratio(row.speedup), row.efficiency, row.serial_part,
        ends(row.serial_interval),
    )  # fmt: skip
    return Row(values, row.implementation, row.cells)


def speedup_table(rows: list[Scaled]) -> Table | None:
    """Return speedup, efficiency and serial part of each program; None without any."""
    columns = (
        Column("program", "program"),
        Column("problem", fields=tuple(f"{name} (1)" for name in ScaledProblem._fields)),
        Column("implementation", "implementation"),
        Column("ranks", "ranks", COUNT, "1"), Column("base_ranks", "base ranks", COUNT, "1"),
        Column("base", "base", PREFIXED, "base_unit"), Column("base_unit"),
        Column("rounds", "rounds", COUNT, "1"), Column("speedup", "speedup", RATIO, "1"),
        interval("speedup", "95% interval", "1"),
        Column("efficiency", "efficiency", RATIO, "1"),
        Column("serial_part", "serial part", RATIO, "1"),
        interval("serial_part", "95% interval", "1"),
    )  # fmt: skip
    note = (
        "Speedup: the rate over that of the base in the same round, the geometric mean over "
        "rounds. Efficiency: speedup x base ranks / ranks. Serial part: Karp and Flatt 1990, what "
        "Amdahl's law would have to call serial to explain the speedup; where it grows with the "
        "ranks, the reason is overhead, not serial work; below 0 the speedup is more than linear. "
        "“–”: no serial part explains it."
    )
    weak = (
        "Weak: the lattice grows with the ranks, and the rate is that of all ranks together. The "
        "efficiency is a rank's rate over that of a rank of the base, 1 where more ranks cost "
        "nothing; there is no serial part, which is defined for one problem size."
    )
    notes = [note, weak] if any(row.weak for row in rows) else [note]
    table = Table(
        "speedup-and-serial-part", "Speedup and serial part", columns,
        [scaled_row(row) for row in rows], notes,
        "geometric mean over rounds of the rate over the base's; Karp and Flatt 1990",
    )  # fmt: skip
    return table if rows else None


def share_row(one: ProfiledCell) -> Row:
    """Return the row of a cell's share of communication over launches."""
    shares = [
        ProfiledCell(
            one.cell, one.implementation, one.program, one.oversubscribed, (profile,)
        ).shares.communication
        for profile in one.profiles
    ]
    mean = mean_of_launches(shares)
    values = (
        (one.cell, one.oversubscribed), one.implementation, one.profiles[0].header.ranks,
        len(shares), mean.value, ends(mean),
    )  # fmt: skip
    return Row(values, one.implementation, (one.cell,))


def share_interval(ends: tuple[float, float], _: str) -> str:
    """Return the interval of a share, which is from 0 to 1, as text."""
    return f"{max(0.0, ends[0]):.1%} – {min(1.0, ends[1]):.1%}"


def share_table(cells: Sequence[ProfiledCell]) -> Table | None:
    """Return how much of the ranks' time is inside MPI, over launches; None without profiles."""
    columns = (
        PROFILED_CELL, Column("implementation", "implementation"),
        Column("ranks", "ranks", COUNT, "1"), Column("launches", "launches", COUNT, "1"),
        Column("inside_mpi", "inside MPI", PERCENT, "1"),
        interval("inside_mpi", "95% interval", "1", Kind(share_interval)),
    )  # fmt: skip
    note = "Mean over launches of the share of the ranks' time inside MPI; intervals Student's. "
    note += AGREE
    rows = [share_row(one) for one in cells]
    title = "Share of communication"
    return Table("share-of-communication", title, columns, rows, [note]) if rows else None


def power_table(campaign: Campaign) -> Table | None:
    """Return the exponents of bandwidth per rank over ranks; None without STS and ATA."""
    powers = powers_in(campaign)
    rows = [
        Row(
            (
                (power.exchange.words, *power.exchange), power.implementation,
                of_several(power.counts),
                power.exponent.value,
                ends(power.exponent.interval)
                or (Untold("on the line") if power.exponent.agree else None),
            ),
            power.implementation, power.cells,
        )
        for power in powers
        if power.exponent
    ]  # fmt: skip
    columns = (
        Column("exchange", "exchange", FIRST,
               fields=("exchange", "message_bytes (B)", "series", "ranks_per_node (1)")),
        Column("implementation", "implementation"),
        several("ranks", "ranks", is_number=False),
        Column("exponent", "exponent", formatted("+.3f"), "1"),
        interval("exponent", "95% interval", "1"),
    )  # fmt: skip
    notes = [
        "Bandwidth per rank over the number of ranks p as a power of p, by the logarithms of "
        "medians over launches: 0 where every rank keeps its bandwidth, -1 where all share one. "
        "The interval is Student's, from the distances to the line: it needs three numbers of "
        "ranks, and the exponent two. “on the line”: exactly, to the last digit, so there is no "
        "distance to estimate it from.",
    ]
    single = {power.exchange for power in powers if not power.exponent}
    if single:
        notes.append(
            f"{how_many(len(single), 'exchange')} without an exponent: measured with only one "
            "number of ranks. More need a site with more cores or nodes."
        )
    title = "Scaling of exchanges over ranks"
    table = Table("scaling-of-exchanges-over-ranks", title, columns, rows, notes)
    return table if powers else None


def scaling_tables(
    campaign: Campaign, hpl: Hpl, profiles: Sequence[ProfiledCell] = ()
) -> list[Table]:
    """Return the tables of scaling for which a campaign has launches.

    The one on communication comes from `profiles`; the report shows it among its profiles.
    """
    speedups = speedup_table([*hpl_scaled(hpl.rows), *scaled_of(programs_in(campaign))])
    tables = (speedups, share_table(profiles), power_table(campaign))
    return [table for table in tables if table]
