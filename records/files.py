"""Files that are complete once they have their name, how they are read, and the times in them.

Everything is written under another name, flushed to the disk and then renamed, so that what has its
final name is complete; but for a campaign's journal and its packs of launches, which are only added
to.
"""

from __future__ import annotations

import errno
import fcntl
import json
import math
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from records.acting_user import text_of
from records.causes import harmless_strings, may_harm
from records.locks import remove_remains

#: What a file system says that gives a file no second name.
NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)
#: What we write has some levels of nesting.
DEEPEST = 60
#: A value takes up to forty times the memory of its text: no text of a campaign has more values.
MOST_VALUES = 30_000_000


def only_owner_writes() -> None:
    """Let only the owner change what this process and its children write."""
    os.umask(os.umask(0o077) | 0o022)


def belongs_to_us(path: Path) -> bool:
    """Return whether a campaign belongs to the user that runs this."""
    return path.stat().st_uid == os.geteuid()


def utc_now() -> str:
    """Return the time in UTC in the records' format."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def utc_of(seconds: float) -> str:
    """Return a time in seconds since the epoch in the records' format."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds")[:-6] + "Z"


def flush_to_disk(path: Path) -> None:
    """Make a file's content or a folder's entries survive a crash of the machine."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def flush_whole(path: Path) -> None:
    """Make a file, or a folder with all in it, survive a crash of the machine.

    Of a link nothing but its name is anywhere, which its folder has.
    """
    if path.is_symlink():
        return
    if path.is_dir():
        for entry in path.rglob("*"):
            if not entry.is_symlink():
                flush_to_disk(entry)
    flush_to_disk(path)


def aside_of(path: Path) -> Path:
    """Return where this process writes the replacement of `path`: beside it, hidden.

    Raises IsADirectoryError for a path without a name, as of an empty word.
    """
    if not path.name:
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    return path.with_name(f".{path.name}.{os.getpid()}")


def put_in_place(aside: Path, path: Path) -> None:
    """Give a complete file, folder or link its final name, durably.

    Its content is on the disk before the name is, and the name is when this returns. A folder
    never replaces another with something in it; a file or a link replaces an earlier one.
    """
    flush_whole(aside)
    aside.rename(path)
    flush_to_disk(path.parent)


def put_where_nothing_is(aside: Path, path: Path) -> bool:
    """Give a complete file its final name, durably, unless something has it; return whether it did.

    Nothing is replaced, whoever does the same at the same time; but a file system that gives a file
    no second name leaves a moment between looking and renaming.
    """
    flush_to_disk(aside)
    try:
        os.link(aside, path)
        aside.unlink()
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        if os.path.lexists(path):
            return False
        aside.rename(path)
    flush_to_disk(path.parent)
    return True


@contextmanager
def replacing(path: Path, mode: int | None = None) -> Iterator[IO[bytes]]:
    """Yield a new file that replaces `path` once the block has succeeded.

    It is created new and never through a link, so that nobody who may write in the folder can have
    put anything there. What a killed writer left of it is removed. Without a mode, its
    rights follow the user's umask. An OSError names `path`, not the new file's temporary name.
    """
    aside = aside_of(path)
    try:
        aside.unlink(missing_ok=True)
        remove_remains(path.parent, f".{path.name}.")
        with aside.open("xb") as file:
            # A file system without locks takes files all the same; then no remains are removed.
            with suppress(OSError):
                fcntl.flock(file, fcntl.LOCK_EX)
            if mode is not None:
                os.fchmod(file.fileno(), mode)
            yield file
        put_in_place(aside, path)
    except OSError as error:
        if error.filename == str(aside):
            error.filename = str(path)
        raise
    finally:
        with suppress(OSError):
            aside.unlink(missing_ok=True)


def write_whole(path: Path, content: str | bytes, mode: int | None = None) -> None:
    """Replace a file by a text or bytes in one step; line ends stay as they are."""
    with replacing(path, mode) as file:
        file.write(content.encode() if isinstance(content, str) else content)


def json_text(data: Mapping[str, Any]) -> str:
    """Return the text of a JSON file; raises ValueError for a number that JSON does not have."""
    return json.dumps(data, indent=1, allow_nan=False) + "\n"


def write_json(path: Path, data: Mapping[str, Any]) -> None:
    """Replace a JSON file in one step; raises ValueError for a number that JSON does not have."""
    write_whole(path, json_text(data))


def read_text(path: Path) -> str:
    """Return the text of a file, read with the rights of its folder's owner.

    Raises OSError, also for what is not a file, and ValueError if it is not UTF-8.
    """
    return text_of(path)


def finite(number: str) -> float:
    """Return a JSON number; raise ValueError for one beyond the range of floating point."""
    value = float(number)
    if not math.isfinite(value):
        raise ValueError(f"{number[:20]} is not a number")
    return value


def no_number(name: str) -> float:
    """Refuse NaN and Infinity, which JSON does not have but Python's reader accepts."""
    raise ValueError(f"{name} is not a number")


def read_json(path: Path) -> Any:
    """Return a JSON file's content; raises OSError, and ValueError with what is wrong with it."""
    return json_of(read_text(path))


def refuse_too_many_values(text: str, between: str = ",") -> None:
    """Raise ValueError for a text with more values than anybody writes.

    Each of the signs `between` may be followed by one.
    """
    if len(text) > MOST_VALUES and sum(map(text.count, between)) > MOST_VALUES:
        raise ValueError(f"it has more than {MOST_VALUES} values")


def json_of(text: str, constant: Callable[[str], object] = no_number) -> Any:
    """Return what a text of JSON holds, its strings harmless to show, on one line each.

    `constant` says what NaN and Infinity are. Raises ValueError for what is wrong with it.
    """
    refuse_too_many_values(text)
    try:
        data = json.loads(text, parse_constant=constant, parse_float=finite)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    # Half a character, which JSON can write, could never be printed.
    if re.search(r"\\u[dD][89a-fA-F]", text):
        json.dumps(data, ensure_ascii=False).encode()
    level = [data]
    for _ in range(DEEPEST):
        level = [
            inner
            for one in level
            if isinstance(one, dict | list)
            for inner in (one.values() if isinstance(one, dict) else one)
        ]
        if not level:
            return harmless_strings(data) if may_harm(text) else data
    raise ValueError("it is nested too deeply")
