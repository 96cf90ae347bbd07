"""A table of finished words, which the terminal and the report show alike."""

from __future__ import annotations

from dataclasses import dataclass, field


def file_name(title: str) -> str:
    """Return a title as the name of a file, without an ending."""
    words = "".join(sign if sign.isalnum() else " " for sign in title.lower())
    return "-".join(words.split())


@dataclass(frozen=True)
class TextTable:
    """Rows of words; columns from `numbers_from` on are numbers, and the notes stand below.

    `cells` are those that each row's numbers were measured in, of tables whose rows do not name
    one; a row may have none.
    """

    title: str
    columns: tuple[str, ...]
    rows: list[tuple[str, ...]]
    numbers_from: int
    notes: list[str] = field(default_factory=list)
    cells: list[tuple[str, ...]] = field(default_factory=list)

    def cells_of(self, row: tuple[str, ...]) -> tuple[str, ...]:
        """Return the cells of a row, nothing where the table or the row has none."""
        return self.cells[self.rows.index(row)] if self.cells and row in self.rows else ()
