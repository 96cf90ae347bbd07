"""Every command of the pages is one that a test runs, or stands where the pages say why not."""

import re
import shlex
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer.main

from analysis.__main__ import app
from documentation.pages import listed
from tests.analysis.test_hostile_strings import WALK

PROJECT = Path(__file__).resolve().parents[2]
#: What tests do with what a target calls; the tests of the Makefile say that targets call it.
RUN_BY = {
    "accept-references": "tests/analysis/references/test_calibration.py",
    "admit": "tests/containers/test_admission.py",
    "appendix": "tests/analysis/report/test_appendix.py",
    "audit": "tests/campaign/test_audit.py",
    "bill": "tests/containers/test_bill_of_materials.py",
    "bundle": "tests/campaign/bundle/test_make.py",
    "calibrate": "tests/analysis/references/test_calibration.py",
    "check-site": "tests/cluster/test_site.py",
    "doctor": "tests/cluster/test_doctor.py",
    "cluster-down": "tests/cluster/test_box.py",
    "cluster-up": "tests/cluster/test_box.py",
    "docs": "tests/documentation/test_site.py",
    "history": "tests/analysis/nights/test_page.py",
    "image": "tests/containers/test_prefix.py",
    "images": "tests/containers/test_obtain.py",
    "new-key": "tests/containers/test_trust_real.py",
    "new-site": "tests/campaign/site/test_new_site.py",
    "nightly": "tests/campaign/test_nightly.py",
    "pull": "tests/containers/test_registry_real.py",
    "push": "tests/containers/test_registry_real.py",
    "report": "tests/analysis/report/test_report.py",
    "reproducibility": "tests/containers/test_reproducibility.py",
    "rerun": "tests/campaign/bundle/test_rerun.py",
    "run": "tests/campaign/real_campaigns.py",
    "sample": "tests/campaign/bundle/test_sample.py",
    "setup": "tests/test_makefile.py",
    "sign": "tests/containers/test_trust_real.py",
    "spack": "tests/containers/test_spack.py",
    "spack-environment": "tests/containers/test_spack_standalone.py",
    "spack-externals": "tests/containers/test_spack_externals.py",
    "spack-lock": "tests/containers/test_spack.py",
    "spack-release": "tests/containers/test_spack_release.py",
    "spack-mirror": "tests/containers/test_spack.py",
    "spack-sources": "tests/containers/test_spack_given.py",
    "study": "tests/campaign/test_study.py",
    "verify": "tests/containers/test_trust_real.py",
}
#: Modules that pages call by themselves; what tests call with `-m`, too.
OURS = (["-m", "cluster"], ["-m", "containers.build"], ["-m", "containers.apptainer_setup"])
#: These run the tests.
TESTS = {"test", "test-long", "unit", "lint"}
#: Commands of other programs, which the pages show where ours end: why no test types them.
OTHERS = {
    "apptainer registry login": "asks a person for a password",
    "spack ": "tests marked `spack` call it by our own commands",
    "export WYEAST_SITE=": "is for the commands of Spack below it",
    "git clone": "its address is a reader's", "git tag": "makes a release",
    "python -m tests.": "draws pages, which other tests compare",
}  # fmt: skip
COMMAND = re.compile(
    r"(?:[A-Z_]+=\S+ )*(?:make|python3?|reframe|mpiexec|apptainer|spack|export|git|sbatch|srun) "
)
BLOCK = re.compile(r"(?ms)^(`{3,})[^\n]*\n(.*?)^\1$|^((?:    [^\n]*\n)+)")
#: What stands above a block of commands that exist in images alone.
IN_AN_IMAGE = re.compile(r"(?:In an image|\[In an image\]\([^()]*\)):\s*$")


def commands(text: str) -> list[tuple[str, bool]]:
    """Return the commands of a page's blocks, with whether the page says that they are in an image.

    A block whose first line is no command is an output or a file.
    """
    found = []
    for block in BLOCK.finditer(text):
        lines = (block[2] or block[3]).replace("\\\n", " ").splitlines()
        lines = [line.strip() for line in lines if line.strip()]
        marked = bool(IN_AN_IMAGE.search(text[: block.start()].rstrip()))
        if lines and (COMMAND.match(lines[0]) or lines[0] == ". ./activate"):
            found += [(one.strip(), marked) for line in lines for one in line.split(" && ")
                      if COMMAND.match(one.strip())]  # fmt: skip
    return found


def untested(command: str, marked: bool) -> str | None:
    """Return what is wrong with a command of a page, None if a test runs the like."""
    words = shlex.split(command, comments=True)
    while "=" in words[0] and words[0] != "export":
        words.pop(0)
    if words[0] == "make":
        targets = [one for word in words[1:] if "=" not in word for one in word.split("|")]
        if unknown := set(targets) - set(RUN_BY) - TESTS:
            return f"no test runs make {', '.join(sorted(unknown))}"
        return refused(targets, [word.partition("=")[0] for word in words[1:] if "=" in word])
    if words[:3] == ["python", "-m", "analysis"]:
        return unparsed(words[3:])
    if words[0] == "mpiexec" or (words[0] == "apptainer" and "mpiexec" in words):
        return None if marked else "is not marked as being in an image"
    if words[0] == "reframe" or words[1:3] in OURS:
        return None
    return None if command.startswith(tuple(OTHERS)) else "is not known to the tests"


@cache
def variables_of(target: str) -> set[str]:
    """Return the variables that a target takes, as `make help` lists them."""
    makefile = (PROJECT / "Makefile").read_text()
    told = re.findall(rf"(?m)^{target}:(?=$|[^=]).*## .*\(([^()]*)\)$", makefile)
    return set(re.findall(r"\b[A-Z][A-Z_]+\b", re.sub(r'"[^"]*"|<[^>]*>', "", " ".join(told))))


def refused(targets: list[str], given: list[str]) -> str | None:
    """Return which variable of a command of make no target of it takes."""
    taken = set().union(*map(variables_of, targets))
    unknown = sorted(set(given) - taken - {"PYTHON"})
    return f"make {' '.join(targets)} takes no {', '.join(unknown)}" if unknown else None


def unparsed(words: list[str]) -> str | None:
    """Return why a command of the analysis is refused before it has read anything."""
    known: Any = typer.main.get_command(app)
    if words[0] not in WALK:
        return f"there is no command {words[0]}"
    command = known.commands[words[0]]
    try:
        command.make_context(words[0], [word for word in words[1:] if word not in ("[OPTIONS]",)])
    except Exception as error:
        return str(error)
    return None


@pytest.mark.parametrize("page", listed(PROJECT))
def test_every_command_of_a_page_is_run_by_a_test_or_marked(page: str) -> None:
    found = commands((PROJECT / page).read_text())
    wrong = {one: why for one, marked in found if (why := untested(one, marked))}
    assert wrong == {}


def test_there_are_commands_in_the_pages() -> None:
    every = [one for page in listed(PROJECT) for one in commands((PROJECT / page).read_text())]
    assert len(every) > 100 and sum(marked for _, marked in every) >= 5
    assert {one.split()[0] for one, _ in every} >= {"make", "python", "reframe", "mpiexec"}


def called_by(makefile: str, target: str) -> set[str]:
    """Return what a target's recipe calls: the last parts of modules, commands of the analysis."""
    for name, words in re.findall(r"(?m)^([A-Z_]+) :?= (.*-m .*)$", makefile):
        makefile = makefile.replace(f"$({name})", words)
    [recipe] = re.findall(rf"(?m)^{target}:.*\n((?:(?:\t|if|else|endif).*\n)*)", makefile)
    found = re.findall(r"-m (?:\w+\.)*(\w+)((?: [a-z][\w-]+)?)", recipe)
    return {command.strip() or module for module, command in found} or {target}


def test_the_tests_that_run_them_are_there() -> None:
    makefile = (PROJECT / "Makefile").read_text()
    for target, file in RUN_BY.items():
        text = (PROJECT / file).read_text()
        called = called_by(makefile, target)
        assert any(re.search(rf"\b{name}\b", text) for name in called), target
    assert called_by(makefile, "spack-lock") == {"lock"}
    assert called_by(makefile, "audit") == {"audit"}


@pytest.mark.parametrize(
    ("command", "marked"),
    [("make conclude", False), ("make run BUDGTE=1h", False),
     ("python -m analysis answre latest", False),
     ("python -m analysis answer latest --bsae x", False), ("mpiexec -n 2 profiled ls", False),
     ("apptainer exec a.sif mpiexec -n 2 ls", False), ("git push", False)],
)  # fmt: skip
def test_a_command_that_nothing_runs_is_found(command: str, marked: bool) -> None:
    assert untested(command, marked)
    assert "image" not in (untested(command, True) or "")


def test_what_is_in_an_image_is_said_above_it() -> None:
    text = "It runs. {}\n\n```\nmpiexec -n 2 emulator\n```\n"
    assert commands(text.format("So:")) == [("mpiexec -n 2 emulator", False)]
    for words in ("In an image:", "[In an image](x.md#y):"):
        assert commands(text.format(words)) == [("mpiexec -n 2 emulator", True)]
    assert commands("```\nopenmpi is faster\nmake run\n```\n") == []
