"""Start a command of root's for which the machine is read-only: `guarded.py FOLDER COMMAND ...`.

Root of a container in a user namespace is root of all files that it sees: it may remove device
nodes, and write what the kernel does as root (/proc/sys/kernel/core_pattern, /sys). So root's
containers start in a mount namespace in which every file system is read-only but the FOLDER (none
if it is empty), what the command's own options mount writable, and what Apptainer itself writes.
/dev has the devices that any user may use and those of fabrics, and terminals and shared memory
that vanish with the namespace. The latter is MEMORY, for a mount option: at /dev/shm itself the
starts of containers that share a namespace find each other.

/proc stays as it is: in another state the kernel mounts none for a container's own process ids.
`containers.apptainer` mounts its parts read-only. In a further user namespace a program would mount
what it likes, such as the control groups, which are root's: so where one container has all ranks,
there is none after the container's own. Run as `python -IS`, before each container: it
takes no more of the standard library than it must, which would be most of its time.
"""

from __future__ import annotations

import ctypes
import errno
import os
import pwd
import stat
import sys

#: As a type checker sees it: `typing` would take as long as all else that is imported.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

#: The C library, for what Python has no function for.
LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNS, CLONE_NEWUSER = 0x00020000, 0x10000000
MS_RDONLY, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 1, 32, 4096, 16384, 1 << 18
#: What a mount keeps when it becomes read-only, by its name in the kernel's list.
FLAGS = {"nosuid": 2, "nodev": 4, "noexec": 8, "noatime": 1024, "nodiratime": 2048,
         "relatime": 1 << 21}  # fmt: skip
DEV, SHARED, TERMINALS, NEW_TERMINAL = "/dev", "/dev/shm", "/dev/pts", "/dev/ptmx"
#: Where the shared memory is that becomes a container's /dev/shm.
MEMORY = "/dev/shm.own"
#: What a path in /dev begins with where it is mounted at another one: Apptainer leaves out what it
#: takes for such a mount.
BEFORE_DEV = "/proc/self/root"
#: Where Apptainer makes files that nobody keeps.
TEMPORARY = ("/tmp", "/var/tmp", SHARED)
#: Where it notes, in the home of the user database or of HOME, which containers share a namespace.
NOTES = ".apptainer"
#: Devices of fabrics, of accelerators and of FUSE, which a site may allow to a group alone: what
#: their paths in /dev begin with. Of InfiniBand's, umad and issm are for who manages the network.
ALLOWED = ("cxi", "dri/", "fuse", "hfi1_0", "hfi1_1", "hfi1_2", "hfi1_3", "infiniband/rdma_cm",
           "infiniband/ucm", "infiniband/uverbs", "kfd", "knem", "nvidia", "xpmem")  # fmt: skip
#: By `open` of what is in it a program writes what a read-only mount does not protect.
NOT_PROTECTED = "bpf"
#: What boots daemons that refuse root, and so becomes an ordinary user in a user namespace more.
BOOTING = ("lam_ranks", "pvm_ranks")
#: Where the kernel has settings: how many user namespaces there may be below this one, and whether
#: Debian's kernel has them made by root of the machine alone.
MOST_NAMESPACES = "/proc/sys/user/max_user_namespaces"
FOR_ALL_USERS = "/proc/sys/kernel/unprivileged_userns_clone"
#: What nobody reaches by its path: what covers it, or a server that is gone, is in the way.
UNREACHABLE = (errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.ESTALE, errno.ENOTCONN,
               errno.EHOSTDOWN, errno.ETIMEDOUT)  # fmt: skip


def _checked(result: int, path: str) -> None:
    if result:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), path)


def mount(source: str, target: str, kind: str = "", flags: int = 0, data: str = "") -> None:
    """Mount as the kernel's function does; raises OSError with the target."""
    words = (os.fsencode(source), os.fsencode(target), kind.encode() or None)
    _checked(LIBC.mount(*words, ctypes.c_ulong(flags), data.encode() or None), target)


def own_namespace(further: int = 0) -> None:
    """Have a mount namespace; where root of this machine may not, in a user namespace of root.

    With `further` it is in one in any case, below which there may be so many: the first is the
    container's.
    """
    ids = {"uid": os.geteuid(), "gid": os.getegid()}
    # Else a container could have none, and no program in it has one.
    is_limited = further > 0 and setting(FOR_ALL_USERS) != "0"
    if is_limited or LIBC.unshare(CLONE_NEWNS):
        _checked(LIBC.unshare(CLONE_NEWUSER | CLONE_NEWNS), "a mount namespace")
        told = {"setgroups": "deny", **{f"{one}_map": f"{is_} {is_} 1" for one, is_ in ids.items()}}
        for name, text in told.items():
            with open(f"/proc/self/{name}", "w") as file:
                file.write(text)
        if is_limited:
            limit_namespaces(further)
    # What is mounted on the machine meanwhile would be writable here.
    mount("", "/", flags=MS_REC | MS_PRIVATE)


def setting(path: str) -> str:
    """Return a setting of the kernel; "" where it has none."""
    try:
        with open(path) as file:
            return file.read().strip()
    except OSError:
        return ""


def limit_namespaces(most: int) -> None:
    """Allow so many user namespaces below this one; say so where that cannot be."""
    try:
        with open(MOST_NAMESPACES, "w") as file:
            file.write(str(most))
    except OSError as error:
        # Within a container of somebody's the settings are read-only. A remark is no cause of what
        # a program ends with.
        print(
            "INFO:    what starts here can make user namespaces, and write the control groups of "
            f"root in them ({MOST_NAMESPACES}: {error.strerror}): measure images of others as an "
            "ordinary user",
            file=sys.stderr,
            flush=True,
        )


def mounts() -> Iterator[tuple[str, int, str]]:
    """Yield where something is mounted, with the flags of the mount and its kind."""
    with open("/proc/self/mountinfo", "rb") as file:
        # Other blanks and ends of lines than the kernel's are letters of names.
        lines = file.read().split(b"\n")
    for line in filter(None, lines):
        words, _, of_file_system = line.partition(b" - ")
        place, options = words.split(b" ")[4:6]
        flags = sum(FLAGS.get(name, 0) for name in options.decode().split(","))
        # The kernel writes a space as \040, and three other letters so.
        for letter in b" \t\n\\":
            place = place.replace(b"\\%03o" % letter, bytes([letter]))
        yield os.fsdecode(place), flags, of_file_system.split(b" ")[0].decode()


def to_image(command: Sequence[str]) -> Iterator[str]:
    """Yield the words until the image, which is the last: what follows may be its own words."""
    words = iter(command)
    began = False
    for word in words:
        if word == "--pwd":
            # The only option whose value is a word of its own.
            next(words, None)
            began = True
            continue
        yield word
        is_option = word.startswith("--")
        if began and not is_option:
            return
        began = began or is_option


def options_in(command: Sequence[str]) -> Iterator[str]:
    """Yield the options before the image."""
    return (word for word in to_image(command) if word.startswith("--"))


def shown(command: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """Yield what options of Apptainer mount, and whether it may be written."""
    for word in options_in(command):
        name, _, value = word.partition("=")
        if name == "--mount":
            fields = value.split(",")
            if '"' in value:
                import csv

                try:
                    [fields] = csv.reader([value])
                except (csv.Error, ValueError):
                    # Nothing that Apptainer takes.
                    continue
            pairs = dict(field.partition("=")[::2] for field in fields)
            yield pairs.get("source", ""), "ro" not in pairs
        elif name == "--bind":
            source, *rest = value.split(":")
            yield source, "ro" not in rest[1:]


def look_at(command: Sequence[str], variables: Mapping[str, str]) -> None:
    """Look at what a command names: the machine may mount it for that alone (autofs).

    What it mounts later is not in the command's namespace, where it would be writable.
    """
    named = [one for one in to_image(command) if one.startswith("/")]
    named += [source for source, _ in shown(command)]
    # Apptainer is looked for there.
    named += variables.get("PATH", "").split(":")
    for path in dict.fromkeys(one for one in named if one):
        # The kernel mounts nothing at a place that is only asked for by its own name.
        for way in (path, os.path.join(path, ".")):
            try:
                os.stat(way)
            except OSError:
                continue


def in_full(folder: str, command: Sequence[str]) -> set[str]:
    """Return the folders that a command is to write, with all that is mounted in them."""
    named = [folder, *(source for source, writable in shown(command) if writable)]
    return {path for one in named if one and (path := os.path.realpath(one)) != "/"}


def kept_writable(
    folder: str, command: Sequence[str], variables: Mapping[str, str]
) -> Iterator[str]:
    """Yield the folders that stay as they are for a command, each once."""
    try:
        own = pwd.getpwuid(os.geteuid()).pw_dir
    except KeyError:
        # The user database does not know this user.
        own = ""
    homes = (own, variables.get("HOME", ""))
    notes = [os.path.join(home, NOTES) for home in homes if os.path.isabs(home) and home != "/"]
    for path in notes:
        try:
            os.mkdir(path, 0o700)
        except OSError:
            # It is there, or there is no such home.
            continue
    temporary = (*TEMPORARY, variables.get("TMPDIR", ""))
    named = (*temporary, *notes, *sorted(in_full(folder, command)))
    for path in dict.fromkeys(os.path.realpath(one) for one in named if one):
        if os.path.isdir(os.path.join(path, ".")) and path != "/":
            yield path


def make_read_only(kept: Iterable[str], whole: Collection[str] = ()) -> None:
    """Make every file system read-only for this namespace, without these folders and /proc itself.

    So is what is mounted in a kept folder, unless that is among the `whole` ones. Of the root
    itself its folders become so: Apptainer removes a lock of its own, which is elsewhere, only
    after it was told that there is none in the root.
    """
    writable = {"/", *kept}
    for path in sorted(writable - {"/"}):
        mount(path, path, flags=MS_BIND | MS_REC)
    for entry in os.scandir("/"):
        if entry.is_dir(follow_symlinks=False) and not os.path.ismount(entry.path):
            mount(entry.path, entry.path, flags=MS_BIND | MS_REC)
    inside = tuple(f"{one}/" for one in whole)
    # What is mounted at a place last is in the way of the others there, whose flags may differ.
    last = {place: (flags, kind) for place, flags, kind in mounts()}
    for place, (flags, kind) in last.items():
        # Nothing is in what is mounted when it is needed.
        if place in (*writable, "/proc") or place.startswith(inside) or kind == "autofs":
            continue
        try:
            if kind == NOT_PROTECTED:
                mount("nothing", place, "tmpfs", MS_RDONLY)
            else:
                mount("", place, flags=MS_REMOUNT | MS_BIND | MS_RDONLY | flags)
        except OSError as error:
            # A folder of that name may be in what covers it.
            is_covered = error.errno == errno.EINVAL and not os.path.ismount(place)
            if error.errno not in UNREACHABLE and not is_covered:
                raise


def is_allowed(name: str, mode: int) -> bool:
    """Return whether a device is one that any user may use, or of a fabric."""
    return stat.S_ISCHR(mode) and (mode & 0o006 == 0o006 or name.startswith(ALLOWED))


def found_in(folder: str) -> Iterator[os.DirEntry[str]]:
    """Yield what is in a folder of /dev, without what is in other file systems."""
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except FileNotFoundError:
        # It was taken away meanwhile.
        return
    for entry in entries:
        yield entry
        if entry.is_dir(follow_symlinks=False) and not os.path.ismount(entry.path):
            yield from found_in(entry.path)


def replace_devices() -> None:
    """Mount another /dev, which has the devices that are allowed."""
    bound: list[tuple[str, int]] = []
    links: list[tuple[str, str]] = []
    for entry in found_in(DEV):
        try:
            mode = entry.stat(follow_symlinks=False).st_mode
            if stat.S_ISLNK(mode):
                links.append((entry.path, os.readlink(entry.path)))
            elif is_allowed(entry.path[len(DEV) + 1 :], mode) or (
                stat.S_ISDIR(mode) and os.path.ismount(entry.path)
            ):
                bound.append((entry.path, os.open(entry.path, os.O_PATH | os.O_NOFOLLOW)))
        except FileNotFoundError:
            # It was taken away meanwhile.
            continue
    shared = os.statvfs(SHARED)
    mount("devices", DEV, "tmpfs", FLAGS["nosuid"], "mode=755,size=1m")
    os.mkdir(TERMINALS)
    mount("devpts", TERMINALS, "devpts", FLAGS["nosuid"] | FLAGS["noexec"],
          "newinstance,ptmxmode=0666,mode=0620")  # fmt: skip
    os.mkdir(MEMORY)
    size = f"mode=1777,size={shared.f_blocks * shared.f_frsize}"
    mount("shm", MEMORY, "tmpfs", FLAGS["nosuid"] | FLAGS["nodev"], size)
    os.symlink("pts/ptmx", NEW_TERMINAL)
    for path, descriptor in bound:
        if path not in (TERMINALS, MEMORY, NEW_TERMINAL):
            bind(path, descriptor)
        os.close(descriptor)
    for path, target in links:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if not os.path.lexists(path):
            os.symlink(target, path)
    mount("", DEV, flags=MS_REMOUNT | MS_BIND | MS_RDONLY | FLAGS["nosuid"])


def bind(path: str, descriptor: int) -> None:
    """Mount at a path in the new /dev what an open file of the old one is."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if stat.S_ISDIR(os.fstat(descriptor).st_mode):
        os.mkdir(path)
    else:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT))
    mount(f"/proc/self/fd/{descriptor}", path, flags=MS_BIND | MS_REC)


def told() -> dict[bytes, bytes]:
    """Return the variables as this process was given them: Python adds one to the locale C."""
    with open("/proc/self/environ", "rb") as file:
        return dict(one.split(b"=", 1) for one in file.read().split(b"\0") if b"=" in one)


def needed_by(command: Sequence[str]) -> int:
    """Return how many user namespaces a command needs, 0 for any number.

    Containers that share one have to find each other's.
    """
    if "--sharens" in options_in(command):
        return 0
    return 2 if any(os.path.basename(word) in BOOTING for word in command) else 1


def main(words: Sequence[str]) -> int:
    """Start a command in such a namespace; return only where that fails."""
    folder, *command = words
    try:
        # What the machine mounts when it is looked at has to be there before.
        look_at(command, os.environ)
        kept = list(kept_writable(folder, command, os.environ))
        own_namespace(needed_by(command))
        make_read_only(kept, in_full(folder, command))
        replace_devices()
        # Where it is something else may be mounted now.
        os.chdir(os.getcwd())
        # An unpacked Apptainer finds its parts by the path of its program, which the kernel knows
        # only while the namespace lives in which it was started.
        os.set_inheritable(os.open("/proc/self/ns/mnt", os.O_RDONLY), True)
    except OSError as error:
        print(
            f"the machine cannot be made read-only for what root starts ({error}): measure as an "
            "ordinary user",
            file=sys.stderr,
        )
        return 1
    try:
        os.execvpe(command[0], command, told())
    except OSError as error:
        print(f"{command[0]} does not start: {error.strerror}", file=sys.stderr)
        return 127


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
