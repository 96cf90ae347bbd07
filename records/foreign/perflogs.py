"""Read ReFrame's performance logs: a line for each run of a test, below a line that names fields.

The format is that of ReFrame 4: any fields in any order, if `name` and a performance variable's
`<variable>_value` are among them. `job_completion_time` gives the order of time. Where the fields
change, a line that names the new ones may follow: logs that were put together have several.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from records.causes import one_line
from records.files import finite
from records.foreign.reframe_values import ABSENT, facts_of, performance, text_in
from records.foreign.run import (
    ForeignError,
    Measured,
    NoRun,
    Run,
    digest_of,
    name_of,
    printed,
    refuse_more,
)
from records.foreign.times import instant_of

SEPARATOR = "|"
VALUE = "_value"
#: What else is logged of a performance variable.
OF_VARIABLE = ("_value", "_unit", "_ref", "_lower_thres", "_upper_thres", "_result")
FIELD = re.compile(r"[A-Za-z_]\w*")


def is_perflog(text: str) -> bool:
    """Return whether a text begins with such a line."""
    heads = text.partition("\n")[0].strip().split(SEPARATOR)
    return len(heads) > 1 and any(head.endswith(VALUE) for head in heads)


def read_perflog(text: str, where: str, stem: str) -> tuple[list[Run], list[NoRun]]:
    """Return the runs of a log, and what of it is left out.

    `stem` names the test where no field does. Raises ForeignError where no line is left.
    """
    lines = text.splitlines()
    refuse_more(len(lines), where)
    heads: list[str] = []
    found: list[Run] = []
    left_out: list[NoRun] = []
    # What cannot be read was written behind the line before it.
    latest: float | None = None
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        fields = line.strip().split(SEPARATOR)
        if number == 1 or _are_heads(fields):
            heads = fields
            if twice := [head for head in heads if heads.count(head) > 1]:
                raise ForeignError(f"{where}:{number}: the field {name_of(twice[0])} appears twice")
            continue
        # ReFrame ends a line with a separator where the last field is of a performance variable.
        if len(fields) == len(heads) + 1 and not fields[-1]:
            fields.pop()
        at = f"{where}:{number}"
        try:
            if number == len(lines) and not text.endswith(("\n", "\r")):
                raise ValueError("the line has no end: it was cut off, or is being written")
            if len(fields) != len(heads):
                raise ValueError(f"it has {len(fields)} fields, not {len(heads)}")
        except ValueError as error:
            left_out.append(NoRun(f"{at}: {error}", True, where=at, began_utc=latest, source=where))
            continue
        run, lost = _run(heads, fields, at, where, stem, line, latest)
        left_out += lost
        if run:
            found.append(run)
            latest = run.began_utc if run.began_utc is not None else latest
    if not found:
        raise ForeignError(left_out[0].sentence if left_out else f"{where}: no run is logged")
    return found, left_out


def _are_heads(fields: Sequence[str]) -> bool:
    """Return whether fields are names of fields: values of a run have numbers among them."""
    named = fields if fields[-1] else fields[:-1]
    return any(field.endswith(VALUE) for field in named) and all(map(FIELD.fullmatch, named))


def _run(
    heads: Sequence[str], fields: Sequence[str], at: str, where: str, stem: str, line: str,
    latest: float | None,
) -> tuple[Run | None, list[NoRun]]:  # fmt: skip
    """Return the run of a line, None if it has no value, and the values that it lacks."""
    record = dict(zip(heads, fields, strict=True))
    test = text_in(record, "name") or text_in(record, "info") or name_of(stem)
    # The other time has no zone.
    began = instant_of(_number(record.get("job_completion_time_unix", "")))
    if began is None:
        began = instant_of(record.get("job_completion_time"))
    variables = [head.removesuffix(VALUE) for head in heads if head.endswith(VALUE)]
    of_variables = {f"{name}{end}" for name in variables for end in OF_VARIABLE}
    labels = facts_of({key: value for key, value in record.items() if key not in of_variables})
    measured: list[Measured] = []
    lost: list[NoRun] = []
    absent: list[str] = []
    for variable in variables:
        text = record[f"{variable}{VALUE}"]
        if text in ABSENT:
            absent.append(variable)
            continue
        reference, lower, upper = (
            _number(record.get(f"{variable}_{of}", "")) for of in
            ("ref", "lower_thres", "upper_thres")
        )  # fmt: skip
        unit = record.get(f"{variable}_unit")
        told = None if unit in ABSENT else unit
        name = name_of(variable)
        try:
            value = printed(text)
            measured.append(performance(test, name, value, told, (reference, lower, upper)))
        except ValueError as error:
            lost.append(
                NoRun(f"{at}: {name}: {error}", True, name_of(f"{test} {name}"), at,
                        latest if began is None else began, labels=labels, source=where)
            )  # fmt: skip
    missing = [(test, f"{test} has no value: {one_line(record.get('result', 'no result'), 40)}")]
    if measured or lost:
        missing = [(name_of(f"{test} {name_of(one)}"), f"{test} has no value of {name_of(one)}")
                   for one in absent]  # fmt: skip
    lost += [
        NoRun(f"{at}: {said}", True, of, at, latest if began is None else began, labels=labels,
                source=where)
        for of, said in missing
    ]  # fmt: skip
    if not measured:
        return None, lost
    identity = digest_of(line.strip()) if began else None
    return Run(at, tuple(measured), began, identity=identity, labels=labels, source=where), lost


def _number(text: str) -> float | None:
    """Return a number, None for what is none."""
    try:
        return finite(text)
    except ValueError:
        return None
