"""The end of a campaign: its tables, its report and its answer, of one reading of its launches."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from analysis.commands.campaigns import (
    CampaignArgument,
    end_with_nothing,
    fail,
    folder_of,
    say_left_out,
)
from analysis.commands.study import print_study

if TYPE_CHECKING:
    from records.campaign import Campaign

app = typer.Typer()


@app.command()
def conclude(
    campaign: CampaignArgument,
    study: Annotated[
        str | None, typer.Option(help="also the page of this study, of literature/")
    ] = None,
    with_answer: Annotated[bool, typer.Option("--answer/--no-answer", help="the answer")] = True,
) -> None:
    """Make a campaign's tables and its report, and print its answer, all from one reading.

    What cannot be made is named at the end, and the rest is made all the same; also of a campaign
    that is not finished, so nobody may be measuring it meanwhile.
    """
    from analysis.comparison.compare import compare
    from analysis.history.campaign_rows import stamp_of
    from analysis.report.campaign_end import ending
    from analysis.report.report import report_on
    from records.campaign import read_campaign

    folder = folder_of(campaign)
    stamp = stamp_of(folder)
    found = read_campaign(folder)
    found.leave_out_unreadable()
    say_left_out(found)
    try:
        comparison = compare(found)
    except ValueError as error:
        fail(str(error))

    def report() -> None:
        # What it cannot read is said in it, and nowhere else.
        known = list(found.problems)
        print(f"report: {report_on(found, comparison, folder / 'report.html')}")
        found.problems[:] = known

    def answer() -> None:
        end_with_nothing(comparison)
        for line in ending(comparison):
            print(line)

    parts: dict[str, Callable[[], None]] = {
        "tables": lambda: make_tables(found, stamp), "report": report,
    }  # fmt: skip
    if study is not None:
        parts["study"] = lambda: print_study(study, found, page=True, tables=False)
    if with_answer:
        parts["answer"] = answer
    bad = [name for name, make in parts.items() if not is_made(make)]
    if bad:
        fail(f"{folder.name}: could not make {', '.join(bad)}; the sentences above say why")


def is_made(make: Callable[[], None]) -> bool:
    """Make a part; return whether that succeeded. What went wrong is printed."""
    try:
        make()
    except typer.Exit as end:
        return not end.exit_code
    except (ValueError, OSError) as error:
        print(f"analysis: {error}", file=sys.stderr)
        return False
    except Exception:
        # The other parts do not depend on it.
        traceback.print_exc()
        return False
    return True


def make_tables(found: Campaign, stamp: str) -> None:
    """Write a campaign's tables, or end with a sentence; `stamp` is from before it was read."""
    from analysis.history.campaign_rows import keep_rows
    from analysis.tables.parquet import write_tables
    from records.base import CampaignError

    if removed := found.manifest.raw_removed_utc:
        fail(f"{found.path.name}: its raw output was removed {removed}; only its tables are left")
    try:
        rows = write_tables(found)
    except OSError as error:
        fail(f"{error.filename or found.path} cannot be written: {error.strerror or error}")
    try:
        keep_rows(found, stamp)
    except (CampaignError, ValueError, ArithmeticError) as error:
        # The tables are whole without it; a history leaves the campaign out with the sentence.
        print(f"left out of histories: {error}", file=sys.stderr)
    counted = ", ".join(f"{count} {name}" for name, count in rows.items())
    unproven = found.unproven()
    # Of launches from before their records had digests, or of another version that takes none.
    counted += f"; {unproven} launches not proven by digest" if unproven else ""
    counted += f"; redacted: {found.manifest.redacted}" if found.manifest.redacted else ""
    print(f"tables: {found.path / 'tables'} ({counted})")
