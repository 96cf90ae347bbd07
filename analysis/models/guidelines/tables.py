"""The violations of guidelines, what became of each guideline, and every test."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from analysis.models.guidelines.declared import Guideline, declared
from analysis.models.guidelines.trials import (
    CellsOf,
    Setting,
    Times,
    Trial,
    cells_in,
    times_in,
    trials_by,
)
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
from records.campaign import Campaign

#: The table of all tests.
TRIALS = "self-consistency-guidelines"


def setting_words(of: tuple[int, int, str, int], _: str) -> str:
    """Return a setting for people: the fields of its column."""
    ranks, nodes, group, scrub_bytes = of
    scrubbed = ", caches scrubbed" if scrub_bytes else ""
    return f"{ranks} ranks on {nodes} node(s), {group}{scrubbed}"


def trial_table(tests: list[Trial]) -> Table:
    """Return every test of a guideline."""
    columns = (
        Column("implementation", "implementation"), Column("guideline", "guideline"),
        Column("setting", "setting", Kind(setting_words, is_number=False),
               fields=("ranks (1)", "nodes (1)", "group", "scrub_bytes (B)")),
        Column("message_bytes", "bytes", GROUPED, "B"),
        Column("rounds", "rounds", COUNT, "1"), Column("factor", "factor", RATIO, "1"),
        interval("factor", "95% interval", "1"), Column("p_one_sided", unit="1"),
        Column("p_adjusted", "adjusted p", formatted(".2g"), "1"), Column("violation_shown"),
    )  # fmt: skip
    rows = [
        Row(
            (
                of.implementation, one.guideline,
                (of.ranks, of.nodes, of.group, of.scrub_bytes), one.message_bytes,
                one.ratio.pairs, *of_ratio(one.ratio), one.p_value, one.adjusted_p, one.violated,
            ),
            of.implementation, one.cells,
        )
        for one in tests
        for of in (one.setting,)
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
