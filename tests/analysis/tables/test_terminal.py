"""Tables on the terminal: paged where they do not fit, never where nobody could turn a page."""

import csv
import html
import io
import os
import pty
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from shutil import copytree, ignore_patterns
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from rich.console import Console
from typer.testing import CliRunner

from analysis.__main__ import app
from analysis.comparison.compare import compare
from analysis.comparison.metrics import metrics
from analysis.comparison.result import Comparison
from analysis.comparison.tables import one_below_the_other, side_by_side
from analysis.report import report
from analysis.report.more_rows import for_a_page
from analysis.tables import terminal
from analysis.tables.csv import csv_text
from analysis.tables.pages import page_environment
from analysis.tables.table import COUNT, INTERVAL, Column, Row, Table, digests, file_name
from records.campaign import read_campaign
from tests.busy_campaign import busy_campaign

SAMPLE = busy_campaign()
LONG = [f"line {number}" for number in range(30)]


@pytest.fixture
def pages(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return what was given to the pager."""
    shown: list[str] = []

    def noted(variables: Mapping[str, str], text: str) -> bool:
        shown.append(text)
        return True

    monkeypatch.setattr(terminal, "paged_by", noted)
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


#: Stands in for a pager: notes what it is given and how it is told to behave.
PAGER = """#!/bin/sh
{ printf '%s|%s|' "$LESS" "$*"; cat; } >"$NOTED"
"""


@pytest.mark.parametrize(
    ("given", "less"), [({}, "FRX"), ({"LESS": "-S"}, "-S"), ({"PAGER": "mine -a"}, "FRX")]
)
def test_the_pager_is_the_users_and_told_what_git_tells_it(
    given: dict[str, str], less: str, tmp_path: Path
) -> None:
    for name in ("less", "mine"):
        (tmp_path / name).write_text(PAGER)
        (tmp_path / name).chmod(0o755)
    noted = tmp_path / "noted"
    variables = {"PATH": f"{tmp_path}:/usr/bin:/bin", "NOTED": str(noted), **given}
    assert terminal.paged_by(variables, "\x1b[1mbold µ\n")
    words = "-a" if "PAGER" in given else ""
    assert noted.read_text() == f"{less}|{words}|\x1b[1mbold µ\n"


@pytest.mark.parametrize(
    "given",
    [{"PAGER": ""}, {"PAGER": "cat"}, {"PAGER": "no-such-pager -x"}, {"TERM": "dumb"},
     {"PATH": "/nowhere"}],
    ids=str,
)  # fmt: skip
def test_without_a_pager_nothing_is_lost(given: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "less").write_text("#!/bin/sh\nexec cat >/dev/null\n")
    (tmp_path / "less").chmod(0o755)
    assert not terminal.paged_by({"PATH": f"{tmp_path}:/usr/bin:/bin", **given}, "text\n")


def test_a_pager_that_ends_early_is_no_error() -> None:
    variables = {"PATH": "/usr/bin:/bin", "PAGER": "head -n 1 >/dev/null"}
    assert terminal.paged_by(variables, "a line\n" * 100_000)


def test_only_a_terminal_is_paged(tmp_path: Path) -> None:
    """The whole command, on a terminal that a pager follows, and into a pipe."""
    (tmp_path / "less").write_text(PAGER)
    (tmp_path / "less").chmod(0o755)
    noted = tmp_path / "noted"
    command = [sys.executable, "-m", "analysis", "study", "kearns2003"]
    environment = {**os.environ, "PATH": f"{tmp_path}:/usr/bin:/bin", "NOTED": str(noted),
                   "TERM": "xterm", "COLUMNS": "100", "LINES": "30"}  # fmt: skip
    environment.pop("PAGER", None)
    environment.pop("LESS", None)
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert not noted.exists() and done.stdout.count("\n") > 100
    title, summary, *_ = done.stdout.splitlines()
    assert "Kearns" in title and "claims" in summary
    ours, theirs = pty.openpty()
    running = subprocess.Popen(
        command, env=environment, stdin=theirs, stdout=theirs, stderr=theirs, close_fds=True
    )
    os.close(theirs)
    written = b""
    with suppress(OSError):
        while part := os.read(ours, 4096):
            written += part
    os.close(ours)
    assert running.wait() == 0, written
    assert noted.read_text().startswith("FRX||") and title in noted.read_text()
    assert written == b""


def test_words_are_no_markup(capsys: pytest.CaptureFixture[str]) -> None:
    hostile = "[red]cell[/red] [link=x]"
    columns = (Column("a", "a[b]"), Column("c", "c"))
    terminal.show(Table("t", hostile, columns, [Row((hostile, "1"))], [hostile]))
    shown = capsys.readouterr().out
    assert shown.count(hostile) == 3 and "a[b]" in shown


def test_a_title_is_a_name_of_a_file() -> None:
    assert file_name("High Performance Linpack") == "high-performance-linpack"
    assert "/" not in file_name("../a/b: c")


COMMANDS = ("table", "variability", "linpack", "cycles", "profile", "models", "scaling",
            "guidelines", "plan", "spread", "timed", "compare", "winners")  # fmt: skip
CALLS = [[command, str(SAMPLE)] for command in COMMANDS]
CALLS += [["show", str(SAMPLE), "PointToPoint*range=long"],
          ["table", str(SAMPLE), "--experiment", "Linpack"],
          ["study", "kearns2003", str(SAMPLE)], ["history", "--runs", "RUNS"]]  # fmt: skip


@pytest.mark.parametrize("call", CALLS, ids=" ".join)
def test_every_command_with_tables_pages_them(
    call: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if call[-1] == "RUNS":
        # Not in its own place: a history keeps an index beside its campaigns.
        copytree(SAMPLE, tmp_path / "sample", ignore=ignore_patterns("imported.json"))
        call = [*call[:-1], str(tmp_path)]
    asked: list[bool] = []

    def noted(to: Console, pager: bool) -> AbstractContextManager[Console]:
        asked.append(pager)
        return nullcontext(to)

    monkeypatch.setattr(terminal, "paged", noted)
    named = "MPICH" if call[0] == "study" else "mpich-5.0.2"
    for words in ([], ["--no-pager"]):
        done = CliRunner().invoke(app, [*call, *words])
        assert done.exit_code == 0 and named in done.stdout, done.output
    assert asked == [True, False]


@pytest.fixture
def sampled() -> Comparison:
    return compare(read_campaign(SAMPLE))


def test_table_of_a_named_experiment_has_its_series(sampled: Comparison) -> None:
    """What `table` only counts for all experiments it lists for one."""
    series = [cell for cell in sampled.cells if cell.series]
    experiment = series[0].experiment
    names = {cell.series for cell in series if cell.experiment == experiment}
    done = CliRunner().invoke(app, ["table", str(SAMPLE)])
    assert f"listed with --experiment {experiment}" in done.stdout
    assert not all(name in done.stdout for name in names)
    done = CliRunner().invoke(app, ["table", str(SAMPLE), "--experiment", experiment])
    shown = "".join(done.stdout.split())
    assert names and not [name for name in names if "".join(name.split()) not in shown]


def test_show_has_the_numbers_of_a_cell_and_where_they_are_from(sampled: Comparison) -> None:
    cell = next(cell for cell in sampled.cells if cell.verdicts and not cell.series)
    done = CliRunner().invoke(app, ["show", str(SAMPLE), cell.name])
    assert done.exit_code == 0, done.output
    for name, verdict in cell.verdicts.items():
        assert verdict.ratio.words in done.stdout and verdict.words in done.stdout
        assert digests(sampled.campaign)[name] in done.stdout
    own = [one for one in sampled.campaign.launches if one.record.cell == cell.name]
    assert own and all(one.record.launch[:40] in done.stdout for one in own)
    assert metrics()[cell.experiment]["formula"] in done.stdout


def test_show_lists_cells_and_refuses_what_is_none(sampled: Comparison) -> None:
    done = CliRunner().invoke(app, ["show", str(SAMPLE)])
    assert done.exit_code == 0 and done.stdout.count("\n") == len(sampled.cells) + 1
    done = CliRunner().invoke(app, ["show", str(SAMPLE), "no [cell]"])
    assert done.exit_code == 1 and "has no cell 'no [cell]'" in done.output


def text_at(width: int, table: Table) -> list[str]:
    """Return what stands between lines and spaces when a table is printed at a width."""
    file = io.StringIO()
    terminal.print_table(Console(file=file, width=width), table)
    return file.getvalue().replace("│", " ").replace("┃", " ").split()


def text_of_page(table: Table) -> list[str]:
    """Return the words of a table's page."""
    template = page_environment(report.__file__).get_template("rows.html")
    whole = for_a_page(table)
    text = template.render(
        table=whole, campaign="c", first=1, report="r", rows=whole.rows, before=None, after=None
    )
    return html.unescape(re.sub("<[^>]*>", " ", text)).split()


def in_csv(value: Any) -> str:
    """Return a field as CSV has it: empty, or in full."""
    return "" if value is None else str(value)


def made_up(names: list[str]) -> Comparison:
    """Return a comparison of these implementations whose every number is another one."""
    base, *others = names

    def cell(number: int) -> Any:
        def verdict(place: int) -> Any:
            ratio = 1 + (100 * number + place) / 1000
            ends = SimpleNamespace(low=ratio - 0.5, high=ratio + 20)
            of = SimpleNamespace(value=ratio, interval=None, pairs=3)
            words, kind = "no difference shown", "no-difference"
            return SimpleNamespace(ratio=of, interval=ends, words=words, kind=kind, base=base)

        medians = {
            name: [SimpleNamespace(median=(100 * number + place + 100) * 1e6, message_bytes=8192)]
            for place, name in enumerate(names)
        }
        return SimpleNamespace(
            name=f"cell{number}", launch_cell=f"cell{number}", series="",
            parameters={"pair": "Send/Recv", "sizes": number},
            experiment="PointToPoint", estimates=medians, estimate=lambda name, _: medians[name][0],
            verdicts={name: verdict(n) for n, name in enumerate(others, 1)},
            message_sizes=lambda: [8192], log_ratios={name: {1: 0.5} for name in others},
            values={name: {1: {8192: of[0].median}} for name, of in medians.items()},
        )  # fmt: skip

    return cast(Comparison, SimpleNamespace(
        implementations=names, base=base, experiment=lambda _: [cell(1), cell(2)]
    ))  # fmt: skip


NAMES = st.lists(
    st.from_regex(r"[a-z]{2,24}-[0-9]{1,3}(\.[0-9]{1,4}){0,2}(\+[a-z]{1,12})?", fullmatch=True),
    min_size=1, max_size=40, unique=True,
)  # fmt: skip
TWELVE = [f"openmpi-5.0.{number}+transport{number}" for number in range(12)]


@settings(max_examples=25)
@given(names=NAMES, width=st.integers(60, 250))
@example(names=TWELVE, width=80)
@example(names=TWELVE[:4], width=140)
def test_no_name_and_no_number_is_cut_however_many_there_are(names: list[str], width: int) -> None:
    comparison = made_up(names)
    for table in (
        side_by_side(comparison, "PointToPoint", False),
        one_below_the_other(comparison, "PointToPoint", False),
    ):
        wanted = Counter(word for column in table.shown for word in (column.heading or "").split())
        for row in table.rows:
            wanted.update(word for words in table.words(row) for word in words.split())
        assert not wanted - Counter(text_at(width, table)), (table.name, width)
        assert not wanted - Counter(text_of_page(table)), table.name
        heads, *rows = csv.reader(line for line in csv_text(table).splitlines() if line[0] != "#")
        assert rows == [[in_csv(one) for one in table.record(row)] for row in table.rows]
        assert heads == list(table.heads)
    # Each row has a number of its own: nothing is there in place of another.
    assert len({table.words(row) for row in table.rows}) == 2 * len(names)


@settings(max_examples=40)
@given(st.integers(1, 40), st.integers(60, 250))
def test_a_block_is_no_wider_than_the_terminal(count: int, width: int) -> None:
    columns = (Column("cell", "cell"), *(
        Column(f"of {n}", f"implementation-{n}", COUNT if n % 2 else INTERVAL) for n in range(count)
    ))  # fmt: skip
    values = (n if n % 2 else (n / 7, n * 1e6) for n in range(count))
    table = Table("t", "title", columns, [Row(("range=long pair=Send/Recv", *values))])
    file = io.StringIO()
    terminal.print_table(Console(file=file, width=width), table)
    lines = file.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    # One block where all fits: no block without need.
    blocks = sum("blocks of columns" in line for line in lines)
    assert blocks == 0 if terminal.fits(table, width) else blocks > 1


@settings(max_examples=40)
@given(st.lists(st.integers(1, 48), min_size=2, max_size=12), st.integers(60, 250))
@example([30, 30, 30, 30], 60)
def test_rows_are_numbered_where_their_names_leave_no_room(lengths: list[int], width: int) -> None:
    columns = tuple(Column(f"{n}", f"{n}") for n in range(len(lengths)))
    rows = [Row(tuple(sign * length for length in lengths)) for sign in "ab"]
    table = Table("t", "title", columns, rows)
    file = io.StringIO()
    terminal.print_table(Console(file=file, width=width), table)
    lines = file.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    shown = Counter(text_at(width, table))
    assert all(shown[str(value)] for row in rows for value in row.values)


def test_keys_tell_the_rows_of_each_block_apart() -> None:
    columns = (Column("a", "a"), Column("bytes", "bytes", COUNT), *(
        Column(f"n{n}", f"number-{n}", COUNT) for n in range(20)
    ))  # fmt: skip
    rows = [Row(("same", size, *range(20))) for size in (1024, 2048)]
    shown = text_at(60, Table("t", "title", columns, rows))
    found = Counter(shown)
    assert found["1024"] == found["2048"] == found["same"] / 2 > 1
