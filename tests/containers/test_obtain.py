"""From which registry images are pulled: the one that is named, else the site's, else none."""

from pathlib import Path

import pytest

from containers.registry_connection import RegistryError
from containers.sharing.obtain import registry_of
from records.base import CampaignError

PROJECT = Path(__file__).resolve().parents[2]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A checkout with the site `local`, and the site `centre` that has a registry."""
    text = (PROJECT / "site_configs" / "local" / "site.yaml").read_text()
    for name, more in (
        ("local", ""), ("centre", "images_from: oras://registry.centre.org/wyeast\n"),
        ("wrong", "images_from: registry.centre.org\n"), ("other", "images_from: 7\n"),
    ):  # fmt: skip
        folder = tmp_path / "site_configs" / name
        folder.mkdir(parents=True)
        (folder / "site.yaml").write_text(text + more)
    return tmp_path


def test_a_person_goes_before_the_site(root: Path) -> None:
    assert registry_of(root, "local", "") is None
    found = registry_of(root, "centre", "")
    assert found and found.address == "oras://registry.centre.org/wyeast" and not found.insecure
    assert registry_of(root, "centre", "none") is None
    named = registry_of(root, "centre", "oras://localhost:5000/x")
    assert named and named.address == "oras://localhost:5000/x"


@pytest.mark.parametrize(
    ("site", "words", "sentence"),
    [
        ("local", "docker://x.org/y", "IMAGES_FROM is `docker.*write oras://"),
        ("wrong", "", "`images_from` of site wrong is .*write oras://"),
    ],
)
def test_an_invalid_address_is_refused(site: str, words: str, sentence: str, root: Path) -> None:
    with pytest.raises(RegistryError, match=sentence):
        registry_of(root, site, words)


def test_a_key_of_another_kind_is_the_sites_mistake(root: Path) -> None:
    with pytest.raises(CampaignError, match="`images_from` must be the address of a registry"):
        registry_of(root, "other", "")
