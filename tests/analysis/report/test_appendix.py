"""The appendix of a paper says what was measured, with what, how long it took, what to expect."""

import re
from pathlib import Path

import pytest

from tests.analysis.support.in_process import analysis
from tests.analysis.support.synthetic import TWICE, Synthetic

ADDRESS = "https://example.org/wyeast_%{}#"


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("appendix")
    facts = {
        "software": {"reframe": "4.10.4", "apptainer": None, "wyeast_commit": "0" * 40},
        "commands": ["make run ROUNDS=3"],
    }
    made = Synthetic(folder / "20260101T000000Z-local-a", TWICE, rounds=3, facts=facts).write()
    done = analysis(
        "export", str(made), "-f", "appendix", "-o", str(folder), "--repository", ADDRESS
    )
    assert done.returncode == 0, done.stderr
    return folder


def test_both_say_the_same(written: Path) -> None:
    for name in ("appendix.md", "appendix.tex"):
        text = (written / name).read_text().replace("\\", "").replace("allowbreak{}", "")
        for told in ("Artifact Description", "Artifact Evaluation", "a synthetic CPU, 2 cores",
                     "0" * 40, "reframe 4.10.4", "make run ROUNDS=3", "faster",
                     "20260101T000000Z-local-a.tar.gz", "C1"):  # fmt: skip
            assert told in text, (name, told)
        assert "apptainer" not in text and re.search(r"in \d+ launches", text)


def test_nothing_in_it_is_a_command_of_latex_that_is_not_ours(written: Path) -> None:
    text = (written / "appendix.tex").read_text()
    # Each brace, each environment that is opened is closed.
    plain = re.sub(r"\\[\\{}%]", "", text)
    assert plain.count("{") == plain.count("}")
    assert sorted(re.findall(r"\\begin\{(\w+)", text)) == sorted(re.findall(r"\\end\{(\w+)", text))
    defined = set(re.findall(r"providecommand\{\\(\w+)", text))
    used = set(re.findall(r"(?m)^\\(art\w+|newartifact)", text))
    assert used == defined
    assert "example.org/wyeast_%" not in text
