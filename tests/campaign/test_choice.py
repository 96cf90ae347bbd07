"""Which implementations a site measures."""

from pathlib import Path

import pytest

from containers import images, selection
from records.base import CampaignError

PROJECT = Path(__file__).resolve().parents[2]
BUILT = ["lam-7.1.4", "mpich-5.0.2", "mpich-3.4.3"]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    plain = (PROJECT / "site_configs/local/site.yaml").read_text()
    for site, text in (
        ("plain", plain),
        ("own", f"{plain}implementations: [x-1, lam-7.1.4]\n"),
        ("wrong", f"{plain}implementation: [x-1]\n"),
    ):
        folder = tmp_path / "site_configs" / site
        folder.mkdir(parents=True)
        (folder / "site.yaml").write_text(text)
    monkeypatch.setattr(images, "available", lambda root: BUILT)
    monkeypatch.setattr(
        images, "default_implementations", lambda root: ["openmpi-5.0.11", "mpich-5.0.2"]
    )
    return tmp_path


@pytest.mark.parametrize(
    ("site", "words", "expected"),
    [
        ("plain", "", ["mpich-5.0.2"]),
        ("own", "", ["lam-7.1.4"]),
        ("own", "default", ["openmpi-5.0.11", "mpich-5.0.2"]),
        ("own", "all", BUILT),
        ("own", "lam-7.1.4+lamd, mpich-3.4.3", ["lam-7.1.4+lamd", "mpich-3.4.3"]),
    ],
)
def test_words_and_the_site_decide(
    project: Path, site: str, words: str, expected: list[str]
) -> None:
    assert selection.implementations(project, site, words) == expected


def test_where_nothing_is_built_all_are_asked_for(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(images, "available", lambda root: [])
    assert selection.implementations(project, "own", "") == ["x-1", "lam-7.1.4"]


def test_an_unknown_site_is_named(project: Path) -> None:
    with pytest.raises(
        CampaignError, match="site cray is unknown; site_configs/ has own, plain, wrong"
    ):
        selection.wanted(project, "cray")


def test_a_wrong_site_file_is_refused(project: Path) -> None:
    with pytest.raises(CampaignError, match="unknown key `implementation`; did you mean `impl"):
        selection.wanted(project, "wrong")
