"""How a campaign's launches compare with their references, in sentences for its end.

And which slowdown these would have shown: that nothing missed one is worth no more than that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from records.files import json_of
from records.kept import Kept
from records.references import METRICS_FILE

SHOWN = 10


def findings(campaign: Path, launches: Iterable[Kept], site: str) -> list[str]:
    """Return sentences about stale references, launches that were worse or better, and power.

    `launches` are the campaign's, as whoever asks has found them.
    """
    stale: Counter[str] = Counter()
    found: dict[str, Counter[str]] = {"worse": Counter(), "better": Counter()}
    for launch in launches:
        try:
            data = json_of(launch.read(METRICS_FILE).decode())
            if data["stale"]:
                stale[f"{data['implementation']}, {data['stale']}"] += 1
            for name, one in data["metrics"].items():
                kind = (one["finding"] or "").split(" ")[0]
                if kind in found:
                    found[kind][f"{data['cell']}, {data['implementation']}, {name}"] += 1
        except FileNotFoundError:
            continue
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            path = launch.where / METRICS_FILE
            return [f"{path} cannot be read ({error!r}), so references could not be checked"]
    again = f"make calibrate SITE={site}"
    sentences = [
        f"stale references were not applied in {many(count)} of {what}; calibrate again: {again}"
        for what, count in stale.items()
    ]
    for kind, ending in (("worse", ""), ("better", f"; to make that the reference: {again}")):
        counted = found[kind].most_common()
        if not counted:
            continue
        shown = "; ".join(f"{what} ({many(count)})" for what, count in counted[:SHOWN])
        more = f"; and {len(counted) - SHOWN} more" if len(counted) > SHOWN else ""
        sentences.append(f"{kind} than the reference: {shown}{more}{ending}")
    # It loads SciPy, which takes a second that no campaign's beginning has to wait for.
    from analysis.references.missed import held_references, power_sentences

    return [*sentences, *power_sentences(list(held_references(campaign).values()))]


def many(count: int) -> str:
    """Return a number of launches in words."""
    return "1 launch" if count == 1 else f"{count} launches"
