"""Builds of one MPI with other options: what the table says of them, and the entries of that."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from containers import labels as image_labels

#: Words of Spack's specifications.
BuildOptions = Annotated[
    str, Field(pattern=f"^{image_labels.BUILD_OPTION}(?: {image_labels.BUILD_OPTION})*$")
]


#: What Spack builds besides: a package, its version, and words of its specification.
ProgramSpec = Annotated[
    str, Field(pattern=rf"^[a-z][\w-]*@=[\w.-]+(?: {image_labels.BUILD_OPTION})*$")
]


#: Of a part of the table, which has no other keys.
STRICT = ConfigDict(extra="forbid", frozen=True)


class Packages(BaseModel):
    """Debian packages that one implementation needs beyond those of the bases."""

    model_config = STRICT

    build: list[str] = []
    run: list[str] = []


class BuildOption(BaseModel):
    """What another build has otherwise; words alone are those of its MPI's specification.

    What is no option of the MPI, as another compiler, Spack is told by the site, in a folder of the
    option's name.
    """

    model_config = STRICT

    #: What differs in Spack's specification of the MPI.
    mpi: BuildOptions | None = None
    #: Debian packages that it needs in addition.
    packages: Packages = Packages()
    #: Debian packages of the bases that it must not have.
    without: list[str] = []
    #: Programs of others that it has besides those of all builds, as Spack's specifications.
    programs: list[ProgramSpec] = []

    @model_validator(mode="before")
    @classmethod
    def of_words(cls, given: Any) -> Any:
        """Return what is given as a mapping, where it is words."""
        return {"mpi": given} if isinstance(given, str) else given

    @model_validator(mode="after")
    def has_each_program_once(self) -> "BuildOption":
        """Refuse a package that is there twice, of which Spack installs one."""
        names = [program.partition("@")[0] for program in self.programs]
        if twice := [name for name in names if names.count(name) > 1]:
            raise ValueError(f"`programs` says twice which {twice[0]} is installed")
        return self

    def on(self, entry: dict[str, Any]) -> dict[str, Any]:
        """Return what an entry has otherwise with this option."""
        own = self.packages.model_dump()
        return {
            "packages": {stage: [*entry["packages"][stage], *own[stage]] for stage in own},
            "build_options": self.mpi,
            "without": self.without,
            "programs": self.programs,
        }


def with_builds(entries: dict[str, Any]) -> dict[str, Any]:
    """Return entries with one more for each of their `options`, after the one that has these.

    It is the entry that has them, but for its name and what the option changes. Raises ValueError
    where one is there already; what is no entry, or has no options, is left to whoever checks them.
    """
    found: dict[str, Any] = {}
    for name, entry in entries.items():
        found[name] = entry
        options = entry.get("options") if isinstance(entry, dict) else None
        for option in options if isinstance(options, dict) else ():
            own = f"{name.removesuffix('-spack')}-{option}-spack"
            if own in entries or own in found:
                has = "has an entry of its own"
                if own not in entries:
                    has = f"is one of {found[own]['build_of']}'s, too"
                raise ValueError(
                    f"implementations.{name}: `{own}`, a build of its `options`, {has}; rename one "
                    "of the two"
                )
            found[own] = {
                **{key: value for key, value in entry.items() if key not in ("options", "default")},
                "build_option": option,
                "build_of": name,
            }
    return found
