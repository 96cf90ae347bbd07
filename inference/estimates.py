"""An estimate with its confidence interval."""

from __future__ import annotations

from dataclasses import dataclass

from inference.intervals import Interval


@dataclass(frozen=True)
class Estimate:
    """An implementation's median over launches at one message size."""

    message_bytes: int
    median: float
    interval: Interval
    launches: tuple[float, ...]
