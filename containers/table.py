"""The table of implementations, `containers/implementations.yaml`, read and checked."""

import difflib
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, Field, ValidationError

from containers import labels as image_labels
from containers.labels import Interface, Pmi
from containers.other_builds import STRICT, BuildOption, Packages, with_builds
from records import layout
from records.yaml_text import from_yaml
from site_configs.installation_entries import NAMED

TABLE = "containers/implementations.yaml"
#: Entries of this checkout alone: what `make image` has packed.
LOCAL = ".wyeast/implementations"
#: The variant of any image that has the machine's own MPI bound in.
HOST = "host"


class TableError(Exception):
    """The table is not as it must be; the text names file, entry and key."""


class _StrictEntry(BaseModel):
    model_config = STRICT


class Bases(_StrictEntry):
    """Debian packages of the bases."""

    build: list[str]
    run: list[str]
    #: What Spack needs beyond `build`.
    spack: list[str]


#: Words separated by spaces are how a label holds a variant, so that nothing has to be unquoted.
VariableName = Annotated[str, Field(pattern=f"^{image_labels.VARIABLE_NAME}$")]
VariableValue = Annotated[str, Field(pattern=f"^{image_labels.VARIABLE_VALUE}$")]
ProgramName = Annotated[str, Field(pattern=f"^{image_labels.PROGRAM_NAME}$")]
VariantName = Annotated[str, Field(pattern=f"^{image_labels.NAME}$")]


class Family(_StrictEntry):
    """What all versions of an implementation have in common."""

    interface: Interface = "mpi"
    pmi: Pmi
    mpiexec: str
    pinned: str
    oversubscribed: str
    environment: dict[str, str] = {}
    #: The command that compiles the programs.
    compiler: str = "/opt/mpi/bin/mpicc"
    packages: Packages = Packages()
    #: Files of the wheels that no image needs, as patterns of paths under the MPI's prefix.
    left_out: list[str] = []
    #: Scripts of containers/launchers/ that are installed next to the programs.
    launchers: list[str] = []
    #: Programs of others that speak the library's binary interface, each with the wheel of
    #: sources.lock that has it.
    foreign_programs: dict[ProgramName, str] = {}
    #: Other ways to run the same image: the variables that choose them.
    variants: dict[VariantName, dict[VariableName, VariableValue]] = {}
    #: The variables that set, in bytes, up to which size messages are sent without asking.
    eager_limit: list[VariableName] = []
    #: What spares every rank a wait in MPI_Init that nothing needs; StartUp goes without.
    init_wait: dict[VariableName, VariableValue] = {}
    #: How what the library says of itself begins, with the version as its group; by it an MPI under
    #: a prefix is known, and the one that ran.
    says: str | None = None

    def version_in(self, said: str) -> str | None:
        """Return the version in what a library says of itself; None for another family's."""
        match = re.match(self.says, said) if self.says else None
        return match[1] if match else None


class Packed(_StrictEntry):
    """What an image of an MPI under a prefix holds of this machine; `make image` writes it."""

    prefix: str
    #: What MPI_Get_library_version says.
    library: str
    #: Files under the prefix, and libraries from elsewhere, each with its SHA-256 (or, for a link,
    #: an arrow and its target).
    files: dict[str, str]
    libraries: dict[str, str]


class ImplementationEntry(_StrictEntry):
    """One implementation as the table has it; the keys of Family override the family's."""

    family: str
    version: str
    builder: Literal["wheel", "debian", "prefix", "spack"]
    default: bool = False
    #: For `spack`, what Spack calls the version, where that is not what the library says of itself.
    spack_version: str | None = None
    #: For `spack`, whether the MPI is the distribution's, installed by `packages`, and not built.
    external: bool = False
    #: For `spack`: other builds of it, each an implementation of its own.
    options: dict[VariantName, BuildOption] = {}
    #: Of such a build, whose entry is made from that: which option, and of which implementation.
    build_option: VariantName | None = None
    build_of: str | None = None
    #: The wheels of sources.lock that it is made of; its own name where nothing else is said.
    sources: Annotated[list[str], Field(min_length=1)] | None = None
    #: The definition, in containers/; where nothing is said, image.def, or spack.def for Spack.
    definition: str | None = None
    interface: Interface | None = None
    pmi: Pmi | None = None
    mpiexec: str | None = None
    pinned: str | None = None
    oversubscribed: str | None = None
    environment: dict[str, str] | None = None
    compiler: str | None = None
    packages: Packages | None = None
    left_out: list[str] | None = None
    launchers: list[str] | None = None
    foreign_programs: dict[ProgramName, str] | None = None
    variants: dict[VariantName, dict[VariableName, VariableValue]] | None = None
    eager_limit: list[VariableName] | None = None
    init_wait: dict[VariableName, VariableValue] | None = None
    packed: Packed | None = None


class Implementation(Family):
    """One implementation with everything that an image of it needs, the family's part included."""

    name: str
    family: str
    version: str
    builder: str
    default: bool
    spack_version: str | None = None
    external: bool = False
    #: Its lock and its bases decide what the image is, and not how the table asks for them: which
    #: option of which, what differs in Spack's specification, what the bases go without, which
    #: programs are there besides.
    build_option: Annotated[str | None, Field(exclude=True)] = None
    build_of: Annotated[str | None, Field(exclude=True)] = None
    build_options: Annotated[str | None, Field(exclude=True)] = None
    without: Annotated[list[str], Field(exclude=True)] = []
    programs: Annotated[list[str], Field(exclude=True)] = []
    sources: list[str]
    definition: str
    packed: Packed | None = None

    @property
    def prefix(self) -> str:
        """Return where the image has what is no package of Debian."""
        return self.packed.prefix if self.packed else "/opt/mpi"

    def labels(self) -> dict[str, str]:
        """Return the image's labels."""
        variants = {f"variant.{name}": _words(values) for name, values in self.variants.items()}
        names = " ".join(self.foreign_programs)
        foreign = {"foreign_programs": names} if names else {}
        differs = self.build_options or self.build_option
        return {
            f"{image_labels.PREFIX}{key}": value
            for key, value in {
                "implementation": self.name,
                "family": self.family,
                "version": self.version,
                "builder": self.builder,
                "interface": self.interface,
                "pmi": self.pmi,
                "mpiexec": self.mpiexec,
                "mpiexec.pinned": self.pinned,
                "mpiexec.oversubscribed": self.oversubscribed,
                **({"eager_limit": " ".join(self.eager_limit)} if self.eager_limit else {}),
                **({"init_wait": _words(self.init_wait)} if self.init_wait else {}),
                **({"spack_version": self.spack_version} if self.spack_version else {}),
                **({"build_options": differs} if differs else {}),
                **foreign,
                **variants,
            }.items()
        }


def _words(variables: dict[str, str]) -> str:
    """Return variables as labels have them."""
    return " ".join(f"{key}={value}" for key, value in variables.items())


class ImplementationTable(_StrictEntry):
    """The whole table."""

    bases: Bases
    families: dict[str, Family]
    implementations: dict[str, ImplementationEntry] = Field(min_length=1)

    def resolve(self, name: str) -> Implementation:
        """Return an implementation with its family's keys; a variant's name means the same one.

        Raises TableError for a name or a variant that the table does not have.
        """
        name, variant = split_variant(name)
        if name not in self.implementations:
            raise TableError(
                f"{TABLE} has no implementation `{name}`{_nearest(name, self.implementations)}; "
                f"it has {', '.join(self.implementations)}"
            )
        entry = self.implementations[name]
        if entry.family not in self.families:
            raise TableError(
                f"{TABLE}: implementations.{name}: family `{entry.family}` is not among families"
                f"{_nearest(entry.family, self.families)}"
            )
        own = entry.model_dump(exclude_none=True, exclude={"options"})
        merged = {**self.families[entry.family].model_dump(), **own, "name": name}
        if entry.build_of and entry.build_option:
            merged |= self._option(name, entry.build_of, entry.build_option).on(merged)
        merged.setdefault("sources", [name] if entry.builder == "wheel" else [])
        merged.setdefault("definition", "spack.def" if entry.builder == "spack" else "image.def")
        found = Implementation(**merged)
        if variant not in (None, HOST, *found.variants):
            assert variant is not None
            raise TableError(f"{TABLE}: {unknown_variant(name, variant, found.variants)}")
        if taken := {HOST, NAMED.removeprefix("+")} & found.variants.keys():
            raise TableError(
                f"{TABLE}: implementations.{name}: a variant cannot be called `{min(taken)}`: by "
                f"{name}+{min(taken)} something of the machine is meant, and no image's variant"
            )
        wrong = image_labels.wrong_label(found.labels())
        if wrong:
            raise TableError(f"{TABLE}: implementations.{name}: {wrong}")
        if entry.builder == "debian":
            _check_debian(found)
        if found.spack_version and entry.builder != "spack":
            raise TableError(
                f"{TABLE}: implementations.{name}: `spack_version` belongs to `builder: spack`; "
                "remove the key"
            )
        if found.external and not (entry.builder == "spack" and found.packages.build):
            raise TableError(
                f"{TABLE}: implementations.{name}: `external` belongs to `builder: spack` with an "
                "MPI of the distribution's that `packages.build` names; remove the key"
            )
        if entry.options and entry.builder != "spack":
            raise TableError(
                f"{TABLE}: implementations.{name}: `options` belong to `builder: spack`; remove "
                "the key"
            )
        if found.build_options and found.external:
            raise TableError(
                f"{TABLE}: implementations.{name}: the MPI is the distribution's, and not built "
                "with other options; remove `mpi` of that option"
            )
        if (entry.builder == "prefix") != bool(found.packed):
            raise TableError(
                f"{TABLE}: implementations.{name}: `builder: prefix` and `packed` belong together; "
                f"make image PREFIX=<where the MPI is> NAME={name} writes them"
            )
        return found

    def _option(self, name: str, of: str, option: str) -> BuildOption:
        entry = self.implementations.get(of)
        if entry is None or option not in entry.options:
            raise TableError(
                f"{TABLE}: implementations.{name}: {of} has no option `{option}`; write builds "
                "with other options as `options` of their implementation"
            )
        return entry.options[option]

    def defaults(self) -> list[str]:
        """Return the implementations that are built by default."""
        return [name for name, entry in self.implementations.items() if entry.default]

    def built_by(self, builder: str) -> list[str]:
        """Return the implementations that a builder builds."""
        return [name for name, entry in self.implementations.items() if entry.builder == builder]

    def choose(self, words: str) -> list[str]:
        """Return the names meant by `default`, `all`, or a comma-separated list.

        A name may be a variant's, such as `lam-7.1.4+lamd`; it is returned as it is given.
        Raises TableError for a name that the table does not have, and for an empty choice.
        """
        if words == "all":
            # Spack builds only what is named: it needs a Spack, and hours for most.
            return [n for n, entry in self.implementations.items() if entry.builder != "spack"]
        names = (
            self.defaults()
            if words == "default"
            else [name.strip() for name in words.split(",") if name.strip()]
        )
        if not names:
            raise TableError(f"`{words}` selects no implementation; {TABLE} has the names")
        for name in names:
            self.resolve(name)
        return list(dict.fromkeys(names))


def _check_debian(found: Implementation) -> None:
    if found.sources:
        raise TableError(
            f"{TABLE}: implementations.{found.name}: an implementation from Debian's packages has "
            "no "
            "`sources`; remove the key"
        )
    for stage in ("build", "run"):
        if not getattr(found.packages, stage):
            raise TableError(
                f"{TABLE}: implementations.{found.name}: an implementation from Debian's packages "
                f"needs their names in `packages.{stage}`"
            )


def _nearest(word: str, known: Any) -> str:
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.5)
    return f"; did you mean `{close[0]}`?" if close else ""


_MODELS: dict[str, type[BaseModel]] = {
    "bases": Bases,
    "families": Family,
    "implementations": ImplementationEntry,
}


def _sentence(error: Any, path: str) -> str:
    """Put one of pydantic's errors in words: where it is, what is wrong, what is meant."""
    where = [str(part) for part in error["loc"]]
    if error["type"] != "extra_forbidden":
        place = ".".join(where) or "the table"
        return f"{path}: {place}: {error['msg'][0].lower()}{error['msg'][1:]}"
    *parents, key = where
    model = _MODELS.get(where[0], ImplementationTable) if parents else ImplementationTable
    place = f"{'.'.join(parents)}: " if parents else ""
    return f"{path}: {place}unknown key `{key}`{_nearest(key, model.model_fields)}"


def parse_table(text: str, path: str = TABLE) -> ImplementationTable:
    """Return the table in a YAML text.

    Raises TableError that names file, entry and, for an unknown key, the nearest right one.
    """
    try:
        data = from_yaml(text, once=True)
    except yaml.YAMLError as error:
        raise TableError(f"{path}: not YAML: {' '.join(str(error).split())}") from None
    try:
        if isinstance(data, dict) and isinstance(data.get("implementations"), dict):
            data = {**data, "implementations": with_builds(data["implementations"])}
        table = ImplementationTable.model_validate(data)
    except ValidationError as error:
        raise TableError("\n".join(_sentence(e, path) for e in error.errors())) from None
    except ValueError as error:
        raise TableError(f"{path}: {error}") from None
    for name in table.implementations:
        table.resolve(name)
    return table


@cache
def load_table(root: Path) -> ImplementationTable:
    """Return the table of a checkout; raises TableError."""
    try:
        text = (root / TABLE).read_text()
        local = {
            path: path.read_text() for path in layout.all_seen(layout.home(root) / LOCAL, "*.yaml")
        }
    except OSError as error:
        raise TableError(f"{error.filename} cannot be read: {error.strerror}") from None
    table = parse_table(text)
    for path, words in local.items():
        table = with_entry(table, path.stem, words, layout.name_of(root, path))
    return table


def with_entry(table: ImplementationTable, name: str, text: str, path: str) -> ImplementationTable:
    """Return the table with one more entry, the YAML text of a file; raises TableError."""
    if name in table.implementations:
        raise TableError(f"{path}: {TABLE} also has {name}; remove one of the two")
    try:
        entry = ImplementationEntry.model_validate(from_yaml(text, once=True))
    except yaml.YAMLError as error:
        raise TableError(f"{path}: not YAML: {' '.join(str(error).split())}") from None
    except ValidationError as error:
        place = ("implementations", name)
        found = [{**e, "loc": (*place, *e["loc"])} for e in error.errors()]
        raise TableError("\n".join(_sentence(e, path) for e in found)) from None
    more = table.model_copy(update={"implementations": {**table.implementations, name: entry}})
    more.resolve(name)
    return more


def split_variant(name: str) -> tuple[str, str | None]:
    """Return the implementation and the variant of a name: `lam-7.1.4+lamd`, or without variant."""
    implementation, plus, variant = name.partition("+")
    return implementation, variant if plus else None


def unknown_variant(implementation: str, variant: str, known: Iterable[str]) -> str:
    """Return the sentence about a variant that an implementation does not have."""
    names = list(known)
    if not names:
        return f"{implementation} has no variants; name it without `+{variant}`"
    return (
        f"{implementation} has no variant `{variant}`; use one of "
        f"{', '.join(f'{implementation}+{name}' for name in names)}"
    )
