"""What ReFrame tells of a test's performance, the same in its perflogs and in its database."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from records.foreign.run import Measured, Value, name_of

#: Units of which less is better, and those of which more is, as people write them.
TIMES = re.compile(
    r"(?:[numµ]?s|secs?|seconds?|(?:nano|micro|milli)s(?:ec(?:ond)?s?)?|mins?|minutes?|h|hours?|"
    r"cycles?|clocks?)(?:/(?!(?:d|days?|h|hours?|mins?|minutes?|weeks?|years?)\b)\w+)?",
    re.IGNORECASE,
)  # fmt: skip
RATES = re.compile(
    r".+/\s*s(?:ec(?:ond)?)?|[^/]*flops?(?:/s(?:ec(?:ond)?)?)?|[numµ]?s/d(?:ay)?|"
    r"[kmgtpe]i?bps|[kmg]?(?:iops|teps)",
    re.IGNORECASE,
)


class Undirected(ValueError):
    """Whether less or more of something is better contradicts itself; the text is a sentence."""


def by_thresholds(reference: object, lower: object, upper: object) -> bool | None:
    """Return whether less is better, by which side of a reference is bounded; None if unknown."""
    bounded = [_is_number(one) for one in (lower, upper)]
    if not _is_number(reference) or not reference or bounded[0] == bounded[1]:
        return None
    return bounded[1]


def by_unit(unit: str) -> bool | None:
    """Return whether less is better, by a unit; None if it does not say."""
    if RATES.fullmatch(unit):
        return False
    return True if TIMES.fullmatch(unit) else None


def performance(
    test: str, variable: str, value: Value, unit: object, reference: tuple[object, object, object]
) -> Measured:
    """Return a performance variable of a test; `reference` has its two thresholds behind it.

    Raises Undirected where its unit and its thresholds contradict each other.
    """
    words = "" if unit is None else name_of(unit)
    told = [one for one in (by_thresholds(*reference), by_unit(words)) if one is not None]
    if len(set(told)) > 1:
        better = "less" if told[0] else "more"
        raise Undirected(
            f"by the thresholds of its reference {better} is better, but by its unit {words} the "
            "opposite"
        )
    return Measured(name_of(f"{test} {variable}"), words, told[0] if told else None, {None: value})


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def text_in(record: dict[str, Any], key: str) -> str:
    """Return a text of a record as a name; empty if there is none."""
    value = record.get(key)
    return name_of(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""


#: What is another in every run, or only says where something lies.
OF_ONE_RUN = re.compile(
    r".*(?:time|date|uuid|jobid|index|stdout|stderr|dir|prefix|filename|hashcode|actual)(?:_unix)?|"
    r"(?:short_|unique_|display_)?name|descr|info|message|result|job_exitcode|time_.*|fail_.*|"
    r"dependencies_.*|check_.*"
)
ABSENT = ("", "null", "None", "{}", "[]", "<undefined>")


def facts_of(record: Mapping[str, Any]) -> dict[str, str]:
    """Return what runs can be chosen by, and may differ in, such as system, nodes and tasks.

    Of whatever a record has: a site logs what it wants to.
    """
    found = {}
    for key, value in record.items():
        if OF_ONE_RUN.fullmatch(key):
            continue
        if isinstance(value, list) and all(isinstance(one, str) for one in value):
            text = ",".join(value)
        elif isinstance(value, dict) and all(isinstance(one, str) for one in value.values()):
            text = ",".join(f"{name}={one}" for name, one in sorted(value.items()))
        else:
            text = str(value) if isinstance(value, str | int | float) else ""
        if text not in ABSENT:
            found[name_of(key)] = name_of(text)
    return found
