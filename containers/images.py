"""The built images: which exist, whether they are the locked ones, how they describe themselves."""

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from containers import sif_objects, store
from containers.apptainer import Admitted, mount_option, state_of
from containers.apptainer import ImageError as ImageError
from containers.labels import BoundMpi, LabelError, Labels, checked
from containers.sif_header import SifError
from containers.sources import sha256_of
from containers.table import split_variant, unknown_variant
from records import layout
from records.files import json_of, write_whole
from site_configs.installation_entries import is_installation

LOCK = "containers/images.lock"
#: What each entry of it has at least: the name under which the image travels, and its digest.
FILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]*\.sif")
SHA256 = re.compile("[0-9a-f]{64}")
SCHEMA = "wyeast-images-1"
BUILD_COMMAND = "make images"
#: The variable that has, in JSON, the facts of the machine's own MPI that is bound into images;
#: containers.host_mpi finds them.
HOST_MPI = "WYEAST_HOST_MPI"
#: The variable that names the images used in addition to a checkout's own: those that a bundle
#: brought, while its rerun measures.
GUESTS = "WYEAST_GUESTS"


def take_over(root: Path) -> None:
    """Move images that are under their names into the store. No build may be under way."""
    for entry in load_own_lock(layout.home(root))["images"].values():
        store.take_over(root, entry)


def prune(root: Path) -> list[str]:
    """Remove from the store what no lock names, the guests' included; return the digests.

    Of a store that other checkouts may share, by a link, nothing is removed, and nothing that a
    campaign of another user is running. No build and no campaign of this checkout may be under way.
    Raises ImageError for a file that is not a lock.
    """
    if store.folder(root).is_symlink():
        return []
    locks = [
        layout.home(root),
        *(lock.parents[1] for lock in (layout.state(root) / "guests").glob(f"*/{LOCK}")),
    ]
    named = {entry["sha256"] for one in locks for entry in load_own_lock(one)["images"].values()}
    found = [path for path in store.by_digest(root).glob("*.sif") if path.stem not in named]
    return sorted(path.stem for path in found if store.remove_unused(path))


def guest_root(root: Path, name: str) -> Path:
    """Return the folder with the lock of a bundle's images, laid out as a checkout.

    The images themselves are in the store of the checkout, which does not use them otherwise.

    Raises ImageError for a name that is not plain.
    """
    if not name.isalnum():
        raise ImageError(f"{GUESTS} is `{name}`, but no bundle's images are there; unset it")
    return layout.state(root) / "guests" / name


@contextmanager
def with_guests(name: str) -> Iterator[None]:
    """Use the images of a bundle in addition to the checkout's, here and in child processes."""
    before = os.environ.get(GUESTS)
    os.environ[GUESTS] = name
    try:
        yield
    finally:
        os.environ.pop(GUESTS)
        if before is not None:
            os.environ[GUESTS] = before


def load_lock(root: Path) -> dict[str, Any]:
    """Return images.lock: `schema` and, by implementation, `images`; empty if none was built.

    In a shared installation the user's entries replace the installation's. During a bundle's rerun
    it includes the images of that bundle. Raises ImageError for a file that is not a lock.
    """
    lock: dict[str, Any] = {"schema": SCHEMA, "images": _entries(root)}
    if name := os.environ.get(GUESTS):
        guests = guest_root(root, name)
        for implementation, entry in load_own_lock(guests)["images"].items():
            # Before there was a store, a bundle's images were in a folder of their own.
            file = str(store.folder(guests).absolute() / entry["file"])
            lock["images"][implementation] = {**entry, "file": file, "guest": True}
    return lock


def lock_content(root: Path) -> bytes | None:
    """Return the content of images.lock as it counts here; None if there is none.

    It is a file's where only one is read. With one in a home and one in its installation it is that
    of both, the home's entries before the installation's. Raises ImageError for what is no lock.
    """
    files = [place / LOCK for place in dict.fromkeys((layout.home(root), root))]
    found = [file for file in files if file.is_file()]
    if len(found) > 1:
        return text_of({**load_own_lock(root), "images": _entries(root)}).encode()
    try:
        return found[0].read_bytes() if found else None
    except OSError as error:
        raise ImageError(f"{found[0]} cannot be read: {error}") from None


def text_of(lock: dict[str, Any]) -> str:
    """Return a lock as it is written, its images by name."""
    return json.dumps({**lock, "images": dict(sorted(lock["images"].items()))}, indent=2) + "\n"


def _entries(root: Path) -> dict[str, Any]:
    own: dict[str, Any] = load_own_lock(layout.home(root))["images"]
    return load_own_lock(root)["images"] | own if layout.is_shared(root) else own


def load_own_lock(root: Path) -> dict[str, Any]:
    """Return the images.lock of a checkout or a home itself; raises ImageError if it is none."""
    path = root / LOCK
    try:
        lock = json_of(path.read_text())
    except FileNotFoundError:
        return {"schema": SCHEMA, "images": {}}
    except (OSError, ValueError) as error:
        raise ImageError(
            f"{path} cannot be read ({error}); remove it and build again: {BUILD_COMMAND}"
        ) from None
    if not isinstance(lock, dict) or lock.get("schema") != SCHEMA:
        raise ImageError(
            f"{path} does not have the schema {SCHEMA}; remove it and build again: {BUILD_COMMAND}"
        )
    found = lock.get("images")
    if not isinstance(found, dict):
        raise ImageError(f"{path} has no images; remove it and build again: {BUILD_COMMAND}")
    for name, entry in found.items():
        if not isinstance(entry, dict) or not (
            FILE.fullmatch(str(entry.get("file"))) and SHA256.fullmatch(str(entry.get("sha256")))
        ):
            raise ImageError(
                f"{path} lacks the file or the sha256 of {name!a}; remove that entry and build "
                f"the image again: {BUILD_COMMAND}"
            )
    return lock


def write_entry(root: Path, implementation: str, entry: dict[str, Any]) -> None:
    """Set one image's entry in images.lock; the file is never seen half-written."""
    place = layout.home(root)
    lock = load_own_lock(place)
    lock["images"][implementation] = entry
    # Others run the images, too, whatever the user's habit.
    path = place / LOCK
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, text_of(lock), 0o644)


def install(
    root: Path,
    implementation: str,
    aside: Path,
    entry: dict[str, Any],
    origin: str,
    guests: str = "",
) -> None:
    """Put an image that came from elsewhere into the store and into images.lock.

    `aside` is the file, in the folder of the images, and is gone afterwards; `origin` is how it is
    named in messages. With `guests`, the name of a bundle's images, the lock is theirs. No build
    may be under way. Raises ImageError, and changes nothing, unless the file is the image of its
    entry, by digest and labels.
    """
    wanted = checked_labels(entry["labels"], origin)
    found = sha256_of(aside)
    if found != entry["sha256"]:
        raise ImageError(
            f"{origin} has sha256 {found}, but the lock says {entry['sha256']}: it is not the "
            "intended image and is not installed; ask whoever gave it to you"
        )
    if labels_inside(aside) != wanted:
        raise ImageError(
            f"{origin} has labels that differ from the lock's, so it is not installed; ask "
            "whoever gave you the lock for the right image"
        )
    take_over(root)
    store.keep(root, aside, entry["sha256"])
    if guests:
        write_entry(guest_root(root, guests), implementation, entry)
    else:
        write_entry(root, implementation, entry)
        store.name_in_folder(root, entry)


def bound_mpi(variant: str | None) -> BoundMpi | None:
    """Return the machine's own MPI that is bound into images, if the variant uses it."""
    facts = json.loads(os.environ.get(HOST_MPI) or "{}")
    if not variant or variant != facts.get("variant"):
        return None
    return BoundMpi.of(facts)


def read_labels(words: object, image: str, variant: str | None = None) -> Labels:
    """Return an image's labels as they are in a variant: a bound MPI's labels replace its own.

    `image` is how the image is named to people. Raises ImageError for a label that is not as it
    must be.
    """
    try:
        return Labels.of(words, image, bound_mpi(variant))
    except LabelError as error:
        raise ImageError(str(error)) from None


def checked_labels(words: object, image: str) -> dict[str, str]:
    """Return an image's labels unchanged; raises ImageError if one is not valid."""
    try:
        return checked(words, image)
    except LabelError as error:
        raise ImageError(str(error)) from None


def options_of(labels: Labels, variant: str) -> list[str]:
    """Return the options of `apptainer exec` that choose a variant, a bound MPI included."""
    bound = labels.bound if labels.bound and labels.bound.variant == variant else None
    return [
        *(mount_option(*bind, writable=False) for bind in (bound.binds if bound else ())),
        *(f"--env={name}={value}" for name, value in labels.variants[variant].items()),
    ]


def entry_of(root: Path, name: str) -> dict[str, Any]:
    """Return the entry in images.lock of an implementation, or of a variant of one.

    Raises ImageError where it has none, where a label of it is not as it must be, and for a variant
    that the image does not have.
    """
    implementation, variant = split_variant(name)
    found = load_lock(root)["images"].get(implementation)
    if not isinstance(found, dict):
        raise ImageError(
            f"{implementation} is not in {LOCK}; build it: {BUILD_COMMAND} IMAGES={implementation}"
        )
    known = read_labels(found.get("labels"), f"{implementation} in {LOCK}", variant).variants
    if variant is not None and variant not in known:
        raise ImageError(unknown_variant(implementation, variant, known))
    return found


def interface_of(root: Path, name: str) -> str:
    """Return what an image's programs call, `mpi` or `pvm`, by its label or the table.

    Raises ImageError for a table that cannot be read; a name that is nowhere is taken for an MPI's,
    whose checks say that it is missing.
    """
    from containers.table import TableError, load_table

    implementation, _ = split_variant(name)
    found = load_lock(root)["images"].get(implementation)
    if isinstance(found, dict):
        interface = read_labels(found.get("labels"), f"{implementation} in {LOCK}").interface
        if interface:
            return interface
    try:
        table = load_table(root)
        if implementation not in table.implementations:
            return "mpi"
        return table.resolve(implementation).interface
    except TableError as error:
        raise ImageError(str(error)) from None


def verify(root: Path, name: str) -> Path:
    """Return the path of the image, the one in images.lock, of an implementation or its variant.

    Raises ImageError where it is not in the lock, is missing, or has another SHA-256, and for a
    variant that it does not have.
    """
    return verified(root, name)[0]


def verified(root: Path, name: str) -> tuple[Path, tuple[int, ...], dict[str, Any]]:
    """Return the path of an image as `verify` does, the state in which it was read, its entry."""
    entry = entry_of(root, name)
    implementation, _ = split_variant(name)
    path = store.path_of(root, entry)
    try:
        state = state_of(path)
    except PermissionError:
        raise
    except OSError:
        raise ImageError(
            f"{path} is missing; build it: {BUILD_COMMAND} IMAGES={implementation}"
        ) from None
    found = _sha256(path, state)
    if found != entry["sha256"]:
        raise ImageError(
            f"{path} has sha256 {found}, but {LOCK} says {entry['sha256']}: it is not the image "
            f"that was built; remove it and build it again: {BUILD_COMMAND} "
            f"IMAGES={implementation}"
        )
    return path, state, entry


@cache
def _sha256(path: Path, state: tuple[int, ...]) -> str:
    # Once a process and file state: checks of one campaign ask many times.
    found = sha256_of(path)
    if state_of(path) != state:
        raise ImageError(f"{path} changed while it was being read; run this again")
    return found


def available(root: Path) -> list[str]:
    """Return the implementations that are in images.lock and whose image is there, sorted."""
    return sorted(
        name
        for name, entry in load_lock(root)["images"].items()
        if store.path_of(root, entry).is_file()
    )


def chosen(root: Path, words: str) -> list[str]:
    """Return the implementations that `words` names by comma, or all that are available.

    Variants of one implementation have one image. Raises ImageError where nothing is available, and
    for an installation of a site, which is no image.
    """
    named = [word.strip() for word in words.split(",") if word.strip()]
    if others := [name for name in named if is_installation(name)]:
        raise ImageError(f"{others[0]} is an installation of a site and no image: leave it out")
    if named and named != ["all"]:
        return list(dict.fromkeys(split_variant(name)[0] for name in named))
    found = available(root)
    if not found:
        raise ImageError(f"there are no images here yet; build them: {BUILD_COMMAND}")
    return found


def default_implementations(root: Path) -> list[str]:
    """Return the table's default implementations; raises ImageError."""
    from containers.table import TableError, load_table

    try:
        return load_table(root).defaults()
    except TableError as error:
        raise ImageError(str(error)) from None


def labels_inside(path: Path) -> dict[str, str]:
    """Return the labels in a SIF file itself, without running anything from the image.

    Raises ImageError where it has none, and for a label that is not as it must be.
    """
    try:
        # An image, which its digest identifies, may be a link to a larger disk.
        words = sif_objects.labels(path.resolve())
    except (OSError, SifError) as error:
        raise ImageError(
            f"{path} does not say what it is: {error}; `apptainer build` stores an image's "
            f"description in its object {sif_objects.SAID}: ask whoever made it to build it that "
            f"way, or build one here: {BUILD_COMMAND}"
        ) from None
    return checked_labels(words, str(path))


def labels(path: Path | Admitted) -> dict[str, str]:
    """Return an image's labels, as the build copied them from it into images.lock.

    They are checked but still text; read_labels() gives them types.

    The image is identified by its path: below `.wyeast/images/` of the checkout whose lock is used.
    Raises ImageError for an image that is not in the lock, and for a label that is not as it must
    be.
    """
    # Not resolved: the folder may be a link to a larger disk.
    place = Path(path).absolute()
    root = place.parents[3 if place.parent.name == store.STORE else 2]
    if root == layout.home(layout.installation()):
        root = layout.installation()
    for name, entry in load_lock(root)["images"].items():
        if store.path_of(root, entry).absolute() == place:
            return checked_labels(entry.get("labels"), f"{name} in {LOCK}")
    raise ImageError(f"{path} is not in {LOCK}; build it: {BUILD_COMMAND}")
