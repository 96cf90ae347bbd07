"""Builds of one MPI with other options, each an implementation of its own in the table.

An entry's `options` name them, each with what differs in Spack's specification of its MPI. Its name
is the entry's with the option's: `openmpi-4.1.4-source-cma-spack`. spack.yaml defines it and the
programs that it has besides from that, and includes what the site says of the option.
"""

from pathlib import Path

from containers.other_builds import BuildOption
from containers.spack import environment as spack_environment
from containers.spack.recipes import SpackError
from containers.table import TABLE, ImplementationTable
from records.files import write_whole
from records.yaml_text import from_yaml

#: By this in a name, spack.yaml knows an MPI that is built from the distribution's sources, and has
#: programs of these for it.
FROM_SOURCE = "-source-"


def with_options(specification: str, options: str) -> str:
    """Return a specification with some options in the place of its own, others at its end.

    Raises SpackError for options of which one takes another's place.
    """
    words, keys = specification.split(" "), [_key(one) for one in options.split()]
    if repeated := [key for key in keys if keys.count(key) > 1]:
        raise SpackError(f"`{options}` says twice what {repeated[0]} is; leave out one of the two")
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

    With the programs that the table says it has besides. Raises SpackError where what it defines is
    not in one line as here, or not at all.
    """
    path = root / spack_environment.ENVIRONMENT
    before = path.read_text()
    lines = before.splitlines()
    found = table.resolve(name)
    if found.build_of and (FROM_SOURCE in name) != (FROM_SOURCE in found.build_of):
        raise SpackError(
            f"{name} has {FROM_SOURCE} in its name, by which {spack_environment.ENVIRONMENT} "
            f"chooses other programs than those of {found.build_of}; rename the option "
            f"{found.build_option}"
        )
    defined = spack_environment.environment_names(root)
    specification = wanted(table, defined, name)
    if defined.get(name) != specification:
        _specify(lines, name, specification, found.build_of or name, name in defined)
    if found.build_of:
        _have(lines, name, found.programs)
    if found.build_of and found.build_option:
        says = table.implementations[found.build_of].options[found.build_option]
        _include(root, lines, name, found.build_option, is_needed=says == BuildOption())
    text = "\n".join(lines) + "\n"
    if found.build_of:
        _refuse_other_programs(text, name, found.programs)
    if text == before:
        return False
    write_whole(path, text)
    return True


def _chooses(name: str) -> str:
    """Return the line of spack.yaml by which an entry is of one implementation alone."""
    return f'    when: env.get("WYEAST_IMPLEMENTATION", "") == "{name}"'


def _specify(lines: list[str], name: str, specification: str, of: str, there: bool) -> None:
    """Put the definition of an implementation into the lines, behind the one that it is of."""
    own = [f"  - mpi: [{specification}]", _chooses(name)]
    place = _condition(lines, name if there else of)
    lines[place - 1 if there else place + 1 : place + 1] = own


def _have(lines: list[str], name: str, programs: list[str]) -> None:
    """Let the lines define the programs that an implementation has besides, and no others of it."""
    condition = _chooses(name)
    head = "  - programs:"
    own = [head, *(f"    - {one}" for one in programs), condition] if programs else []
    for end in [number for number, line in enumerate(lines) if line == condition]:
        start = end - 1
        while lines[start].startswith("    - "):
            start -= 1
        if lines[start] == head:
            lines[start : end + 1] = own
            return
    place = _condition(lines, name) + 1
    lines[place:place] = own


def _refuse_other_programs(text: str, name: str, programs: list[str]) -> None:
    """Raise SpackError where a text of spack.yaml has other programs for an implementation alone.

    Somebody has written them in lines that are not known here for what they are.
    """
    condition = _chooses(name).strip().removeprefix("when: ")
    said = [
        entry["programs"]
        for entry in from_yaml(text)["spack"]["definitions"]
        if "programs" in entry and entry.get("when") == condition
    ]
    if said != ([programs] if programs else []):
        raise SpackError(
            f"{spack_environment.ENVIRONMENT} does not have the programs of {name} in a line each, "
            "between `- programs:` and `when: …`; write them so, or remove them"
        )


def _include(root: Path, lines: list[str], name: str, option: str, is_needed: bool) -> None:
    """Let the lines include what the site of images says of a build's option, if it says something.

    Before what the site says of all builds, since of what is included the first wins. It is not
    optional: at a site that does not say what the option is there, the build would be without it.
    The build is named in full: `…-ucx-clang-spack` is no build of the option `clang`. `is_needed`:
    nothing else says what the option is; raises SpackError then.
    """
    folder = f"{spack_environment.OPTIONS}/{option}"
    place = f"site_configs/{spack_environment.SITE}/spack/{folder}"
    if not (root / place).is_dir():
        if is_needed:
            raise SpackError(
                f"{TABLE} does not say what differs in {name}, and there is no folder {place}: it "
                "would be built as all others"
            )
        return
    own = [f"  - path: site_configs/$WYEAST_SITE/spack/{folder}", _chooses(name)]
    if own not in (lines[number : number + 2] for number in range(len(lines))):
        try:
            first = lines.index("  include:") + 1
        except ValueError:
            raise SpackError(
                f"{spack_environment.ENVIRONMENT} has no line `  include:`, after which it would "
                f"say what the option {option} is"
            ) from None
        lines[first:first] = own


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
