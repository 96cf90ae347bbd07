"""Read the JSON that Google's benchmark library writes, and others in its form.

A file is what one process printed. Its repetitions are no independent runs: the median of them is
the run's value. What is judged is `real_time`, since a rate beside it is the same once more.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Mapping
from statistics import median
from typing import Any

from records.foreign.run import (
    ForeignError,
    Measured,
    NoRun,
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
#: How releases before 1.4.1 mark an aggregate: by its name alone, without a `run_type`.
NAMED_AGGREGATE = re.compile(r"(?P<name>.+)_(?P<kind>mean|median|stddev|cv|BigO|RMS)")
#: What the context says of where and how it ran.
FACTS = {"host": "host_name", "executable": "executable", "build": "library_build_type",
         "library_version": "library_version", "num_cpus": "num_cpus",
         "cpu_scaling_enabled": "cpu_scaling_enabled"}  # fmt: skip


def is_google_benchmark(data: Any) -> bool:
    """Return whether JSON is in this form."""
    return isinstance(data, Mapping) and isinstance(data.get("benchmarks"), list)


def read_google_benchmark(
    data: Mapping[str, Any], text: str, where: str
) -> tuple[Run, list[NoRun]]:
    """Return the run of a file, and what of it is left out.

    Raises ForeignError where nothing is left.
    """
    refuse_more(len(data["benchmarks"]), where)
    repetitions: dict[str, list[Value]] = defaultdict(list)
    aggregates: dict[str, dict[str, Value]] = defaultdict(dict)
    left_out = []
    context = data.get("context")
    facts = context if isinstance(context, Mapping) else {}
    began = instant_of(facts.get("date"))
    names = {_text(entry, "name") for entry in data["benchmarks"] if isinstance(entry, Mapping)}
    for number, entry in enumerate(data["benchmarks"], 1):
        name = ""
        try:
            name, kind = _name_and_aggregate(entry, names)
            if not name:
                raise ValueError("it has no name")
            if entry.get("error_occurred") or entry.get("skipped"):
                raise ValueError(
                    f"it ended with: {name_of(entry.get('error_message') or 'an error')}"
                )
            if kind is not None and kind not in AGGREGATES:
                continue
            unit = entry.get("time_unit", "ns")
            if unit not in UNITS:
                raise ValueError(f"its time_unit {name_of(unit)} is none of {', '.join(UNITS)}")
            value = of_number(entry.get("real_time"), UNITS[unit])
        except (ValueError, AttributeError, TypeError) as error:
            said = str(error) if isinstance(error, ValueError) else "it is not a benchmark"
            left_out.append(
                NoRun(
                    f"{where}: benchmark {number}{f', {name}' if name else ''}: {said}", True,
                    name, where, began, source=where,
                )
            )  # fmt: skip
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
        measured.append(Measured(name, "s", True, {None: value}))
    if not measured:
        said = "; ".join(one.sentence for one in left_out)
        raise ForeignError(said or f"{where}: it has no benchmark")
    labels = {
        label: name_of(facts[key]) for label, key in FACTS.items()
        if isinstance(facts.get(key), str | int)
    }  # fmt: skip
    return (
        Run(where, tuple(measured), began, identity=digest_of(text), labels=labels, source=where),
        left_out,
    )


def _name_and_aggregate(
    entry: Mapping[str, Any], names: Collection[str]
) -> tuple[str, str | None]:  # fmt: skip
    """Return the name of a benchmark, and which aggregate of it an entry is; None for a run.

    Of the names in a file without run types, one that others stand beside is an aggregate's.
    """
    if "run_type" in entry:
        kind = _text(entry, "aggregate_name") if entry["run_type"] == "aggregate" else None
        return name_of(_text(entry, "run_name") or _text(entry, "name")), kind
    text = _text(entry, "name")
    found = NAMED_AGGREGATE.fullmatch(text)
    if found and (found["name"] in names or {f"{found['name']}_mean", f"{found['name']}_stddev"}
                  <= set(names)):  # fmt: skip
        return name_of(found["name"]), found["kind"]
    return name_of(_text(entry, "run_name") or text), None


def _text(entry: Mapping[str, Any], key: str) -> str:
    value = entry.get(key)
    return value if isinstance(value, str) else ""
