"""Commands that hold a campaign against another one, or against all before it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from analysis.commands.campaigns import (
    ROOT,
    BaseOption,
    CampaignArgument,
    PagerOption,
    campaign_of,
    comparison_of,
    fail,
)

if TYPE_CHECKING:
    import polars

    from analysis.campaign import Campaign
    from analysis.campaign_comparison import CampaignComparison, Row
    from analysis.lost_cells import Untold
    from analysis.suspects import Explanation

app = typer.Typer()

REGRESSION_FOUND = 3
RunsOption = Annotated[Path, typer.Option(help="the folder of campaigns")]
RebuildOption = Annotated[bool, typer.Option("--rebuild", help="read every campaign again")]


def images_of(text: str) -> tuple[str, str]:
    """Return the two implementations of `--images`, or end with a sentence."""
    names = tuple(name.strip() for name in text.split(","))
    if len(names) != 2 or not all(names) or names[0] == names[1]:
        fail(f"--images {text!r} must name two implementations, as mpich-5.0.2,openmpi-5.0.11")
    return (names[0], names[1])


def compared(before: Campaign, after: Campaign, images: str | None) -> CampaignComparison:
    """Return the comparison of two campaigns with its caveats on stderr, or end with a sentence."""
    from analysis.campaign_comparison import IncomparableError, compare_campaigns

    try:
        found = compare_campaigns(before, after, images_of(images) if images else None)
    except IncomparableError as error:
        fail(str(error))
    say_limits(found.refused, found.caveats)
    say_lost(found.lost)
    return found


def say_limits(refused: Sequence[str], caveats: Sequence[str]) -> None:
    """Say on stderr what was not compared, and what else differs."""
    for sentence in refused:
        print(f"not compared: {sentence}", file=sys.stderr)
    for sentence in caveats:
        print(f"caveat: {sentence}", file=sys.stderr)


def say_lost(lost: Sequence[Untold]) -> None:
    """Say on stderr what an earlier campaign measured and the new one should have."""
    from analysis.lost_cells import lost_sentences

    for sentence in lost_sentences(lost):
        print(f"not measured: {sentence}", file=sys.stderr)


def explained(before: Campaign, after: Campaign, images: str | None) -> Explanation:
    """Return why two campaigns differ, or end with a sentence."""
    from analysis.campaign_comparison import IncomparableError
    from analysis.suspects import explain

    try:
        return explain(before, after, images_of(images) if images else None)
    except IncomparableError as error:
        fail(str(error))


def say_reasons(found: Explanation) -> None:
    """Say what moved between two campaigns, and what else differs, a line each."""
    from analysis.suspects import sentences

    for sentence in sentences(found):
        print(sentence)


def rows_of_history(runs: Path, rebuild: bool) -> polars.DataFrame:
    """Return what all campaigns measured; say on stderr what was left out."""
    from analysis.campaign import CampaignError
    from analysis.history_index import history_rows

    try:
        return history_rows(runs, lambda sentence: print(sentence, file=sys.stderr), rebuild)
    except CampaignError as error:
        fail(str(error))


@app.command()
def compare(
    campaign: CampaignArgument,
    other: Annotated[
        str | None, typer.Argument(help="a second campaign, whose numbers are over the first's")
    ] = None,
    images: Annotated[
        str | None,
        typer.Option(help="ONE,OTHER: these two, of one campaign or the first of one, the second "
                     "of the other"),
    ] = None,
    base: BaseOption = None,
    with_why: Annotated[
        bool, typer.Option("--why", help="of two campaigns: what differs, too, as by `why`")
    ] = False,
    pager: PagerOption = True,
) -> None:  # fmt: skip
    """Say which implementation, or campaign, is faster for what, in words."""
    from analysis.report import answer, tally
    from analysis.terminal import show

    if other is not None:
        if base:
            fail("--base is for implementations of one campaign; of two, the first is the base")
        from analysis.history_tables import comparison_table, group_sentences

        before, after = campaign_of(campaign), campaign_of(other)
        reasons = explained(before, after, images) if with_why else None
        found = reasons.comparison if reasons else compared(before, after, images)
        if found:
            bullets = [f"- {sentence}" for sentence in group_sentences(found)]
            show(comparison_table(found), pager, bullets)
        if reasons:
            if found:
                say_limits(found.refused, found.caveats)
                say_lost(found.lost)
            say_reasons(reasons)
            raise typer.Exit(0 if found else 1)
        return
    if with_why:
        fail("--why is for two campaigns; name the second")
    if images:
        from analysis.comparability import differences
        from analysis.comparison import compare as compare_cells

        pair = images_of(images)
        one = campaign_of(campaign)
        for name in pair:
            if name not in {launch.record.implementation for launch in one.sound()}:
                fail(f"{name} has no sound launch in {one.path.name}")
        one.launches = [x for x in one.launches if x.record.implementation in pair]
        for difference in differences(one.manifest, one.manifest, [pair]):
            print(f"caveat: {difference.sentence}", file=sys.stderr)
        comparison = compare_cells(one, pair[0])
    else:
        comparison = comparison_of(campaign, base)
    sentences = answer(comparison) + tally(comparison)
    show([], pager, sentences or ["Only one implementation was measured."])


@app.command()
def why(
    campaign: CampaignArgument,
    other: Annotated[str, typer.Argument(help="the second campaign")],
    images: Annotated[
        str | None,
        typer.Option(help="ONE,OTHER: the first of one campaign, the second of the other"),
    ] = None,
) -> None:
    """Say in words what differs between two campaigns, the largest suspect first."""
    say_reasons(explained(campaign_of(campaign), campaign_of(other), images))


@app.command()
def history(
    site: Annotated[str | None, typer.Option(help="only this site")] = None,
    experiment: Annotated[str | None, typer.Option(help="only this experiment")] = None,
    cell: Annotated[str, typer.Option(help="only cells whose name fits, as '*range=long*'")] = "*",
    least: Annotated[
        float, typer.Option(help="list changes of at least this size, as a share")
    ] = 0.0,
    most: Annotated[int, typer.Option(help="how many series, those that changed first")] = 40,
    runs: RunsOption = ROOT / "runs",
    rebuild: RebuildOption = False,
    pager: PagerOption = True,
) -> None:
    """List every cell and implementation over all campaigns, with the points where they changed."""
    from fnmatch import fnmatchcase

    import polars as pl

    from analysis.history import history as series_of
    from analysis.history_tables import change_sentences, history_table
    from analysis.terminal import show

    rows = rows_of_history(runs, rebuild)
    if rows.is_empty():
        fail(f"{runs} holds no campaign with a sound launch yet; measure one with: make run")
    chosen = rows
    for column, value in (("site", site), ("experiment", experiment)):
        if value is not None:
            chosen = chosen.filter(pl.col(column) == value)
    names = [name for name in chosen["cell"].unique() if fnmatchcase(name, cell)]
    chosen = chosen.filter(pl.col("cell").is_in(names))
    if chosen.is_empty():
        fail(
            "no campaign has such a cell; there are the sites "
            f"{', '.join(sorted(rows['site'].unique()))} and the experiments "
            f"{', '.join(sorted(rows['experiment'].unique()))}"
        )
    series = series_of(chosen)
    bullets = [f"- {sentence}" for sentence in change_sentences(runs, series, least)]
    show(history_table(series, most), pager, bullets)


@app.command()
def regress(
    campaign: CampaignArgument,
    against: Annotated[
        str, typer.Option(help="another campaign, or `history`: all earlier ones of its cells")
    ],
    margin: Annotated[
        float | None,
        typer.Option(help="how much worse is too much, as a share (else each metric's own)"),
    ] = None,
    junit: Annotated[Path | None, typer.Option(help="write a JUnit file too")] = None,
    runs: RunsOption = ROOT / "runs",
) -> None:
    """Look for what became worse, or was measured before and is not now.

    Exit with 3 if anything became worse, 1 on an error or for what was not measured, else with 0.
    """
    from analysis.campaign import CampaignError
    from analysis.campaign_comparison import (
        IncomparableError,
        compare_campaigns,
        refused_sentences,
    )
    from analysis.history import against_history
    from analysis.history_limits import caveats_of, without_refused
    from analysis.lost_cells import lost_since
    from analysis.regressions import tested, write_junit

    if margin is not None and not 0 <= margin < 10:
        fail("--margin must be a share from 0 on, as 0.05 for 5%")
    new = campaign_of(campaign)
    rows: list[Row] = []
    refused: list[Untold] = []
    nothing = ""
    try:
        if against == "history":
            frame = rows_of_history(runs, rebuild=False)
            lost = lost_since(new, frame, runs)
            frame, refused = without_refused(new, frame, runs)
            apart = {(one.cell, one.implementation) for one in refused}
            rows = [row for row in against_history(new, frame)
                    if (row.cell, row.verdict.implementation) not in apart]  # fmt: skip
            say_limits(refused_sentences(refused), caveats_of(new, frame, runs))
            if refused and not rows:
                nothing = f"nothing of {new.path.name} is compared with its history"
        else:
            both = compare_campaigns(campaign_of(against), new)
            rows, refused, lost = both.rows, both.refused_cells, both.lost
            say_limits(both.refused, both.caveats)
    except IncomparableError as error:
        refused, lost, nothing = error.refused_cells, error.lost, str(error)
    except CampaignError as error:
        fail(str(error))
    say_lost(lost)
    found = tested(rows, margin)
    told = [one for one in found if one.outcome != "cannot be told"]
    bad = [one for one in told if one.outcome == "regression"]
    if junit:
        try:
            write_junit(junit, f"{new.path.name} against {against}", found, refused, lost)
        except OSError as error:
            fail(f"{junit} cannot be written: {error.strerror}")
    if not told:
        sentence = found[0].sentence if found else "it has no sound launch of what is compared"
        fail(nothing or f"nothing of {new.path.name} can be told against {against}: {sentence}")
    for one in bad:
        print(f"regression: {one.row.cell}, {one.row.verdict.implementation}: {one.sentence}")
    apart = {(one.cell, one.implementation) for one in refused}
    print(
        f"{len(bad)} regressions in {len(told)} cells and implementations that can be told, "
        f"{len(found) - len(told)} that cannot, {len(apart)} "
        f"that are not compared, {len(lost)} that were not measured"
    )
    raise typer.Exit(REGRESSION_FOUND if bad else 1 if lost else 0)
