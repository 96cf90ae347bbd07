"""Output of dgemm, stream and linpack with chosen numbers."""

import os

from tests.reframe_checks.conftest import header, lines, summary

CLOCK = 2.5e9
#: As many ranks as the checks start here.
CORES = len(os.sched_getaffinity(0))


def rate(operation: str, seconds: float, ranks: int, iterations: int) -> dict[str, object]:
    return {
        "record": "result", "operation": operation, "ranks": ranks, "iterations": iterations,
        "warmup": 1, "time_s": summary(seconds), "median_by_rank_s": [seconds] * ranks,
        "clock_hz_by_rank": [CLOCK] * ranks,
    }  # fmt: skip


def dgemm(
    n: int = 1500, seconds: float = 0.2, ranks: int = CORES, iterations: int = 3, **more: object
) -> str:
    result = rate("dgemm", seconds, ranks, iterations) | {
        "n": n, "flop": 2 * n**3, "checked_entries": 200, "error": 1e-4, **more,
    }  # fmt: skip
    return lines(header("dgemm", ranks), result, {"record": "end", "results": 1})


def stream(
    seconds: float = 0.01,
    ranks: int = CORES,
    kernels: tuple[str, ...] = ("copy", "scale", "add", "triad"),
    iterations: int = 5,
    **more: object,
) -> str:
    count = 1_000_000
    results = [
        rate("stream", seconds, ranks, iterations) | {
            "kernel": kernel, "array_bytes": 8 * count,
            "moved_bytes": count * (16 if kernel in ("copy", "scale") else 24),
            "verified_elements": count, **more,
        }
        for kernel in kernels
    ]  # fmt: skip
    return lines(header("stream", ranks), *results, {"record": "end", "results": len(results)})


def linpack(
    seconds: float = 4e-4,
    systems: tuple[tuple[str, int], ...] = (("columns", 100), ("lapack", 1000)),
    iterations: int = 20,
    **more: object,
) -> str:
    results = [
        rate("linpack", seconds * (n / 100) ** 2, 1, iterations) | {
            "method": method, "n": n, "flop": 2 / 3 * n**3 + 2 * n**2, "repetitions": 1,
            "residual": 1.2, **more,
        }
        for method, n in systems
    ]  # fmt: skip
    return lines(header("linpack", 1), *results, {"record": "end", "results": len(results)})
