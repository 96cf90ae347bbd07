"""Which MPI library a program is really linked to."""

import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

#: Open MPI's and MPICH's library and relatives: libmpich, libmpi_abi, libmpifort, libmpicxx.
MPI_LIBRARY = re.compile(r"libp?mpi(ch|fort|cxx|_\w+)?\d*\.so(\.\d+)*")


class WrongLibrary(Exception):
    """A program is not linked to the MPI that it was asked for; the text is a sentence."""


def loaded(program: Path) -> dict[str, Path | None]:
    """Return the MPI libraries that the loader takes for a program: name → file, or None.

    `ldd` tells, so RUNPATH, LD_LIBRARY_PATH and the system's folders count as they do at run time.
    """
    done = subprocess.run(["ldd", str(program)], capture_output=True, text=True)
    found: dict[str, Path | None] = {}
    for line in done.stdout.splitlines():
        name, arrow, place = line.strip().partition(" => ")
        if arrow and MPI_LIBRARY.fullmatch(name):
            path = place.rpartition(" (")[0] or place
            found[name] = None if path.strip() == "not found" else Path(path)
    return found


def libraries(prefix: Path) -> set[Path]:
    """Return the MPI libraries under a prefix, symbolic links followed."""
    folders = [prefix / "lib", prefix / "lib64", *prefix.glob("mpi/*/lib"), *prefix.glob("lib/*")]
    return {
        path.resolve()
        for folder in folders
        if folder.is_dir()
        for path in folder.iterdir()
        if MPI_LIBRARY.fullmatch(path.name) and path.exists()
    }


def check(programs: Iterable[Path], prefix: Path, without_mpi: Iterable[str] = ()) -> None:
    """Raise WrongLibrary unless every program is linked to the MPI under the prefix.

    `without_mpi` names the programs that may be linked to none; one to a wrong MPI they may not.
    """
    right = libraries(prefix)
    if not right:
        raise WrongLibrary(f"{prefix} has no MPI library")
    seen = 0
    for program in programs:
        seen += 1
        found = loaded(program)
        if not found and program.name not in set(without_mpi):
            raise WrongLibrary(f"{program} is linked to no MPI library")
        for name, path in found.items():
            if path is None:
                raise WrongLibrary(f"{program} does not find its {name}")
            if path.resolve() not in right:
                raise WrongLibrary(
                    f"{program} is linked to {path.resolve()}, not to the MPI under {prefix}"
                )
    if not seen:
        raise WrongLibrary(f"no program is there to be linked to the MPI under {prefix}")
