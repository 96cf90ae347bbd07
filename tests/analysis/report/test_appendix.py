"""The appendix of a paper says what was measured, with what, how long it took, what to expect."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.analysis.support.in_process import analysis
from tests.analysis.support.synthetic import TWICE, Synthetic

ADDRESS = "https://example.org/wyeast_%{}~^"


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
                     "20260101T000000Z-local-a.tar.gz", "C1",
                     "contributions supported"):  # fmt: skip
            assert told in text, (name, told)
        assert "apptainer" not in text and re.search(r"in \d+ launches", text)


def test_the_programs_address_is_that_of_bundles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the setting says, without a password, and what git's remote says if that is public."""
    monkeypatch.setattr("analysis.commands.export.ROOT", tmp_path)
    made = Synthetic(tmp_path / "20260101T000000Z-local-a", TWICE, rounds=2).write()

    def told(*words: str) -> str:
        done = analysis("export", str(made), "-f", "appendix", "-o", str(tmp_path), *words)
        assert done.returncode == 0, done.stderr
        return (tmp_path / "appendix.md").read_text()

    (tmp_path / "CITATION.cff").write_text("repository-code: https://me:pw@host.org/wyeast\n")
    assert "git clone https://host.org/wyeast wyeast" in told()
    assert "git clone https://other.org/x wyeast" in told("--repository", "https://other.org/x")
    (tmp_path / "CITATION.cff").unlink()
    git = ["git", "-C", str(tmp_path)]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "remote", "add", "origin", "git@inside.org:me/w"], check=True)
    assert "git clone <address of the repository> wyeast" in told()
    subprocess.run([*git, "remote", "set-url", "origin", "https://host.org/w"], check=True)
    assert "git clone https://host.org/w wyeast" in told()
    done = analysis("export", str(made), "-f", "appendix", "--repository", "/home/me/x")
    assert done.returncode == 1 and "is not an address that others can use" in done.stderr


def test_nothing_in_it_is_a_command_of_latex_that_is_not_ours(written: Path) -> None:
    text = (written / "appendix.tex").read_text()
    # Each brace, each environment that is opened is closed.
    plain = re.sub(r"\\[\\{}%]", "", text)
    assert plain.count("{") == plain.count("}")
    assert sorted(re.findall(r"\\begin\{(\w+)", text)) == sorted(re.findall(r"\\end\{(\w+)", text))
    defined = set(re.findall(r"providecommand\{\\(\w+)", text))
    used = set(re.findall(r"(?m)^\\(art\w+|newartifact|appendix\w+)", text))
    assert used == defined
    assert "example.org/wyeast_%" not in text


def test_a_reviewer_can_follow_it_alone(written: Path) -> None:
    """The program is that of the campaign, and the bundle is verified before anything runs."""
    text = (written / "appendix.md").read_text()
    steps = ["git clone", "cd wyeast", f"git checkout {'0' * 40}", "make setup", "tar -xzf",
             "sha256sum --check SHA256SUMS", "DRY_RUN=1"]  # fmt: skip
    evaluation = text[text.index("# Artifact Evaluation") :]
    places = [evaluation.index(step) for step in steps]
    assert places == sorted(places)
    assert "was changed" not in text and "changed and not committed" not in text


def test_nothing_is_claimed_that_is_not_shown(tmp_path: Path) -> None:
    """A checkout with changes, output that is gone, and comparisons that are open are told."""
    same = dict.fromkeys(TWICE, TWICE["alpha-1.0"])
    facts = {"software": {"wyeast_commit": "1" * 40, "wyeast_changes": True}}
    made = Synthetic(tmp_path / "20260101T000000Z-local-a", same, rounds=2, facts=facts).write()
    done = analysis("export", str(made), "-f", "appendix", "-o", str(tmp_path))
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "appendix.md").read_text()
    assert "with files that were changed and not committed" in text
    related = text.partition("## Paper's main contributions")[2].partition("## ")[0]
    assert "shows neither a difference nor equivalence in 4 more comparisons" in related
    assert "inconclusive" not in related and "no difference shown" not in related
    assert "the ratio of a rerun may lie outside" in text and "expected to overlap" not in text


#: What LaTeX acts on, where it is not one of its own words.
ACTED_ON = re.compile(r"(?<!\\)[#$%&_^~]")


def test_each_sign_that_latex_acts_on_is_escaped(written: Path) -> None:
    """Outside of our own commands: of tables `&` parts the columns, and a comment begins a line."""
    text = (written / "appendix.tex").read_text()
    for line in text.splitlines():
        if line.startswith(("%", r"\providecommand", r"\setlength")):
            continue
        plain = line.replace(r"$\times$", "").replace(" & ", " ")
        assert not ACTED_ON.search(plain), line
        # Letters that T1 has not would stop a run of LaTeX.
        assert all(sign.isascii() or (sign.isalpha() and ord(sign) < 0x180) for sign in line), line


DOCUMENT = r"""\documentclass%s{article}
\usepackage[T1]{fontenc}
\usepackage{textcomp,array,booktabs,longtable,pdflscape}
\begin{document}
\input{appendix.tex}
\input{tables.tex}
\end{document}
"""
#: What a line may stick out of its page, in points: a letter.
STICKS_OUT_PT = 8.0


@pytest.mark.real
@pytest.mark.long
@pytest.mark.parametrize("option", ["", "[twocolumn]"])
def test_latex_makes_pages_of_it(tmp_path: Path, option: str) -> None:
    """In one column and in two, as papers have them; nothing is wider than the page."""
    for name in ("appendix", "latex"):
        done = analysis("export", "sample", "-f", name, "-o", str(tmp_path))
        assert done.returncode == 0, done.stderr
    (tmp_path / "paper.tex").write_text(DOCUMENT % option)
    made = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"],
        cwd=tmp_path, capture_output=True, text=True, errors="replace", timeout=300,
    )  # fmt: skip
    assert made.returncode == 0, made.stdout[-3000:]
    assert (tmp_path / "paper.pdf").read_bytes().startswith(b"%PDF")
    log = (tmp_path / "paper.log").read_text(errors="replace")
    assert "Missing character" not in log and "undefined" not in log
    wide = re.findall(r"Overfull \\hbox \(([\d.]+)pt too wide", log)
    assert [one for one in wide if float(one) > STICKS_OUT_PT] == []
