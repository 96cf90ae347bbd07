"""The built images: which there are, whether they are the locked ones, what they say they are."""

import json
import os
import tempfile
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from containers.apptainer import CallError, call
from containers.sources import sha256_of

LOCK = "containers/images.lock"
SCHEMA = "wyeast-images-1"
BUILD_COMMAND = "make images"
VARIANT_LABEL = "org.wyeast.variant."
INTERFACE_LABEL = "org.wyeast.interface"
#: No image has it itself: the paths of a bound MPI's libraries that images take.
TAKEN_LABEL = "org.wyeast.library.taken"
#: The variable that has, in JSON, the facts of the machine's own MPI that is bound into images;
#: containers.host_mpi finds them.
HOST_MPI = "WYEAST_HOST_MPI"


class ImageError(Exception):
    """An image cannot be used; the text is a sentence with the next step."""


def folder(root: Path) -> Path:
    """Return where images stand."""
    return root / ".wyeast" / "images"


def load_lock(root: Path) -> dict[str, Any]:
    """Return images.lock: `schema` and, by implementation, `images`; empty where none was built.

    Raises ImageError for a file that is not a lock.
    """
    path = root / LOCK
    try:
        lock = json.loads(path.read_text())
    except FileNotFoundError:
        return {"schema": SCHEMA, "images": {}}
    except (OSError, ValueError) as error:
        raise ImageError(
            f"{path} cannot be read ({error}); remove it and build again: {BUILD_COMMAND}"
        ) from None
    if not isinstance(lock, dict) or lock.get("schema") != SCHEMA:
        raise ImageError(
            f"{path} is not of the schema {SCHEMA}; remove it and build again: {BUILD_COMMAND}"
        )
    return lock


def write_entry(root: Path, implementation: str, entry: dict[str, Any]) -> None:
    """Set one image's entry in images.lock; the file is never seen half-written."""
    lock = load_lock(root)
    lock["images"][implementation] = entry
    lock["images"] = dict(sorted(lock["images"].items()))
    path = root / LOCK
    handle, aside = tempfile.mkstemp(dir=path.parent, prefix=".images.lock-")
    try:
        with os.fdopen(handle, "w") as file:
            json.dump(lock, file, indent=2)
            file.write("\n")
            file.flush()
            os.fsync(file.fileno())
        # mkstemp makes a file that only we may read; others run the images, too.
        os.chmod(aside, 0o644)
        os.replace(aside, path)
    except BaseException:
        os.unlink(aside)
        raise


def install(
    root: Path, implementation: str, aside: Path, entry: dict[str, Any], origin: str
) -> None:
    """Put an image that came from elsewhere into its place and into images.lock.

    `aside` is the file, in the folder of the images, and is gone afterwards; `origin` is how it is
    named to people. A build may not be under way. Raises ImageError, and changes nothing, unless
    the file is the image of its entry, by digest and labels.
    """
    found = sha256_of(aside)
    if found != entry["sha256"]:
        raise ImageError(
            f"{origin} has sha256 {found}, but the lock says {entry['sha256']}: it is not the "
            "image that was meant, and is not installed; ask those who gave it to you"
        )
    if labels_inside(aside) != entry["labels"]:
        raise ImageError(
            f"{origin} has other labels than the lock says, and is not installed; ask those who "
            "gave you the lock for the right one"
        )
    with aside.open("rb") as file:
        os.fsync(file.fileno())
    aside.replace(folder(root) / entry["file"])
    write_entry(root, implementation, entry)


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


def variants_of(labels: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Return the variants that an image's labels name: the variables that choose each."""
    return {
        key.removeprefix(VARIANT_LABEL): dict(
            (name, value) for name, _, value in (word.partition("=") for word in words.split())
        )
        for key, words in labels.items()
        if key.startswith(VARIANT_LABEL)
    }


def with_host_mpi(labels: dict[str, str], variant: str | None) -> dict[str, str]:
    """Return an image's labels as they are in a variant: with a bound MPI they are that one's.

    One of them names the libraries that images take of it.
    """
    facts = json.loads(os.environ.get(HOST_MPI) or "{}")
    if not variant or variant != facts.get("variant"):
        return labels
    return {**labels, **facts["labels"], TAKEN_LABEL: " ".join(facts["taken"])}


def options_of(labels: Mapping[str, str], variant: str) -> list[str]:
    """Return the options of `apptainer exec` that choose a variant, a bound MPI included."""
    return [
        *(f"--bind={words}" for words in labels.get("org.wyeast.binds", "").split()),
        *(f"--env={name}={value}" for name, value in variants_of(labels)[variant].items()),
    ]


def entry_of(root: Path, name: str) -> dict[str, Any]:
    """Return the entry in images.lock of an implementation, or of a variant of one.

    Raises ImageError where it has none, and for a variant that the image does not have.
    """
    implementation, variant = split_variant(name)
    found = load_lock(root)["images"].get(implementation)
    if not isinstance(found, dict):
        raise ImageError(
            f"{implementation} is not in {LOCK}; build it: {BUILD_COMMAND} IMAGES={implementation}"
        )
    known = variants_of(with_host_mpi(found["labels"], variant))
    if variant is not None and variant not in known:
        raise ImageError(unknown_variant(implementation, variant, known))
    return found


def interface_of(root: Path, name: str) -> str:
    """Return what programs of an image call, `mpi` or `pvm`, by its label, or by the table.

    Raises ImageError for a table that cannot be read; a name that is nowhere is taken for an MPI's,
    whose checks say that it is missing.
    """
    from containers.table import TableError, load_table

    implementation, _ = split_variant(name)
    found = load_lock(root)["images"].get(implementation)
    if isinstance(found, dict) and INTERFACE_LABEL in found["labels"]:
        return str(found["labels"][INTERFACE_LABEL])
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
    entry = entry_of(root, name)
    implementation, _ = split_variant(name)
    path = folder(root) / str(entry["file"])
    try:
        status = path.stat()
    except OSError:
        raise ImageError(
            f"{path} is missing; build it: {BUILD_COMMAND} IMAGES={implementation}"
        ) from None
    found = _sha256(path, status.st_size, status.st_mtime_ns, status.st_ino)
    if found != entry["sha256"]:
        raise ImageError(
            f"{path} has sha256 {found}, but {LOCK} says {entry['sha256']}: it is not the image "
            f"that was built; remove it and build it again: {BUILD_COMMAND} "
            f"IMAGES={implementation}"
        )
    return path


@cache
def _sha256(path: Path, size: int, modified_ns: int, inode: int) -> str:
    # Once a process and file state: checks of one campaign ask many times.
    return sha256_of(path)


def available(root: Path) -> list[str]:
    """Return the implementations that are in images.lock and whose image is there, sorted."""
    return sorted(
        name
        for name, entry in load_lock(root)["images"].items()
        if (folder(root) / entry["file"]).is_file()
    )


def chosen(root: Path, words: str) -> list[str]:
    """Return the implementations that `words` names by comma, or all that are available.

    Variants of one implementation have one image. Raises ImageError where that is none.
    """
    named = [word.strip() for word in words.split(",") if word.strip()]
    if named and named != ["all"]:
        return list(dict.fromkeys(split_variant(name)[0] for name in named))
    found = available(root)
    if not found:
        raise ImageError(f"no image is here yet; build them: {BUILD_COMMAND}")
    return found


def default_implementations(root: Path) -> list[str]:
    """Return the implementations that the table calls default; raises ImageError."""
    from containers.table import TableError, load_table

    try:
        return load_table(root).defaults()
    except TableError as error:
        raise ImageError(str(error)) from None


def labels_inside(path: Path) -> dict[str, str]:
    """Return the labels that a SIF file itself has; raises ImageError where it has none."""
    try:
        data = json.loads(call("inspect", "--json", "--labels", path))
        return dict(data["data"]["attributes"]["labels"])
    except (CallError, ValueError, KeyError, TypeError) as error:
        raise ImageError(f"{path} does not say what it is: {error}") from None


def labels(path: Path) -> dict[str, str]:
    """Return an image's labels, as the build has read them out of it into images.lock.

    The image is known by its place: `.wyeast/images/` of the checkout whose lock is asked.
    Raises ImageError for an image that is not in the lock.
    """
    # Not resolved: the folder may be a link to a larger disk.
    root = path.absolute().parents[2]
    for entry in load_lock(root)["images"].values():
        if entry["file"] == path.name:
            return dict(entry["labels"])
    raise ImageError(f"{path} is not in {LOCK}; build it: {BUILD_COMMAND}")
