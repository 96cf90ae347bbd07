"""Where a library breaks its own promises: self-consistency guidelines between its operations.

Träff, Gropp and Thakur (IEEE TPDS 21(5), 2010): an operation should not take longer than others by
with which a user could do the same. The guidelines are data (guidelines.yaml). A violation is
listed only where paired rounds show it: one-sided Student's test on the logarithms of the rounds'
factors, Holm's correction over all tests of the campaign.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain, pairwise
from pathlib import Path
from statistics import geometric_mean
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from analysis.comparison.oversubscription import without_waiting
from analysis.tables.table import (
    COUNT,
    GROUPED,
    RATIO,
    Column,
    Kind,
    Row,
    Table,
    formatted,
    interval,
    of_ratio,
)
from inference.intervals import Ratio, holm, median, paired_ratio
from records.campaign import Campaign
from records.communication import Communication
from records.launch import Launch
from records.limits.plausibility import clock_resolution, limited_by_clock
from records.program_output import ProgramOutput
from records.yaml_text import from_yaml

ALPHA = 0.05
#: The table of all tests.
TRIALS = "self-consistency-guidelines"


class Term(BaseModel):
    """An operation, and its size for the same work as n bytes of another."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    operation: str
    bytes: Literal["n", "n * ranks", "n / ranks"]

    def size(self, n: int, ranks: int) -> int | None:
        """Return the size in bytes; None if n cannot be divided."""
        if self.bytes == "n / ranks":
            return n // ranks if n % ranks == 0 else None
        return n * ranks if self.bytes == "n * ranks" else n


class Guideline(BaseModel):
    """An operation takes at most as long as others together."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    operation: str
    at_most: Annotated[tuple[Term, ...], Field(min_length=1)]

    @property
    def name(self) -> str:
        """Return the guideline as it is written."""
        others = " + ".join(f"{term.operation}({term.bytes})" for term in self.at_most)
        return f"{self.operation}(n) <= {others}"


class BetweenSizes(BaseModel):
    """Which guidelines hold between sizes of one operation."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    monotone: bool
    split: bool


class Guidelines(BaseModel):
    """All guidelines (guidelines.yaml)."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    guidelines: tuple[Guideline, ...]
    every_operation: tuple[str, ...]
    between_sizes: BetweenSizes


@cache
def declared() -> Guidelines:
    """Return the guidelines of guidelines.yaml."""
    text = Path(__file__).with_name("guidelines.yaml").read_text()
    return Guidelines.model_validate(from_yaml(text))


@dataclass(frozen=True)
class Setting:
    """What must be equal for operations to be compared: participants, and the state of caches."""

    implementation: str
    ranks: int
    nodes: int
    group: str
    scrub_bytes: int

    @property
    def words(self) -> str:
        """Return the setting without the implementation."""
        scrubbed = ", caches scrubbed" if self.scrub_bytes else ""
        return f"{self.ranks} ranks on {self.nodes} node(s), {self.group}{scrubbed}"


#: (operation, bytes) -> round -> seconds.
Times = dict[tuple[str, int], dict[int, float]]
#: setting -> (operation, bytes) -> the cells that it was measured in.
CellsOf = dict[Setting, dict[tuple[str, int], set[str]]]


@dataclass(frozen=True)
class Trial:
    """An operation over its upper bound, by rounds; a `ratio` above 1 speaks against it."""

    guideline: str
    setting: Setting
    message_bytes: int
    ratio: Ratio
    #: One-sided, that the ratio is above 1; None below two rounds.
    p_value: float | None
    adjusted_p: float | None = None
    #: Which operations it compares at which sizes, and the cells that they were measured in.
    terms: tuple[tuple[str, int], ...] = ()
    cells: tuple[str, ...] = ()

    @property
    def violated(self) -> bool:
        """Return whether a violation is shown."""
        return self.adjusted_p is not None and self.adjusted_p < ALPHA


def collectives_in(campaign: Campaign) -> Iterator[tuple[Launch, Setting, Communication]]:
    """Yield the collective operations of a campaign, without cells whose ranks waited."""
    for launch in without_waiting(campaign):
        record, output = launch.record, launch.output
        if not isinstance(output, ProgramOutput):
            continue
        scrub = output.header.parameters.get("scrub_bytes", 0)
        for result in output.results:
            if not isinstance(result, Communication) or output.header.program != "collective":
                continue
            # Guidelines are for blocking calls, and for times of one definition.
            if result.method or result.synchronisation != "barrier":
                continue
            if result.time_s.median > 0:
                setting = Setting(
                    record.implementation, result.ranks, record.nodes, result.group, int(scrub)
                )
                yield launch, setting, result


def cells_in(campaign: Campaign) -> CellsOf:
    """Return the cells that each operation was measured in at each size, by setting."""
    found: CellsOf = defaultdict(lambda: defaultdict(set))
    for launch, setting, result in collectives_in(campaign):
        found[setting][result.operation, result.message_bytes].add(launch.record.cell)
    return found


def times_in(campaign: Campaign) -> dict[Setting, Times]:
    """Return the times of collective operations by setting, without cells whose ranks waited.

    Also without those that the clock is too coarse for.
    If several launches of a round measured the same, their geometric mean is the round's.
    """
    found: dict[Setting, dict[tuple[str, int], dict[int, list[float]]]] = defaultdict(
        lambda: defaultdict(lambda: defaultdict(list))
    )
    coarsest: dict[Setting, float] = defaultdict(float)
    for launch, setting, result in collectives_in(campaign):
        if launch.record.round > campaign.manifest.rounds_of_all:
            # Measured because of what was seen: of such launches there is no single test.
            continue
        assert isinstance(launch.output, ProgramOutput)
        rounds = found[setting][result.operation, result.message_bytes]
        rounds[launch.record.round].append(result.time_s.median)
        coarsest[setting] = max(coarsest[setting], clock_resolution(launch.output.header))
    return {
        setting: {
            key: {number: geometric_mean(values) for number, values in rounds.items()}
            for key, rounds in times.items()
            if not limited_by_clock(median([*chain(*rounds.values())]), coarsest[setting])
        }
        for setting, times in found.items()
    }


def trial_of(
    guideline: str, setting: Setting, size: int, times: Times,
    terms: Sequence[tuple[str, int]], factor: float = 1.0,
) -> Trial | None:  # fmt: skip
    """Return the test of the first term <= factor x the sum of the others.

    A term is an operation at a size; None where no round has them all.
    """
    left, *right = (times.get(term, {}) for term in terms)
    rounds = sorted(set(left).intersection(*right))
    if not rounds:
        return None
    logs = [math.log(left[r] / (factor * sum(one[r] for one in right))) for r in rounds]
    ratio = paired_ratio(logs)
    return Trial(guideline, setting, size, ratio, one_sided(ratio), terms=tuple(terms))


def one_sided(ratio: Ratio) -> float | None:
    """Return the p value against a ratio of at most 1, None below two rounds."""
    if ratio.p_value is None:
        return None
    return ratio.p_value / 2 if ratio.value > 1 else 1 - ratio.p_value / 2


def trials_of(setting: Setting, times: Times) -> Iterator[Trial]:
    """Yield the tests that a setting's times allow."""
    every = declared()
    for guideline in every.guidelines:
        for operation, size in sorted(times):
            # Without data the operations are not the same work: each may do nothing.
            if operation != guideline.operation or size == 0:
                continue
            terms = [
                (term.operation, other)
                for term in guideline.at_most
                if (other := term.size(size, setting.ranks)) is not None
            ]
            if len(terms) < len(guideline.at_most):
                continue
            if one := trial_of(guideline.name, setting, size, times, [(operation, size), *terms]):
                yield one
    for operation in every.every_operation:
        measured = sorted(size for name, size in times if name == operation and size > 0)
        for smaller, larger in pairwise(measured):
            small, large = (operation, smaller), (operation, larger)
            name = f"{operation} is monotone in size"
            monotone = trial_of(name, setting, smaller, times, [small, large])
            if every.between_sizes.monotone and monotone:
                yield monotone
            name = f"{operation} of k n bytes <= k x n bytes"
            split = trial_of(name, setting, larger, times, [large, small], larger / smaller)
            if every.between_sizes.split and larger % smaller == 0 and split:
                yield split


def trials_by(
    every: dict[Setting, Times], cells: CellsOf, is_judged: bool = True
) -> list[Trial]:  # fmt: skip
    """Return all tests that times allow, with Holm's correction over them.

    Where none `is_judged` yet, none shows anything.
    """
    tests = [one for key, times in every.items() for one in trials_of(key, times)]
    told = [one for one in tests if one.p_value is not None and is_judged]
    adjusted = holm([one.p_value or 0.0 for one in told])
    corrected = {id(one): p for one, p in zip(told, adjusted, strict=True)}
    return [
        replace(
            one,
            adjusted_p=corrected.get(id(one)),
            cells=tuple(sorted(set().union(*(cells[one.setting][term] for term in one.terms)))),
        )
        for one in tests
    ]


def trial_table(tests: list[Trial]) -> Table:
    """Return every test of a guideline."""
    columns = (
        Column("implementation", "implementation"), Column("guideline", "guideline"),
        Column("setting", "setting"), Column("message_bytes", "bytes", GROUPED, "B"),
        Column("rounds", "rounds", COUNT, "1"), Column("factor", "factor", RATIO, "1"),
        interval("factor", "95% interval", "1"), Column("p_one_sided", unit="1"),
        Column("p_adjusted", "adjusted p", formatted(".2g"), "1"), Column("violation_shown"),
    )  # fmt: skip
    rows = [
        Row(
            (
                one.setting.implementation, one.guideline, one.setting.words, one.message_bytes,
                one.ratio.pairs, *of_ratio(one.ratio), one.p_value, one.adjusted_p, one.violated,
            ),
            one.setting.implementation, one.cells,
        )
        for one in tests
    ]  # fmt: skip
    formula = "geometric mean over rounds of the left side's time over the right side's"
    return Table(TRIALS, "Tests of guidelines", columns, rows, formula=formula)


def lacking(guideline: Guideline, measured: dict[str, set[int]]) -> str:
    """Return why a guideline was not tested: missing operations, or sizes that do not match."""
    names = [guideline.operation, *(term.operation for term in guideline.at_most)]
    missing = [name for name in names if not measured.get(name, set()) - {0}]
    if missing:
        return f"not measured: {', '.join(missing)}"
    return "not measured at sizes of equal work in one setting"


def summary_table(every: dict[Setting, Times], cells_of: CellsOf, tests: list[Trial]) -> Table:
    """Return the results of the tests for each implementation and guideline."""
    measured: dict[str, dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
    looked_at: dict[str, set[str]] = defaultdict(set)
    for setting, times in every.items():
        looked_at[setting.implementation].update(*cells_of[setting].values())
        for operation, size in times:
            measured[setting.implementation][operation].add(size)
    of: dict[tuple[str, str], list[Trial]] = defaultdict(list)
    for one in tests:
        of[one.setting.implementation, one.guideline].append(one)
    fixed = {guideline.name: guideline for guideline in declared().guidelines}
    rows: list[Row] = []
    for name in sorted(measured):
        between = sorted({g for n, g in of if n == name} - set(fixed))
        for guideline in [*fixed, *between]:
            own = of.get((name, guideline), [])
            cells = tuple(sorted(set().union(*(one.cells for one in own))))
            if not own:
                why = lacking(fixed[guideline], measured[name])
                none = (name, guideline, why, *[None] * 4)
                rows.append(Row(none, name, tuple(sorted(looked_at[name]))))
                continue
            violated = [one for one in own if one.violated]
            told = [one for one in own if one.adjusted_p is not None]
            against = [one for one in own if one.ratio.value > 1 and not one.violated]
            words = "violated" if violated else "no violation shown" if told else "inconclusive"
            worst = max(own, key=lambda one: one.ratio.value)
            values = (
                name, guideline, words, len(own), len(violated), len(against),
                (worst.ratio.value, worst.message_bytes),
            )  # fmt: skip
            rows.append(Row(values, name, cells))
    columns = (
        Column("implementation", "implementation"), Column("guideline", "guideline"),
        Column("outcome", "outcome"), Column("tests", "tests", COUNT, "1"),
        Column("violations_shown", "violations shown", COUNT, "1"),
        Column("against_not_shown", "against, not shown", COUNT, "1"),
        Column("largest_factor", "largest factor at bytes",
               Kind(lambda of, _: f"{of[0]:.2f} at {of[1]:,}"),
               fields=("largest_factor (1)", "largest_factor_bytes (B)")),
    )  # fmt: skip
    pairs = [one.ratio.pairs for one in tests]
    notes = [
        "Guidelines of Träff, Gropp and Thakur 2010. A factor is the operation's time over the "
        "most that it should be, the geometric mean over paired rounds. A violation is shown by a "
        "one-sided p below 5% after Holm's correction over all "
        f"{len(tests)} tests of the campaign; “against, not shown” are factors above 1 that noise "
        "could also explain.",
    ]
    if pairs and max(pairs) < 6:
        notes.append(
            f"At most {max(pairs)} rounds are paired: that few can show only violations far above "
            "the noise; measure more with: make run ROUNDS=10 "
            "CHECKS='Collectives.*suite=guidelines'"
        )
    return Table(
        "outcomes-of-guidelines", "Self-consistency guidelines", columns, rows, notes,
        details=TRIALS,
    )  # fmt: skip


def guideline_tables(campaign: Campaign) -> list[Table]:
    """Return violations, a summary and every test; empty without collective operations."""
    times = times_in(campaign)
    if not times:
        return []
    cells = cells_in(campaign)
    tests = trials_by(times, cells, not campaign.awaits_test)
    violated = sorted(
        (one for one in tests if one.violated),
        key=lambda one: (one.setting.implementation, -one.ratio.value),
    )
    violations = replace(
        trial_table(violated), name="violations-of-guidelines", title="Violations of guidelines",
        notes=[] if violated else ["No violation is shown."],
    )  # fmt: skip
    return [violations, summary_table(times, cells, tests), trial_table(tests)]
