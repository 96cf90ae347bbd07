"""The machine's programs that make and open images, installed if they are missing and needed.

An Apptainer that is there needs nothing more to pull, run, sign and verify: only one that is
unpacked here does, and builds. Root gets them from the distribution; an ordinary user gets the same
packages unpacked into `.wyeast/tools`. Standard library only: this runs before the virtual
environment exists.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from containers import apt

#: Program -> Debian package: what a build needs, and what an Apptainer needs that is unpacked here.
OF_BUILDS = {"mksquashfs": "squashfs-tools", "newuidmap": "uidmap"}
OF_MMDEBSTRAP = {"mmdebstrap": "mmdebstrap"}
OF_UNPACKED = {"squashfuse": "squashfuse", "patchelf": "patchelf"}
#: Libraries that an unpacked Apptainer or tool needs besides the C library: file -> package.
LIBRARIES = {
    "libseccomp.so.2": "libseccomp2",
    "libsqlite3.so.0": "libsqlite3-0",
}
#: What the packages above depend on and a bare machine may lack, for an ordinary user.
LIBRARIES_OF_TOOLS = {
    "libfuse3.so.3": "libfuse3-3",
    "libfuseprivate": "libsquashfuse0",
    "liblzo2.so.2": "liblzo2-2",
}


SUBORDINATE_IDS = ("/etc/subuid", "/etc/subgid")
NAME_SERVICES = Path("/etc/nsswitch.conf")


class ProvisionError(Exception):
    """A needed program cannot be obtained; the text is a sentence with the next step."""


def tools_folder(state: Path) -> Path:
    """Return where an ordinary user's programs are unpacked."""
    return state / "tools"


def search_path(state: Path) -> str:
    """Return the PATH on which the machine's and the unpacked programs are found."""
    # /usr/sbin: where some distributions keep mksquashfs, and not on an ordinary user's PATH.
    return f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:{tools_folder(state)}/usr/bin"


def find(program: str, state: Path) -> Path | None:
    """Return a program's path, or None if it is missing."""
    found = shutil.which(program, path=search_path(state))
    return Path(found) if found else None


def needed(builds: bool, bootstrap: str, unpacks: bool) -> dict[str, str]:
    """Return the programs that are needed, with the package of each.

    `builds`: to build images, on a base made by `bootstrap`; `unpacks`: for an Apptainer that is
    unpacked here.
    """
    found = dict(OF_UNPACKED) if unpacks else {}
    if builds:
        found |= OF_BUILDS
        if bootstrap == "mmdebstrap":
            found |= OF_MMDEBSTRAP
    return found


def missing(packages: Mapping[str, str], state: Path) -> list[str]:
    """Return the programs that are missing."""
    return [program for program in packages if not find(program, state)]


def library_folders(state: Path) -> list[Path]:
    """Return the folders in which shared libraries are looked for."""
    folders = [*tools_folder(state).glob("usr/lib/*-linux-*"), tools_folder(state) / "lib"]
    folders += [*Path("/usr/lib").glob("*-linux-*"), *Path("/lib").glob("*-linux-*")]
    return [*folders, Path("/usr/lib64"), Path("/lib64")]


def find_library(name: str, state: Path) -> Path | None:
    """Return a shared library's path, or None if it is missing."""
    return next((f / name for f in library_folders(state) if (f / name).exists()), None)


def ensure(state: Path, wanted: Mapping[str, str], unpacks: bool) -> list[str]:
    """Install what is missing and return the packages installed; fast if nothing is missing.

    Raises ProvisionError if a package cannot be obtained.
    """
    packages = {wanted[program] for program in missing(wanted, state)}
    if unpacks:
        packages |= {
            package for name, package in LIBRARIES.items() if find_library(name, state) is None
        }
    if not packages:
        return []
    try:
        if os.geteuid() == 0:
            machine = apt.of_machine(state)
            machine.update()
            machine.run("install", "--no-install-recommends", *sorted(packages))
        else:
            unpack_as_user(packages, state)
    except apt.AptError as error:
        raise ProvisionError(
            f"{', '.join(sorted(packages))} cannot be installed: {error}"
        ) from error
    still = missing(wanted, state)
    if still:
        raise ProvisionError(f"{', '.join(still)} is still missing after installing it")
    return sorted(packages)


def unpack_as_user(packages: set[str], state: Path) -> None:
    """Unpack packages of the distribution into the tools folder, without root."""
    if "uidmap" in packages:
        raise ProvisionError(
            "newuidmap is missing, and only root can install it since it is a setuid program; "
            "ask an administrator for the package uidmap; images that others have built do not "
            "need it: make pull"
        )
    if not find("patchelf", state):
        packages.add("patchelf")
    for name, package in LIBRARIES_OF_TOOLS.items():
        if find_library(name, state) is None:
            packages.add(package)
    tools = tools_folder(state)
    downloads = state / "tools.debs"
    tools.mkdir(parents=True, exist_ok=True)
    for deb in apt.of_machine(state).download(sorted(packages), downloads):
        subprocess.run(["dpkg", "-x", deb, tools], check=True)
    shutil.rmtree(downloads)
    patchelf = find("patchelf", state)
    for path in (tools / "usr" / "bin").iterdir():
        # A program of a foreign prefix must find the libraries that came with it.
        if patchelf and path.is_file() and path.read_bytes()[:4] == b"\x7fELF":
            folders = ":".join(str(folder) for folder in tools.glob("usr/lib/*-linux-*"))
            if folders and path.name != "patchelf":
                subprocess.run([patchelf, "--set-rpath", folders, path], check=True)


def ensure_subordinate_ids() -> bool:
    """Give root subordinate ids if it has none, and return whether that was needed.

    `apptainer build --fakeroot` and `mmdebstrap --mode=unshare` map them into a user namespace.
    Raises ProvisionError for an ordinary user without them.
    """
    user = "root" if os.geteuid() == 0 else _user_name()
    names = {user, str(os.geteuid())}
    lacking = [path for path in SUBORDINATE_IDS if not _has_range(path, names)]
    if lacking and os.geteuid() != 0:
        if _asks_a_service():
            return False
        # Two users with the same range could each change what the other's containers own.
        first = max(map(_first_free, SUBORDINATE_IDS))
        free = f"{first}-{first + 65535}"
        raise ProvisionError(
            f"{user} has no range in {lacking[0]}, which building images needs; an administrator "
            f"can add one that is free: usermod --add-subuids {free} --add-subgids {free} {user}; "
            "images that others have built need none: make pull"
        )
    for path in lacking:
        first = _first_free(path)
        text = Path(path).read_text() if Path(path).exists() else ""
        with open(path, "a") as file:
            file.write("\n" if text and not text.endswith("\n") else "")
            file.write(f"root:{first}:65536\n")
    return bool(lacking)


def _first_free(path: str) -> int:
    """Return the first id after all ranges of a file."""
    return max([100000, *(start + count for _, start, count in _ranges(path))])


def _asks_a_service() -> bool:
    """Return whether ranges come from elsewhere than these files, as by `subid: sss`."""
    try:
        text = NAME_SERVICES.read_text()
    except OSError:
        return False
    found = re.search(r"^subid:\s*(\w+)", text, re.M)
    return found is not None and found[1] != "files"


def _user_name() -> str:
    import pwd

    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())


def _ranges(path: str) -> list[tuple[str, int, int]]:
    found = []
    try:
        text = Path(path).read_text()
    except OSError:
        return []
    for line in text.splitlines():
        name, *numbers = line.strip().split(":")
        if len(numbers) == 2 and all(number.isdigit() for number in numbers):
            found.append((name, int(numbers[0]), int(numbers[1])))
    return found


def _has_range(path: str, names: set[str]) -> bool:
    return any(name in names and count >= 65536 for name, _, count in _ranges(path))
