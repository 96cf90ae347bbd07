"""Prove a lock's externals before it is built: `python -m containers.spack.externals`.

Of an image these are packages of the base that Spack builds in; of a site, by its name in
WYEAST_SITE, what plain Spack takes from this machine.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from containers import apt
from containers.apptainer import Admitted, command, exec_options, run_apart
from containers.commands import StepError
from containers.locking import BuildError
from containers.programs import ProvisionError
from containers.sources import SourceError
from containers.spack import environment as spack_environment
from containers.spack import external_proof
from containers.spack import site as spack_site
from containers.spack import tool as spack
from containers.spack.external_proof import External
from containers.spack.recipes import SpackError
from containers.table import TABLE, TableError, load_table
from records import layout
from records.command_words import CommandWords

ROOT = Path(os.environ.get("WYEAST_ROOT", Path(__file__).resolve().parents[2]))
#: How long all of a lock's may take in the base, in seconds: some compiling of a line each.
PATIENCE_S = 300.0
#: Where the base has the prefixes that Debian's MPIs are given.
PREFIXES = "/opt/debian-mpi"
#: The lock that plain Spack makes beside spack.yaml.
OF_THE_SITE = "spack.lock"


def externals_of(text: str) -> list[External]:
    """Return what a lock takes from the machine; raises SpackError for what is no lock."""
    nodes = spack_environment.read_lock(text)
    concrete: dict[str, dict[str, Any]] = json.loads(text)["concrete_specs"]
    linked = {
        edge["hash"]
        for value in concrete.values()
        for edge in value.get("dependencies", [])
        if "link" in edge.get("parameters", {}).get("deptypes", ())
    }
    asked = spack_environment.roots_of(text).keys()
    found = []
    for key, node in nodes.items():
        if node.external:
            said = concrete[key]["external"].get("extra_attributes") or {}
            compilers = dict(said.get("compilers") or {})
            found.append(
                External(node.name, node.version, node.external, key in linked | asked, compilers)
            )
    return sorted(found, key=lambda one: (one.name, one.version))


def prove(root: Path, base: Admitted, implementation: str) -> None:
    """Prove an implementation's externals in the base that it is built in.

    Raises SpackError with a sentence for each that nothing could be built with.
    """
    lock = spack_environment.lock_path(root, implementation).read_text()
    asked = {
        "externals": [asdict(one) for one in externals_of(lock)],
        "setting": f"site_configs/{spack_environment.SITE}/spack/packages.yaml",
        "packages": f"add {{package}} to packages.build of {implementation} in {TABLE}, and its "
        "version to containers/sources.lock",
    }
    state = spack.folder(root)
    state.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=state, prefix="prefixes-") as prefixes:
        words = command(
            "exec", *exec_options(), "--contain",
            f"--bind={root / 'site_configs' / spack_environment.SITE / 'spack'}:/mnt:ro",
            f"--bind={prefixes}:{PREFIXES}",
            base, "sh", "-c", f'sh /mnt/mpi_prefixes.sh {PREFIXES} && exec python3 - "$1"', "sh",
            json.dumps(asked),
        )  # fmt: skip
        try:
            done = run_apart(words, PATIENCE_S, text=Path(external_proof.__file__).read_text())
        except subprocess.TimeoutExpired:
            raise SpackError(
                f"the externals of {implementation} were not proven within {PATIENCE_S:g} s in "
                f"{base.path}: look at what occupies this machine, and build again"
            ) from None
    refuse(implementation, done.stdout.splitlines())
    if done.returncode:
        raise SpackError(
            f"the externals of {implementation} cannot be proven in {base.path}: "
            f"{done.stderr.strip()[-1000:]}"
        )


def prove_site(root: Path, site: str) -> int:
    """Prove on this machine what plain Spack takes from it; return of how many packages.

    Raises SpackError with a sentence for each that nothing could be built with, and where plain
    Spack has made no lock yet.
    """
    lock = root / OF_THE_SITE
    if not lock.is_file():
        raise SpackError(
            f"there is no {OF_THE_SITE} that says what Spack takes from this machine for {site}: "
            "run spack -e . concretize, then this again, then spack -e . install"
        )
    setting = f"{layout.name_of(root, layout.site_file(root, site, 'spack'))}/packages.yaml"
    found = externals_of(lock.read_text())
    refuse(site, external_proof.sentences(
        found, setting,
        f"have it installed (Debian: {{package}}), or correct its prefix in {setting}",
    ))  # fmt: skip
    return len(found)


def refuse(whose: str, sentences: Iterable[str]) -> None:
    """Raise SpackError where there are sentences on externals."""
    if said := list(sentences):
        raise SpackError("\n".join(f"{whose}: {one}" for one in said))


def main() -> int:
    """Prove the externals of locks in their bases, or those of a site on this machine."""
    parser = CommandWords(
        prog="python -m containers.spack.externals",
        description="Prove that what Spack takes from the base of images can be built with; with "
        f"{spack_site.VARIABLE}, what plain Spack takes from this machine.",
    )
    parser.add_argument("--implementations", default="", metavar="a,b")
    options = parser.parse_args()
    try:
        site = spack_site.named_site()
        if site is not None:
            # A wrong name is an error, as it is to Spack.
            spack_site.mirrors_of_site(ROOT)
            print(f"{site}: {prove_site(ROOT, site)} externals can be built with")
            return 0
        known = load_table(ROOT)
        names = spack_environment.asked_for(options.implementations)
        for name in names or spack_environment.of_the_distribution(known):
            base = spack_environment.provide_base(ROOT, name)
            prove(ROOT, base, name)
            print(f"{name}: its externals can be built with", flush=True)
    except (
        ProvisionError, SourceError, SpackError, TableError, BuildError, StepError, apt.AptError,
        OSError,
    ) as error:  # fmt: skip
        print(f"spack-externals: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
