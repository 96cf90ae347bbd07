"""The command that judges a night, for `make nightly`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from analysis.commands.campaigns import RUNS, CampaignArgument, campaign_of, fail, folder_of
from analysis.commands.history import REGRESSION_FOUND, RunsOption, rows_of_history, say_limits

if TYPE_CHECKING:
    import polars

    from records.campaign import Campaign

app = typer.Typer()

INCOMPLETE, MEASURE_AGAIN, NOT_JUDGED = 4, 6, 7
EXIT_CODES = {"regression": REGRESSION_FOUND, "incomplete": INCOMPLETE, "blind": NOT_JUDGED,
              "measure again": MEASURE_AGAIN, "not judged": NOT_JUDGED}  # fmt: skip


def night_before(night: Campaign, frame: polars.DataFrame, runs: Path) -> Campaign | None:
    """Return the last night before one, of the same site and name, if it can still be read."""
    import polars as pl

    from analysis.nights.judging import nights_like
    from records.base import CampaignError
    from records.campaign import read_campaign

    earlier = nights_like(frame, night.manifest).filter(
        pl.col("campaign") < night.manifest.campaign
    )
    if earlier.is_empty():
        return None
    try:
        return read_campaign(runs / earlier["folder"][-1])
    except CampaignError:
        return None


@app.command()
def night(
    campaign: CampaignArgument,
    again: Annotated[
        list[str] | None,
        typer.Option(help="a campaign that repeated what tripped; give the option once for each"),
    ] = None,
    decide: Annotated[
        bool,
        typer.Option(help="decide with what there is, although nothing could be measured again"),
    ] = False,
    runs: RunsOption = RUNS,
) -> None:
    """Judge a night; exit with 3 if a regression is confirmed, 6 if something needs to be measured
    again, 4 if something was not measured, 7 if no cell could be compared with earlier nights or
    most comparisons would not have confirmed a slowdown of 25%, 1 on an error, else with 0.

    Writes night.json, night.md and night.xml (JUnit) into the campaign's folder, and the page of
    all nights, history.html, into runs/.
    """  # noqa: D205
    import json

    from analysis.history.campaign_rows import keep_rows, stamp_of
    from analysis.history.limits import without_refused
    from analysis.history.two_campaigns import refused_sentences
    from analysis.nights.judging import judge, power
    from analysis.nights.summary import VERDICTS, cases, facts, markdown
    from analysis.tables.junit import write_cases
    from records.base import CampaignError
    from records.files import write_whole

    stamp = stamp_of(folder_of(campaign))
    found = campaign_of(campaign)
    others = [campaign_of(name) for name in again or []]
    every = rows_of_history(runs, rebuild=False)
    previous = night_before(found, every, runs)
    try:
        frame, refused = without_refused(found, every, runs)
        say_limits(refused_sentences(refused), [])
        judgement = judge(found, frame, others if others or decide else None)
        keep_rows(found, stamp)
        code = EXIT_CODES.get(judgement.verdict, 0)
        told = facts(found, judgement, others, previous) | {"exit_code": code}
        write_whole(found.path / "night.md", markdown(found, judgement, others, previous))
        write_cases(found.path / "night.xml", f"night {found.path.name}", cases(judgement))
        write_whole(found.path / "night.json", json.dumps(told, indent=1) + "\n")
    except CampaignError as error:
        fail(str(error))
    except OSError as error:
        fail(f"{found.path} cannot be written: {error.strerror}")
    for one in judgement.findings:
        print(f"{one.outcome}: {one.cell}, {one.implementation}: {one.words}")
    for name, said in judgement.broken.items():
        print(f"broken: {name}: {said}")
    for name, said in judgement.unjudged.items():
        print(f"no longer judged: {name}: {said}")
    if judgement.untold:
        print(f"{judgement.untold} of {len(judgement.rows)} cells and implementations "
              "have too few earlier nights to be judged")  # fmt: skip
    for line in power(judgement.rows):
        print(line)
    print(f"{VERDICTS[judgement.verdict]} {found.path / 'night.md'}")
    say_page(runs, every)
    raise typer.Exit(code)


def say_page(runs: Path, frame: polars.DataFrame) -> None:
    """Renew the page of all nights; where that cannot be done, a night is none the worse."""
    from analysis.history.series import history
    from analysis.nights.page import NAME, sites_of, write_page

    if frame.is_empty():
        return
    try:
        write_page(runs, history(frame), sites_of(frame), runs / NAME)
    except OSError as error:
        print(f"{runs / NAME} cannot be written: {error.strerror or error}", file=sys.stderr)
        return
    print(f"all nights: {runs / NAME}")
