"""Get the images that are out of date: `python -m containers.sharing.obtain` is `make images`.

Where a registry is named, by a person or by the site, an image that it has of this checkout's
inputs is pulled by its digest, as `make pull` does, and only what it lacks is built. The digest is
that of images.lock here, or the registry's own, which counts only for images that a trusted key
has signed, and that say themselves that they are of these inputs.
"""

import os
import sys
from pathlib import Path

from containers import build, images, selection
from containers.apptainer import apptainer_command
from containers.bootstrap import BOOTSTRAPS, Bootstrap
from containers.ending import exit_code
from containers.locking import only_build
from containers.registry_connection import Registry, RegistryError, check_address
from containers.sharing import registry as sharing
from containers.sharing.registry import LockEntry
from containers.table import load_table, split_variant
from records.base import CampaignError
from records.command_words import CommandWords
from site_configs.installation_entries import images_in

ROOT = Path(os.environ.get("WYEAST_ROOT", Path(__file__).resolve().parents[2]))
#: The word for building everything here, whatever the site says.
NOWHERE = "none"


def registry_of(root: Path, site: str, words: str) -> Registry | None:
    """Return the registry that a person names, else the one of the site; None where there is none.

    Raises RegistryError for what is not an address, and CampaignError for a site that is unknown
    or whose data are not valid.
    """
    address = words or selection.site_data(root, site).get("images_from", NOWHERE)
    if address == NOWHERE:
        return None
    named = "IMAGES_FROM" if words else f"`images_from` of site {site}"
    return Registry(check_address(str(address), named))


def pull_current(root: Path, registry: Registry, names: list[str], word: str | None) -> None:
    """Pull those of the images that are out of date and that a registry has of this checkout.

    `word` names the bootstrap, as for a build. Says of each what becomes of it. Raises
    RegistryError where the registry does not answer, or has one that nobody trusted has signed,
    and the errors of a build.
    """
    kinds: tuple[Bootstrap, ...] = tuple(one for one in BOOTSTRAPS if word in (None, one))
    for name in dict.fromkeys(split_variant(one)[0] for one in names):
        recipes = [build.recipe_of(root, name, kind) for kind in kinds]
        lock = images.load_lock(root)
        if any(build.up_to_date(recipe, lock) for recipe in recipes):
            continue
        inputs = {recipe.inputs_sha256() for recipe in recipes}
        try:
            found = entry_for(root, registry, name, inputs)
            if found is None:
                continue
            entry, whose = found
            with only_build(root):
                sharing.install(root, registry, name, entry, whose, None)
        except RegistryError as error:
            if not sharing.is_missing(error):
                raise RegistryError(f"{error}; or build it here: IMAGES_FROM={NOWHERE}") from None
            print(f"{registry.address} has no {name}, so it is built here")
        else:
            print(f"pulled from {registry.address} and verified: {name}, "
                  f"{entry.bytes / 1e6:.0f} MB, sha256 {entry.sha256}")  # fmt: skip


def entry_for(
    root: Path, registry: Registry, name: str, inputs: set[str]
) -> tuple[LockEntry, str] | None:
    """Return the entry by which an image is pulled, and whose lock it is of; None for no image.

    The registry's image may be of other inputs, which is said. Raises RegistryError.
    """
    if name in images.load_own_lock(root)["images"]:
        own = sharing.wanted(root, registry, name, "")[name]
        if own.inputs_sha256 in inputs:
            return own, ""
    theirs = sharing.wanted(root, registry, name, sharing.OF_REGISTRY)[name]
    if theirs.inputs_sha256 in inputs:
        # Refuses where no key's signature could count, before megabytes travel.
        sharing.word_for(root, sharing.OF_REGISTRY, unsigned=False)
        return theirs, sharing.OF_REGISTRY
    print(f"{registry.address} has {name} of other inputs than this checkout's, so it is built "
          "here")  # fmt: skip
    return None


def main() -> int:
    """Pull and build what is out of date, or print a sentence on why not."""
    parser = CommandWords(
        prog="python -m containers.sharing.obtain",
        description="Pull the images that are out of date, and build those that no registry has.",
    )
    build.add_choice(parser)
    parser.add_argument("--site", default="local", help="a folder of site_configs/ (%(default)s)")
    parser.add_argument(
        "--images-from", default="", metavar="oras://host/path|none",
        help="the registry to pull from (default: the site's `images_from`)",
    )  # fmt: skip
    options = parser.parse_args()

    def work() -> int:
        words = images_in(options.images)
        if options.images and not words:
            # What a site has installed is there, or it is not.
            return 0
        names = load_table(ROOT).choose(words)
        if registry := registry_of(ROOT, options.site, options.images_from):
            apptainer_command()
            pull_current(ROOT, registry, names, options.bootstrap)
        build.build(ROOT, names, options.bootstrap, force=False)
        return 0

    errors = (RegistryError, CampaignError, *build.ERRORS)
    return exit_code("images", work, errors, "images that were here are unchanged")


if __name__ == "__main__":
    sys.exit(main())
