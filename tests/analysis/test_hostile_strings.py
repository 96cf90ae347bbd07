"""Whatever a campaign's files say, what is printed of it moves no cursor and runs in no shell."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from analysis.__main__ import app
from analysis.commands.raw import for_terminal
from tests.analysis.support.foreign import google, noisy
from tests.analysis.support.hostile import EVIL, hostile
from tests.analysis.support.in_process import analysis
from tests.busy_campaign import busy_campaign

PROJECT = Path(__file__).resolve().parents[2]
#: Written out here, not taken from the code that is tested.
CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
#: A line of ours that is there to be pasted, with what nobody has asked for behind it.
PASTED = re.compile(r"(?m)^make x|(?:make [a-z-]+ |git checkout |python -m ).*touch owned")
#: What each command is given besides; A and B are the campaigns, R is their folder, F has results
#: of another program.
WALK: dict[str, list[list[str]]] = {
    "ingest": [["A"]], "table": [["A"]], "variability": [["A"]], "linpack": [["A"]],
    "cycles": [["A"]], "profile": [["A"]], "report": [["A", "--output", "R/report.html"]],
    "answer": [["A"]], "winners": [["A", "B"]],
    "confirm": [["A", "B"]], "show": [["A", "Linpack grid=1x1 n=2000 nb=192"]],
    "plan": [["A"]], "spread": [["A"]], "timed": [["A"]], "audit": [["--runs", "R"]],
    "replay": [["A"]], "raw": [["A", "round001_Stream_ranks=2_mpich-5.0.2", "launch.json"]],
    "compare": [["A"], ["A", "B", "--why"]], "why": [["A", "B"]],
    "history": [["--runs", "R"], ["--runs", "R", "--html", "R/all.html", "--otava", "R/otava",
                                  "--grafana", "R/grafana.json"]],
    "regress": [["B", "--runs", "R"]], "night": [["B", "--runs", "R"]],
    "calibrate": [["local", "--runs", "R", "--every", "--sites", "S"]],
    "accept-references": [["local", "--sites", "S"]], "models": [["A"]],
    "scaling": [["A"]], "overlap": [["A"]], "guidelines": [["A"]], "nodes": [["A"]],
    "library": [["A"]],
    "study": [["kearns2003", "A", "--html", "R/study.html"]],
    "export": [["A", "-o", "-", "-f", form] for form in
               ("csv", "markdown", "latex", "junit", "openmetrics", "bencher", "appendix")],
    "judge": [["F/old"],
              ["F/old", "F/new", "--html", "R/judged.html", "--markdown", "R/judged.md"]],
    "plot": [["A", "-e", "EchoTest"]], "conclude": [["A", "--study", "kearns2003"]],
}  # fmt: skip


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """Return what says where two hostile campaigns are, and a site for their references."""
    folder = tmp_path_factory.mktemp("hostile")
    runs, sites, sample = folder / "runs", folder / "sites", busy_campaign()
    runs.mkdir()
    first = hostile(runs / "20260101T000000Z-local-a", sample, "1")
    second = hostile(runs / "20260102T000000Z-local-b", sample, "2")
    # Names of files are strings of others, too.
    (first / "launches" / "round001_\x1b[2J\u202e").mkdir()
    (sites / "local").mkdir(parents=True)
    shutil.copy(PROJECT / "site_configs" / "local" / "site.yaml", sites / "local")
    for side, level in (("old", 1.0), ("new", 2.0)):
        results = folder / "foreign" / side
        results.mkdir(parents=True)
        for number, factor in enumerate(noisy(5, round(level))):
            data = google([level * factor], f"2026-01-{number + 1:02d}T00:00:00+00:00")
            for one in data["benchmarks"]:
                one["name"] = one["run_name"] = f"BM{EVIL}"
            data["benchmarks"].append({"name": EVIL, "error_occurred": True, "error_message": EVIL})
            (results / f"{number}\x1b[2J\u202e.json").write_text(json.dumps(data))
    names = {"A": str(first), "B": str(second), "R": str(runs), "S": str(sites),
             "F": str(folder / "foreign")}  # fmt: skip
    return lambda word: re.sub("^[ABFRS](?=/|$)", lambda found: names[found[0]], word)


def harmless(text: str) -> None:
    assert not sorted(set(CONTROLS.findall(text)))
    found = PASTED.search(text)
    assert found is None, found


def test_the_walk_has_every_command() -> None:
    known = {
        one.name or str(getattr(one.callback, "__name__", "")).replace("_", "-")
        for group in [app, *(group.typer_instance for group in app.registered_groups)]
        if group is not None
        for one in group.registered_commands
    }
    assert known == set(WALK)


def test_nothing_that_is_printed_or_written_is_hostile(place: Callable[[str], str]) -> None:
    for command, calls in WALK.items():
        for words in calls:
            done = analysis(command, *map(place, words))
            assert len(done.stdout + done.stderr) > 50, (command, words)
            harmless(done.stdout + done.stderr)
    written = [
        path
        for of in ("R", "S")
        for path in Path(place(of)).rglob("*")
        if path.suffix in (".html", ".md", ".yaml", ".csv", ".prom") and path.is_file()
    ]
    names = {"report.html", "study.html", "night.md", "judged.html", "judged.md", "history.html"}
    assert names <= {path.name for path in written}
    for path in written:
        harmless(path.read_text())


def test_a_file_is_shown_to_a_terminal_without_what_would_change_it() -> None:
    content = f"a\tb\n{EVIL}\nü".encode() + b"\xff\x9b"
    text = for_terminal(content)
    harmless(text.replace("make x", ""))
    assert text.startswith("a\tb\n") and "gnp" in text and "ü" in text
