"""The command that judges results of other programs."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from analysis.commands.campaigns import PagerOption, fail
from analysis.commands.history import COULD_NOT_SEE, REGRESSION_FOUND
from analysis.commands.nights import INCOMPLETE, NOT_JUDGED

if TYPE_CHECKING:
    from analysis.foreign.judging import Judgement
    from analysis.foreign.page import ToldJudgement
    from analysis.foreign.samples import Directions
    from records.foreign.reading import RunSet

app = typer.Typer()

#: How many sentences on what is left out go to the terminal; a page has them all.
MOST_SAID = 12
ONE_RUN = (
    "one run on each side says nothing about how much runs vary, and iterations within a process "
    "are not repetitions: run each at least three times, with a file or a line for each run"
)


@app.command()
def judge(
    base: Annotated[str, typer.Argument(help="the runs to compare with: a file or a folder")],
    new: Annotated[
        str | None,
        typer.Argument(help="the new runs; without them, the newest of BASE is compared with those "
                            "before it"),
    ] = None,
    base_where: Annotated[
        list[str] | None, typer.Option(help="KEY=VALUE: only those runs of BASE, such as "
                                            "environ=gnu; repeat the option for more")
    ] = None,
    new_where: Annotated[
        list[str] | None, typer.Option(help="the same for the new runs")
    ] = None,
    each_size: Annotated[
        bool, typer.Option("--each-size", help="judge every message size by itself")
    ] = False,
    lower_is_better: Annotated[
        list[str] | None, typer.Option(help="pattern of names for which lower is better")
    ] = None,
    higher_is_better: Annotated[
        list[str] | None, typer.Option(help="pattern of names for which higher is better")
    ] = None,
    margin: Annotated[
        float, typer.Option(help="how far from 1 a ratio may be and still count as equal")
    ] = 0.02,
    slowdown: Annotated[
        float, typer.Option(help="the slowdown, as a fraction, that every comparison must be able "
                                 "to see with a probability of 80% for exit code 0")
    ] = 0.25,
    html: Annotated[Path | None, typer.Option(help="write a page, too")] = None,
    markdown: Annotated[Path | None, typer.Option(help="write Markdown, too")] = None,
    pager: PagerOption = False,
) -> None:  # fmt: skip
    """Judge other programs' results: two sets of runs, or the newest of a history.

    Reads ReFrame's performance logs, its sqlite database and reports, the text of OSU's and
    Intel's MPI benchmarks, and JSON in the form of Google's benchmark library.

    Exit with 3 if something became slower by more than the margin; else with 4 if something is
    lost: the base has it and the new runs do not, or a new run failed or cannot be read; else with
    7 if nothing could be judged, as of too few runs; else with 5 if some comparison could not be
    made, is inconclusive or could not have seen a slowdown of --slowdown; else with 0. 1 is an
    error, with a sentence, and 2 a wrong command line.
    """
    from analysis.foreign.judging import in_short
    from analysis.foreign.samples import Directions
    from analysis.tables.terminal import show
    from records.causes import harmless
    from records.foreign.run import ForeignError

    for name, value, most in (("--margin", margin, 10.0), ("--slowdown", slowdown, 1000.0)):
        if not (math.isfinite(value) and 0 < value < most):
            fail(f"{name} must be a fraction above 0, such as 0.05 for 5%")
    # An empty word would name the folder that one is in.
    if not base.strip() or (new is not None and not new.strip()):
        fail("the name of a file or folder is empty")
    directions = Directions(lower_is_better or [], higher_is_better or [])
    chosen = (labels_of(base_where), labels_of(new_where))
    try:
        sets = read_sets(Path(base), None if new is None else Path(new), chosen)
        judgement, told = (
            told_of_two(sets, chosen, directions, margin, slowdown, each_size)
            if len(sets) > 1
            else told_of_history(sets[0], chosen[0], directions, margin, slowdown, each_size)
        )
    except ForeignError as error:
        fail(str(error))
    for sentence in told.left_out[:MOST_SAID]:
        print(f"left out: {harmless(sentence)}", file=sys.stderr)
    if len(told.left_out) > MOST_SAID:
        print(f"left out: {len(told.left_out) - MOST_SAID} more; --html or --markdown has all",
              file=sys.stderr)  # fmt: skip
    if new is not None and not (judgement.rows or judgement.unjudged or judgement.failed):
        fail(
            f"the two have nothing in common that can be compared: the base has "
            f"{in_short(judgement.lost)}; where their places differ, choose the runs of each by "
            "--base-where and --new-where"
        )
    show(told.table, pager, [f"- {harmless(one)}" for one in [*told.changes, *told.answer]])
    write(told, html, markdown)
    code = exit_code(judgement, slowdown)
    if code == NOT_JUDGED:
        pairs = max((row.verdict.ratio.pairs for row in judgement.rows), default=2)
        words = ONE_RUN if pairs < 2 and new is not None else "nothing could be judged"
        print(f"{words}{'' if judgement.unjudged else ': make more runs'}", file=sys.stderr)
    raise typer.Exit(code)


def exit_code(judgement: Judgement, needed: float) -> int:
    """Return what a gate makes of a judgement; it is never 0 without having seen anything."""
    if judgement.having(needed, "worse"):
        return REGRESSION_FOUND
    if judgement.lost or judgement.failed:
        return INCOMPLETE
    if not judgement.told:
        return NOT_JUDGED
    unseen = judgement.having(needed, "inconclusive", "could not be seen")
    return COULD_NOT_SEE if unseen or judgement.unjudged else 0


def labels_of(words: Sequence[str] | None) -> dict[str, str]:
    """Return the labels of options, or end with a sentence."""
    found = {}
    for word in words or ():
        key, equals, value = word.partition("=")
        if not (key and equals and value):
            fail(f"{word!r} must be KEY=VALUE, such as environ=gnu")
        found[key] = value
    return found


def read_sets(
    base: Path, new: Path | None, where: tuple[dict[str, str], dict[str, str]]
) -> list[RunSet]:
    """Return the sets; raises ForeignError where they are none, or share a run."""
    from records.counting import how_many
    from records.foreign.reading import chosen, read_set
    from records.foreign.run import ForeignError

    if new is None:
        if where[1]:
            raise ForeignError("--new-where is for two sets; name the new one")
        return [chosen(read_set(base), where[0])]
    first = read_set(base)
    second = first if new.resolve() == base.resolve() else read_set(new)
    found = [chosen(first, where[0]), chosen(second, where[1])]
    if shared := found[0].identities & found[1].identities:
        run = next(run for run in found[0].runs if run.identity in shared)
        raise ForeignError(
            f"{how_many(len(shared), 'run is', 'runs are')} in both sets, such as {run.where}: a "
            "run cannot be compared with itself"
        )
    if found[0].path.resolve() == found[1].path.resolve() and not (where[0] and where[1]):
        raise ForeignError(
            f"{base} was given as both sets; name two, or choose runs of each with --base-where "
            "and --new-where"
        )
    return found


def told_apart(paths: Sequence[Path]) -> list[str]:
    """Return the ends of two paths, as long as it takes to tell one from the other."""
    most = max(len(path.parts) for path in paths)
    ends = [[str(Path(*path.parts[-count:])) for path in paths] for count in range(1, most + 1)]
    return next((names for names in ends if len(set(names)) > 1), ends[0] if ends else ["."] * 2)


def told_of_two(
    sets: Sequence[RunSet], chosen: Sequence[dict[str, str]], directions: Directions,
    margin: float, slowdown: float, each_size: bool,
) -> tuple[Judgement, ToldJudgement]:  # fmt: skip
    """Return the judgement of two sets, and what is told of it."""
    from analysis.foreign.judging import compared
    from analysis.foreign.page import ToldJudgement
    from analysis.foreign.samples import samples_of
    from analysis.foreign.tables import answer, judgement_table

    keys = chosen[0].keys() | chosen[1].keys()
    first, second = (samples_of(one.runs, keys, each_size) for one in sets)
    judgement = compared(
        (first, second), sets[1].left_out, margin, directions, ("the base", "the new runs"), keys
    )
    names = [
        " ".join([name, *(f"{k}={v}" for k, v in where.items())])
        for name, where in zip(told_apart([one.path for one in sets]), chosen, strict=True)
    ]
    said = [left.sentence for one in sets for left in one.left_out]
    left_out = [*said, *judgement.not_compared, *judgement.unjudged]
    return judgement, ToldJudgement(
        judgement_table(judgement.rows, f"{names[1]} against {names[0]}"),
        [("base", names[0], len(sets[0].runs)), ("new", names[1], len(sets[1].runs))],
        answer(judgement, slowdown), left_out=list(dict.fromkeys(left_out)),
    )  # fmt: skip


def told_of_history(
    runs: RunSet, chosen: dict[str, str], directions: Directions, margin: float, slowdown: float,
    each_size: bool,
) -> tuple[Judgement, ToldJudgement]:  # fmt: skip
    """Return the judgement of the newest runs of a set, and what is told of it."""
    from analysis.foreign.newest import newest_against_earlier
    from analysis.foreign.page import ToldJudgement
    from analysis.foreign.samples import samples_of
    from analysis.foreign.tables import answer, changes_of, judgement_table

    samples = samples_of(runs.runs, chosen.keys(), each_size)
    history = newest_against_earlier(samples, runs.left_out, margin, directions, chosen.keys())
    judgement = history.judgement
    name = runs.path.name or str(runs.path)
    table = judgement_table(
        judgement.rows, f"The newest of {name} against those before it", "earlier", "newest"
    )
    table.notes.append(
        f"Runs are in the order of {history.order}. Runs of one ReFrame session, or of one hour "
        "where no session is known, count as one value, their median. The newest is compared with "
        "those since the last change of level."
    )
    return judgement, ToldJudgement(
        table, [("history", name, len(runs.runs))], answer(judgement, slowdown),
        changes_of(history),
        list(dict.fromkeys([*(one.sentence for one in runs.left_out), *judgement.not_compared,
                            *judgement.unjudged])),
    )  # fmt: skip


def write(told: ToldJudgement, html: Path | None, markdown: Path | None) -> None:
    """Write the page and the Markdown that were asked for, or end with a sentence."""
    from analysis.foreign import page
    from records.files import write_whole

    for path, text in ((html, page.html), (markdown, page.markdown)):
        if path is None:
            continue
        try:
            write_whole(path, text(told))
        except OSError as error:
            fail(f"{path} cannot be written: {error.strerror or error}")
        print(path)
