"""Read the sessions that ReFrame keeps, from its sqlite database or from a session's report.

The database may be anybody's: it is opened for reading alone, only of plain tables, and what it
holds is JSON that is checked like any other. Of a test that was retried the first attempt counts: a
later one was made because that one failed, and has been chosen by its result.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

from records.acting_user import opened, rights_of_owner
from records.causes import one_line
from records.files import json_of
from records.foreign.reframe_values import performance, text_in, where_run
from records.foreign.run import (
    MOST_BYTES,
    ForeignError,
    Measured,
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


def read_database(path: Path) -> tuple[list[Run], list[str]]:
    """Return the runs of all sessions, and sentences on what is left out; raises ForeignError."""
    found: list[Run] = []
    left_out: list[str] = []
    for number, text in enumerate(_sessions(path), 1):
        where = f"{path.name}, session {number}"
        try:
            runs, sentences = read_session(session_of(text), where)
        except ValueError as error:
            left_out.append(f"{where}: {error}")
            runs, sentences = [], []
        found += runs
        left_out += sentences
        refuse_more(len(found) + len(left_out), str(path))
    if not found:
        raise ForeignError(left_out[0] if left_out else f"{path}: it holds no session")
    return found, left_out


def session_of(text: str) -> Any:
    """Return a session's report; ReFrame writes NaN for a value that there is not."""
    return json_of(text, constant=lambda _: None)


def _sessions(path: Path) -> Iterator[str]:
    """Yield the report of each session in order of time; raises ForeignError."""
    try:
        # A pipe or a device is none, and is refused before sqlite opens it.
        with opened(path), rights_of_owner(path.parent):
            address = f"file:{quote(str(path.resolve()))}?mode=ro"
            database = sqlite3.connect(address, uri=True, timeout=WAIT_S)
            rows = _query(database, path)
        with closing(database):
            for (text,) in rows:
                if not isinstance(text, str):
                    raise ForeignError(f"{path}: a session is not text")
                yield text
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
    return database.execute("SELECT json_blob FROM sessions ORDER BY session_start_unix, uuid")


def _is_table(statement: object) -> bool:
    """Return whether a table is none that a module of SQLite makes."""
    return str(statement).upper().split()[:2] == ["CREATE", "TABLE"]


def read_session(data: Any, where: str) -> tuple[list[Run], list[str]]:
    """Return the runs of a session, and sentences on what is left out; raises ForeignError."""
    if not is_session(data):
        raise ForeignError(f"{where}: it is not a report of ReFrame")
    info = data["session_info"]
    session = text_in(info, "uuid") if isinstance(info, dict) else ""
    attempts = data["runs"]
    found: list[Run] = []
    left_out: list[str] = []
    try:
        cases = [(attempt, case) for attempt, run in enumerate(attempts)
                 for case in run["testcases"]]  # fmt: skip
    except (TypeError, KeyError):
        raise ForeignError(f"{where}: its runs are not ReFrame's") from None
    refuse_more(len(cases), where)
    for attempt, case in cases:
        if not isinstance(case, dict):
            left_out.append(f"{where}: not a test case")
            continue
        test = text_in(case, "name") or text_in(case, "display_name")
        try:
            if attempt:
                raise ValueError("a retry, made because of the result before it")
            found.append(_run(case, test, session, where))
        except ValueError as error:
            left_out.append(f"{where}: {test or 'a test without a name'}: {error}")
    return found, left_out


def _run(case: dict[str, Any], test: str, session: str, where: str) -> Run:
    if not test:
        raise ValueError("it is left out")
    values = case.get("perfvalues")
    measured: list[Measured] = []
    for key, told in values.items() if isinstance(values, dict) else ():
        variable = name_of(key.rpartition(":")[2])
        if not isinstance(told, list) or len(told) < 5:
            raise ValueError(f"{variable}: it is not a value with reference and unit")
        value, reference, lower, upper, unit = told[:5]
        if value is None:
            continue
        try:
            number = of_number(value)
        except ValueError as error:
            raise ValueError(f"{variable}: {error}") from None
        measured.append(performance(test, variable, number, unit, (reference, lower, upper)))
    if not measured:
        phase = text_in(case, "fail_phase")
        raise ValueError(f"no value: it failed in {phase}" if phase else "no performance value")
    # Its number within the session, by which ReFrame itself tells test cases apart.
    own = text_in(case, "uuid")
    return Run(
        f"{where}, {test}", tuple(measured), instant_of(case.get("job_completion_time_unix")),
        session or None, identity=f"{session} {own}" if session and own else None,
        labels=where_run(case) | ({"session": session} if session else {}),
    )  # fmt: skip
