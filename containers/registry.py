"""Images to a registry and from it, by digest: `python -m containers.registry push|pull`.

A registry has, for each implementation, a repository with an image under its SHA-256 as tag, and
under the tag `lock` the image's entry of images.lock. Apptainer carries nothing but SIF files, so
the entry is in one, as its only object.
"""

import argparse
import json
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from containers import build, images, spack_environment
from containers.apptainer import CallError, apptainer_command, call
from containers.ending import exit_code
from containers.locking import BuildError, only_build
from containers.programs import ProvisionError
from containers.sources import SourceError
from containers.table import TableError

ROOT = Path(os.environ.get("WYEAST_ROOT", Path(__file__).resolve().parents[1]))
#: The word for the lock that a registry has itself.
OF_REGISTRY = "registry"
#: What a repository's name may be, so that names are the same in a registry and in a folder.
NAME = re.compile(r"[a-z0-9]+([._-][a-z0-9]+)*")
ADDRESS = re.compile(r"oras://[a-z0-9.-]+(:[0-9]+)?(/[a-z0-9]+([._-][a-z0-9]+)*)*")
JSON_OBJECT = "6"

Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class RegistryError(Exception):
    """An image cannot travel; the text is a sentence with the next step."""


class Entry(BaseModel):
    """One image's entry in a lock of others; `bytes` is the size of the file."""

    model_config = ConfigDict(strict=True)
    file: str
    sha256: Sha256
    bytes: int
    inputs_sha256: Sha256
    built_utc: str
    labels: dict[str, str]


class Lock(BaseModel):
    """A lock of others: their images.lock, or the part of it that a registry has."""

    model_config = ConfigDict(strict=True, populate_by_name=True)
    schema_: Literal["wyeast-images-1"] = Field(alias="schema")
    images: dict[str, Entry]


def read_lock(text: str, where: str) -> dict[str, Entry]:
    """Return the entries of a lock by implementation; raises RegistryError.

    Every name and file is checked, for paths are made of them.
    """
    try:
        entries = Lock.model_validate_json(text).images
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise RegistryError(
            f"{where} is not a lock of images: {place or 'the text'}: {first['msg']}; give the "
            f"{images.LOCK} of those who built the images"
        ) from None
    for name, entry in entries.items():
        check_name(name)
        if entry.file != f"{name}.sif":
            raise RegistryError(
                f"{where} is not a lock of images: {name} has the file {entry.file}"
            )
    return entries


def check_name(name: str) -> None:
    """Raise RegistryError for a name that no repository or file may have."""
    if not NAME.fullmatch(name):
        raise RegistryError(
            f"`{name}` is no implementation's name; write small letters, digits, and . _ - between"
        )


def check_address(address: str) -> str:
    """Return a registry's address without a closing slash; raises RegistryError."""
    found = address.rstrip("/")
    if "@" in found:
        raise RegistryError(
            "REGISTRY has a user or a password in it; log in instead: apptainer registry login "
            "--username NAME oras://HOST"
        )
    if not ADDRESS.fullmatch(found):
        raise RegistryError(
            f"REGISTRY is `{address}`; write oras://host[:port]/path in small letters"
        )
    return found


def transfer(*arguments: str | Path) -> None:
    """Have Apptainer push or pull; raises RegistryError with what it said."""
    try:
        call(*arguments)
    except CallError as error:
        said = str(error)
        cure = "check the address and the network, and run this again"
        if "UNAUTHORIZED" in said.upper() or "denied" in said:
            cure = "log in: apptainer registry login --username NAME oras://HOST"
        elif "verifying sha256 checksum" in said:
            cure = (
                "the registry's file was changed or is damaged, and is not installed: push it again"
            )
        elif "x509" in said or "tls:" in said:
            cure = "name the file of your site's certificate authority in SSL_CERT_FILE"
        raise RegistryError(f"{said}; {cure}") from None


def pull_lock(address: str, name: str) -> dict[str, Entry]:
    """Return the lock that a registry has for an implementation; raises RegistryError."""
    where = f"{address}/{name}:lock"
    with tempfile.TemporaryDirectory() as folder:
        packed = Path(folder) / "lock.sif"
        transfer("pull", "--disable-cache", packed, where)
        try:
            return read_lock(call("sif", "dump", "1", packed), where)
        except CallError as error:
            raise RegistryError(f"{where} is not a lock of images: {error}") from None


def push_lock(address: str, name: str, entry: dict[str, Any]) -> None:
    """Give a registry the entry of an image; raises RegistryError."""
    with tempfile.TemporaryDirectory() as folder:
        text, packed = Path(folder) / "images.lock", Path(folder) / "lock.sif"
        text.write_text(json.dumps({"schema": images.SCHEMA, "images": {name: entry}}))
        try:
            call("sif", "new", packed)
            call("sif", "add", "--datatype", JSON_OBJECT, packed, text)
        except CallError as error:
            raise RegistryError(f"the lock cannot be packed: {error}") from None
        transfer("push", packed, f"{address}/{name}:lock")


def push(root: Path, address: str, words: str, dry_run: bool) -> None:
    """Push the named images, and then the lock of each; one that is there already is left alone.

    Raises RegistryError, and ImageError for an image that is not the locked one.
    """
    for name in images.chosen(root, words):
        check_name(name)
        path = images.verify(root, name)
        found = images.entry_of(root, name)
        # Where this checkout had it from is no business of others.
        entry = {key: value for key, value in found.items() if key in Entry.model_fields}
        try:
            there = pull_lock(address, name).get(name)
        except RegistryError as error:
            if "MANIFEST_UNKNOWN" not in str(error) and "NAME_UNKNOWN" not in str(error):
                raise
            there = None
        said = f"{name}, {entry['bytes'] / 1e6:.0f} MB, sha256 {entry['sha256']}"
        if there and there.model_dump() == entry:
            print(f"is there already: {said}")
        elif dry_run:
            print(f"would push to {address}: {said}")
        else:
            transfer("push", path, f"{address}/{name}:{entry['sha256']}")
            # Last, so that a registry's lock never names an image that is not there.
            push_lock(address, name, entry)
            print(f"pushed to {address}: {said}")


def wanted(root: Path, address: str, words: str, lock: str) -> dict[str, Entry]:
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
        found: dict[str, Entry] = {}
        for name in named:
            found |= {key: e for key, e in pull_lock(address, name).items() if key == name}
    else:
        path = Path(lock) if lock else root / images.LOCK
        try:
            found = read_lock(path.read_text(), str(path))
        except FileNotFoundError:
            if lock:
                raise RegistryError(f"{path}, named by LOCK, is missing") from None
            found = {}
        except (OSError, UnicodeDecodeError) as error:
            raise RegistryError(f"{path} cannot be read: {error}") from None
    for name in named or (["any image"] if not found else []):
        if name not in found:
            raise RegistryError(
                f"{lock or images.LOCK} has no digest of {name}; name the lock that came with the "
                "images (LOCK=<file>), or take the registry's word (LOCK=registry)"
            )
    return {name: found[name] for name in named or found}


def pull(root: Path, address: str, words: str, lock: str, dry_run: bool) -> None:
    """Pull the named images, verify each, and put it in place and into images.lock.

    One that is here already is left alone. Raises RegistryError, ImageError or BuildError; what
    was here is then as it was.
    """
    for name, entry in wanted(root, address, words, lock).items():
        said = f"{name}, {entry.bytes / 1e6:.0f} MB, sha256 {entry.sha256}"
        if is_here(root, name, entry):
            print(f"is here already: {said}")
        elif dry_run:
            print(f"would pull from {address}: {said}")
            continue
        else:
            with only_build(root):
                install(root, address, name, entry)
            print(f"pulled from {address} and verified: {said}")
        say_whether_current(root, name, entry)


def is_here(root: Path, name: str, entry: Entry) -> bool:
    """Tell whether the image of an entry is in place and in images.lock."""
    try:
        images.verify(root, name)
        return bool(images.entry_of(root, name)["sha256"] == entry.sha256)
    except images.ImageError:
        return False


def install(root: Path, address: str, name: str, entry: Entry) -> None:
    """Pull one image aside; put it into place only if it is the one of its entry.

    Raises RegistryError, and ImageError where it is another.
    """
    target = images.folder(root) / entry.file
    target.parent.mkdir(parents=True, exist_ok=True)
    aside = target.with_name(f".pulled-{target.name}")
    # Of a pull that was killed.
    aside.unlink(missing_ok=True)
    where = f"{address}/{name}:{entry.sha256}"
    try:
        transfer("pull", "--disable-cache", aside, where)
        images.install(root, name, aside, {**entry.model_dump(), "pulled_from": address}, where)
    finally:
        aside.unlink(missing_ok=True)


def say_whether_current(root: Path, name: str, entry: Entry) -> None:
    """Say where `make run` will not take a pulled image as it is."""
    try:
        current = build.recipe_of(root, name, "mmdebstrap").inputs_sha256() == entry.inputs_sha256
    except (
        TableError, SourceError, BuildError, ProvisionError, spack_environment.SpackError,
    ) as error:  # fmt: skip
        print(f"  it cannot be built here, and `make run` will not take it: {error}")
        return
    if not current:
        print(
            f"  it was made of other inputs than this checkout has: `make run` would build {name} "
            "anew; to measure the pulled one, check out the commit that it was built from"
        )


def main() -> int:
    """Push or pull, or say in a sentence why not."""
    parser = argparse.ArgumentParser(
        prog="python -m containers.registry",
        description="Push images to a registry, or pull them from it, by the digests of a lock.",
    )
    parser.add_argument("action", choices=["push", "pull"])
    parser.add_argument("--registry", default="", metavar="oras://host/path")
    parser.add_argument(
        "--images", default="", metavar="a,b|all", help="which; all that the lock has by default"
    )
    parser.add_argument(
        "--lock", default="", metavar="FILE|registry",
        help="whose digests hold for a pull: a lock's file, or the registry's own, instead of "
        f"{images.LOCK}",
    )  # fmt: skip
    parser.add_argument("--dry-run", action="store_true", help="say what would be done")
    options = parser.parse_args()

    def work() -> int:
        if not options.registry:
            raise RegistryError("say which registry: REGISTRY=oras://host/path")
        address = check_address(options.registry)
        apptainer_command()
        if options.action == "push":
            push(ROOT, address, options.images, options.dry_run)
        else:
            pull(ROOT, address, options.images, options.lock, options.dry_run)
        return 0

    errors = (RegistryError, images.ImageError, BuildError, ProvisionError)
    return exit_code(options.action, work, errors, "nothing half is left")


if __name__ == "__main__":
    sys.exit(main())
