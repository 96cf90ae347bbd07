"""A cause is one printable line of some hundred characters, wherever it is shown."""

import json
import re
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from records.ailments.known import Known
from records.ailments.of_machines import (
    ADDRESS_SPACE,
    FILE_LIMIT,
    FULL_DISK,
    HIDDEN_PROGRAM,
    NO_FUSE,
    NO_NAME,
    NO_NAMESPACES,
    NO_NAMESPACES_FOR_ROOT,
    NO_SUBORDINATE_IDS,
    OTHER_PROCESSORS,
)
from records.campaign import LeftOut, read_campaign
from records.causes import (
    BY_SOMEBODY,
    LONGEST,
    of_command,
    of_scheduler,
    of_signal,
    one_line,
    sentence_in,
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
        (139, "node2: task 1: Aborted\nnode1: task 0: Segmentation fault", "an abort (signal 6)"),
        (134, "node1: task 0: Bus error\nnode2: task 1: Aborted", "a bus error (signal 7)"),
        (139, "Aborted: the handshake", "a segmentation fault (signal 11)"),
        (137, "signal 11\nsignal 9", "a segmentation fault (signal 11)"),
    ],
)  # fmt: skip
def test_which_signal_ended_a_launch_is_named(code: int, said: str, cause: str) -> None:
    assert cause in str(of_signal(code, said))


def test_what_exited_normally_was_not_ended_by_a_signal() -> None:
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


#: What programs printed, and the sentence in it.
OF_OPEN_MPI = """\
--------------------------------------------------------------------------
There are not enough slots available in the system to satisfy the 4
slots that were requested by the application:

  preflight

Either request fewer procs for your application.
--------------------------------------------------------------------------
"""
OF_PRTE = """\
dgemm: no such option: --seise
--------------------------------------------------------------------------
prterun detected that one or more processes exited with non-zero status,
thus causing the job to be terminated. The first process to do so was:

   Process name: [prterun-node-7@1,0]
   Exit code:    1
--------------------------------------------------------------------------
"""
OF_ABORT = """\
--------------------------------------------------------------------------
MPI_ABORT was invoked on rank 0 in communicator MPI_COMM_WORLD
with errorcode 1.

NOTE: invoking MPI_ABORT causes Open MPI to kill all MPI processes.
--------------------------------------------------------------------------
"""
OF_HYDRA = """\
sh: 1: dgem: not found

===================================================================================
=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES
=   EXIT CODE: 127
===================================================================================
YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Hangup (signal 1)
"""
OF_PYTHON = """\
Traceback (most recent call last):
  File "x.py", line 3, in <module>
ValueError: three is not four
"""


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ("", ""),
        ("\x1b[0m\n\n----\n", ""),
        ("one\ntwo\n\x1b[0m\n", "two"),
        ("\x1b[31mFATAL:  \x1b[0m While opening x: it is no file\n", "While opening x: it is no "
         "file"),
        ("INFO:    Starting build\nERROR  : the cause\nFATAL:   exit status 1\nafter it\n",
         "the cause"),
        ("E: Unable to locate package x\n", "Unable to locate package x"),
        ("srun: error: Unable to create step\nfurther words", "Unable to create step"),
        ("INFO:    nothing more\n", ""),
        (OF_PYTHON, "ValueError: three is not four"),
        (OF_OPEN_MPI, "There are not enough slots available in the system to satisfy the 4 slots "
         "that were requested by the application:"),
        (OF_PRTE, "dgemm: no such option: --seise"),
        (OF_ABORT, "MPI_ABORT was invoked on rank 0 in communicator MPI_COMM_WORLD with errorcode "
         "1."),
        (OF_HYDRA, "sh: 1: dgem: not found"),
    ],
)  # fmt: skip
def test_the_sentence_is_found_in_what_was_printed(said: str, sentence: str) -> None:
    assert sentence_in(said) == sentence


@pytest.mark.parametrize(
    ("line", "known"),
    [
        ("ERROR  : Failed to create user namespace: maximum number of user namespaces exceeded, "
         "check /proc/sys/user/max_user_namespaces", NO_NAMESPACES),
        ("ERROR  : Failed to create user namespace: not allowed to create user namespace",
         NO_NAMESPACES),
        ("unshare syscall failed: Operation not permitted", NO_NAMESPACES),
        ("unshare: unshare failed: No space left on device", NO_NAMESPACES_FOR_ROOT),
        ("unshare: unshare failed: Operation not permitted", NO_NAMESPACES_FOR_ROOT),
        ("FATAL:   container creation failed: while mounting image: squashfuse_ll: fuse: device "
         "not found, try 'modprobe fuse' first", NO_FUSE),
        ("FATAL:   Couldn't determine user account information: user: unknown userid 1006",
         NO_NAME),
        ("fusermount3: failed to open /dev/fuse: Permission denied", NO_FUSE),
        ("FATAL:   could not use fakeroot: no mapping entry found in /etc/subuid for carol",
         NO_SUBORDINATE_IDS),
        ('FATAL:   "mpiexec": executable file not found in $PATH', HIDDEN_PROGRAM),
        ("tar: x: Cannot write: No space left on device", FULL_DISK),
        ("SIGXFSZ: file size limit exceeded", FILE_LIMIT),
        ("FATAL:   write /tmp/x: file too large", FILE_LIMIT),
        ("FATAL:   While checking container encryption: could not open image /a.sif: the image's "
         "architecture (arm64) could not run on the host's (amd64)", OTHER_PROCESSORS),
        # Go prints a hundred lines of its stacks after it.
        ("fatal error: failed to reserve page summary memory", ADDRESS_SPACE),
        ("apptainer: libc.so.6: failed to map segment from shared object: Cannot allocate memory",
         ADDRESS_SPACE),
    ],
)  # fmt: skip
def test_a_known_cause_goes_before_all_that_follows_from_it(line: str, known: Known) -> None:
    said = f"WARNING: first\nERROR: second\n\x1b[31m{line}\x1b[0m\nFATAL:   exit status 255\n"
    sentence = sentence_in(said)
    what = line.partition(":   ")[2] or line.partition(" : ")[2] or line
    assert sentence == f"{what}; {known.sentence}"


@given(st.text(max_size=300) | st.text("\x1b[]m;0-=*\nE: fatal", max_size=80))
def test_of_anything_that_was_printed_the_sentence_is_one_line(said: str) -> None:
    sentence = sentence_in(said)
    assert sentence == one_line(sentence, 2 * LONGEST)
    assert not sentence or re.search(r"\w", said)
