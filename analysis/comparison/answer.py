"""A comparison in words: sentences for groups of cells."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import product

from analysis.comparison.caveats.image_caveats import image_caveats
from analysis.comparison.caveats.limited import limited_sentences
from analysis.comparison.caveats.stolen_time import stolen_time
from analysis.comparison.metrics import metrics
from analysis.comparison.option_effects import option_sentences
from analysis.comparison.result import Comparison, Group
from analysis.comparison.verdict import Verdict
from analysis.tables.units import interval_text, percent

#: How many cells that are left out are named.
MOST_NAMED = 3


def in_words(verdict: Verdict) -> str:
    """Return a verdict over a group of cells as the end of a sentence."""
    ratio = verdict.ratio
    if verdict.unjudged:
        return f"{verdict.words}."
    if not verdict.is_told:
        return f"inconclusive after {ratio.counted}."
    found = verdict.interval
    how_sure = f"simultaneous interval {interval_text(found)}" if found else ratio.counted
    numbers = f"ratio {ratio.value:.3f}, {how_sure}"
    if verdict.is_equivalent:
        return f"equivalent to {verdict.base} within {percent(verdict.margin)} ({numbers})."
    if not verdict.is_different:
        return f"no difference from {verdict.base} shown ({numbers})."
    times = ratio.value if ratio.value > 1 else 1 / ratio.value
    return f"{verdict.words} than {verdict.base} by a factor of {times:.2f} ({numbers})."


def answer(comparison: Comparison) -> list[str]:
    """Return the answer in words, a sentence for each group of cells and pair that is compared.

    Then follow the other differences between the images, and build options.
    """
    groups = [group for one in comparison.pairs for group in one.groups]
    sentences = [sentence for group in groups for sentence in sentences_of(group)]
    sentences += [caveat.sentence for caveat in image_caveats(comparison)]
    return sentences + option_sentences(comparison)


def sentences_of(group: Group) -> list[str]:
    """Return a group's answer in words, a sentence for each implementation."""
    sentences = []
    for other, verdict in group.verdicts.items():
        name, left_out = group.name, group.left_out.get(other, [])
        both = verdict.cells + len(left_out)
        if both != len(group.cells):
            name += f" that both have ({both} of {len(group.cells)})"
        if left_out:
            name += f", {without(left_out)}"
        is_told = verdict.is_different or verdict.is_equivalent
        sentences.append(f"{name}: {other}{' is' if is_told else ':'} {in_words(verdict)}")
    return sentences


def without(left_out: Sequence[str]) -> str:
    """Return in words which cells a verdict leaves out because they have too few launches."""
    more = f" and {len(left_out) - MOST_NAMED} more" if len(left_out) > MOST_NAMED else ""
    return f"without {', '.join(left_out[:MOST_NAMED])}{more} (too few rounds)"


def tally(comparison: Comparison) -> list[str]:
    """Return in how many single cells each verdict was reached, and caveats for all of them."""
    sentences = []
    for experiment in metrics():
        for of, other in product(comparison.pairs, comparison.implementations):
            cells = [cell for cell in of.experiment(experiment) if other in cell.verdicts]
            count = Counter(cell.verdicts[other].short for cell in cells)
            if cells:
                parts = ", ".join(f"{words} in {number}" for words, number in count.most_common())
                sentences.append(
                    f"{experiment}, cell by cell: {other} against {of.base}: {parts} of "
                    f"{len(cells)}."
                )
    return sentences + limited_sentences(comparison) + stolen_time(comparison.campaign)
