"""How the images of one campaign differ apart from the MPI, and which verdicts that concerns.

An implementation's verdict is on its whole image. If a rule of comparability.yaml applies `within`
a campaign, too, and the images that an experiment compares are not alike in it, the experiment's
verdicts are not the MPI's alone: a sentence next to them says so.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from analysis.comparison.caveats import image_libraries
from analysis.comparison.caveats.comparability import Rule, facts_of, rules, shown, value_of
from analysis.comparison.metrics import metrics
from analysis.comparison.result import Comparison

#: So many characters of a digest are shown.
SHOWN = 12
#: And so many libraries are named.
MOST_NAMED = 4


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
    compared = sorted({name for cell in cells for name in (*cell.verdicts, *cell.estimates)})
    manifest = comparison.campaign.manifest.facts
    if rule.at == ["besides_mpi"]:
        return _differing(_loaded(comparison, experiment, compared))
    values = {name: value_of(manifest, name, rule) for name in compared}
    words = _in_words({
        name: "not known" if value is None else shown(value) for name, value in values.items()
    })  # fmt: skip
    if rule.at == ["compiled_by"] and words:
        found = [image_libraries.mpi(facts_of(manifest, name)) for name in compared]
        if None in found:
            return f"{words}; it is not known for all of them which libraries were loaded"
        # One that was compiled once is the same for whoever put it into an image.
        return words if any(one != found[0] for one in found) else ""
    return words


def _in_words(values: Mapping[str, str]) -> str:
    """Return the values of implementations, each once; empty where there is one value."""
    having: dict[str, list[str]] = defaultdict(list)
    for name, value in values.items():
        having[value].append(name)
    if len(having) < 2:
        return ""
    return "; ".join(f"{value} ({', '.join(names)})" for value, names in having.items())


def _loaded(
    comparison: Comparison, experiment: str, compared: list[str]
) -> dict[str, dict[str, str] | None]:
    """Return what an experiment's programs load besides the MPI, by implementation."""
    manifest = comparison.campaign.manifest.facts
    programs: dict[str, set[str]] = defaultdict(set)
    for launch in comparison.campaign.sound():
        if launch.record.experiment == experiment:
            programs[launch.record.implementation].add(launch.record.program)
    return {
        name: image_libraries.besides_mpi(facts_of(manifest, name), programs[name])
        for name in compared
    }


def _differing(loaded: Mapping[str, dict[str, str] | None]) -> str:
    """Return the libraries that are not the same files for all, with the first of their digests.

    Empty where nothing is known, as in older campaigns.
    """
    known = [one for one in loaded.values() if one is not None]
    differing = sorted(
        library
        for library in {library for one in known for library in one}
        if len({one.get(library) for one in known}) > 1
    )
    if not known or (len(known) == len(loaded) and not differing):
        return ""
    more = f" and {len(differing) - MOST_NAMED} more" if len(differing) > MOST_NAMED else ""
    return _in_words({
        name: "not known" if one is None else "{}{}".format(", ".join(
            f"{library} {one[library][:SHOWN]}" if library in one else f"no {library}"
            for library in differing[:MOST_NAMED]
        ) or "known", more)
        for name, one in loaded.items()
    })  # fmt: skip
