"""The commands in groups for `--help`, those that are used most at first."""

from __future__ import annotations

from typing import Any

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
                        "profile"),
    "References": ("calibrate", "accept-references"),
}  # fmt: skip
TITLES = {name: title for title, names in GROUPS.items() for name in names}


class Grouped(TyperGroup):
    """A group of commands that lists them by `GROUPS`."""

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
