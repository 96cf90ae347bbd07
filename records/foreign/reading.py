"""Read a set of runs: a file, or all files of a folder, each by what it begins with."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath

from records.acting_user import opened
from records.foreign.dating import Unreadable, dated, time_told
from records.foreign.google_benchmark import is_google_benchmark, read_google_benchmark
from records.foreign.intel import is_imb, read_imb
from records.foreign.osu import is_osu, read_osu
from records.foreign.perflogs import is_perflog, read_perflog
from records.foreign.reframe_database import (
    BEGINS,
    is_session,
    read_database,
    read_session,
    session_of,
)
from records.foreign.run import (
    MOST_BYTES,
    MOST_RUNS,
    MOST_VALUES,
    ForeignError,
    NoRun,
    Run,
    name_of,
)

FORMATS = (
    "ReFrame's perflogs, its database or a session's report, OSU's or IMB's text, or JSON in the "
    "form of Google's benchmark library"
)
#: How many files a folder may have, and how deep folders in it may be.
MOST_FILES, DEEPEST = 50_000, 64


class OtherFormat(ForeignError):
    """A file that is in none of the formats that are read."""


@dataclass
class RunSet:
    """The runs of a set, and what is not among them."""

    path: Path
    runs: list[Run] = field(default_factory=list)
    left_out: list[NoRun] = field(default_factory=list)
    #: Of its runs, and how many values they have.
    identities: set[str] = field(default_factory=set)
    values: int = 0

    def add(self, run: Run) -> None:
        """Add a run, unless it is a copy of one; raises ForeignError where there are too many."""
        if run.identity in self.identities:
            said = f"{run.where}: a copy of a run that is there already"
            self.left_out.append(NoRun(said, where=run.where))
            return
        if run.identity:
            self.identities.add(run.identity)
        self.runs.append(run)
        self.values += sum(len(one.values) for one in run.measured)
        if len(self.runs) > MOST_RUNS or self.values > MOST_VALUES:
            raise ForeignError(
                f"{self.path} has more than {MOST_RUNS:,} runs or {MOST_VALUES:,} values: name a "
                "part of it"
            )


def read_set(path: Path) -> RunSet:
    """Return the runs of a file or of all files of a folder, a run that is there twice once.

    Raises ForeignError where there is none, and for a file of another format, or one that is
    damaged, unless it is one of a folder: then a sentence says so. A file of another format is a
    run that failed if it is named as runs are.
    """
    found = RunSet(path)
    sources: Counter[str] = Counter()
    damaged: list[Unreadable] = []
    others: list[Unreadable] = []
    if path.is_dir():
        for file in _files(path):
            where = name_of(file.relative_to(path))
            try:
                kind, runs, left_out = _read(file, where)
            except ForeignError as error:
                lost = NoRun(str(error), True, "", where, source=where)
                one = Unreadable(lost, time_told(_text_of(file)), file.stat().st_mtime)
                (others if isinstance(error, OtherFormat) else damaged).append(one)
                continue
            sources[kind] += len(runs)
            found.left_out += left_out
            for run in runs:
                found.add(run)
    else:
        _, runs, left_out = _read(path, name_of(path.name))
        found.left_out += left_out
        for run in runs:
            found.add(run)
    found.left_out += dated(damaged, found.runs)
    if others:
        found.left_out += _other_files(others, found.runs)
    if not found.runs:
        said = "; ".join(one.sentence for one in found.left_out[:3])
        raise ForeignError(f"{path} has no run: {said or 'it is empty'}")
    # Both have the same runs, and nothing tells which of one is which of the other.
    if sources["perflog"] and sources["session"]:
        raise ForeignError(
            f"{path} has ReFrame's perflogs and its sessions, which have the same runs: name one"
        )
    return found


def _other_files(others: Sequence[Unreadable], runs: Sequence[Run]) -> list[NoRun]:
    """Return which files of another format are left out; those that are named as runs failed."""
    names = {_without_numbers(run.source) for run in runs}
    failed = dated(
        (
            replace(one, lost=replace(
                one.lost, sentence=f"{one.lost.where} has no result: did its run fail?"
            ))
            for one in others if _without_numbers(one.lost.source) in names
        ),
        runs,
    )  # fmt: skip
    rest = [one.lost.where for one in others if _without_numbers(one.lost.source) not in names]
    if not rest:
        return failed
    return [*failed, NoRun(
        f"{len(rest)} files are none of {FORMATS}, such as {rest[0]}"
        if len(rest) > 1 else f"{rest[0]} is none of {FORMATS}"
    )]  # fmt: skip


def _without_numbers(source: str) -> str:
    """Return a file's name without the numbers that tell runs apart."""
    return re.sub(r"\d+", "", PurePath(source).name)


def chosen(runs: RunSet, where: Mapping[str, str]) -> RunSet:
    """Return the runs of a set that have these labels; raises ForeignError if there is none.

    What is lost belongs to them unless it is known to have others.
    """
    found = RunSet(runs.path, left_out=[
        one for one in runs.left_out
        if all(one.labels.get(key, value) == value for key, value in where.items())
    ])  # fmt: skip
    for run in runs.runs:
        if all(run.labels.get(key) == value for key, value in where.items()):
            found.add(run)
    if found.runs:
        return found
    wanted = ", ".join(f"{name_of(key)}={name_of(value)}" for key, value in where.items())
    known = {f"{key}={run.labels[key]}" for run in runs.runs for key in where if key in run.labels}
    there = f"there is {', '.join(sorted(known)[:10])}" if known else "nothing tells its runs apart"
    raise ForeignError(f"{runs.path} has no run with {wanted}: {there}")


def _files(folder: Path) -> Iterator[Path]:
    """Yield the files of a folder and of those within, in order of their names, no hidden ones."""
    seen: set[tuple[int, int]] = set()
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(one for one in folders if not one.startswith("."))
        if folders and place.removeprefix(str(folder)).count(os.sep) >= DEEPEST:
            raise ForeignError(f"{folder} has folders deeper than {DEEPEST}: name a part of it")
        for name in sorted(names):
            path = Path(place, name)
            if name.startswith(".") or not path.is_file():
                continue
            status = path.stat()
            # A link to a file, such as ReFrame's latest.json, is that file once more.
            if (status.st_dev, status.st_ino) in seen:
                continue
            seen.add((status.st_dev, status.st_ino))
            if len(seen) > MOST_FILES:
                raise ForeignError(
                    f"{folder} has more than {MOST_FILES:,} files: name a part of it"
                )
            yield path


def _read(path: Path, where: str) -> tuple[str, list[Run], list[NoRun]]:
    """Return the kind of a file, its runs, and what is left out of it; raises ForeignError."""
    try:
        with opened(path) as file:
            content = file.read(len(BEGINS))
            if content == BEGINS:
                return ("session", *read_database(path, where))
            content += file.read(MOST_BYTES)
    except OSError as error:
        raise ForeignError(f"{where} cannot be read: {error.strerror or error}") from None
    if len(content) > MOST_BYTES:
        raise ForeignError(f"{where} has more than {MOST_BYTES / 2**20:.0f} MiB")
    text = content.decode(errors="replace")
    if text.lstrip()[:1] == "{":
        return _read_json(text, where)
    if is_perflog(text):
        return ("perflog", *read_perflog(text, where, path.name.partition(".")[0]))
    if is_osu(text):
        return ("osu", *read_osu(text, where))
    if is_imb(text):
        return ("imb", *read_imb(text, where))
    raise OtherFormat(f"{where} is none of {FORMATS}")


def _text_of(path: Path) -> str:
    """Return what a file says as far as it can be read, for the time that may be in it."""
    try:
        with opened(path) as file:
            content = file.read(MOST_BYTES)
    except OSError:
        return ""
    return "" if content.startswith(BEGINS) else content.decode(errors="replace")


def _read_json(text: str, where: str) -> tuple[str, list[Run], list[NoRun]]:
    try:
        data = session_of(text)
    except ValueError as error:
        raise ForeignError(f"{where}: it is not JSON: {error}") from None
    if is_google_benchmark(data):
        run, left_out = read_google_benchmark(data, text, where)
        return "benchmark", [run], left_out
    if is_session(data):
        return ("session", *read_session(data, where, where))
    raise OtherFormat(f"{where} is none of {FORMATS}")
