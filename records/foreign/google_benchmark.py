"""Read the JSON that Google's benchmark library writes, and others in its form.

A file is what one process printed. Its repetitions are no independent runs: the median of them is
the run's value. What is judged is `real_time`, since a rate beside it is the same once more.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from statistics import median
from typing import Any

from records.foreign.run import (
    ForeignError,
    Measured,
    Run,
    Value,
    digest_of,
    name_of,
    of_number,
    refuse_more,
)
from records.foreign.times import instant_of

UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
#: The aggregate that stands for a run whose repetitions were not written, the better one first.
AGGREGATES = ("median", "mean")


def is_google_benchmark(data: Any) -> bool:
    """Return whether JSON is in this form."""
    return isinstance(data, Mapping) and isinstance(data.get("benchmarks"), list)


def read_google_benchmark(data: Mapping[str, Any], text: str, where: str) -> tuple[Run, list[str]]:
    """Return the run of a file, and sentences on what of it is left out.

    Raises ForeignError where nothing is left.
    """
    refuse_more(len(data["benchmarks"]), where)
    repetitions: dict[str, list[Value]] = defaultdict(list)
    aggregates: dict[str, dict[str, Value]] = defaultdict(dict)
    left_out = []
    for number, entry in enumerate(data["benchmarks"], 1):
        try:
            name = name_of(_text(entry, "run_name") or _text(entry, "name"))
            if not name:
                raise ValueError("it has no name")
            if entry.get("error_occurred") or entry.get("skipped"):
                raise ValueError(
                    f"it ended with: {name_of(entry.get('error_message') or 'an error')}"
                )
            kind = entry.get("aggregate_name") if entry.get("run_type") == "aggregate" else None
            if kind is not None and kind not in AGGREGATES:
                continue
            unit = entry.get("time_unit", "ns")
            if unit not in UNITS:
                raise ValueError(f"its time_unit {name_of(unit)} is none of {', '.join(UNITS)}")
            value = of_number(entry.get("real_time"), UNITS[unit])
        except (ValueError, AttributeError, TypeError) as error:
            said = str(error) if isinstance(error, ValueError) else "it is no benchmark"
            left_out.append(f"{where}: benchmark {number}: {said}")
            continue
        if kind is None:
            repetitions[name].append(value)
        else:
            aggregates[name][kind] = value
    measured = []
    for name in dict.fromkeys([*repetitions, *aggregates]):
        if of := repetitions.get(name):
            value = Value(median(one.value for one in of), max(one.step for one in of))
        else:
            value = next(aggregates[name][kind] for kind in AGGREGATES if kind in aggregates[name])
        measured.append(Measured(name, "s", True, {0: value}))
    if not measured:
        raise ForeignError("; ".join(left_out) or f"{where}: it has no benchmark")
    context = data.get("context")
    facts = context if isinstance(context, Mapping) else {}
    labels = {
        label: name_of(facts[key])
        for label, key in (("host", "host_name"), ("executable", "executable"))
        if isinstance(facts.get(key), str)
    }
    return (
        Run(where, tuple(measured), instant_of(facts.get("date")), identity=digest_of(text),
            labels=labels),
        left_out,
    )  # fmt: skip


def _text(entry: Mapping[str, Any], key: str) -> str:
    value = entry.get(key)
    return value if isinstance(value, str) else ""
