"""What ended a launch is named in one line, however much its program has written."""

import os
import tracemalloc
from pathlib import Path
from types import MethodType, SimpleNamespace
from typing import cast

import pytest

from records.base import RecordError
from records.causes import of_signal
from reframe_checks.mixins.noted import MOST_SAID_BYTES, NotingCheck
from reframe_checks.mixins.recording import RecordedCheck, complaint_in
from tests.reframe_checks.conftest import StandIn
from tests.reframe_checks.rates import linpack

LONG = "x" * 2_000_000


@pytest.mark.parametrize(
    ("words", "code"),
    [(f"{LONG}\n\x1b[31msrun: error: task 0: Bus error\nForce Terminated\n", 1), (LONG, 135)],
    ids=["said by a launcher", "by the exit code"],
)
def test_a_bus_error_is_named_and_a_line_of_megabytes_is_cut(
    words: str, code: int, stand_in: StandIn
) -> None:
    stand_in.write(linpack(), words, code)
    outcome = stand_in.run(only="^SerialLinpack")
    assert outcome.code != 0
    [launch] = outcome.launches
    sentence = str(launch["sentence"])
    assert len(sentence) <= 400 and sentence.isprintable()
    assert sentence.startswith("linpack ended by a bus error (signal 7)")
    assert "df /dev/shm" in sentence


@pytest.mark.parametrize(
    "line",
    ["YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Bus error (signal 7)",
     "=   KILLED BY SIGNAL: 7 (Bus error)"],
    ids=["MPICH", "Intel MPI"],
)  # fmt: skip
def test_what_hydra_says_on_standard_output_counts(line: str, tmp_path: Path) -> None:
    """As where /dev/shm is full, when nothing stands in standard error."""
    launch = SimpleNamespace(output_path=lambda stream: tmp_path / stream)
    launch._end_of = MethodType(NotingCheck._end_of, launch)
    (tmp_path / "stdout").write_text(f"{LONG}\n=   EXIT CODE: 7\n{line}\nThis typically\n")
    assert NotingCheck.said(cast(NotingCheck, launch)) == f"{line}\n"
    (tmp_path / "stderr").write_text("it ended\n")
    said = NotingCheck.said(cast(NotingCheck, launch))
    assert said == f"{line}\nit ended\n" and "df /dev/shm" in str(of_signal(7, said))


@pytest.mark.parametrize(
    ("first", "last", "sentence"),
    [
        ("gemm: no memory\n", "srun: error: it ended\n", "gemm: no memory"),
        ("", "\ngemm: no memory\n" + "\n" * 1000, "gemm: no memory"),
        ("", "\nERROR: wrong\n", "wrong"),
        # One line of megabytes.
        ("", "", "x" * 399 + "…"),
    ],
)
def test_a_complaint_is_found_at_both_ends_of_what_is_not_all_read(
    first: str, last: str, sentence: str, tmp_path: Path
) -> None:
    path, size = tmp_path / "stderr", 300 * MOST_SAID_BYTES
    with path.open("w") as file:
        file.write(first)
        for _ in range(size // 100):
            file.write("x" * 100)
        file.write(last)
    tracemalloc.start()
    try:
        assert complaint_in(path, "gemm", "srun") == sentence
        assert tracemalloc.get_traced_memory()[1] < size / 10
    finally:
        tracemalloc.stop()


def test_of_a_shorter_file_nothing_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "stderr"
    for size in (MOST_SAID_BYTES, 2 * MOST_SAID_BYTES):
        middle = "\ngemm: in the middle\n"
        path.write_text(middle.rjust(size // 2 + 10).ljust(size, "y"))
        assert path.stat().st_size == size
        assert complaint_in(path, "gemm") == middle.strip()


def test_a_complaint_is_not_read_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("gemm: of somebody else\n")
    (tmp_path / "stderr").symlink_to(tmp_path / "secret")
    with pytest.raises(RecordError, match="is a link and not a file"):
        complaint_in(tmp_path / "stderr", "gemm")
    assert complaint_in(tmp_path / "nothing", "gemm") == ""


@pytest.mark.parametrize(
    ("scheduler", "said", "who"),
    [
        ("slurm", "CANCELLED by 1000", ": user 1000"),
        ("slurm", "TIMEOUT", ""),
        # Slurm's accounting is asked only where ReFrame has it, and its silence changes nothing.
        ("squeue", "CANCELLED by 1000", ""),
        ("slurm", "", ""),
    ],
)
def test_who_cancelled_a_job_is_named_where_slurms_accounting_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scheduler: str, said: str, who: str
) -> None:
    sacct = tmp_path / "sacct"
    answer = f"echo '{said}'" if said else "exit 1"
    sacct.write_text(f'#!/bin/sh\ncase "$*" in *--jobs=17) {answer} ;; esac\n')
    sacct.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    job = SimpleNamespace(jobid="17", scheduler=SimpleNamespace(registered_name=scheduler))
    assert RecordedCheck.who_cancelled(SimpleNamespace(job=job)) == who  # type: ignore[arg-type]
