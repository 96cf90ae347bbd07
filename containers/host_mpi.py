"""Use the machine's own MPI in containers of images that were built with another.

An image's programs ask the loader for a library by name. If another implementation has the same
binary interface under the same name, it is found first when it is bound into the container and
LD_LIBRARY_PATH has its folder. MPI 5 has one such interface for all: `libmpi_abi.so.1`. The image
with that MPI is a variant of the image: `mpich-5.0.2+host-intel-mpi-2021.19`.
"""

import json
import os
import re
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from containers import images, installed, packing, trust
from containers.apptainer import Admitted, command, launch_options, run_apart
from containers.installed import PrefixError
from containers.labels import PREFIX, BoundMpi, LabelError, Labels
from containers.sources import sha256_of
from containers.table import HOST, Packed, load_table
from records import layout
from site_configs.site_file import read_site

#: Where containers have the libraries of the machine that the MPI needs.
LIBRARIES = "/opt/wyeast/host-lib"
#: What of an image's labels is the bound MPI's instead.
OVERRIDDEN = (
    "family", "version", "pmi", "mpiexec.pinned", "mpiexec.oversubscribed", "eager_limit",
    "init_wait",
)  # fmt: skip
#: Which library of MPI the loader takes for a program, in the words of ldd: its name and its path.
TAKEN = re.compile(r"\s(lib(?:mpi|mpi_abi|mpich|lam)\.so\S*) => (\S+)")


def bind(
    root: Path, words: str, names: list[str], site: str = "local"
) -> tuple[dict[str, Any], list[str]]:
    """Return the facts of the MPI under a prefix, and the names with its variant for `host`.

    If no name has `+host`, all get it. Processes started by this one also know the facts.
    Raises PrefixError if an image's programs cannot use that MPI, ImageError for an image that
    is not there or that the site does not admit, SiteError for a site that cannot be read.
    """
    data = read_site(layout.site_file(root, site), root)
    table = load_table(root)
    found = installed.find(words, table, ("mpiexec",))
    nothing = Packed(prefix=str(found.prefix), library=found.said, files={}, libraries={})
    like = packing.implementation_of("host", packing.entry_of(found, table, nothing), table)
    variant = f"{HOST}-{found.family}-{found.version}".lower()
    # A folder that everyone who measures at the site may write, and all its nodes can read.
    folder = layout.state(root) / "reframe" / site / "host_mpi" / variant
    copy_libraries(found, folder)
    variables = {
        **{name: value for name, value in like.environment.items() if "$" not in value},
        "LD_LIBRARY_PATH": ":".join([*packing.library_folders(found), LIBRARIES]),
    }
    own = like.labels()
    taken: dict[str, str] = {}
    facts = {
        "variant": variant,
        "prefix": str(found.prefix),
        "library_sha256": sha256_of(found.library),
        # What the images' programs take of it, which may be another interface's library.
        "taken": taken,
        # What else of the machine is mixed in: its PMI's and fabric's libraries.
        "libraries": {path.name: sha256_of(path) for path in sorted(folder.iterdir())},
        "labels": {f"{PREFIX}{key}": own.get(f"{PREFIX}{key}", "") for key in OVERRIDDEN},
        "library": found.said,
        "binds": [[str(found.prefix), str(found.prefix)], [str(folder), LIBRARIES]],
        "variables": variables,
    }
    marked = [name for name in names if name.endswith(f"+{HOST}")]
    chosen = []
    for name in names:
        if marked and name not in marked:
            chosen.append(name)
            continue
        image = name.removesuffix(f"+{HOST}")
        if "+" in image:
            raise PrefixError(
                f"{image} is a variant already; HOST_MPI is for {image.split('+')[0]}"
            )
        its_library, sentence = check(trust.admit(root, image, data), image, found, facts)
        if sentence:
            print(f"host-mpi: {sentence}", file=sys.stderr)
        taken[str(its_library)] = sha256_of(its_library)
        chosen.append(f"{image}+{variant}")
    os.environ[images.HOST_MPI] = json.dumps(facts)
    return facts, chosen


def bind_again(root: Path, facts: Mapping[str, Any], names: list[str], site: str) -> None:
    """Bind the MPI that a campaign of these names began with; raises PrefixError for another."""
    bound = [f"{name.partition('+')[0]}+{HOST}" for name in names if facts["variant"] in name]
    now = bind(root, facts["prefix"], bound, site)[0]
    # An older campaign does not name the machine's other libraries; its binds are labels.
    labels = {key: value for key, value in facts["labels"].items() if key in now["labels"]}
    if {key: value for key, value in now.items() if key in facts} != {**facts, "labels": labels}:
        raise PrefixError(
            f"the MPI under {facts['prefix']} is not the one that the campaign began with; start "
            "a new campaign instead"
        )


def copy_libraries(found: installed.Installed, folder: Path) -> None:
    """Copy what the MPI's files load from elsewhere, except the C library, into a folder."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    files = [content for _, content in packing.files_of(found.prefix, [])]
    programs = [path for path in files if not path.is_symlink() and packing.is_elf(path)]
    for name, path in packing.foreign_libraries(found.prefix, programs)[0].items():
        shutil.copy(path, folder / name)


def check(
    image: Admitted, name: str, found: installed.Installed, facts: Mapping[str, Any]
) -> tuple[Path, str | None]:
    """Return the library of the bound MPI that the loader gives an image's programs.

    Also return a sentence about programs that call functions it lacks, if there are any.
    Raises PrefixError if the loader gives them another library.
    """
    needed = TAKEN.search(_ldd(image, [], "preflight"))
    has = f"{found.family} {found.version} under {found.prefix}"
    if not needed:
        raise PrefixError(f"{name} has no programs that use an MPI from a shared library")
    if not any((found.prefix / f / needed[1]).exists() for f in installed.FOLDERS):
        own = ", ".join(installed.interfaces(found.prefix))
        raise PrefixError(
            f"the programs of {name} need {needed[1]}, and {has} has {own}: their binary "
            "interfaces differ; choose images with the same one: IMAGES=..."
        )
    try:
        bound = Labels.of({}, name, BoundMpi.of(facts))
    except LabelError as error:
        raise PrefixError(str(error)) from None
    said = _ldd(image, images.options_of(bound, facts["variant"]), "*")
    taken = TAKEN.search(said)
    if not taken or not taken[2].startswith(f"{found.prefix}/"):
        raise PrefixError(
            f"{name} takes {taken[2] if taken else 'no library'} even where {has} is bound"
        )
    too_new = re.search(r"version `(\S+)' not found \(required by (\S+)\)", said)
    if too_new:
        raise PrefixError(
            f"{has} cannot be bound into {name}: {too_new[2]} needs {too_new[1]}, which is newer "
            "than the image's"
        )
    lacking: dict[str, str] = {}
    for function, program in re.findall(r"undefined symbol: (\S+)\s+\((\S+)\)", said):
        lacking.setdefault(Path(program).name, function)
    if not lacking:
        return Path(taken[2]), None
    words = ", ".join(f"{program} ({function})" for program, function in lacking.items())
    if "preflight" in lacking:
        raise PrefixError(f"{has} lacks functions that programs of {name} call: {words}")
    return Path(taken[2]), (
        f"{has} lacks functions that some programs of {name} call; those programs will fail when "
        f"they call them: {words}"
    )


def _ldd(image: Admitted, options: list[str], programs: str) -> str:
    words = command("exec", *launch_options(alone=True), *options, image,
                    "sh", "-c", f"ldd -r /opt/wyeast/bin/{programs} 2>&1")  # fmt: skip
    return run_apart(words, cwd="/").stdout
