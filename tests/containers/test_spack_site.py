"""What images and locks take of the site that WYEAST_SITE names: its mirrors, and no externals."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from containers.programs import ProvisionError
from containers.spack import environment as spack_environment
from containers.spack import image as spack_image
from containers.spack import lock as spack_lock
from containers.spack import site as spack_site
from containers.spack import tool as spack
from tests.containers import travelling
from tests.containers.test_spack import PROJECT
from tests.containers.test_spack_images import FOUND, recipe_of


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a checkout with a site `mine`, which WYEAST_SITE names."""
    (tmp_path / "root/site_configs/mine/spack").mkdir(parents=True)
    monkeypatch.setenv("WYEAST_SITE", "mine")
    return tmp_path / "root"


def with_mirrors(root: Path, **mirrors: Any) -> None:
    """Write the site's mirrors."""
    path = root / "site_configs/mine/spack/mirrors.yaml"
    path.write_text(yaml.safe_dump({"mirrors": mirrors}, sort_keys=False))


def scope_of(root: Path) -> tuple[dict[str, Any], list[str]]:
    """Return the mirrors that Spack is configured with in the base, and what is bound there."""
    binds = spack_environment.tool_binds(root, FOUND)
    text = (spack.folder(root) / "configuration/mirrors.yaml").read_text()
    return yaml.safe_load(text)["mirrors"], binds


def test_without_a_site_there_is_the_carried_mirror_alone(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_mirrors(checkout, ours="https://mirror.example.org")
    for site in ("", "virtual"):
        monkeypatch.setenv("WYEAST_SITE", site)
        assert scope_of(checkout)[0] == spack_environment.CARRIED
        assert spack_site.sentence(checkout) is None


def test_mirrors_of_the_site_are_spack_s_in_the_base(checkout: Path, tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (checkout / "site_configs/mine/spack/beside").mkdir()
    with_mirrors(
        checkout,
        web="https://mirror.example.org",
        cache={"url": "oci://registry.example.org/spack", "signed": False, "autopush": True},
        disk={"fetch": f"file://{tmp_path}/disk", "push": "s3://elsewhere", "binary": False},
        beside="beside",
    )
    mirrors, binds = scope_of(checkout)
    # In the site's order, which is that in which Spack asks them.
    assert list(mirrors) == ["carried", "site-web", "site-cache", "site-disk", "site-beside"]
    assert mirrors == {
        **spack_environment.CARRIED,
        "site-web": {"url": "https://mirror.example.org"},
        "site-cache": {"url": "oci://registry.example.org/spack", "signed": False},
        "site-disk": {"url": "file:///mnt/mirror-1", "binary": False},
        "site-beside": {"url": "file:///mnt/mirror-2"},
    }
    beside = checkout / "site_configs/mine/spack/beside"
    assert binds[-2:] == [f"{tmp_path}/disk:/mnt/mirror-1:ro", f"{beside}:/mnt/mirror-2:ro"]
    # What is bound over is there.
    assert (spack.folder(checkout) / "mounts/mirror-2").is_dir()
    said = spack_site.sentence(checkout)
    assert said and "use its mirrors (web, cache, disk, beside); externals are those of" in said


def test_a_site_without_a_folder_or_with_a_wrong_one_is_refused(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "nothing, since it has no mirrors" in str(spack_site.sentence(checkout))
    with_mirrors(checkout, disk="/nowhere/at/all")
    with pytest.raises(
        ProvisionError, match="/nowhere/at/all, the site's mirror disk, is not a fold"
    ):
        scope_of(checkout)
    for text in ("mirrors: [a]", "mirrors: {a: {binary: true}}", "{", "mirrors: {a: 1}"):
        (checkout / "site_configs/mine/spack/mirrors.yaml").write_text(text)
        with pytest.raises(ProvisionError, match=r"mirrors\.yaml does not match Spack's") as caught:
            scope_of(checkout)
        assert str(caught.value).startswith("site_configs/mine")
    monkeypatch.setenv("WYEAST_SITE", "other")
    with pytest.raises(ProvisionError, match="is other, but site_configs/other/spack does not"):
        scope_of(checkout)


def test_the_manifest_and_who_renews_a_lock_hear_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    mirrors = {"ours": {"url": "https://mirror.example.org"}}
    monkeypatch.setenv("WYEAST_SITE", "mine")
    monkeypatch.setattr(spack_site, "mirrors_of_site", lambda root: mirrors)
    said = spack_image.known(recipe_of("mpich-4.0.2-spack"), FOUND, "2026-01-01T00:00:00Z")
    assert said["spack"]["site_mirrors"] == {"ours": "https://mirror.example.org"}
    monkeypatch.setattr(spack, "provide", lambda root: FOUND)
    monkeypatch.setattr(spack_environment, "provide_base", lambda root: root)
    assert spack_lock.renew(travelling.new_checkout(tmp_path / "root"), []) == []
    assert "from the site mine, images and locks use its mirrors (ours)" in capsys.readouterr().err


def test_the_how_to_s_example_of_externals_is_spack_s() -> None:
    text = (PROJECT / "docs/how-to/spack.md").read_text()
    blocks = re.findall(r"```yaml\n(packages:.*?)```", text, re.DOTALL)
    # Others are of options that one build has.
    (packages,) = (
        found for block in blocks if "slurm" in (found := yaml.safe_load(block)["packages"])
    )
    assert {"slurm", "pmix", "ucx", "libfabric"} <= packages.keys()
    for name, said in packages.items():
        (external,) = said["externals"]
        assert external.keys() == {"spec", "prefix"} and external["spec"].startswith(f"{name}@")
        assert said["buildable"] is False
    # The site's own MPI is the one that spack.yaml asks for.
    asked = spack_environment.environment_names(PROJECT)["openmpi-5.0.10-spack"]
    assert packages["openmpi"]["externals"][0]["spec"] == asked
