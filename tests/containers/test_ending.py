"""A command that cannot do its work ends with one sentence, whatever went wrong."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from containers.ending import exit_code
from containers.images import ImageError


def fail(error: BaseException) -> int:
    raise error


@pytest.mark.parametrize(
    ("error", "code", "sentence"),
    [
        (ImageError("there is no image"), 1, "sign: there is no image"),
        (PermissionError(13, "Permission denied", "a.sif"), 1, "sign: a.sif: Permission denied"),
        (OSError("no file at all"), 1, "sign: no file at all"),
        (KeyboardInterrupt(), 130, "sign: interrupted; the images are unchanged"),
    ],
)
def test_every_end_is_a_sentence(
    error: BaseException, code: int, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ends = exit_code("sign", lambda: fail(error), (ImageError,), "the images are unchanged")
    assert (ends, capsys.readouterr()) == (code, ("", f"{sentence}\n"))


def test_what_went_well_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("sign", lambda: 3, (ImageError,), "") == 3
    assert capsys.readouterr() == ("", "")


def test_a_mistake_of_the_program_is_not_hidden() -> None:
    with pytest.raises(ZeroDivisionError):
        exit_code("sign", lambda: 1 // 0, (ImageError,), "")


@pytest.mark.parametrize(
    ("module", "words", "sentence"),
    [
        ("sharing.registry", ["push"], "push: name the registry"),
        ("trust", ["verify", "--images", "no-such"], "verify: "),
        ("bill_of_materials", ["--images", "no-such"], "bill: "),
    ],
)
def test_commands_end_so(module: str, words: list[str], sentence: str, tmp_path: Path) -> None:
    project = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, "-m", f"containers.{module}", *words],
        env={**os.environ, "WYEAST_ROOT": str(tmp_path), "PYTHONPATH": str(project)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.startswith(sentence) and done.stderr.count("\n") == 1


def touched(path: Path) -> int:
    path.touch()
    return 0


@pytest.mark.parametrize(("before", "within"), [(0o000, 0o022), (0o002, 0o022), (0o077, 0o077)])
def test_what_a_command_writes_only_its_owner_may_change(
    tmp_path: Path, before: int, within: int
) -> None:
    """Whatever the user's habit, which is never made looser."""
    was = os.umask(before)
    try:
        assert exit_code("x", lambda: touched(tmp_path / "a"), (), "") == 0
        assert (tmp_path / "a").stat().st_mode & 0o777 == 0o666 & ~within
        assert os.umask(before) == within
    finally:
        os.umask(was)


WORKS = "from containers.ending import exit_code; import os, sys; "


def ends(work: str, stdout: str, before: str = "") -> tuple[int, str]:
    """Return how a command ends that a shell starts so, and what it says."""
    command = f"{WORKS}{before}sys.exit(exit_code('x', lambda: {work}, (KeyError,), ''))"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", f'"$0" -c "$1" {stdout}', sys.executable, command],
        capture_output=True, text=True, check=False,
        env={"PYTHONPATH": str(Path(__file__).resolve().parents[2]), "PATH": os.environ["PATH"]},
    )  # fmt: skip
    return done.returncode, done.stderr


LONG = "[print('x' * 1000) for _ in range(1000)]"


@pytest.mark.parametrize(
    ("unread", "work", "stdout", "how"),
    [
        # Its reader goes in the middle: the work is not done, and nobody is told.
        (1, f"{LONG} and 0", "| true", (141, "")),
        # Another pipe is none of whoever reads what is printed.
        (3, "os.write(3, b'x')", "3> >(true) | cat", (1, "x: Broken pipe\n")),
        # Of what fails only the sentence is said.
        (1, "print('said') or {}['why']", "| true", (1, "x: 'why'\n")),
        (None, "print('said') or {}['why']", ">/dev/full", (1, "x: 'why'\n")),
        (None, "{}['why']", "2>/dev/full", (1, "")),
    ],
)
def test_a_reader_that_has_gone_is_no_mistake(
    unread: int | None, work: str, stdout: str, how: tuple[int, str]
) -> None:
    gone = f"import select; end = select.poll(); end.register({unread}, 0); end.poll(); "
    assert ends(work, stdout, gone if unread else "") == how


def test_a_stream_whose_number_is_another_file_s_is_none() -> None:
    taken = "os.open('/dev/null', os.O_RDONLY); "
    assert ends("print('said') or 0", ">&-", taken) == (0, "")
    assert ends("{}['why']", "2>&-", taken) == (1, "")


def test_where_memory_runs_out_that_is_said() -> None:
    code, said = ends("bytes(2**62)", "")
    assert code == 1 and said.count("\n") == 1
    assert said.startswith("x: the memory limit of a process is too low (`ulimit -v`")
    assert said.endswith("(MemoryError)\n")


@pytest.mark.parametrize(
    ("stdout", "ends"),
    [
        ("/dev/full", (1, "x: the disk is full; free some space and run it again\n")),
        ("pipe", (0, "")),
    ],
)
def test_what_cannot_be_printed_is_said_unless_nobody_reads_it(
    stdout: str, ends: tuple[int, str]
) -> None:
    command = (
        "from containers.ending import exit_code; import sys; "
        "sys.exit(exit_code('x', lambda: print('said') or 0, (), ''))"
    )
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing if stdout == "pipe" else stdout, "wb") as file:
        done = subprocess.run(
            [sys.executable, "-c", command], stdout=file, stderr=subprocess.PIPE, text=True,
            env={"PYTHONPATH": str(Path(__file__).resolve().parents[2])}, check=False,
        )  # fmt: skip
    assert (done.returncode, done.stderr) == ends
