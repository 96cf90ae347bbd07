"""What is compared in each experiment, and which way is better: metrics.yaml."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import yaml


@cache
def declared() -> dict[str, dict[str, Any]]:
    """Return metrics.yaml."""
    text = (Path(__file__).parent / "metrics.yaml").read_text()
    data: dict[str, dict[str, Any]] = yaml.safe_load(text)
    return data


@cache
def metrics() -> dict[str, dict[str, Any]]:
    """Return what is compared in each experiment (metrics.yaml)."""
    return {
        experiment: declared()["default"] | {"better": better_of(metric["unit"])} | metric
        for experiment, metric in declared().items()
        if experiment not in ("default", "better")
    }


def better_of(unit: str) -> str | None:
    """Return whether `higher` or `lower` is better in a unit; None where neither is."""
    found: str | None = declared()["better"].get(unit)
    return found


def margin_of(experiment: str) -> float:
    """Return how far from 1 a ratio of an experiment may be to be called equivalent."""
    return float(metrics().get(experiment, declared()["default"])["margin"])


def direction(experiment: str) -> int:
    """Return 1 where higher is better, -1 where lower is."""
    return 1 if metrics()[experiment]["better"] == "higher" else -1
