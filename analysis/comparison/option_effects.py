"""Which build option moved what: images that Spack built, and all that two of them differ in.

What differs between two images is one option's only where they differ in nothing else that is known
of them: packages with version, target, options and sources, compiler, programs, the distribution's
packages, labels. A package that only one of them has is no difference of its own where the package
whose option differs needs it. Another compiler, another BLAS and another target of all packages are
one option each, in however many packages that shows. Where images differ in more than one thing,
nothing is attributed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from analysis.comparison.caveats.comparability import facts_of, plain_words, shown, value_at
from analysis.comparison.result import Comparison
from analysis.comparison.tables import INTERVAL_OF_VERDICT
from analysis.tables.table import Column, Row, Table
from records.counting import how_many

NAME = "options"
#: What people see of an answer here, and under which headings.
SHOWN = {
    "group": "of", "implementations": "implementations", "ratio": "ratio",
    "ratio_interval": INTERVAL_OF_VERDICT, "verdict": "verdict",
}  # fmt: skip
#: So many differences are named.
MOST_NAMED = 4
LABEL = "org.wyeast."
#: What the image is called, and words of what its packages say in full.
OF_NAMES = {f"{LABEL}implementation", f"{LABEL}build_options"}
#: Of an image's own manifest: what was compiled with what, and by which Spack.
RECORDED = (
    ("compiler", "command"), ("compiler", "version"), ("compiler", "flags"),
    ("benchmarks_sha256",), ("base", "bootstrap"), ("base", "suite"), ("base", "image"),
    ("spack", "version"), ("spack", "commit"), ("spack", "packages_commit"),
)  # fmt: skip
#: What packages are there for that others are built with, of which one takes another's place: by
#: the names of Spack's packages; and what of the image's own manifest says the same.
ROLES = {
    "compiler": (
        {"gcc", "llvm", "aocc", "nvhpc", "intel-oneapi-compilers", "intel-oneapi-compilers-classic",
         "cce", "acfl", "arm-gnu-toolchain", "llvm-amdgpu", "fj"},
        ("compiler command", "compiler version"),
    ),
    "BLAS": (
        {"openblas", "blis", "amdblis", "netlib-lapack", "atlas", "flexiblas", "armpl-gcc",
         "intel-oneapi-mkl", "cray-libsci", "essl", "nvpl-blas", "fujitsu-ssl2"},
        (),
    ),
}  # fmt: skip
#: Flags of compilers, that any package may be built with: where none is set, none is told.
FLAGS = dict.fromkeys(("cflags", "cppflags", "cxxflags", "fflags", "ldflags", "ldlibs"), "none")
#: What another version of a package differs in by itself; of the languages that it compiles, a
#: compiler says how it was found.
OF_A_VERSION = {"version", "sources", "origin", "languages"}
#: What an image does not tell, which may be the same and may not.
UNKNOWN = "unknown"
#: Where the packages of the distribution are, and how they are called here.
OF_THE_DISTRIBUTION, DEBIAN = "/usr", "Debian package "
#: What is known of an image's packages, and of the image as the package without a name.
PackagesOf = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class OptionChange:
    """Something that two builds have otherwise: of a package, or of the image as a whole.

    `roots` are the packages that are there for it, with all that these need.
    """

    package: str
    option: str
    before: str
    after: str
    roots: frozenset[str] = frozenset()

    @property
    def words(self) -> str:
        """Return it in words."""
        of = f"{self.package}'s " if self.package else ""
        return f"{of}{self.option} ({shown(self.before)} and {shown(self.after)})"


@dataclass(frozen=True)
class BuildPair:
    """Two images that Spack built, one of which is the base, and what they differ in.

    `following` is what only one of them has, because of the one option that differs.
    """

    base: str
    other: str
    changes: tuple[OptionChange, ...]
    following: tuple[str, ...] = ()

    @property
    def is_one(self) -> bool:
        """Return whether they differ in one option and nothing else, and that for certain."""
        return len(self.changes) == 1 and all(
            UNKNOWN not in (one.before, one.after) for one in self.changes
        )

    @property
    def words(self) -> str:
        """Return in words what they differ in, the base's first."""
        if not self.changes:
            return "nothing that is known about them"
        named = "; ".join(one.words for one in self.changes[:MOST_NAMED])
        more = len(self.changes) - MOST_NAMED
        with_it = f", with {', '.join(self.following)}" if self.following else ""
        return f"{named}{f'; and {more} more' if more > 0 else ''}{with_it}"

    @property
    def sentence(self) -> str:
        """Return what that means for the differences between them."""
        both = f"{self.base} and {self.other} were built with"
        if self.is_one:
            return (
                f"{both} one difference, {self.words}: whatever is shown to differ between them is "
                "due to that option."
            )
        if not self.changes:
            return f"{both} no known difference: nothing between them is due to a build option."
        many = how_many(len(self.changes), "difference")
        return f"{both} {many}, {self.words}: no result is attributed to any single one of these."


def build_pairs(comparison: Comparison) -> list[BuildPair]:
    """Return what each two images that were compared differ in, of those that Spack built.

    Nothing of images of two families, which are compared for all that they differ in.
    """
    manifest = comparison.campaign.manifest.facts
    asked = dict.fromkeys(
        (one.base, other) for one in comparison.pairs for group in one.groups
        for other in group.verdicts
    )  # fmt: skip
    found = (build_pair(manifest, base, other) for base, other in asked)
    return [pair for pair in found if pair is not None]


def build_pair(manifest: Mapping[str, Any], base: str, other: str) -> BuildPair | None:
    """Return what two images of a campaign differ in; None where that is not known."""
    images = facts_of(manifest, base), facts_of(manifest, other)
    families = [value_at(image, ("labels", f"{LABEL}family")) for image in images]
    if not all(image.get("packages") and image.get("manifest") for image in images):
        return None
    if families[0] is None or families[0] != families[1]:
        return None
    # Tools may be there in two versions, which nothing else tells apart.
    twice = {name for image in images for name in _twice(image["packages"])}
    one, two = _packages(base, images[0], twice), _packages(other, images[1], twice)
    changes: list[OptionChange] = []
    # What only one of them has: a package, or an option of one that both have.
    lone = [(name, "") for name in (*one, *two) if not (name in one and name in two)]
    for name in one.keys() & two.keys():
        before, after = one[name]["settings"], two[name]["settings"]
        for key in sorted({*before, *after}):
            if key not in before or key not in after:
                lone.append((name, key))
            elif before[key] != after[key]:
                changes.append(OptionChange(name, key, before[key], after[key]))
    changes = _with_roles(changes, one, two)
    needed = set[str]()
    if len(changes) == 1:
        for root in changes[0].roots or {changes[0].package}:
            needed |= _needed(one, root, two) | _needed(two, root, one)
    following = [(name, key) for name, key in lone if name in needed]
    for name, key in sorted(set(lone) - set(following)):
        before, after = (_shown(side, name, key) for side in (one, two))
        changes.append(OptionChange(name, key or "presence", before, after))
    words = [f"{name}'s {key}" if key else _called({**one, **two}, name) for name, key in following]
    changes.sort(key=lambda change: (change.package, change.option))
    return BuildPair(base, other, tuple(changes), tuple(sorted(words)))


def _with_roles(
    changes: list[OptionChange], one: PackagesOf, two: PackagesOf
) -> list[OptionChange]:
    """Return changes with one for each role that another package has, and for another target.

    It stands for those of the packages that have or had the role, and of what they bring.
    """
    kept, made = changes, list[OptionChange]()
    for role, (known, told) in ROLES.items():
        if change := _role_change(role, known, one, two):
            made.append(change)
            # What else one of them has otherwise, as threads of a BLAS, is no part of it.
            kept = [
                other for other in kept
                if not (other.package in change.roots and other.option in OF_A_VERSION)
                and (other.package or other.option not in told)
            ]  # fmt: skip
    targets = {
        tuple(str(side[name]["settings"].get("target")) for side in (one, two))
        for name in one
        if name in two and "target" in one[name]["settings"]
    }
    if len(targets) == 1:
        ((before, after),) = targets
        if before != after:
            kept = [other for other in kept if other.option != "target" and not _of_target(other)]
            made.append(OptionChange("", "target", before, after))
    return [*kept, *made]


def _role_change(
    role: str, known: set[str], one: PackagesOf, two: PackagesOf
) -> OptionChange | None:
    """Return that packages need one package of a role in the place of another; None where not.

    Those that do are named, unless they are all that need one of the role.
    """
    runtimes = {f"{name}-runtime" for name in known}
    used = {
        name: [
            {(need, str(side[need]["settings"]["version"]))
             for need in side[name]["needs"] if need.partition("@")[0] in known and need in side}
            for side in (one, two)
        ]
        for name in one
        if name in two and name.partition("@")[0] not in runtimes
    }  # fmt: skip
    nothing = set[tuple[str, str]]()
    gone = nothing.union(*(before - after for before, after in used.values()))
    come = nothing.union(*(after - before for before, after in used.values()))
    if len(gone) != 1 or len(come) != 1:
        return None
    others = sorted(name for name, (before, after) in used.items() if before != after)
    is_all = all(before != after for before, after in used.values() if before or after)
    names = [name for name, _ in (*gone, *come)]
    brought = runtimes.intersection(f"{name.partition('@')[0]}-runtime" for name in names)
    before, after = (f"{name.partition('@')[0]}@{version}" for name, version in (*gone, *come))
    of = "" if is_all else f" of {' and '.join(others)}"
    return OptionChange("", role + of, before, after, frozenset({*names, *brought}))


def _of_target(change: OptionChange) -> bool:
    """Return whether the programs' flags differ in nothing but for which processors they are."""
    others = [
        [word for word in words.split() if not word.startswith(("-march=", "-mtune="))]
        for words in (change.before, change.after)
    ]
    return (change.package, change.option) == ("", "compiler flags") and others[0] == others[1]


def _twice(packages: list[dict[str, Any]]) -> list[str]:
    """Return the names that several packages have."""
    return [name for name, often in Counter(one["name"] for one in packages).items() if often > 1]


def _packages(name: str, image: Mapping[str, Any], twice: set[str]) -> PackagesOf:
    """Return an image's packages, Spack's and the distribution's, and the image as one of them.

    Those whose name is there twice are called with their version, too.
    """
    manifest, labels = image["manifest"], image.get("labels") or {}
    own = {
        " ".join(path): UNKNOWN if (told := value_at(manifest, path)) is None else plain_words(told)
        for path in RECORDED
    }
    own |= {
        f"label {key.removeprefix(LABEL)}": value
        for key, value in labels.items()
        if key.startswith(LABEL) and key not in OF_NAMES
    }
    own["variant"] = name.partition("+")[2] or "none"
    found: dict[str, dict[str, Any]] = {"": {"settings": own, "needs": []}}
    installed = manifest.get("debian_packages")
    for package, version in installed.items() if isinstance(installed, Mapping) else ():
        found[f"{DEBIAN}{package}"] = {"settings": {"version": version}, "needs": []}
    for one in image["packages"]:
        full = f"{one['name']}@{one['version']}"
        called = full if one["name"] in twice else one["name"]
        options = FLAGS | dict(map(_option, filter(None, one["variants"])))
        same = {key: one[key] for key in ("version", "target", "origin")}
        settings = options | same | {"sources": " ".join(sorted(one["sources"]))}
        needs = [
            need if (own_name := need.partition("@")[0]) in twice else own_name
            for need in one["dependencies"]
        ]
        # Nothing tells apart those of one version: together they have what each has.
        if other := found.get(called):
            needs += other["needs"]
            settings = {
                key: " and ".join(sorted({str(side[key]) for side in (settings, other["settings"])
                                          if key in side}))
                for key in settings | other["settings"]
            }  # fmt: skip
        found[called] = {"settings": settings, "needs": needs}
    return found


def _option(word: str) -> tuple[str, str]:
    """Return the name and the value of a word of Spack's: `+x`, `~x` or `x=y`."""
    name, equals, value = word.partition("=")
    return (name, value) if equals else (name.lstrip("+~"), "yes" if word.startswith("+") else "no")


def _needed(packages: PackagesOf, root: str, others: PackagesOf) -> set[str]:
    """Return a package and all that it needs to be built and to run; nothing of none.

    What the other image has not, and comes from the distribution, needs packages of that, and
    nobody says which.
    """
    found, waiting = set[str](), [root] if root else []
    while waiting:
        name = waiting.pop()
        if name in found or name not in packages:
            continue
        found.add(name)
        waiting += packages[name]["needs"]
        origin = str(packages[name]["settings"].get("origin"))
        if name not in others and origin.startswith(OF_THE_DISTRIBUTION):
            found |= {one for one in packages if one.startswith(DEBIAN)}
    return found


def _called(packages: PackagesOf, name: str) -> str:
    return f"{name.partition('@')[0]} {packages[name]['settings']['version']}"


def _shown(side: PackagesOf, name: str, key: str) -> str:
    """Return what one image has of what only one has."""
    if name not in side:
        return "none"
    settings = side[name]["settings"]
    return str(settings.get(key, "none")) if key else str(settings["version"])


def option_table(comparison: Comparison, table: Table) -> Table:
    """Return for each option in which alone two images differ what it moved, by group of cells.

    A pair that differs in more has one row, which attributes nothing. `table` is `group_table`'s.
    """
    pairs = {(one.other, one.base): one for one in build_pairs(comparison)}
    columns = (
        Column("option", "differs in"),
        *(replace(one, heading=SHOWN.get(one.name)) for one in table.columns),
    )
    rows = []
    for row in table.rows:
        pair = pairs.get(table.value(row, "implementations"))
        if pair and pair.is_one:
            rows.append(replace(row, values=(pair.words, *row.values)))
    for both, pair in pairs.items():
        if not pair.is_one:
            nothing = {"implementations": both, "verdict": "attributed to no option"}
            rows.append(Row((pair.words, *(nothing.get(one.name) for one in table.columns))))
    notes = [
        "Images that Spack built from the sources of one MPI, and how their packages, compiler, "
        "programs and labels differ, the second image's value first. Where more than one thing "
        "differs, no result is attributed to any of them."
    ]
    return replace(table, name=NAME, title="Which build option moved what", columns=columns,
                   rows=rows, notes=notes)  # fmt: skip


def option_sentences(comparison: Comparison) -> list[str]:
    """Return for each pair of images that Spack built what they differ in, and what follows.

    Those that differ in one option come first.
    """
    pairs = sorted(build_pairs(comparison), key=lambda pair: not pair.is_one)
    return [pair.sentence for pair in pairs]
