"""Emulated applications that are not as asked, lose bytes or are impossibly quick are refused."""

import os

from tests.reframe_checks.conftest import StandIn, header, lines, summary

STEPS, ITERATIONS, BYTES = 20, 5, 8192
GRAPHS = ("client-server:2", "pipeline:2")
ONLY = "^Emulation.*side-by-side"


def graphs_here() -> tuple[str, ...]:
    """Return the graphs that the machine has cores for."""
    return GRAPHS if len(os.sched_getaffinity(0)) >= 4 else GRAPHS[:1]


def emulations(
    alone: float = 0.025,
    together: float = 0.03,
    steps: int = STEPS,
    step_bytes: int = 2 * BYTES,
    situations: tuple[str, ...] = ("alone", "together", "messages", "computing"),
    **more: object,
) -> str:
    graphs = graphs_here()
    records: list[dict[str, object]] = [header("emulator", 2 * len(graphs))]
    sent = step_bytes // 2 * steps * ITERATIONS * 3
    for number, graph in enumerate(graphs):
        key = {"operation": "emulation", "application": number, "graph": graph}
        records.append({
            "record": "result", **key, "ranks": 2, "world_ranks": [2 * number, 2 * number + 1],
            "edges": 2, "step_bytes": step_bytes, "steps": steps, "iterations": ITERATIONS,
            "warmup": 1, "alone_s": summary(alone), "together_s": summary(together),
            "messages_s": summary(0.001), "computing_s": summary(0.0245),
            "slowdown": summary(together / alone), "overlap": 0.5,
            "communication_fraction_alone": 0.1, "communication_fraction_together": 0.2,
            "median_by_rank_alone_s": [alone, alone],
            "median_by_rank_together_s": [together, together],
            "drawn_by_rank_s": [0.02, 0.02], "sent_by_rank_bytes": [sent, sent],
            "received_by_rank_bytes": [sent, sent], "verified_bytes": step_bytes, **more,
        })  # fmt: skip
        records += [
            {"record": "iterations", **key, "situation": situation, "time_s": [0.02] * ITERATIONS}
            for situation in situations
        ]
    return lines(*records, {"record": "end", "results": len(graphs)})


def test_sound_emulation_is_kept(stand_in: StandIn) -> None:
    stand_in.write(emulations())
    outcome = stand_in.run(only=ONLY)
    assert outcome.code == 0, outcome.text
    [launch] = outcome.launches
    assert launch["outcome"] == "sound"
    assert launch["cell"] == f"Emulation suite=side-by-side ranks={2 * len(graphs_here())}"


#: What is played, and the outcome and sentence that it must get.
WRONG = [
    ("", "failed", "empty"),
    (emulations(steps=STEPS + 1), "failed", "not those requested"),
    (emulations(graph="ring:2"), "failed", "do not follow the result"),
    (emulations(received_by_rank_bytes=[0, 1]), "failed", "were sent and 1 received"),
    (emulations(step_bytes=BYTES), "failed", "the result says 8192 bytes"),
    (emulations(world_ranks=[0, 7]), "failed", "every rank of the world exactly once"),
    (emulations(situations=("alone",)), "failed", "lacks the times of single iterations"),
    (emulations(verified_bytes=1), "failed", "1 were verified"),
    (emulations(together=0.021, alone=0.05), "suspect", "of the time that it takes alone"),
    (emulations(alone=0.01), "suspect", "mean time alone, 0.01 s, is below the 0.02 s"),
]  # fmt: skip


def test_emulation_that_is_not_right(stand_in: StandIn) -> None:
    stand_in.refuse(WRONG, only=ONLY)
