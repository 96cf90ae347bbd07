"""When an unreadable file was written: by what it says, by its name, else by its last change.

Whoever copies a history gives all of its files a new time of change. So that time shows that a file
is old, and never that it is new.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import pairwise

from records.foreign.run import NoRun, Run
from records.foreign.times import instant_of, natural

#: Where JSON says when it began: Google's benchmark library, and ReFrame.
IN_JSON = re.compile(
    r'"(?:date|time_start_unix)"\s*:\s*(?:"([^"\n]{10,40})"|(\d[\d.]{8,20})[\s,}])'
)
#: A point in time in other text.
ISO = re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?(?![\w:])")
#: So many files in whose names the times have the same order have it by no chance.
LEAST_IN_ORDER = 4
#: Of so many files one may have been measured again later.
ONE_AGAINST = 10


@dataclass(frozen=True)
class Unreadable:
    """A file that cannot be read: when it says that it ran, if so, and when it was last changed."""

    lost: NoRun
    told: float | None
    changed: float


def time_told(text: str) -> float | None:
    """Return when a damaged text says that it began, in seconds since the epoch; None if nowhere.

    Of a log, which is written line by line, it is the last time in it.
    """
    if text.lstrip()[:1] == "{":
        found = IN_JSON.search(text)
        if found is None:
            return None
        return instant_of(found[1] if found[1] is not None else _number(found[2]))
    times = [told for one in ISO.findall(text) if (told := instant_of(one)) is not None]
    return times[-1] if times else None


def dated(files: Iterable[Unreadable], runs: Iterable[Run]) -> list[NoRun]:
    """Return what is lost with unreadable files, each with the time that is known of it.

    Where names have the order of the times, a name is between others; one behind all of them is
    the newest. Of what nothing dates the sentence says so.
    """
    times: dict[str, dict[str, float]] = defaultdict(dict)
    for run in runs:
        if run.began_utc is not None:
            own = times[_kind(run.source)]
            own[run.source] = max(own.get(run.source, run.began_utc), run.began_utc)
    orders: dict[str, list[tuple[list[tuple[int, str]], float]]] = {}
    for kind, of in times.items():
        order = sorted((natural(source), time) for source, time in of.items())
        told = [time for _, time in order]
        against = sum(later < one for one, later in pairwise(told))
        if len(order) >= LEAST_IN_ORDER and against <= len(order) // ONE_AGAINST:
            orders[kind] = order
    found = []
    for one in files:
        order = orders.get(_kind(one.lost.source), [])
        name = natural(one.lost.source)
        before = [time for known, time in order if known < name]
        after = [time for known, time in order if known > name]
        if one.told is not None:
            found.append(replace(one.lost, began_utc=one.told))
        elif after:
            found.append(replace(one.lost, began_utc=min([*before[-1:], after[0] - 1])))
        elif before:
            found.append(replace(one.lost, began_utc=max(before[-1], one.changed)))
        else:
            said = f"{one.lost.sentence} (neither it nor its name says when it ran)"
            found.append(replace(one.lost, sentence=said, began_utc=one.changed))
    return found


def _kind(source: str) -> str:
    """Return a file's path without the numbers that tell runs apart."""
    return re.sub(r"\d+", "", source)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
