"""The one table: typed columns, rows of numbers with the cells that they were measured in.

The terminal, HTML, CSV, LaTeX and Markdown render it: for people the columns with a heading, each
by its kind, for programs every number in full under its column's name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from math import isnan
from typing import Any

from analysis.tables.launch_names import LaunchNames
from analysis.tables.units import duration, interval_text, p_text, prefixed
from inference.intervals import Interval, Ratio
from inference.means import Mean
from records.campaign import Campaign
from records.causes import harmless

#: How many characters of a digest are shown to people.
DIGEST_CHARACTERS = 12
#: The text for a missing number.
NOTHING = "–"


def file_name(title: str) -> str:
    """Return a title as the name of a file, without an ending."""
    words = "".join(sign if sign.isalnum() else " " for sign in title.lower())
    return "-".join(words.split())


@dataclass(frozen=True)
class Kind:
    """How a cell becomes words, of its value and its column's unit."""

    words: Callable[[Any, str], str]
    is_number: bool = True


def formatted(pattern: str) -> Kind:
    """Return the kind of a number that a format is enough for, such as ".3f"."""
    return Kind(lambda value, _: format(value, pattern))


def scaled(factor: float, pattern: str) -> Kind:
    """Return the kind of a number that its heading has in multiples of `factor`."""
    return Kind(lambda value, _: format(value / factor, pattern))


#: Text, which is as it is; what is called by a number is text, too.
TEXT = Kind(lambda value, _: str(value), is_number=False)
#: Several texts in one column, each a field of its own for programs.
JOINED = Kind(lambda parts, _: " ".join(map(str, parts)).rstrip(), is_number=False)
COUNT, GROUPED = formatted("d"), formatted(",d")
#: Seconds, bytes and rates by their unit, with a decimal prefix.
PREFIXED = Kind(prefixed)
WHOLE_BYTES = Kind(lambda value, _: f"{value:,.0f} B")
RATIO, PERCENT = formatted(".3f"), formatted(".1%")
PROBABILITY = Kind(lambda value, _: p_text(value))
DURATION = Kind(lambda value, _: duration(value))
#: Ends of an interval: without a unit as ratios.
INTERVAL = Kind(lambda ends, unit: interval_text(Interval(ends[0], ends[1], 0.0), unit))


@dataclass(frozen=True)
class Column:
    """A column by name; without a heading it is for programs alone.

    `unit` may be the name of the column that has each row's unit. A cell of several values has a
    field for each, named with its unit as CSV has it.
    """

    name: str
    heading: str | None = None
    kind: Kind = TEXT
    unit: str = ""
    fields: tuple[str, ...] = ()

    @property
    def heads(self) -> tuple[str, ...]:
        """Return what programs find its values under."""
        return self.fields or (f"{self.name} ({self.unit})" if self.unit else self.name,)


def interval(name: str, heading: str, unit: str, kind: Kind = INTERVAL) -> Column:
    """Return the column of the interval of the number called `name`."""
    fields = tuple(f"{name}_{end} ({unit})" for end in ("low", "high"))
    return Column(f"{name}_interval", heading, kind, "" if unit == "1" else unit, fields)


#: Of several values, of which people see the first.
FIRST = Kind(lambda of, _: str(of[0]), is_number=False)


def several(name: str, heading: str, is_number: bool) -> Column:
    """Return the column of several counts: people see all, programs the ends as numbers, too."""
    kind = replace(FIRST, is_number=is_number)
    return Column(name, heading, kind, fields=(name, f"{name}_least (1)", f"{name}_most (1)"))


def of_several(counts: Sequence[int]) -> tuple[str, int, int]:
    """Return the value of such a column of one or more counts."""
    return ", ".join(map(str, counts)), min(counts), max(counts)


def unseen(column: Column) -> Column:
    """Return a column for programs alone."""
    return replace(column, heading=None)


def plain_columns(*heads: str) -> tuple[Column, ...]:
    """Return columns for programs alone by what they are found under, the unit in brackets."""
    return tuple(Column(head, fields=(head,)) for head in heads)


@dataclass(frozen=True)
class Printed:
    """A value whose words are not its kind's: as a report printed it, or none for people."""

    value: Any
    words: str = NOTHING


@dataclass(frozen=True)
class Untold:
    """No number, and the words that say why to people."""

    words: str


@dataclass(frozen=True)
class Marked:
    """Words, and the class that gives them colour and sign on pages."""

    words: str
    mark: str


def ends(of: Interval | Mean | None) -> tuple[float, float] | Untold | None:
    """Return the ends of an interval, or what stands for them where there are none."""
    if isinstance(of, Mean):
        return ends(of.interval) or (Untold(of.untold) if of.agree else None)
    return (of.low, of.high) if of else None


def of_ratio(ratio: Ratio | None) -> tuple[Any, Any]:
    """Return the values of a ratio and of its interval."""
    if ratio is None or isnan(ratio.value):
        return None, None
    return ratio.value, ends(ratio.interval)


@dataclass(frozen=True)
class Row:
    """Values in the order of the columns; a value may be None, `Printed`, `Untold` or `Marked`.

    `implementation` is None where the row is not of the campaign; with `cells`, those that its
    numbers were measured in, it leads to the launches.
    """

    values: tuple[Any, ...]
    implementation: str | None = None
    cells: tuple[str, ...] = ()


@dataclass(frozen=True)
class Table:
    """Rows of typed columns, and notes below them.

    `formula` says how all numbers were found, the notes where it is empty. A row without cells, as
    one that says what is not known, is of its implementation's launches of `experiments`. `details`
    is the table that has the numbers that this one sums up.
    """

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: list[Row] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    formula: str = ""
    experiments: tuple[str, ...] = ()
    details: str = ""

    @property
    def shown(self) -> list[Column]:
        """Return the columns that people see."""
        return [column for column in self.columns if column.heading is not None]

    def words(self, row: Row) -> tuple[str, ...]:
        """Return what people see of a row."""
        units = self._units(row)
        return tuple(
            cell_words(value, column.kind, units.get(column.unit, column.unit))
            for column, value in zip(self.columns, row.values, strict=True)
            if column.heading is not None
        )

    def marks(self, row: Row) -> tuple[str, ...]:
        """Return the class of each of the `words` of a row, empty where it has none."""
        return tuple(
            value.mark if isinstance(value, Marked) else ""
            for column, value in zip(self.columns, row.values, strict=True)
            if column.heading is not None
        )

    def view(self, *names: str) -> Table:
        """Return the table with the columns of these names alone, in this order."""
        known = [column.name for column in self.columns]
        places = [known.index(name) for name in names]
        return replace(
            self,
            columns=tuple(self.columns[place] for place in places),
            rows=[
                replace(row, values=tuple(row.values[place] for place in places))
                for row in self.rows
            ],
        )

    def value(self, row: Row, name: str) -> Any:
        """Return the value of a row in the column of a name, None where there is none."""
        for column, value in zip(self.columns, row.values, strict=True):
            if column.name == name:
                return value
        return None

    def _units(self, row: Row) -> dict[str, str]:
        """Return the units that the row has itself, by the columns that they are in."""
        units = {column.unit for column in self.columns}
        return {
            column.name: str(value or "")
            for column, value in zip(self.columns, row.values, strict=True)
            if column.name in units
        }

    @property
    def heads(self) -> tuple[str, ...]:
        """Return what programs find each field of a row under."""
        return tuple(head for column in self.columns for head in column.heads)

    def record(self, row: Row) -> tuple[Any, ...]:
        """Return the fields of a row in full, as `heads` has them; None is an empty one."""
        return tuple(
            part
            for column, value in zip(self.columns, row.values, strict=True)
            for part in parts(value, len(column.heads))
        )


def cell_words(value: Any, kind: Kind, unit: str = "") -> str:
    """Return a cell for people."""
    if value is None:
        return NOTHING
    return harmless(
        value.words if isinstance(value, (Printed, Untold, Marked)) else kind.words(value, unit)
    )


def parts(value: Any, count: int) -> Sequence[Any]:
    """Return the fields of a cell."""
    if value is None or isinstance(value, Untold):
        return (None,) * count
    if isinstance(value, Printed):
        return parts(value.value, count)
    if isinstance(value, Marked):
        return (value.words,)
    return (value,) if count == 1 else tuple(value)


def digests(campaign: Campaign) -> dict[str, str]:
    """Return the images' digests by implementation."""
    return {name: image.sha256 for name, image in campaign.manifest.images.items()}


def with_origin(table: Table, campaign: Campaign, names: LaunchNames) -> Table:
    """Return a table whose rows say for programs where they are from.

    That is the campaign, the image's digest, the launches and the formula; what the table has
    itself stays.
    """
    digest, known = digests(campaign), set(table.heads)
    formula = table.formula or " ".join(table.notes)
    added: dict[str, Callable[[Row], Any]] = {}
    if any(row.implementation for row in table.rows):
        added["image_sha256"] = lambda row: digest.get(row.implementation or "")
    if any(row.cells for row in table.rows):
        added["launch_names"] = lambda row: " ".join(names.of_row(row)) or None
    added["formula"] = lambda row: formula
    first = [] if "campaign" in known else ["campaign"]
    last = {name: of for name, of in added.items() if name not in known}
    return replace(
        table,
        columns=(*plain_columns(*first), *table.columns, *plain_columns(*last)),
        rows=[
            replace(
                row,
                values=(
                    *(campaign.path.name for _ in first), *row.values,
                    *(of(row) for of in last.values()),
                ),
            )
            for row in table.rows
        ],
    )  # fmt: skip


def for_people(tables: Iterable[Table]) -> list[Table]:
    """Return the tables without those that others sum up."""
    every = list(tables)
    summed_up = {table.details for table in every}
    return [table for table in every if table.name not in summed_up]
