"""Push and pull images by digest: `python -m containers.sharing.registry push|pull`.

A registry has, for each implementation, a repository with an image under its SHA-256 as tag, and
under the tag `lock` the image's entry of images.lock. Apptainer carries nothing but SIF files, so
the entry is in one, as its only object.
"""

import json
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from containers import bill_of_materials, build, images, origin, sif_objects, store, trust
from containers.apptainer import CallError, apptainer_command, call
from containers.ending import exit_code
from containers.locking import BuildError, only_build
from containers.programs import ProvisionError
from containers.registry_connection import Registry, RegistryError, check_address, transfer
from containers.sources import SourceError, sha256_of
from containers.spack.recipes import SpackError
from containers.table import TableError
from records import layout
from records.causes import one_line
from records.command_words import CommandWords

ROOT = Path(os.environ.get("WYEAST_ROOT", Path(__file__).resolve().parents[2]))
#: The word for the registry's own lock.
OF_REGISTRY = "registry"
#: What a repository's name may be, so that names are the same in a registry and in a folder.
NAME = re.compile(r"[a-z0-9]+([._-][a-z0-9]+)*")
JSON_OBJECT = "6"
#: What registries answer where a name or a tag is not there: codes of the OCI's distribution
#: specification 1.1 (table "Error Codes"), and Harbor's own, also where there is no such project.
MISSING = re.compile(r"\b(?:MANIFEST_UNKNOWN|NAME_UNKNOWN|NOT_FOUND)\b")
#: More than this is no lock that a registry has of one image.
MOST_LOCK_BYTES = 2**20
#: More than this is no image that anybody runs: a pull would be waited for accordingly.
MOST_IMAGE_BYTES = 2**40

Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
#: A time as builds write it; it goes into a definition file if the image is built again.
Utc = Annotated[str, Field(pattern="^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$")]


class LockEntry(BaseModel):
    """One image's entry in another lock; `bytes` is the size of the file."""

    model_config = ConfigDict(strict=True)
    file: str
    sha256: Sha256
    bytes: Annotated[int, Field(ge=0, le=MOST_IMAGE_BYTES)]
    inputs_sha256: Sha256
    built_utc: Utc
    labels: dict[str, str]


class Lock(BaseModel):
    """Someone else's lock: their images.lock, or the part of it that a registry has."""

    model_config = ConfigDict(strict=True, populate_by_name=True)
    schema_: Literal["wyeast-images-1"] = Field(alias="schema")
    images: dict[str, LockEntry]


def read_lock(text: str, where: str) -> dict[str, LockEntry]:
    """Return the entries of a lock by implementation; raises RegistryError.

    Every name and file is checked, since paths are made from them.
    """
    try:
        entries = Lock.model_validate_json(text).images
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise RegistryError(
            f"{where} is not an image lock: {one_line(place) or 'the text'}: {first['msg']}; use "
            f"the {images.LOCK} of whoever built the images"
        ) from None
    for name, entry in entries.items():
        check_name(name)
        if entry.file != f"{name}.sif":
            raise RegistryError(
                f"{where} is not an image lock: {name} has the file {one_line(entry.file)!r}"
            )
        try:
            images.checked_labels(entry.labels, f"{name} in {where}")
        except images.ImageError as error:
            raise RegistryError(str(error)) from None
    return entries


def check_name(name: str) -> None:
    """Raise RegistryError for a name that no repository or file may have."""
    if not NAME.fullmatch(name):
        raise RegistryError(
            f"`{one_line(name)}` is not an implementation's name; use lower-case letters and "
            "digits, with . _ - in between"
        )


def pull_lock(registry: Registry, name: str) -> dict[str, LockEntry]:
    """Return the lock that a registry has for an implementation; raises RegistryError."""
    where = registry.of(name, "lock")
    with tempfile.TemporaryDirectory() as folder:
        packed = Path(folder) / "lock.sif"
        most = 2 * MOST_LOCK_BYTES
        transfer("pull", registry, "--disable-cache", packed, where, size_bytes=most)
        try:
            text = sif_objects.content(packed, sif_objects.JSON_OBJECT, None, MOST_LOCK_BYTES)
            return read_lock(text.decode(), where)
        except (OSError, ValueError) as error:
            raise RegistryError(f"{where} is not an image lock: {error}") from None


def is_missing(error: RegistryError) -> bool:
    """Return whether a registry has answered that it does not have what it was asked for."""
    return bool(MISSING.search(str(error)))


def push_lock(registry: Registry, name: str, entry: dict[str, Any]) -> None:
    """Push the entry of an image to a registry; raises RegistryError."""
    with tempfile.TemporaryDirectory() as folder:
        text, packed = Path(folder) / "images.lock", Path(folder) / "lock.sif"
        text.write_text(json.dumps({"schema": images.SCHEMA, "images": {name: entry}}))
        try:
            call("sif", "new", packed)
            call("sif", "add", "--datatype", JSON_OBJECT, packed, text)
        except CallError as error:
            raise RegistryError(f"the lock cannot be packed: {error}") from None
        transfer("push", registry, packed, registry.of(name, "lock"))


def push(root: Path, registry: Registry, words: str, dry_run: bool) -> None:
    """Push the named images, and then the lock of each; skip those that are there already.

    Raises RegistryError, and ImageError for an image that is not the locked one.
    """
    for name in images.chosen(root, words):
        check_name(name)
        path = images.verify(root, name)
        found = images.entry_of(root, name)
        # Where this checkout had it from is no business of others.
        entry = {key: value for key, value in found.items() if key in LockEntry.model_fields}
        if entry.keys() != LockEntry.model_fields.keys():
            raise RegistryError(f"{images.LOCK} has an incomplete entry for {name}; build it again")
        try:
            there = pull_lock(registry, name).get(name)
        except RegistryError as error:
            if not is_missing(error):
                raise
            there = None
        said = f"{name}, {entry['bytes'] / 1e6:.0f} MB, sha256 {entry['sha256']}"
        if there and there.model_dump() == entry:
            print(f"is there already: {said}")
        elif dry_run:
            print(f"would push to {registry.address}: {said}")
        else:
            where = registry.of(name, entry["sha256"])
            transfer("push", registry, path, where, size_bytes=entry["bytes"])
            # Last, so that a registry's lock never names an image that is not there.
            push_lock(registry, name, entry)
            print(f"pushed to {registry.address}: {said}")


def wanted(root: Path, registry: Registry, words: str, lock: str) -> dict[str, LockEntry]:
    """Return the entries of the images to pull, by implementation.

    They are those of `lock`: a file, the word `registry`, or empty for images.lock here. Raises
    RegistryError for an image that is not in it, and ImageError.
    """
    named = [] if words in ("", "all") else images.chosen(root, words)
    if lock == OF_REGISTRY:
        if not named:
            raise RegistryError("a registry does not list its images; name them: IMAGES=a,b")
        for name in named:
            check_name(name)
        found: dict[str, LockEntry] = {}
        for name in named:
            found |= {key: e for key, e in pull_lock(registry, name).items() if key == name}
    else:
        path = layout.meant(lock) if lock else layout.find(root, images.LOCK)
        try:
            content = path.read_bytes() if lock else images.lock_content(root)
            found = {} if content is None else read_lock(content.decode(), str(path))
        except FileNotFoundError:
            raise RegistryError(f"{path}, named by LOCK, is missing") from None
        except (OSError, UnicodeDecodeError) as error:
            raise RegistryError(f"{path} cannot be read: {error}") from None
    for name in named or (["any image"] if not found else []):
        if name not in found:
            raise RegistryError(
                f"{lock or images.LOCK} has no digest of {name}; name the lock that came with the "
                "images (LOCK=<file>), or take the registry's word (LOCK=registry)"
            )
    return {name: found[name] for name in named or found}


def word_for(root: Path, lock: str, unsigned: bool) -> dict[str, str] | None:
    """Return the person's word for what a lock pulls; None if only a signature counts.

    Naming a lock's file means vouching for its digests. Raises RegistryError if the registry's own
    lock is to be used and no key's signature could count.
    """
    if lock and lock != OF_REGISTRY:
        return origin.word(f"LOCK={lock}")
    if lock and unsigned:
        return origin.word("ALLOW_UNSIGNED=1")
    if lock and not layout.all_seen(layout.home(root) / trust.FOLDER, "*.asc"):
        raise RegistryError(
            "LOCK=registry accepts whatever anyone with write access to the registry has put "
            "there, and "
            f"{trust.FOLDER} has no key to verify who made it: put the sender's key there, or "
            "name the sender's lock (LOCK=<file>), or set ALLOW_UNSIGNED=1"
        )
    return None


def pull(
    root: Path, registry: Registry, words: str, lock: str, dry_run: bool, unsigned: bool = False
) -> None:
    """Pull the named images, verify each, and put it in place and into images.lock.

    One that is here already is left alone. Raises RegistryError, ImageError or BuildError; what
    was here is then as it was.
    """
    word = word_for(root, lock, unsigned)
    for name, entry in wanted(root, registry, words, lock).items():
        said = f"{name}, {entry.bytes / 1e6:.0f} MB, sha256 {entry.sha256}"
        if is_here(root, name, entry):
            answer_for(root, name, word, dry_run)
            print(f"is here already: {said}")
        elif dry_run:
            print(f"would pull from {registry.address}: {said}")
            continue
        else:
            with only_build(root):
                install(root, registry, name, entry, lock, word)
            print(f"pulled from {registry.address} and verified: {said}")
        say_whether_current(root, name, entry)


def is_here(root: Path, name: str, entry: LockEntry) -> bool:
    """Return whether the image of an entry is in place and in images.lock."""
    try:
        images.verify(root, name)
        return bool(images.entry_of(root, name)["sha256"] == entry.sha256)
    except images.ImageError:
        return False


def answer_for(root: Path, name: str, word: dict[str, str] | None, dry_run: bool) -> None:
    """Record that a person vouches for an image that is here already without being vouched for."""
    entry = images.entry_of(root, name)
    if word and not dry_run and not origin.answered_for(entry):
        with only_build(root):
            images.write_entry(root, name, {**entry, "admitted": word})


def install(
    root: Path,
    registry: Registry,
    name: str,
    entry: LockEntry,
    lock: str,
    word: dict[str, str] | None,
) -> None:
    """Pull one image to a temporary file; put it into place only if it matches its entry.

    Raises RegistryError, and ImageError if it does not.
    """
    target = store.folder(root) / entry.file
    target.parent.mkdir(parents=True, exist_ok=True)
    aside = target.with_name(f".pulled-{target.name}")
    # Of a pull that was killed.
    aside.unlink(missing_ok=True)
    where = registry.of(name, entry.sha256)
    try:
        transfer("pull", registry, "--disable-cache", aside, where, size_bytes=entry.bytes)
        by_signature = lock == OF_REGISTRY and not word
        signed_by = signers_of(root, aside, needed=by_signature)
        if by_signature:
            refuse_other_inputs(aside, where, entry)
        origin: dict[str, Any] = {
            "how": "pulled", "from": registry.address, "lock": lock or images.LOCK,
            "signed_by": signed_by,
        }  # fmt: skip
        if lock and lock != OF_REGISTRY:
            origin["lock_sha256"] = sha256_of(layout.meant(lock))
        if registry.insecure:
            origin["insecure"] = True
        found = {**entry.model_dump(), "origin": origin}
        if not lock:
            # The digest is that of images.lock itself: its statements on that image remain true.
            here = images.entry_of(root, name)
            found |= {key: here[key] for key in ("origin", "admitted") if key in here}
        if word:
            found["admitted"] = word
        images.install(root, name, aside, found, where)
    finally:
        aside.unlink(missing_ok=True)


def refuse_other_inputs(image: Path, where: str, entry: LockEntry) -> None:
    """Raise unless a signed image says itself of what inputs a registry's lock says that it is.

    Nobody signs that lock, and a signature counts for ever: else an old image could be given out
    as today's. Raises RegistryError.
    """
    try:
        found = bill_of_materials.inputs_of(image)
    except images.ImageError as error:
        raise RegistryError(
            f"{where} is signed, but not taken by a registry's lock: {error}"
        ) from None
    if found != entry.inputs_sha256:
        raise RegistryError(
            f"{where} is signed, but not for what the registry's lock says: by its own bill of "
            f"materials it was made of the inputs {one_line(found, 64)}, and by the lock of "
            f"{entry.inputs_sha256}; it is not installed: tell whoever keeps the registry"
        )


def signers_of(root: Path, path: Path, needed: bool) -> list[str]:
    """Return the fingerprints of the trusted keys that signed a pulled image.

    Raises RegistryError if a signature is needed and none counts.
    """
    if not needed and not any((root / trust.FOLDER).glob("*.asc")):
        return []
    try:
        return sorted(key.fingerprint for key in trust.signers(root, path))
    except trust.TrustError as error:
        if not needed:
            return []
        raise RegistryError(
            f"{error}; by a registry's own lock only signed images are taken: `make pull` takes "
            "others by the sender's lock (LOCK=<file>), or with ALLOW_UNSIGNED=1"
        ) from None


def say_whether_current(root: Path, name: str, entry: LockEntry) -> None:
    """Report pulled images that `make run` will not use as they are."""
    try:
        current = entry.inputs_sha256 in build.inputs_here(root, name).values()
    except (
        TableError, SourceError, BuildError, ProvisionError, SpackError,
    ) as error:  # fmt: skip
        print(f"  it cannot be built here, and `make run` will not use it: {error}")
        return
    if not current:
        print(
            "  it was built from inputs that differ from this checkout's: `make run` would "
            f"rebuild {name}; to measure the pulled one, check out the commit that it was built "
            "from"
        )


def main() -> int:
    """Push or pull, or print a sentence on why not."""
    parser = CommandWords(
        prog="python -m containers.sharing.registry",
        description="Push images to a registry, or pull them from it, by the digests of a lock.",
    )
    parser.add_argument("action", choices=["push", "pull"])
    parser.add_argument("--registry", default="", metavar="oras://host/path")
    parser.add_argument(
        "--images", default="", metavar="a,b|all", help="which images (default: all in the lock)"
    )
    parser.add_argument(
        "--lock", default="", metavar="FILE|registry",
        help="the lock whose digests a pull trusts: a file, or the registry's own, instead of "
        f"{images.LOCK}",
    )  # fmt: skip
    parser.add_argument(
        "--insecure", action="store_true", help="use the registry without TLS if it offers none"
    )
    parser.add_argument(
        "--allow-unsigned", action="store_true",
        help="with --lock registry: vouch for images that no trusted key has signed",
    )  # fmt: skip
    parser.add_argument("--dry-run", action="store_true", help="print what would be done")
    options = parser.parse_args()

    def work() -> int:
        if not options.registry:
            raise RegistryError("name the registry: REGISTRY=oras://host/path")
        registry = Registry(check_address(options.registry), options.insecure)
        apptainer_command()
        if options.action == "push":
            push(ROOT, registry, options.images, options.dry_run)
        else:
            pull(
                ROOT, registry, options.images, options.lock, options.dry_run,
                options.allow_unsigned,
            )  # fmt: skip
        return 0

    errors = (RegistryError, images.ImageError, BuildError, ProvisionError)
    return exit_code(options.action, work, errors, "no partial file is left")


if __name__ == "__main__":
    sys.exit(main())
