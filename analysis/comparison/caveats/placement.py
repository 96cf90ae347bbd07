"""Where ranks were, as they say it themselves, and where two implementations' differ."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cached_property

from analysis.comparison.result import Comparison
from analysis.tables.table import COUNT, PERCENT, Column, Kind, Row, Table
from inference.intervals import median
from records.ending import RankPlaces
from records.placed import Pattern, Placed, pattern, placed

NAME = "placement"
#: So many cells are named in a sentence.
MOST_NAMED = 3
#: What is counted of a placement, each by its least and its most.
COUNTED = (
    "nodes", "ranks_of_a_node", "cores_of_a_rank", "sockets_of_a_node", "numa_nodes_of_a_node",
    "crowded_ranks",
)  # fmt: skip


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

    @cached_property
    def each(self) -> list[Placed]:
        """Return what each placement comes to, the most frequent first."""
        return [placed(self.examples[one]) for one, _ in self.patterns.most_common()]

    @property
    def words(self) -> str:
        """Return it in words, what is most frequent first."""
        return "; or ".join(dict.fromkeys(one.words for one in self.each))

    @property
    def counts(self) -> tuple[int | None, ...]:
        """Return the least and the most of COUNTED over all launches, None if no kernel told."""
        spans = [
            (
                (one.nodes, one.nodes), one.of_a_node, one.cores_of_a_rank, one.sockets_of_a_node,
                one.numa_nodes_of_a_node, (one.crowded, one.crowded),
            )
            for one in self.each
        ]  # fmt: skip
        has_cores = any(one.cores_of_a_rank[1] for one in self.each)
        found: list[int | None] = []
        for name, of in zip(COUNTED, zip(*spans, strict=True), strict=True):
            most = max(high for _, high in of)
            # That no rank is crowded is known where cores are.
            is_told = has_cores if name == "crowded_ranks" else most > 0
            found += (min(low for low, _ in of), most) if is_told else (None, None)
        return tuple(found)


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
class PlacedTogether:
    """A cell, and in how many of its rounds of several implementations they were not alike."""

    of: list[CellPlacements]
    different: int
    rounds: int


def placed_together(seen: list[CellPlacements]) -> dict[str, PlacedTogether]:
    """Return in how many rounds implementations were not placed alike, by cell.

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
        different = sum(len(set(of)) > 1 for of in of_several)
        found[cell] = PlacedTogether(own, different, len(of_several))
    return found


def alike_words(of: tuple[bool, int, int], _: str) -> str:
    """Return for people whether implementations were placed alike."""
    is_alike, different, rounds = of
    return "yes" if is_alike else f"no, {in_rounds(different, rounds)}"


def in_rounds(different: int, rounds: int) -> str:
    """Return in words in how many rounds placements differ."""
    return f"in {different} of {rounds} rounds"


def placement_table(comparison: Comparison) -> Table | None:
    """Return where the ranks of each cell and implementation were; None if no launch tells."""
    seen = placements(comparison)
    together = placed_together(seen)
    columns = (
        Column("cell", "cell"), Column("implementation", "implementation"),
        Column("launches", "launches", COUNT, "1"), Column("placement", "ranks"),
        Column("counts", fields=tuple(f"{what}_{end} (1)" for what in COUNTED
                                      for end in ("least", "most"))),
        Column("alike", "as the others", Kind(alike_words, is_number=False),
               fields=("alike", "differing_rounds (1)", "compared_rounds (1)")),
        Column("waited", "waited for processors", PERCENT, "1"),
    )  # fmt: skip
    rows = [
        Row(
            (
                one.cell, one.implementation, one.patterns.total(), one.words, one.counts,
                (not of.different, of.different, of.rounds),
                median(one.waited) if one.waited else None,
            ),
            one.implementation, (one.cell,),
        )
        for one in sorted(seen, key=lambda one: not together[one.cell].different)
        for of in (together[one.cell],)
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
    for cell, found in placed_together(placements(comparison)).items():
        if not found.different:
            continue
        words = [(one.implementation, one.words) for one in found.of]
        if len({how for _, how in words}) == 1:
            how = f"all have {words[0][1]}, but not rank for rank in the same places"
        else:
            how = "; ".join(f"{name}: {how}" for name, how in words)
        said[in_rounds(found.different, found.rounds), how].append(cell)
    return [
        f"Ranks were placed differently in {len(cells)} cell{'s' if len(cells) > 1 else ''} "
        f"({', '.join(cells[:MOST_NAMED])}{' …' if len(cells) > MOST_NAMED else ''}), {count}: "
        f"{how}. A difference in them may be due to placement and not to the library."
        for (count, how), cells in said.items()
    ]
