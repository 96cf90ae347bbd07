"""A difference between two builds is one option's only where they differ in nothing else."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from analysis.comparison.answer import answer
from analysis.comparison.compare import compare
from analysis.comparison.option_effects import (
    NAME,
    BuildPair,
    build_pair,
    option_sentences,
    option_table,
)
from analysis.comparison.result import Comparison
from analysis.comparison.tables import group_table
from analysis.report.all_tables import tables_of
from analysis.report.campaign_end import ending
from analysis.report.report import report_on
from analysis.tables.csv import csv_text
from records.campaign import read_campaign
from tests.analysis.support.study_samples import PROJECT
from tests.analysis.support.synthetic import TWICE, Synthetic, Truth

BASE, OTHER = TWICE


def package(name: str, *variants: str, needs: tuple[str, ...] = (), **more: Any) -> dict[str, Any]:
    return {
        "name": name, "version": "1.0", "target": "x86_64_v3", "variants": list(variants),
        "origin": "source", "sources": ["a" * 64],
        "dependencies": [name if "@" in name else f"{name}@1.0" for name in needs], **more,
    }  # fmt: skip


#: An image as a campaign's manifest describes it.
IMAGE: dict[str, Any] = {
    "labels": {
        "org.wyeast.implementation": "x", "org.wyeast.family": "openmpi",
        "org.wyeast.builder": "spack", "org.wyeast.hpl": "2.0",
    },
    "manifest": {
        "compiler": {"command": "gcc", "version": "12", "flags": "-O2 -g"},
        "benchmarks_sha256": "b" * 64, "base": {"suite": "bookworm"},
        "spack": {"version": "1.1.0", "commit": "1", "packages_commit": "2", "lock_sha256": "c"},
        "debian_packages": {"libc6": "2.36", "libopenblas0-serial": "0.3.21"},
    },
    "packages": [
        package("openmpi", "fabrics=none", "~romio", "cflags=-O3", needs=("gcc", "gmake@4.3")),
        package("wyeast-benchmarks", "+blas", origin="checkout", sources=[],
                needs=("openmpi", "openblas")),
        package("hpl-hpcc", needs=("openmpi", "openblas", "wyeast-benchmarks")),
        package("openblas", origin="/usr", sources=[]),
        package("gcc", origin="/usr", sources=[]),
        package("gmake", version="4.3", needs=("gcc",)),
        package("gmake", version="4.4", needs=("gcc",)),
    ],
}  # fmt: skip


def changed(*changes: Callable[[Any], object], of: dict[str, Any] = IMAGE) -> dict[str, Any]:
    made = copy.deepcopy(of)
    for change in changes:
        change(made)
    return made


def with_variant(name: str, old: str, new: str) -> Callable[[Any], object]:
    def change(image: Any) -> None:
        for one in image["packages"]:
            if one["name"] == name:
                one["variants"] = [word for word in one["variants"] if word != old]
                one["variants"] += [new] if new else []

    return change


def of(name: str, **values: Any) -> Callable[[Any], object]:
    return lambda image: next(p for p in image["packages"] if p["name"] == name).update(values)


CMA = with_variant("openmpi", "fabrics=none", "fabrics=cma")
O2 = with_variant("openmpi", "cflags=-O3", "cflags=-O2")
#: What is no difference between builds: names, times, and what a lock calls itself.
OTHER_NAMES = (
    lambda i: i["labels"].update({"org.wyeast.implementation": "y"}),
    lambda i: i["labels"].update({"org.wyeast.build_options": "fabrics=cma"}),
    lambda i: i["manifest"].update(built_utc="2026", inputs_sha256="d" * 64),
    lambda i: i["manifest"]["spack"].update(lock_sha256="e"),
)


def pair(other: dict[str, Any], base: dict[str, Any] = IMAGE, variant: str = "") -> BuildPair:
    images = {BASE: base, f"{OTHER}{variant}": other}
    found = build_pair({"images": images}, BASE, f"{OTHER}{variant}")
    assert found is not None
    return found


def test_builds_that_are_alike_differ_in_nothing() -> None:
    found = pair(changed(*OTHER_NAMES))
    assert (found.changes, found.following) == ((), ())
    assert found.sentence == (
        f"{BASE} and {OTHER} were built with no known difference: nothing between them is due to a "
        "build option."
    )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (CMA, "openmpi's fabrics (none and cma)"),
        (O2, "openmpi's cflags (-O3 and -O2)"),
        (with_variant("openmpi", "~romio", "+romio"), "openmpi's romio (no and yes)"),
        (of("openmpi", version="1.1"), "openmpi's version (1.0 and 1.1)"),
        (of("openmpi", target="x86_64_v4"), "openmpi's target (x86_64_v3 and x86_64_v4)"),
        (of("openmpi", sources=["b" * 64]), f"openmpi's sources ({'a' * 16}… and {'b' * 16}…)"),
        (of("gcc", version="13"), "compiler (gcc@1.0 and gcc@13)"),
        (lambda i: i["manifest"]["compiler"].update(flags="-O3"),
         "compiler flags (-O2 -g and -O3)"),
        (lambda i: i["manifest"].update(benchmarks_sha256="c" * 64),
         f"benchmarks_sha256 ({'b' * 16}… and {'c' * 16}…)"),
        (lambda i: i["manifest"]["spack"].update(packages_commit="3"),
         "spack packages_commit (2 and 3)"),
        (lambda i: i["labels"].update({"org.wyeast.hpl": "2.3"}), "label hpl (2.0 and 2.3)"),
        (lambda i: i["manifest"]["debian_packages"].update(libc6="2.41"),
         "Debian package libc6's version (2.36 and 2.41)"),
    ],
)  # fmt: skip
def test_one_thing_that_differs_is_named(change: Callable[[Any], object], words: str) -> None:
    found = pair(changed(*OTHER_NAMES, change))
    assert found.is_one and found.words == words
    assert found.sentence == (
        f"{BASE} and {OTHER} were built with one difference, {words}: whatever is shown to "
        "differ between them is due to that option."
    )


@pytest.mark.parametrize(
    "second",
    [
        O2, of("gcc", version="13"),
        lambda i: i["manifest"]["compiler"].update(flags="-O3"),
        lambda i: i["manifest"]["debian_packages"].update(libc6="2.41"),
        lambda i: i["manifest"]["debian_packages"].update(libnuma1="2.0"),
        lambda i: i["labels"].update({"org.wyeast.pages": "huge"}),
        lambda i: i["packages"].append(package("osu-micro-benchmarks", needs=("openmpi",))),
        lambda i: i["packages"].pop(),
        with_variant("hpl-hpcc", "", "+openmp"),
    ],
)  # fmt: skip
def test_of_two_things_neither_is_blamed(second: Callable[[Any], object]) -> None:
    for other, base in ((changed(CMA, second), IMAGE), (changed(CMA), changed(second))):
        found = pair(other, base)
        assert not found.is_one and len(found.changes) == 2
        assert "openmpi's fabrics (none and cma)" in found.words
        assert found.sentence.endswith("no result is attributed to any single one of these.")
        assert "with 2 differences, " in found.sentence


def test_flags_that_only_one_has_are_a_difference_of_their_own() -> None:
    plain = changed(with_variant("openmpi", "cflags=-O3", ""))
    assert pair(changed(O2), plain).words == "openmpi's cflags (none and -O2)"
    found = pair(changed(CMA, O2), plain)
    assert not found.is_one and found.following == ()


def test_what_the_option_needs_comes_with_it() -> None:
    def with_ucx(image: Any) -> None:
        of("openmpi", dependencies=["gcc@1.0", "gmake@4.3", "ucx@1.0"])(image)
        image["packages"] += [package("ucx", needs=("numactl",)), package("numactl")]

    ucx = with_variant("openmpi", "fabrics=none", "fabrics=ucx")
    found = pair(changed(ucx, with_ucx, with_variant("openmpi", "", "+thread")))
    assert found.is_one
    assert found.words == (
        "openmpi's fabrics (none and ucx), with numactl 1.0, openmpi's thread, ucx 1.0"
    )
    # Of a package that was there before, the distribution's packages do not come.
    debian = lambda i: i["manifest"]["debian_packages"].update(libnuma1="2.0")  # noqa: E731
    assert not pair(changed(ucx, with_ucx, debian)).is_one
    usr = of("numactl", origin="/usr", sources=[])
    assert pair(changed(ucx, with_ucx, usr, debian)).is_one
    # What nothing of the MPI's needs is another difference.
    assert not pair(changed(ucx, with_ucx, lambda i: i["packages"].append(package("fftw")))).is_one
    assert not pair(changed(with_ucx)).is_one


def renamed(old: str, new: str, version: str, *packages: str) -> Callable[[Any], object]:
    """Let some packages, or all, need another one in the place of one, which is gone then."""

    def change(image: Any) -> None:
        for one in image["packages"]:
            if not packages or one["name"] in packages:
                one["dependencies"] = sorted(
                    f"{new}@{version}" if name == f"{old}@1.0" else name
                    for name in one["dependencies"]
                )
        there = next(one for one in image["packages"] if one["name"] == old)
        image["packages"].append({**there, "name": new, "version": version})
        if not any(f"{old}@1.0" in one["dependencies"] for one in image["packages"]):
            image["packages"].remove(there)

    return change


def debian(*gone: str, **come: str) -> Callable[[Any], object]:
    def change(image: Any) -> None:
        for name in gone:
            del image["manifest"]["debian_packages"][name]
        image["manifest"]["debian_packages"] |= come

    return change


BLIS = renamed("openblas", "blis", "0.9")
OTHER_DEBIAN = debian("libopenblas0-serial", liblapack3="3.11", blis="0.9")


def test_another_blas_is_one_option_with_what_it_brings() -> None:
    other = changed(BLIS, OTHER_DEBIAN, lambda i: i["manifest"]["base"].update(packages=["blis"]))
    found = pair(other)
    assert found.is_one, found.words
    assert found.words.startswith("BLAS (openblas@1.0 and blis@0.9), with Debian package blis 0.9")
    assert "openblas 1.0" in found.words
    # And back again.
    assert pair(IMAGE, other).words.startswith("BLAS (blis@0.9 and openblas@1.0)")
    # Where some are built with the old one still, those that are not are named.
    some = pair(changed(renamed("openblas", "blis", "0.9", "hpl-hpcc")))
    assert some.words == "BLAS of hpl-hpcc (openblas@1.0 and blis@0.9), with blis 0.9"
    assert not pair(changed(BLIS, CMA)).is_one


WITH_NETPIPE = changed(lambda i: i["packages"].append(package("netpipe", needs=("openmpi", "gcc"))))
CLANG = (
    renamed("gcc", "llvm", "14"),
    lambda i: i["manifest"]["compiler"].update(command="clang-14", version="Debian clang 14.0.6"),
)


def test_another_compiler_of_all_packages_is_one_option() -> None:
    found = pair(changed(*CLANG))
    assert found.is_one, found.words
    assert found.words == "compiler (gcc@1.0 and llvm@14), with gcc 1.0, llvm 14"
    runtime = package("gcc-runtime", needs=("gcc",))
    with_runtime = changed(lambda i: i["packages"].append(runtime))
    assert pair(changed(*CLANG), with_runtime).is_one
    # Fortran of the MPI is compiled as before.
    fortran = changed(
        *CLANG, of("openmpi", dependencies=["gcc@1.0", "gmake@4.3", "llvm@14"]),
        lambda i: i["packages"].append(package("gcc", origin="/usr", sources=[])),
    )  # fmt: skip
    assert pair(fortran).words == "compiler (gcc@1.0 and llvm@14), with llvm 14"
    # Its flags are not its own, nor is a third one for some package.
    flags = lambda i: i["manifest"]["compiler"].update(flags="-O3")  # noqa: E731
    third = changed(of("netpipe", dependencies=["aocc@1.0"]), of=WITH_NETPIPE)
    third["packages"].append(package("aocc"))
    for other in (changed(O2, of=WITH_NETPIPE), changed(flags, of=WITH_NETPIPE), third):
        assert not pair(changed(*CLANG, of=other), WITH_NETPIPE).is_one
    assert pair(changed(*CLANG, of=WITH_NETPIPE), WITH_NETPIPE).is_one


def test_a_newer_compiler_is_one_option() -> None:
    def newer(image: Any) -> None:
        for one in image["packages"]:
            one["version"] = "13" if one["name"] == "gcc" else one["version"]
            one["dependencies"] = [
                "gcc@13" if name == "gcc@1.0" else name for name in one["dependencies"]
            ]
        image["manifest"]["compiler"]["version"] = "13"

    assert pair(changed(newer)).words == "compiler (gcc@1.0 and gcc@13)"


def test_what_else_differs_of_a_newer_blas_or_compiler_is_no_part_of_it() -> None:
    def newer(name: str) -> Callable[[Any], object]:
        def change(image: Any) -> None:
            of(name, version="2", sources=["f" * 64])(image)
            for one in image["packages"]:
                one["dependencies"] = [
                    f"{name}@2" if need == f"{name}@1.0" else need for need in one["dependencies"]
                ]

        return change

    assert pair(changed(newer("openblas"))).words == "BLAS (openblas@1.0 and openblas@2)"
    plain = changed(with_variant("openblas", "", "threads=none"))
    threads = changed(newer("openblas"), with_variant("openblas", "", "threads=openmp"))
    assert pair(threads, plain).words == (
        "BLAS (openblas@1.0 and openblas@2); openblas's threads (none and openmp)"
    )
    assert not pair(threads, plain).is_one
    profiled = changed(newer("gcc"), with_variant("gcc", "", "+profiled"))
    assert not pair(profiled, changed(with_variant("gcc", "", "~profiled"))).is_one
    # How one was found is not how it was built.
    languages = changed(newer("gcc"), with_variant("gcc", "languages=c", "languages=c,c++"))
    assert pair(languages, changed(with_variant("gcc", "", "languages=c"))).is_one


def test_of_two_packages_of_one_version_none_is_hidden() -> None:
    def beside(word: str) -> dict[str, Any]:
        return changed(lambda i: i["packages"].insert(5, package("gmake", word, version="4.3")))

    assert pair(beside("+guile"), beside("~guile")).words == "gmake@4.3's guile (no and yes)"
    assert not pair(changed(CMA, of=beside("+guile")), beside("~guile")).is_one


def test_what_one_image_does_not_tell_is_attributed_to_no_option() -> None:
    silent = changed(lambda i: i["manifest"].pop("benchmarks_sha256"))
    for other, base in ((silent, IMAGE), (IMAGE, silent)):
        assert "unknown" in pair(other, base).words and not pair(other, base).is_one
    assert not pair(silent, silent).changes


@pytest.mark.parametrize("value", ["text", ["libc6"], {"libc6": ["2"]}, 7])
def test_an_odd_manifest_or_option_attributes_nothing(value: object) -> None:
    """Whoever made the image, or changed a bundle, may have written anything there."""
    other = changed(CMA, lambda i: i["manifest"].update(debian_packages=value))
    assert not pair(other).is_one
    assert pair(changed(CMA, lambda i: i["packages"][0]["variants"].append(""))).is_one


def targeted(image: Any) -> None:
    for one in image["packages"]:
        one["target"] = "x86_64_v2"
    image["manifest"]["compiler"]["flags"] = "-O2 -g -march=x86-64-v2"


def test_another_target_of_all_packages_is_one_option() -> None:
    assert pair(changed(targeted)).words == "target (x86_64_v3 and x86_64_v2)"
    assert not pair(changed(targeted, of("openmpi", target="x86_64_v4"))).is_one
    other = changed(targeted, lambda i: i["manifest"]["compiler"].update(flags="-O3 -g"))
    assert not pair(other).is_one


def test_one_package_in_the_place_of_another_of_no_role_is_attributed_to_no_option() -> None:
    other = changed(renamed("openblas", "fftw", "3"))
    found = pair(other)
    assert not found.is_one
    assert found.words == "fftw's presence (none and 3); openblas's presence (1.0 and none)"


def test_variables_of_a_variant_are_a_difference() -> None:
    assert pair(changed(), variant="+tcp").words == "variant (none and tcp)"
    assert not pair(changed(CMA), variant="+tcp").is_one


@pytest.mark.parametrize(
    "change",
    [
        lambda i: i.pop("packages"), lambda i: i.update(packages=None),
        lambda i: i.update(manifest=None), lambda i: i["labels"].pop("org.wyeast.family"),
        lambda i: i["labels"].update({"org.wyeast.family": "mpich"}),
    ],
)  # fmt: skip
def test_of_what_is_not_known_nothing_is_said(change: Callable[[Any], object]) -> None:
    images = {BASE: IMAGE, OTHER: changed(change)}
    assert build_pair({"images": images}, BASE, OTHER) is None
    assert build_pair({"images": images}, OTHER, BASE) is None


def test_the_machine_s_own_mpi_is_no_build_of_spack_s() -> None:
    images = {"x": IMAGE, "x+host": IMAGE}
    manifest = {"images": images, "host_mpi": {"variant": "host"}}
    assert build_pair(manifest, "x", "x+host") is None


#: The second is twice as good at messages, the third as the first.
THREE = {
    "mpi-spack": Truth(1e-6, 4e9, 30e9),
    "mpi-cma-spack": Truth(5e-7, 8e9, 30e9),
    "mpi-cma-o2-spack": Truth(1e-6, 4e9, 20e9),
}
BUILDS = dict(zip(THREE, (IMAGE, changed(CMA), changed(CMA, O2)), strict=True))


def campaign(tmp_path: Path, builds: dict[str, dict[str, Any]] = BUILDS, **facts: bool) -> Path:
    made = Synthetic(tmp_path / "campaign", THREE, rounds=6, pairs=["Send/Recv"])
    made.facts = {
        "images": {name: {"sha256": made.digest(name), **said} for name, said in builds.items()},
        **facts,
    }
    return made.write()


def rows_of(comparison: Comparison) -> list[tuple[str, ...]]:
    table = option_table(comparison, group_table(comparison))
    names = ("option", "group", "implementations", "verdict")
    return [table.view(*names).words(row) for row in table.view(*names).rows]


def test_a_report_says_which_option_moved_what(tmp_path: Path) -> None:
    read = read_campaign(campaign(tmp_path))
    comparison = compare(read, "mpi-spack")
    cma = "openmpi's fabrics (none and cma)"
    both = "openmpi's cflags (-O3 and -O2); openmpi's fabrics (none and cma)"
    assert rows_of(comparison) == [
        *((cma, group.name, "mpi-cma-spack / mpi-spack", group.verdicts["mpi-cma-spack"].words)
          for group in comparison.groups),
        (both, "–", "mpi-cma-o2-spack / mpi-spack", "attributed to no option"),
    ]  # fmt: skip
    moved = {row[1]: row[3] for row in rows_of(comparison)}
    assert any(verdict.startswith("faster") for verdict in moved.values())
    said = option_sentences(comparison)
    assert len(said) == 2 and cma in said[0] and both in said[1]
    assert answer(comparison)[-2:] == said
    assert f"mpi-cma-spack were built with one difference, {cma}" in " ".join(
        " ".join(ending(comparison)).split()
    )
    page = report_on(read, comparison, None).read_text()
    assert "Which build option moved what" in page and "attributed to no option" in page
    (table,) = [one for one in tables_of(comparison, PROJECT) if one.name == NAME]
    assert cma in csv_text(table)


def test_between_builds_that_are_no_base_an_option_is_named_where_all_pairs_are_compared(
    tmp_path: Path,
) -> None:
    comparison = compare(read_campaign(campaign(tmp_path, all_pairs=True)), "mpi-spack")
    found = {row[2]: row[0] for row in rows_of(comparison)}
    assert found["mpi-cma-spack / mpi-cma-o2-spack"] == "openmpi's cflags (-O2 and -O3)"


def test_without_builds_of_spack_s_there_is_no_table(tmp_path: Path) -> None:
    comparison = compare(read_campaign(campaign(tmp_path, {name: {} for name in THREE})))
    assert option_sentences(comparison) == []
    assert NAME not in {table.name for table in tables_of(comparison, PROJECT)}
