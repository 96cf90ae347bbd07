"""A bundle says who made it and where its program is, and a reviewer can follow it alone."""

import json
import re
import shutil
import tomllib
from pathlib import Path

import pytest
import yaml

from analysis.comparison.answer import sentences_of
from analysis.comparison.compare import compare
from campaign.bundle import make
from records.campaign import read_campaign
from tests.campaign.bundle.conftest import NAME, Checkout, git
from tests.campaign.bundle.test_make import made, unpacked

PROJECT = Path(__file__).resolve().parents[3]
PEOPLE = (
    "Lovelace, Ada (https://orcid.org/0000-0002-1825-0097); Grace Hopper (0000-0001-5109-3700); X"
)


def test_people_have_their_orcids_and_the_program_its_address(
    here: Checkout, tmp_path: Path
) -> None:
    """In all descriptions alike."""
    (here.root / "pyproject.toml").write_text('[project]\nversion = "7.8"\n')
    git(here.root, "add", ".")
    git(here.root, "commit", "-q", "-m", "second")
    git(here.root, "remote", "add", "origin", "https://example.org/wyeast")
    shutil.rmtree(here.root / "runs" / NAME)
    here.measure({"alpha-1.0": here.put_image(b"an image")})
    commit = git(here.root, "rev-parse", "HEAD")
    folder = unpacked(made(here, "--creator", PEOPLE), tmp_path)
    cited = yaml.safe_load((folder / "CITATION.cff").read_text())
    assert cited["authors"] == [
        {"family-names": "Lovelace", "given-names": "Ada",
         "orcid": "https://orcid.org/0000-0002-1825-0097"},
        {"family-names": "Hopper", "given-names": "Grace",
         "orcid": "https://orcid.org/0000-0001-5109-3700"},
        {"name": "X"},
    ]  # fmt: skip
    [software] = cited["references"]
    assert software["version"] == "7.8" and software["commit"] == commit
    assert software["repository-code"] == "https://example.org/wyeast"
    deposit = json.loads((folder / ".zenodo.json").read_text())
    assert deposit["creators"][0] == {"name": "Lovelace, Ada", "orcid": "0000-0002-1825-0097"}
    assert deposit["related_identifiers"][0]["identifier"] == "https://example.org/wyeast"
    graph = {one["@id"]: one for one in
             json.loads((folder / "ro-crate-metadata.json").read_text())["@graph"]}  # fmt: skip
    assert graph["https://orcid.org/0000-0002-1825-0097"]["name"] == "Ada Lovelace"
    assert graph["https://orcid.org/0000-0001-5109-3700"]["@type"] == "Person"
    program = graph["https://example.org/wyeast"]
    assert program["codeRepository"] == program["url"] == "https://example.org/wyeast"
    assert program["softwareVersion"] == f"7.8 {commit}"
    readme = (folder / "README.md").read_text()
    assert (
        f"git clone https://example.org/wyeast wyeast\ncd wyeast\ngit checkout {commit}" in readme
    )


@pytest.mark.parametrize("words", [[], ["--redact"]])
@pytest.mark.parametrize(
    "remote", ["https://me:hunter2@git.example.org/wyeast?token=s3cret",
               "me@git.example.org:wyeast", "https://git.example.org:8443/wyeast",
               "http://git.example.org/me"],
)  # fmt: skip
def test_an_address_that_nobody_meant_to_publish_is_in_no_bundle(
    here: Checkout, tmp_path: Path, capsys: pytest.CaptureFixture[str], remote: str,
    words: list[str],
) -> None:  # fmt: skip
    """Also where the rest is redacted; who makes the bundle is told, without the password."""
    git(here.root, "remote", "add", "origin", remote)
    folder = unpacked(made(here, *words), tmp_path)
    for path in folder.rglob("*"):
        assert not path.is_file() or b"git.example.org" not in path.read_bytes(), path
    said = capsys.readouterr().err
    assert "does not look public, and is not in it" in said and "git.example.org" in said
    assert "hunter2" not in said and "s3cret" not in said


def test_the_address_that_is_published_is_told(
    here: Checkout, capsys: pytest.CaptureFixture[str]
) -> None:
    git(here.root, "remote", "add", "origin", "https://example.org/wyeast")
    made(here)
    assert "the program is at https://example.org/wyeast, as git" in (capsys.readouterr().err)


def test_a_readme_says_all_that_a_reviewer_needs(here: Checkout, tmp_path: Path) -> None:
    folder = unpacked(made(here, "--repository", "git@example.org:group/wyeast.git"), tmp_path)
    readme = (folder / "README.md").read_text()
    headings = re.findall(r"(?m)^## (.*)$", readme)
    assert headings == ["What you need", "How long it takes", "Get the program",
                        "Measure it again, and compare", "What to expect"]  # fmt: skip
    assert "https://example.org/group/wyeast.git" in readme and "Apptainer" in readme
    assert re.search(r"- \d+\.\d GB of disk", readme)
    assert "How long its rounds took was not recorded." in readme
    assert f"make rerun BUNDLE=/path/to/{NAME}.tar.gz SITE=local" in readme
    assert "It compares nothing: fewer than two implementations" in readme


def test_a_readme_says_what_a_rerun_is_to_find(here: Checkout, tmp_path: Path) -> None:
    """The sentences of the answer, in the same words."""
    shutil.rmtree(here.root / "runs" / NAME)
    digests = {name: here.put_image(name.encode(), name) for name in ("alpha-1.0", "beta-2.0")}
    folder = here.measure(digests)
    readme = (unpacked(made(here), tmp_path) / "README.md").read_text()
    found = [one for group in compare(read_campaign(folder)).groups for one in sentences_of(group)]
    told = readme.partition("## What to expect")[2].replace("\\", "")
    assert found and all(f"- {sentence}\n" in told for sentence in found)
    assert "ratio" in found[0]


def test_without_an_address_that_is_said(
    here: Checkout, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    readme = (unpacked(made(here), tmp_path) / "README.md").read_text()
    assert "name it with REPOSITORY=<address>" in capsys.readouterr().err
    assert "cp -r definitions wyeast" in readme and "git clone" not in readme


@pytest.mark.parametrize(
    ("words", "sentence"),
    [(["--creator", "Ada (0000-0002-1825-0098)"], "0000-0002-1825-0098 is not an ORCID"),
     (["--creator", "Ada (12"], "`Ada (12` is not a name"), (["--creator", " ; "], "names nobody"),
     (["--repository", "/home/me/wyeast"], "is not an address that others can use")],
)  # fmt: skip
def test_who_is_nobody_and_where_nothing_is_are_refused(
    words: list[str], sentence: str, here: Checkout, capsys: pytest.CaptureFixture[str]
) -> None:
    assert make.main([NAME, *words]) == 1
    err = capsys.readouterr().err
    assert sentence in err and "Traceback" not in err


def test_the_projects_versions_are_one() -> None:
    version = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["version"]
    assert yaml.safe_load((PROJECT / "CITATION.cff").read_text())["version"] == version
    assert json.loads((PROJECT / ".zenodo.json").read_text())["version"] == version
