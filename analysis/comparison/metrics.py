"""What is compared in each experiment, and which way is better (records/experiments.yaml)."""

from __future__ import annotations

from functools import cache
from typing import Any

from records.experiments import compared, declared


@cache
def metrics() -> dict[str, dict[str, Any]]:
    """Return what is compared in each experiment, in the order of tables."""
    return {
        name: {
            "metric": one.metric, "label": one.label, "unit": one.unit, "formula": one.formula,
            "margin": one.margin, "better": better_of(str(one.unit)),
        }
        for name, one in compared().items()
    }  # fmt: skip


def better_of(unit: str) -> str | None:
    """Return whether `higher` or `lower` is better in a unit; None if neither is."""
    return declared().better.get(unit)


def margin_of(experiment: str) -> float:
    """Return how far from 1 a ratio of an experiment may be to be called equivalent."""
    one = compared().get(experiment)
    return one.margin if one else declared().default["margin"]


def direction(experiment: str) -> int:
    """Return 1 where higher is better, -1 where lower is."""
    return 1 if metrics()[experiment]["better"] == "higher" else -1
