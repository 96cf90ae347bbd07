"""A claim's three answers: by the report's own tables, by a campaign, and what a test would need.

docs/method/studies.md has the rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from analysis.studies.declaration import Claim, Statement, StudyError
from analysis.studies.many_cells import found_in_cells
from analysis.studies.needs import cells_wanted, families_lacking, needs_of
from analysis.studies.one_number import (
    FAILS,
    HOLDS,
    IN_PART,
    UNTOLD,
    OneNumber,
    StatementJudgement,
    asked_of,
    found_of,
    interval_of,
    label_of,
)
from analysis.studies.reading import Paper
from analysis.studies.relations import (
    Cells,
    CellValue,
    Report,
    TableSource,
    TodaysTables,
    cells_of,
    quantity_of,
)
from inference.intervals import CONFIDENCE

#: The words for what a test still needs.
TESTED, TESTABLE, UNTESTABLE = "tested here", "testable", "not tested by a study"


@dataclass(frozen=True)
class Answer:
    """A verdict with the findings that it follows from."""

    verdict: str
    findings: list[StatementJudgement] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def sentences(self) -> list[str]:
        """Return the sentences that support the verdict."""
        return [one.sentence for one in self.findings] + self.notes


@dataclass(frozen=True)
class Evaluated:
    """A claim with its answers; `here` is None without a campaign.

    `cells` has the report's numbers of each quantity of many cells, `values` those of the others.
    """

    claim: Claim
    values: dict[str, CellValue]
    cells: dict[str, Cells]
    report: Answer
    here: Answer | None
    needed: Answer


def together(findings: list[StatementJudgement], printed: bool = False) -> Answer:
    """Return the verdict over a claim's statements.

    It holds if all do. It holds in part if some do and others do not; of a report's own tables
    (`printed`), also if what they print says nothing of the others, since no further round will.
    Where none holds, it fails if any does.
    """
    verdicts = [one.verdict for one in findings]
    if not verdicts:
        none = "The report prints nothing from which it could be computed."
        return Answer(UNTOLD, findings, [none])
    count = verdicts.count(HOLDS)
    if count == len(verdicts):
        return Answer(HOLDS, findings)
    hold = "holds" if count == 1 else "hold"
    part = [f"{count} of {len(verdicts)} statements {hold}."] if count else []
    if count and (printed or FAILS in verdicts):
        return Answer(IN_PART, findings, part)
    never = sum(one.is_never_told for one in findings)
    if never and FAILS not in verdicts:
        part.append(
            f"{never} of {len(verdicts)} statements cannot be decided by any campaign, so the "
            "claim stays inconclusive however many rounds are measured."
        )
    return Answer(FAILS if FAILS in verdicts else UNTOLD, findings, part)


def behind(claim: Claim, name: str) -> list[str]:
    """Return a quantity and those that it is computed from, in the order to compute them in."""
    others = [n for n in claim.quantities[name].from_ or [] if n in claim.quantities]
    return [n for other in others for n in behind(claim, other)] + [name]


def values_of(
    source: TableSource, paper: Paper, claim: Claim, names: Sequence[str] | None = None
) -> dict[str, CellValue]:
    """Return the quantities of a claim from one source, or those named; not those of many cells."""
    values: dict[str, CellValue] = dict(claim.claimed)
    for name in names or claim.quantities:
        quantity = claim.quantities[name]
        if quantity.each is None:
            values[name] = quantity_of(source, quantity, values, place_of(paper, claim, name))
    return values


def place_of(paper: Paper, claim: Claim, name: str) -> str:
    """Return where a quantity is declared."""
    return f"{paper.folder / 'claims.yaml'}: claim {claim.id}: quantities.{name}"


def same_kind(paper: Paper, claim: Claim, statement: Statement, value: CellValue) -> None:
    """Raise StudyError if a text is compared with numbers, or a number with a text."""
    if value is not None and isinstance(value, str) != (statement.equals is not None):
        kind = (
            "a text; compare it with equals"
            if isinstance(value, str)
            else "no text, as equals asks"
        )
        file = paper.folder / "claims.yaml"
        raise StudyError(
            f"{file}: claim {claim.id}: {statement.that} is {kind}, in the report alone"
        )


def by_report(
    paper: Paper, claim: Claim, values: dict[str, CellValue], cells: dict[str, Cells]
) -> Answer:
    """Return whether a claim follows from the report's own tables."""
    findings = []
    for one in claim.report:
        if one.untold is not None:
            findings.append(
                StatementJudgement(one.untold, None, "", UNTOLD, "not in the report's tables")
            )
        elif one.that in cells:
            findings.append(found_in_cells(claim, one, [cells[one.that]], printed=True))
        else:
            value = values[str(one.that)]
            same_kind(paper, claim, one, value)
            findings.append(found_of(claim, one, OneNumber(value)))
    return together(findings, printed=True)


def complete_rounds(
    measured: TodaysTables, tables: list[str], implementation: str | None
) -> list[int]:
    """Return the rounds that have every cell of the tables that any round has.

    A round that lacks a cell would compare other things than the others do.
    """
    rounds: set[int] | None = None
    for name in tables:
        cells = measured.cells(name)
        if cells.is_empty():
            return []
        if implementation:
            cells = cells.filter(cells["implementation"] == implementation)
        others = [column for column in cells.columns if column != "round"]
        every = cells.select(others).n_unique()
        counted = cells.unique().group_by("round").len()
        whole = set(counted.filter(counted["len"] == every)["round"].to_list())
        rounds = whole if rounds is None else rounds & whole
    return sorted(rounds or ())


def lacks_launches(measured: TodaysTables, tables: list[str]) -> bool:
    """Return whether an implementation lacks a cell of the tables in all rounds, unlike another."""
    return any(
        measured.completed.base(name, table).height != measured.base(name, table).height
        for name, table in ((name, measured.study.tables[name]) for name in tables)
    )


def one_here(
    measured: TodaysTables,
    claim: Claim,
    statement: Statement,
    implementation: str | None = None,
    among: int = 1,
    in_part: bool = False,
) -> StatementJudgement:
    """Return what a campaign says about one statement.

    A claim does not hold, or in part only, with any of its statements, so of `among` statements one
    is said to fail only if it does at a level that is stricter by as much (Bonferroni). Where some
    hold and others fail, so is each that holds (`in_part`): any of them would be one too many.
    """
    if statement.untold is not None:
        return StatementJudgement(
            statement.untold, None, "", UNTOLD, "not a number that a single round gives",
            is_never_told=True,
        )  # fmt: skip
    name = str(statement.that)
    quantity = claim.quantities[name]
    label = label_of(claim, statement)
    asked = asked_of(statement)[2]
    tables = cells_wanted(measured.study, claim, name)
    of = implementation or ""
    lacking = families_lacking(measured, statement, tables)
    if lacking:
        reason = f"no implementation that was measured stands for {' and '.join(lacking)}"
        return StatementJudgement(label, None, asked, UNTOLD, reason, of)
    rounds = complete_rounds(measured, tables, implementation)
    if not rounds:
        return StatementJudgement(
            label, None, asked, UNTOLD, "none of its cells was measured in a complete round", of
        )
    sources = [measured.in_round(number, implementation) for number in rounds]
    if quantity.each:
        where = place_of(measured.paper, claim, name)
        by_round = [cells_of(source, quantity, where) for source in sources]
        unmeasured: list[str] = []
        if lacks_launches(measured, tables):
            whole = [measured.completed.in_round(number, implementation) for number in rounds]
            wanted = (cell for source in whole for cell in cells_of(source, quantity, where))
            has = {cell for cells in by_round for cell in cells}
            unmeasured = [cell for cell in dict.fromkeys(wanted) if cell not in has]
        return found_in_cells(
            claim, statement, by_round, of, among, lacking=unmeasured,
            to_hold_among=among if in_part else 1,
        )  # fmt: skip
    values = [
        values_of(source, measured.paper, claim, behind(claim, name))[name] for source in sources
    ]
    for value in values:
        same_kind(measured.paper, claim, statement, value)
    told = [value for value in values if isinstance(value, float)]
    if not told:
        return StatementJudgement(
            label, None, asked, UNTOLD, "the campaign has none of the cells for it", of
        )
    finding = found_of(claim, statement, interval_of(told, quantity.scale), of)
    corrected = {FAILS: "outside", HOLDS: "inside"} if in_part else {FAILS: "outside"}
    if finding.verdict in corrected and among > 1:
        stricter = 1 - (1 - CONFIDENCE) / among
        wide = interval_of(told, quantity.scale, stricter)
        if found_of(claim, statement, wide, of, stricter).verdict != finding.verdict:
            side = corrected[finding.verdict]
            reason = f"one of {among} may lie this little {side} by chance"
            return replace(finding, verdict=UNTOLD, reason=reason)
    return finding


def implementations_for(
    measured: TodaysTables, claim: Claim, statement: Statement
) -> list[str | None]:
    """Return the implementations to test separately; None stands for all that take part."""
    tables = cells_wanted(measured.study, claim, str(statement.that)) if statement.that else []
    declared = measured.study.tables[tables[0]].today if tables else None
    if measured.study.stands_for or declared is None:
        return [None]
    check = measured.study.experiments[declared.experiment].check
    return [*measured.implementations(check)] or [None]


def by_campaign(measured: TodaysTables, claim: Claim) -> Answer:
    """Return whether a claim holds in a campaign."""
    if isinstance(claim.here, str):
        return Answer(UNTOLD, notes=[claim.here])
    needs = needs_of(measured.paper, claim, measured)
    if needs.missing:
        return Answer(UNTOLD, notes=[f"{one}." for one in needs.missing])
    asked = [
        (statement, name)
        for statement in claim.here
        for name in implementations_for(measured, claim, statement)
    ]
    answer = together([one_here(measured, claim, *one, among=len(asked)) for one in asked])
    if answer.verdict == IN_PART:
        answer = together(
            [one_here(measured, claim, *one, among=len(asked), in_part=True) for one in asked]
        )
    if needs.blocking and answer.verdict != UNTOLD:
        # The numbers are shown, but they measure something other than the claim.
        shown = [
            replace(one, verdict=UNTOLD, reason="; ".join(needs.blocking))
            for one in answer.findings
        ]
        return Answer(UNTOLD, shown)
    return answer


def what_is_needed(
    paper: Paper, claim: Claim, measured: TodaysTables | None, here: Answer | None
) -> Answer:
    """Return what a test of a claim needs, or still needs after a campaign."""
    if isinstance(claim.here, str):
        return Answer(UNTESTABLE, notes=[claim.here])
    if all(one.untold is not None for one in claim.here):
        said = "; ".join(str(one.untold) for one in claim.here)
        return Answer(UNTESTABLE, notes=[f"No campaign decides what it says: {said}."])
    needs = needs_of(paper, claim, measured)
    lacking = [*needs.missing, *needs.blocking, *needs.caveats]
    notes = [f"{one[0].upper()}{one[1:]}." for one in (*lacking, *needs.differences)]
    open_ = [one for one in here.findings if one.verdict == UNTOLD] if here else []
    # What no campaign decides needs no further one.
    told = here is not None and (
        here.verdict != UNTOLD or (bool(open_) and all(one.is_never_told for one in open_))
    )
    return Answer(TESTED if told else TESTABLE, notes=[*notes, f"Command: {needs.command}"])


def evaluate(paper: Paper, measured: TodaysTables | None = None) -> list[Evaluated]:
    """Return every claim with its answers; raise StudyError with file, claim and key."""
    source = Report(paper)
    found = []
    for claim in paper.claims:
        values = values_of(source, paper, claim)
        cells = {
            name: cells_of(source, quantity, place_of(paper, claim, name))
            for name, quantity in claim.quantities.items()
            if quantity.each
        }
        here = by_campaign(measured, claim) if measured else None
        found.append(
            Evaluated(
                claim=claim,
                values=values,
                cells=cells,
                report=by_report(paper, claim, values, cells),
                here=here,
                needed=what_is_needed(paper, claim, measured, here),
            )
        )
    return found
