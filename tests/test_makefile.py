"""What targets of the Makefile leave alone, and which words they take."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from cluster.box import started_at
from records.locks import exclusive
from tests.other_user import OTHER, needs_root, open_folder
from tests.test_activate import OF_PYTHON

__all__ = ["open_folder"]
PROJECT = Path(__file__).resolve().parents[1]


@pytest.fixture(autouse=True)
def no_make_around(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have make behave as for a person, though the tests may be run by make."""
    for name in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS"):
        monkeypatch.delenv(name, raising=False)


def test_cleaning_up_keeps_what_nothing_could_make_again(tmp_path: Path) -> None:
    """Keys to sign with and bundles stay, and so do campaigns; all else goes, hidden or not."""
    kept = {".wyeast/trust/pgp-secret", ".wyeast/bundles/a.tar.gz", "runs/a/manifest.json"}
    gone = {".wyeast/venv/bin/python", ".wyeast/.hidden", ".wyeast/images/a.sif",
            "benchmarks/build/a.o", ".wyeast/other/trust/x"}  # fmt: skip
    command = ["make", "-s", "-f", str(PROJECT / "Makefile"), "clean"]
    for name in kept | gone:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    for _ in range(2):
        subprocess.run(command, cwd=tmp_path, check=True)
        found = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
        assert found == kept
    assert {path.name for path in (tmp_path / ".wyeast").iterdir()} == {"trust", "bundles"}
    (tmp_path / "empty").mkdir()
    subprocess.run(command, cwd=tmp_path / "empty", check=True)


LOCKS = {
    ".wyeast/locks/setup": "something is being installed (7 of a test)",
    ".wyeast/locks/build": "a build is under way (process 7 of a test)",
    ".wyeast/locks/cluster": "the cluster in a box is being started or ended (process 7 of a test)",
    ".wyeast/reframe/local/campaign-local.lock": "a campaign is measuring (7 of a test)",
}


@pytest.mark.parametrize("name", LOCKS)
def test_cleaning_up_is_refused_while_something_is_at_work(name: str, tmp_path: Path) -> None:
    command = ["make", "-s", "-f", str(PROJECT / "Makefile"), "clean"]
    (tmp_path / ".wyeast" / "venv").mkdir(parents=True)
    with exclusive(tmp_path / name, "7 of a test"):
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 2 and LOCKS[name] in done.stderr, done.stderr
        assert "nothing was removed" in done.stderr and (tmp_path / ".wyeast" / "venv").is_dir()
    # Its file is still there, and nobody holds it.
    subprocess.run(command, cwd=tmp_path, check=True)
    assert list((tmp_path / ".wyeast").iterdir()) == []


def test_cleaning_up_is_refused_while_a_cluster_is_up(tmp_path: Path) -> None:
    command = ["make", "-s", "-f", str(PROJECT / "Makefile"), "clean"]
    process = tmp_path / ".wyeast" / "cluster" / "process"
    process.parent.mkdir(parents=True)
    first = subprocess.Popen(["sleep", "600"])
    try:
        process.write_text(f"{first.pid} {started_at(first.pid)}\n")
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 2 and "end it first: make cluster-down" in done.stderr
        assert process.is_file()
        # Another process of that id, which began at another time.
        process.write_text(f"{first.pid} 1\n")
        subprocess.run(command, cwd=tmp_path, check=True)
        assert not process.exists()
    finally:
        first.kill()
        first.wait()


def make(*words: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Return how a make ended that was told what to do, and that nothing is to be installed."""
    command = ["make", "-o", ".wyeast/venv/.for-run", *words]
    where = {"cwd": PROJECT, **options}
    return subprocess.run(command, capture_output=True, text=True, check=False, **where)


#: Stands in for Python: makes what it is asked for, as far as a folder and files in it.
PLAYED_PYTHON = """#!/bin/sh
case "$*" in
    "-m venv"*) mkdir -p "$3/bin" && cp "$0" "$3/bin/python" ;;
    "-m pip"*) touch .wyeast/venv/package.py ;;
esac
"""


def test_nobody_else_may_write_what_setup_installs(tmp_path: Path) -> None:
    """Also where somebody's umask lets others write, as on some clusters."""
    python = tmp_path / "bin" / "python3"
    python.parent.mkdir()
    python.write_text(PLAYED_PYTHON)
    python.chmod(0o755)
    (tmp_path / "requirements.lock").touch()
    command = f"umask 0; exec make -f {shlex.quote(str(PROJECT / 'Makefile'))} setup"
    environment = {**os.environ, "PATH": f"{python.parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["sh", "-c", command], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    made = [tmp_path / ".wyeast", *(tmp_path / ".wyeast").rglob("*")]
    assert {"package.py", "python", ".for-run"} <= {path.name for path in made}
    assert [path for path in made if path.stat().st_mode & 0o022] == []


#: As PLAYED_PYTHON; pip notes that it began and waits to be let go on, by another pip if need be.
SLOW_PYTHON = """#!/bin/sh
case "$*" in
    "-m venv"*) mkdir -p "$3/bin" && cp "$0" "$3/bin/python" ;;
    "-m pip"*) [ ! -e pips ] || touch go; echo pip >>pips
        while [ ! -e go ]; do sleep 0.05; done ;;
esac
"""


def test_two_setups_of_a_checkout_install_one_after_the_other(tmp_path: Path) -> None:
    python = tmp_path / "bin" / "python3"
    python.parent.mkdir()
    python.write_text(SLOW_PYTHON)
    python.chmod(0o755)
    lock = tmp_path / "requirements.lock"
    lock.touch()
    os.utime(lock, (1, 1))
    command = ["make", "-f", str(PROJECT / "Makefile"), ".wyeast/venv/.for-run"]
    options: dict[str, Any] = {
        "cwd": tmp_path, "env": {**os.environ, "PATH": f"{python.parent}:{os.environ['PATH']}"},
        "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True,
    }  # fmt: skip
    with subprocess.Popen(command, **options) as first:
        try:
            while not (tmp_path / "pips").exists() and first.poll() is None:
                time.sleep(0.02)
            with subprocess.Popen(command, **options) as second:
                assert second.stderr
                # It goes on once the first one has ended, and finds all that it wanted.
                said = second.stderr.readline()
                (tmp_path / "go").touch()
                assert (first.wait(), second.wait()) == (0, 0)
        finally:
            (tmp_path / "go").touch()
    assert re.fullmatch(
        r"setup: another one installs in this checkout and is waited for: process \d+\n", said
    )
    assert (tmp_path / "pips").read_text() == "pip\n"


@pytest.mark.parametrize(
    ("played", "said", "not_said"),
    [
        ("ModuleNotFoundError: No module named 'polars'",
         "pip has installed requirements.lock, and polars is not found: look for target", ""),
        ("ImportError: libgomp.so.1: cannot open shared object file",
         "shared object file\nsetup: pip has installed polars, and Python cannot load it (exit "
         "code 1, its own message is above)", "look for target"),
        ("ModuleNotFoundError: No module named 'polars_runtime'", "cannot load it", "is not found"),
        # A processor that lacks an instruction.
        ("; kill -ILL $$", "cannot load it (exit code 132", "is not found"),
    ],
)  # fmt: skip
def test_pip_is_blamed_for_a_module_that_is_not_found_alone(
    played: str, said: str, not_said: str, tmp_path: Path
) -> None:
    python = tmp_path / "bin" / "python3"
    python.parent.mkdir()
    text, _, more = played.partition(";")
    fails = f'    *"import polars"*) echo "{text}" >&2; {more or "exit 1"} ;;\n'
    python.write_text(PLAYED_PYTHON.replace("esac", f"{fails}esac"))
    python.chmod(0o755)
    (tmp_path / "requirements.lock").touch()
    done = subprocess.run(
        ["make", "-f", str(PROJECT / "Makefile"), ".wyeast/venv/.for-run"], cwd=tmp_path,
        env={**os.environ, "PATH": f"{python.parent}:{os.environ['PATH']}"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2 and said in done.stderr, done.stderr
    assert not not_said or not_said not in done.stderr
    assert not (tmp_path / ".wyeast" / "venv" / ".for-run").exists()


REFUSED = [
    (["run", "ROUND=9", "SITES=virtual"], ["ROUND (did you mean ROUNDS?)", "mean SITE?"]),
    (["run", "rounds=9"], ["rounds (did you mean ROUNDS?)"]),
    (["run", "ROUND=a b=c'd\"e$f"], ["ROUND (did you mean ROUNDS?)"]),
    (["run", "CC=gcc"], ["make run does not take CC; it takes SITE, TIER, ROUNDS"]),
    (["run", "MAKEFLAGS=k"], ["does not take MAKEFLAGS"]),
    (["run", "SHELL=/bin/bash"], ["does not take SHELL"]),
    (["run", "a'b;c=1"], ["does not take a'b;c"]),
    (["run", "CHECKS=a\nb"], ["CHECKS has a line break in it"]),
    (["report", "ROUNDS=9"], ["make report does not take ROUNDS; it takes CAMPAIGN"]),
    (["cluster-down", "NODES=4"], ["does not take NODES; it takes no variable"]),
    (["images", "run", "IMPLEMENTATIONS=x", "ROUND=3"], ["images run does not take ROUND (did"]),
    (["run", "ALL_PAIRS=0"], ["ALL_PAIRS=0: give ALL_PAIRS=1, or leave it out"]),
    (["nightly", "DRY_RUN=no"], ["DRY_RUN=no: give DRY_RUN=1, or leave it out"]),
    (["run", "ESTIMATE=1 1"], ["ESTIMATE=1 1: give ESTIMATE=1"]),
    (["reprot"], ["there is no target reprot (did you mean report?)"]),
    (["rnu"], ["there is no target rnu (did you mean run?)"]),
    (["ROUNDS=3"], ["name a target before its variables, such as: make run ROUNDS=<value>"]),
    (
        ["run", "ROUNDS", "9"],
        ["there is no target ROUNDS (write ROUNDS=<value>), 9; see: make help"],
    ),
    (["run", "tset", "lnit"], ["tset (did you mean test?), lnit (did you mean lint?)"]),
    (["test", "TESTS=Makefile tests/nope.py"], ["there is no tests/nope.py; name files of tests"]),
    (["test-long", "TESTS=$(lint)"], ["there is no $(lint); name files of tests"]),
    (["run'; true"], ["there is no target run'; (did you mean run?)"]),
]


@pytest.mark.parametrize("how", [["-n"], ["-n", "-s", "-j2"], ["-n", "-C", str(PROJECT)]], ids=str)
@pytest.mark.parametrize(("words", "sentences"), REFUSED, ids=lambda value: " ".join(value))
def test_a_word_that_make_does_not_know_is_refused(
    words: list[str], sentences: list[str], how: list[str], tmp_path: Path
) -> None:
    done = make(*how, *words, cwd=tmp_path if "-C" in how else PROJECT)
    assert done.returncode == 2
    assert not [line for line in done.stdout.splitlines() if "directory" not in line]
    assert not [sentence for sentence in sentences if sentence not in done.stderr], done.stderr
    assert len([line for line in done.stderr.splitlines() if "***" in line]) == 1


def test_nothing_is_done_before_the_refusal(tmp_path: Path) -> None:
    (tmp_path / ".wyeast").mkdir()
    (tmp_path / ".wyeast" / "image.sif").touch()
    for words in (["clean", "DRYRUN=1"], ["clean", "claen"], ["-j2", "clean", "lnit"]):
        done = make("-f", str(PROJECT / "Makefile"), *words, cwd=tmp_path)
        assert done.returncode == 2 and (tmp_path / ".wyeast" / "image.sif").exists()


def test_variables_of_the_environment_replace_none_of_the_makefiles() -> None:
    """As a PYTHON that has none of our packages."""
    for words, flags in ((["-e"], ""), ([], "-e"), ([], "ke")):
        done = make("-n", *words, "report", env={**os.environ, "MAKEFLAGS": flags})
        assert done.returncode == 2 and "leave it out" in done.stderr, (words, flags)
        assert "Makefile: leave" in done.stderr and done.stdout == ""


def test_what_a_make_passes_on_is_refused_too(tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text(f"all:\n\t$(MAKE) -n -C '{PROJECT}' cluster-status\n")
    assert make(cwd=tmp_path).returncode == 0
    done = make("CC=gcc", cwd=tmp_path)
    assert done.returncode == 2 and "cluster-status does not take CC" in done.stderr


def test_a_make_of_ours_may_be_passed_what_the_asked_one_takes() -> None:
    """`study` measures by another make, to which its PAPER is of no use."""
    done = make("-n", f"PYTHON={sys.executable}", "study", "PAPER=iit", "CHECKS=a$b", "ROUNDS=7")
    assert done.returncode == 0, done.stderr
    [words] = measuring(done.stdout)
    assert {"--study=iit", "--rounds=7", "--checks=a$b"} < set(words)


def test_what_a_recipe_starts_may_ask_make_for_something_else(tmp_path: Path) -> None:
    """A test that measures, say, under `make test TESTS=...`."""
    other = tmp_path / "python"
    other.write_text(f"#!/bin/sh\n[ \"$CAMPAIGN\" = 'a$b' ] && make -n -C '{PROJECT}' lint\n")
    other.chmod(0o755)
    done = make(f"PYTHON={other}", "report", "CAMPAIGN=a$b")
    assert done.returncode == 0 and "ruff" in done.stdout, done.stderr


def test_words_are_read_where_standard_error_is_closed() -> None:
    command = ["sh", "-c", "exec make -n -o .wyeast/venv/.for-run run 2>&-"]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "-m campaign" in done.stdout


def test_without_its_table_nothing_is_taken(tmp_path: Path) -> None:
    shutil.copy(PROJECT / "Makefile", tmp_path)
    done = make("-n", "run", cwd=tmp_path)
    assert done.returncode == 2 and "awk could not read the Makefile" in done.stderr


@pytest.mark.parametrize(
    "words",
    [["images", "run", "ROUNDS=2", "BUILDER=spack"], ["bundle", "sample", "CAMPAIGN=x", "OUT=y"],
     [".wyeast/venv/.for-run"], ["help", "__BASH_MAKE_COMPLETION__=1"], []],
    ids=" ".join,
)  # fmt: skip
def test_what_a_target_takes_is_taken(words: list[str]) -> None:
    done = make("-n", *words, env={**os.environ, "ROUND": "9", "CC": "gcc", "TIERS": "x"})
    assert done.returncode == 0, done.stderr


def measuring(said: str) -> list[list[str]]:
    """Return the words of the commands that measure among what `make -n` said."""
    lines = said.replace("\\\n", " ").splitlines()
    commands = [shlex.split(line) for line in lines if "-m campaign " in line]
    return [words for words in commands if "--look" not in words]


def test_what_has_no_default_for_a_target_is_passed_on_where_it_is_given() -> None:
    """An audit is of all sites, and a campaign is driven by jobs, where nobody says otherwise."""
    everything, one = make("-n", "audit").stdout, make("-n", "audit", "SITE=virtual").stdout
    assert "-m analysis audit" in everything and "--site" not in everything
    assert "--site='virtual'" in one
    for words, driven in (([], []), (["DRIVER=job"], ["--driver=job"])):
        [found] = measuring(make("-n", "run", "SITE=virtual", *words).stdout)
        assert [word for word in found if word.startswith("--driver")] == driven


HOSTILE = ["a'b", "a b  c", 'a"b', "a$b$(HOME)${HOME}$$", "$(shell touch RAN)", "`touch RAN`",
           "x; touch RAN", "$(touch RAN)", "a=b=c", "a\\", "\\'", "#a", "--resume", "%,(|", "é*?~",
           "'; touch RAN; '"]  # fmt: skip


@pytest.mark.parametrize("value", HOSTILE)
@pytest.mark.parametrize("by", ["command line", "environment"])
def test_a_value_reaches_the_command_as_it_was_given(value: str, by: str, tmp_path: Path) -> None:
    """No make and no shell replaces or runs anything in it; a program notes what it is given."""
    note = tmp_path / "python"
    note.write_text('#!/bin/sh\nprintf "%s\\0" "$@" >>"$NOTED"\n')
    note.chmod(0o755)
    noted = tmp_path / "noted"
    variables = {"CAMPAIGN": b"--", "LINK": b"--link=", "CHECKS": b"--cells=",
                 "PREFIX": b"--prefix=", "SITE": b""}  # fmt: skip
    given = dict.fromkeys(variables, value)
    words = [f"{name}={value}" for name in variables] if by == "command line" else []
    done = make(
        "-f", str(PROJECT / "Makefile"), "-o", "setup", f"PYTHON={note}",
        "report", "cluster-up", "sample", "image", "accept-references", *words,
        cwd=tmp_path, env={**os.environ, **({} if words else given), "NOTED": str(noted)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    for before in variables.values():
        between = b"\0" if before in (b"--", b"") else b""
        assert before + between + value.encode() + b"\0" in noted.read_bytes(), before
    assert not list(tmp_path.rglob("RAN")) and not (PROJECT / "RAN").exists()


def test_help_has_every_target_in_a_group_and_the_usual_ones_first() -> None:
    lines = make().stdout.splitlines()
    assert lines[0] == "The usual ones:" and "Others:" not in lines
    listed = [line.split()[1] for line in lines if line.startswith("  make ")]
    assert listed[:5] == ["run", "report", "history", "nightly", "study"]
    told = re.findall(r"(?m)^([a-z-]+):[^=\n]*##", (PROJECT / "Makefile").read_text())
    assert sorted(listed) == sorted(told)


def test_a_checkout_that_was_copied_with_what_is_installed_is_noticed(tmp_path: Path) -> None:
    other = tmp_path / "it's other"
    for folder in (other, tmp_path / "new"):
        (folder / ".wyeast" / "venv").mkdir(parents=True)
        made = f"home = /usr\ncommand = /usr/bin/python3 -m venv {other}/.wyeast/venv\n"
        (folder / ".wyeast" / "venv" / "pyvenv.cfg").write_text(made)
    words = ["-n", "-f", str(PROJECT / "Makefile"), "report"]
    assert "was installed in" not in make(*words, cwd=other).stderr
    done = make(*words, cwd=tmp_path / "new")
    assert done.returncode == 2 and f"was installed in {other} and copied or moved" in done.stderr
    # Whether the other one is still there does not matter, and what mends it is not refused.
    shutil.rmtree(other)
    assert make(*words, cwd=tmp_path / "new").returncode == 2
    assert (
        make("-n", "-f", str(PROJECT / "Makefile"), "clean", cwd=tmp_path / "new").returncode == 0
    )
    # What is linked is where it was installed.
    (tmp_path / "linked" / ".wyeast").mkdir(parents=True)
    (tmp_path / "linked" / ".wyeast" / "venv").symlink_to(tmp_path / "new" / ".wyeast" / "venv")
    cfg = tmp_path / "new" / ".wyeast" / "venv" / "pyvenv.cfg"
    cfg.write_text(f"command = python3 -m venv {cfg.parent}\n")
    assert "was installed in" not in make(*words, cwd=tmp_path / "linked").stderr


def test_help_lists_the_variables_that_recipes_use() -> None:
    """What a recipe takes stands in its line, and what stands in a line is taken somewhere."""
    text = (PROJECT / "Makefile").read_text().replace("\\\n", " ")
    shared = dict(re.findall(r"^(MEASURE|CHECK_SITE|SUBMIT) = (.*)", text, re.MULTILINE))
    taken = re.compile(r"\((?:value |call (?:given|quoted|(?:option|flag),[a-z-]+),)([A-Z_]+)")
    lines, everywhere = {}, set(taken.findall(text)) | {"TESTS", "SPACK_ROOT", "PATH"}
    for name, line, recipe in re.findall(
        r"^([a-z-]+):[^#=\n]*## (.*)\n((?:(?:\t|if|else|endif).*\n)*)", text, re.MULTILINE
    ):
        lines[name] = set(re.findall(r"\b[A-Z][A-Z_]+\b", line.rpartition("(")[2]))
        for _ in range(2):
            recipe = re.sub(r"\$\((\w+)\)", lambda found: shared.get(found[1], found[0]), recipe)
        used = set(taken.findall(recipe))
        assert used <= lines[name], name
        assert bool(used) <= line.endswith(")"), name
        assert not line.endswith(")") or lines[name] <= everywhere | {"N"}, name
    assert {"ROUNDS", "HOST_MPI", "SITE"} < lines["run"] and "BUNDLE" in lines["rerun"]


def test_what_is_on_or_off_is_either_1_or_left_out() -> None:
    text = (PROJECT / "Makefile").read_text().replace("\\\n", " ")
    [switches] = re.findall(r"^SWITCHES := (.*)", text, re.MULTILINE)
    assert set(switches.split()) == set(re.findall(r"\(call flag,[a-z-]+,([A-Z_]+)\)", text))
    done = make("-n", "run", "ALL_PAIRS=1", "ESTIMATE=")
    assert done.returncode == 0 and "--all-pairs" in done.stdout
    assert "--estimate" not in done.stdout


def test_every_command_that_is_written_down_is_taken() -> None:
    """In the documents, and in the sentences that the programs say."""
    asked: dict[str, set[str]] = {}
    tracked = subprocess.run(["git", "ls-files"], cwd=PROJECT, capture_output=True, text=True)
    for name in tracked.stdout.splitlines():
        if not name.endswith((".md", ".py", ".yaml", ".html")) or name.startswith("tests/"):
            continue
        text = (PROJECT / name).read_text()
        for found in re.finditer(r"\bmake ([a-z]+(?:-[a-z]+)*)((?: [A-Z_]+=[^\s`]*)+)", text):
            asked.setdefault(found[1], set()).update(re.findall(r" ([A-Z_]+)=", found[2]))
    assert {"ROUNDS", "CHECKS", "RAW_BY_RANK"} < asked["run"] and len(asked) > 10
    for target, names in asked.items():
        done = subprocess.run(
            ["awk", "-f", "campaign/bin/request.awk", "Makefile"],
            cwd=PROJECT, env={**os.environ, "goals": target, "given": " ".join(names)},
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert done.stdout == "", target


#: Stands in for Python: notes what it is asked for, and where.
NOTING = """#!/bin/sh
of_python=$(env | grep -Ec '^(PYTHON|PIP_)')
printf '%s|' "$(pwd -P)" "$WYEAST_ROOT" "$PYTHONPATH" "$PYTHONUTF8" "$of_python" "$@" >>"$NOTED"
echo >>"$NOTED"
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout in which a Python is installed that only notes what it is asked for."""
    root = tmp_path_factory.mktemp("doors") / "a b"
    for name in ("Makefile", "activate", "campaign/bin/request.awk", "campaign/bin/copied",
                 "campaign/bin/home", "requirements.lock"):  # fmt: skip
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(PROJECT / name, root / name)
    (root / "reframe_checks").mkdir()
    (root / "reframe_checks" / "point_to_point.py").touch()
    programs = root / ".wyeast" / "venv" / "bin"
    programs.mkdir(parents=True)
    (programs / "python").write_text(NOTING)
    (programs / "python").chmod(0o755)
    (programs / "reframe").touch(mode=0o755)
    (root / ".wyeast" / "venv" / ".for-run").touch()
    (root.parent / "link").symlink_to(root.name)
    return root


DOORS: dict[str, tuple[list[str], str, dict[str, str]]] = {
    "make": ([], "a b", {}),
    "of a continuous integration": ([], "a b", {"CI": "true", "GITHUB_ACTIONS": "true"}),
    "of cron": ([], "a b", {"LANG": "", "SHELL": "/bin/sh"}),
    "of a batch job": ([], "a b", {"SLURM_JOB_ID": "7", "ENVIRONMENT": "BATCH"}),
    "-C": (["-C", "a b"], ".", {}),
    "through a link": ([], "link", {}),
    # Of which the loader remarks something on standard error, for each program.
    "with a library that is gone": ([], "a b", {"LD_PRELOAD": "/nowhere.so"}),
    "-C through a link": (["-C", "link"], ".", {}),
    "with the habits of a user": ([], "a b", {
        **OF_PYTHON, "PIP_TARGET": "/nowhere", "PIP_PREFIX": "/nowhere",
        "PYTHONPATH": "/elsewhere", "CDPATH": "/", "MAKEFLAGS": "-j2",
        "WYEAST_ROOT": "/elsewhere", "BASH_ENV": "/nowhere", "LC_ALL": "C",
    }),
}  # fmt: skip


def test_make_is_the_same_through_every_door(installed: Path) -> None:
    """Without a terminal, too: no test has one."""
    noted = {}
    for door, (words, place, more) in DOORS.items():
        note = installed.parent / "noted"
        note.unlink(missing_ok=True)
        where = installed.parent / place
        environment = {"PATH": "/usr/bin:/bin", "HOME": "/", "PWD": str(where), "NOTED": str(note)}
        done = subprocess.run(
            ["make", *words, "run", "ROUNDS=2"], cwd=where, env={**environment, **more},
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
            start_new_session=True,
        )  # fmt: skip
        assert done.returncode == 0, door + done.stderr
        noted[door] = note.read_text()
    assert len(set(noted.values())) == 1, noted
    lines = noted["make"].splitlines()
    before = f"{installed}|{installed}|{installed}|1|2|-m|"
    assert all(line.startswith(before) for line in lines)
    asked = [line[len(before) :].partition("|") for line in lines]
    assert [name for name, _, _ in asked] == [
        "campaign", "containers.apptainer_setup", "campaign.choice", "containers.sharing.obtain",
        "campaign",
    ]  # fmt: skip
    assert "|--look|--site-by-default|" in lines[0] and "--look" not in lines[-1]
    assert "|--rounds=2|" in lines[-1]


def test_a_site_that_is_named_is_nobodys_default() -> None:
    for words, environment in ((["SITE=local"], {}), ([], {"SITE": "local"})):
        said = make("-n", "run", *words, env={**os.environ, **environment}).stdout
        assert "--look" in said and "--site-by-default" not in said


FAKE = """#!/bin/sh
[ "$1" = -c ] && exit {code}
[ "$1" = -m ] && [ "$2" = venv ] && {{ echo "made by {name}" >&2; mkdir -p "$3/bin"; exit 1; }}
exit 0
"""


@pytest.mark.parametrize(
    ("there", "said"),
    [
        ({"python3": 1, "python3.12": 0, "python3.11": 0}, "made by python3.12"),
        ({"python3": 0, "python3.13": 0}, "made by python3"),
        ({"python3": 1, "python3.9": 0}, "Python 3.11 or newer with its venv module is missing"),
    ],
)
def test_a_python_that_is_new_enough_is_found_by_name(
    there: dict[str, int], said: str, tmp_path: Path
) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, code in there.items():
        (programs / name).write_text(FAKE.format(code=code, name=name))
        (programs / name).chmod(0o755)
    for name in ("sh", "id", "mkdir", "make", "awk", "dirname", "touch"):
        (programs / name).symlink_to(str(shutil.which(name)))
    (tmp_path / "requirements.lock").touch()
    done = subprocess.run(
        ["make", "-f", str(PROJECT / "Makefile"), ".wyeast/venv/.for-run"], cwd=tmp_path,
        env={"PATH": str(programs)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2 and said in done.stderr, done.stderr
    assert not (tmp_path / ".wyeast" / "venv" / ".for-run").exists()


@needs_root
@pytest.mark.parametrize(
    ("stamp", "target"), [(".wyeast/venv/.for-run", "setup"), (".wyeast/tools/.ready", "docs")]
)
def test_nobody_installs_into_anothers_checkout(open_folder: Path, stamp: str, target: str) -> None:
    root, own = open_folder / "checkout", open_folder / "own"
    own.mkdir()
    os.chown(own, OTHER, OTHER)
    for name in ("Makefile", "campaign/bin/request.awk", "campaign/bin/copied", "campaign/bin/home",
                 "records/__init__.py", "records/acting_user.py", "records/layout.py",
                 "requirements.lock", "requirements-tools.lock"):  # fmt: skip
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(PROJECT / name, root / name)
    done = subprocess.run(
        ["setpriv", f"--reuid={OTHER}", f"--regid={OTHER}", "--clear-groups", "make", "-C",
         str(root), "-o", ".wyeast/venv/.for-run" if target == "docs" else "-", stamp],
        cwd=own, env={**os.environ, "PWD": str(own)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2 and not (root / ".wyeast").exists()
    assert f"{target}: nothing can be written in {root}" in done.stderr
    assert f"make {target}; or" in done.stderr and f"git clone {root}" in done.stderr
