"""Judge a statement about many cells: every one, some, or a share of them.

The least of many noisy numbers lies below the least of the true ones, and the largest above, so no
interval of an extreme, nor of a count of winners, holds the truth as often as it says. Each cell
is judged by itself instead, and what is said of all of them follows from how many were told: the
test of a partial conjunction (Benjamini and Heller, Biometrics 64, 2008) with Bonferroni's bound,
which holds however the cells' noise hangs together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from analysis.studies.declaration import Claim, Statement
from analysis.studies.one_number import (
    FAILS,
    HOLDS,
    UNTOLD,
    OneNumber,
    StatementJudgement,
    asked_of,
    interval_of,
    judged,
    label_of,
    number_text,
    rounds_text,
    untold_because,
)
from analysis.studies.relations import Cells
from inference.intervals import CONFIDENCE

#: How many cells a sentence names.
NAMED = 3
#: A cell's numbers: for each of its parts one number a round.
Parts = list[list[float]]


def asked_in_words(statement: Statement) -> str:
    """Return what a statement says, and for how many cells."""
    share = statement.cells
    many = f"{share} cell" if isinstance(share, str) else f"at least {share:.0%} of the cells"
    return f"{asked_of(statement)[2]} in {many}"


def least_number(statement: Statement, cells: int) -> int:
    """Return for how many cells it must hold for a statement to be true."""
    if statement.cells == "every":
        return cells
    if statement.cells == "some":
        return 1
    return math.ceil(float(statement.cells or 1) * cells - 1e-9)


def numbers_of(parts: Parts, scale: str, confidence: float, printed: bool) -> list[OneNumber]:
    """Return each part of a cell with its interval; what a report prints has none."""
    if printed:
        return [OneNumber(values[0]) for values in parts]
    return [interval_of(values, scale, confidence) for values in parts]


def told_of(statement: Statement, number: OneNumber, confidence: float) -> str:
    """Return what a number says about a statement at a confidence."""
    if number.rounds is None:
        value = float(number.value or 0.0)
        return judged(statement, value, value)
    if number.interval is None or untold_because(number, confidence):
        return UNTOLD
    return judged(statement, number.interval.low, number.interval.high)


def by_cell(by_round: Sequence[Cells]) -> dict[str, Parts]:
    """Return each cell's parts over the rounds."""
    found: dict[str, Parts] = {}
    for cells in by_round:
        for name, numbers in cells.items():
            parts = found.setdefault(name, [[] for _ in numbers])
            for part, number in zip(parts, numbers, strict=True):
                part.append(number)
    return found


def judged_cells(
    statement: Statement, cells: dict[str, Parts], scale: str, stricter: float, printed: bool
) -> dict[str, list[tuple[OneNumber, str]]]:
    """Return each cell's numbers with what they say at a level that is stricter by a factor."""
    confidence = 1 - (1 - CONFIDENCE) / stricter
    return {
        name: [
            (number, told_of(statement, number, confidence))
            for number in numbers_of(parts, scale, confidence, printed)
        ]
        for name, parts in cells.items()
    }


def listed(texts: Sequence[str]) -> str:
    """Return the first of many texts, and how many more there are."""
    more = [f"and {len(texts) - NAMED} more"] if len(texts) > NAMED else []
    return "; ".join([*texts[:NAMED], *more])


def found_in_cells(
    claim: Claim,
    statement: Statement,
    by_round: Sequence[Cells],
    of: str = "",
    among: int = 1,
    printed: bool = False,
    lacking: Sequence[str] = (),
    to_hold_among: int = 1,
) -> StatementJudgement:
    """Return the cells' judgement on a statement, from their numbers in each round.

    Of n cells k must satisfy it. That is shown if k cells do, each at a level that is
    stricter by n-k+1: if it is false, that many do not, and one of them was misjudged. That
    it is false is shown if n-k+1 do not, stricter by k, and by `among`, the number of statements
    it belongs to; `to_hold_among` is that number where one that holds is a claim of its own.
    `printed` numbers, of a report, are taken as they are. Cells of `lacking` should
    have a number and have none: they count among the n, and are not judged.
    """
    quantity = claim.quantities[str(statement.that)]
    label, asked = label_of(claim, statement), asked_in_words(statement)
    cells = by_cell(by_round)
    if not cells:
        whose = "tables have" if printed else "campaign has"
        return StatementJudgement(
            label, None, asked, UNTOLD, f"the {whose} none of the cells for it", of
        )
    count = len(cells) + len(lacking)
    needed = least_number(statement, count)
    against = count - needed + 1

    # A cell is so if all of its parts are, and is not if one is not (Bonferroni over the parts).
    parts = len(quantity.expressions())
    stricter = against * to_hold_among
    to_hold = judged_cells(statement, cells, quantity.scale, stricter, printed)
    to_fail = judged_cells(statement, cells, quantity.scale, needed * among * parts, printed)
    held = [name for name, of_cell in to_hold.items() if all(one == HOLDS for _, one in of_cell)]
    failed = [name for name, of_cell in to_fail.items() if any(one == FAILS for _, one in of_cell)]
    open_ = [name for name in cells if name not in held and name not in failed]
    verdict = HOLDS if len(held) >= needed else FAILS if len(failed) >= against else UNTOLD
    counted = f"{len(held)} of {count} cells satisfy it, {len(failed)} do not"
    if not printed:
        untold = len(open_) + len(lacking)
        counted += f", {untold} inconclusive ({rounds_text(len(by_round))})"
    reasons = (
        [f"not measured with every implementation it needs: {listed(lacking)}"] if lacking else []
    )
    if verdict != HOLDS and not printed and len(by_round) == 1:
        reasons.append("one round has no interval")
    elif verdict != HOLDS:
        names = failed if verdict == FAILS else [*failed, *open_]
        numbers = [
            f"{name}: {' and '.join(number_text(number) for number, _ in to_fail[name])}"
            for name in names
        ]
        reasons += [listed(numbers)] if numbers else []
    return StatementJudgement(
        label, None, asked, verdict, "; ".join(reasons), of, counted, statement.reading
    )
