"""What a disk may have after its machine lost power, by what programs had asked of it until then.

What was not synced may be there, in part or not at all: of a file so much of what was added since
its last sync as any length, with zeros for a part of it; of a folder any first part of the changes
to its names since its own last sync, whether or not the files themselves were synced. Files and
folders are independent of each other. More is lost so than by any file system with a journal of its
own. Requests are those of tests/campaign/failing_disk.py.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

ROOT = 1
Request = dict[str, Any]


@dataclass
class Content:
    """A file's bytes that are on the disk, and what was done to it since it was synced."""

    kept: bytearray = field(default_factory=bytearray)
    since: list[Request] = field(default_factory=list)


@dataclass
class Names:
    """A folder's names that are on the disk, and what was done to them since it was synced."""

    kept: dict[str, int] = field(default_factory=dict)
    since: list[Request] = field(default_factory=list)


#: Says how many of some changes since a sync are on the disk.
Choice = Callable[[int], int]


class Disk:
    """The requests so far, told apart by whether they are certainly on the disk."""

    def __init__(self) -> None:
        self.files: dict[int, Content] = {}
        self.folders: dict[int, Names] = {ROOT: Names()}

    def take(self, request: Request) -> None:
        """Take in what was asked for next."""
        kind, node = request["request"], request.get("node", ROOT)
        if kind == "sync":
            if node in self.folders:
                names = self.folders[node]
                names.kept, names.since = self.names(node, len(names.since)), []
            else:
                content = self.files[node]
                content.kept, content.since = written(content, len(content.since)), []
        elif kind in ("write", "truncate"):
            self.files[node].since.append(request)
        else:
            if kind == "create":
                self.files[node] = Content()
            elif kind == "mkdir":
                self.folders[node] = Names()
            assert request.get("target", request["folder"]) == request["folder"], request
            self.folders[request["folder"]].since.append(request)

    def names(self, node: int, count: int) -> dict[str, int]:
        """Return a folder's names with so many of the changes since its sync."""
        found = dict(self.folders[node].kept)
        for one in self.folders[node].since[:count]:
            if one["request"] in ("create", "mkdir"):
                found[one["name"]] = one["node"]
            elif one["name"] in found:
                moved = found.pop(one["name"])
                if one["request"] == "rename":
                    found[one["new"]] = moved
        return found

    def write(self, folder: Path, choice: Choice, tear: Choice, node: int = ROOT) -> None:
        """Write what is left after a loss of power into a new folder."""
        folder.mkdir()
        for name, inner in self.names(node, choice(len(self.folders[node].since))).items():
            if inner in self.folders:
                self.write(folder / name, choice, tear, inner)
            else:
                content = self.files[inner]
                (folder / name).write_bytes(left_of(content, choice(len(content.since)), tear))

    def synced(self, *names: str) -> bytes:
        """Return what of a file was synced, as whoever synced it believes that it is kept."""
        node: int | None = ROOT
        for name in names:
            node = self.names(node, sys.maxsize).get(name) if node in self.folders else None
        return bytes(self.files[node].kept) if node in self.files else b""


def written(content: Content, count: int) -> bytearray:
    """Return a file's bytes with so many of the changes since its sync."""
    found = bytearray(content.kept)
    for one in content.since[:count]:
        if one["request"] == "truncate":
            del found[one["size"] :]
            found.extend(bytes(one["size"] - len(found)))
            continue
        data = bytes.fromhex(one["data"])
        found.extend(bytes(max(0, one["offset"] - len(found))))
        found[one["offset"] : one["offset"] + len(data)] = data
    return found


def left_of(content: Content, count: int, tear: Choice) -> bytes:
    """Return a file's bytes with so many changes since its sync, the next one in part.

    Of what was added, the end may be zeros: a length that got to the disk before its bytes did.
    """
    found = written(content, count)
    if count < len(content.since) and content.since[count]["request"] == "write":
        more = written(content, count + 1)
        if len(more) > len(found):
            part = tear(len(more) - len(found))
            zeros = tear(len(more) - len(found) - part)
            found = more[: len(found) + part] + bytes(zeros)
    return bytes(found)


def none_of(_: int) -> int:
    """Keep nothing that was not synced."""
    return 0


def all_of(count: int) -> int:
    """Keep everything, as when only the programs were killed."""
    return count


def losses(seed: object, drawn: int) -> Iterable[tuple[Choice, Choice]]:
    """Yield what to keep and how much of the next change: nothing, all, and some that are drawn."""
    yield none_of, none_of
    yield all_of, none_of
    for number in range(drawn):
        random = Random(f"{seed} {number}")

        def some(count: int, random: Random = random) -> int:
            return random.randint(0, count)

        yield some, some
