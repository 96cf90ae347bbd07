"""What a campaign with a budget prints about its decisions."""

from __future__ import annotations

from campaign.estimate import duration
from campaign.progress import CampaignProgress
from records.budget import begun_cells, left_out
from records.counting import how_many
from records.events import Ended, Wave
from records.fold import State
from records.manifest import Design


def say_decision(
    decision: Wave | Ended, design: Design, progress: CampaignProgress, state: State, images: int
) -> None:
    """Print what comes next, or why nothing does; once, also what the first round left out."""
    used = f"{decision.spent_s:.0f} of {design.budget_s:.0f} s used"
    if design.repeats:
        used = f"that took {decision.spent_s:.0f} s"
    others = left_out(state)
    if isinstance(decision, Ended):
        progress.say(f"{why_ended(decision, state, images)}; {used}")
        if others and decision.why != "repeated":
            progress.say(f"left out, as the least important: {how_many(len(others), 'cell')}")
        return
    cells = {cell for one in decision.rounds for cell in one.cells or ()}
    if others and decision.number == 2:
        share = (len(cells) + len(others)) / len(cells)
        a_round = (decision.predicted_s or 0.0) * share
        progress.say(
            f"{len(others)} of {len(cells) + len(others)} cells are left out, the least important "
            "ones: they do not fit into the budget. Everything would take about "
            f"{duration(design.begin * a_round)}, and {duration(design.fewest * a_round)} to "
            "leave time for what is still open"
        )
    what = f"{len(cells)} cells" if others or decision.why == "chosen" else "everything"
    if decision.why == "uniform":
        what += (
            " once more: the budget is too small to choose cells, so everything is tested once, at "
        )
        what += "the end"
    took = "" if decision.predicted_s is None else f", about {decision.predicted_s:.0f} s"
    progress.say(f"wave {decision.number}: {what}{took}; {used}")


def why_ended(ended: Ended, state: State, images: int) -> str:
    """Return in words why nothing more is measured."""
    open_series = ended.open_series
    if ended.why == "budget":
        more = "" if open_series is None else f"; {open_series} series still open"
        return f"the next wave would not fit into the budget{more}"
    if ended.why == "repeated":
        return "all rounds of the campaign that this one repeats have been measured"
    if ended.why == "hopeless":
        return f"{open_series} series still open, and the time left would not decide any of them"
    if ended.why == "unknown":
        return (
            f"{open_series} series still open, and it is unknown what would decide any: no launch "
            "says how long it takes, since each was under way when the campaign was resumed"
        )
    if not begun_cells(state):
        return "nothing that was measured is compared, so one round is enough"
    if images == 1:
        return "there is only one implementation to measure, so more rounds decide nothing"
    return "no series is open"
