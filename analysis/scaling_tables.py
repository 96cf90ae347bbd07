"""Scaling as tables of words: speedups, shares of communication, exponents over ranks."""

from __future__ import annotations

from analysis.campaign import Campaign
from analysis.figures import prefixed
from analysis.launch_means import AGREE, mean_of_launches
from analysis.linpack_tables import ratio_text
from analysis.profile import ProfiledCell, profiled_cells
from analysis.scaling import Scaled, hpl_scaled, powers_in, programs_in, scaled_of
from analysis.statistics import Interval
from analysis.text_table import TextTable

SPEEDUPS = "Speedup and serial part"


def interval_words(interval: Interval | None) -> str:
    """Return an interval of a number without a unit."""
    return f"{interval.low:.3f} – {interval.high:.3f}" if interval else "–"


def scaled_row(row: Scaled) -> tuple[str, ...]:
    """Return a speedup in words."""
    part = row.serial_part
    return (
        row.what, row.implementation, str(row.ranks), str(row.base_ranks),
        prefixed(row.base, row.unit), str(row.speedup.pairs), *ratio_text(row.speedup),
        f"{row.efficiency:.3f}", f"{part:.3f}" if part is not None else "–",
        interval_words(row.serial_interval),
    )  # fmt: skip


def speedup_table(rows: list[Scaled]) -> TextTable | None:
    """Return speedup, efficiency and serial part of each program; None without any."""
    columns = ("program", "implementation", "ranks", "base ranks", "base", "rounds", "speedup",
               "95% interval", "efficiency", "serial part", "95% interval ")  # fmt: skip
    note = (
        "Speedup: the rate over that of the base in the same round, the geometric mean over "
        "rounds. Efficiency: speedup x base ranks / ranks. Serial part: Karp and Flatt 1990, what "
        "Amdahl's law would have to call serial to explain the speedup; where it grows with the "
        "ranks, overhead and not serial work is the reason; below 0 the speedup is more than "
        "linear. “–”: no serial part explains it."
    )
    weak = (
        "Weak: the lattice grows with the ranks, and the rate is that of all ranks together. The "
        "efficiency is a rank's rate over that of a rank of the base, 1 where more ranks cost "
        "nothing; a serial part, which is of one size, there is none."
    )
    words = [scaled_row(row) for row in rows]
    notes = [note, weak] if any(row.weak for row in rows) else [note]
    cells = [row.cells for row in rows]
    return TextTable(SPEEDUPS, columns, words, 2, notes, cells) if rows else None


def share_row(one: ProfiledCell) -> tuple[str, ...]:
    """Return a cell's share of communication over launches, in words."""
    shares = [
        ProfiledCell(one.cell, one.implementation, one.program, one.oversubscribed, (profile,))
        .shares()
        .communication
        for profile in one.profiles
    ]
    mean = mean_of_launches(shares)
    interval = mean.interval
    within = (
        f"{max(0.0, interval.low):.1%} – {min(1.0, interval.high):.1%}" if interval else mean.untold
    )
    name = one.cell + (" (oversubscribed)" if one.oversubscribed else "")
    ranks = str(one.profiles[0].header.ranks)
    return name, one.implementation, ranks, str(len(shares)), f"{mean.value:.1%}", within


def share_table(campaign: Campaign) -> TextTable | None:
    """Return how much of the ranks' time is inside MPI, over launches; None without profiles."""
    cells, _ = profiled_cells(campaign)
    columns = ("cell", "implementation", "ranks", "launches", "inside MPI", "95% interval")
    note = "Mean over launches of the share of the ranks' time inside MPI; intervals Student's. "
    note += AGREE
    rows = [share_row(one) for one in cells]
    return TextTable("Share of communication", columns, rows, 2, [note]) if rows else None


def power_table(campaign: Campaign) -> TextTable | None:
    """Return the exponents of bandwidth per rank over ranks; None without STS and ATA."""
    powers = powers_in(campaign)
    rows: list[tuple[str, ...]] = [
        (
            power.what, power.implementation, ", ".join(map(str, power.counts)),
            f"{power.exponent.value:+.3f}",
            interval_words(power.exponent.interval) if power.exponent.interval
            else "on the line" if power.exponent.agree else "–",
        )
        for power in powers
        if power.exponent
    ]  # fmt: skip
    columns = ("exchange", "implementation", "ranks", "exponent", "95% interval")
    notes = [
        "Bandwidth per rank over the number of ranks p as a power of p, by the logarithms of "
        "medians over launches: 0 where every rank keeps its bandwidth, -1 where all share one. "
        "The interval is Student's from the distances to the line: it needs three numbers of "
        "ranks, an exponent two. “on the line”: to the last digit, so that no "
        "distance is seen.",
    ]
    single = {power.what for power in powers if not power.exponent}
    if single:
        notes.append(
            f"Of {len(single)} exchange(s) it cannot be told: they were measured on one number of "
            "ranks. Others need a site of more cores or nodes."
        )
    cells = [power.cells for power in powers if power.exponent]
    title = "Scaling of exchanges over ranks"
    return TextTable(title, columns, rows, 3, notes, cells) if powers else None


def scaling_tables(campaign: Campaign, shares: bool = True) -> list[TextTable]:
    """Return the tables of scaling that a campaign has launches for.

    Without `shares` not that of communication, which the report has among its profiles.
    """
    speedups = speedup_table([*hpl_scaled(campaign), *scaled_of(programs_in(campaign))])
    tables = (speedups, share_table(campaign) if shares else None, power_table(campaign))
    return [table for table in tables if table]
