"""Points in time as other programs write them, and the order of names."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime

#: From 1990 to 2200: what is beyond is no time of a run.
EARLIEST, LATEST = 631_152_000.0, 7_258_118_400.0
DIGITS = re.compile(r"(\d+)")


def instant_of(value: object, form: str | None = None) -> float | None:
    """Return a point in time in seconds since the epoch, None for what is none.

    A text is in ISO 8601, or in a `form` of strptime; one without a zone is taken as UTC. A number
    is in seconds since the epoch.
    """
    try:
        if isinstance(value, str):
            text = " ".join(value.split())
            moment = datetime.strptime(text, form) if form else datetime.fromisoformat(text)
            moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
            seconds = moment.timestamp()
        elif isinstance(value, int | float) and not isinstance(value, bool):
            seconds = float(value)
        else:
            return None
    except (ValueError, OverflowError):
        return None
    return seconds if math.isfinite(seconds) and EARLIEST <= seconds <= LATEST else None


def natural(name: str) -> list[tuple[int, str]]:
    """Return what orders names, the numbers in them by their values."""
    parts = DIGITS.split(name)
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]
