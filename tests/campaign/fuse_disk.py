"""A file system that passes all on to a folder, keeps what it was asked to do, and fails when told.

It speaks FUSE's own protocol with the kernel, so it needs /dev/fuse and the right to mount, and no
package. It is a process of its own (tests/campaign/failing_disk.py starts it): one that uses a file
system which it serves itself may wait for itself for ever. As the kernel keeps no data back, each
write of a program is one request here, or one for each page.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import os
import stat
import struct
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

LIBC = ctypes.CDLL(None, use_errno=True)
#: linux/fuse.h, version 7.31: what a request is called by number, those that are answered.
LOOKUP, FORGET, GETATTR, SETATTR, MKDIR, UNLINK, RMDIR, RENAME = 1, 2, 3, 4, 9, 10, 11, 12
OPEN, READ, WRITE, STATFS, RELEASE, FSYNC, FLUSH, INIT = 14, 15, 16, 17, 18, 20, 25, 26
OPENDIR, READDIR, RELEASEDIR, FSYNCDIR, SETLK, SETLKW = 27, 28, 29, 30, 32, 33
CREATE, INTERRUPT, DESTROY, BATCH_FORGET, RENAME2 = 35, 36, 38, 42, 45
#: To the program that asks, these have no answer.
UNANSWERED = (FORGET, INTERRUPT, BATCH_FORGET)
#: What changes a disk, and what has it kept: these are recorded, and may fail.
CHANGES = {
    SETATTR: "change", MKDIR: "mkdir", UNLINK: "unlink", RMDIR: "rmdir", RENAME: "rename",
    RENAME2: "rename", WRITE: "write", CREATE: "create", FSYNC: "sync", FSYNCDIR: "sync",
}  # fmt: skip
HEADER, ANSWER = struct.Struct("<IIQQIIII"), struct.Struct("<IiQ")
MOST_WRITTEN, ROOT = 128 * 1024, 1
ATOMIC_O_TRUNC, FLOCK_LOCKS, NOTIFY_INVALID = 1 << 3, 1 << 10, 2
MODE, SIZE = 1 << 0, 1 << 3
CONTROL, KEPT = "control.json", "requests.jsonl"


@dataclass
class Node:
    """A file or folder that the kernel knows by number."""

    parent: int
    name: str
    descriptors: list[int] = field(default_factory=list)


class Disk:
    """Answers the kernel's requests by what a folder has."""

    def __init__(self, device: int, backing: Path, aside: Path) -> None:
        self.device, self.backing, self.aside = device, backing, aside
        self.nodes = {ROOT: Node(ROOT, "")}
        self.numbers: dict[tuple[int, str], int] = {}
        self.kept = (aside / KEPT).open("a", buffering=1)
        self.control: dict[str, Any] = {}
        self.written_ns = 0
        self.matched = 0
        self.answers: dict[int, Callable[[int, bytes], bytes]] = {
            LOOKUP: self.lookup, GETATTR: self.getattr, SETATTR: self.setattr, MKDIR: self.mkdir,
            UNLINK: self.unlink, RMDIR: self.rmdir, RENAME: self.rename, RENAME2: self.rename2,
            OPEN: self.open, OPENDIR: self.open, READ: self.read, WRITE: self.write,
            STATFS: self.statfs, RELEASE: self.release, RELEASEDIR: self.release,
            FSYNC: self.sync, FSYNCDIR: self.sync, FLUSH: lambda *_: b"", INIT: self.init,
            READDIR: self.readdir, SETLK: self.lock, SETLKW: self.lock, CREATE: self.create,
        }  # fmt: skip

    def serve(self) -> None:
        """Answer until the file system is taken away."""
        while True:
            try:
                request = os.read(self.device, MOST_WRITTEN + 4096)
            except OSError as error:
                if error.errno in (errno.EINTR, errno.ENOENT, errno.EAGAIN):
                    continue
                return
            _, code, unique, node, *_ = HEADER.unpack_from(request)
            if code in UNANSWERED:
                continue
            if code == DESTROY:
                return
            body = request[HEADER.size :]
            try:
                answer = self.answers.get(code)
                if answer is None:
                    raise OSError(errno.ENOSYS, "")
                self.fail_if_told(code, node, body)
                found, number = answer(node, body), 0
            except OSError as error:
                found, number = b"", -(error.errno or errno.EIO)
            with contextlib.suppress(OSError):
                # Whoever asked may have been killed.
                os.write(self.device, ANSWER.pack(ANSWER.size + len(found), number, unique) + found)

    def told(self) -> dict[str, Any]:
        """Return what a test wants of the disk now."""
        file = self.aside / CONTROL
        if (now := file.stat().st_mtime_ns) != self.written_ns:
            self.written_ns, self.control, self.matched = now, json.loads(file.read_text()), 0
        return self.control

    def fail_if_told(self, code: int, node: int, body: bytes) -> None:
        """Raise what a test has asked for, from the so-manieth change of a path on."""
        told = self.told()
        name = CHANGES.get(code)
        if "error" not in told or name not in told["requests"]:
            return
        if told.get("path", "") not in f"{self.path(node)}/{body!r}":
            return
        self.matched += 1
        first = told.get("after", 0)
        if first < self.matched <= first + told.get("count", sys.maxsize):
            raise OSError(getattr(errno, told["error"]), "")

    def keep(self, request: str, /, **facts: Any) -> None:
        """Keep what was asked for and done."""
        self.kept.write(json.dumps({"request": request, **facts}) + "\n")

    def path(self, number: int, name: str = "") -> Path:
        """Return where a node, or what it has under a name, is in the folder."""
        parts = [name] if name else []
        while number != ROOT:
            node = self.nodes[number]
            parts.append(node.name)
            number = node.parent
        return self.backing.joinpath(*reversed(parts))

    def number_of(self, parent: int, name: str) -> int:
        """Return the number of what a folder has under a name."""
        key = (parent, name)
        if key not in self.numbers:
            self.numbers[key] = max(self.nodes) + 1
            self.nodes[self.numbers[key]] = Node(parent, name)
        return self.numbers[key]

    def status(self, number: int) -> os.stat_result:
        """Return the status of a node, also of one that has no name any more."""
        node = self.nodes[number]
        if node.descriptors:
            return os.fstat(node.descriptors[-1])
        return self.path(number).lstat()

    def attributes(self, found: os.stat_result, number: int) -> bytes:
        """Return what the kernel is told of a file."""
        times = (found.st_atime_ns, found.st_mtime_ns, found.st_ctime_ns)
        return struct.pack(
            "<6Q10I", number, found.st_size, found.st_blocks, *(t // 10**9 for t in times),
            *(t % 10**9 for t in times), found.st_mode, found.st_nlink, found.st_uid, found.st_gid,
            0, 4096, 0,
        )  # fmt: skip

    def entry(self, parent: int, name: str) -> bytes:
        """Return what the kernel is told of a name."""
        found = self.path(parent, name).lstat()
        number = self.number_of(parent, name)
        valid = self.told().get("attributes_valid_s", 0)
        head = struct.pack("<4Q2I", number, 0, valid, valid, 0, 0)
        return head + self.attributes(found, number)

    def init(self, _: int, body: bytes) -> bytes:
        """Agree with the kernel: locks come here if they are to fail, else it has its own."""
        _, _, ahead, _ = struct.unpack_from("<4I", body)
        flags = ATOMIC_O_TRUNC | (FLOCK_LOCKS if self.told().get("no_locks") else 0)
        return struct.pack("<4I2H2I2H8I", 7, 31, ahead, flags, 12, 9, MOST_WRITTEN, 1, 0, 0,
                           *[0] * 8)  # fmt: skip

    def lookup(self, parent: int, body: bytes) -> bytes:
        """Find a name."""
        return self.entry(parent, text(body))

    def getattr(self, number: int, _: bytes) -> bytes:
        """Tell a file's attributes."""
        valid = self.told().get("attributes_valid_s", 0)
        return struct.pack("<Q2I", valid, 0, 0) + self.attributes(self.status(number), number)

    def setattr(self, number: int, body: bytes) -> bytes:
        """Change a file's length or rights; times are left as they are."""
        wanted, _, _, size = struct.unpack_from("<2I2Q", body)
        mode = struct.unpack_from("<I", body, 68)[0]
        path = self.path(number)
        if wanted & SIZE:
            descriptors = self.nodes[number].descriptors
            os.truncate(descriptors[-1] if descriptors else path, size)
            self.keep("truncate", node=number, size=size)
        if wanted & MODE:
            os.chmod(path, stat.S_IMODE(mode))
        return self.getattr(number, b"")

    def mkdir(self, parent: int, body: bytes) -> bytes:
        """Make a folder."""
        mode, mask = struct.unpack_from("<2I", body)
        name = text(body[8:])
        self.path(parent, name).mkdir(mode & ~mask)
        found = self.entry(parent, name)
        self.keep("mkdir", folder=parent, name=name, node=self.number_of(parent, name))
        return found

    def unlink(self, parent: int, body: bytes) -> bytes:
        """Take a file's name away."""
        self.path(parent, text(body)).unlink()
        return self.removed(parent, text(body))

    def rmdir(self, parent: int, body: bytes) -> bytes:
        """Remove a folder."""
        self.path(parent, text(body)).rmdir()
        return self.removed(parent, text(body))

    def removed(self, parent: int, name: str) -> bytes:
        """Forget a name."""
        self.numbers.pop((parent, name), None)
        self.keep("unlink", folder=parent, name=name)
        return b""

    def rename(self, parent: int, body: bytes) -> bytes:
        """Give a file or folder another name."""
        return self.renamed(parent, struct.unpack_from("<Q", body)[0], body[8:])

    def rename2(self, parent: int, body: bytes) -> bytes:
        """Do the same where the kernel asks for more than that, which is never told."""
        return self.renamed(parent, struct.unpack_from("<Q", body)[0], body[16:])

    def renamed(self, parent: int, target: int, names: bytes) -> bytes:
        """Give a file or folder another name, in the place of what has it."""
        old, new = (os.fsdecode(name) for name in names.split(b"\0")[:2])
        os.rename(self.path(parent, old), self.path(target, new))
        number = self.numbers.pop((parent, old), None)
        if number is not None:
            self.numbers[target, new] = number
            self.nodes[number].parent, self.nodes[number].name = target, new
        self.keep("rename", folder=parent, name=old, target=target, new=new)
        return b""

    def opened(self, number: int, flags: int, mode: int = 0) -> bytes:
        """Open a file; who opens one sees what is there now, as with NFS."""
        # The kernel says where each write goes.
        flags &= ~os.O_APPEND
        if flags & os.O_ACCMODE == os.O_WRONLY:
            flags = flags & ~os.O_ACCMODE | os.O_RDWR
        descriptor = os.open(self.path(number), flags, mode)
        self.nodes[number].descriptors.append(descriptor)
        if self.told().get("attributes_valid_s"):
            told = struct.pack("<Qqq", number, -1, 0)
            size = ANSWER.size + len(told)
            with contextlib.suppress(OSError):
                os.write(self.device, ANSWER.pack(size, NOTIFY_INVALID, 0) + told)
        return struct.pack("<Q2I", descriptor, 0, 0)

    def open(self, number: int, body: bytes) -> bytes:
        """Open a file or a folder."""
        flags = struct.unpack_from("<I", body)[0]
        found = self.opened(number, flags & ~(os.O_CREAT | os.O_EXCL))
        if flags & os.O_TRUNC:
            self.keep("truncate", node=number, size=0)
        return found

    def create(self, parent: int, body: bytes) -> bytes:
        """Make a file and open it."""
        flags, mode, mask = struct.unpack_from("<3I", body)
        name = text(body[16:])
        is_new = not self.path(parent, name).exists()
        number = self.number_of(parent, name)
        opened = self.opened(number, flags | os.O_CREAT, mode & ~mask)
        if is_new:
            self.keep("create", folder=parent, name=name, node=number)
        return self.entry(parent, name) + opened

    def read(self, _: int, body: bytes) -> bytes:
        """Read from an open file."""
        descriptor, offset, size = struct.unpack_from("<2QI", body)
        return os.pread(descriptor, size, offset)

    def write(self, number: int, body: bytes) -> bytes:
        """Write to an open file."""
        descriptor, offset, size = struct.unpack_from("<2QI", body)
        data = body[40 : 40 + size]
        written = os.pwrite(descriptor, data, offset)
        self.keep("write", node=number, offset=offset, data=data[:written].hex())
        return struct.pack("<2I", written, 0)

    def sync(self, number: int, _: bytes) -> bytes:
        """Keep that a file or a folder was synced; nothing here is lost without that."""
        self.keep("sync", node=number)
        return b""

    def release(self, number: int, body: bytes) -> bytes:
        """Close a file."""
        descriptor = struct.unpack_from("<Q", body)[0]
        self.nodes[number].descriptors.remove(descriptor)
        os.close(descriptor)
        return b""

    def readdir(self, number: int, body: bytes) -> bytes:
        """List a folder, as far as the answer may be long."""
        _, offset, size = struct.unpack_from("<2QI", body)
        found = b""
        for place, name in enumerate(sorted(os.listdir(self.path(number))), 1):
            word = os.fsencode(name)
            entry = struct.pack("<2Q2I", place, place, len(word), 0) + word
            entry += b"\0" * (-len(entry) % 8)
            if place > offset:
                if len(found) + len(entry) > size:
                    break
                found += entry
        return found

    def statfs(self, *_: Any) -> bytes:
        """Tell that there is room."""
        return struct.pack("<5Q4I6I", 1 << 20, 1 << 20, 1 << 20, 1 << 20, 1 << 20, 4096, 255, 4096,
                           0, *[0] * 6)  # fmt: skip

    def lock(self, *_: Any) -> bytes:
        """Have no locks."""
        raise OSError(errno.ENOLCK, "")


def text(body: bytes) -> str:
    """Return the name that a request ends with."""
    return os.fsdecode(body.split(b"\0")[0])


def main(path: Path, backing: Path, aside: Path) -> None:
    """Mount a file system and answer for it until it is unmounted."""
    try:
        device = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        sys.exit(f"/dev/fuse: {error.strerror}")
    options = f"fd={device},rootmode=40000,user_id={os.getuid()},group_id={os.getgid()},allow_other"
    mounted = LIBC.mount(b"failing", os.fsencode(path), b"fuse", 0, options.encode())
    if mounted:
        sys.exit(f"mount: {os.strerror(ctypes.get_errno())}")
    print("mounted", flush=True)
    Disk(device, backing, aside).serve()


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
