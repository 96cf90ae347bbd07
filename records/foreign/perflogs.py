"""Read ReFrame's performance logs: a line for each run of a test, below a line that names fields.

The format is that of ReFrame 4: any fields in any order, if `name` and a performance variable's
`<variable>_value` are among them. `job_completion_time` gives the order of time.
"""

from __future__ import annotations

from collections.abc import Sequence

from records.causes import one_line
from records.files import finite
from records.foreign.reframe_values import performance, text_in, where_run
from records.foreign.run import (
    ForeignError,
    Measured,
    Run,
    digest_of,
    name_of,
    printed,
    refuse_more,
)
from records.foreign.times import instant_of

SEPARATOR = "|"
VALUE = "_value"
ABSENT = ("", "null", "None")


def is_perflog(text: str) -> bool:
    """Return whether a text begins with such a line."""
    heads = text.partition("\n")[0].strip().split(SEPARATOR)
    return len(heads) > 1 and any(head.endswith(VALUE) for head in heads)


def read_perflog(text: str, where: str, stem: str) -> tuple[list[Run], list[str]]:
    """Return the runs of a log, and sentences on lines that are left out.

    `stem` names the test where no field does. Raises ForeignError where no line is left.
    """
    lines = text.splitlines()
    refuse_more(len(lines), where)
    heads = lines[0].strip().split(SEPARATOR)
    if len(set(heads)) < len(heads):
        twice = next(head for head in heads if heads.count(head) > 1)
        raise ForeignError(f"{where}:1: the field {name_of(twice)} appears twice")
    found: list[Run] = []
    left_out: list[str] = []
    for number, line in enumerate(lines[1:], 2):
        if not line.strip():
            continue
        fields = line.strip().split(SEPARATOR)
        # ReFrame ends a line with a separator where the last field is of a performance variable.
        if len(fields) == len(heads) + 1 and not fields[-1]:
            fields.pop()
        try:
            if len(fields) != len(heads):
                raise ValueError(f"it has {len(fields)} fields, not {len(heads)}")
            found.append(_run(heads, fields, f"{where}:{number}", stem, line))
        except ValueError as error:
            left_out.append(f"{where}:{number}: {error}")
    if not found:
        raise ForeignError(left_out[0] if left_out else f"{where}: no run is logged")
    return found, left_out


def _run(heads: Sequence[str], fields: Sequence[str], where: str, stem: str, line: str) -> Run:
    record = dict(zip(heads, fields, strict=True))
    test = text_in(record, "name") or text_in(record, "info") or name_of(stem)
    measured: list[Measured] = []
    for head in heads:
        variable = head.removesuffix(VALUE)
        if variable == head or record[head] in ABSENT:
            continue
        reference, lower, upper = (
            _number(record.get(f"{variable}_{of}", "")) for of in
            ("ref", "lower_thres", "upper_thres")
        )  # fmt: skip
        unit = record.get(f"{variable}_unit")
        told = None if unit in ABSENT else unit
        try:
            value = printed(record[head])
        except ValueError as error:
            raise ValueError(f"{name_of(variable)}: {error}") from None
        measured.append(
            performance(test, name_of(variable), value, told, (reference, lower, upper))
        )
    if not measured:
        raise ValueError(f"{test} has no value: {one_line(record.get('result', 'no result'), 40)}")
    began = instant_of(record.get("job_completion_time"))
    if began is None:
        began = instant_of(_number(record.get("job_completion_time_unix", "")))
    return Run(
        where, tuple(measured), began, identity=digest_of(line.strip()) if began else None,
        labels=where_run(dict(record)),
    )  # fmt: skip


def _number(text: str) -> float | None:
    """Return a number, None for what is none."""
    try:
        return finite(text)
    except ValueError:
        return None
