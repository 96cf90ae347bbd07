"""What is in an image, as a software bill of materials in CycloneDX 1.6 (JSON).

It is made from the image's own manifest alone, when the image is built, and stored in its file.
`python -m containers.bill_of_materials` writes it beside images that have none there; no part of an
image runs for it.
"""

import json
import os
import re
import sys
import uuid
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from containers import images, sif_objects, store
from containers.apptainer import Admitted, CallError, call, launch_options
from containers.ending import exit_code
from containers.programs import ProvisionError
from containers.sif_header import SifError
from containers.spack import installed_packages
from records.command_words import CommandWords
from records.files import write_whole

if TYPE_CHECKING:
    from cyclonedx.model.component import Component

ROOT = Path(os.environ.get("WYEAST_ROOT", Path(__file__).resolve().parents[1]))
MANIFEST = "/opt/wyeast/manifest.json"
WHEEL = re.compile(r"(?P<name>[^-]+)-(?P<version>[^-]+)-.*\.whl")
ARCHIVE = re.compile(r"(?P<name>[^_]+)_(?P<version>.+)\.orig\.tar\.\w+")
#: The property of a bill that has the digest of all that decides what the image is.
INPUTS = "wyeast:inputs_sha256"
#: Apptainer's number for a bill as an object of a SIF file, and the group that signatures cover.
SIF_BILL, SIF_GROUP = "9", "1"


def bill_of(manifest: dict[str, Any], software: list[dict[str, Any]]) -> str:
    """Return the bill of an image from its manifest and, for Spack's images, what Spack installed.

    Raises ImageError for a manifest that lacks what a bill needs.
    """
    from cyclonedx.model import Property
    from cyclonedx.model.bom import Bom, BomMetaData
    from cyclonedx.model.component import Component, ComponentType
    from cyclonedx.output import make_outputter
    from cyclonedx.schema import OutputFormat, SchemaVersion

    try:
        facts = {key: manifest[key] for key in ("builder", "definition", "inputs_sha256")}
        facts |= {f"compiler_{key}": value for key, value in manifest["compiler"].items()}
        facts |= {f"base_{key}": manifest["base"][key] for key in ("bootstrap", "suite")}
        image = Component(
            name=manifest["implementation"], version=manifest["version"],
            type=ComponentType.CONTAINER, bom_ref="image",
            properties=[Property(name=f"wyeast:{k}", value=str(v)) for k, v in facts.items()],
        )  # fmt: skip
        found = Bom(
            # The same manifest gives the same bill, so no random number and no clock is used.
            serial_number=uuid.uuid5(uuid.NAMESPACE_OID, json.dumps(manifest, sort_keys=True)),
            metadata=BomMetaData(
                component=image, timestamp=datetime.fromisoformat(manifest["built_utc"])
            ),
            components=[*_components(manifest), *_of_spack(software)],
        )
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise images.ImageError(f"the image's manifest is malformed: {error}") from None
    found.register_dependency(image, found.components)
    output = make_outputter(found, OutputFormat.JSON, SchemaVersion.V1_6)
    return output.output_as_string(indent=1) + "\n"


def _components(manifest: dict[str, Any]) -> "Iterator[Component]":
    """Yield what went into an image and what is installed in it."""
    from cyclonedx.model import HashAlgorithm, HashType, Property
    from cyclonedx.model.component import Component, ComponentType
    from packageurl import PackageURL

    def sha256(digest: str) -> list[HashType]:
        return [HashType(alg=HashAlgorithm.SHA_256, content=digest)]

    suite = manifest["base"]["suite"]
    for full, version in manifest["debian_packages"].items():
        name, _, architecture = full.partition(":")
        qualifiers = {"distro": suite, **({"arch": architecture} if architecture else {})}
        yield Component(
            name=name, version=version, type=ComponentType.LIBRARY, bom_ref=f"debian:{full}",
            purl=PackageURL("deb", "debian", name, version, qualifiers),
        )  # fmt: skip
    for file, source in manifest["sources"].items():
        wheel, archive = WHEEL.fullmatch(file), ARCHIVE.fullmatch(file)
        fitting = wheel or archive
        name, version = fitting.group("name", "version") if fitting else (file, None)
        purl = None
        if wheel:
            purl = PackageURL("pypi", None, name.replace("_", "-").lower(), version)
        elif archive:
            purl = PackageURL("deb", "debian", name, version, {"arch": "source"})
        yield Component(
            name=name, version=version, type=ComponentType.LIBRARY, bom_ref=f"source:{file}",
            purl=purl, hashes=sha256(source["sha256"]),
            properties=[Property(name="wyeast:file", value=file)],
        )  # fmt: skip
    digest = manifest["benchmarks_sha256"]
    yield Component(
        name="wyeast-benchmarks", version=digest[:12], type=ComponentType.APPLICATION,
        bom_ref="benchmarks",
        properties=[Property(name="wyeast:sources_sha256", value=digest)],
    )  # fmt: skip
    packed = manifest.get("packed") or {}
    for path, said in {**packed.get("files", {}), **packed.get("libraries", {})}.items():
        link = said.startswith("->")
        yield Component(
            name=path, type=ComponentType.FILE, bom_ref=f"file:{path}",
            hashes=[] if link else sha256(said),
            properties=[Property(name="wyeast:link", value=said)] if link else [],
        )  # fmt: skip


def _of_spack(software: list[dict[str, Any]]) -> "Iterator[Component]":
    """Yield what Spack installed, as listed in the image's `software.json`."""
    from cyclonedx.model import (
        ExternalReference,
        ExternalReferenceType,
        HashAlgorithm,
        HashType,
        Property,
        XsUri,
    )
    from cyclonedx.model.component import Component, ComponentType
    from packageurl import PackageURL

    for package in software:
        # What it took from the base, the distribution's packages have; what was only built with is
        # not in the image.
        if package["from"].startswith("/") or package.get("needed_to") == "build":
            continue
        name, version = package["name"], package["version"]
        facts = {key: package.get(key) for key in ("spack_hash", "from", "target", "recipe")}
        yield Component(
            name=name, version=version, type=ComponentType.LIBRARY,
            bom_ref=f"spack:{name}/{package['spack_hash']}",
            purl=PackageURL("generic", None, name, version),
            properties=[
                Property(name=f"wyeast:{key}", value=str(value))
                for key, value in facts.items()
                if value is not None
            ],
            external_references=[
                ExternalReference(
                    type=ExternalReferenceType.SOURCE_DISTRIBUTION
                    if source["kind"] == "archive"
                    else ExternalReferenceType.OTHER,
                    comment=source["kind"],
                    url=XsUri(source["address"]),
                    hashes=[HashType(alg=HashAlgorithm.SHA_256, content=source["sha256"])]
                    if source["sha256"]
                    else [],
                )
                for source in package.get("sources", [])
            ],
        )  # fmt: skip


def read_bill(image: Admitted) -> str:
    """Return the bill of an image, read by a program inside it; raises ImageError."""

    def inside(path: str) -> Any:
        return json.loads(call("exec", *launch_options(alone=True), image, "cat", path))

    try:
        manifest = inside(MANIFEST)
        software = inside(installed_packages.LIST) if "spack" in manifest else []
    except (CallError, ValueError, TypeError) as error:
        raise images.ImageError(f"{image} does not say what it contains: {error}") from None
    return bill_of(manifest, software)


def bill_inside(image: Path) -> str:
    """Return the bill that a SIF file has as an object; raises ImageError if it has none."""
    try:
        return sif_objects.bill(image)
    except (OSError, SifError) as error:
        raise images.ImageError(
            f"{image} does not say what is in it: {error}; a build by {images.BUILD_COMMAND} puts "
            "the bill of materials into the image"
        ) from None


def inputs_of(image: Path) -> str:
    """Return the digest of what an image was made of by its own bill, which its signatures cover.

    Raises ImageError where it has no bill, or one that does not say it once.
    """
    try:
        component = json.loads(bill_inside(image))["metadata"]["component"]
        found = [one["value"] for one in component["properties"] if one["name"] == INPUTS]
    except (KeyError, TypeError):
        found = []
    if len(found) != 1 or not isinstance(found[0], str):
        raise images.ImageError(
            f"{image} does not say what it was made of: its bill of materials lacks {INPUTS}, "
            f"which a build by {images.BUILD_COMMAND} puts there"
        )
    return found[0]


def path_of(root: Path, name: str) -> Path:
    """Return the path of the bill of an implementation's image."""
    return store.folder(root) / f"{name}.cdx.json"


def write(root: Path, name: str, text: str) -> None:
    """Write the bill of an image into the folder of images, completely or not at all."""
    # In a home there may be no image yet: it is the installation's.
    path_of(root, name).parent.mkdir(parents=True, exist_ok=True)
    write_whole(path_of(root, name), text)


def put_inside(image: Path, text: str, scratch: Path) -> None:
    """Add a bill to a new SIF file as an object that signatures cover; raises CallError."""
    file = scratch / "bill.cdx.json"
    file.write_text(text)
    call("sif", "add", "--datatype", SIF_BILL, "--sbomformat", "cyclonedx-json",
         "--groupid", SIF_GROUP, "--filename", file.name, image, file)  # fmt: skip


def main() -> int:
    """Write the requested bills, or print a sentence on why not."""
    parser = CommandWords(
        prog="python -m containers.bill_of_materials",
        description="Write beside each image its software bill of materials (CycloneDX, JSON).",
    )
    parser.add_argument(
        "--images", default="", metavar="a,b|all", help="which images (default: all)"
    )
    options = parser.parse_args()

    def work() -> int:
        for name in images.chosen(ROOT, options.images):
            image = images.verify(ROOT, name)
            text = bill_inside(image)
            path = path_of(ROOT, name)
            same = path.is_file() and path.read_text() == text
            if not same:
                write(ROOT, name, text)
            print(f"{'up to date' if same else 'written'}: {path}")
        return 0

    errors = (images.ImageError, ProvisionError)
    return exit_code("bill", work, errors, "the bills already written are complete")


if __name__ == "__main__":
    sys.exit(main())
