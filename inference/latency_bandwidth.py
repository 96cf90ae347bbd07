"""Latency, bandwidth and n1/2 of a way to pass messages, as ORNL 1996 summarises it.

J. Dongarra and T. Dunigan (section 2.1) take a message's time between neighbours as linear in its
size, t(n) = alpha + beta n, with the start-up alpha and the time of a byte, beta, by least squares.
n1/2 = alpha / beta is the size at which half of the asymptotic bandwidth 1 / beta is reached.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

#: A line needs two sizes, and of two it says nothing that the points do not.
FEWEST_SIZES = 2


@dataclass(frozen=True)
class LatencyBandwidth:
    """What sizes in bytes and one-way times in seconds come to.

    `latency_s` is the time of the smallest message, which is of `latency_bytes` (0 in ORNL's
    Table 2.1); `bandwidth` in B/s is that of the largest message, of `bandwidth_bytes` (1,000,000
    there). `alpha_s` in s and `beta_s_per_byte` in s/B are the least-squares line, and
    `half_bandwidth_bytes` is n1/2 in bytes; None where the line is no message's: where a byte takes
    no time or a start-up less than none, which noise and a change of protocol can do.
    """

    latency_s: float
    latency_bytes: int
    bandwidth: float
    bandwidth_bytes: int
    alpha_s: float
    beta_s_per_byte: float

    @property
    def half_bandwidth_bytes(self) -> float | None:
        """Return n1/2 = alpha / beta, in bytes."""
        return half_bandwidth_bytes(self.alpha_s, self.beta_s_per_byte)


def half_bandwidth_bytes(alpha_s: float, beta_s_per_byte: float) -> float | None:
    """Return n1/2 = alpha / beta in bytes (ORNL 1996, section 2.1), None where there is none."""
    if alpha_s < 0 or beta_s_per_byte <= 0:
        return None
    return alpha_s / beta_s_per_byte


def fit(sizes_bytes: Sequence[int], one_way_s: Sequence[float]) -> LatencyBandwidth:
    """Return latency, bandwidth and the least-squares line of one-way times.

    Raises ValueError with a sentence where they are not one time, greater than 0, for each of two
    sizes or more, of which the largest is not 0 bytes.
    """
    if len(sizes_bytes) != len(one_way_s):
        raise ValueError(f"{len(sizes_bytes)} sizes have {len(one_way_s)} times")
    if len(set(sizes_bytes)) < FEWEST_SIZES:
        raise ValueError(f"a line needs at least two message sizes, not {len(set(sizes_bytes))}")
    if min(sizes_bytes) < 0 or not all(math.isfinite(time) and time > 0 for time in one_way_s):
        raise ValueError("a size or a time is no message's")
    points = sorted(zip(sizes_bytes, one_way_s, strict=True))
    (smallest, latency), (largest, longest) = points[0], points[-1]
    sizes = np.array([size for size, _ in points], dtype=float)
    times = np.array([time for _, time in points])
    # Deviations from the means, so that long messages do not cost the short ones their digits.
    deviations = sizes - sizes.mean()
    beta = float(deviations @ (times - times.mean()) / (deviations @ deviations))
    return LatencyBandwidth(
        latency_s=latency,
        latency_bytes=smallest,
        bandwidth=largest / longest,
        bandwidth_bytes=largest,
        alpha_s=float(times.mean() - beta * sizes.mean()),
        beta_s_per_byte=beta,
    )
