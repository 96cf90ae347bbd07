"""Read the sessions that ReFrame keeps, from its sqlite database or from a session's report.

The database may be anybody's: it is opened for reading alone, only of plain tables, and what it
holds is JSON that is checked like any other. Of a test that was retried the first attempt counts: a
later one was made because that one failed, and has been chosen by its result.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from records.acting_user import opened, rights_of_owner
from records.causes import one_line
from records.files import json_of
from records.foreign.reframe_values import facts_of, performance, text_in
from records.foreign.run import (
    MOST_BYTES,
    ForeignError,
    Measured,
    NoRun,
    Run,
    name_of,
    of_number,
    refuse_more,
)
from records.foreign.times import instant_of

BEGINS = b"SQLite format 3\x00"
#: How long ReFrame may hold the database, in seconds.
WAIT_S = 30.0


def is_session(data: Any) -> bool:
    """Return whether JSON is ReFrame's report of a session."""
    return isinstance(data, Mapping) and "session_info" in data and "runs" in data


def read_database(path: Path, source: str) -> tuple[list[Run], list[NoRun]]:
    """Return the runs of all sessions, and what is left out; raises ForeignError."""
    found: list[Run] = []
    left_out: list[NoRun] = []
    for number, (uuid, began, text) in enumerate(_sessions(path), 1):
        where = f"{path.name}, session {number}"
        try:
            runs, lost = read_session(session_of(text), where, source)
        except ValueError as error:
            said = str(error).removeprefix(f"{where}: ")
            left_out.append(
                NoRun(f"{where}: {said}", True, "", where, instant_of(began), name_of(uuid),
                        source=source)
            )  # fmt: skip
            runs, lost = [], []
        found += runs
        left_out += lost
        refuse_more(len(found) + len(left_out), str(path))
    if not found:
        raise ForeignError(left_out[0].sentence if left_out else f"{path}: it holds no session")
    return found, left_out


def session_of(text: str) -> Any:
    """Return a session's report; ReFrame writes NaN for a value that there is not."""
    return json_of(text, constant=lambda _: None)


def _sessions(path: Path) -> Iterator[tuple[object, object, str]]:
    """Yield uuid, beginning and report of each session in order of time; raises ForeignError."""
    try:
        # A pipe or a device is none, and is refused before sqlite opens it.
        with opened(path), rights_of_owner(path.parent):
            address = f"file:{quote(str(path.resolve()))}?mode=ro"
            database = sqlite3.connect(address, uri=True, timeout=WAIT_S)
            rows = _query(database, path)
        with closing(database):
            for uuid, began, text in rows:
                if not isinstance(text, str):
                    raise ForeignError(f"{path}: a session is not text")
                yield uuid, began, text
    except (sqlite3.Error, UnicodeDecodeError) as error:
        # A message may have names from the database, in any bytes.
        raise ForeignError(f"{path}: it cannot be read: {one_line(str(error))}") from None
    except OSError as error:
        raise ForeignError(f"{path}: it cannot be read: {error.strerror or error}") from None


def _query(database: sqlite3.Connection, path: Path) -> sqlite3.Cursor:
    """Return the reports of a database of which nothing is run; raises ForeignError."""
    database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MOST_BYTES)
    database.execute("PRAGMA trusted_schema = OFF")
    kinds = database.execute(
        "SELECT type, sql FROM sqlite_master WHERE name = 'sessions'"
    ).fetchall()
    columns = database.execute("PRAGMA table_xinfo('sessions')").fetchall()
    # What a hidden column has is computed: a small file would have any amount of it.
    is_plain = bool(columns) and not any(hidden for *_, hidden in columns)
    if len(kinds) != 1 or kinds[0][0] != "table" or not _is_table(kinds[0][1]) or not is_plain:
        database.close()
        raise ForeignError(f"{path}: it has no plain table of ReFrame's sessions")
    return database.execute(
        "SELECT uuid, session_start_unix, json_blob FROM sessions ORDER BY session_start_unix, uuid"
    )


def _is_table(statement: object) -> bool:
    """Return whether a table is none that a module of SQLite makes."""
    return str(statement).upper().split()[:2] == ["CREATE", "TABLE"]


@dataclass(frozen=True)
class _Session:
    """What a session's test cases have in common."""

    name: str
    began_utc: float | None
    where: str
    source: str
    version: str

    def run(self, case: Mapping[str, Any]) -> dict[str, Any]:
        """Return what a case has in common with its run, as a run and what is left out have it."""
        began = instant_of(case.get("job_completion_time_unix"))
        labels = facts_of(case) | ({"session": self.name} if self.name else {})
        if self.version:
            labels["reframe"] = self.version
        return {"began_utc": self.began_utc if began is None else began,
                "session": self.name or None, "labels": labels, "source": self.source}  # fmt: skip


def read_session(data: Any, where: str, source: str) -> tuple[list[Run], list[NoRun]]:
    """Return the runs of a session, and what is left out; raises ForeignError."""
    if not is_session(data):
        raise ForeignError(f"{where}: it is not a report of ReFrame")
    info = data["session_info"] if isinstance(data["session_info"], dict) else {}
    session = _Session(
        text_in(info, "uuid"), instant_of(info.get("time_start_unix")), where, source,
        text_in(info, "version"),
    )  # fmt: skip
    attempts = data["runs"]
    found: list[Run] = []
    left_out: list[NoRun] = []
    try:
        cases = [(attempt, case) for attempt, run in enumerate(attempts)
                 for case in run["testcases"]]  # fmt: skip
    except (TypeError, KeyError):
        raise ForeignError(f"{where}: its runs are not ReFrame's") from None
    refuse_more(len(cases), where)
    for attempt, case in cases:
        if not isinstance(case, dict):
            left_out.append(NoRun(f"{where}: not a test case", True, **session.run({})))
            continue
        test = text_in(case, "name") or text_in(case, "display_name")
        if attempt or not test:
            said = "a retry, made because of the result before it" if attempt else "it is left out"
            named = test or "a test without a name"
            left_out.append(
                NoRun(f"{where}: {named}: {said}", not attempt, test, **session.run(case))
            )
            continue
        run, lost = _run(case, test, session)
        found += [run] if run else []
        left_out += lost
    return found, left_out


def _run(
    case: dict[str, Any], test: str, session: _Session
) -> tuple[Run | None, list[NoRun]]:  # fmt: skip
    """Return the run of a test case, None if it has no value, and the values that it lacks."""
    at = f"{session.where}, {test}"
    told_of = session.run(case)
    values = case.get("perfvalues")
    measured: list[Measured] = []
    wrong: list[tuple[str, str]] = []
    absent: list[tuple[str, str]] = []
    for key, told in values.items() if isinstance(values, dict) else ():
        variable = name_of(key.rpartition(":")[2])
        if isinstance(told, list) and told and told[0] is None:
            absent.append((variable, "it has no value"))
            continue
        try:
            measured.append(_performance(test, variable, told))
        except ValueError as error:
            wrong.append((variable, str(error)))
    lost = [
        NoRun(f"{session.where}: {test}: {variable}: {said}", True, name_of(f"{test} {variable}"),
                at, **told_of)
        for variable, said in [*wrong, *(absent if measured else [])]
    ]  # fmt: skip
    phase = text_in(case, "fail_phase")
    if not measured:
        said = f"no value: it failed in {phase}" if phase else "no performance value"
        # A test that measures nothing has lost nothing.
        is_loss = bool(absent or phase)
        none = NoRun(f"{session.where}: {test}: {said}", is_loss, test, at, **told_of)
        return None, lost or [none]
    # Its number within the session, by which ReFrame itself tells test cases apart.
    own = text_in(case, "uuid")
    return Run(
        at, tuple(measured), identity=f"{session.name} {own}" if session.name and own else None,
        **told_of,
    ), lost  # fmt: skip


def _performance(test: str, variable: str, told: Any) -> Measured:
    """Return a performance variable; raises ValueError with what is wrong with it."""
    if not isinstance(told, list) or len(told) < 5:
        raise ValueError("it is not a value with reference and unit")
    value, reference, lower, upper, unit = told[:5]
    return performance(test, variable, of_number(value), unit, (reference, lower, upper))
