"""PVM's echo: only images of PVM have it, and what its check refuses."""

import json

import pytest

from reframe_checks.pvm import PvmSweep
from tests.reframe_checks.conftest import IMPLEMENTATION, LABELS, StandIn, header, lines, summary

ONLY = "PvmEcho.*=pvm_psend.*=direct"
SIZES = (0, 1_000, 10_000, 100_000, 1_000_000)


@pytest.fixture
def pvm(stand_in: StandIn) -> StandIn:
    """Return a project root whose one image is of PVM."""
    labels = {**LABELS, "org.wyeast.interface": "pvm", "org.wyeast.mpiexec": "pvm_ranks"}
    path = stand_in.root / "containers" / "images.lock"
    lock = json.loads(path.read_text())
    lock["images"][IMPLEMENTATION]["labels"] = labels
    path.write_text(json.dumps(lock))
    stand_in.label(labels)
    return stand_in


def echo(
    sizes: tuple[int, ...] = SIZES,
    method: str = "pvm_psend/direct",
    library: str = "PVM 5.0.2",
    seconds: float = 1e-4,
    verified: int = 2,
    raw: bool = True,
) -> str:
    records = [
        header("pvm_echo", library=library, mpi_standard="none", clock="CLOCK_MONOTONIC")
    ]  # fmt: skip
    for size in sizes:
        key = {"operation": "echo", "method": method, "group": "pair", "message_bytes": size}
        records.append({
            "record": "result", **key, "ranks": 2, "iterations": 20, "warmup": 5,
            "synchronisation": "none", "discarded": 0, "clock_error_s": 0.0,
            "time_s": summary(seconds), "median_by_rank_s": [seconds, seconds],
            "moved_bytes": verified * size, "verified_bytes": verified * size,
        })  # fmt: skip
        if raw:
            records.append({"record": "iterations", **key, "time_s": [seconds] * 20})
    return lines(*records, {"record": "end", "results": len(sizes)})


def test_an_image_of_mpi_is_left_out_with_a_sentence(stand_in: StandIn) -> None:
    outcome = stand_in.run(only="PvmEcho")
    assert outcome.code != 0 and not outcome.launches
    assert "no check was selected, so nothing was measured" in outcome.text
    assert "mpich-5.0.2 is an image of mpi, and PvmEcho measures pvm" in outcome.text


def test_an_image_of_pvm_is_left_out_of_what_measures_mpi(pvm: StandIn) -> None:
    outcome = pvm.run(only="PointToPoint|Preflight|Linpack|StartUp")
    assert outcome.code != 0 and not outcome.launches
    for check in ("PointToPoint", "Preflight", "Linpack", "StartUp"):
        assert f"mpich-5.0.2 is an image of pvm, and {check} measures mpi" in outcome.text


def test_sound_launch_passes_without_a_preflight(pvm: StandIn) -> None:
    pvm.write(echo())
    outcome = pvm.run(only=ONLY)
    assert outcome.code == 0, outcome.text
    [launch] = outcome.launches
    assert launch["cell"] == "PvmEcho message_sizes=few method=pvm_psend route=direct"
    assert "--raw" in str(launch["command"])


WRONG = [
    (echo(sizes=SIZES[:-1]), "are not the 5 that were requested"),
    (echo(method="pvm_psend/daemon"), "see ('echo', 'pvm_psend/direct'"),
    (echo(library="PVM 3.4.5"), "the library that ran reports: PVM 3.4.5"),
    (echo(raw=False), "lacks the times of single iterations"),
    (echo(verified=1), "data were not verified both ways"),
    (echo().replace('["node", "node"]', '["node1", "node2"]'), "2 nodes, node1, node2"),
    (echo().rsplit("\n", 2)[0] + "\n", "truncated"),
]  # fmt: skip


def test_on_a_slow_link_each_size_is_timed_less_often() -> None:
    sweep = PvmSweep(SIZES, iterations=20)
    # In a second 100 Mbit/s carry 1 MB there and back six times; a fast link as often as wanted.
    slow, fast = (sweep.shortened(link, 1.0) for link in (12.5e6, 12.5e9))
    assert (slow.iterations, slow.warmup) == (6, 1) and slow.sizes == SIZES
    assert fast == sweep


def test_output_that_is_not_as_asked(pvm: StandIn) -> None:
    pvm.refuse([(stdout, "failed", sentence) for stdout, sentence in WRONG], only=ONLY)
