"""Builds of one MPI with other options, each an implementation of its own in the table.

An entry's `options` name them, each with what differs in Spack's specification of its MPI. Its name
is the entry's with the option's: `openmpi-4.1.4-source-cma-spack`. spack.yaml defines it from that.
"""

from pathlib import Path

from containers.spack import environment as spack_environment
from containers.spack.recipes import SpackError
from containers.table import TABLE, ImplementationTable
from records.files import write_whole


def with_options(specification: str, options: str) -> str:
    """Return a specification with some options in the place of its own, others at its end."""
    words = specification.split(" ")
    for option in options.split():
        same = [number for number, word in enumerate(words[1:], 1) if _key(word) == _key(option)]
        if same:
            words[same[0]] = option
        else:
            words.append(option)
    return " ".join(words)


def _key(word: str) -> str:
    """Return which option a word of a specification sets."""
    return word.partition("=")[0].lstrip("+~")


def wanted(table: ImplementationTable, defined: dict[str, str], name: str) -> str:
    """Return the specification of an implementation's MPI, as spack.yaml must define it.

    `defined` has what it defines: implementation → the specification of its MPI. Raises SpackError
    for one that it does not define and that is no build of another.
    """
    found = table.resolve(name)
    of, options = found.build_of, found.build_options
    if of is not None and options is not None:
        return with_options(wanted(table, defined, of), options)
    if name not in defined:
        raise SpackError(f"spack.yaml does not define {name}, which {TABLE} has; add it there")
    return defined[name]


def define(root: Path, table: ImplementationTable, name: str) -> bool:
    """Let spack.yaml define an implementation as the table says; return whether it changed.

    Raises SpackError where what it defines is not in one line as here, or not at all.
    """
    defined = spack_environment.environment_names(root)
    specification = wanted(table, defined, name)
    if defined.get(name) == specification:
        return False
    path = root / spack_environment.ENVIRONMENT
    lines = path.read_text().splitlines()
    own = [
        f"  - mpi: [{specification}]",
        f'    when: env.get("WYEAST_IMPLEMENTATION", "") == "{name}"',
    ]
    if name in defined:
        place = _condition(lines, name)
        lines[place - 1 : place + 1] = own
    else:
        place = _condition(lines, table.resolve(name).build_of or name)
        lines[place + 1 : place + 1] = own
    text = "\n".join(lines) + "\n"
    write_whole(path, text)
    return True


def _condition(lines: list[str], name: str) -> int:
    """Return the number of the line that chooses an implementation's MPI."""
    for number, line in enumerate(lines):
        is_one = line.startswith("    when: ") and line.endswith(f'== "{name}"')
        if is_one and number and lines[number - 1].startswith("  - mpi: ["):
            return number
    raise SpackError(
        f"{spack_environment.ENVIRONMENT} does not define {name} in two lines, `- mpi: […]` and "
        "`when: …`, as it does others; write them so"
    )
