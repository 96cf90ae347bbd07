"""NAS Parallel Benchmarks that are wrong, of another class or world, or too fast are refused."""

import math
import os

import pytest

from records.npb import problem
from tests.records.test_npb_output import CG, FAILED
from tests.reframe_checks.conftest import LABELS, StandIn

ONLY = "^Nas.*=CG.*=S.*ranks=2"


def summary(
    benchmark: str = "CG", size: str = "S", ranks: int = 2, seconds: float = 1e-3,
    hosts: str = "node node", verification: str = "SUCCESSFUL", before: str = "",
) -> str:  # fmt: skip
    """Return what our programs print."""
    known = problem(benchmark, size)
    rate = known.operations / seconds / 1e6
    printed = "x".join(f"{points:4d}" for points in known.size)
    return f"""

 {benchmark} of the NAS Parallel Benchmarks, class {size}, by Wyeast 1.0.0

 Hosts           = {hosts}
{before}

 {benchmark} Benchmark Completed.
 Class           = {size}
 Size            = {printed}
 Iterations      = {known.iterations}
 Time in seconds = {seconds:.9f}
 Total processes = {ranks}
 Mop/s total     = {rate:.6f}
 Mop/s/process   = {rate / ranks:.6f}
 Operation type  = floating point
 Verification    = {verification}
 Version         = Wyeast 1.0.0
"""


def test_sound_benchmark_is_kept(stand_in: StandIn) -> None:
    stand_in.write(summary())
    outcome = stand_in.run(only=ONLY)
    assert outcome.code == 0, outcome.text
    [launch] = outcome.launches
    assert launch["outcome"] == "sound" and launch["program"] == "nas_cg"
    assert launch["cell"] == "Nas benchmark=CG size=S ranks=2"
    assert "nas_cg --class S" in str(launch["command"])
    assert launch["output_format"] == "npb" and launch["oversubscribed"] == (
        len(os.sched_getaffinity(0)) < 2
    )


WRONG = " zeta is 8.6e+00, expected is 8.5971775078648e+00 within 1e-10 (NPB3.4.1-MPI)"


#: What is played, and the outcome and sentence that it must get.
WRONG_BENCHMARKS = [
    ("", "failed", "no benchmark completed"),
    (summary(size="W"), "failed", "('CG', 'W', 2), not ('CG', 'S', 2) as requested"),
    (summary(ranks=1, hosts="node"), "failed", "('CG', 'S', 1), not ('CG', 'S', 2) as requested"),
    (summary(hosts="node other"), "failed", "2 ranks are on 2 nodes"),
    (summary().replace(" Hosts ", " Hoists "), "failed", "none of which is named"),
    (summary(verification="UNSUCCESSFUL", before=WRONG), "failed",
     "zeta is 8.6e+00, expected is 8.5971775078648e+00 within 1e-10 (NPB3.4.1-MPI)"),
    (FAILED, "failed", "The correct zeta is 0.8597177507865E+01"),
    (summary(seconds=1e-6), "suspect", "above the processors' peak"),
    (summary(seconds=1e5), "suspect", "the times that it reports add up to 1e+05 s, more than the"),
    # Without the label, NPB's own output does not prove where the ranks are.
    (CG, "failed", "none of which is named"),
]  # fmt: skip


def test_benchmark_that_is_not_right(stand_in: StandIn) -> None:
    stand_in.refuse(WRONG_BENCHMARKS, only=ONLY)


def test_complaint_of_the_program_is_the_reason(stand_in: StandIn) -> None:
    stand_in.write(summary(verification="UNSUCCESSFUL"), f"nas_cg: wrong answer:{WRONG}\n", 1)
    outcome = stand_in.run(only=ONLY)
    [launch] = outcome.launches
    assert launch["outcome"] == "failed" and "expected is 8.5971775078648e+00" in outcome.reason()


def test_official_programs_by_the_label(stand_in: StandIn) -> None:
    labels = LABELS | {"org.wyeast.nas": "official"}
    stand_in.label(labels)
    # It cannot have timed more than what stands in for it takes.
    faster = CG.replace("     4.80\n", "  0.00480\n").replace("   13.88\n", "13880.00\n")
    stand_in.write(faster.replace("   6.94\n", "6940.00\n"))
    outcome = stand_in.run(only=ONLY)
    assert outcome.code == 0, outcome.text
    [launch] = outcome.launches
    assert launch["program"] == "cg.S.x"
    assert "-n 2 cg.S.x" in str(launch["command"]) and "--class" not in str(launch["command"])


def test_oversubscription_is_marked(stand_in: StandIn) -> None:
    """Two busy-waiting ranks on one processor measure each other: no answer comes from them."""
    one = min(os.sched_getaffinity(0))
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {one})
    try:
        stand_in.write(summary())
        outcome = stand_in.run(only=ONLY)
    finally:
        os.sched_setaffinity(0, before)
    [launch] = outcome.launches
    assert launch["oversubscribed"] is True


@pytest.mark.parametrize(("processors", "skipped"), [(5, False), (4, True)])
def test_data_traffic_has_a_processor_for_each_node(
    stand_in: StandIn, processors: int, skipped: bool
) -> None:
    settings = stand_in.settings(
        lambda text: text.replace("cores_per_node: detect", f"cores_per_node: {processors}")
    )
    stand_in.write(summary("DT_BH", "S", ranks=5, hosts="node " * 4 + "node"))
    outcome = stand_in.run("-C", settings, only="^NasTraffic.*=DT_BH.*=S")
    sentence = "DT_BH of class S needs a rank for each of 5 nodes, and the site has 4 processors"
    assert (sentence in outcome.text) == skipped
    if skipped:
        assert outcome.launches == []
        return
    [launch] = outcome.launches
    assert launch["outcome"] == "sound", launch
    assert launch["cell"] == "NasTraffic benchmark=DT_BH size=S ranks=5"
    assert "nas_dt --class S --least-seconds 0.5 --graph BH" in str(launch["command"])


def test_what_is_measured() -> None:
    """In tier paper the Grendel study's class, as far as the site has cores; sizes are NPB's."""
    from reframe_checks import nas

    assert nas.QUICK == [("S", 1), ("S", 2), ("W", 2)]
    assert {size for size, _ in nas.PAPER} == {"B"} and nas.PAPER[0] == ("B", 1)
    assert math.prod(problem("FT", "B").size) * nas.BYTES_PER_POINT["FT"] == 2**25 * 64


#: What one rank reserves for class W: three arrays of 2^20 keys and one of 2^16 values.
IS_OF_CLASS_W = (3 * 2**20 + 2**16) * 4


@pytest.mark.parametrize(("spare", "skipped"), [(1.01, False), (0.95, True)])
def test_a_problem_has_four_fifths_of_the_memory(
    stand_in: StandIn, spare: float, skipped: bool
) -> None:
    memory = int(spare * IS_OF_CLASS_W / 0.8)
    settings = stand_in.settings(
        lambda text: text.replace(
            "memory_bytes_per_node: detect", f"memory_bytes_per_node: {memory}"
        )
    )
    stand_in.write(summary("IS", "W"))
    outcome = stand_in.run("-C", settings, only="^Nas.*=IS.*=W.*ranks=2")
    assert ("IS needs 0.01 GB for class W, but 80% of the memory of 1" in outcome.text) == skipped
    assert len(outcome.launches) == (not skipped)
