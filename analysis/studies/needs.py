"""What a test of a claim needs, from what the study declares and what a campaign has."""

from __future__ import annotations

from dataclasses import dataclass, field

from analysis.studies.declaration import Claim, Statement, Step, Study, Today
from analysis.studies.reading import Paper
from analysis.studies.relations import TodaysTables, families

#: The fewest rounds that give an interval.
FEWEST_ROUNDS = 2


@dataclass
class Needs:
    """What a claim's test lacks; `command` would measure it.

    With something in `missing` there is no number; with something in `blocking` the number is not
    of what is claimed; a caveat is a difference that a reader should know.
    """

    command: str
    differences: list[str]
    missing: list[str] = field(default_factory=list)
    blocking: list[str] = field(default_factory=list)
    caveats: list[str] = field(default_factory=list)


def base_tables(study: Study, table: str) -> list[str]:
    """Return the tables with rows of their own that a table is made of."""
    declared = study.tables[table]
    found = base_tables(study, declared.of) if declared.of else [table]
    return found + joined(study, declared.steps)


def joined(study: Study, steps: list[Step]) -> list[str]:
    """Return the tables with rows of their own that steps add."""
    return [name for step in steps if step.join for name in base_tables(study, step.join.table)]


def cells_wanted(study: Study, claim: Claim, name: str) -> list[str]:
    """Return the tables with rows of their own that a quantity is made of, once each."""
    quantity = claim.quantities[name]
    found = joined(study, quantity.steps)
    if quantity.of:
        found += base_tables(study, quantity.of)
    for other in quantity.from_ or []:
        found += cells_wanted(study, claim, other)
    return list(dict.fromkeys(found))


def experiments_of(study: Study, claim: Claim) -> dict[str, Today]:
    """Return the experiments that the statements for today take, with how they are read."""
    statements = claim.here if isinstance(claim.here, list) else []
    found: dict[str, Today] = {}
    for statement in statements:
        for table in cells_wanted(study, claim, statement.that) if statement.that else []:
            today = study.tables[table].today
            if today is not None:
                found.setdefault(today.experiment, today)
    return found


def families_wanted(study: Study, claim: Claim) -> list[str]:
    """Return the report's implementations that the statements for today take."""
    statements = claim.here if isinstance(claim.here, list) else []
    wanted = {family for one in statements for family in one.families or study.stands_for}
    return [family for family in study.stands_for if family in wanted]


def families_lacking(measured: TodaysTables, statement: Statement, tables: list[str]) -> list[str]:
    """Return the report's implementations that a statement takes and nothing stands for."""
    study = measured.study
    lacking: list[str] = []
    for table in tables:
        today = study.tables[table].today
        if today is not None:
            check = study.experiments[today.experiment].check
            found = families(study, measured.implementations(check))
            lacking += [
                name for name in statement.families or study.stands_for if name not in found
            ]
    return list(dict.fromkeys(lacking))


def command_for(paper: Paper, experiments: list[str]) -> str:
    """Return the command that measures what a claim needs."""
    chosen = [paper.study.experiments[name] for name in experiments]
    tier = "paper" if any(one.tier == "paper" for one in chosen) else "quick"
    site = paper.study.site if any(one.nodes > 1 for one in chosen) else "local"
    return f"make study PAPER={paper.name} SITE={site} TIER={tier} ROUNDS={paper.study.rounds}"


def needs_of(paper: Paper, claim: Claim, measured: TodaysTables | None) -> Needs:
    """Return what the test of a claim needs, and which of that a campaign lacks."""
    study = paper.study
    names = list(experiments_of(study, claim))
    chosen = [study.experiments[name] for name in names]
    needs = Needs(
        command_for(paper, names),
        [f"{one.check} differs from the report: {one.difference}" for one in chosen],
    )
    if measured is None:
        return needs
    for one in chosen:
        launches = [x for x in measured.campaign.sound() if x.record.experiment == one.check]
        if not launches:
            needs.missing.append(f"{one.check} was not run, or has no sound launch")
            continue
        for family in families_wanted(study, claim):
            if family not in families(study, measured.implementations(one.check)):
                standing = study.stands_for[family]
                needs.caveats.append(
                    f"no implementation measured by {one.check} stands for {family}; it takes "
                    f"one of {', '.join(standing.implementations)}"
                )
        if max(launch.record.nodes for launch in launches) < one.nodes:
            needs.blocking.append(
                f"the claim is about {one.nodes} nodes or more and {one.check} ran on one, where "
                f"messages go through memory; it takes SITE={study.site}"
            )
        rounds = {launch.record.round for launch in launches}
        if len(rounds) < FEWEST_ROUNDS:
            needs.caveats.append(
                f"{one.check} has one round, and an interval takes {FEWEST_ROUNDS} or more "
                f"(ROUNDS={study.rounds})"
            )
        tiers = {launch.record.tier for launch in launches}
        if one.tier == "paper" and "paper" not in tiers:
            needs.caveats.append(
                f"{one.check} was run in tier {', '.join(sorted(tiers))}; TIER=paper has the "
                "report's cells"
            )
    return needs
