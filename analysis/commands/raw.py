"""The command for what launches left behind, as they left it."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from analysis.commands.campaigns import CampaignArgument, PagerOption, fail, folder_of
from records.causes import harmless

app = typer.Typer()


@app.command()
def raw(
    campaign: CampaignArgument,
    launch: Annotated[str, typer.Argument(help="the name of a launch, as `show` prints it")],
    file: Annotated[str, typer.Argument(help="which of its files, such as launch.json")] = "stdout",
    pager: PagerOption = True,
) -> None:
    """Print a file that a launch left behind: what its program printed, its record, its script."""
    from analysis.tables.terminal import console, show_text
    from records.base import RecordError
    from records.kept import kept_launches

    folder = folder_of(campaign)
    known = {one.name: one for one in kept_launches(folder)}
    if launch not in known:
        fail(f"{folder.name} has no launch {launch!r}; see: python -m analysis show {campaign}")
    try:
        names = known[launch].names()
        if file not in names:
            fail(f"{launch} has no file {file!r}; it has {', '.join(names)}")
        content = known[launch].read(file)
    except (OSError, RecordError) as error:
        fail(f"{known[launch].where}: {error}")
    if not sys.stdout.isatty():
        sys.stdout.buffer.write(content)
    elif pager:
        show_text(console(), for_terminal(content))
    else:
        sys.stdout.write(for_terminal(content))


def for_terminal(content: bytes) -> str:
    """Return a file's text without what would change a terminal; other outputs get all of it."""
    return harmless(content.decode(errors="replace"))
