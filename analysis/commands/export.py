"""Commands that give results to other programs and people: files, and curves for the terminal."""

from __future__ import annotations

import typer

app = typer.Typer()
