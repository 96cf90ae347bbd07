"""A cause is one printable line of some hundred characters, wherever it is shown."""

import json
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from records.campaign import LeftOut, read_campaign
from records.causes import (
    BY_SOMEBODY,
    LONGEST,
    of_command,
    of_scheduler,
    of_signal,
    one_line,
)
from tests.folders import write_launch
from tests.whole_records import launch, put_manifest


@given(st.text(max_size=3 * LONGEST) | st.text("\x1b[]m;0\x07a\n\t\u202e", max_size=60))
def test_any_text_becomes_one_printable_line(text: str) -> None:
    line = one_line(text)
    assert line.isprintable() and len(line) <= LONGEST
    assert one_line(line) == line and line == line.strip()


def test_what_can_be_read_stays() -> None:
    assert (
        one_line("x: \x1b[31mno such\x1b[0m\n file ü\x00")
        == "x: no such file ü\N{REPLACEMENT CHARACTER}"
    )
    assert one_line("word " * 50) == ("word " * 50).strip()


def test_a_line_of_five_megabytes_is_not_a_sentence_of_them(tmp_path: Path) -> None:
    began = time.process_time()
    long = "x" * 5_000_000
    put_manifest(tmp_path)
    record = launch(outcome="failed", sentence=f"dgemm ended with exit code 1: {long}")
    kept = write_launch(tmp_path, record, {}) / "launch.json"
    assert time.process_time() - began < 5
    assert kept.stat().st_size < 5_000
    facts = json.loads(kept.read_text())
    # Of a version that cut nothing.
    kept.write_text(json.dumps(facts | {"sentence": f"a\nb\x1b[1m{long}"}))
    [problem] = read_campaign(tmp_path).problems
    [failed] = read_campaign(tmp_path).launches
    assert failed.record.sentence and failed.record.sentence.startswith("a b xxx")
    assert len(failed.record.sentence) == LONGEST and failed.record.sentence.isprintable()
    assert len(problem.sentence) == LONGEST
    assert LeftOut("x", "a\nb").sentence == "a b"


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (135, ""), (1, "task 0: Bus error"), (7, "EXIT STRING: Bus error (signal 7)"),
        (None, "exited on signal 7 (Bus error)"), (1, "caught SIGBUS"),
    ],
)  # fmt: skip
def test_a_bus_error_is_named(code: int | None, said: str) -> None:
    cause = of_signal(code, said)
    assert cause is not None and "df /dev/shm" in cause


@pytest.mark.parametrize(
    ("code", "said", "cause"),
    [
        (139, "", "a segmentation fault (signal 11)"),
        (1, "n1: task 0: Segmentation fault\nsrun: error: n2: task 1: Killed", "a segmentation"),
        (11, "THE EXIT STRING: Segmentation fault (signal 11)", "a segmentation fault (signal 11)"),
        (132, "", "an illegal instruction (signal 4): the image may have been built for another"),
        (137, "", "being killed (signal 9), as the kernel does when memory runs out"),
        (1, "exited on signal 6 (Aborted)", "an abort (signal 6)"),
        (143, "n2: task 1: Aborted\nsrun: Force Terminated StepId=2.0", "an abort (signal 6)"),
        (143, "", "being asked to end (signal 15)"),
    ],
)  # fmt: skip
def test_which_signal_ended_a_launch_is_named(code: int, said: str, cause: str) -> None:
    assert cause in str(of_signal(code, said))


def test_what_ended_by_itself_was_ended_by_no_signal() -> None:
    """Launchers kill the ranks that are left when one fails."""
    for code, said in (
        (0, "Bus error"), (1, "no bus here"), (1, "signal 79"), (1, ""),
        (1, "n2: task 1: Killed"), (1, "task 1: Terminated"), (1, "MPI_ABORT"),
    ):  # fmt: skip
        assert of_signal(code, said) is None, said


@pytest.mark.parametrize(
    ("said", "cause"),
    [
        ("*** JOB 7 ON n1 CANCELLED AT 2026-01-01T00:00:00 DUE TO TIME LIMIT ***", "time limit"),
        ("*** STEP 7.0 ON n1 CANCELLED AT 2026-01-01T00:00:00 DUE TO NODE FAILURE, SEE LOG ***",
         "node failure, see log"),
        ("slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-01-01T00:00:00 ***", BY_SOMEBODY),
        ("slurmstepd: error: Detected 1 oom_kill event in StepId=7.0",
         "memory ran out on the node, and the kernel killed one of its processes"),
        # As srun does by itself once a rank has failed.
        ("slurmstepd: error: *** STEP 7.0 ON n1 CANCELLED AT 2026-01-01T00:00:00 ***", None),
        ("srun: error: n1: task 0: Out Of Memory",
         "memory ran out on the node, and the kernel killed one of its processes"),
        # A program says so of itself, and ends by itself.
        ("xhpl: out of memory", None),
        ("", None),
    ],
)  # fmt: skip
def test_why_the_scheduler_ended_a_job_is_named(said: str, cause: str | None) -> None:
    assert of_scheduler(f"before\n{said}\nafter") == cause


def test_all_that_a_scheduler_says_of_a_refusal_is_in_the_cause() -> None:
    command = f"command 'sbatch {'x' * 2000}' failed with exit code 1:\n--- stdout ---"
    said = "sbatch: error: Batch job submission failed:\nInvalid account\x1b[1m or partition"
    cause = of_command(command, said)
    assert cause.endswith("Batch job submission failed: Invalid account or partition")
    assert len(cause) <= LONGEST and cause.isprintable()
    assert of_command("it timed out:\nmore", "") == "it timed out"
