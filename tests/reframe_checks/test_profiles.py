"""Profiles that are not of the launch, lose messages or have impossible times are refused."""

from types import SimpleNamespace
from typing import Any

import pytest

from reframe_checks.mixins.profiled import Profiled
from tests import packed
from tests.analysis.models.test_profile import between, calls, of_rank, text_of
from tests.reframe_checks.conftest import StandIn
from tests.reframe_checks.test_no_vacuous_pass import hpl

ONLY = "^ProfileLinpack"


def records(sent: int = 100, received: int = 100, seconds: float = 1.0) -> list[dict[str, object]]:
    return [
        of_rank(0),
        calls(0, "MPI_Recv", seconds, received_messages=2, received_bytes=received),
        between(1, 0, "received", 2, received),
        of_rank(1),
        calls(1, "MPI_Barrier", 1.0),
        between(1, 0, "sent", 2, sent),
    ]


GOOD = text_of(records())


def profiled(stand_in: StandIn, profile: str | None, stdout: str, stderr: str = "",
             code: int = 0) -> dict[str, object]:  # fmt: skip
    """Run the check on a profile and an output; return the launch that was kept."""
    if profile is not None:
        (stand_in.root / "profile.jsonl").write_text(profile)
    stand_in.write(stdout, stderr, code)
    outcome = stand_in.run(only=ONLY)
    [launch] = outcome.launches
    assert (outcome.code == 0) == (launch["outcome"] == "sound"), outcome.text
    return launch


def test_sound_profile_is_kept_beside_the_output(stand_in: StandIn) -> None:
    launch = profiled(stand_in, GOOD, hpl())
    assert launch["outcome"] == "sound" and launch["program"] == "xhpl"
    assert launch["cell"] == "ProfileLinpack grid=1x2 n=2000 nb=192"
    campaign, name = stand_in.root / "runs/campaign", str(launch["launch"])
    assert packed.text_of(campaign, name, "profile.jsonl") == GOOD
    # The ranks have the library, and the launcher does not.
    assert "-n 2 profiled --output profile.jsonl xhpl" in packed.text_of(campaign, name, "job.sh")


WRONG = [
    (None, hpl(), "failed", "the program was not profiled, or it ended without MPI_Finalize"),
    (GOOD[: len(GOOD) // 2], hpl(), "failed", "profile.jsonl:"),
    (text_of(records(), "halo"), hpl(), "failed", "the profile is from halo, not from xhpl"),
    (text_of([*records(), of_rank(2)], ranks=3), hpl(), "failed",
     "is of 3 ranks, not of the 2 requested"),
    (text_of(records()).replace('["node", "node"]', '["a", "b"]'), hpl(), "failed",
     "the profile is of 2 nodes, not of 1"),
    (text_of([of_rank(0), of_rank(1)]), hpl(), "failed", "no MPI call was recorded in rank 0"),
    (text_of(records(received=99)), hpl(), "failed", "received 2 of 99 bytes"),
    (text_of(records(seconds=11.0)), hpl(), "suspect", "rank 0 spent 11 s in calls of MPI"),
    (GOOD, hpl(residual="17.5"), "failed", "HPL's residual is 17.5"),
    (GOOD, "", "failed", "rfm_job.out"),
]  # fmt: skip


def test_what_is_not_right(stand_in: StandIn) -> None:
    plays = []
    for profile, stdout, kind, sentence in WRONG:
        # xhpl ends with 1 where a residual failed.
        files = {"stdout": stdout, "code": str(int(" FAILED" in stdout))}
        if profile is not None:
            files["profile.jsonl"] = profile
        plays.append((files, kind, sentence))
    stand_in.refuse(plays, only=ONLY)


def test_a_program_that_dies_is_quoted(stand_in: StandIn) -> None:
    launch = profiled(stand_in, None, hpl()[:200], "xhpl: out of memory\n", code=1)
    assert launch["sentence"] == "xhpl ended with exit code 1: xhpl: out of memory"


@pytest.mark.parametrize(
    ("family", "is_official", "left_out"),
    [("openmpi", True, True), ("openmpi", False, False), ("mpich", True, False)],
)
def test_what_open_mpi_s_fortran_calls_is_left_out(
    family: str, is_official: bool, left_out: bool
) -> None:
    """NPB's own CG is in Fortran; our own is profiled with any MPI."""
    asked: list[bool] = []

    def skip_if(holds: bool, sentence: str) -> None:
        asked.append(holds)
        assert "Open MPI's functions for Fortran do not call those for C" in sentence

    check: Any = SimpleNamespace(
        is_official=lambda: is_official, skip_if=skip_if,
        image=SimpleNamespace(labels=SimpleNamespace(family=family)),
    )  # fmt: skip
    Profiled.leave_out_what_has_no_profile(check)
    assert asked == [left_out]
    # What is no NPB is profiled as well.
    del check.is_official
    Profiled.leave_out_what_has_no_profile(check)
    assert asked == [left_out, False]
