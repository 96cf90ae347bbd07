"""Time that a hypervisor took: on a virtual machine the largest hidden influence.

The guest's kernel counts as stolen the time that its processors waited for real ones, which served
another guest. A rate from such a launch is that of a slower machine than intended.
Comparisons of paired rounds tolerate it like other noise; comparisons with another day do not.
"""

from analysis.tables.units import prefixed
from inference.intervals import median
from records.campaign import Campaign

#: Shares below these are not worth a sentence: of the median launch, of the one that lost most.
MEDIAN_SHARE = 0.01
LARGEST_SHARE = 0.05


def stolen_time(campaign: Campaign) -> list[str]:
    """Return a sentence with the shares of processors' time that were stolen, if it matters.

    They are shares of the time for which processors had work.
    """
    shares = {
        launch.record.launch: share
        for launch in campaign.sound()
        if (share := launch.record.stolen_share()) is not None
    }
    if not shares:
        return []
    middle, worst = median(list(shares.values())), max(shares, key=lambda name: shares[name])
    if middle < MEDIAN_SHARE and shares[worst] < LARGEST_SHARE:
        return []
    seconds = sum(launch.record.processors_s.get("stolen", 0.0) for launch in campaign.sound())
    return [
        f"Of the time in which processors had work, a hypervisor took {middle:.1%} in the median "
        f"launch and {shares[worst]:.1%} in {worst} ({prefixed(seconds, 's')} over all launches). "
        "That affects this campaign's rates."
    ]
