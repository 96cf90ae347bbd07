"""Tables on the terminal: paged where they do not fit, never where nobody could turn a page."""

import io
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from analysis import terminal
from analysis.__main__ import app
from analysis.text_table import TextTable, file_name

SAMPLE = Path(__file__).resolve().parents[2] / "runs" / "sample"
LONG = [f"line {number}" for number in range(30)]


@pytest.fixture
def pages(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return what was given to the pager."""
    shown: list[str] = []
    monkeypatch.setattr("rich.pager.SystemPager.show", lambda self, text: shown.append(text))
    return shown


def printed(lines: list[str], is_terminal: bool, pager: bool) -> str:
    file = io.StringIO()
    to = Console(file=file, force_terminal=is_terminal, width=80, height=20)
    with terminal.paged(to, pager) as screen:
        for line in lines:
            screen.print(line, highlight=False)
    return file.getvalue()


def test_what_is_longer_than_the_screen_is_paged(pages: list[str]) -> None:
    assert printed(LONG, True, True) == ""
    [text] = pages
    assert text.splitlines() == LONG


@pytest.mark.parametrize(
    ("lines", "is_terminal", "pager"),
    [(LONG[:5], True, True), (LONG, True, False), (LONG, False, True)],
)
def test_else_it_is_printed(
    pages: list[str], lines: list[str], is_terminal: bool, pager: bool
) -> None:
    assert printed(lines, is_terminal, pager).splitlines() == lines and pages == []


def test_words_are_no_markup(capsys: pytest.CaptureFixture[str]) -> None:
    hostile = "[red]cell[/red] [link=x]"
    terminal.show(TextTable(hostile, ("a[b]", "c "), [(hostile, "1")], 1, [hostile]))
    shown = capsys.readouterr().out
    assert shown.count(hostile) == 3 and "a[b]" in shown


def test_a_title_is_a_name_of_a_file() -> None:
    assert file_name("High Performance Linpack") == "high-performance-linpack"
    assert "/" not in file_name("../a/b: c")


COMMANDS = ("table", "variability", "linpack", "cycles", "profile", "models", "scaling",
            "guidelines")  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_with_tables_pages_them(
    command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool] = []

    def noted(to: Console, pager: bool) -> AbstractContextManager[Console]:
        asked.append(pager)
        return nullcontext(to)

    monkeypatch.setattr(terminal, "paged", noted)
    for words in ([], ["--no-pager"]):
        done = CliRunner().invoke(app, [command, str(SAMPLE), *words])
        assert done.exit_code == 0 and "mpich-5.0.2" in done.stdout, done.output
    assert asked == [True, False]
