"""Commands that compare a campaign with another one, or with all before it."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from analysis.commands.campaigns import (
    RUNS,
    BaseOption,
    CampaignArgument,
    PagerOption,
    campaign_of,
    comparison_of,
    fail,
)
from records import layout

if TYPE_CHECKING:
    import polars

    from analysis.history.lost_cells import UntoldCell
    from analysis.history.series import Series
    from analysis.history.suspects import Explanation
    from analysis.history.two_campaigns import CampaignComparison, ComparedCell
    from records.campaign import Campaign

app = typer.Typer()

REGRESSION_FOUND, COULD_NOT_SEE = 3, 5
RunsOption = Annotated[Path, typer.Option(help="the folder of campaigns")]
RebuildOption = Annotated[bool, typer.Option("--rebuild", help="read every campaign again")]


def images_of(text: str) -> tuple[str, str]:
    """Return the two implementations of `--images`, or end with a sentence."""
    names = tuple(name.strip() for name in text.split(","))
    if len(names) != 2 or not all(names) or names[0] == names[1]:
        fail(f"--images {text!r} must name two implementations, such as mpich-5.0.2,openmpi-5.0.11")
    return (names[0], names[1])


def compared(before: Campaign, after: Campaign, images: str | None) -> CampaignComparison:
    """Return the comparison of two campaigns with its caveats on stderr, or end with a sentence."""
    from analysis.history.two_campaigns import IncomparableError, compare_campaigns

    try:
        found = compare_campaigns(before, after, images_of(images) if images else None)
    except IncomparableError as error:
        fail(str(error))
    say_limits(found.refused, found.caveats)
    say_lost(found.lost)
    return found


def say_limits(refused: Sequence[str], caveats: Sequence[str]) -> None:
    """Report on stderr what was not compared, and what else differs."""
    for sentence in refused:
        print(f"not compared: {sentence}", file=sys.stderr)
    for sentence in caveats:
        print(f"caveat: {sentence}", file=sys.stderr)


def say_lost(lost: Sequence[UntoldCell]) -> None:
    """Report on stderr what an earlier campaign measured and the new one should have."""
    from analysis.history.lost_cells import lost_sentences

    for sentence in lost_sentences(lost):
        print(sentence, file=sys.stderr)


def explained(before: Campaign, after: Campaign, images: str | None) -> Explanation:
    """Return why two campaigns differ, or end with a sentence."""
    from analysis.history.suspects import explain
    from analysis.history.two_campaigns import IncomparableError

    try:
        return explain(before, after, images_of(images) if images else None)
    except IncomparableError as error:
        fail(str(error))


def say_reasons(found: Explanation, pager: bool) -> None:
    """Print what moved between two campaigns, and what else differs, one line each."""
    from analysis.history.suspects import sentences
    from analysis.tables.terminal import show

    show([], pager, list(sentences(found)))


def rows_of_history(runs: Path, rebuild: bool) -> polars.DataFrame:
    """Return what all campaigns measured; report on stderr what was left out."""
    from analysis.history.index import history_rows
    from records.base import CampaignError

    try:
        return history_rows(runs, lambda sentence: print(sentence, file=sys.stderr), rebuild)
    except CampaignError as error:
        fail(str(error))


@app.command()
def compare(
    campaign: CampaignArgument,
    other: Annotated[
        str | None, typer.Argument(help="a second campaign, compared with the "
                                        "first (ratios are second over first)")
    ] = None,
    images: Annotated[
        str | None,
        typer.Option(help="ONE,OTHER: two images, either both of one campaign, or ONE of the "
                          "first campaign and OTHER of the second"),
    ] = None,
    base: BaseOption = None,
    with_why: Annotated[
        bool, typer.Option("--why", help="for two campaigns, also print what "
                                         "differs between them, as `why` does")
    ] = False,
    pager: PagerOption = True,
) -> None:  # fmt: skip
    """Print which implementation, or campaign, is faster for what, in words."""
    from analysis.comparison.answer import answer, tally
    from analysis.tables.terminal import show

    if other is not None:
        if base:
            fail("--base is for implementations of one campaign; of two, the first is the base")
        from analysis.history.tables import comparison_table, group_sentences

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
            say_reasons(reasons, pager)
            raise typer.Exit(0 if found else 1)
        return
    if with_why:
        fail("--why is for two campaigns; name the second")
    if images:
        from analysis.comparison.caveats.comparability import differences
        from analysis.comparison.compare import compare as compare_cells

        pair = images_of(images)
        one = campaign_of(campaign)
        for name in pair:
            if name not in {launch.record.implementation for launch in one.sound()}:
                fail(f"{name} has no sound launch in {one.path.name}")
        one.launches = [x for x in one.launches if x.record.implementation in pair]
        for difference in differences(one.manifest.facts, one.manifest.facts, [pair]):
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
        typer.Option(help="ONE,OTHER: the first campaign's image and the second's"),
    ] = None,
    pager: PagerOption = True,
) -> None:
    """Print in words what differs between two campaigns, the largest suspect first."""
    say_reasons(explained(campaign_of(campaign), campaign_of(other), images), pager)


@app.command()
def history(
    site: Annotated[str | None, typer.Option(help="only this site")] = None,
    experiment: Annotated[str | None, typer.Option(help="only this experiment")] = None,
    cell: Annotated[
        str, typer.Option(help="only cells whose name matches, such as '*range=long*'")
    ] = "*",
    least: Annotated[
        float, typer.Option(help="list changes of at least this size, as a fraction")
    ] = 0.0,
    most: Annotated[
        int, typer.Option(help="how many series to show; those that changed come first")
    ] = 40,
    html: Annotated[
        Path | None, typer.Option(help="write the page of all nights there instead")
    ] = None,
    otava: Annotated[
        Path | None, typer.Option(help="write CSV files for Apache Otava into that folder instead")
    ] = None,
    grafana: Annotated[
        Path | None, typer.Option(help="write the changes as Grafana's annotations there instead")
    ] = None,
    runs: RunsOption = RUNS,
    rebuild: RebuildOption = False,
    pager: PagerOption = True,
) -> None:
    """List every cell and implementation over all campaigns, with the points where they changed."""
    from fnmatch import fnmatchcase

    import polars as pl

    from analysis.history.series import history as series_of
    from analysis.history.tables import change_sentences, history_table
    from analysis.tables.terminal import show
    from records.campaign import is_imported

    if most < 1:
        fail("--most must be 1 or more")
    rows = rows_of_history(runs, rebuild)
    if rows.is_empty():
        other = sum(is_imported(one.parent) for one in runs.glob("*/manifest.json"))
        of_others = f" of this machine: {other} came from others" if other else ""
        fail(
            f"{runs} holds no campaign with a sound launch yet{of_others}; measure one with: make "
            "run"
        )
    chosen = rows
    for column, value in (("site", site), ("experiment", experiment)):
        if value is not None:
            chosen = chosen.filter(pl.col(column) == value)
    names = [name for name in chosen["cell"].unique() if fnmatchcase(name, cell)]
    chosen = chosen.filter(pl.col("cell").is_in(names))
    if chosen.is_empty():
        fail(
            "no campaign has such a cell; the sites are "
            f"{', '.join(sorted(rows['site'].unique()))} and the experiments "
            f"{', '.join(sorted(rows['experiment'].unique()))}"
        )
    series = series_of(chosen)
    if html or otava or grafana:
        try:
            for path in written(runs, series, rows, chosen, html, otava, grafana, site):
                print(f"history: {path}")
        except OSError as error:
            fail(f"{error.filename or runs} cannot be written: {error.strerror or error}")
        return
    bullets = [f"- {sentence}" for sentence in change_sentences(runs, series, least)]
    show(history_table(series, most), pager, bullets)


def written(
    runs: Path, series: Sequence[Series], every: polars.DataFrame, frame: polars.DataFrame,
    html: Path | None, otava: Path | None, grafana: Path | None, site: str | None = None,
) -> Iterator[Path]:  # fmt: skip
    """Write a history for a browser and for other watchers; yield each path; raises OSError.

    The series are of the rows of `frame`, which may be some of `every`.
    """
    from analysis.history import exports
    from analysis.nights.page import sites_of, write_page
    from records.files import write_whole

    if html:
        html = layout.meant(str(html))
        html.parent.mkdir(parents=True, exist_ok=True)
        write_page(runs, series, sites_of(every), html, site)
        yield html
    times = exports.times_of(frame) if otava or grafana else {}
    if otava:
        otava.mkdir(parents=True, exist_ok=True)
        for name, text in exports.otava(series, times, otava).items():
            write_whole(otava / name, text)
        yield otava / "otava.yaml"
    if grafana:
        write_whole(grafana, exports.grafana(runs, series, times))
        yield grafana


@app.command()
def regress(
    campaign: CampaignArgument,
    against: Annotated[
        str,
        typer.Option(
            help="another campaign, or `history` for all earlier campaigns with the same cells"
        ),
    ],
    margin: Annotated[
        float | None,
        typer.Option(
            help="how much worse counts as a regression, as a fraction (default: each "
            "metric's own margin)"
        ),
    ] = None,
    slowdown: Annotated[
        float,
        typer.Option(
            help="the slowdown, as a fraction, that every comparison must be able to see with a "
            "probability of 80% for the gate to be green"
        ),
    ] = 0.25,
    junit: Annotated[Path | None, typer.Option(help="write a JUnit file too")] = None,
    runs: RunsOption = RUNS,
) -> None:
    """Find what became worse, or was measured before and is not now.

    Exit with 3 if anything became worse, 1 on an error or for what could not be measured, 5 if a
    comparison was inconclusive or could not have seen a slowdown of --slowdown, or something that
    was measured before is still to be measured or had no room in a budget, or something that was
    judged before is not now, else with 0.
    """
    from analysis.history.limits import caveats_of, no_longer_judged, without_refused
    from analysis.history.lost_cells import lost_since
    from analysis.history.regressions import (
        inconclusive_sentence,
        is_blind,
        power_sentences,
        tested,
        write_junit,
    )
    from analysis.history.series import against_history
    from analysis.history.two_campaigns import (
        IncomparableError,
        compare_campaigns,
        refused_sentences,
    )
    from records.base import CampaignError
    from records.counting import how_many

    if margin is not None and not 0 <= margin < 10:
        fail("--margin must be a fraction of 0 or more, such as 0.05 for 5%")
    if not 0 < slowdown < 1000:
        fail("--slowdown must be a fraction above 0, such as 0.25 for 25%")
    new = campaign_of(campaign)
    rows: list[ComparedCell] = []
    refused: list[UntoldCell] = []
    nothing = ""
    try:
        if against == "history":
            frame = rows_of_history(runs, rebuild=False)
            lost = lost_since(new, frame, runs)
            frame, refused = without_refused(new, frame, runs)
            lost += no_longer_judged(new, frame)
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
    found = tested(rows, margin, needed=slowdown)
    told = [one for one in found if one.outcome != "inconclusive"]
    bad = [one for one in told if one.outcome == "regression"]
    if junit:
        try:
            write_junit(junit, f"{new.path.name} against {against}", found, refused, lost)
        except OSError as error:
            fail(f"{junit} cannot be written: {error.strerror}")
    if not told:
        sentence = found[0].sentence if found else "it has no sound launch of what is compared"
        fail(
            nothing or f"no comparison of {new.path.name} with {against} is conclusive: {sentence}"
        )
    for one in bad:
        print(f"regression: {one.row.cell}, {one.row.verdict.implementation}: {one.sentence}")
    apart = {(one.cell, one.implementation) for one in refused}
    blind = [one for one in found if is_blind(one)]
    unmeasured = [one for one in lost if one.kind != "not judged"]
    for line in [*power_sentences(told, slowdown), *inconclusive_sentence(found)]:
        print(line)
    print(
        f"{how_many(len(bad), 'regression')} in {how_many(len(told), 'conclusive comparison')} of "
        f"cells and implementations; {len(found) - len(told)} inconclusive, {len(apart)} not "
        f"compared, {len(unmeasured)} not measured"
        + (f", {len(lost) - len(unmeasured)} no longer judged" if lost != unmeasured else "")
    )
    kinds = {one.kind for one in lost}
    unseen = COULD_NOT_SEE if blind or kinds - {"lost"} else 0
    raise typer.Exit(REGRESSION_FOUND if bad else 1 if "lost" in kinds else unseen)
