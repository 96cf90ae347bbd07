"""A campaign's answer in one sentence for each implementation, from the verdicts on its series."""

from __future__ import annotations

from dataclasses import dataclass

from analysis.comparison.result import OVERSUBSCRIBED, UNFINISHED, Comparison
from analysis.precision.outlook import OpenCells, is_open, open_cells
from analysis.tables.units import about, percent
from inference.outlook import FARTHEST
from records.campaign import Campaign


@dataclass(frozen=True)
class Headline:
    """In how many series an implementation is what against the base.

    A series is a cell that a round has of both; groups are in none of the counts. `unjudged` ones,
    which are oversubscribed, are not among the `series`, nor are those that are `unfinished`, since
    they are tested once, at the campaign's end, those `without_pairs`, of which no round has both,
    those that are `too_short`: the clock times no size of them that both have, and those of which
    ranks without a processor may have been `late` for each such size. `margins` are those of the
    equivalent ones, as shares. `outlook` is None where nothing can be said of any open series.
    """

    implementation: str
    base: str
    series: int
    faster: int
    slower: int
    equivalent: int
    margins: tuple[float, ...]
    open: int
    unjudged: int
    unfinished: int
    without_pairs: int
    too_short: int
    late: int
    outlook: OpenCells | None

    @property
    def sentence(self) -> str:
        """Return it in words."""
        left_out = "".join(
            f"; {count} {why}"
            for count, why in (
                (self.unjudged, f"not judged ({OVERSUBSCRIBED})"),
                (
                    self.unfinished,
                    f"not judged ({UNFINISHED}: everything is tested once, at the end)",
                ),
                (self.without_pairs, "never measured in the same round as the base"),
                (self.too_short, "too short for the clock at every size that both have"),
                (self.late, "possibly delayed at every size by ranks that had no processor"),
            )
            if count
        )
        if not self.series:
            return f"Nothing is known about {self.implementation} against {self.base}{left_out}."
        said = (
            f"{self.implementation} is faster than {self.base} in {self.faster} of {self.series} "
            f"series, slower in {self.slower}"
        )
        if self.equivalent:
            within = " or ".join(percent(margin) for margin in self.margins)
            said += f", equivalent within {within} in {self.equivalent}"
        said += f"; {self.open} open" if self.open else ""
        if self.open and self.outlook:
            said += f": {', '.join(in_words(self.outlook))}"
        return f"{said}{left_out}."


def without_room(campaign: Campaign) -> list[str]:
    """Return in a sentence how many cells no answer covers, since the budget had no room."""
    cells = len(campaign.no_room)
    if not cells:
        return []
    return [
        f"The budget had no room for {cells} cell{'' if cells == 1 else 's'}, the least important "
        "ones: nothing here covers them."
    ]


def in_words(outlook: OpenCells) -> list[str]:
    """Return what would decide open series, in parts of a sentence."""
    said = []
    if soon := len(outlook.soon):
        more = about(outlook.seconds)
        said.append(f"{soon} would probably be decided by about {more} of further launches")
    if outlook.unlikely:
        said.append(f"{outlook.unlikely} probably not even by {FARTHEST} times as many rounds")
    if outlook.untold:
        said.append(f"{outlook.untold} with too few data to predict")
    return said


def too_short(comparison: Comparison, name: str) -> tuple[set[str], set[str]]:
    """Return the series of which no size that an implementation and the base have counts.

    Also return those of them for which one of the two may have been late.
    """
    common = {
        cell.name for cell in comparison.cells
        if set.intersection(*(
            {size for of in cell.values.get(one, {}).values() for size in of}
            for one in (name, comparison.base)
        ))
    }  # fmt: skip
    limited = [
        one for one in comparison.limited if one.implementation in (name, comparison.base)
    ]  # fmt: skip
    short = {one.cell for one in limited} - common
    return short, short & {one.cell for one in limited if one.point.late}


def headlines(comparison: Comparison, found: OpenCells | None = None) -> list[Headline]:
    """Return the headline of each implementation that has a verdict against the base.

    In a campaign of all pairs, also of the others against each other. `found` are the open series
    of the whole comparison, where they are known already.
    """
    found = open_cells(comparison) if found is None else found
    return [head for one in comparison.pairs for head in headlines_of(one, found)]


def headlines_of(comparison: Comparison, found: OpenCells) -> list[Headline]:
    """Return the headlines against one base."""
    every = []
    for name in comparison.implementations:
        verdicts = [cell.verdicts[name] for cell in comparison.cells if name in cell.verdicts]
        judged = [one for one in verdicts if not one.unjudged and one.ratio.pairs]
        if not verdicts:
            continue
        short, late = too_short(comparison, name)
        apart = [
            cell for cell in comparison.cells
            if name in cell.verdicts and cell.name not in short
            and not (cell.verdicts[name].unjudged or cell.verdicts[name].ratio.pairs)
        ]  # fmt: skip
        different = [one for one in judged if one.is_different]
        equivalent = [one for one in judged if one.is_equivalent]
        outlook = found.of(implementation=name, base=comparison.base)
        faster = sum(one.ratio.value > 1 for one in different)
        every.append(
            Headline(
                implementation=name,
                base=comparison.base,
                series=len(judged),
                faster=faster,
                slower=len(different) - faster,
                equivalent=len(equivalent),
                margins=tuple(sorted({one.margin for one in equivalent})),
                open=sum(map(is_open, judged)),
                unjudged=sum(one.unjudged == OVERSUBSCRIBED for one in verdicts),
                unfinished=sum(one.unjudged == UNFINISHED for one in verdicts),
                without_pairs=len(apart),
                too_short=len(short - late),
                late=len(late),
                outlook=outlook if outlook.soon or outlook.unlikely else None,
            )
        )
    return every
