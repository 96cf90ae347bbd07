"""Where ranks were, as they say it themselves, and where two implementations' differ."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass

from analysis.comparison.result import Comparison
from analysis.tables.table import COUNT, PERCENT, Column, Row, Table
from inference.intervals import median
from records.ending import RankPlaces
from records.placed import Pattern, pattern, placed

NAME = "placement"
#: So many cells are named in a sentence.
MOST_NAMED = 3


@dataclass(frozen=True)
class CellPlacements:
    """Where an implementation's launches of a cell were: each placement, by round."""

    cell: str
    implementation: str
    by_round: dict[int, Pattern]
    #: One of each.
    examples: dict[Pattern, RankPlaces]
    #: The launches' shares of time in which the rank that waited most did so.
    waited: tuple[float, ...]

    @property
    def patterns(self) -> Counter[Pattern]:
        """Return how often there was each placement."""
        return Counter(self.by_round.values())

    @property
    def words(self) -> str:
        """Return it in words, what is most frequent first."""
        said = (placed(self.examples[one]).words for one, _ in self.patterns.most_common())
        return "; or ".join(dict.fromkeys(said))


def placements(comparison: Comparison) -> list[CellPlacements]:
    """Return where the ranks of sound launches were, by cell and implementation."""
    by_round: dict[tuple[str, str], dict[int, Pattern]] = defaultdict(dict)
    examples: dict[tuple[str, str], dict[Pattern, RankPlaces]] = defaultdict(dict)
    waited: dict[tuple[str, str], list[float]] = defaultdict(list)
    #: Most launches have one of few placements, which are read once each.
    known: dict[int, Pattern] = {}
    for launch in comparison.campaign.sound():
        record = launch.record
        key = record.cell, record.implementation
        if one := record.placement:
            found = known.setdefault(id(one), pattern(one))
            by_round[key][record.round] = found
            examples[key].setdefault(found, one)
        if record.waiting:
            waited[key].append(record.waiting.share)
    return [
        CellPlacements(*key, by_round[key], examples[key], tuple(waited[key]))
        for key in sorted(by_round)
    ]


@dataclass(frozen=True)
class DifferentlyPlaced:
    """A cell in which implementations were not placed alike, in some of the rounds of several."""

    of: list[CellPlacements]
    different: int
    rounds: int

    @property
    def count(self) -> str:
        """Return in how many rounds, in words."""
        return f"in {self.different} of {self.rounds} rounds"


def differently_placed(seen: list[CellPlacements]) -> dict[str, DifferentlyPlaced]:
    """Return the cells in which implementations were not placed alike.

    By round, as ratios are taken: launches that are placed anew each time, and alike within each
    round, are compared with their like.
    """
    cells: dict[str, list[CellPlacements]] = defaultdict(list)
    for one in seen:
        cells[one.cell].append(one)
    found = {}
    for cell, own in cells.items():
        of_rounds: dict[int, list[Pattern]] = defaultdict(list)
        for one in own:
            for number, placement in one.by_round.items():
                of_rounds[number].append(placement)
        of_several = [of for of in of_rounds.values() if len(of) > 1]
        if different := sum(len(set(of)) > 1 for of in of_several):
            found[cell] = DifferentlyPlaced(own, different, len(of_several))
    return found


def placement_table(comparison: Comparison) -> Table | None:
    """Return where the ranks of each cell and implementation were; None if no launch tells."""
    seen = placements(comparison)
    apart = differently_placed(seen)
    columns = (
        Column("cell", "cell"), Column("implementation", "implementation"),
        Column("launches", "launches", COUNT), Column("placement", "ranks"),
        Column("alike", "as the others"),
        Column("waited", "waited for processors", PERCENT, "1"),
    )  # fmt: skip
    rows = [
        Row(
            (
                one.cell, one.implementation, one.patterns.total(), one.words,
                f"no, {apart[one.cell].count}" if one.cell in apart else "yes",
                median(one.waited) if one.waited else None,
            ),
            one.implementation, (one.cell,),
        )
        for one in sorted(seen, key=lambda one: one.cell not in apart)
    ]  # fmt: skip
    notes = [
        "As seen by the ranks when they ended. Launches that are alike may differ in which nodes "
        "and cores they got; launches of the same round are compared with each other. The wait is "
        "that "
        "of the rank that waited longest for a processor, as a share of its time: the median over "
        "launches."
    ]
    return Table(NAME, "Where the ranks were", columns, rows, notes) if rows else None


def placement_sentences(comparison: Comparison) -> list[str]:
    """Return in a sentence for each way to differ in which cells placements do."""
    said: dict[tuple[str, str], list[str]] = defaultdict(list)
    for cell, found in differently_placed(placements(comparison)).items():
        words = [(one.implementation, one.words) for one in found.of]
        if len({how for _, how in words}) == 1:
            how = f"all have {words[0][1]}, but not rank for rank in the same places"
        else:
            how = "; ".join(f"{name}: {how}" for name, how in words)
        said[found.count, how].append(cell)
    return [
        f"Ranks were placed differently in {len(cells)} cell{'s' if len(cells) > 1 else ''} "
        f"({', '.join(cells[:MOST_NAMED])}{' …' if len(cells) > MOST_NAMED else ''}), {count}: "
        f"{how}. A difference in them may be due to placement and not to the library."
        for (count, how), cells in said.items()
    ]
