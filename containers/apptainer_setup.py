"""Find Apptainer or provide it: `python3 -m containers.apptainer_setup` prints its path.

In this order: on PATH; the distribution's package, if it has one and we are root; else Debian
sid's package, unpacked into `.wyeast/apptainer` with sid's C library beside it, because the
distributions that lack the package also have an older C library than it was linked with.
Standard library only: this runs before the virtual environment exists.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path

from containers import apt, programs
from containers.apptainer import ROOT, on_path, private_command, state_folder
from containers.ending import exit_code
from containers.programs import ProvisionError
from records import layout
from records.command_words import CommandWords
from records.files import flush_whole, write_whole
from records.locks import LockHeld, exclusive

# Raised when the way in which Apptainer is unpacked changes, so that it is unpacked again.
RECIPE = "2"
SUITE = "sid"
# Of sid's C library, all that Apptainer's two programs load.
C_LIBRARY = ("libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "libresolv.so.2")


def provide(say: bool = True, builds: bool = False, bootstrap: str = "mmdebstrap") -> Path:
    """Provide Apptainer and the programs around it, and return its path.

    Where the machine has one, nothing else is needed, except by `builds`: these need programs, by
    how their base is made, and subordinate ids. Takes a few milliseconds if nothing is missing.
    Raises ProvisionError with a sentence.
    """
    state, own = layout.state(ROOT), on_path() is None
    if own and layout.is_shared(ROOT) and not _is_unpacked():
        raise ProvisionError(
            f"the installation in {ROOT} has no Apptainer, and none is on PATH: load its module, "
            "or ask whoever installed it to provide one: make setup"
        )
    unpacks = own and not layout.is_shared(ROOT)
    lacks = (unpacks and not _is_unpacked()) or programs.missing(
        programs.needed(builds, bootstrap, unpacks), state
    )
    with only_setup(state) if lacks else nullcontext():
        return _provide(state, say, builds, bootstrap)


@contextmanager
def only_setup(state: Path) -> Iterator[None]:
    """Have nobody else install in a checkout meanwhile, and say who is waited for."""
    place, note = state / "locks" / "setup", f"process {os.getpid()}"
    with ExitStack() as held:
        try:
            held.enter_context(exclusive(place, note))
        except LockHeld as holder:
            said = f"another one installs in this checkout and is waited for: {holder}"
            print(f"setup: {said}", file=sys.stderr, flush=True)
            held.enter_context(exclusive(place, note, wait=True))
        except OSError:
            # Nothing can be locked there, or written: what is installed will say so.
            pass
        yield


def _provide(state: Path, say: bool, builds: bool, bootstrap: str) -> Path:
    found = on_path()
    if not found and layout.is_shared(ROOT):
        # For builds it is as good as one on PATH: it was unpacked with what it needs.
        found = private_command()
    if not found and os.geteuid() == 0 and not _is_unpacked() and _install_package(state):
        found = on_path()
    wanted = programs.needed(builds, bootstrap, unpacks=found is None)
    installed = programs.ensure(state, wanted, unpacks=found is None)
    if installed and say:
        print(f"installed {', '.join(installed)}", file=sys.stderr)
    if builds and programs.ensure_subordinate_ids() and say:
        print("gave root subordinate ids in /etc/subuid and /etc/subgid", file=sys.stderr)
    if found:
        # Two Apptainers would leave open which one a campaign has used.
        if not layout.is_shared(ROOT):
            private_command().unlink(missing_ok=True)
        return found
    if _is_unpacked():
        return private_command()
    if say:
        print(f"unpacking Debian {SUITE}'s Apptainer into {state}/apptainer", file=sys.stderr)
    _unpack(state)
    return private_command()


def _stamp() -> Path:
    return state_folder() / "apptainer" / "complete"


def _recipe() -> str:
    # A checkout that was moved has wrong paths in its Apptainer.
    return f"{RECIPE} {state_folder()}\n"


def _is_unpacked() -> bool:
    own = _stamp().is_file() and _stamp().read_text() == _recipe()
    return own and private_command().exists()


def _install_package(state: Path) -> bool:
    """Install the distribution's package, and return whether there is one."""
    try:
        machine = apt.of_machine(state)
        if not machine.has("apptainer"):
            return False
        machine.run("install", "--no-install-recommends", "apptainer")
    except apt.AptError as error:
        raise ProvisionError(f"Apptainer cannot be installed: {error}") from error
    return True


def _unpack(state: Path) -> None:
    """Unpack sid's Apptainer elsewhere and move it into place."""
    prefix = state / "apptainer"
    # It looks for what it has mounted in the kernel's list, which writes these letters otherwise,
    # and waits for an image that has been there all the time.
    if re.search(r"[\s\\]", str(prefix)):
        raise ProvisionError(
            f"Apptainer cannot mount an image where its own folder, here {prefix}, has a space or "
            "a backslash in its path: have Apptainer installed on this machine, so that it is "
            "found on PATH, or move the checkout to a path without them"
        )
    debs = state / "apptainer.debs"
    unpacked = state / "apptainer.unpacked"
    for folder in (prefix, debs, unpacked):
        shutil.rmtree(folder, ignore_errors=True)
    try:
        files = apt.of_suite(state, SUITE).download(["apptainer", "libc6"], debs)
        for deb in files:
            target = unpacked / deb.name.partition("_")[0]
            target.mkdir(parents=True)
            subprocess.run(["dpkg", "-x", deb, target], check=True)
        _assemble(unpacked / "apptainer", unpacked / "libc6", prefix, state)
    except apt.AptError as error:
        raise ProvisionError(f"Apptainer cannot be downloaded: {error}") from error
    except (OSError, subprocess.CalledProcessError) as error:
        raise ProvisionError(
            f"Apptainer cannot be unpacked: {error}; remove {prefix} and try again"
        ) from error
    finally:
        shutil.rmtree(debs, ignore_errors=True)
        shutil.rmtree(unpacked, ignore_errors=True)
    own = private_command()
    own.parent.mkdir(parents=True, exist_ok=True)
    # Apptainer finds squashfuse and mksquashfs on PATH. Its remarks about programs that it does
    # not need would stand in the standard error of every launch; its warnings still do.
    paths = f'"$PATH":/usr/sbin:{shlex.quote(str(programs.tools_folder(state)))}/usr/bin'
    program = shlex.quote(str(prefix / "bin" / "apptainer"))
    wrapper = (
        "#!/bin/sh\n"
        ': "${APPTAINER_QUIET=1}"\n'
        "export APPTAINER_QUIET\n"
        f'PATH={paths} exec {program} "$@"\n'
    )
    write_whole(own, wrapper, 0o755)
    done = subprocess.run([own, "--version"], capture_output=True, text=True)
    if done.returncode:
        raise ProvisionError(f"the unpacked Apptainer does not start: {done.stderr.strip()}")
    # What it says of the folder has to be so after a crash of the machine, too.
    flush_whole(prefix)
    write_whole(_stamp(), _recipe())


def _assemble(package: Path, c_library: Path, prefix: Path, state: Path) -> None:
    """Lay the package out under one prefix, with the C library that it needs."""
    prefix.mkdir(parents=True)
    shutil.move(package / "usr" / "bin", prefix / "bin")
    shutil.move(package / "usr" / "lib", prefix / "lib")
    shutil.move(package / "etc", prefix / "etc")
    (prefix / "var" / "lib" / "apptainer" / "mnt" / "session").mkdir(parents=True)
    # The program finds its configuration and its helpers relative to its own path, as if it lay
    # in lib; these links make every such path right.
    for name in ("etc", "var", "bin"):
        (prefix / "lib" / name).symlink_to(f"../{name}")
    libraries = prefix / "libc"
    libraries.mkdir()
    loaders = [path for path in c_library.rglob("ld-linux*.so*") if path.is_file()]
    names = {loaders[0].name, *C_LIBRARY}
    for path in c_library.rglob("*.so*"):
        if path.name in names and path.is_file() and not (libraries / path.name).exists():
            shutil.copy(path, libraries / path.name)
    for name in programs.LIBRARIES:
        found = programs.find_library(name, state)
        if found:
            shutil.copy(found, libraries / name)
    patchelf = programs.find("patchelf", state)
    starter = next((prefix / "lib").glob("*/apptainer/bin/starter"))
    for program in (prefix / "bin" / "apptainer", starter):
        # RPATH, not RUNPATH: it must hold for the libraries' own dependencies too.
        subprocess.run(
            [str(patchelf), "--set-interpreter", libraries / loaders[0].name,
             "--force-rpath", "--set-rpath", libraries, program],
            check=True,
        )  # fmt: skip


def main() -> int:
    """Provide Apptainer and print its path."""
    parser = CommandWords(
        prog="python3 -m containers.apptainer_setup",
        description="Find Apptainer, or provide it in .wyeast/apptainer, and print its path.",
    )
    parser.add_argument("--quiet", action="store_true", help="print nothing unless it fails")
    options = parser.parse_args()

    def work() -> int:
        found = provide(say=not options.quiet)
        if not options.quiet:
            print(found)
        return 0

    return exit_code("apptainer", work, (ProvisionError,), "begin again: make setup")


if __name__ == "__main__":
    sys.exit(main())
