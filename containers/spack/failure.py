"""Why a build by Spack failed: which package, the first error of its log, what is known of it."""

import re
from pathlib import Path

from containers.commands import StepError
from records.causes import known_in, one_line

#: How many lines a sentence has of what is missing.
MOST_LINES = 12
#: Where Spack says of which package it speaks, the surest first.
PACKAGE = (
    re.compile(r"Skipping build of \S+ since (?P<name>\S+)-[a-z0-9]{32} failed"),
    re.compile(r"/spack-stage-(?P<name>\S+?)-[a-z0-9]{32}/"),
    re.compile(r"^==> (?P<name>\S+): Executing phase"),
    re.compile(r"^==> No binary for (?P<name>\S+)-[a-z0-9]{32} found"),
)
#: What Spack itself takes for an error in a package's log, and how the tools name theirs.
MARKED = re.compile(r"^\s*>>\s+\d+\s+(?P<line>.*)$")
ERROR = re.compile(
    r"\berror: |\bError: |undefined reference to|cannot find -l|No rule to make target"
    r"|: command not found|: not found$|No space left on device"
)
#: Of Spack's own lines, the ones that say that something failed, and not what.
OF_SPACK = re.compile(r"^==> |^FATAL: |^\s*'")
#: What is missing from an image, said by missing_libraries.sh.
MISSING = re.compile(r"^missing library: (?P<line>.*)$")

#: What is known of an error of compiling, by its words: the first that fits. What ails machines is
#: known to `records.causes`.
KNOWN = (
    (r"All fetchers failed|FetchError",
     "its source is neither in the mirror nor to be had from here: make spack-sources "
     "SOURCES=<folder> lists what is missing, and SOURCES=<folder> serves it to the build"),
    (r"ChecksumError|checksum failed",
     "the file is not the one that the recipe knows: find out which of the two is wrong"),
    (r"cannot find -l(?P<what>[^\s:]+)",
     "the linker has no lib{what}: a library of the base may need it privately (pkg-config "
     "--static and the dependency_libs of its .la name such); add its development package to "
     "packages.build, and what it needs at run time to packages.run, in "
     "containers/implementations.yaml"),
    (r"fatal error: (?P<what>\S+): No such file",
     "{what} is in no package of the base: add the development package that has it to "
     "packages.build in containers/implementations.yaml"),
    (r"Type mismatch (between actual argument|in argument)",
     "gfortran 10 and newer refuse what older ones let pass: -fallow-argument-mismatch lets it"),
    (r"(?:unknown argument|unsupported option|unrecognized command-line option):? "
     r"['\u2018](?P<what>-[^'\u2019]+)",
     "the compiler does not know {what}, which is another compiler's: it comes from the package's "
     "recipe or from an option (cflags); leave it out, or build that package with the other one"),
    (r"\[-W(error=)?(implicit|incompatible|int-conversion|return-mismatch)",
     "the compiler is newer than the source, and refuses what older ones only warned of"),
    (r"undefined reference to",
     "the libraries that are linked do not belong to the headers, or one is not named"),
    (r"internal compiler error: Killed|fatal error: Killed signal",
     "the memory was not enough for the compiler"),
)  # fmt: skip


class SpackFailure(StepError):
    """A build by Spack has failed; the text says where, why, and how to go on."""

    def __init__(self, implementation: str, log: Path) -> None:
        """Read the log of the build of an implementation's image."""
        Exception.__init__(self, explained(implementation, log))


def explained(implementation: str, log: Path) -> str:
    """Return what failed in the build of an image by Spack, in words."""
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    again = f"make images BUILDER=spack IMPLEMENTATIONS={implementation}"
    missing = [match["line"] for line in lines if (match := MISSING.match(line))]
    if missing:
        # The last one says what to do about all of them.
        *shown, advice = missing
        more = [f"    and {len(shown) - MOST_LINES} more"] if len(shown) > MOST_LINES else []
        return "\n".join([
            f"{implementation}: programs or libraries of the new image do not find all that they "
            "need:",
            *(f"    {one_line(line)}" for line in shown[:MOST_LINES]), *more,
            f"{advice}; then: {again}",
            f"log: {log}",
        ])  # fmt: skip
    package, error = package_in(lines), first_error(lines)
    said = [f"{implementation}: Spack could not build {package or 'it'}"]
    if error:
        said += ["the first error is:", f"    {one_line(error)}"]
        if known := known_of(error):
            said.append(known)
    else:
        said += ["its log ends with:", *(
            f"    {one_line(line)}" for line in [one for one in lines if one.strip()][-8:]
        )]  # fmt: skip
    said += [
        f"what was built before {package or 'that'} is kept, and the next try goes on there: "
        f"{again}",
        f"log: {log}",
    ]
    return "\n".join(said)


def package_in(lines: list[str]) -> str | None:
    """Return the name and version of the package that failed."""
    for pattern in PACKAGE:
        found = [match["name"] for line in lines if (match := pattern.search(line))]
        if found:
            return found[-1]
    return None


def first_error(lines: list[str]) -> str | None:
    """Return the line of a log that says what went wrong first."""
    for line in lines:
        if match := MARKED.match(line):
            marked = match["line"].strip()
            # Spack breaks long lines in its summary; the package's own log may have it whole.
            return next((one.strip() for one in lines if one.strip().startswith(marked)), marked)
    for line in lines:
        if not OF_SPACK.match(line) and ERROR.search(line):
            return line.strip()
    for line in lines:
        if line.startswith("==> Error: "):
            return line.removeprefix("==> Error: ").strip()
    return None


def known_of(error: str) -> str | None:
    """Return what is known of an error, in words."""
    for pattern, words in KNOWN:
        if match := re.search(pattern, error):
            return words.format(**match.groupdict())
    known = known_in(error)
    return known.sentence if known else None
