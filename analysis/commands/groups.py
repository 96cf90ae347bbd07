"""The commands in groups for `--help`, those that are used most at first.

What is wrong with their words is one sentence.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer

# It has no public name; what is public are its children.
from typer._click.exceptions import NoArgsIsHelpError, UsageError
from typer.core import TyperGroup

#: Each command is in one of them.
GROUPS = {
    "The usual ones": ("report", "answer", "table", "compare", "history"),
    "One campaign": ("show", "winners", "confirm", "variability", "plot", "raw", "export",
                     "conclude", "ingest"),
    "Campaigns over time": ("why", "regress", "night", "audit", "replay"),
    "Results of other programs, and reports": ("judge", "study"),
    "How precise, and how many rounds": ("plan", "spread", "timed"),
    "What times mean": ("models", "scaling", "overlap", "guidelines", "nodes", "linpack", "cycles",
                        "profile", "library"),
    "References": ("calibrate", "accept-references"),
}  # fmt: skip
TITLES = {name: title for title, names in GROUPS.items() for name in names}


@contextmanager
def one_sentence() -> Iterator[None]:
    """End with one sentence and 2 where the words of a command cannot be used."""
    try:
        yield
    except NoArgsIsHelpError:
        raise
    except UsageError as error:
        message = error.format_message().replace("Value error, ", "").rstrip(".")
        path = error.ctx.command_path if error.ctx else "python -m analysis"
        print(f"analysis: {message}; all options: {path} --help", file=sys.stderr)
        raise typer.Exit(2) from None


class Grouped(TyperGroup):
    """A group of commands that lists them by `GROUPS`."""

    def make_context(self, *args: Any, **extra: Any) -> Any:
        """Return what is known before the command, or end with a sentence."""
        with one_sentence():
            return super().make_context(*args, **extra)

    def invoke(self, ctx: Any) -> Any:
        """Run the command, or end with a sentence."""
        with one_sentence():
            return super().invoke(ctx)

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the commands in the order of the groups."""
        order = list(TITLES)
        return sorted(super().list_commands(ctx), key=lambda name: order.index(name))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command, with the title of its group."""
        found = super().get_command(ctx, cmd_name)
        if found is not None:
            found.rich_help_panel = TITLES[cmd_name]  # type: ignore[attr-defined]
        return found
