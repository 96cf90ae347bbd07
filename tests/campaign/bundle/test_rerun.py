"""A bundle is verified, brought in, repeated and compared; a hostile one changes nothing."""

import gzip
import hashlib
import io
import json
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from analysis.history.index import history_rows
from campaign.bundle import leaks, make, rerun
from containers import images, store, trust
from records import archive
from records.archive import SUMS, BundleError, sums_text, unpack
from records.base import CampaignError
from records.campaign import find_campaign, is_imported
from records.kept import read_records
from tests.analysis.support.large import write_large
from tests.campaign.bundle.conftest import NAME, Checkout, checkout_at
from tests.whole_records import manifest as whole_manifest

PROJECT = Path(__file__).resolve().parents[3]
AGAIN = "20260202T000000Z-local-synthetic"
#: What stands for `python -m campaign`: the same numbers again, under another name.
MEASURE = f"""\
import json, os, pathlib, shutil, sys
assert sys.argv[2:4] == ["-m", "campaign"], sys.argv
pathlib.Path("asked").write_text(" ".join(sys.argv[4:]))
pathlib.Path("guests").write_text(os.environ["WYEAST_GUESTS"])
again = pathlib.Path("runs/{AGAIN}")
if not again.exists():
    shutil.copytree("runs/{NAME}", again)
    (again / "imported.json").unlink(missing_ok=True)
file = again / "manifest.json"
manifest = json.loads(file.read_text()) | {{"campaign": again.name, "like": "{NAME}"}}
manifest["machine"]["kernel"] = "6.2.0"
file.write_text(json.dumps(manifest))
"""


@pytest.fixture
def bundle(here: Checkout) -> Path:
    assert make.main([NAME, "--with-images"]) == 0
    return here.root / ".wyeast" / "bundles" / f"{NAME}.tar.gz"


@pytest.fixture
def there(bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Checkout:
    """Return another checkout, without images; commands run there from here on."""
    checkout = checkout_at(tmp_path / "there", monkeypatch)
    monkeypatch.setenv("PYTHONPATH", str(PROJECT))
    (checkout.root / "measure.py").write_text(MEASURE)
    return checkout


@pytest.fixture
def uncompared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out the comparison, which takes seconds, where another thing is looked at."""
    monkeypatch.setattr(rerun, "compare", lambda before, after: 0)


def submit() -> list[str]:
    return ["--allow-unsigned", "--", sys.executable, "measure.py"]


def test_a_campaign_is_repeated_and_compared(
    there: Checkout,
    bundle: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (there.root / "requirements.lock").write_text("nothing==2.0\n")
    assert rerun.main([str(bundle), *submit()]) == 0
    out = capfd.readouterr().out
    assert f"runs/{NAME} is imported" in out and "requirements.lock differs here" in out
    assert "the image alpha-1.0 is replaced by the bundle" in out
    assert f"{AGAIN} over {NAME}" in out and "kernel: none and 6.2.0" in out
    assert (there.root / "asked").read_text() == f"--site local --like {NAME}"
    # The image lies apart: nothing but this bundle's rerun finds it.
    assert images.load_lock(there.root)["images"] == {} and not images.available(there.root)
    with images.with_guests(rerun.guests_of(bundle)):
        assert images.verify(there.root, "alpha-1.0").read_bytes() == b"an image"
    # It is marked, found by its name alone, and no part of this machine's history.
    imported = there.root / "runs" / NAME
    assert is_imported(imported) and find_campaign(there.root, NAME) == imported
    assert find_campaign(there.root, "latest").name == AGAIN
    said: list[str] = []
    assert set(history_rows(there.root / "runs", said.append)["folder"]) == {AGAIN}
    assert said == []
    assert not list((there.root / ".wyeast" / "bundles").iterdir()), "nothing is left aside"
    # Again: nothing is measured a second time, unless that is asked for.
    monkeypatch.setattr(rerun, "compare", lambda before, after: 0)
    (there.root / "asked").unlink()
    assert rerun.main([str(bundle), *submit()]) == 0
    out = capfd.readouterr().out
    assert f"runs/{NAME} is here already" in out and "repeats it already; AGAIN=1" in out
    assert not (there.root / "asked").exists()


@pytest.mark.usefixtures("uncompared")
def test_a_repetition_that_was_cut_short_is_gone_on_with(
    there: Checkout, bundle: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert rerun.main([str(bundle), *submit()]) == 0
    file = there.root / "runs" / AGAIN / "manifest.json"
    manifest = json.loads(file.read_text())
    file.write_text(json.dumps(manifest | {"finished_utc": None}))
    capfd.readouterr()
    assert rerun.main([str(bundle), *submit()]) == 1
    assert (there.root / "asked").read_text() == f"--resume {AGAIN}"
    assert "the repetition was not finished" in capfd.readouterr().err


def test_dry_run_changes_nothing(
    there: Checkout, bundle: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert rerun.main([str(bundle), "--dry-run", *submit()]) == 0
    out = capsys.readouterr().out
    assert f"would put the campaign into runs/{NAME}" in out and "would be replaced by" in out
    assert not list((there.root / "runs").iterdir()) and not (there.root / "asked").exists()
    assert not images.available(there.root)


@pytest.mark.usefixtures("uncompared")
def test_a_received_image_does_not_count_as_built_here(
    there: Checkout, bundle: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Whatever the bundle's lock says of it: it runs in this bundle's rerun, and stays apart."""
    assert rerun.main([str(bundle), *submit()]) == 0
    assert not images.available(there.root) and not (there.root / images.LOCK).exists()
    name = rerun.guests_of(bundle)
    assert (there.root / "guests").read_text() == name
    with images.with_guests(name):
        entry = images.entry_of(there.root, "alpha-1.0")
        assert trust.admit(there.root, "alpha-1.0", {})
        with pytest.raises(images.ImageError):
            trust.admit(there.root, "alpha-1.0", {"image_policy": "signed"})
    assert entry["origin"] == {"how": "bundle", "from": bundle.name}
    assert entry["admitted"]["how"] == f"make rerun BUNDLE={bundle.name}"
    # Another bundle's rerun has its own.
    with images.with_guests("0" * 16), pytest.raises(images.ImageError, match="is not in"):
        images.verify(there.root, "alpha-1.0")
    # The next rerun finds it where it is.
    capfd.readouterr()
    assert rerun.main([str(bundle), *submit()]) == 0
    assert "alpha-1.0" not in capfd.readouterr().out


def test_a_bundle_does_not_tell_where_its_images_were_from(here: Checkout) -> None:
    assert make.main([NAME, "--with-images", "--out", str(here.root / "x.tar.gz")]) == 0
    into = here.root / "into"
    into.mkdir()
    name, _ = unpack(here.root / "x.tar.gz", into)
    lock = json.loads((into / name / "images" / "images.lock").read_text())
    assert set(lock["images"]["alpha-1.0"]) == {"file", "sha256", "labels"}


def test_an_unsigned_image_of_a_bundle_runs_only_if_that_is_said(
    there: Checkout, bundle: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    digest = hashlib.sha256(b"an image").hexdigest()
    for more in (["--dry-run"], []):
        assert rerun.main([str(bundle), *more]) == 1
        said = capfd.readouterr()
        assert f"image alpha-1.0, sha256 {digest}: not signed by a key that counts" in said.out
        assert "would run as you" in said.out and "ALLOW_UNSIGNED=1 runs it" in said.err
    assert not (there.root / "asked").exists()
    assert not (there.root / ".wyeast" / "guests").exists()


def test_only_what_was_measured_is_brought_in(
    here: Checkout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A report is a page, and its script would be the sender's."""
    campaign = here.root / "runs" / NAME
    (campaign / "report.html").write_text("<script>alert(1)</script>")
    (campaign / "tables").mkdir()
    (campaign / "tables" / "launches.parquet").write_bytes(b"PAR1")
    out = tmp_path / "sent.tar.gz"
    monkeypatch.setattr(leaks, "scan", lambda *_: [])
    assert make.main([NAME, "--out", str(out)]) == 0
    checkout = checkout_at(tmp_path / "there", monkeypatch)
    name, sums = unpack(out, tmp_path)
    rerun.bring_in(tmp_path / name, sums, out, dry_run=False)
    brought = checkout.root / "runs" / NAME
    assert is_imported(brought) and (brought / "launches").is_dir()
    assert not (brought / "report.html").exists() and not (brought / "tables").exists()


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"checks": r"^(\S+)+!$"}, "so it may never end"), ({"checks": "("}, "not a valid regular"),
        ({"rounds": 999_999}, "has 999999 rounds, and at most 300"),
        ({"time_limit": "1000d"}, "each launch a time of '1000d', and at most 6h"),
        ({"time_limit": "6h1s"}, "each launch a time of '6h1s', and at most 6h"),
        ({"time_limit": "soon\x1b[2J"}, "each launch a time of 'soon"),
    ],
)  # fmt: skip
def test_what_would_hold_a_machine_for_ever_is_refused_before_it_is_held(
    here: Checkout, tmp_path: Path, capsys: pytest.CaptureFixture[str], facts: dict[str, object],
    words: str,
) -> None:  # fmt: skip
    file = here.root / "runs" / NAME / "manifest.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | facts))
    out = tmp_path / "sent.tar.gz"
    assert make.main([NAME, "--out", str(out)]) == 0
    told = "unless it is given MOST_ROUNDS=999999" in capsys.readouterr().err
    assert told == ("rounds" in facts)
    assert rerun.main([str(out), *submit()]) == 1
    assert words in capsys.readouterr().err
    assert not (here.root / "asked").exists()


def test_300_rounds_of_three_images_are_repeated_from_their_bundle(
    here: Checkout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    large = "20260103T000000Z-local-large"
    folder = write_large(here.root / "runs" / large, implementations=3, cells=1, rounds=300)
    file = folder / "manifest.json"
    manifest = json.loads(file.read_text())
    digests = {name: image["sha256"] for name, image in manifest["images"].items()}
    file.write_text(json.dumps(manifest | here.facts(digests)))
    out = tmp_path / "sent.tar.gz"
    assert make.main([large, "--out", str(out)]) == 0
    checkout_at(tmp_path / "there", monkeypatch)
    assert rerun.main([str(out), "--dry-run", *submit()]) == 0
    assert "would measure it again on local, 300 rounds, and compare" in capsys.readouterr().out
    # And brought in it is the campaign that was sent, with all of its launches.
    name, sums = unpack(out, tmp_path)
    rerun.bring_in(tmp_path / name, sums, out, dry_run=False)
    brought = tmp_path / "there" / "runs" / large
    assert sum(1 for _ in read_records(brought)) == 900


@pytest.mark.usefixtures("uncompared")
def test_an_image_here_is_never_replaced(
    there: Checkout, bundle: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    there.put_image(b"mine")
    assert rerun.main([str(bundle), *submit()]) == 1
    assert "is not the one that was measured; measure with the one here" in capfd.readouterr().err
    assert not (there.root / "asked").exists()
    assert rerun.main([str(bundle), "--keep-images", *submit()]) == 0
    assert (there.root / ".wyeast" / "images" / "alpha-1.0.sif").read_bytes() == b"mine"


def test_a_campaign_here_is_never_overwritten(
    here: Checkout, bundle: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = here.root / "runs" / NAME / "report.html"
    report.write_text("made again, which is no other campaign")
    assert rerun.main([str(bundle), "--dry-run"]) == 0
    assert f"runs/{NAME} is here already" in capsys.readouterr().out
    log = here.root / "runs" / NAME / "reframe" / "rounds.log"
    log.write_text("something else")
    assert rerun.main([str(bundle), *submit()]) == 1
    assert (
        "already exists with different content, and no campaign is overwritten"
        in capsys.readouterr().err
    )
    assert log.read_text() == "something else" and not is_imported(log.parents[1])


def hostile(
    path: Path, *entries: tuple[str, bytes, str], sums: bytes | None = None, top: str = "top"
) -> Path:
    """Write an archive: name, content and kind of each entry after a list of digests."""
    listed = {
        name.partition("/")[2]: hashlib.sha256(content).hexdigest() for name, content, _ in entries
    }
    with tarfile.open(path, "w:gz") as tar:
        for name, content, kind in [
            (f"{top}/{SUMS}", sums_text(listed) if sums is None else sums, "file"), *entries,
        ]:  # fmt: skip
            info = tarfile.TarInfo(name)
            if kind == "file":
                info.size = len(content)
            elif kind == "device":
                info.type = tarfile.CHRTYPE
            else:
                info.type = tarfile.SYMTYPE if kind == "link" else tarfile.LNKTYPE
                info.linkname = content.decode()
            tar.addfile(info, io.BytesIO(content))
    return path


HOSTILE: list[tuple[list[tuple[str, bytes, str]], str]] = [
    ([("top/../../escaped", b"x", "file")], "not the name of a file in one folder"),
    ([("/top/escaped", b"x", "file")], "not the name of a file in one folder"),
    ([("top/a", b"x", "file"), ("other/b", b"x", "file")], "outside top"),
    ([("top//b", b"x", "file")], "not the name of a file in one folder"),
    ([("top/a\nb", b"x", "file")], "is not the digest|not the name of a file in one folder"),
    ([("top/a\u202eb", b"x", "file")], "not the name of a file in one folder"),
    ([("top/a\x9b2J", b"x", "file")], "not the name of a file in one folder"),
    ([("top/a", b"/etc", "link"), ("top/a/b", b"x", "file")], "not a regular file"),
    ([("top/a", b"/etc/passwd", "hard link")], "not a regular file"),
    ([("top/a", b"", "device")], "not a regular file"),
    ([("top/a", b"x", "file"), ("top/a", b"x", "file")], "or is listed twice"),
]


@pytest.mark.parametrize(("entries", "sentence"), HOSTILE)
def test_hostile_archives_write_nothing_outside(
    tmp_path: Path, entries: list[tuple[str, bytes, str]], sentence: str
) -> None:
    folder = tmp_path / "into" / "here"
    folder.mkdir(parents=True)
    path = hostile(tmp_path / "hostile.tar.gz", *entries)
    with pytest.raises(BundleError, match=sentence):
        unpack(path, folder)
    outside = {p for p in tmp_path.rglob("*") if not p.is_relative_to(folder)}
    assert outside == {tmp_path / "into", path}
    assert not any(p.is_symlink() for p in folder.rglob("*"))


def zeros(path: Path) -> Path:
    """Write a small archive of a gigabyte of zeros that says so in its headers."""
    info = tarfile.TarInfo("top/zeros")
    info.size = 2**30
    first = tarfile.TarInfo(f"top/{SUMS}")
    text = sums_text({"zeros": "0" * 64})
    first.size = len(text)
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(first.tobuf() + text + bytes(-len(text) % 512) + info.tobuf())
        file.write(bytes(2**20))
    return path


def long_header(path: Path) -> Path:
    """Write an archive whose header of a file is longer than anybody's memory is worth."""
    info = tarfile.TarInfo("././@PaxHeader")
    info.type, info.size = tarfile.XHDTYPE, 2**32
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(info.tobuf() + bytes(2**20))
    return path


@pytest.mark.parametrize("write", [zeros, long_header])
def test_sizes_are_bounded(tmp_path: Path, write: Callable[[Path], Path]) -> None:
    path = write(tmp_path / "large.tar.gz")
    (tmp_path / "into").mkdir()
    with pytest.raises(BundleError, match="it holds more than"):
        unpack(path, tmp_path / "into", most=2**20)
    assert not list((tmp_path / "into").iterdir())


def test_what_is_no_bundle_is_told_what_it_is(
    there: Checkout, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = tmp_path / "text"
    text.write_text("root:x:0:0")
    for given, said in (
        ("", "rerun: no archive is named: make rerun BUNDLE=<archive>\n"),
        (tmp_path, f"rerun: {tmp_path} is a folder; name the archive that `make bundle` made\n"),
        (text, f"rerun: {text} is not a bundle, or is damaged (Not a gzipped file)\n"),
        (PROJECT / "runs" / "sample.tar.gz", "holds no campaign that can be repeated"),
    ):  # fmt: skip
        assert rerun.main([str(given)]) == 1
        told = capsys.readouterr().err
        assert told.endswith(said) or said in told, told
        assert len(told.splitlines()) == 1 and ".unpacked-" not in told


def test_damage_is_found(bundle: Path, tmp_path: Path) -> None:
    content = bundle.read_bytes()
    plain = gzip.decompress(content)
    damaged = {
        "cut": content[: len(content) // 2],
        "other": gzip.compress(plain.replace(b"an image", b"no image")),
        "missing": gzip.compress(plain[: plain.index(f"{NAME}/images".encode())] + bytes(10240)),
        "none": b"no archive",
        "empty": b"",
    }
    sentences = {
        "cut": "is damaged|incomplete", "other": "does not match its digest",
        "missing": "incomplete", "none": "is not a bundle", "empty": "is not a bundle",
    }  # fmt: skip
    for name, bytes_of in damaged.items():
        path = tmp_path / f"{name}.tar.gz"
        path.write_bytes(bytes_of)
        (tmp_path / name).mkdir()
        with pytest.raises(BundleError, match=sentences[name]):
            unpack(path, tmp_path / name)


def test_a_bundle_that_names_another_campaign_is_refused(
    there: Checkout, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = hostile(tmp_path / "x.tar.gz", ("top/campaign/manifest.json", b"{}", "file"))
    assert rerun.main([str(path)]) == 1 and "has the schema None" in capsys.readouterr().err
    manifest = (there.root.parent / "here" / "runs" / NAME / "manifest.json").read_bytes()
    path = hostile(tmp_path / "y.tar.gz", ("top/campaign/manifest.json", manifest, "file"))
    assert rerun.main([str(path)]) == 1
    assert f"holds '{NAME}' in a folder 'top'" in capsys.readouterr().err
    assert not list((there.root / "runs").iterdir())
    assert rerun.main([str(tmp_path / "none.tar.gz")]) == 1
    assert "No such file" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["latest", "local", "20260101", "sample", "history.html"])
def test_a_bundle_s_campaign_is_not_taken_for_the_latest_one_here(
    name: str, there: Checkout, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its numbers would be reported as those of whoever asks for his latest."""
    path = there.root.parent / "here" / "runs" / NAME / "manifest.json"
    content = json.dumps(json.loads(path.read_text()) | {"campaign": name}).encode()
    entry = (f"{name}/campaign/manifest.json", content, "file")
    path = hostile(tmp_path / "x.tar.gz", entry, top=name)
    assert rerun.main([str(path)]) == 1
    assert f"holds a campaign called {name}, and" in capsys.readouterr().err
    assert not list((there.root / "runs").iterdir())


@pytest.mark.parametrize(
    ("facts", "sentence"),
    [
        ({"images": {"alpha-1.0": {"labels": {}}}}, "'alpha-1.0' of 'images' has no 'sha256'"),
        ({"inputs": ["a"]}, "manifest.json lacks 'inputs', or it is not what"),
        ({"inputs": {"a": 1}}, "an entry of 'inputs' is not a digest"),
    ],
)
def test_what_is_not_a_manifest_is_refused(
    there: Checkout, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    facts: dict[str, object], sentence: str,
) -> None:  # fmt: skip
    manifest = json.loads(
        (there.root.parent / "here" / "runs" / NAME / "manifest.json").read_text()
    )
    content = json.dumps({**manifest, "campaign": "top", **facts}).encode()
    path = hostile(tmp_path / "x.tar.gz", ("top/campaign/manifest.json", content, "file"))
    assert rerun.main([str(path)]) == 1
    said = capsys.readouterr().err
    assert sentence in said and said.count("\n") == 1
    assert not list((there.root / "runs").iterdir())


def test_an_image_that_is_not_the_measured_one_is_not_put_in_place(
    there: Checkout, bundle: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "unpacked"
    (folder / "images").mkdir(parents=True)
    (folder / "images" / "alpha-1.0.sif").write_bytes(b"x")
    entry: dict[str, Any] = {"sha256": "1" * 64, "labels": {}}
    known = {"alpha-1.0": entry}
    lock = {"schema": images.SCHEMA, "images": known}
    (folder / "images" / "images.lock").write_text(json.dumps(lock))
    for in_sums, wanted in (("1" * 64, "2" * 64), ("2" * 64, "1" * 64), ("2" * 64, "2" * 64)):
        with pytest.raises(BundleError, match="is not the image that was measured"):
            rerun.put_image(folder, {"images/alpha-1.0.sif": in_sums}, "alpha-1.0", wanted, bundle)
    digest = hashlib.sha256(b"x").hexdigest()
    known["alpha-1.0"] = {"sha256": digest, "labels": {"org.wyeast.family": "mine"}}
    (folder / "images" / "images.lock").write_text(json.dumps(lock))
    with pytest.raises(images.ImageError, match="has labels that differ from the lock's"):
        rerun.put_image(folder, {"images/alpha-1.0.sif": digest}, "alpha-1.0", digest, bundle)
    guests = images.guest_root(there.root, rerun.guests_of(bundle))
    for root in (there.root, guests):
        assert not images.available(root) and not list(store.folder(root).glob(".*"))


def test_what_a_manifest_names_neither_ends_us_nor_reaches_the_terminal() -> None:
    names = ["containers/\0", "containers/\x1b[2J", "../../../etc/passwd", "a\nb"]
    inputs = dict.fromkeys(names, "0" * 64)
    said = rerun.definition_differences(whole_manifest(inputs=inputs, software={}))
    assert len(said) == len(names) and all(one.isprintable() for one in said)
    with pytest.raises(CampaignError, match="'wyeast_commit' that is not a commit") as refused:
        whole_manifest(software={"wyeast_commit": "main; touch /tmp/x"})
    assert "touch" not in str(refused.value), "nobody pastes it into a shell"
    known = whole_manifest(inputs=inputs, software={"wyeast_commit": "0123456789" * 4})
    assert rerun.definition_differences(known)[-1].endswith("0123456789")


def test_limits_are_what_the_help_says() -> None:
    assert rerun.arguments(["x"]).most_bytes == archive.MOST_BYTES
    assert rerun.arguments(["x", "--again", "--", "a", "--b"]).submit == ["a", "--b"]
