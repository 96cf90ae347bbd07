"""Build the images that are out of date: `python -m containers.build`."""

import argparse
import json
import os
import shutil
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from containers import (
    apt,
    bases,
    bill_of_materials,
    images,
    installed,
    origin,
    packing,
    sif_header,
    sources,
    staging,
    store,
    trust,
)
from containers.apptainer import (
    Admitted,
    CallError,
    call,
    command,
    launch_options,
    state_of,
)
from containers.apptainer_setup import provide
from containers.bases import bases_of, ensure_bases
from containers.bootstrap import BOOTSTRAPS, Bootstrap, chosen
from containers.commands import BuildProgress, StepError, log_path, run_logged
from containers.ending import exit_code
from containers.locking import BuildError, only_build, prune
from containers.programs import ProvisionError
from containers.spack import environment as spack_environment
from containers.spack import externals as spack_externals
from containers.spack import given as spack_given
from containers.spack import image as spack_image
from containers.spack import mirror as spack_mirror
from containers.spack import site as spack_site
from containers.spack import tool as spack
from containers.spack.failure import SpackFailure
from containers.spack.recipes import SpackError
from containers.table import TABLE, Packed, TableError, load_table
from records import layout
from records.command_words import CommandWords
from records.files import write_whole
from site_configs.installation_entries import images_in

ROOT = Path(os.environ.get("WYEAST_ROOT", Path(__file__).resolve().parents[1]))

#: What keeps an image from being built; the texts are sentences.
ERRORS = (
    BuildError, StepError, ProvisionError, TableError, installed.PrefixError,
    sources.SourceError, images.ImageError, apt.AptError, SpackError,
)  # fmt: skip
# Apptainer would take the time at which it writes the labels. Of the last stage; with --force this
# replaces its own.
DATED = "\n%labels\n    org.label-schema.build-date {}\n"


def recipe_of(root: Path, name: str, bootstrap: Bootstrap) -> staging.Recipe:
    """Return the recipe for the image of an implementation, or of a variant of one.

    Raises TableError, SourceError or BuildError for a name or an input that is not there.
    """
    table = load_table(root)
    pinned = sources.load_sources(root)
    implementation = table.resolve(name)
    wheels = tuple(pinned.wheel(source, implementation.name) for source in implementation.sources)
    both = bases_of(root, table, implementation, pinned, bootstrap)
    packages = {name: pinned.package_version(name) for name in implementation.packages.run}
    # HPL and NetPIPE are programs of MPI.
    archives = tuple(pinned.archives.values()) if implementation.interface == "mpi" else ()
    if implementation.builder == "spack":
        archives = spack_image.archives_of(root, implementation, archives)
    # What an implementation's own wheels have is unpacked with them.
    foreign = {
        program: pinned.wheel(wheel, implementation.name)
        for program, wheel in implementation.foreign_programs.items()
        if wheel not in implementation.sources
    }
    kind = spack_image.SpackRecipe if implementation.builder == "spack" else staging.Recipe
    recipe = kind(root, implementation, wheels, archives, foreign, both, packages)
    for path in (recipe.definition(), *recipe.launchers()):
        if not path.is_file():
            raise BuildError(
                f"{path.relative_to(root)}, of {implementation.name}, does not exist; correct "
                f"its name in {TABLE}"
            )
    return recipe


def up_to_date(recipe: staging.Recipe, lock: dict[str, Any]) -> bool:
    """Return whether the image in the lock is there and was made from exactly these inputs."""
    entry = lock["images"].get(recipe.implementation.name)
    if not entry or entry.get("inputs_sha256") != recipe.inputs_sha256():
        return False
    try:
        return bool(store.path_of(recipe.root, entry).stat().st_size == entry.get("bytes"))
    except OSError:
        return False


def inputs_here(root: Path, name: str) -> dict[Bootstrap, str]:
    """Return the digest of an image's inputs in this checkout, by where its base is from."""
    return {one: recipe_of(root, name, one).inputs_sha256() for one in BOOTSTRAPS}


def build_image(recipe: staging.Recipe, progress: BuildProgress) -> None:
    """Build one image elsewhere, read its description, and put it into the store and the lock."""
    root, name = recipe.root, recipe.implementation.name
    built_utc = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    target = store.folder(root) / f"{name}.sif"
    target.parent.mkdir(parents=True, exist_ok=True)
    aside = target.with_name(f".new-{target.name}")
    try:
        labels, bill = make_image(recipe, aside, layout.state(root) / "build" / name, built_utc,
                                  progress)  # fmt: skip
        size, digest = aside.stat().st_size, sources.sha256_of(aside)
        entry = {
            "file": target.name,
            "sha256": digest,
            "bytes": size,
            "inputs_sha256": recipe.inputs_sha256(),
            "built_utc": built_utc,
            "labels": labels,
            "origin": origin.BUILT,
        }
        store.keep(root, aside, digest)
        images.write_entry(root, name, entry)
        store.name_in_folder(root, entry)
        bill_of_materials.write(root, name, bill)
    finally:
        aside.unlink(missing_ok=True)
    progress.say(f"{name} is built, {size / 1e6:.0f} MB")


def make_image(
    recipe: staging.Recipe, target: Path, scratch: Path, built_utc: str, progress: BuildProgress
) -> tuple[dict[str, str], str]:
    """Make an image's file, with all temporary files in `scratch`.

    The same inputs and the same `built_utc` give the same file, wherever the folders are.
    Returns the image's labels and its bill of materials. Raises the errors of this package.
    """
    root, name = recipe.root, recipe.implementation.name
    state = layout.state(root)
    # First of all: without it there is nothing to wait for.
    found = spack.provide(root) if isinstance(recipe, spack_image.SpackRecipe) else None
    files = {
        source.file: sources.fetch_archive(source, state, recipe.bases[0].debian.suite)
        if source in recipe.archives
        else sources.fetch_wheel(source, state)
        for source in recipe.files()
    }
    ensure_bases(recipe.bases, root, progress)
    inputs = recipe.inputs_sha256()
    log = log_path(root, name)
    progress.say(f"building {name}")
    try:
        # The arguments stand in the image, so there is nothing of this machine in them.
        arguments: dict[str, Any] = {
            "build_base": "build-base",
            "run_base": "run-base",
            "staging": "staging",
            "jobs": "$(nproc)",
        }
        scratch.mkdir(parents=True)
        for base, argument in zip(recipe.bases, ("build_base", "run_base"), strict=True):
            (scratch / arguments[argument]).symlink_to(bases.admit(base, state))
        binds: list[str] = []
        if isinstance(recipe, spack_image.SpackRecipe):
            assert found is not None, "it was provided above"
            for sentence in (
                spack_image.other_version(found, recipe.lock()), spack_site.sentence(root),
            ):  # fmt: skip
                if sentence:
                    progress.say(f"{name}: {sentence}")
            spack_externals.prove(root, bases.admit(recipe.bases[0], state), name)
            spack_mirror.fill(root, files.values())
            spack_image.stage(recipe, scratch / "staging", found, built_utc)
            arguments["mpi"] = spack_image.mpi_package(root, recipe.implementation)
            arguments |= spack_image.compiled_with(recipe.lock())
            arguments["implementation"] = name
            built = spack_environment.cache_of(root, recipe.bases[0])
            stage = scratch / "stage"
            stage.mkdir()
            binds = [*spack_environment.tool_binds(root, found, built), f"{stage}:/mnt/stage"]
        else:
            staging.stage(recipe, scratch / "staging", files, built_utc)
            arguments["compiler"] = recipe.implementation.compiler
            arguments["interface"] = recipe.implementation.interface
            arguments["prefix"] = recipe.implementation.prefix
            arguments["flags"] = staging.FLAGS
        definition = scratch / recipe.definition().name
        definition.write_text(recipe.definition().read_text() + DATED.format(built_utc))
        epoch = int(datetime.fromisoformat(built_utc).timestamp())
        words = command(
            "build", "--fakeroot", "--force", "--mksquashfs-args", staging.SQUASHFS,
            *(f"--bind={bind}" for bind in binds),
            *(f"--build-arg={key}={value}" for key, value in arguments.items()),
            target, definition,
        )  # fmt: skip
        try:
            run_logged(words, name, log, scratch, SOURCE_DATE_EPOCH=str(epoch))
        except StepError:
            if found is not None:
                raise SpackFailure(name, log) from None
            raise
        made = Admitted(target, state_of(target))
        labels = check_content(made, recipe, inputs, log)
        bill = bill_of_materials.read_bill(made)
        try:
            bill_of_materials.put_inside(target, bill, scratch)
            sif_header.settle(target, inputs, epoch)
        except (CallError, sif_header.SifError) as error:
            raise StepError(f"{name}: the new image cannot be completed ({error})", log) from None
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return labels, bill


def check_content(
    image: Admitted, recipe: staging.Recipe, inputs: str, log: Path
) -> dict[str, str]:
    """Return a new image's labels, after checking its labels and manifest against the recipe.

    Raises StepError for an image that cannot be opened or does not describe itself.
    """
    try:
        labels = images.labels_inside(image.path)
        manifest = json.loads(
            call("exec", *launch_options(alone=True), image, "cat", bill_of_materials.MANIFEST)
        )
    except (CallError, ValueError, images.ImageError) as error:
        raise StepError(f"the new image does not say what it is ({error})", log) from None
    wanted = recipe.labels()
    if wanted != {key: labels.get(key) for key in wanted}:
        raise StepError("the new image's labels do not match its recipe", log)
    # An input that changes later makes the image stale, not wrong.
    if manifest["inputs_sha256"] != inputs:
        raise StepError("an input changed while it was being copied; run the build again", log)
    installed = {name.partition(":")[0]: v for name, v in manifest["debian_packages"].items()}
    for package, version in recipe.packages.items():
        if installed.get(package) != version:
            raise StepError(
                f"the new image has {package} {installed.get(package, 'not at all')}, but "
                f"{sources.LOCK} pins {version}: pin what the mirror has, or use another mirror, "
                "and build again",
                log,
            )
    return labels


def build(
    root: Path, names: list[str], word: str | None, force: bool, given: Path | None = None
) -> None:
    """Build the named images that are out of date; with `force`, all of them, bases included.

    `word` names the bootstrap; without it, it is the one for this machine, and an image is also
    up to date where its base is from the other one. `given` is a folder with the sources of those
    that Spack builds: nothing is built where it lacks one. Raises the errors of this package: each
    is a sentence.
    """
    progress = BuildProgress()
    bootstrap, why = chosen(word)
    found = [recipe_of(root, name, bootstrap) for name in names]
    # Variants of one implementation have one image.
    recipes = list({recipe.implementation.name: recipe for recipe in found}.values())

    def stale() -> list[staging.Recipe]:
        lock = images.load_lock(root)
        kinds: Sequence[Bootstrap] = BOOTSTRAPS if word is None else (bootstrap,)

        def is_current(name: str) -> bool:
            return any(up_to_date(recipe_of(root, name, kind), lock) for kind in kinds)

        return [one for one in recipes if force or not is_current(one.implementation.name)]

    for recipe in recipes:
        if recipe.implementation.packed:
            packing.check(recipe.implementation, needed=recipe in stale())
    waiting = stale()
    refuse_unknown(root, [recipe for recipe in recipes if recipe not in waiting])
    if not waiting:
        built = ", ".join(recipe.implementation.name for recipe in recipes)
        print(f"images are up to date: {built}")
        return
    if given is not None:
        of_spack = [one for one in waiting if isinstance(one, spack_image.SpackRecipe)]
        named = [one.implementation.name for one in of_spack]
        spack_given.serve(root, spack.provide(root), named, given)
    # If the lock was lost, the images that it named are not unused.
    had_lock = (layout.home(root) / images.LOCK).is_file()
    with only_build(root):
        if why:
            progress.say(f"building on the container base that {sources.LOCK} pins, since {why}")
        provide(builds=True, bootstrap=bootstrap)
        images.take_over(root)
        if force:
            for base in {base for recipe in recipes for base in recipe.bases}:
                base.path(layout.state(root)).unlink(missing_ok=True)
        for recipe in stale():
            name = recipe.implementation.name
            entry = images.load_lock(root)["images"].get(name)
            if entry and entry.get("origin") != origin.BUILT and not force:
                progress.say(
                    f"{name}, {origin.told(entry)}, is missing or was made from inputs other "
                    "than this checkout's, so it is being rebuilt"
                )
            build_image(recipe, progress)
        if had_lock:
            prune(root)


def refuse_unknown(root: Path, recipes: list[staging.Recipe]) -> None:
    """Raise BuildError for images that only by their own word match these recipes.

    An image that nobody vouches for may be anything, whatever inputs its entry names.
    """
    names = [recipe.implementation.name for recipe in recipes]
    unknown = [name for name in names if not trust.vouched(root, name)]
    if unknown:
        raise BuildError("\n".join(origin.question(root, name) for name in unknown))


def pack(root: Path, prefix: str, name: str, word: str | None) -> None:
    """Enter an MPI that is installed under a prefix into the table, and build its image.

    Raises the errors of this package: each is a sentence; the table is then as it was.
    """
    table = load_table(root)
    found = installed.find(prefix, table, ("mpicc", "mpiexec"))
    packing.check_name(name, found, table)
    packing.check_place(found)
    nothing = Packed(prefix=str(found.prefix), library=found.said, files={}, libraries={})
    like = packing.implementation_of(name, packing.entry_of(found, table, nothing), table)
    bootstrap, _ = chosen(word)
    both = bases_of(root, table, like, sources.load_sources(root), bootstrap)
    with only_build(root):
        provide(builds=True, bootstrap=bootstrap)
        ensure_bases(both, root, BuildProgress())
    base = bases.admit(both[-1], layout.state(root))
    packed, lacking = packing.survey(found, like.left_out, base)
    print(
        f"{name} is {found.family} {found.version}, speaks {found.pmi} ({found.evidence}); "
        f"packing {len(packed.files)} files and {len(packed.libraries)} libraries of the machine"
    )
    if lacking:
        print(f"left out because this machine does not have them: {', '.join(lacking)}")
    path = packing.entry_path(root, name)
    before = path.read_bytes() if path.exists() else None
    packing.write_entry(path, packing.entry_of(found, table, packed))
    load_table.cache_clear()
    try:
        build(root, [name], word, force=False)
    except BaseException:
        path.unlink() if before is None else write_whole(path, before)
        raise


def add_choice(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of whatever builds: which images, and on what base."""
    parser.add_argument(
        "--images", default="default", metavar="a,b|all|default",
        help="which implementations of containers/implementations.yaml (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--bootstrap", choices=BOOTSTRAPS,
        help="source of the images' Debian base: the machine's mirror (mmdebstrap), or the "
        "container image that containers/sources.lock pins (docker); without it, the mirror where "
        "that can be used",
    )  # fmt: skip


def main() -> int:
    """Build what is requested, or print a sentence on why not."""
    parser = CommandWords(
        prog="python -m containers.build",
        description="Build the images that are out of date, and nothing else.",
    )
    add_choice(parser)
    parser.add_argument(
        "--builder", choices=["spack"], metavar="spack",
        help="refuse implementations that this builder does not build; `default` then means all "
        "that it builds with an MPI of the distribution",
    )  # fmt: skip
    parser.add_argument(
        "--force", action="store_true", help="build even images that are up to date"
    )
    parser.add_argument(
        "--sources", metavar="FOLDER", type=spack_given.meant,
        help="where the sources are that Spack builds from: archives, patches, git repositories",
    )  # fmt: skip
    parser.add_argument(
        "--prefix", metavar="FOLDER", help="instead, pack the MPI installed in this folder"
    )
    parser.add_argument("--name", default="", help="with --prefix: the implementation's name")
    options = parser.parse_args()
    return exit_code("build", lambda: work(options), ERRORS, "images built earlier are unchanged")


def work(options: argparse.Namespace) -> int:
    """Build what is requested; return 0. Raises what ERRORS names, and OSError."""
    if options.prefix is not None:
        pack(ROOT, options.prefix, options.name, options.bootstrap)
        return 0
    table = load_table(ROOT)
    # What a site has installed is there, or it is not.
    words = images_in(options.images)
    if options.images and not words:
        return 0
    options.images = words
    if options.builder == "spack" and options.images == "default":
        options.images = ",".join(spack_environment.of_the_distribution(table))
    names = table.choose(options.images)
    others = [n for n in names if options.builder not in (None, table.resolve(n).builder)]
    if others:
        raise BuildError(
            f"{others[0]} is not built by {options.builder}; these are: "
            f"{', '.join(table.built_by(options.builder))}"
        )
    if options.sources and not any(table.resolve(n).builder == "spack" for n in names):
        raise BuildError("SOURCES is for implementations that Spack builds: BUILDER=spack")
    build(ROOT, names, options.bootstrap, options.force, options.sources)
    return 0


if __name__ == "__main__":
    sys.exit(main())
