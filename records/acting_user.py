"""Who acts: root installs, but campaigns are read and written as their owner.

Root that walks through folders of another user follows their links, and reads and writes what that
user could not. So every command that reads or writes campaigns begins with `act_for`: in another
user's checkout root becomes that user for good. In root's own checkout campaigns may belong to the
cluster's job user: a process that analyses one becomes its owner (`become`), and when root has to
look at a few files of another user, it does so with the rights of their owner (`rights_of`), to
whom the kernel refuses what a link leads to.

Refusing links would not do: a path has many components that can change between check and use, while
the kernel checks each access against the user who asks. Standard library only: this runs before
anything else is opened.
"""

from __future__ import annotations

import ctypes
import errno
import grp
import io
import os
import pwd
import re
import stat
import struct
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from records import layout

#: What root makes for the owner of a checkout, who writes it when campaigns are measured.
HANDED_OVER = ("runs", ".wyeast", ".wyeast/reframe", ".wyeast/locks", ".wyeast/bundles")
#: What a user takes along of the environment of root: nothing that could be a secret of root's.
TAKEN_ALONG = re.compile(
    r"PATH|LANG|LANGUAGE|LC_[A-Z]+|TZ|TERM|COLORTERM|NO_COLOR|COLUMNS|LINES|EDITOR|VISUAL|PAGER"
    r"|SITE|TIER|WYEAST_\w+|RFM_\w+|PYTHONPATH|PYTHONUTF8|PYTHONDONTWRITEBYTECODE"
    r"|PYTHONUNBUFFERED"
    r"|SSL_CERT_FILE|SSL_CERT_DIR|SLURM_CONF"
)
#: These as well, unless a name and password stand in them.
PROXIES = re.compile(r"(?i)(http|https|ftp|all|no)_proxy")
CLONE_NEWNS = 0x20000
#: In an access control list (acl(5), as Linux stores it): a named user or group, and the right.
OF_USER, OF_GROUP, WRITE = 2, 8, 2
CLOSED = "/nonexistent"
#: As many links as the kernel follows for one path.
MOST_LINKS = 40
#: No file that is read whole has more, in bytes: an archive of a few megabytes may hold any number.
MOST_BYTES = 2**30
#: The folders of a home that decide what its user's commands start.
PARTS = (layout.SITES, "containers", "containers/trust", layout.STATE, f"{layout.STATE}/images")


def environment_of(user: str, home: str) -> dict[str, str]:
    """Return what another user keeps of this process' environment, and the user's own variables."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if TAKEN_ALONG.fullmatch(name) or (PROXIES.fullmatch(name) and "@" not in value)
    }
    return kept | {"HOME": home, "USER": user, "LOGNAME": user, "SHELL": "/bin/sh"}


def act_for(root: Path) -> None:
    """Become the owner of a checkout, if this is root; end with a sentence in an unsafe place.

    Before anything is opened: this is the first thing that a command does.
    """
    sentence = untrusted(root) if os.geteuid() == 0 else None
    if sentence := sentence or unsafe_home(root):
        sys.exit(sentence)
    if os.geteuid() != 0 or layout.is_shared(root):
        return
    owner = root.stat().st_uid
    if owner:
        hand_over(root)
        become(owner, root)


def refuse_unsafe_home(root: Path) -> None:
    """End with a sentence where `unsafe_home` has one: for commands that read or write a home."""
    if sentence := unsafe_home(root):
        sys.exit(sentence)


def unsafe_home(root: Path) -> str | None:
    """Return why nobody works with an installation and a home of theirs; None if they are one.

    What is in a home decides what its user's commands start. Whose code they run is the user's
    choice, but not one of whoever may write it.
    """
    place, me = layout.home(root), os.geteuid()
    if place == root:
        return None
    if not place.is_absolute():
        return f"{layout.HOME}={place}: give the folder's whole path"
    try:
        found, code = place.stat(), root.stat()
    except OSError as error:
        return (
            f"{error.filename} cannot be entered ({error.strerror}): {layout.HOME} names the "
            "folder of yours in which campaigns are kept"
        )
    if found.st_uid != me:
        return (
            f"{place} belongs to {name_of(found.st_uid)}, and campaigns are kept in a folder of "
            f"one's own: go to one, or name it: {layout.HOME}=<folder>"
        )
    # Of a sticky folder others cannot take away what is there, but they can put in what is not.
    is_open = bool(found.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and found.st_mode & stat.S_ISVTX)
    if is_open or others_write(found) or list_lets_others_write(place):
        return (
            f"others can write in {place}, and so choose which sites and images you use: deny "
            f"them that: chmod go-w {place}"
        )
    if sentence := _replaceable(place, me):
        return sentence
    for part in (*map(place.joinpath, PARTS), *layout.sites(root).glob("*")):
        if part.exists() and (part.stat().st_uid not in (0, me) or others_write(part.stat())):
            return (
                f"{part} is not yours, or others can write there, and so choose which sites and "
                f"images you use: deny them that: chmod go-w {part}"
            )
    if code.st_uid != me and (others_write(code) or me == 0 != code.st_uid):
        return (
            f"the installation in {root} can be changed by others than root and you, or, for an "
            f"ordinary user, than {name_of(code.st_uid)}, so its programs are not started"
        )
    return None


def _replaceable(place: Path, me: int) -> str | None:
    """Return why a user's folder could be replaced by others, from a folder above it."""
    # Whoever has the root folder has all; in a user namespace that is an id that is not mapped.
    trusted = {0, me, Path("/").stat().st_uid}
    for link in _links_on(place):
        if link.lstat().st_uid not in trusted:
            return (
                f"{link} is a link of {name_of(link.lstat().st_uid)}, who could have it lead to "
                f"another folder than {place.resolve()}: name that one: "
                f"{layout.HOME}={place.resolve()}"
            )
    # A link on the way can be replaced as well as what it leads to.
    for folder in dict.fromkeys((*place.parents, *place.resolve().parents)):
        found = folder.stat()
        if found.st_uid not in trusted:
            return (
                f"{folder} belongs to {name_of(found.st_uid)}, who could replace {place}: keep "
                f"campaigns where all above is yours or root's: {layout.HOME}=<folder>"
            )
        if others_write(found) or list_lets_others_write(folder):
            return (
                f"others can write in {folder} and so replace {place}: deny them that (chmod go-w "
                f"{folder}), or keep campaigns elsewhere: {layout.HOME}=<folder>"
            )
    return None


def _links_on(place: Path) -> list[Path]:
    """Return the links that the kernel follows on its way to a place, those in links as well."""
    found: list[Path] = []
    parts, here = list(reversed(place.parts[1:])), Path("/")
    while parts and len(found) < MOST_LINKS:
        name = parts.pop()
        here = here.parent if name == ".." else here / name
        if here.is_symlink():
            found.append(here)
            target = here.readlink()
            here = Path("/") if target.is_absolute() else here.parent
            parts += [one for one in reversed(target.parts) if one != target.anchor]
    return found


def untrusted(root: Path) -> str | None:
    """Return why root does not work in a checkout, if others could replace it."""
    place = root.resolve()
    owner = place.stat().st_uid
    for folder in (place, *place.parents):
        found = folder.stat()
        if found.st_uid not in (0, owner):
            return (
                f"root does not work in {place}: {folder} belongs to {name_of(found.st_uid)}, who "
                "could replace what is in it; work as that user, or in a checkout whose "
                "folders above are root's"
            )
        if others_write(found) or list_lets_others_write(folder):
            return (
                f"root does not work in {place}: others can write in {folder} and so replace what "
                f"is in it; deny them that: chmod go-w {folder}"
            )
    return None


def list_lets_others_write(path: Path, group: str | None = None) -> bool:
    """Return whether an access control list lets others write a file, or in a folder.

    The mode does not tell: of what has a list, the most that this allows anybody stands in place of
    the group's rights. The members of `group`, by its name, are no others.
    """
    found = path.stat()
    try:
        listed = os.getxattr(path, "system.posix_acl_access")[4:]
    except OSError:
        return False
    if _is_sticky(found) or not found.st_mode & stat.S_IWGRP:
        return False
    for tag, rights, number in struct.iter_unpack("<HHI", listed):
        if not rights & WRITE:
            continue
        if tag == OF_USER and number not in (0, found.st_uid):
            return True
        if tag == OF_GROUP and number and (group is None or name_of_group(number) != group):
            return True
    return False


def _is_sticky(found: os.stat_result) -> bool:
    """Return whether others cannot take what is in a folder; of a file the bit says nothing."""
    return stat.S_ISDIR(found.st_mode) and bool(found.st_mode & stat.S_ISVTX)


def others_write(found: os.stat_result, group: str | None = None) -> bool:
    """Return whether others than its owner may write a file, or replace what is in a folder.

    The members of `group`, by its name, are none of them.
    """
    if _is_sticky(found):
        return False
    if found.st_mode & stat.S_IWOTH:
        return True
    if not found.st_mode & stat.S_IWGRP or found.st_gid == 0:
        return False
    if group is not None and name_of_group(found.st_gid) == group:
        return False
    # A group of one's own is as good as none. Whose first group it is does not stand in a group's
    # list of members, and not every name service lists all users: so one's own has one's name.
    try:
        of_file, owner = grp.getgrgid(found.st_gid), pwd.getpwuid(found.st_uid)
    except KeyError:
        return True
    own = owner.pw_gid == found.st_gid and of_file.gr_name == owner.pw_name
    return not own or bool(set(of_file.gr_mem) - {owner.pw_name})


def name_of(uid: int) -> str:
    """Return a user's name, or the number if there is none."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


def name_of_group(gid: int) -> str:
    """Return a group's name, or the number where there is none."""
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return f"group {gid}"


def group_of(uid: int) -> int:
    """Return a user's group; the one of the same number if the user has no name."""
    try:
        return pwd.getpwuid(uid).pw_gid
    except KeyError:
        return uid


def owner_of(path: Path) -> int:
    """Return a path's owner: the first owner along it who is not root, else root.

    Root asks for each file that is opened: a path without a link is walked once.
    """
    way = path.absolute()
    uid, is_straight = _first_owner_along(way)
    if uid or (is_straight and ".." not in way.parts):
        return uid
    return _first_owner_along(path.resolve())[0]


def _first_owner_along(way: Path) -> tuple[int, bool]:
    """Return the first owner along a path who is not root, else root; and whether it has no link.

    What is beyond what is missing, or may not be looked at, is nobody's.
    """
    place, is_straight = "", True
    for part in way.parts:
        place = os.path.join(place, part)
        try:
            found = os.lstat(place)
        except OSError:
            break
        if found.st_uid:
            return found.st_uid, is_straight
        is_straight = is_straight and not stat.S_ISLNK(found.st_mode)
    return 0, is_straight


def become(uid: int, root: Path) -> None:
    """Continue as another user, if this is root: with its groups and home, and no way back."""
    if os.geteuid() != 0 or uid == 0:
        return
    _open_the_way(root)
    try:
        account = pwd.getpwuid(uid)
        user, gid, home = account.pw_name, account.pw_gid, account.pw_dir
        groups = os.getgrouplist(user, gid)
    except KeyError:
        user, gid, home, groups = str(uid), uid, CLOSED, [uid]
    kept = environment_of(user, home)
    os.environ.clear()
    os.environ.update(kept)
    os.setgroups(groups)
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)


def _open_the_way(root: Path) -> None:
    """Show this process alone a checkout in a folder that only root may enter."""
    from records import mounts

    kept = [root, *map(Path, dict.fromkeys((sys.prefix, sys.base_prefix)))]
    kept = [path.resolve() for path in kept]
    kept = [path for path in kept if not any(other in path.parents for other in kept)]
    if not any(map(mounts.hidden_ancestor, kept)):
        return
    library = ctypes.CDLL(None, use_errno=True)
    try:
        if library.unshare(CLONE_NEWNS):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        mounts.mount("--make-rprivate", "/")
        here = Path.cwd()
        mounts.cover(kept, {})
        if root.resolve() in (here, *here.parents):
            os.chdir(here)
    except (OSError, subprocess.SubprocessError) as error:
        sys.exit(
            f"{root} is in a folder that only root may enter, and campaigns in it are another "
            f"user's ({error}); let others pass: chmod go+x on the folders above it"
        )


@contextmanager
def rights_of(uid: int) -> Iterator[None]:
    """Open files with the rights of another user, if this is root."""
    if os.geteuid() != 0 or uid == 0:
        yield
        return
    groups, gid = os.getgroups(), os.getegid()
    os.setgroups([])
    os.setegid(group_of(uid))
    os.seteuid(uid)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(gid)
        os.setgroups(groups)


@contextmanager
def rights_of_owner(path: Path) -> Iterator[None]:
    """Open files of a folder with the rights of its owner, if this is root."""
    with rights_of(owner_of(path) if os.geteuid() == 0 else 0):
        yield


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for reading with the rights of its folder's owner.

    Raises OSError for anything but a file: a pipe would make us wait, and a device never end.
    """
    with rights_of_owner(path.parent):
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", str(path))
        yield file


def content_of(path: Path) -> bytes:
    """Return what a file holds, opened as `opened` does; raises OSError, also for too much."""
    with opened(path) as file:
        # Python reserves the memory for as much as it is to read, which a limit may not allow.
        piece = min(os.fstat(file.fileno()).st_size, MOST_BYTES) + 1
        content = b""
        while len(content) <= MOST_BYTES and (more := file.read(piece)):
            content += more
    if len(content) > MOST_BYTES:
        raise OSError(errno.EFBIG, f"it has more than {MOST_BYTES / 1e6:.0f} MB", str(path))
    return content


def text_of(path: Path) -> str:
    """Return the text of a file, opened as `opened` does; raises as `content_of` does."""
    # As every text file is read, whatever its line ends are.
    return io.TextIOWrapper(io.BytesIO(content_of(path)), encoding="utf-8").read()


def open_folder(path: Path) -> int:
    """Return a descriptor of a folder that is not a link."""
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)


def give(folder: Path, uid: int, gid: int, mode: int) -> None:
    """Give a folder, created if missing, to a user, without following links."""
    folder.mkdir(parents=True, exist_ok=True)
    handle = open_folder(folder)
    try:
        os.fchown(handle, uid, gid)
        os.fchmod(handle, mode)
    finally:
        os.close(handle)


def hand_over(root: Path) -> None:
    """Give the owner of a checkout the folders of campaigns that root has made."""
    owner = root.stat().st_uid
    if os.geteuid() != 0 or owner == 0:
        return
    linked = (root / ".wyeast").is_symlink()
    for place in HANDED_OVER:
        folder = root / place
        if linked and place.startswith(".wyeast"):
            # On another disk, or in any folder of root's: the owner makes what the owner may.
            with rights_of(owner), suppress(OSError):
                folder.mkdir(parents=True, exist_ok=True)
            continue
        if not os.path.lexists(folder) or (folder.lstat().st_uid == 0 and not folder.is_symlink()):
            give(folder, owner, group_of(owner), 0o755)
        if not place.startswith(".wyeast/"):
            continue
        # A program that is measured may have made more folders than Python descends.
        with suppress(RecursionError):
            _give_what_is_roots(folder, owner)


def _give_what_is_roots(folder: Path, owner: int) -> None:
    """Give what root left in a folder earlier; a file with two names may be anybody's."""
    for _, folders, files, handle in os.fwalk(folder, follow_symlinks=False):
        for name in (".", *folders, *files):
            found = os.stat(name, dir_fd=handle, follow_symlinks=False)
            if found.st_uid == 0 and (stat.S_ISDIR(found.st_mode) or found.st_nlink == 1):
                os.chown(name, owner, group_of(owner), dir_fd=handle, follow_symlinks=False)


def git(folder: Path, *words: str, config: Mapping[str, str] | None = None) -> bytes | None:
    """Return what git prints about a repository, or None if it fails.

    Root asks as the repository's owner, whose configuration may name programs that git runs.
    """
    owner = owner_of(folder) if os.geteuid() == 0 else 0
    settings = {"core.fsmonitor": "false", "core.hooksPath": "/dev/null", **(config or {})}
    # Whoever measures with an installation of another user runs its code anyway.
    if layout.is_shared(folder):
        settings["safe.directory"] = str(folder.resolve())
    options = [word for key, value in settings.items() for word in ("-c", f"{key}={value}")]
    as_owner = ["setpriv", f"--reuid={owner}", f"--regid={group_of(owner)}", "--clear-groups"]
    home = CLOSED if owner else os.environ.get("HOME", CLOSED)
    # In the box the job user may read the repository of another.
    named = {k: v for k, v in os.environ.items() if k.startswith("GIT_CONFIG_") and not owner}
    # An archive of a checkout may have been unpacked within another repository.
    named |= {"GIT_CEILING_DIRECTORIES": str(folder.resolve().parent)}
    try:
        done = subprocess.run(
            [*(as_owner if owner else []), "git", *options, "-C", str(folder), *words],
            env={**environment_of(name_of(owner or os.geteuid()), home), **named},
            stdin=subprocess.DEVNULL, capture_output=True, check=True, timeout=60,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout


if __name__ == "__main__":
    # Asked by every target of make, by `wyeast` and by `activate`.
    if os.geteuid() == 0 and (said := untrusted(layout.CODE)):
        sys.exit(said)
    refuse_unsafe_home(layout.CODE)
