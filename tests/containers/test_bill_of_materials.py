"""The bill of materials: valid CycloneDX, whole, and the same of the same manifest."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from containers import bill_of_materials, images
from containers.bill_of_materials import INPUTS, bill_of, inputs_of
from containers.sif_objects import BILL
from tests.sif_files import Part, write_sif

DIGEST = "0a" * 32
MANIFEST: dict[str, Any] = {
    "implementation": "mpich-5.0.2", "version": "5.0.2", "builder": "wheel",
    "definition": "image.def", "inputs_sha256": DIGEST, "benchmarks_sha256": DIGEST,
    "built_utc": "2026-11-22T00:03:12Z",
    "base": {"bootstrap": "mmdebstrap", "suite": "bookworm"},
    "compiler": {"command": "gcc", "version": "gcc 12", "flags": "-O2"},
    "sources": {
        "mpich-5.0.2-py3-none-any.whl": {"sha256": DIGEST, "bytes": 1},
        "hpcc_1.5.0.orig.tar.gz": {"sha256": DIGEST, "bytes": 1},
        "strange": {"sha256": DIGEST, "bytes": 1},
    },
    "debian_packages": {"libc6:amd64": "2.36-9+deb12u14", "adduser": "3.134"},
    "packed": {"files": {"/opt/x/bin/mpiexec": DIGEST, "/opt/x/lib": "-> lib64"},
               "libraries": {"/usr/lib/libx.so": DIGEST}},
}  # fmt: skip
SPACK: list[dict[str, Any]] = [
    {"name": "zlib", "version": "1.3", "target": "x86_64", "variants": [], "spack_hash": number,
     "from": "source", "dependencies": []}
    for number in ("aaaa", "bbbb")
]  # fmt: skip

#: What software.json has besides: where a package is from, and what it is needed to do.
BUILT = {**SPACK[0], "name": "mpich", "version": "4.0.2-debian", "recipe": "wyeast",
         "needed_to": "run",
         "sources": [
             {"kind": "archive", "address": "https://example.org/m.tar.xz", "sha256": DIGEST},
             {"kind": "patch", "address": "wyeast.mpich/x.patch", "sha256": DIGEST},
         ]}  # fmt: skip


def test_what_spack_built_has_its_sources_and_what_is_not_in_the_image_is_not_listed() -> None:
    external = {**SPACK[0], "name": "openblas", "from": "/usr", "needed_to": "run"}
    tool = {**SPACK[0], "name": "automake", "needed_to": "build"}
    text = bill_of(MANIFEST, [BUILT, external, tool])
    assert complaint(text) is None
    (found,) = [
        part for part in json.loads(text)["components"] if part["bom-ref"].startswith("spack:")
    ]
    assert (found["name"], found["version"]) == ("mpich", "4.0.2-debian")
    assert {"name": "wyeast:recipe", "value": "wyeast"} in found["properties"]
    told = {
        (one["comment"], one["type"], one["url"], one["hashes"][0]["content"])
        for one in found["externalReferences"]
    }
    assert told == {
        ("archive", "source-distribution", "https://example.org/m.tar.xz", DIGEST),
        ("patch", "other", "wyeast.mpich/x.patch", DIGEST),
    }


def complaint(text: str) -> object:
    return JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)


def test_it_is_written_where_no_image_is_yet(tmp_path: Path) -> None:
    """As in a home, whose installation has the images."""
    bill_of_materials.write(tmp_path, "mpich-5.0.2", "{}")
    assert bill_of_materials.path_of(tmp_path, "mpich-5.0.2").read_text() == "{}"


def test_it_is_valid_and_names_everything() -> None:
    text = bill_of(MANIFEST, SPACK)
    assert complaint(text) is None
    assert complaint(text.replace('"bomFormat": "CycloneDX"', '"bomFormat": "other"')) is not None
    found = json.loads(text)
    assert found["metadata"]["component"]["name"] == "mpich-5.0.2"
    assert found["metadata"]["timestamp"].startswith("2026-11-22T00:03:12")
    components = {part["bom-ref"]: part for part in found["components"]}
    assert components.keys() == {
        "benchmarks", "debian:libc6:amd64", "debian:adduser", "source:strange",
        "source:mpich-5.0.2-py3-none-any.whl", "source:hpcc_1.5.0.orig.tar.gz",
        "file:/opt/x/bin/mpiexec", "file:/opt/x/lib", "file:/usr/lib/libx.so",
        "spack:zlib/aaaa", "spack:zlib/bbbb",
    }  # fmt: skip
    wheel = components["source:mpich-5.0.2-py3-none-any.whl"]
    assert wheel["purl"] == "pkg:pypi/mpich@5.0.2"
    assert wheel["hashes"] == [{"alg": "SHA-256", "content": DIGEST}]
    assert components["debian:libc6:amd64"]["purl"] == (
        "pkg:deb/debian/libc6@2.36-9%2Bdeb12u14?arch=amd64&distro=bookworm"
    )
    [of_image] = [part for part in found["dependencies"] if part["ref"] == "image"]
    assert set(of_image["dependsOn"]) == components.keys()


def test_the_same_manifest_has_the_same_bill() -> None:
    assert bill_of(MANIFEST, []) == bill_of(MANIFEST, [])
    other = bill_of({**MANIFEST, "debian_packages": {}}, [])
    assert json.loads(other)["serialNumber"] != json.loads(bill_of(MANIFEST, []))["serialNumber"]


@pytest.mark.parametrize("key", ["debian_packages", "sources", "compiler", "built_utc"])
def test_a_manifest_that_lacks_something_is_refused(key: str) -> None:
    lacking = {name: value for name, value in MANIFEST.items() if name != key}
    with pytest.raises(images.ImageError, match=f"is malformed: '{key}'"):
        bill_of(lacking, [])


@pytest.mark.parametrize(
    "change",
    [
        lambda found: found.pop("metadata"),
        lambda found: found.update(metadata=[]),
        lambda found: found["metadata"]["component"].update(properties="wyeast"),
        lambda found: found["metadata"]["component"].update(properties=[{"name": INPUTS}]),
        lambda found: found["metadata"]["component"]["properties"].append(
            {"name": INPUTS, "value": "1" * 64}
        ),
        lambda found: found["metadata"]["component"].update(
            properties=[{"name": INPUTS, "value": ["x"]}]
        ),
    ],
)
def test_a_bill_says_once_of_what_inputs_an_image_is(
    tmp_path: Path, change: Callable[[dict[str, Any]], object]
) -> None:
    text = bill_of(MANIFEST, SPACK)
    image = write_sif(tmp_path / "x.sif", [Part(BILL, text.encode())])
    assert inputs_of(image) == DIGEST
    found = json.loads(text)
    change(found)
    write_sif(image, [Part(BILL, json.dumps(found).encode())])
    with pytest.raises(images.ImageError, match="does not say what it was made of"):
        inputs_of(image)
