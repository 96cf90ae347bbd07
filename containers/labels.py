"""The labels of an image: one table of what each may contain, and their typed values.

A label is data that came with an image, so anybody may have written it. It decides how ranks start
and what is believed about a launch, so a label that breaks the table's rule is refused wherever it
is read: from a SIF, from images.lock, from another lock, from a bundle. Labels that begin with
`org.wyeast.` and are not in the table are also refused: a newer checkout's label may decide how
ranks start, and a launch without it would measure something else. What an image must not decide is
not a label at all: which folders of the machine are bound into its containers comes from the site
and from the table of implementations.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, cast

PREFIX = "org.wyeast."
VARIANT = "variant."
#: Parts of regular expressions, also used by the table of implementations.
VARIABLE_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
VARIABLE_VALUE = r"[A-Za-z0-9_.:/@%+=^-]+"
PROGRAM_NAME = r"[A-Za-z0-9][A-Za-z0-9_.-]*"
NAME = r"[a-z0-9][a-z0-9_.-]*"
VERSION = r"[A-Za-z0-9][A-Za-z0-9_.+~-]*"
OPTION = r"[A-Za-z0-9_.:=,/@%+-]+"
#: A word of Spack's specifications.
BUILD_OPTION = r"[+~]?[a-z0-9][A-Za-z0-9_.:=,-]*"
#: How much of a wrong label a sentence repeats.
SHOWN = 80

Pmi = Literal["pmix", "pmi2", "daemons"]
#: The interface that programs call; each experiment uses one.
Interface = Literal["mpi", "pvm"]


class LabelError(Exception):
    """A label breaks the table's rule; the text names the image, the label and the rule."""


@dataclass(frozen=True)
class LabelRule:
    """What a label may contain: text that matches a pattern, or such words with single spaces."""

    sentence: str
    pattern: str
    words: bool = False

    def admits(self, value: str) -> bool:
        """Return whether a label's value obeys the rule."""
        parts = value.split(" ") if self.words and value else [] if self.words else [value]
        return all(re.fullmatch(self.pattern, part) for part in parts)


_PLACEMENT = LabelRule(
    "it must be options that contain only letters, digits and _.:=,/@%+-", OPTION, words=True
)
_VARIABLES = LabelRule(
    "it must be words VARIABLE=value, with values that contain only letters, digits and _.:/@%+=^-",
    f"{VARIABLE_NAME}={VARIABLE_VALUE}",
    words=True,
)
_VERSION = LabelRule("it must be a version, with only letters, digits and ._+~-", VERSION)
#: Every label, without its prefix; in addition there is `variant.NAME`.
RULES: dict[str, LabelRule] = {
    "implementation": LabelRule("it must contain only lower-case letters, digits and ._-", NAME),
    "family": LabelRule("it must contain only lower-case letters, digits and ._-", NAME),
    "version": LabelRule("it must contain only letters, digits and ._+~-", VERSION),
    "builder": LabelRule("it must be wheel, debian, prefix or spack", "wheel|debian|prefix|spack"),
    "interface": LabelRule("it must be mpi or pvm", "mpi|pvm"),
    "pmi": LabelRule("it must be pmix, pmi2 or daemons", "pmix|pmi2|daemons"),
    "mpiexec": LabelRule(
        "it must be a program's name or absolute path, with only letters, digits and _.+-",
        rf"{PROGRAM_NAME}|(?:/[A-Za-z0-9_.+-]+)+",
    ),
    "mpiexec.pinned": _PLACEMENT,
    "mpiexec.oversubscribed": _PLACEMENT,
    "eager_limit": LabelRule("it must be a list of names of variables", VARIABLE_NAME, words=True),
    "init_wait": _VARIABLES,
    "foreign_programs": LabelRule(
        "it must be a list of names of programs", PROGRAM_NAME, words=True
    ),
    "hpl": _VERSION,
    "nas": LabelRule("it must be official", "official"),
    "pages": LabelRule("it must be huge", "huge"),
    "spack_version": _VERSION,
    "build_options": LabelRule(
        "it must be words of a specification, with only letters, digits and +~_.:=,-",
        BUILD_OPTION,
        words=True,
    ),
}


def wrong_label(words: object) -> str | None:
    """Return what is wrong with labels, in words that name the label and its rule, if anything."""
    if not isinstance(words, Mapping):
        return "its labels are not names with values"
    for label, value in words.items():
        if not isinstance(label, str) or not isinstance(value, str):
            return f"the label {_shown(label)} is {_shown(value)}; both must be text"
        if not label.startswith(PREFIX):
            # Apptainer's own, and those of the base's maker: nothing reads them.
            continue
        name = label.removeprefix(PREFIX)
        rule = RULES.get(name)
        if name.startswith(VARIANT):
            if not re.fullmatch(NAME, name.removeprefix(VARIANT)):
                return f"the label {_shown(label)} names a variant: it may contain only " \
                    "lower-case letters, digits and ._-"  # fmt: skip
            rule = _VARIABLES
        if name == "binds":
            return (
                f"the label {label} is {_shown(value)}; an image does not choose which folders of "
                "the machine its containers see"
            )
        if rule is None:
            return (
                f"the label {_shown(label)} is unknown here; a label may decide how ranks start, "
                "so none is ignored: use the checkout that made the image, or a newer one"
            )
        if not rule.admits(value):
            return f"the label {label} is {_shown(value)}; {rule.sentence}"
    return None


def _shown(value: object) -> str:
    text = ascii(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


def checked(words: object, image: str) -> dict[str, str]:
    """Return an image's labels unchanged; raises LabelError if one is not valid."""
    wrong = wrong_label(words)
    if wrong:
        raise LabelError(f"{image}: {wrong}; the image is not used")
    return dict(cast(Mapping[str, str], words))


@dataclass(frozen=True)
class BoundMpi:
    """The machine's own MPI that is bound into an image: facts about the machine, not labels."""

    variant: str
    #: Its launcher, with the path that it has in the container as on the machine.
    mpiexec: str
    #: What its library says of itself.
    library: str
    #: The files of its libraries that images take.
    taken: tuple[str, ...]
    #: Which folders are bound, each with its place in the container.
    binds: tuple[tuple[str, str], ...]
    #: The variables that the containers have for it.
    variables: Mapping[str, str]
    #: What of an image's labels is its own instead.
    labels: Mapping[str, str]

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> "BoundMpi":
        """Return what containers.host_mpi found; raises LabelError for invalid labels."""
        return cls(
            variant=facts["variant"],
            mpiexec=f"{facts['prefix']}/bin/mpiexec",
            library=facts["library"],
            taken=tuple(facts["taken"]),
            binds=tuple((source, place) for source, place in facts["binds"]),
            variables=dict(facts["variables"]),
            labels=checked(facts["labels"], f"the MPI under {facts['prefix']}"),
        )


@dataclass(frozen=True)
class Labels:
    """An image's description of itself; None for a label that it does not have."""

    implementation: str | None = None
    family: str | None = None
    version: str | None = None
    builder: str | None = None
    interface: Interface | None = None
    pmi: Pmi | None = None
    mpiexec: str | None = None
    #: Options of mpiexec where each rank has a core, and where ranks share cores.
    pinned: tuple[str, ...] | None = None
    oversubscribed: tuple[str, ...] | None = None
    #: The variables that set up to which size messages are sent without asking.
    eager_limit: tuple[str, ...] = ()
    #: The variables that spare every rank a wait in MPI_Init that nothing needs.
    init_wait: Mapping[str, str] = field(default_factory=dict)
    #: Programs of others that speak the library's binary interface.
    foreign_programs: tuple[str, ...] = ()
    #: The version of HPL, and whether NPB's own programs are in the image.
    hpl: str | None = None
    nas: Literal["official"] | None = None
    #: The variables that choose each variant.
    variants: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    #: The machine's own MPI that replaces the image's.
    bound: BoundMpi | None = None

    @classmethod
    def of(cls, words: object, image: str, bound: BoundMpi | None = None) -> "Labels":
        """Return the labels of an image, called `image` in messages; raises LabelError.

        With a bound MPI they are that one's as far as it has its own.
        """
        own = checked(words, image) | dict(bound.labels if bound else {})
        named = {key.removeprefix(PREFIX): value for key, value in own.items()}
        variants = {
            name.removeprefix(VARIANT): _variables(words)
            for name, words in named.items()
            if name.startswith(VARIANT)
        }

        def words_of(name: str) -> tuple[str, ...] | None:
            return tuple(named[name].split()) if name in named else None

        return cls(
            implementation=named.get("implementation"),
            family=named.get("family"),
            version=named.get("version"),
            builder=named.get("builder"),
            interface=cast(Interface | None, named.get("interface")),
            pmi=cast(Pmi | None, named.get("pmi")),
            mpiexec=bound.mpiexec if bound else named.get("mpiexec"),
            pinned=words_of("mpiexec.pinned"),
            oversubscribed=words_of("mpiexec.oversubscribed"),
            eager_limit=words_of("eager_limit") or (),
            init_wait=_variables(named.get("init_wait", "")),
            foreign_programs=words_of("foreign_programs") or (),
            hpl=named.get("hpl"),
            nas=cast(Literal["official"] | None, named.get("nas")),
            variants=variants | ({bound.variant: dict(bound.variables)} if bound else {}),
            bound=bound,
        )


def _variables(words: str) -> dict[str, str]:
    pairs = (word.partition("=") for word in words.split())
    return {variable: value for variable, _, value in pairs}
