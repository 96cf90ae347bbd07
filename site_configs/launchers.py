"""The launchers of the machine's MPIs: `launch: mpirun` starts a container for each rank by one.

Which one is said by a site's `launcher`: one for all images, or one for each family of MPIs. What a
launcher says of itself decides how it is told where ranks go, and which images it can start.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any

from records.environment import environment, named

#: How long a launcher may take to say what it is, in seconds, with what a job prepares and loads.
PATIENCE_S = 30.0


class LauncherError(Exception):
    """Ranks cannot be started by the machine's launcher; the text is a sentence that helps."""


@dataclass(frozen=True)
class LauncherFamily:
    """Launchers that are told alike how ranks start."""

    #: For people.
    name: str
    #: How one introduces itself (`--version`), with its version.
    banner: str
    #: The families of images whose ranks find each other through it.
    starts: tuple[str, ...]
    #: The PMI that it does not speak, as an image's label names it.
    not_by: str | None = None


#: Those of MPICH, MVAPICH and Intel MPI are one program's descendants and speak one PMI.
FAMILIES: dict[str, LauncherFamily] = {
    "openmpi": LauncherFamily("Open MPI", r"\((?:Open MPI|OpenRTE)\) (\S+)", ("openmpi",)),
    "mpich": LauncherFamily(
        "MPICH's launcher",
        r"HYDRA.*?Version:\s*(\S+)",
        ("mpich", "mvapich", "mvapich2", "intel-mpi"),
        not_by="pmix",
    ),
    "intel-mpi": LauncherFamily(
        "Intel MPI",
        r"Intel\(R\) MPI Library.*?Version (\S+)",
        ("intel-mpi", "mpich", "mvapich", "mvapich2"),
        not_by="pmix",
    ),
}
#: The families of images that some launcher starts.
STARTED = tuple(dict.fromkeys(family for one in FAMILIES.values() for family in one.starts))


@dataclass(frozen=True)
class HostLauncher:
    """A launcher of the machine, as the site names it, and what it says that it is."""

    command: str
    family: str
    version: str

    def __str__(self) -> str:
        """Return what it is, for people."""
        return f"{FAMILIES[self.family].name} {self.version} ({self.command})"


def identify(said: str) -> tuple[str, str] | None:
    """Return the family and the version of a launcher, from its `--version`; None for no MPI's."""
    for family, one in FAMILIES.items():
        if match := re.search(one.banner, said, re.S):
            return family, match[1].rstrip(",")
    return None


def by_family(value: Any, family: str) -> Any:
    """Return what a site says for a family of MPIs: the value itself, unless it is by family."""
    return value.get(family) if isinstance(value, Mapping) else value


def launcher_for(
    site: Mapping[str, Any], family: str, version: str | None = None, pmi: str | None = None
) -> HostLauncher:
    """Return the launcher by which a site starts images of a family of MPIs.

    `version` is that of the image's MPI, and `pmi` what it speaks, as far as its labels say. Raises
    LauncherError for a launcher that the site does not name, that does not say what it is, or that
    is another MPI's.
    """
    place = f"`launcher` of site_configs/{site['name']}/site.yaml"
    if family not in STARTED:
        raise LauncherError(
            f"images of {family} are not started by a launcher of the machine (`launch: mpirun`): "
            "they boot daemons of their own; measure them on a site with `launch: srun` or "
            "`mpiexec`, or leave them out of `implementations`"
        )
    command = by_family(site["launcher"], family)
    if command is None:
        raise LauncherError(
            f"{place} names none for images of {family}; add it, as in `{family}: "
            "/opt/.../bin/mpiexec`, or leave them out of `implementations`"
        )
    said = _said(site, command)
    found = identify(said)
    if found is None:
        tells = " ".join(said.split())[:200] or "nothing"
        raise LauncherError(
            f"{place} is {command}, and `{command} --version` does not say that it is the launcher "
            f"of Open MPI, MPICH or Intel MPI; it says: {tells}"
        )
    launcher = HostLauncher(command, *found)
    if family not in FAMILIES[launcher.family].starts:
        raise LauncherError(
            f"{launcher} cannot start images of {family}: each rank would believe that it is "
            f"alone, since the two share no PMI; name {family}'s own launcher in {place}: "
            f"`launcher: {{{launcher.family}: {command}, {family}: /opt/.../bin/mpiexec}}`"
        )
    if sentence := _wrong_version(launcher, version) or _wrong_pmi(launcher, family, pmi):
        raise LauncherError(f"{sentence} in {place}, or leave the image out of `implementations`")
    return launcher


def _wrong_version(launcher: HostLauncher, version: str | None) -> str | None:
    """Return why a launcher of Open MPI does not start images of a version; None if it does.

    Of two major versions it was only seen that they start each other's ranks on one node. What is
    no release (`main`) may be any.
    """
    outside, inside = (re.match(r"\d+(?=\.)", one or "") for one in (launcher.version, version))
    if launcher.family != "openmpi" or not outside or not inside or outside[0] == inside[0]:
        return None
    return (
        f"{launcher} cannot start images of Open MPI {version}: it is not proven that ranks of one "
        "major version find each other over nodes by a launcher of another; name a launcher of "
        f"Open MPI {inside[0]}"
    )


def _wrong_pmi(launcher: HostLauncher, family: str, pmi: str | None) -> str | None:
    """Return why a launcher does not start images that speak a PMI; None if it does."""
    if pmi is None or pmi != FAMILIES[launcher.family].not_by:
        return None
    return (
        f"{launcher} cannot start images of {family} whose ranks ask PMIx, and it speaks PMI 1 and "
        "2: each rank would be alone; use `launch: srun`, or name another launcher"
    )


def of_site(site: Mapping[str, Any]) -> list[HostLauncher]:
    """Return the launchers that a site names and that say what they are."""
    named = site.get("launcher", ())
    commands = named.values() if isinstance(named, Mapping) else [named] if named else []
    found = []
    for command in dict.fromkeys(commands):
        with suppress(LauncherError):
            if known := identify(_said(site, command)):
                found.append(HostLauncher(command, *known))
    return found


def prepared(site: Mapping[str, Any]) -> list[str]:
    """Return the commands with which a job of the site prepares itself, as ReFrame has them."""
    load = "spack load" if site.get("modules_system") == "spack" else "module load"
    return [*site.get("prepare", []), *(f"{load} {one}" for one in site.get("modules", []))]


def _said(site: Mapping[str, Any], command: str) -> str:
    """Return what a site's launcher says of itself; raises LauncherError."""
    said, sentence = _asked(command, tuple(prepared(site)), named(site))
    if sentence:
        raise LauncherError(sentence)
    return said


@cache
def _asked(command: str, before: tuple[str, ...], by_site: tuple[str, ...]) -> tuple[str, str]:
    """Return what a launcher says of itself, and a sentence if it fails, or an empty one.

    It is asked once a process, with the variables that a job would have: each image would wait
    again for one that hangs, and a setting of the user's own is none of a launch's.
    """
    script = "\n".join([*before, 'exec "$0" --version'])
    process = subprocess.Popen(
        ["bash", "-c", script, command],
        env={**environment(os.environ, by_site), "LC_ALL": "C"},
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        errors="replace", start_new_session=True,
    )  # fmt: skip
    try:
        said, _ = process.communicate(timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        return "", (
            f"`{command} --version`, after what a job prepares and loads, does not end within "
            f"{PATIENCE_S:g} s"
        )
    finally:
        # With what it has started: a launcher may be a script.
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    if process.returncode:
        last = next((line.strip() for line in reversed(said.splitlines()) if line.strip()), "")
        return said, (
            f"`{command} --version` fails where jobs are submitted ({last or 'it says nothing'}): "
            "correct `launcher`, or have `modules` load it"
        )
    return said, ""
