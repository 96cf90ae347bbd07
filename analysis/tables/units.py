"""How numbers, intervals, shares and durations are written for people."""

from __future__ import annotations

from inference.intervals import Interval, Ratio

#: From here on a ratio is written with a power of ten.
LARGE_RATIO = 1e6


def prefixed(value: float, unit: str) -> str:
    """Return a value with a decimal prefix, for people: 12500000 B/s is 12.5 MB/s."""
    if value == 0:
        return f"0 {unit}"
    for factor, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""),
                           (1e-3, "m"), (1e-6, "µ"), (1e-9, "n"), (1e-12, "p")):  # fmt: skip
        if abs(value) >= factor * 0.9995:
            return f"{value / factor:.3g} {prefix}{unit}"
    return f"{value:.3g} {unit}"


def of_ratio(end: float) -> str:
    """Return an end of a ratio's interval for people; of two rounds it may have 300 digits."""
    return f"{end:.3f}" if end < LARGE_RATIO else f"{end:.2g}"


def ratio_text(ratio: Ratio | None) -> tuple[str, str]:
    """Return a ratio and its 95% interval for people."""
    if ratio is None:
        return "–", "–"
    interval = ratio.interval
    told = f"{of_ratio(interval.low)} – {of_ratio(interval.high)}" if interval else "–"
    return ratio.words, told


def duration(seconds: float | None) -> str:
    """Return a duration for people."""
    if seconds is None:
        return "–"
    for factor, unit in ((86400.0, "d"), (3600.0, "h"), (60.0, "min")):
        if seconds >= 2 * factor:
            return f"{seconds / factor:.3g} {unit}"
    return f"{seconds:.3g} s"


def about(seconds: float) -> str:
    """Return a duration that is a guess, for people: in whole s or min, or in h."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.2g} h"


def many(rounds: int | None) -> str:
    """Return a number of rounds for people."""
    return "more than a million" if rounds is None else f"{rounds:,}"


def within(interval: Interval | None) -> str:
    """Return an interval of ratios for people; where it leaves out 1 by less than is printed, so.

    That is `over 1` or `under 1`, at its end.
    """
    if interval is None:
        return "–"
    low, high = of_ratio(interval.low), of_ratio(interval.high)
    if interval.low > 1 and low == "1.000":
        low = "over 1"
    if interval.high < 1 and high == "1.000":
        high = "under 1"
    return f"{low} – {high}"


def interval_text(interval: Interval | None, unit: str = "") -> str:
    """Return an interval for people."""
    if interval and unit:
        return f"{prefixed(interval.low, unit)} – {prefixed(interval.high, unit)}"
    return within(interval)


def covering(interval: Interval, scale: float) -> str:
    """Return an interval of a median in multiples of `scale`, with its coverage."""
    low, high = interval.low / scale, interval.high / scale
    return f"{low:.4g} – {high:.4g} ({interval.coverage:.0%})"


def p_text(p_value: float | None) -> str:
    """Return a p value for people."""
    return "–" if p_value is None else f"{p_value:.3g}"


def percent(share: float) -> str:
    """Return a share for people."""
    return f"{100 * share:.3g}%"
