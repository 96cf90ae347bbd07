"""The page of the commands of `python -m analysis`, as their parsers have them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer.main

from analysis.__main__ import app
from analysis.commands.groups import GROUPS
from documentation.targets import cell


def page(root: Path) -> str:
    """Return the page."""
    commands: dict[str, Any] = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    lines = [
        "# Options of `python -m analysis`", "",
        "What `python -m analysis COMMAND --help` prints, for all commands. "
        "[What each is for](analysis.md).",
    ]  # fmt: skip
    for title, names in GROUPS.items():
        lines += ["", f"## {title}"]
        for name in names:
            lines += ["", *of_command(name, commands[name])]
    return "\n".join(lines) + "\n"


def of_command(name: str, command: Any) -> list[str]:
    """Return the lines of one command: what it does, its arguments and its options."""
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    options = [one for one in command.params if one.param_type_name == "option"]
    words = [*(word_of(one) for one in arguments), *(["[OPTIONS]"] if options else [])]
    rows = [*(argument_row(one) for one in arguments), *map(option_row, options)]
    return [
        f"### {name}", "",
        *filter(None, " ".join(cell(command.help or "").split()).split("\f")), "",
        "```text", " ".join(["python -m analysis", name, *words]), "```", "",
        *(["| argument or option | meaning |", "|---|---|", *rows] if rows else []),
    ]  # fmt: skip


def word_of(argument: Any) -> str:
    """Return an argument as it is written in a line of use."""
    name = argument.name.upper() + ("..." if argument.nargs != 1 else "")
    return name if argument.required else f"[{name}]"


def argument_row(argument: Any) -> str:
    """Return the row of an argument."""
    return f"| `{argument.name.upper()}` | {cell(getattr(argument, 'help', None) or '')}" + (
        f" ({argument.default}) |" if isinstance(argument.default, str) else " |"
    )


def option_row(option: Any) -> str:
    """Return the row of an option: its names, what it means, and what it is if it is not given."""
    names = ", ".join(f"`{one}`" for one in [*option.opts, *option.secondary_opts])
    default = option.default
    said = (
        f" ({default.value if hasattr(default, 'value') else default})"
        if default not in (None, False, True, ()) and not callable(default) else ""
    )  # fmt: skip
    several = "; may be given several times" if option.multiple else ""
    return f"| {names} | {cell(option.help or '')}{several}{said} |"
