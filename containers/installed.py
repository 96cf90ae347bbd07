"""An MPI installed under a prefix on this machine, and how it describes itself."""

import os
import re
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from containers.labels import Pmi
from containers.table import TABLE, ImplementationTable
from records import layout
from records.causes import sentence_in

#: Where installations have their libraries, under the prefix.
FOLDERS = ("lib", "lib64", "lib/release", "lib/x86_64-linux-gnu", "lib/aarch64-linux-gnu")
#: A library of MPI, by its name: an interface of its own family, or the standard one of MPI 5.
LIBRARY = re.compile(r"libmpi(ch|_abi)?\.so\.\d+")
#: How long an MPI may take to say what it is, in seconds.
PATIENCE_S = 120.0
# The standard allows the call before MPI_Init, so no ranks need to be started.
ASK = """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
text, length = ctypes.create_string_buffer(65536), ctypes.c_int()
if not hasattr(library, "MPI_Get_library_version"):
    sys.exit("it has no MPI_Get_library_version, which MPI has since version 3")
sys.exit(library.MPI_Get_library_version(text, ctypes.byref(length))
         or print(text.value.decode(errors="replace")))
"""


class PrefixError(Exception):
    """An MPI under a prefix cannot be used; the text is a sentence."""


@dataclass(frozen=True)
class Installed:
    """An MPI under a prefix: its library, and the library's description, raw and parsed."""

    prefix: Path
    library: Path
    said: str
    family: str
    version: str
    pmi: Pmi
    #: The evidence for the PMI that it speaks.
    evidence: str


def environment_of(prefix: Path) -> dict[str, str]:
    """Return the caller's environment, with the prefix's libraries before all others."""
    folders = [str(prefix / folder) for folder in FOLDERS if (prefix / folder).is_dir()]
    before = os.environ.get("LD_LIBRARY_PATH")
    return {
        **os.environ,
        "LC_ALL": "C",
        "LD_LIBRARY_PATH": ":".join(filter(None, [*folders, before])),
    }


def interfaces(prefix: Path) -> dict[str, Path]:
    """Return the shared libraries of MPI under a prefix by their names: its binary interfaces."""
    found: dict[str, Path] = {}
    for folder in FOLDERS:
        for path in sorted((prefix / folder).glob("libmpi*.so.*")):
            if LIBRARY.fullmatch(path.name):
                found.setdefault(path.name, path)
    return found


def prefix_of(words: str) -> str:
    """Return the prefix that a user has typed, from wherever it is read later."""
    return layout.meant_anywhere(words) if words else words


def find(words: str, table: ImplementationTable, programs: Iterable[str]) -> Installed:
    """Return the MPI under a prefix, which must have these programs; raises PrefixError."""
    if not words:
        raise PrefixError("no folder is named; name the one that contains the MPI's bin/ and lib/")
    prefix = Path(prefix_of(words))
    try:
        is_folder = prefix.is_dir()
    except OSError as error:
        raise PrefixError(f"{prefix} cannot be entered: {error.strerror}") from None
    if not is_folder:
        raise PrefixError(
            f"{prefix} is not a folder; give the one that contains the MPI's bin/ and lib/"
        )
    if re.search(r"[\s:,]", str(prefix)):
        raise PrefixError(
            f"{prefix} contains a space, a comma or a colon, which a search path cannot"
        )
    for name in programs:
        if not os.access(prefix / "bin" / name, os.X_OK):
            raise PrefixError(
                f"there is no program bin/{name} under {prefix}; give the folder that contains "
                "the MPI's own bin/ and lib/"
            )
    found = list(interfaces(prefix).values())
    if not found:
        raise PrefixError(
            f"there is no shared library of MPI (libmpi.so.N) under {prefix}/lib; an MPI with "
            "static libraries only cannot be used: install it with shared ones"
        )
    library = found[0]
    asked = _ask(prefix, sys.executable, "-c", ASK, library)
    if asked.returncode:
        reason = sentence_in(asked.stderr) or "it said nothing"
        raise PrefixError(f"{library} cannot be identified: {reason}")
    said = asked.stdout.strip()
    for family, common in table.families.items():
        version = common.version_in(said)
        if version:
            pmi, evidence = _pmi_of(prefix, library, said, common.pmi)
            return Installed(prefix, library, said, family, version, pmi, evidence)
    raise PrefixError(
        f"{library} says that it is “{said.partition(chr(10))[0]}”, which matches no family's "
        f"`says` in {TABLE}; add a family"
    )


def _ask(prefix: Path, *words: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a command that only queries an MPI; raises PrefixError if it does not end."""
    try:
        return subprocess.run(
            words, env=environment_of(prefix), stdin=subprocess.DEVNULL,
            capture_output=True, text=True, errors="replace", timeout=PATIENCE_S,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise PrefixError(
            f"{' '.join(map(str, words))[-200:]} did not end within {PATIENCE_S:g} s: check "
            f"whether the file system of {prefix} responds, and whether its MPI waits for a daemon"
        ) from None


def _pmi_of(prefix: Path, library: Path, said: str, of_family: Pmi) -> tuple[Pmi, str]:
    """Return how a scheduler starts its ranks, and the evidence."""
    linked = " ".join(libraries_of([library], prefix)[0])
    of_name: dict[str, Pmi] = {"libpmix.so": "pmix", "libpmi2.so": "pmi2"}
    for name, pmi in of_name.items():
        if name in linked:
            return pmi, f"{library.name} is linked with {name}"
    information = prefix / "bin" / "ompi_info"
    if information.exists():
        answer = _ask(prefix, information).stdout
        of_module: dict[str, Pmi] = {r"(?:ext|pmix)\w+": "pmix", r"s[12]": "pmi2"}
        for module, pmi in of_module.items():
            found = re.search(rf"MCA pmix: ({module})\b", answer)
            if found:
                return pmi, f"ompi_info names the module {found[1]}"
    configured = re.search(r"--with-(?:pm|pmi|pmix|pmi2)(?:=\S+)?(?=\s|'|$)", said)
    if configured:
        return ("pmix" if "pmix" in configured[0] else "pmi2"), f"configured {configured[0]}"
    return of_family, "the default of its family, since nothing else indicates one"


def libraries_of(files: list[Path], prefix: Path) -> tuple[dict[str, Path], dict[str, Path]]:
    """Return the libraries that files load, by name, and those not found, with who needs them."""
    found: dict[str, Path] = {}
    missing: dict[str, Path] = {}
    if not files:
        return found, missing
    said = _ask(prefix, "ldd", *files).stdout
    of = files[0]
    for line in said.splitlines():
        if line.endswith(":") and not line.startswith("\t"):
            of = Path(line[:-1])
        match = re.match(r"\s+(\S+) => (not found|/\S+)", line)
        if match and match[2] == "not found":
            missing.setdefault(match[1], of)
        elif match:
            found.setdefault(match[1], Path(match[2]))
    return found, missing
