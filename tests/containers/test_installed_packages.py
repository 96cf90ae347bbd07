"""What an image that Spack built says of its packages becomes facts of a campaign."""

import json
from pathlib import Path
from typing import Any

import pytest

from campaign import provenance
from containers.spack import environment as spack_environment
from containers.spack import installed_packages
from records.manifest import ImageFacts

PROJECT = Path(__file__).resolve().parents[2]
NAME = "openmpi-4.1.4-source-spack"
LOCK = spack_environment.lock_path(PROJECT, NAME).read_text()
#: As an image has it.
TOLD = json.dumps(spack_environment.bill(LOCK), indent=1)


def test_an_image_s_list_is_read_as_a_manifest_has_it() -> None:
    found = installed_packages.read(TOLD)
    facts = ImageFacts.model_validate_json(json.dumps({"sha256": "0" * 64, "packages": found}))
    assert facts.packages is not None
    by_name = {one.name: one for one in facts.packages}
    mpi = by_name["openmpi"]
    assert (mpi.version, mpi.target, mpi.origin) == ("4.1.4-debian", "x86_64_v3", "source")
    assert "fabrics=none" in mpi.variants and "~romio" in mpi.variants and len(mpi.sources) == 1
    assert f"gcc@{by_name['gcc'].version}" in mpi.dependencies
    assert by_name["gcc"].origin == "/usr" and by_name["gcc"].sources == []
    assert by_name["wyeast-benchmarks"].origin == "checkout"
    # The hashes, which are others for each build, are left out.
    assert found is not None and mpi.name in {one["name"] for one in found}
    nodes = spack_environment.read_lock(LOCK)
    assert not [key for key in nodes if key[:7] in json.dumps(found)]


@pytest.mark.parametrize(
    "told", ["", "no JSON", "{}", "[1]", '[{"name": "x"}]', json.dumps([{"name": 1}])]
)
def test_what_is_no_such_list_is_not_believed(told: str) -> None:
    assert installed_packages.read(told) in (None, [])


def test_a_list_that_names_what_is_not_in_it_is_not_believed() -> None:
    listed: list[dict[str, Any]] = json.loads(TOLD)
    assert installed_packages.read(json.dumps(listed[1:])) is None


@pytest.mark.parametrize("builder", ["spack", "wheel"])
def test_images_that_spack_built_are_asked(builder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Image:
        path = Path("x.sif")

    def said_by(*words: Any) -> str:
        return TOLD if words[-1] == installed_packages.LIST else "{}"

    labels = {"org.wyeast.builder": builder}
    monkeypatch.setattr(provenance, "said_by", said_by)
    monkeypatch.setattr(provenance, "command", lambda *words: words)
    monkeypatch.setattr(provenance, "launch_options", lambda **_: [])
    monkeypatch.setattr("containers.trust.admit_by", lambda *_: (Image(), "not verified"))
    monkeypatch.setattr("containers.images.entry_of", lambda *_: {"sha256": "0" * 64})
    monkeypatch.setattr("containers.images.labels", lambda _: labels)
    said = provenance.describe_images(PROJECT, [NAME, f"{NAME}+x"], {})
    for one in said.values():
        assert one.get("packages") == (
            installed_packages.read(TOLD) if builder == "spack" else None
        )
    assert "packages" not in provenance.describe_images(PROJECT, [NAME], {}, loaded=False)[NAME]
