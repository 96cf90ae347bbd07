"""What a campaign will take, by what the last one like it took."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from analysis.campaign import is_imported

# What decides how long a round takes, beside the machine's load.
ALIKE = ("site", "tier", "checks", "time_limit")


def checks_of(manifest: dict[str, Any]) -> set[str]:
    """Return the files of checks that a campaign had."""
    return {name for name in manifest["inputs"] if name.startswith("reframe_checks/")}


def last_round_like(root: Path, manifest: dict[str, Any]) -> tuple[float, str] | None:
    """Return the seconds of a round of the last campaign alike, and its name; None without one.

    Alike are campaigns of the same site, tier, checks (by their files' names) and implementations.
    Whole rounds count; a campaign that cannot be read is passed over.
    """
    for path in sorted((root / "runs").glob("*/manifest.json"), reverse=True):
        try:
            if is_imported(path.parent):
                continue
            other = json.loads(path.read_text())
            if other["campaign"] == manifest["campaign"]:
                continue
            if any(other.get(key) != manifest.get(key) for key in ALIKE):
                continue
            if set(other["images"]) != set(manifest["images"]):
                continue
            if checks_of(other) != checks_of(manifest):
                continue
            took = [float(entry["wall_s"]) for entry in other["rounds_done"]]
        except (OSError, ValueError, KeyError, TypeError):
            continue
        if took:
            return sum(took) / len(took), str(other["campaign"])
    return None


def duration(seconds: float) -> str:
    """Return a duration for people."""
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def expectation(root: Path, manifest: dict[str, Any], rounds: int) -> str:
    """Return a sentence on how long so many rounds will take."""
    found = last_round_like(root, manifest)
    if not found:
        return f"{rounds} round(s); how long they take is said after the first"
    seconds, name = found
    return (
        f"{rounds} round(s) take about {duration(rounds * seconds)}: one took {duration(seconds)} "
        f"in runs/{name}"
    )
