"""Tables on the terminal: as wide as it is, paged where they are longer than its screen.

No name and no number is ever cut. Where the columns do not fit beside each other, they come in
blocks below each other, each with the columns that tell the rows apart, or with the rows' numbers
where these columns leave no room for others; text goes on in the next line between words. Only a
column that cannot be narrower is wider than the terminal.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from analysis.tables.table import Table

#: What the shell ends with where there is no such pager.
NO_PAGER = 127
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
    show_text(to, captured.get())


def show_text(to: Console, text: str) -> None:
    """Write a text to a terminal, by its user's pager where it does not fit the screen."""
    if text.count("\n") < to.height or not paged_by(os.environ, text):
        to.file.write(text)
        to.file.flush()


def paged_by(variables: Mapping[str, str], text: str) -> bool:
    """Show a text by the pager that PAGER names, or by `less`, as git does; return whether it was.

    `less` is told to end where all fits on one screen, to show colours, and to leave the text on
    the screen (FRX), unless LESS says otherwise. An empty PAGER or `cat` means none.
    """
    command = variables.get("PAGER", "less").strip()
    if command in ("", "cat") or variables.get("TERM") == "dumb":
        return False
    try:
        viewer = subprocess.Popen(
            ["/bin/sh", "-c", f"command -v {shlex.quote(command.split()[0])} >/dev/null || exit "
             f"{NO_PAGER}; {command}"],
            stdin=subprocess.PIPE, env={"LESS": "FRX", "LV": "-c", **variables},
        )  # fmt: skip
        # Who has seen enough ends the pager before it has read all.
        with suppress(BrokenPipeError, KeyboardInterrupt):
            viewer.communicate(text.encode(errors="replace"))
        return viewer.wait() != NO_PAGER
    except OSError:
        return False


@dataclass(frozen=True)
class ColumnLayout:
    """A column as it is drawn: its heading, its words, and how narrow it can be."""

    heading: str
    words: tuple[str, ...]
    is_number: bool

    @cached_property
    def most(self) -> int:
        """Return the width at which each line of it is one."""
        return max(cell_len(line) for text in self._texts for line in text.splitlines() or [""])

    @cached_property
    def least(self) -> int:
        """Return the width at which no number, and no word of a text, is cut."""
        texts = [self.heading] if self.is_number else self._texts
        words = [cell_len(word) for text in texts for word in text.split()]
        numbers = self.words if self.is_number else ()
        return max([1, *words, *(cell_len(one) for one in numbers)])

    @property
    def _texts(self) -> tuple[str, ...]:
        return (self.heading, *self.words)


#: What the frame takes of a line: of each column, and of the line.
OF_COLUMN, OF_LINE = 3, 1


def width_of(widths: Iterable[int]) -> int:
    """Return how wide a table with columns of these widths is."""
    return sum(width + OF_COLUMN for width in widths) + OF_LINE


def layout(table: Table) -> list[ColumnLayout]:
    """Return the columns that people see of a table."""
    rows = [table.words(row) for row in table.rows]
    return [
        ColumnLayout(column.heading or "", tuple(row[place] for row in rows), column.kind.is_number)
        for place, column in enumerate(table.shown)
    ]


def fits(table: Table, width: int) -> bool:
    """Return whether all columns of a table fit beside each other without cutting anything."""
    return width_of(column.least for column in layout(table)) <= width


def keys_of(columns: Sequence[ColumnLayout]) -> int:
    """Return how many columns tell the rows apart: the texts before the first number at least."""
    texts = next((n for n, column in enumerate(columns) if column.is_number), len(columns))
    for count in range(max(1, texts), len(columns)):
        own = set(zip(*(column.words for column in columns[:count]), strict=True))
        if len(own) == len(columns[0].words):
            return count
    return max(1, texts)


def blocks(columns: Sequence[ColumnLayout], width: int) -> list[list[ColumnLayout]]:
    """Return the columns in blocks that fit a width, as far as they can."""
    if width_of(column.least for column in columns) <= width:
        return [list(columns)]
    count = keys_of(columns)
    keys, found = list(columns[:count]), []
    widest = max(columns[count:], key=lambda column: column.least, default=columns[0])
    if width_of(column.least for column in [*keys, widest]) > width:
        rows = len(columns[0].words)
        keys, count = [ColumnLayout("#", tuple(map(str, range(1, rows + 1))), is_number=True)], 0
    block = keys
    for column in columns[count:]:
        if block != keys and width_of(one.least for one in [*block, column]) > width:
            found.append(block)
            block = keys
        block = [*block, column]
    return [*found, block]


def widths_of(columns: Sequence[ColumnLayout], width: int) -> list[int]:
    """Return the widths of columns in a table of a width at most; the widest text gives way."""
    found = [column.most for column in columns]
    while width_of(found) > width:
        wide = [place for place, one in enumerate(columns) if found[place] > one.least]
        if not wide:
            break
        found[max(wide, key=lambda place: found[place])] -= 1
    return found


def drawn(columns: Sequence[ColumnLayout], width: int) -> RichTable:
    """Return a block of columns as rich draws it."""
    widths = widths_of(columns, width)
    shown = RichTable(width=width_of(widths))
    for column, own in zip(columns, widths, strict=True):
        justify: Literal["left", "right"] = "right" if column.is_number else "left"
        shown.add_column(Text(column.heading), justify=justify, width=own)
    for row in zip(*(column.words for column in columns), strict=True):
        shown.add_row(*map(Text, row))
    return shown


def print_table(screen: Console, table: Table) -> None:
    """Print a table, in blocks of columns where it does not fit, and its notes."""
    columns = layout(table)
    found = blocks(columns, screen.width)
    for number, block in enumerate(found, 1):
        part = f" ({number} of {len(found)} blocks of columns)" if len(found) > 1 else ""
        screen.print(Text(f"{table.title}{part}", style="italic"), soft_wrap=True)
        screen.print(drawn(block, screen.width), crop=False)
    for note in table.notes:
        print_line(screen, note)


def print_line(screen: Console, line: str) -> None:
    """Print a line as it is, however wide."""
    screen.print(line, markup=False, highlight=False, soft_wrap=True)


def show(
    tables: Table | Iterable[Table], pager: bool = False, sentences: Sequence[str] = ()
) -> None:
    """Print tables with their notes, and sentences below all of them."""
    with paged(console(), pager) as screen:
        for table in [tables] if isinstance(tables, Table) else tables:
            print_table(screen, table)
        for sentence in sentences:
            print_line(screen, sentence)
