"""Builds of one MPI with other options, each an implementation of its own in the table.

An entry's `options` name them, each with what differs in Spack's specification of its MPI. Its name
is the entry's with the option's: `openmpi-4.1.4-source-cma-spack`. spack.yaml defines it from that,
and includes what the site says of the option.
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
    if found.build_of is not None:
        return with_options(wanted(table, defined, found.build_of), found.build_options or "")
    if name not in defined:
        raise SpackError(f"spack.yaml does not define {name}, which {TABLE} has; add it there")
    return defined[name]


def define(root: Path, table: ImplementationTable, name: str) -> bool:
    """Let spack.yaml define an implementation as the table says; return whether it changed.

    Raises SpackError where what it defines is not in one line as here, or not at all.
    """
    path = root / spack_environment.ENVIRONMENT
    before = path.read_text()
    lines = before.splitlines()
    defined = spack_environment.environment_names(root)
    specification = wanted(table, defined, name)
    if defined.get(name) != specification:
        _specify(lines, name, specification, table.resolve(name).build_of or name, name in defined)
    if option := table.resolve(name).build_option:
        _include(root, lines, option)
    text = "\n".join(lines) + "\n"
    if text == before:
        return False
    write_whole(path, text)
    return True


def _specify(lines: list[str], name: str, specification: str, of: str, there: bool) -> None:
    """Put the definition of an implementation into the lines, behind the one that it is of."""
    own = [
        f"  - mpi: [{specification}]",
        f'    when: env.get("WYEAST_IMPLEMENTATION", "") == "{name}"',
    ]
    place = _condition(lines, name if there else of)
    lines[place - 1 if there else place + 1 : place + 1] = own


def _include(root: Path, lines: list[str], option: str) -> None:
    """Let the lines include what the site of images says of an option, where that says something.

    Before what the site says of all builds, since of what is included the first wins. It is not
    optional: at a site that does not say what the option is there, the build would be without it.
    """
    folder = f"{spack_environment.OPTIONS}/{option}"
    if not (root / "site_configs" / spack_environment.SITE / "spack" / folder).is_dir():
        return
    own = [
        f"  - path: site_configs/$WYEAST_SITE/spack/{folder}",
        f'    when: env.get("WYEAST_IMPLEMENTATION", "").endswith("-{option}-spack")',
    ]
    if own[0] not in lines:
        try:
            place = lines.index("  include:") + 1
        except ValueError:
            raise SpackError(
                f"{spack_environment.ENVIRONMENT} has no line `  include:`, after which it would "
                f"say what the option {option} is"
            ) from None
        lines[place:place] = own


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
