"""Whether this machine lets its user run containers: what can be seen of it in a tenth of a second.

An Apptainer with its setuid part needs neither user namespaces nor /dev/fuse, for all but root.
"""

import ctypes
import errno
import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path

from containers import programs
from containers.apptainer import CallError, apptainer_command, call, state_folder
from containers.programs import ProvisionError
from records.ailments.of_machines import NO_FUSE, NO_NAMESPACES

CLONE_NEWUSER = 0x10000000
#: With what errors AppArmor refuses a user namespace, where the kernel says that it does, where its
#: profiles are, and what one that allows Apptainer to have them names.
BY_APPARMOR = (errno.EPERM, errno.EACCES)
RESTRICTED = Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")
PROFILES = Path("/etc/apparmor.d")
STARTER = "apptainer/bin/starter"
FUSE = Path("/dev/fuse")
#: What Apptainer mounts an image with through /dev/fuse; without it, it unpacks the image.
MOUNTS = ("squashfuse_ll", "squashfuse")
#: Since this version it mounts an image without root's help, and can be told not to hold what
#: apptainer.conf binds.
OLDEST = (1, 1)
VERSION = re.compile(r"(\d+)\.(\d+)")
#: Where images have their programs. A line `bind path = /opt` is told to Apptainer not to hold.
OF_IMAGES = ("/opt/mpi", "/opt/software", "/opt/wyeast")
BOUND_OF_CONF = re.compile(r"^\s*bind path\s*=\s*([^\s:]+)(?::([^\s:]+))?", re.MULTILINE)


def build_facts() -> dict[str, str]:
    """Return what Apptainer says of itself, as where its parts are; nothing if it is not here yet.

    Raises ProvisionError where it does not start.
    """
    try:
        apptainer_command()
    except ProvisionError:
        return {}
    try:
        said = call("buildcfg")
    except CallError as error:
        raise ProvisionError(f"Apptainer cannot start here: {error}") from None
    pairs = (line.partition("=") for line in said.splitlines())
    return {name: value for name, _, value in pairs}


def refused_namespace() -> int:
    """Return the errno with which the kernel refuses a user namespace, 0 where it gives one."""
    child = os.fork()
    if not child:
        libc = ctypes.CDLL(None, use_errno=True)
        os._exit(ctypes.get_errno() if libc.unshare(CLONE_NEWUSER) else 0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def refused_without_profile(code: int) -> bool:
    """Return whether AppArmor may have refused a namespace to us and still allow Apptainer one.

    Where it refuses them to programs that it has no profile of, as on Ubuntu since 23.10, packages
    of Apptainer bring one for its starter; what becomes of it nobody but that can know.
    """
    try:
        if code not in BY_APPARMOR or RESTRICTED.read_text().strip() != "1":
            return False
        texts = [path.read_text(errors="replace") for path in PROFILES.iterdir() if path.is_file()]
    except OSError:
        return False
    return any(STARTER in text for text in texts)


def refuse_inability() -> None:
    """Raise ProvisionError where no container can start on this machine."""
    facts = build_facts()
    refuse_old(facts)
    parts = Path(facts.get("LIBEXECDIR", "/nowhere")) / "apptainer" / "bin"
    if os.geteuid() == 0 or not is_setuid(parts / "starter-suid"):
        if (code := refused_namespace()) and not refused_without_profile(code):
            raise ProvisionError(
                f"no container can start here: the kernel gives no user namespace "
                f"({os.strerror(code)}); {NO_NAMESPACES.sentence}"
            )
        mounts = [name for name in MOUNTS
                  if (parts / name).exists() or programs.find(name, state_folder())]  # fmt: skip
        if (mounts or not facts) and (reason := refused_fuse()):
            raise ProvisionError(
                f"no container can start here: {FUSE} cannot be opened ({reason}); "
                f"{NO_FUSE.sentence}"
            )
    refuse_bound(facts)


def refuse_old(facts: Mapping[str, str]) -> None:
    """Raise ProvisionError for an Apptainer that does not know what launches ask of it."""
    said = facts.get("PACKAGE_VERSION", "")
    # What says nothing, such as one that somebody has built, is taken.
    if (found := VERSION.match(said)) and tuple(map(int, found.groups())) < OLDEST:
        raise ProvisionError(
            f"no image can be measured here: {apptainer_command()} is Apptainer {said}, and "
            f"{'.'.join(map(str, OLDEST))} or newer is needed: load a newer module, or put a newer "
            "one first on PATH"
        )


def is_setuid(starter: Path) -> bool:
    """Return whether Apptainer has its setuid part."""
    try:
        found = starter.stat()
    except OSError:
        return False
    return bool(found.st_mode & stat.S_ISUID) and found.st_uid == 0


def refused_fuse() -> str | None:
    """Return why /dev/fuse cannot be opened, None where it can."""
    try:
        os.close(os.open(FUSE, os.O_RDWR))
    except OSError as error:
        return error.strerror
    return None


def refuse_bound(facts: Mapping[str, str]) -> None:
    """Raise ProvisionError where apptainer.conf mounts something over what images have."""
    path = Path(facts.get("APPTAINER_CONF_FILE", "/nowhere"))
    try:
        text = path.read_text(errors="replace")
    except OSError:
        return
    for source, target in BOUND_OF_CONF.findall(text):
        place = (target or source).rstrip("/")
        hidden = [one for one in OF_IMAGES if place == one or place.startswith(f"{one}/")]
        # A folder that is not there is not bound.
        if hidden and Path(source).exists():
            raise ProvisionError(
                f"{path} has `bind path = {source}`, which hides {hidden[0]} of every image, where "
                "its programs are: ask those who run this machine to take it out, or measure with "
                "an Apptainer of your own, found first on PATH"
            )
