"""The check of echoes without MPI: what it asks for, and what it refuses to believe."""

import pytest

from tests.reframe_checks.conftest import StandIn, header, lines, summary

SIZES = {
    "udp": [0, 8, 100, 1000, 1472, 8192, 32768],
    "tcp": [1, 8, 100, 1000, 10_000, 100_000, 1_000_000],
    "memory": [0, 8, 1000, 10_000, 100_000, 1_000_000],
}


def echo(via: str, sizes: list[int], iterations: int = 200, seconds: float = 1e-4) -> str:
    records: list[dict[str, object]] = [header("echo")]
    for size in sizes:
        key = {"operation": "echo", "method": via, "group": "pair", "message_bytes": size}
        records.append({
            "record": "result", **key, "ranks": 2, "iterations": iterations, "warmup": 20,
            "synchronisation": "none", "discarded": 0, "clock_error_s": 0.0,
            "time_s": summary(seconds), "median_by_rank_s": [seconds, seconds],
            "moved_bytes": 2 * size, "verified_bytes": 2 * size,
        })  # fmt: skip
        records.append({"record": "iterations", **key, "time_s": [seconds] * iterations})
    return lines(*records, {"record": "end", "results": len(sizes)})


@pytest.mark.parametrize("via", SIZES)
def test_sound_echoes_pass(stand_in: StandIn, via: str) -> None:
    stand_in.write(echo(via, SIZES[via], iterations=500 if via == "memory" else 200))
    outcome = stand_in.run(only=f"RawNetwork.*={via}")
    assert outcome.code == 0, outcome.text
    [launch] = outcome.launches
    assert launch["cell"] == f"RawNetwork via={via}" and launch["outcome"] == "sound"
    assert f"echo --via {via} --sizes {SIZES[via][0]} --sizes {SIZES[via][1]}" in str(
        launch["command"]
    )


WRONG = [
    (echo("udp", SIZES["udp"][:-1]), "message sizes missing: [32768]"),
    (echo("tcp", SIZES["udp"]), "other parameters differ"),
    (echo("udp", SIZES["udp"], iterations=10), "other parameters differ"),
    (
        echo("udp", SIZES["udp"]).replace('_bytes": 65536', '_bytes": 32768'),
        "32768 bytes were verified, not all that were sent both ways",
    ),
    (echo("udp", SIZES["udp"], seconds=1e-9), "below the clock's"),
]  # fmt: skip


def test_other_echoes_do_not(stand_in: StandIn) -> None:
    plays = [{"stdout": stdout} for stdout, _ in WRONG]
    outcomes = stand_in.play(*plays, only="RawNetwork.*=udp")
    for (_, sentence), outcome in zip(WRONG, outcomes, strict=True):
        assert outcome.code != 0 and sentence in outcome.reason(), outcome.text


def test_lost_datagrams_are_quoted(stand_in: StandIn) -> None:
    said = "echo: udp: 30 of 100 datagrams had to be sent again, as no echo came in 0.5 s"
    stand_in.write("", stderr=said + "\n", code=1)
    outcome = stand_in.run(only="RawNetwork.*=udp")
    assert outcome.code != 0 and said in outcome.reason()
