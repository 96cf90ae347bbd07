"""Whether what Spack takes from a machine can be built with: headers, link line, what these need.

As a program, where the externals are: `python3 external_proof.py JSON`, with a list of objects that
have what `External` has. It prints a sentence for each that cannot be used, and ends with 1 then.
Standard library only: it also runs in the base that images are built on.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

#: How long a compiler, a linker or pkg-config may take for one thing, in seconds.
PATIENCE_S = 60.0


@dataclass(frozen=True)
class External:
    """A package that Spack takes from the machine."""

    name: str
    version: str
    prefix: str
    #: Whether something that is built is linked to it; else it is only started.
    linked: bool = True
    #: Of a compiler: language (`c`, `cxx`, `fortran`) → program.
    compilers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Library:
    """What a package must have to be linked to, and the Debian package with that."""

    headers: tuple[str, ...]
    libraries: tuple[str, ...]
    #: Its names for pkg-config; a package may do without its files.
    described: tuple[str, ...]
    debian: str


LIBRARIES = {
    "blis": Library(("cblas.h",), ("blis",), ("blis",), "libblis-serial-dev"),
    "hwloc": Library(("hwloc.h",), ("hwloc",), ("hwloc",), "libhwloc-dev"),
    "libevent": Library(("event2/event.h",), ("event_core", "event_pthreads"),
                        ("libevent",), "libevent-dev"),
    "libfabric": Library(("rdma/fabric.h",), ("fabric",), ("libfabric",), "libfabric-dev"),
    "libpciaccess": Library(("pciaccess.h",), ("pciaccess",), ("pciaccess",), "libpciaccess-dev"),
    "libxml2": Library(("libxml/parser.h",), ("xml2",), ("libxml-2.0",), "libxml2-dev"),
    "numactl": Library(("numa.h",), ("numa",), ("numa",), "libnuma-dev"),
    "openblas": Library(("cblas.h",), ("openblas",), ("openblas",), "libopenblas-serial-dev"),
    "pmix": Library(("pmix.h",), ("pmix",), ("pmix",), "libpmix-dev"),
    "rdma-core": Library(("infiniband/verbs.h", "rdma/rdma_cma.h"), ("ibverbs", "rdmacm"),
                         ("libibverbs", "librdmacm"), "libibverbs-dev and librdmacm-dev"),
    "slurm": Library(("slurm/slurm.h",), ("slurm",), ("slurm",), "libslurm-dev"),
    "ucx": Library(("ucp/api/ucp.h",), ("ucp",), ("ucx",), "libucx-dev"),
    "zlib": Library(("zlib.h",), ("z",), ("zlib",), "zlib1g-dev"),
}  # fmt: skip
#: The ones with a compiler wrapper, by which everything else is linked to them.
MPIS = {
    "intel-oneapi-mpi": None, "mpich": "libmpich-dev", "mvapich": None, "mvapich2": None,
    "openmpi": "libopenmpi-dev",
}  # fmt: skip
#: Packages of which a program is started, and how that may be called.
PROGRAMS = {
    "autoconf": ("autoconf",), "automake": ("automake",), "binutils": ("ld",), "bison": ("bison",),
    "cmake": ("cmake",), "diffutils": ("diff",), "findutils": ("find",), "flex": ("flex",),
    "gmake": ("make", "gmake"), "libtool": ("libtoolize", "glibtoolize"), "m4": ("m4",),
    "perl": ("perl",), "pkgconf": ("pkgconf", "pkg-config"), "python": ("python3", "python"),
}  # fmt: skip
#: Libraries that others need privately → the Debian package that a linker finds them by.
DEBIAN = {
    **{library: one.debian for one in LIBRARIES.values() for library in one.libraries},
    "ibverbs": "libibverbs-dev", "rdmacm": "librdmacm-dev", "efa": "libibverbs-dev",
    "psm2": "libpsm2-dev", "psm_infinipath": "libpsm-infinipath1-dev", "nl-3": "libnl-3-dev",
    "nl-route-3": "libnl-route-3-dev", "ltdl": "libltdl-dev", "udev": "libudev-dev",
    "event": "libevent-dev", "munge": "libmunge-dev", "gfortran": "gfortran", "stdc++": "g++",
    "uct": "libucx-dev", "ucs": "libucx-dev", "ucm": "libucx-dev", "lzma": "liblzma-dev",
    "icuuc": "libicu-dev", "crypto": "libssl-dev", "ssl": "libssl-dev",
}  # fmt: skip
#: What a smallest program of each language is, and the ending of its file.
SMALLEST = {
    "c": ("c", "int main(void) { return 0; }\n"),
    "cxx": ("cc", "#include <string>\nint main() { return std::string().size() != 0; }\n"),
    "fortran": ("f90", "end program\n"),
}
OF_MPI = "#include <mpi.h>\nint main(void) { return MPI_Init(0, 0); }\n"
#: What linkers say of a library that they do not find.
NOT_FOUND = re.compile(r"(?:cannot find|unable to find library) -l(?P<name>[\w.+-]+)")
#: A line of a libtool library with what it needs, and what of that is a library.
NEEDED = re.compile(r"^dependency_libs='(?P<words>[^']*)'", re.MULTILINE)


class Unusable(Exception):
    """What an external lacks, in words that go on from its name, and the library that is meant."""

    def __init__(self, lacks: str, debian: str | None = None) -> None:
        """Keep the words, and the Debian package that has what is missing, where one is known."""
        super().__init__(lacks)
        self.debian = debian


def prove(external: External) -> None:
    """Raise Unusable where something that is built could not use an external."""
    prefix = Path(external.prefix)
    if not prefix.is_dir():
        raise Unusable("is no folder here")
    for language, program in external.compilers.items():
        _compiler(language, program)
    if external.name in PROGRAMS and not external.linked:
        _program(prefix, PROGRAMS[external.name])
    if external.linked and external.name in MPIS:
        _mpi(prefix, MPIS[external.name])
    elif external.linked and external.name in LIBRARIES:
        _library(prefix, LIBRARIES[external.name])


def _compiler(language: str, program: str) -> None:
    if not os.access(program, os.X_OK):
        raise Unusable(f"has no {program}, its compiler for {language}")
    ending, text = SMALLEST.get(language, SMALLEST["c"])
    if said := built([program], text, (), ending):
        raise Unusable(f"cannot compile the smallest program with {program}: {said[0]}")


def _program(prefix: Path, names: Iterable[str]) -> None:
    if not any(os.access(prefix / "bin" / name, os.X_OK) for name in names):
        raise Unusable(f"has no program bin/{' or bin/'.join(names)}")


def _mpi(prefix: Path, debian: str | None) -> None:
    # Intel's is some folders below its prefix.
    wrappers = [prefix / "bin" / "mpicc", *sorted(prefix.glob("mpi/*/bin/mpicc"))]
    wrapper = next((one for one in wrappers if os.access(one, os.X_OK)), None)
    if wrapper is None:
        raise Unusable("has no bin/mpicc, by which programs are compiled for it", debian)
    said = built([str(wrapper)], OF_MPI, ())
    for line in said:
        if "mpi.h" in line:
            raise Unusable(f"has a {wrapper} that finds no mpi.h", debian)
    _linked(said, f"which {wrapper} links programs to")
    _of_libtool(wrapper.parents[1], ("mpi",))


def _library(prefix: Path, wanted: Library) -> None:
    described = [one for one in wanted.described if _has_description(prefix, one)]
    # With it MPICH finds out what its own programs must be linked to.
    private = {one: pkg_config(prefix, "--static", "--libs", one) for one in described}
    flags = [f"-I{prefix / 'include'}"]
    flags += [word for one in described for word in pkg_config(prefix, "--cflags", one)]
    for header in wanted.headers:
        if built([_linker()], f"#include <{header}>\n", [*flags, "-fsyntax-only"]):
            raise Unusable(f"has no header {header}", wanted.debian)
    names = [f"-l{name}" for name in wanted.libraries]
    _linked(_link(prefix, names), "which programs are linked to", wanted.debian)
    for one, words in private.items():
        _linked(_link(prefix, words), f"which {one}.pc names for those who link it statically")
    _of_libtool(prefix, wanted.libraries)


def _linker() -> str:
    found = shutil.which("cc") or shutil.which("gcc")
    if not found:
        raise Unusable("cannot be tried, since there is no cc and no gcc here", "gcc")
    return found


def _of_libtool(prefix: Path, libraries: Iterable[str]) -> None:
    """Raise Unusable where a libtool library names something that is not there."""
    for file in (folder / f"lib{one}.la" for folder in folders(prefix) for one in libraries):
        match = NEEDED.search(file.read_text(errors="replace")) if file.is_file() else None
        words = match["words"].split() if match else []
        for word in words:
            if word.endswith(".la") and not Path(word).is_file():
                name = Path(word).name.removeprefix("lib").removesuffix(".la")
                raise Unusable(f"has a {file} that names {word}, which is not there",
                               DEBIAN.get(name))  # fmt: skip
        rest = [word for word in words if word.startswith(("-l", "-L"))]
        _linked(_link(prefix, rest), f"which {file} names, so that libtool links to it")


def _linked(said: list[str], by: str, debian: str | None = None) -> None:
    """Raise Unusable where a linker has said something."""
    missing = list(dict.fromkeys(m["name"] for line in said for m in NOT_FOUND.finditer(line)))
    if missing:
        packages = [DEBIAN[name] for name in missing if name in DEBIAN]
        raise Unusable(
            f"lacks {' and '.join(f'lib{name}' for name in missing)}, {by}",
            debian or " and ".join(dict.fromkeys(packages)) or None,
        )
    if said:
        raise Unusable(f"cannot be linked to: {said[0]}", debian)


def _link(prefix: Path, words: list[str]) -> list[str]:
    """Return what a linker says of a program with these words, each library in it used."""
    looked_for = [f"-L{folder}" for folder in folders(prefix)]
    text = SMALLEST["c"][1]
    return built([_linker()], text, [*looked_for, "-Wl,--no-as-needed", *words]) if words else []


def folders(prefix: Path) -> list[Path]:
    """Return where a prefix has libraries."""
    machine = sorted((prefix / "lib").glob("*-linux-gnu*"))
    return [one for one in (prefix / "lib", prefix / "lib64", *machine) if one.is_dir()]


def built(compiler: list[str], text: str, words: Iterable[str], ending: str = "c") -> list[str]:
    """Return what a compiler says that cannot compile and link a program; nothing where it can.

    The lines that name an error come first.
    """
    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch) / f"tried.{ending}"
        source.write_text(text)
        asked = [*compiler, str(source), "-o", f"{scratch}/tried", *words]
        code, said = _run(asked, dict(os.environ))
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    marked = [line for line in lines if re.search(r"error|cannot find|undefined|not found", line)]
    return (marked + lines or [f"it ended with {code}"]) if code else []


def pkg_config(prefix: Path, *words: str) -> list[str]:
    """Return what pkg-config answers, with a prefix before all others; nothing where it is not.

    Raises Unusable where it cannot tell.
    """
    program = shutil.which("pkgconf") or shutil.which("pkg-config")
    if program is None:
        return []
    own = [*(folder / "pkgconfig" for folder in folders(prefix)), prefix / "share" / "pkgconfig"]
    path = ":".join([*map(str, own), *filter(None, [os.environ.get("PKG_CONFIG_PATH")])])
    code, said = _run([program, "--print-errors", *words],
                      {**os.environ, "PKG_CONFIG_PATH": path})  # fmt: skip
    if not code:
        return said.split()
    needed = re.search(r"[Pp]ackage '(?P<name>\S+)', required by '\S+', not found", said)
    raise Unusable(
        f"is unknown to pkg-config: {needed[0]}"
        if needed
        else f"is unknown to pkg-config: {said.strip().partition(chr(10))[0] or code}",
        _of_description(needed["name"]) if needed else None,
    )


def _has_description(prefix: Path, name: str) -> bool:
    places = [*folders(prefix), prefix / "share"]
    return any((place / "pkgconfig" / f"{name}.pc").is_file() for place in places)


def _of_description(name: str) -> str | None:
    """Return the Debian package that has what pkg-config knows by a name."""
    return next((one.debian for one in LIBRARIES.values() if name in one.described), None)


def _run(words: list[str], variables: dict[str, str]) -> tuple[int, str]:
    """Return how a program ended, and all that it said; Unusable where it does not end."""
    try:
        done = subprocess.run(
            words, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL,
            timeout=PATIENCE_S, env={**variables, "LC_ALL": "C"},
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise Unusable(f"does not let {words[0]} end within {PATIENCE_S:g} s") from None
    except OSError as error:
        raise Unusable(f"cannot be tried with {words[0]}: {error.strerror}") from None
    return done.returncode, done.stdout + done.stderr


def sentences(externals: Iterable[External], setting: str, packages: str) -> Iterator[str]:
    """Give a sentence for each external that cannot be used: what it lacks, and what mends it.

    `setting` is where its prefix is said, and `packages` says what to do with a Debian package.
    """
    for one in externals:
        try:
            prove(one)
        except Unusable as error:
            mends = packages.format(package=error.debian) if error.debian else (
                f"correct it in {setting}, or install there what it lacks"
            )  # fmt: skip
            yield f"{one.name} {one.version} at {one.prefix}, an external, {error}: {mends}"


def main() -> int:
    """Print a sentence for each external that cannot be used."""
    asked = json.loads(sys.argv[1])
    found = [External(**one) for one in asked["externals"]]
    said = list(sentences(found, asked["setting"], asked["packages"]))
    for sentence in said:
        print(sentence)
    return 1 if said else 0


if __name__ == "__main__":
    sys.exit(main())
