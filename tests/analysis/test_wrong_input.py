"""Whatever is wrong with what was asked for, a command ends with a sentence and no traceback."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.analysis.support.in_process import analysis
from tests.analysis.support.synthetic import TWICE, Synthetic

ROOT = Path(__file__).resolve().parents[2]
#: C is a campaign, D one whose manifest is damaged, T an empty folder, N nothing, F a file.
WRONG: list[list[str]] = [
    ["table", "N"], ["table", "D"], ["table", "T"], ["table", "F"], ["table", "C\0"],
    ["table", "C", "--base", "no-such"], ["table", "C", "--experiment", "NoSuch"],
    ["answer", "N"], ["winners", "N"], ["winners", "C", "D"], ["show", "C", "no such cell"],
    ["show", "C", "["], ["raw", "C", "no-such-launch"], ["raw", "C", "../manifest.json"],
    ["compare", "C", "C"], ["compare", "C", "N"], ["compare", "C", "--why"],
    ["compare", "C", "--images", "alpha-1.0"], ["compare", "C", "--images", "a,b"],
    ["compare", "C", "C", "--base", "alpha-1.0"], ["why", "C", "C"], ["why", "C", "N"],
    ["plan", "C", "--precision", "0"], ["plan", "C", "--precision", "-1"],
    ["plan", "C", "--power", "2"], ["plan", "C", "--precision", "nan"],
    ["replay", "N"], ["spread", "N"], ["timed", "N"],
    ["history", "--runs", "N"], ["history", "--runs", "T"], ["history", "--runs", "F"],
    ["history", "--runs", "R", "--site", "no-such"],
    ["history", "--runs", "R", "--html", "F/page.html"],
    ["history", "--runs", "R", "--otava", "F"], ["history", "--runs", "R", "--grafana", "T"],
    ["regress", "C", "--against", "N"], ["regress", "C", "--against", "C"],
    ["regress", "C", "--against", "history", "--margin", "-1"],
    ["regress", "C", "--against", "history", "--slowdown", "nan"],
    ["regress", "C", "--against", "history", "--runs", "N"],
    ["night", "N", "--runs", "R"], ["night", "C", "--runs", "R", "--again", "N"],
    ["calibrate", "no-such-site", "--sites", "T"], ["accept-references", "no", "--sites", "T"],
    ["study", "no-such"], ["study", "iit", "N"], ["study", "iit", "--page"],
    ["study", "iit", "--html", "N/x.html"], ["models", "N"], ["scaling", "N"], ["overlap", "C"],
    ["guidelines", "N"], ["nodes", "C"], ["library", "C"],
    ["linpack", "N"], ["cycles", "C"], ["profile", "C"],
    ["plot", "C", "-e", "NoSuch"], ["plot", "C", "-e", "Linpack"],
    ["report", "N"], ["report", "C", "--base", "no-such"], ["report", "C", "-o", "N/x.html"],
    ["export", "C", "-o", "F"], ["export", "N"], ["ingest", "N"], ["conclude", "N"],
    ["audit", "--runs", "N"], ["judge", "N"], ["judge", "T"], ["judge", "F"], ["judge", "C"],
    ["judge", ""], ["judge", "F", ""], ["report", ""], ["table", " "], ["history", "--most", "0"],
    ["report", "C", "-o", ""], ["study", "iit", "--html", ""],
    ["export", "C", "-f", "appendix", "--repository", "/home/me/x"],
]  # fmt: skip


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("wrong")
    runs = folder / "runs"
    good = Synthetic(runs / "20260101T000000Z-local-a", TWICE, rounds=2).write()
    damaged = folder / "damaged"
    shutil.copytree(good, damaged)
    (damaged / "manifest.json").write_text('{"schema": "wyeast-ca')
    (folder / "empty").mkdir()
    (folder / "file").write_text("hello\n")
    return {
        "C": str(good), "D": str(damaged), "T": str(folder / "empty"), "R": str(runs),
        "N": str(folder / "nothing"), "F": str(folder / "file"),
    }  # fmt: skip


@pytest.mark.parametrize("words", WRONG, ids=" ".join)
def test_wrong_input_is_a_sentence(places: dict[str, str], words: list[str]) -> None:
    head, *rest = words
    given = [
        places[word[0]] + word[1:] if word[:1] in places and not word[1:2].isalpha() else word
        for word in rest
    ]
    done = analysis(head, *given)
    assert done.returncode in (1, 2), done.stdout + done.stderr
    said = [line for line in done.stderr.splitlines() if not line.startswith("left out: ")]
    assert said and len(said[-1]) > 20 and "Traceback" not in done.stderr
    # No name of a file that was on its way under another one.
    assert f".{Path(places['C']).name}." not in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [(["tabel"], "No such command 'tabel'. Did you mean 'table'?; all options: "),
     (["table", "sample", "--bogus"], "No such option: --bogus"),
     (["why", "sample"], "Missing argument 'other'; all options: "),
     (["export", "sample", "-f", "odd"], "'odd' is not one of 'csv', "),
     (["calibrate", "local", "--rounds", "x"], "Invalid value for '--rounds': ")],
)  # fmt: skip
def test_what_is_wrong_with_the_words_is_one_sentence(words: list[str], said: str) -> None:
    done = analysis(*words)
    assert done.returncode == 2 and done.stdout == ""
    [line] = done.stderr.splitlines()
    assert line.startswith("analysis: ") and said in line and "Value error" not in line
    assert line.endswith("--help")


def test_no_words_print_the_help() -> None:
    done = analysis()
    assert done.returncode == 2 and "The usual ones" in done.stdout + done.stderr


def test_a_python_without_the_packages_is_told_what_to_type() -> None:
    words = (
        "import runpy, sys; sys.modules['typer'] = None; "
        "runpy.run_module('analysis', run_name='__main__')"
    )
    done = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 1 and done.stderr.endswith("in the checkout: . ./activate\n")
    assert done.stderr.count("\n") == 1
