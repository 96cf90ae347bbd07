"""Every call of Apptainer goes through one function, which runs nothing that is not admitted."""

import ast
import os
import pty
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

import pytest

from containers import apptainer
from containers.apptainer import (
    Admitted,
    NotAdmitted,
    command,
    exec_options,
    guard,
    mount_option,
    state_of,
)
from containers.guarded import BEFORE_DEV

PROJECT = Path(__file__).resolve().parents[2]
#: What the project calls, by the file that asks for it and Apptainer's command.
CALLS = {
    ("campaign/site/check.py", "exec"),
    ("campaign/site/check.py", "--version"),
    ("costs/hiding.py", "exec"),
    ("costs/places.py", "exec"),
    ("campaign/provenance.py", "exec"),
    ("campaign/provenance.py", "--version"),
    ("containers/ability.py", "buildcfg"),
    ("containers/bases.py", "build"),
    ("containers/bill_of_materials.py", "exec"),
    ("containers/bill_of_materials.py", "sif"),
    ("containers/build.py", "build"),
    ("containers/build.py", "exec"),
    ("containers/host_mpi.py", "exec"),
    ("containers/packing.py", "exec"),
    ("containers/sharing/registry.py", "sif"),
    # Its verb is `push` or `pull`.
    ("containers/registry_connection.py", "verb"),
    ("containers/sharing/reproducibility.py", "sif"),
    ("containers/spack/environment.py", "exec"),
    ("containers/spack/externals.py", "exec"),
    ("containers/trust.py", "key"),
    ("containers/trust.py", "sif"),
    ("containers/trust.py", "sign"),
    ("containers/trust.py", "verify"),
}
#: Where the program itself is named or looked for, and nothing of an image runs by that.
NAMES = {
    "analysis/report/appendix.py",
    # Whether it is there yet, before it is asked for its parts.
    "containers/ability.py",
    "containers/apptainer.py",
    "containers/apptainer_setup.py",
    # Whether it is there at all, before a command begins.
    "containers/sharing/obtain.py",
    "containers/sharing/registry.py",
    "containers/trust.py",
    # What ReFrame's jobs start by themselves, with the path that `trust.admit` gave.
    "reframe_checks/mixins/image.py",
    # A key of the manifest.
    "campaign/provenance.py",
    # Its version, for a new site's file.
    "campaign/site/new.py",
    # Which one a checkout starts, before which each launch waits for its turn.
    "costs/turns.py",
}
#: Who may say that something is admitted.
ADMIT = {"containers/bases.py", "containers/build.py", "containers/trust.py"}


@cache
def sources() -> list[tuple[str, ast.Module]]:
    """Return the files of the project's Python, its tests left out."""
    tops = [path for path in PROJECT.iterdir() if not path.name.startswith((".", "tests", "runs"))]
    files = [path for top in tops for path in ([top] if top.is_file() else top.rglob("*.py"))]
    return [
        (path.relative_to(PROJECT).as_posix(), ast.parse(path.read_text()))
        for path in sorted(files)
        if path.suffix == ".py"
    ]


def called(node: ast.Call) -> str:
    """Return the last part of the name of what is called."""
    function = node.func
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def first_word(node: ast.Call) -> str:
    word = node.args[0] if node.args else None
    if isinstance(word, ast.Constant):
        return str(word.value)
    return word.id if isinstance(word, ast.Name) else "?"


def imported(tree: ast.Module) -> set[str]:
    """Return what a file takes of containers.apptainer, under its own name, or `apptainer`."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "containers.apptainer":
            assert all(one.asname in (None, one.name) for one in node.names)
            found |= {one.name for one in node.names}
        if isinstance(node, ast.ImportFrom) and node.module == "containers":
            found |= {one.name for one in node.names if one.name == "apptainer"}
        if isinstance(node, ast.Import):
            assert "containers.apptainer" not in {one.name for one in node.names}
    return found


def test_the_callers_are_known() -> None:
    found = set()
    for name, tree in sources():
        taken = imported(tree)
        if name == "containers/apptainer.py" or not taken & {"call", "command", "apptainer"}:
            continue
        assert "apptainer" not in taken, f"{name}: import what is called by its name"
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and called(node) in taken & {"call", "command"}:
                found.add((name, first_word(node)))
    assert found == CALLS


def test_what_runs_of_an_image_is_started_apart() -> None:
    """A function that has something of an image run starts nothing beside the user's terminal."""
    found = []
    for name, tree in sources():
        for function in ast.walk(tree):
            if not isinstance(function, ast.FunctionDef):
                continue
            calls = [node for node in ast.walk(function) if isinstance(node, ast.Call)]
            if any(
                called(node) in ("call", "command") and first_word(node) == "exec" for node in calls
            ):
                found += [
                    (name, function.name) for node in calls
                    if ast.unparse(node.func).startswith("subprocess.")
                ]  # fmt: skip
    assert not found


def names_apptainer(tree: ast.Module) -> Iterator[int]:
    """Give the lines that name the program, or the function that finds it."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Constant)
            and isinstance(word := node.value, str)
            and (
                re.fullmatch(r"(.*/)?(apptainer|singularity)", word)
                or re.match(
                    r"(apptainer|singularity) (exec|run|shell|inspect|test|instance)\b", word
                )
            )
        ):
            yield node.lineno
        named = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", None)
        if isinstance(node, (ast.Attribute, ast.Name)) and named in (
            "apptainer_command", "private_command",
        ):  # fmt: skip
            yield node.lineno


def test_nothing_else_names_the_program() -> None:
    found = {name for name, tree in sources() if list(names_apptainer(tree))}
    assert found == NAMES


@pytest.mark.parametrize(
    "code",
    [
        "subprocess.run(['apptainer', 'exec', image])",
        "subprocess.run([apptainer_command(), 'inspect', image])",
        "os.execv(apptainer.apptainer_command(), words)",
        "subprocess.run(f'apptainer exec {image} true', shell=True)",
        "subprocess.run(['/usr/bin/apptainer', 'run', image])",
    ],
)
def test_a_new_caller_would_be_seen(code: str) -> None:
    assert list(names_apptainer(ast.parse(code)))


def test_admission_is_given_in_few_places() -> None:
    found = {
        name
        for name, tree in sources()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and called(node) == "Admitted"
    }
    assert found == ADMIT


@pytest.fixture
def image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(apptainer, "apptainer_command", lambda: Path("/bin/apptainer"))
    path = tmp_path / "x.sif"
    path.write_bytes(b"an image")
    return path


def test_what_is_admitted_runs(image: Path) -> None:
    admitted = Admitted(image, state_of(image))
    options = exec_options()
    words = command("exec", *options, "--bind=/a:/b", admitted, "cat", "/x")
    memory = f"--mount=type=bind,source={BEFORE_DEV}/dev/shm.own,destination=/dev/shm"
    of_root = [memory] if guard() else []
    assert words == [
        *guard(), "/bin/apptainer", "exec", *of_root, *options, "--bind=/a:/b", str(image), "cat",
        "/x",
    ]  # fmt: skip
    assert command("sif", "list", image)[1:] == ["sif", "list", str(image)]


@pytest.mark.parametrize(
    "verb", ["run", "shell", "inspect", "test", "instance", "oci", "checkpoint", "overlay", "-d"]
)
def test_what_may_start_an_image_is_not_called(image: Path, verb: str) -> None:
    with pytest.raises(NotAdmitted, match="may run code from an image"):
        command(verb, Admitted(image, state_of(image)))


def test_whoever_is_not_root_gives_away_no_terminal_whichever_opens_or_closes(
    image: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    place = image.parent / "pts"
    monkeypatch.setattr(apptainer, "TERMINALS", str(place))
    admitted = Admitted(image, state_of(image))
    covers = mount_option("/proc/tty/ldisc", str(place))
    assert covers not in command("exec", "--cleanenv", admitted)
    place.mkdir()
    assert command("exec", "--cleanenv", admitted).count(covers) == 1
    assert not os.listdir("/proc/tty/ldisc")


def test_what_is_not_admitted_does_not_run(image: Path) -> None:
    admitted = Admitted(image, state_of(image))
    for words in ([image, "true"], [str(image)], ["--bind", admitted], [image, admitted], []):
        with pytest.raises(NotAdmitted, match=r"not admitted|no image was admitted"):
            command("exec", *exec_options(), *words)


def test_the_caller_s_variables_and_root_stay_outside(
    image: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    admitted = Admitted(image, state_of(image))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(NotAdmitted, match="not started without --cleanenv"):
        command("exec", "--no-home", admitted)
    assert command("exec", "--cleanenv", admitted)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(NotAdmitted, match="not started without --userns"):
        command("exec", "--cleanenv", admitted)


def written(path: Path) -> None:
    status = path.stat()
    path.write_bytes(b"another!")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def replaced(path: Path) -> None:
    status = path.stat()
    other = path.with_name("other")
    other.write_bytes(b"another!")
    os.utime(other, ns=(status.st_atime_ns, status.st_mtime_ns))
    other.rename(path)


def test_a_file_is_asked_for_its_state_once_it_is_open(
    image: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its path alone NFS says what it knew before; and what is no file makes nobody wait."""
    found, before = image.stat(), os.stat("/")
    monkeypatch.setattr(Path, "stat", lambda path: before)
    assert (found.st_ino, found.st_size, found.st_mtime_ns) == (
        state_of(image)[1], state_of(image)[2], state_of(image)[3]
    )  # fmt: skip
    pipe = image.with_name("pipe")
    os.mkfifo(pipe)
    assert state_of(pipe)[2] == 0


@pytest.mark.parametrize("change", [written, replaced, Path.unlink])
def test_a_file_that_became_another_one_does_not_run(image: Path, change: object) -> None:
    admitted = Admitted(image, state_of(image))
    change(image)
    with pytest.raises(NotAdmitted, match="is not the file that was admitted"):
        command("exec", *exec_options(), admitted)


#: Has its user's shell read a line as if it had been typed, where it has the terminal.
TYPES = """
import fcntl, termios
for letter in b"touch injected\\n":
    fcntl.ioctl(open("/dev/tty"), termios.TIOCSTI, bytes([letter]))
"""
#: Starts it apart, or as a plain child, and says how many letters wait to be read.
ASKED = f"""
import array, fcntl, subprocess, sys, termios
from containers.apptainer import run_apart
words = [sys.executable, "-c", {TYPES!r}]
run_apart(words) if sys.argv[1] == "apart" else subprocess.run(words, capture_output=True)
waiting = array.array("i", [0])
fcntl.ioctl(0, termios.FIONREAD, waiting)
print("waiting:", waiting[0], flush=True)
"""


@pytest.mark.parametrize("how", ["apart", "as a child"])
def test_what_runs_of_an_image_types_nothing_into_its_user_s_terminal(how: str) -> None:
    pid, terminal = pty.fork()
    if not pid:
        os.execve(sys.executable, [sys.executable, "-c", ASKED, how],
                  {**os.environ, "PYTHONPATH": str(PROJECT)})  # fmt: skip
    said = b""
    # At its end the terminal has no other side any more.
    with suppress(OSError):
        while read := os.read(terminal, 4096):
            said += read
    os.close(terminal)
    os.waitpid(pid, 0)
    [waiting] = re.findall(rb"waiting: (\d+)", said)
    if how == "apart":
        assert waiting == b"0", said
    # Without that it can, unless the kernel forbids it to everybody.
    elif not (knob := Path("/proc/sys/dev/tty/legacy_tiocsti")).exists() or (
        knob.read_text().strip() == "1"
    ):
        assert int(waiting) > 0, said


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_what_runs_of_an_image_fills_neither_memory_nor_disk_with_its_words(stream: str) -> None:
    """A file of it may be a link to a device that never ends, and limits that it may raise none."""
    tries = "import resource as r, sys; most = r.getrlimit(r.RLIMIT_FSIZE)[1]\n" \
        "r.setrlimit(r.RLIMIT_FSIZE, (most, most))\n" \
        f"while True: sys.{stream}.buffer.write(bytes(2**16))"  # fmt: skip
    done = apptainer.run_apart([sys.executable, "-c", tries], patience_s=300, most_bytes=2**20)
    assert done.returncode != 0
    assert len(getattr(done, stream)) <= 2**20
