"""Every number that the sample's CSV had before tables had typed columns is there under its name.

`sample_numbers.json.gz` keeps what CSV had then: numbers in full, and of some tables words, which
numbers of today give when they are rendered.
"""

import csv
import io
import math
from pathlib import Path

import pytest

from analysis.commands.export import Format, exported
from analysis.models.all_tables import Models
from analysis.tables.csv import csv_field
from analysis.tables.latex import named
from analysis.tables.table import NOTHING
from records.campaign import read_campaign
from tests.analysis.tables.golden import golden
from tests.busy_campaign import busy_campaign

ROOT = Path(__file__).resolve().parents[3]
SAMPLE = busy_campaign()
BEFORE = golden()


@pytest.fixture(scope="module")
def now() -> dict[str, list[dict[str, str]]]:
    """Return the rows of the sample's CSV files, by name."""
    files = exported(read_campaign(SAMPLE), Format.CSV, None)
    return {
        name.removesuffix(".csv"): list(csv.DictReader(io.StringIO(text)))
        for name, text in files.items()
    }


def same(name: str, before: str, today: str) -> bool:
    """Return whether a field is the same; the names of launches in any order.

    The last digits of a fit are those of the processor whose kernels did the linear algebra.
    """
    if name.endswith("launch_names"):
        return set(before.split()) == set(today.split())
    try:
        return math.isclose(float(before), float(today), rel_tol=1e-10)
    except ValueError:
        return before == today


@pytest.mark.parametrize("name", [name for name, table in BEFORE.items() if not table["words"]])
def test_every_number_is_under_its_column(name: str, now: dict[str, list[dict[str, str]]]) -> None:
    before = BEFORE[name]
    assert len(now[name]) == len(before["rows"])
    for row, today in zip(before["rows"], now[name], strict=True):
        for column, field in zip(before["columns"], row, strict=True):
            assert same(column, field, today[column]), (column, field, today[column])


@pytest.mark.parametrize("name", [name for name, table in BEFORE.items() if table["words"]])
def test_words_are_what_the_numbers_give(name: str, now: dict[str, list[dict[str, str]]]) -> None:
    before = BEFORE[name]
    campaign = read_campaign(SAMPLE)
    models = Models(campaign, ROOT)
    [table] = [table for table in (*models.rates, *models.derived) if table.name == name]
    assert named(table) == tuple(before["columns"][:-1]) and before["columns"][-1] == "launch_names"
    assert len(now[name]) == len(table.rows) == len(before["rows"])
    for row, words, today in zip(table.rows, before["rows"], now[name], strict=True):
        shown = ["" if word == NOTHING else word for word in table.words(row)]
        assert shown == words[:-1]
        assert same("launch_names", words[-1], today["launch_names"])
        # CSV has the numbers of the same row in full: no word with a unit, and none for nothing.
        record = dict(zip(table.heads, table.record(row), strict=True))
        assert {head: today[head] for head in record} == {
            head: str(csv_field(value)) for head, value in record.items()
        }
        for column in (column for column in table.columns if column.kind.is_number):
            for head in column.heads:
                assert not today[head] or math.isfinite(float(today[head])), (head, today[head])


def test_answers_ratios_and_medians_name_their_experiment(
    now: dict[str, list[dict[str, str]]],
) -> None:
    for name, rows in now.items():
        kind, _, experiment = name.partition("-")
        if kind in ("medians", "ratios"):
            assert {row["experiment"] for row in rows} == {experiment}
    cells = {row["cell"] for rows in now.values() for row in rows if "cell" in row}
    for row in now["answers"]:
        names = row["cell_names"].split("; ")
        assert set(names) <= cells
        assert {name.split(" ")[0] for name in names} == {row["experiment"]}


def test_the_golden_tables_have_numbers() -> None:
    fields = [field for table in BEFORE.values() for row in table["rows"] for field in row]
    assert len(BEFORE) == 25 and sum("." in field for field in fields) > 1000
