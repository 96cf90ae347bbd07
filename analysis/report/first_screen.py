"""The first screen of a report beside its answer: two curves, and what to beware of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from analysis.comparison.caveats.from_outside import from_outside
from analysis.comparison.caveats.image_caveats import ImageCaveat
from analysis.comparison.caveats.placement import placement_sentences
from analysis.comparison.caveats.stolen_time import stolen_time
from analysis.comparison.metrics import metrics
from analysis.comparison.result import Comparison
from analysis.figures.over_size import Curve, bandwidth_figure
from analysis.report.drawings.size_figures import Figure, Figures, curves_of
from analysis.report.headline import without_room
from inference.estimates import Estimate
from inference.intervals import CONFIDENCE, median, median_interval
from records.experiments import compared, serves


@dataclass(frozen=True)
class FirstCurves:
    """Latency and bandwidth over message size, of the same launches as `bandwidth`."""

    bandwidth: Figure
    latency: Markup


def first_curves(
    comparison: Comparison, figures: Mapping[str, Figures]
) -> FirstCurves | None:  # fmt: skip
    """Return the curves of the messages that show latency; None if there are none.

    Without an echo test, those of the sweep with the most implementations and sizes.
    """

    def worth(figure: Figure) -> tuple[bool, bool, bool, int, int]:
        first = figure.cells[0]
        entry = compared()[first.experiment]
        names = {name for cell in figure.cells for name in cell.estimates}
        sizes = sum(len(cell.message_sizes()) for cell in figure.cells)
        return (
            not first.oversubscribed, not entry.unusual(first.parameters),
            serves("latency", first.experiment, first.parameters), len(names), sizes,
        )  # fmt: skip

    found = [
        figure
        for experiment, of in figures.items()
        for figure in of.drawn
        if metrics()[experiment]["unit"] == "B/s"
    ]
    if not found:
        return None
    best = max(found, key=worth)
    curves = [in_seconds(curve) for curve in curves_of(comparison, best.cells)]
    latency = bandwidth_figure(
        f"Latency over message size, {best.caption}", curves, None, "s", "latency"
    )
    return FirstCurves(best, latency)


def in_seconds(curve: Curve) -> Curve:
    """Return a curve of bandwidths as one of latencies: half a round trip of each launch, in s."""
    estimates = []
    for one in curve.estimates:
        times = [one.message_bytes / bandwidth for bandwidth in one.launches]
        estimates.append(
            Estimate(one.message_bytes, median(times), median_interval(times), tuple(times))
        )
    return Curve(curve.name, curve.style, estimates)


def fewest_launches() -> int:
    """Return the smallest number of launches for which a median's interval can cover 95%."""
    count = 2
    while median_interval(list(range(count))).coverage < CONFIDENCE:
        count += 1
    return count


#: Of rounds that are to become more.
TESTED_BEFORE = (
    "Its verdicts hold if the campaign ends here: whoever sees them and then measures the rest "
    "will be wrong more often than they state."
)


@dataclass(frozen=True)
class Beware:
    """What a reader must know before the numbers: in a few words, and in a sentence."""

    few: str
    sentence: str


def warnings(comparison: Comparison, caveats: Sequence[ImageCaveat] = ()) -> list[Beware]:
    """Return what a reader must know before the numbers."""
    campaign = comparison.campaign
    found = []
    if not campaign.manifest.finished_utc:
        sentence = "This campaign is not finished: what follows covers the rounds so far. " + (
            "Nothing is judged yet, since everything is tested once, at the end."
            if campaign.awaits_test
            else TESTED_BEFORE
            if campaign.manifest.design is None
            else "Verdicts hold whenever it stops."
        )
        found.append(Beware("not finished", sentence))
    found += [Beware("only some of the cells", one) for one in without_room(campaign)]
    found += [Beware("a hypervisor took time", one) for one in stolen_time(campaign)]
    found += [Beware(one.few, one.sentence) for one in from_outside(campaign)]
    over = [cell for cell in comparison.cells if cell.oversubscribed]
    if over:
        names = ", ".join(dict.fromkeys(cell.experiment for cell in over))
        sentence = (
            f"Oversubscribed: {len(over)} of {len(comparison.cells)} cells ({names}) had more "
            "ranks than the machine has processors. Their ranks waited for processors, not only "
            "for messages: they are marked, and excluded from all answers."
        )
        cells = "1 cell" if len(over) == 1 else f"{len(over)} cells"
        found.append(Beware(f"{cells} oversubscribed", sentence))
    found += [Beware("ranks placed differently", one) for one in placement_sentences(comparison)]
    pairs = [
        verdict.ratio.pairs
        for group in comparison.groups_of_pairs
        for verdict in group.verdicts.values()
        if verdict.ratio.pairs
    ]
    if pairs and min(pairs) < fewest_launches():
        rounds = "1 round" if min(pairs) == 1 else f"{min(pairs)} rounds"
        sentence = (
            f"Few rounds: some answers are based on {rounds}. Below {fewest_launches()} no "
            "interval of a median reaches 95%, and a difference must be large to be shown."
        )
        found.append(Beware(f"answers from {rounds}", sentence))
    return found + [
        Beware(f"images differ for {', '.join(one.experiments)}", one.sentence) for one in caveats
    ]
