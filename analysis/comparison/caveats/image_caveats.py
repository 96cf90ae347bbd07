"""How the images of one campaign differ apart from the MPI, and which verdicts that concerns.

An implementation's verdict is on its whole image. If a rule of comparability.yaml applies `within`
a campaign, too, and the images that an experiment compares are not alike in it, the experiment's
verdicts are not the MPI's alone: a sentence next to them says so.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from analysis.comparison.caveats.comparability import Rule, rules, shown, value_of
from analysis.comparison.metrics import metrics
from analysis.comparison.result import Comparison


@dataclass(frozen=True)
class ImageCaveat:
    """A difference between images, and the experiments whose verdicts it concerns."""

    sentence: str
    experiments: tuple[str, ...]


def image_caveats(comparison: Comparison) -> list[ImageCaveat]:
    """Return what affects verdicts although it is not the MPI, in the order of the rules."""
    found = []
    for rule in rules():
        if rule.of != "image" or not rule.within:
            continue
        concerned: dict[str, list[str]] = defaultdict(list)
        for experiment in metrics():
            words = difference_in(comparison, experiment, rule)
            if words:
                concerned[words].append(experiment)
        found += [
            ImageCaveat(
                f"Caveat for {', '.join(experiments)}: {rule.name}: {words}: {rule.reason}.",
                tuple(experiments),
            )
            for words, experiments in concerned.items()
        ]
    return found


def difference_in(comparison: Comparison, experiment: str, rule: Rule) -> str:
    """Return each value with the implementations of an experiment that have it; empty for one.

    A value that is unknown for some counts as a difference, since it may be any.
    """
    if rule.experiments and experiment not in rule.experiments:
        return ""
    cells = [cell for cell in comparison.experiment(experiment) if cell.verdicts]
    compared = {name for cell in cells for name in (*cell.verdicts, *cell.estimates)}
    manifest = comparison.campaign.manifest.facts
    having: dict[str, list[str]] = defaultdict(list)
    for name in sorted(compared):
        value = value_of(manifest, name, rule)
        having["not known" if value is None else shown(value)].append(name)
    if len(having) < 2:
        return ""
    return "; ".join(f"{value} ({', '.join(names)})" for value, names in having.items())
