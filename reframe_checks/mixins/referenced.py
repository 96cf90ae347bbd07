"""A check whose metrics are held against calibrated references, before the hand-written ones."""

import json
from pathlib import Path
from typing import Any

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import run_after
from reframe.core.exceptions import SanityError
from reframe.core.logging import getlogger

from records import layout, references
from records.references import METRICS_FILE, METRICS_SCHEMA

SITES = layout.sites(layout.installation())
#: A reference as ReFrame has it: value, lower and upper threshold as shares, unit.
Bounds = tuple[float, float | None, float | None, str]
#: Hand-written references by class and site, as ReFrame reads them for the first check of a class:
#: thousands of checks of it share them. ReFrame and this file replace a check's, never change them.
BY_HAND: dict[tuple[type, str], Any] = {}


class Referenced(rfm.RegressionTestPlugin):
    """A value beyond its reference fails if it is worse, and is reported if it is better.

    A calibrated reference overrides the hand-written one of its metric. A stale one judges
    nothing: then the hand-written one applies, if there is one, and the check says so.
    """

    #: Whether the metrics are held against calibrated references, and kept.
    is_calibrated = True

    @run_after("init")
    def look_up_references(self) -> None:
        """Take the hand-written references of the site that the checks run on."""
        key = (type(self), self.current_system.name)
        if key not in BY_HAND:
            path = layout.seen(SITES / self.current_system.name / "references.yaml")
            # A host that matches no site has none; valid_systems then excludes it.
            if path.exists():
                self.reference = {"$ref": str(path)}
            BY_HAND[key] = self.reference
        # Assigned, what ReFrame has converted becomes None.
        self.__dict__["reference"] = BY_HAND[key]

    def bounds_by_hand(self) -> dict[str, dict[str, Bounds]]:
        """Return the hand-written references of this check by ReFrame's scope."""
        found = self.reference
        if not getattr(found, "index", None):
            return {scope: dict(of) for scope, of in found.data.items()}
        try:
            return {self.current_partition.fullname: dict(found[self])}
        except KeyError:
            return {}

    def calibrated(self) -> references.CellReference | None:
        """Return the calibrated references of this cell and image, stale or not."""
        try:
            known = references.accepted(SITES / self.current_system.name)
        except references.ReferencesError as error:
            raise SanityError(str(error)) from None
        return known.get((self.tier, self.cell(), self.implementation()))

    def reported(self) -> dict[str, tuple[float, str]]:
        """Return what the check reports, with units, without what cannot be evaluated."""
        found = {}
        for name, expression in self.perf_variables.items():
            # ReFrame evaluates them again and says which cannot be.
            try:
                found[name] = (float(sn.evaluate(expression)), str(expression.unit))
            except Exception:
                continue
        return found

    def reports(self) -> dict[str, Path | bytes]:
        """Set the bounds in effect, report what is stale or better, return the findings."""
        if self.is_dry_run() or not self.is_calibrated:
            return {}
        metrics, cell = self.reported(), self.calibrated()
        by_hand, partition = self.bounds_by_hand(), self.current_partition.fullname
        processor = self.node()["cpu_model"]
        here = references.Here(self.image.sha256, self.num_tasks, self.nodes, processor)
        stale = cell.stale(here) if cell else None
        bounds = by_hand | {partition: dict(by_hand.get(partition, {}))}
        kept: dict[str, dict[str, Any]] = {}
        for name, (value, unit) in metrics.items():
            of = cell.metrics.get(name) if cell else None
            scopes = (partition, self.current_system.name, "*")
            hand = next((by_hand[s][name] for s in scopes if name in by_hand.get(s, {})), None)
            # An expected failure of ReFrame's has its bounds inside.
            hand = getattr(hand, "data", hand)
            if of and not stale:
                bounds[partition][name] = of.reference
            elif of and hand is None:
                # Not judged; ReFrame's own report shows the number nevertheless.
                bounds[partition][name] = (of.reference[0], None, None, unit)
            in_effect = of.reference if of and not stale else hand
            kept[name] = {
                "value": value,
                "unit": unit,
                "reference": in_effect,
                "by": "calibration" if of and not stale else "hand" if hand else None,
                "finding": finding(value, in_effect, None if stale else of),
            }
        self.reference = bounds
        self.say(kept, stale)
        found = {"schema": METRICS_SCHEMA, "cell": self.cell(), "stale": stale,
                 "implementation": self.implementation(), "metrics": kept}  # fmt: skip
        text = json.dumps(found, indent=1, allow_nan=False) + "\n"
        return {METRICS_FILE: text.encode()}

    def say(self, kept: dict[str, dict[str, Any]], stale: str | None) -> None:
        """Print what is stale and what is better."""
        again = f"calibrate again: make calibrate SITE={self.current_system.name}"
        about = f"{self.cell()}, {self.implementation()}"
        if stale:
            getlogger().warning(f"{about}: stale references are not applied: {stale}; {again}")
        for name, one in kept.items():
            if one["finding"] and one["finding"].startswith("better"):
                getlogger().warning(f"{about}: {name} is {one['finding']}: {again}?")


def finding(
    value: float, bounds: Bounds | None, calibrated: references.MetricReference | None
) -> str | None:
    """Return in words how a value compares with its reference; None if it is as expected."""
    if bounds is None:
        return None
    expected, lower, upper, *_ = bounds
    if (lower is not None and value < expected * (1 + lower)) or (
        upper is not None and value > expected * (1 + upper)
    ):
        return f"worse than the reference allows: {value / expected:.3f} times {expected:g}"
    better = calibrated.better_by(value) if calibrated else None
    return None if better is None else f"better than the reference by {better:.1%}"
