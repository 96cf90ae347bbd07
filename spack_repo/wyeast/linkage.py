"""Which MPI library a program is really linked to.

As a program, in an image's build: `python3 linkage.py MPI <installed` reads what Spack installed,
`package prefix` a line, proves every program of the other packages to be linked to the MPI's
library, and prints their paths. Standard library only.
"""

import argparse
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

#: Open MPI's and MPICH's library and relatives: libmpich, libmpi_abi, libmpifort, libmpicxx.
MPI_LIBRARY = re.compile(r"libp?mpi(ch|fort|cxx|_\w+)?\d*\.so(\.\d+)*")
#: The programs that need no MPI, of all packages that spack.yaml asks for.
WITHOUT_MPI = frozenset({"hpl_dat", "profiled", "NPtcp"})


class WrongLibrary(Exception):
    """A program is not linked to the MPI that was asked for; the text is a sentence."""


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


def check(programs: Iterable[Path], prefix: Path, without_mpi: Iterable[str] = WITHOUT_MPI) -> None:
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


def programs_of(prefix: Path) -> Iterator[Path]:
    """Give what can be started of a package: compiled programs and scripts, no links, no data."""
    for folder in (prefix / "bin", prefix / "libexec"):
        for path in sorted(folder.rglob("*")):
            if path.is_file() and not path.is_symlink() and os.access(path, os.X_OK):
                yield path


def is_compiled(program: Path) -> bool:
    """Return whether a program is linked, and not a script."""
    with program.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def prove(lines: Iterable[str], mpi: str) -> list[Path]:
    """Return the programs of what is installed, each compiled one linked to the MPI of the name.

    Raises WrongLibrary for one that is not, and for a package without a compiled program.
    """
    prefixes = {name: Path(prefix) for name, prefix in map(str.split, lines)}
    if mpi not in prefixes:
        raise WrongLibrary(f"{mpi} is not among what is installed: {', '.join(prefixes) or 'none'}")
    found = []
    for name, prefix in prefixes.items():
        if name != mpi:
            programs = list(programs_of(prefix))
            check(filter(is_compiled, programs), prefixes[mpi])
            found += programs
    return found


def main() -> int:
    """Print the programs, or say in a sentence which is linked to what."""
    parser = argparse.ArgumentParser(
        prog="linkage.py", description="Prove what Spack installed to be linked to one MPI."
    )
    parser.add_argument("mpi", help="the package that is the MPI")
    try:
        found = prove(sys.stdin, parser.parse_args().mpi)
    except WrongLibrary as error:
        print(f"linkage: {error}", file=sys.stderr)
        return 1
    print("\n".join(map(str, found)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
