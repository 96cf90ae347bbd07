"""Tables on the terminal: as wide as it is, paged where they are longer than its screen."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape
from rich.table import Table as RichTable

from analysis.tables.table import Table

#: Wide enough for a whole row where the output is a file or a pipe.
WIDTH_OF_A_FILE = 200


def console(width_of_a_file: int = WIDTH_OF_A_FILE) -> Console:
    """Return a console of the terminal's width, or of the one given where there is no terminal."""
    return Console(width=None if sys.stdout.isatty() else width_of_a_file)


@contextmanager
def paged(to: Console, pager: bool) -> Iterator[Console]:
    """Gather what is printed; page it where it does not fit the screen of a terminal.

    `pager` False prints as it comes, and so does an output that is no terminal.
    """
    if not (pager and to.is_terminal):
        yield to
        return
    with to.capture() as captured:
        yield to
    text = captured.get()
    if text.count("\n") < to.height:
        to.file.write(text)
        to.file.flush()
        return
    with to.pager(styles=True):
        # Already in the terminal's own codes.
        to.out(text, end="", highlight=False)


def rich_table(table: Table) -> RichTable:
    """Return a table as rich draws it."""
    shown = RichTable(title=escape(table.title))
    for column in table.shown:
        right = column.kind.is_number
        shown.add_column(escape(column.heading or ""), justify="right" if right else "left")
    for row in table.rows:
        shown.add_row(*map(escape, table.words(row)))
    return shown


def print_table(screen: Console, table: Table) -> None:
    """Print a table and its notes."""
    screen.print(rich_table(table))
    for note in table.notes:
        screen.print(note, markup=False, highlight=False, soft_wrap=True)


def show(
    tables: Table | Iterable[Table], pager: bool = False, sentences: Sequence[str] = ()
) -> None:
    """Print tables with their notes, and sentences below all of them."""
    with paged(console(), pager) as screen:
        for table in [tables] if isinstance(tables, Table) else tables:
            print_table(screen, table)
        for sentence in sentences:
            screen.print(sentence, markup=False, highlight=False, soft_wrap=True)
