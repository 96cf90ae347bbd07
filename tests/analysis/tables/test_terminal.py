"""Tables on the terminal: paged where they do not fit, never where nobody could turn a page."""

import io
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from shutil import copytree, ignore_patterns

import pytest
from rich.console import Console
from typer.testing import CliRunner

from analysis.__main__ import app
from analysis.comparison.compare import Comparison, compare
from analysis.comparison.metrics import metrics
from analysis.tables import terminal
from analysis.tables.table import Column, Row, Table, digests, file_name
from records.campaign import read_campaign
from records.sample import sample_folder

SAMPLE = sample_folder(Path(__file__).resolve().parents[3])
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
    columns = (Column("a", "a[b]"), Column("c", "c"))
    terminal.show(Table("t", hostile, columns, [Row((hostile, "1"))], [hostile]))
    shown = capsys.readouterr().out
    assert shown.count(hostile) == 3 and "a[b]" in shown


def test_a_title_is_a_name_of_a_file() -> None:
    assert file_name("High Performance Linpack") == "high-performance-linpack"
    assert "/" not in file_name("../a/b: c")


COMMANDS = ("table", "variability", "linpack", "cycles", "profile", "models", "scaling",
            "guidelines", "plan", "spread", "compare", "winners")  # fmt: skip
CALLS = [[command, str(SAMPLE)] for command in COMMANDS]
CALLS += [["show", str(SAMPLE), "PointToPoint*range=long"],
          ["table", str(SAMPLE), "--experiment", "Linpack"],
          ["history", "--runs", "RUNS"]]  # fmt: skip


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
    for words in ([], ["--no-pager"]):
        done = CliRunner().invoke(app, [*call, *words])
        assert done.exit_code == 0 and "mpich-5.0.2" in done.stdout, done.output
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
