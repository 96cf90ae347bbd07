"""A bundle holds all of a campaign and what it was measured by, as the same bytes each time."""

import hashlib
import json
import pwd
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
import yaml

from campaign.bundle import leaks, make
from containers.guarded import BEFORE_DEV
from records import archive
from records.archive import BundleError, Member
from tests.campaign.bundle.conftest import NAME, Checkout, git

PROJECT = Path(__file__).resolve().parents[3]


def made(here: Checkout, *options: str) -> Path:
    assert make.main([NAME, *options]) == 0
    return here.root / ".wyeast" / "bundles" / f"{NAME}.tar.gz"


def unpacked(bundle: Path, folder: Path) -> Path:
    subprocess.run(["tar", "xzf", str(bundle), "-C", str(folder)], check=True)
    return folder / NAME


def test_a_bundle_is_whole_and_verified_by_ordinary_programs(
    here: Checkout, tmp_path: Path
) -> None:
    folder = unpacked(made(here, "--with-images"), tmp_path)
    subprocess.run(["sha256sum", "--quiet", "--strict", "-c", "SHA256SUMS"], cwd=folder, check=True)
    listed = {line[66:] for line in (folder / "SHA256SUMS").read_text().splitlines()}
    found = {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()}
    assert found == listed | {"SHA256SUMS"}
    of_campaign = here.root / "runs" / NAME
    for path in of_campaign.rglob("*"):
        if path.is_file():
            copy = folder / "campaign" / path.relative_to(of_campaign)
            assert copy.read_bytes() == path.read_bytes()
    assert (folder / "images" / "alpha-1.0.sif").read_bytes() == b"an image"
    definitions = {n for n in found if n.startswith("definitions/")}
    assert definitions == {
        "definitions/reframe_checks/check.py", "definitions/site_configs/local/site.yaml",
        "definitions/containers/image.def", "definitions/requirements.lock",
    }  # fmt: skip


def test_a_manifest_takes_no_file_from_outside_the_checkout(here: Checkout, tmp_path: Path) -> None:
    """Whoever knows a file's digest would have a bundle that writes it elsewhere when unpacked."""
    outside = here.root.parent / "outside"
    outside.write_text("known to both")
    file = here.root / "runs" / NAME / "manifest.json"
    manifest = json.loads(file.read_text())
    names = ("../outside", str(outside), "runs/../../outside")
    digest = hashlib.sha256(outside.read_bytes()).hexdigest()
    manifest["inputs"] |= dict.fromkeys(names, digest)
    file.write_text(json.dumps(manifest))
    folder = unpacked(made(here), tmp_path)
    assert not list(folder.rglob("outside"))
    notes = json.loads((folder / "bundle.json").read_text())["notes"]
    assert [one for one in notes if one.endswith("it is not one of ours")] == [
        f"{name} is not in the bundle: it is not one of ours" for name in sorted(names)
    ]


def test_the_same_campaign_gives_the_same_bytes(
    here: Checkout, capsys: pytest.CaptureFixture[str]
) -> None:
    first = made(here).read_bytes()
    made(here)
    assert "already exists with this content" in capsys.readouterr().out
    other = here.root / "other.tar.gz"
    for path in (here.root / "runs" / NAME).rglob("*"):
        path.touch()
    made(here, "--out", str(other))
    assert other.read_bytes() == first


def test_another_content_is_not_overwritten(
    here: Checkout, capsys: pytest.CaptureFixture[str]
) -> None:
    bundle = made(here)
    before = bundle.read_bytes()
    (here.root / "runs" / NAME / "report.html").write_text("new")
    assert make.main([NAME]) == 1
    assert "already exists with different content; remove it" in capsys.readouterr().err
    bundle.write_text("no bundle at all")
    assert make.main([NAME]) == 1
    assert "is not a bundle" in capsys.readouterr().err
    bundle.unlink()
    assert made(here).read_bytes() != before


def test_dry_run_lists_and_writes_nothing(
    here: Checkout, capsys: pytest.CaptureFixture[str]
) -> None:
    assert make.main([NAME, "--dry-run"]) == 0
    out = capsys.readouterr().out
    assert "campaign/manifest.json" in out and "would write" in out
    assert not (here.root / ".wyeast" / "bundles").exists()


def test_definitions_are_those_that_were_used(
    here: Checkout, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    check, site = "reframe_checks/check.py", "site_configs/local/site.yaml"
    (here.root / check).write_text("print('later')\n")
    git(here.root, "commit", "-qam", "later")
    manifest_file = here.root / "runs" / NAME / "manifest.json"
    manifest = json.loads(manifest_file.read_text())
    manifest["inputs"][site] = "0" * 64
    manifest_file.write_text(json.dumps(manifest))
    folder = unpacked(made(here), tmp_path)
    assert (folder / "definitions" / check).read_text() == "print('a check')\n"
    assert not (folder / "definitions" / site).exists()
    assert f"{site} is not in the bundle: neither the commit" in capsys.readouterr().err
    about = json.loads((folder / "bundle.json").read_text())
    assert about["definitions"][check]["from"] == "commit"
    assert about["definitions"][site]["from"] is None
    assert [site in note for note in about["notes"]] == [True]


def test_without_its_commit_working_files_serve_by_their_digests(
    here: Checkout, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    manifest_file = here.root / "runs" / NAME / "manifest.json"
    manifest = json.loads(manifest_file.read_text())
    manifest["software"]["wyeast_commit"] = "1" * 40
    manifest_file.write_text(json.dumps(manifest))
    folder = unpacked(made(here), tmp_path)
    assert (folder / "definitions" / "requirements.lock").exists()
    assert "is not here: the bundle holds only" in capsys.readouterr().err


def test_another_image_or_none_is_refused(
    here: Checkout, capsys: pytest.CaptureFixture[str]
) -> None:
    here.put_image(b"another image")
    assert make.main([NAME, "--with-images"]) == 1
    assert "is not the image that was measured" in capsys.readouterr().err
    (here.root / ".wyeast" / "images" / "alpha-1.0.sif").unlink()
    assert make.main([NAME, "--with-images"]) == 1
    assert "the image alpha-1.0 is missing" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("campaign", "sentence"),
    [("no-such", "no-such is not a campaign"), ("link", "is a link"), ("copy", f"says {NAME}"),
     ("of a sample", "is a sample")],
)  # fmt: skip
def test_mistakes_are_a_sentence(
    here: Checkout, capsys: pytest.CaptureFixture[str], campaign: str, sentence: str
) -> None:
    if campaign == "link":
        (here.root / "runs" / NAME / "launches" / "x").symlink_to("/etc/passwd")
        campaign = NAME
    elif campaign != "no-such":
        shutil.copytree(here.root / "runs" / NAME, here.root / "runs" / campaign)
    if campaign == "of a sample":
        file = here.root / "runs" / campaign / "manifest.json"
        file.write_text(json.dumps(json.loads(file.read_text()) | {"sample": "some cells"}))
    assert make.main([campaign]) == 1
    err = capsys.readouterr().err
    assert sentence in err and len(err.strip().splitlines()) == 1


def test_secrets_do_not_leave(here: Checkout, capsys: pytest.CaptureFixture[str]) -> None:
    log = here.root / "runs" / NAME / "reframe" / "rounds.log"
    log.write_text("fine\n-----BEGIN OPENSSH PRIVATE KEY-----\n")
    assert make.main([NAME, "--keep", "(?s).*"]) == 1
    said = capsys.readouterr().err
    assert "secret: a private key is in campaign/reframe/rounds.log:2" in said
    assert "BEGIN" not in said and not (here.root / ".wyeast" / "bundles").exists()
    log.write_text("ran in /home/alice/wyeast with API_KEY=0123456789abcdef\n")
    assert make.main([NAME]) == 1
    err = capsys.readouterr().err
    assert "private? a home folder is in campaign/reframe/rounds.log:1" in err
    assert "private? what may be a password or token is in" in err


def test_names_of_users_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alice = pwd.struct_passwd(("alice", "x", 1, 1, "", "/srv/people/alice", "/bin/sh"))
    monkeypatch.setattr(pwd, "getpwuid", lambda uid: alice)
    members = {
        "campaign/a": Member(b"malice and alices"), "campaign/b": Member(b"by alice."),
        "campaign/c": Member(b"/srv/people/alice/x"), "images/d": Member(b"alice"),
        "campaign/e": Member(f"{BEFORE_DEV}/dev/shm {BEFORE_DEV}/srv".encode()),
    }  # fmt: skip
    assert [one.sentence for one in leaks.scan(members, tmp_path)] == [
        "the user name alice is in campaign/b:1 and in 1 more files",
        "the home folder /srv/people/alice is in campaign/c:1",
    ]
    root = pwd.struct_passwd(("root", "x", 0, 0, "", "/root", "/bin/sh"))
    monkeypatch.setattr(pwd, "getpwuid", lambda uid: root)
    members["campaign/f"] = Member(b"HOME=/root")
    assert [one.sentence for one in leaks.scan(members, tmp_path)] == [
        "the home folder /root is in campaign/f:1"
    ]


def test_the_crate_keeps_the_rules_of_ro_crate(here: Checkout, tmp_path: Path) -> None:
    """Check what RO-Crate 1.1 demands; all it names is there, and all there is named."""
    folder = unpacked(made(here, "--with-images", "--creator", "A. Person"), tmp_path)
    crate = json.loads((folder / "ro-crate-metadata.json").read_text())
    assert crate["@context"] == "https://w3id.org/ro/crate/1.1/context"
    entities: dict[str, dict[str, Any]] = {}
    for entity in crate["@graph"]:
        assert entity["@id"] not in entities and entity["@type"]
        entities[entity["@id"]] = entity
    descriptor, root = entities["ro-crate-metadata.json"], entities["./"]
    assert descriptor["@type"] == "CreativeWork" and descriptor["about"] == {"@id": "./"}
    assert descriptor["conformsTo"] == {"@id": "https://w3id.org/ro/crate/1.1"}
    assert root["@type"] == "Dataset" and root["name"] and root["description"]
    assert root["datePublished"] == "2026-01-01" and root["license"]["@id"] in entities

    def referred(value: Any) -> list[str]:
        if isinstance(value, dict) and set(value) == {"@id"}:
            return [value["@id"]]
        inner = value.values() if isinstance(value, dict) else value
        return [i for v in inner for i in referred(v)] if isinstance(value, (dict, list)) else []

    outside = {"https://w3id.org/ro/crate/1.1"}
    for entity in entities.values():
        assert set(referred(entity)) <= set(entities) | outside
    reached, todo = set[str](), ["./"]
    while todo:
        name = todo.pop()
        parts = [part["@id"] for part in entities[name].get("hasPart", [])]
        assert not reached & set(parts)
        reached |= set(parts)
        todo += parts
    data = {i for i, e in entities.items() if e["@type"] in ("File", "Dataset") and i != "./"}
    assert data == reached
    for name in data:
        path = folder / unquote(name)
        assert path.is_dir() if name.endswith("/") else path.is_file()
        if path.is_file():
            assert entities[name]["contentSize"] == str(path.stat().st_size)
    described = tuple(unquote(name) for name in data)
    for path in folder.rglob("*"):
        name = str(path.relative_to(folder))
        if path.is_file() and name not in ("ro-crate-metadata.json", "SHA256SUMS"):
            assert name in described or name.startswith(
                tuple(folder for folder in described if folder.endswith("/"))
            )
    assert entities["#creator-a-person"]["name"] == "A. Person"
    assert entities["#measurement"]["agent"] == {"@id": "#creator-a-person"}
    conforms = {"@id": "https://w3id.org/ro/wfrun/process/0.5"}
    assert root["conformsTo"] == conforms and conforms["@id"] in entities
    assert entities["#measurement"]["endTime"].endswith("+00:00")


CFF_REQUIRED = {"cff-version", "message", "title", "authors"}
CFF_KNOWN = CFF_REQUIRED | {
    "abstract", "type", "version", "license", "keywords", "date-released", "repository-code", "url",
    "doi", "identifiers", "commit", "contact", "preferred-citation", "references", "license-url",
    "repository", "repository-artifact",
}  # fmt: skip


def check_citation(text: str, kind: str) -> None:
    """Check what the schema of CFF 1.2.0 demands of the keys that are used here."""
    data = yaml.safe_load(text)
    assert CFF_REQUIRED <= data.keys() <= CFF_KNOWN
    assert data["cff-version"] == "1.2.0" and data["type"] == kind
    assert data["license"] == "Apache-2.0" and data["keywords"]
    assert all(isinstance(data[key], str) and data[key] for key in ("message", "title", "abstract"))
    assert data["authors"] and all(set(one) == {"name"} for one in data["authors"])


def check_zenodo(data: dict[str, Any], kind: str) -> None:
    """Check what a deposit at Zenodo must say."""
    assert data["upload_type"] == kind and data["access_right"] == "open"
    assert data["title"] and data["description"] and data["license"] == "Apache-2.0"
    assert all(set(one) == {"name"} for one in data["creators"]) and data["creators"]


def test_project_and_bundle_can_be_cited(here: Checkout, tmp_path: Path) -> None:
    check_citation((PROJECT / "CITATION.cff").read_text(), "software")
    check_zenodo(json.loads((PROJECT / ".zenodo.json").read_text()), "software")
    assert yaml.safe_load((PROJECT / "CITATION.cff").read_text())["title"] == "Wyeast"
    folder = unpacked(made(here), tmp_path)
    check_citation((folder / "CITATION.cff").read_text(), "dataset")
    check_zenodo(json.loads((folder / ".zenodo.json").read_text()), "dataset")


def test_nobody_is_named_in_the_archive(here: Checkout) -> None:
    with tarfile.open(made(here)) as archive:
        for info in archive:
            assert (info.uid, info.gid, info.uname, info.gname) == (0, 0, "", "")
            assert info.mode == 0o644 and info.mtime == 1767225600


@pytest.mark.parametrize("limit", ["MOST_FILES", "most", "MOST_BYTES_OF_SUMS"])
def test_what_could_not_be_unpacked_is_not_packed(
    limit: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limits of both sides are the same, to the file and to the byte."""
    members = {f"campaign/{n} ü": Member(b"1234567") for n in range(4)}
    sums = archive.sums_of(members)
    packed = tmp_path / "made.tar.gz"
    archive.write(packed, NAME, members, sums, 0)
    size = {
        "MOST_FILES": len(members), "most": 7 * len(members),
        "MOST_BYTES_OF_SUMS": len(archive.sums_text(sums)),
    }[limit]  # fmt: skip
    for room, fits in ((size, True), (size - 1, False)):
        most = room if limit == "most" else archive.MOST_BYTES
        if limit != "most":
            monkeypatch.setattr(archive, limit, room)
        folder = tmp_path / f"into{room}"
        folder.mkdir()
        if fits:
            archive.refuse_beyond_limits(members, most)
            assert archive.unpack(packed, folder, most) == (NAME, sums)
            continue
        with pytest.raises(BundleError, match=f"could not be unpacked.*{room}"):
            archive.refuse_beyond_limits(members, most)
        with pytest.raises(BundleError):
            archive.unpack(packed, folder, most)


def test_a_bundle_beyond_the_limits_is_refused_before_anything_is_written(
    here: Checkout, capsys: pytest.CaptureFixture[str]
) -> None:
    assert make.arguments([NAME]).most_bytes == archive.MOST_BYTES
    for words in ([], ["--dry-run"]):
        assert make.main([NAME, "--most-bytes", "100", *words]) == 1
        said = capsys.readouterr()
        assert "could not be unpacked with the limit of 100; " in said.err and not said.out
    assert not (here.root / ".wyeast" / "bundles").exists()


def test_a_name_that_is_not_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="cannot be the name of a file"):
        archive.sums_of({"campaign/\udcff": Member(b"")})
