"""The values of every experiment that is compared, of outputs that are made up."""

import hashlib
import json
import math
from pathlib import Path
from typing import Any

import pytest

from records import values
from records.experiments import compared
from records.launch import READERS
from records.values import LaunchValues, values_of
from tests.reframe_checks.conftest import header, lines
from tests.reframe_checks.test_su3 import simulation

STARTED_S = 1_700_000_000.0
CAPTURED = Path(__file__).with_name("captured")
HPL = """WR11C2R4 {n} 192 1 2 {time:.2f} {rate:.4e}
||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)= 0.005 ...... PASSED
1 tests completed and passed residual checks,
0 tests completed and failed residual checks,
End of Tests.
"""

Record = dict[str, Any]


def times(median: float) -> dict[str, float]:
    """Return a summary in which no number stands for another."""
    shares = {"min": 0.5, "quartile1": 0.75, "median": 1.0, "mean": 1.2, "quartile3": 1.5, "max": 3}
    return {name: share * median for name, share in shares.items()}


def printed(*results: Record, **more: Any) -> str:
    """Return the output of a program with these results; `more` is of its header."""
    of_results = [{"record": "result", **one} for one in results]
    return lines(header("made", **more), *of_results, {"record": "end", "results": len(results)})


def pingpong(size: int, median: float) -> Record:
    return {
        "operation": "pingpong", "pair": "Send/Recv", "order": "modified", "message_bytes": size,
        "iterations": 9, "warmup": 1, "time_s": times(median), "verified_bytes": size,
        "memory_copy_s": 1e-9,
    }  # fmt: skip


def round_trips(**more: object) -> str:
    """Return the output of `pingpong`, also of messages without data, which have no bandwidth."""
    return printed(pingpong(0, 1e-6), pingpong(1000, 2e-6), pingpong(3000, 4e-6), **more)


def communication(operation: str, method: str, size: int, median: float) -> Record:
    return {
        "operation": operation, "method": method, "group": "world", "message_bytes": size,
        "ranks": 2, "iterations": 9, "warmup": 1, "synchronisation": "barrier", "discarded": 0,
        "clock_error_s": 0.0, "time_s": times(median), "median_by_rank_s": [median, median / 2],
        "moved_bytes": size, "verified_bytes": size,
    }  # fmt: skip


def communications(*operations: str) -> str:
    """Return the output of a program of communications: two sizes, and what is not compared.

    That is what overlaps with computing, and an operation without data that took no time.
    """
    return printed(
        *(
            communication(operation, method, size, (number + 1) * (size + 10) * scale)
            for number, operation in enumerate(operations)
            for method, scale in (("blocking", 1e-8), ("non-blocking", 2e-8),
                                  ("non-blocking overlapped", 3e-8),
                                  ("non-blocking computing", 4e-8))
            for size in (0, 1000)
        ),
        communication(operations[0], "quick", 0, 0.0),
    )  # fmt: skip


def emulation() -> str:
    sent = 2 * 8192 * 20 * 5 * 3
    return printed(
        *(
            {
                "operation": "emulation", "application": number, "graph": graph, "ranks": 2,
                "world_ranks": [2 * number, 2 * number + 1], "edges": 2, "step_bytes": 2 * 8192,
                "steps": 20, "iterations": 5, "warmup": 1, "alone_s": times(0.025),
                "together_s": times(0.03 + number), "messages_s": times(0.001),
                "computing_s": times(0.0245), "slowdown": times(1.2), "overlap": 0.5,
                "communication_fraction_alone": 0.1, "communication_fraction_together": 0.2,
                "median_by_rank_alone_s": [0.025] * 2, "median_by_rank_together_s": [0.03] * 2,
                "drawn_by_rank_s": [0.02] * 2, "sent_by_rank_bytes": [sent // 2] * 2,
                "received_by_rank_bytes": [sent // 2] * 2, "verified_bytes": 2 * 8192,
            }
            for number, graph in enumerate(("client-server:2", "pipeline:2"))
        ),
        ranks=4,
    )  # fmt: skip


def startup() -> str:
    result = {
        "operation": "startup", "clock": "CLOCK_REALTIME", "ranks": 2,
        "main_s": [STARTED_S + 1, STARTED_S + 2], "initialised_s": [STARTED_S + 3, STARTED_S + 5],
        "last_integer_s": STARTED_S + 8,
    }  # fmt: skip
    return printed(result)


#: What a launch of each experiment may print, and by which reader that is read.
MADE: dict[str, tuple[str, str]] = {
    name: ("wyeast-records-2", text)
    for name, text in {
        "PointToPoint": round_trips(),
        "Mpptest": round_trips(parameters={"refine": True, "sizes": [0, 3000]}),
        "EagerLimit": round_trips(mpi_wtime=None, clock_resolution_s=1e-6),
        "EchoTest": round_trips(ranks=3),
        "StartUp": startup(),
        "Emulation": emulation(),
        "Collectives": communications("barrier", "allreduce-sum"),
        "CollectiveForms": communications("scan-sum", "gatherv"),
        "Neighbours": communications("neighbour-allgather", "neighbour-alltoall"),
        "Beginnings": communications("dissemination-barrier"),
        "Pairs": communications("pairs"),
        "SomeToSome": communications("some-to-some"),
        "HaloExchange": communications("halo", "cartesian"),
        "OneSided": communications("put", "get", "accumulate"),
        "PassiveTarget": communications("put", "rget", "fetch-and-op"),
        "Layouts": communications("layout-vector", "layout-struct"),
        "Threads": communications("threads"),
        "BigCounts": communications("long-round-trip", "long-bcast"),
        "Files": communications("file-write", "file-read-all"),
        "SessionStart": startup(),
        "Su3": simulation(time_s=times(0.05)),
    }.items()
}
MADE |= {
    "Linpack": ("hpl", HPL.format(n=2000, time=0.13, rate=41.5)),
    "Nas": ("npb", (CAPTURED / "npb34_cg.stdout").read_text()),
    "NasTraffic": ("npb", (CAPTURED / "npb34_cg.stdout").read_text()),
}


def found(experiment: str) -> LaunchValues:
    output_format, text = MADE[experiment]
    return values_of(experiment, READERS[output_format](text, Path("stdout")), STARTED_S)


def test_each_experiment_that_is_compared_has_an_output_that_is_made_up() -> None:
    assert MADE.keys() == compared().keys()


def test_what_is_compared_is_what_the_experiment_says() -> None:
    assert found("PointToPoint").series == {"": {1000: pytest.approx(1e9), 3000: 1.5e9}}
    assert found("Mpptest").added == (1000,)
    assert found("StartUp").series == {"": {0: 8.0}}
    assert found("Linpack").series == {"": {0: pytest.approx(41.5e9)}}
    together = {"application 0: client-server:2": 0.03, "application 1: pipeline:2": 1.03}
    assert found("Emulation").series == {name: {0: time} for name, time in together.items()}
    [of_scan, *_] = found("CollectiveForms").series.values()
    assert of_scan == {0: pytest.approx(1e-7), 1000: pytest.approx(1.01e-5)}
    assert len(found("CollectiveForms").series) == 4, "overlapped and quick ones are not compared"


def test_whoever_changes_what_values_are_gives_them_another_version() -> None:
    """If this fails, raise records.values.VERSION: values that were kept are then not used."""
    told = {name: json.loads(found(name).model_dump_json()) for name in sorted(MADE)}
    assert all(math.isfinite(value) for one in told.values()
               for of_sizes in one["series"].values() for value in of_sizes.values())  # fmt: skip
    digest = hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()
    assert (values.VERSION, digest[:16]) == (1, "8f9e821dc61b4ae5")
