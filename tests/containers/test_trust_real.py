"""Signed images: by whose key, by none, by a wrong or an expired one, and changed afterwards."""

import os
import shutil
import stat
import subprocess
import time
from pathlib import Path

import pytest

from containers import images, origin, store, trust, trusted_keys
from containers.apptainer import apptainer_command, call
from tests.containers import travelling
from tests.containers.travelling import NAME, make, place, run

pytestmark = [pytest.mark.real, pytest.mark.serial]
SITE = {"image_policy": "signed"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small image, and a keyring to sign with of three keys: good, expired, and a stranger's."""
    path = tmp_path_factory.mktemp("trust")
    travelling.new_sif(path, NAME)
    home = path / "gpg"
    home.mkdir(mode=0o700)
    gpg = ["gpg", "--homedir", str(home), "--batch", "--quiet", "--passphrase", ""]
    new = ["--quick-generate-key"]
    make(*gpg, *new, "Good <good@site>", "rsa2048", "sign", "never")
    make(*gpg, *new, "Stranger <stranger@site>", "rsa2048", "sign", "never")
    past = ["--faked-system-time", "20200101T000000"]
    make(*gpg, *past, *new, "Old <old@site>", "rsa2048", "sign", "2020-06-01")
    for owner in ("good", "old", "stranger"):
        (path / f"{owner}.asc").write_text(make(*gpg, "--armor", "--export", f"{owner}@site"))
        secret = path / f"{owner}.secret"
        secret.write_text(make(*gpg, "--armor", "--export-secret-keys", f"{owner}@site"))
        call("key", "import", secret, APPTAINER_KEYSDIR=str(path / "keys"))
    make("gpgconf", "--homedir", str(home), "--kill", "gpg-agent")
    return path


@pytest.fixture
def checkout(tmp_path: Path, folder: Path) -> Path:
    """A checkout with the image, which trusts the good key and the expired one."""
    root = travelling.new_checkout(tmp_path / "checkout")
    place(root, folder / f"{NAME}.sif")
    for owner in ("good", "old"):
        (root / trust.FOLDER / f"{owner}.asc").write_text((folder / f"{owner}.asc").read_text())
    return root


def print_of(folder: Path, owner: str) -> str:
    gpg = ["gpg", "--homedir", str(folder / "gpg"), "--with-colons", "--show-keys"]
    listing = make(*gpg, str(folder / f"{owner}.asc"))
    return next(line.split(":")[9] for line in listing.splitlines() if line.startswith("fpr"))


def sign_by_hand(root: Path, folder: Path, owner: str) -> Path:
    """Sign an image as somebody would who does not ask this project."""
    path = store.folder(root) / f"{NAME}.sif"
    ring = str(folder / "keys")
    index = trust.private_keys(Path(ring)).index(print_of(folder, owner))
    call("sign", "--keyidx", str(index), path, APPTAINER_KEYSDIR=ring)
    travelling.lock_again(root, NAME)
    return path


def assert_refused(root: Path, words: str) -> None:
    done = run(root, "trust", "verify")
    assert done.returncode == 1 and done.stdout == ""
    assert words in done.stderr and len(done.stderr.splitlines()) == 1
    with pytest.raises(images.ImageError, match=words):
        trust.admit(root, NAME, SITE)


def test_a_signed_image_is_verified_and_its_digest_renewed(checkout: Path, folder: Path) -> None:
    before = images.entry_of(checkout, NAME)
    ring = {"APPTAINER_KEYSDIR": str(folder / "keys")}
    good = print_of(folder, "good")
    done = run(checkout, "trust", "sign", "--key", good[-16:], "--dry-run", **ring)
    assert done.returncode == 0 and "would sign" in done.stdout
    assert images.entry_of(checkout, NAME) == before
    done = run(checkout, "trust", "sign", "--key", good[-16:], **ring)
    assert done.returncode == 0, done.stderr
    after = images.entry_of(checkout, NAME)
    assert after["sha256"] != before["sha256"]
    assert after["inputs_sha256"] == before["inputs_sha256"]
    assert trust.admit(checkout, NAME, SITE).path == images.verify(checkout, NAME)
    done = run(checkout, "trust", "verify")
    assert done.returncode == 0 and good in done.stdout
    done = run(checkout, "trust", "verify", "--key", "0" * 40)
    assert done.returncode == 1 and "not by" in done.stderr
    done = run(checkout, "trust", "sign", "--key", good, **ring)
    assert done.returncode == 0 and "is signed already" in done.stdout
    assert images.entry_of(checkout, NAME) == after
    # Whoever trusts the key no longer trusts the image no longer.
    (checkout / trust.FOLDER / "good.asc").unlink()
    assert_refused(checkout, "none of the trusted keys")


def test_several_keys_are_asked_to_be_named(checkout: Path, folder: Path) -> None:
    done = run(checkout, "trust", "sign", APPTAINER_KEYSDIR=str(folder / "keys"))
    assert done.returncode == 1 and "name one: KEY=" in done.stderr
    done = run(checkout, "trust", "sign", APPTAINER_KEYSDIR=str(checkout / "none"))
    assert done.returncode == 1 and "make new-key" in done.stderr


def test_an_unsigned_image_is_refused_where_the_site_asks_for_signatures(checkout: Path) -> None:
    assert_refused(checkout, "is not signed")
    # As it always was for the others.
    assert trust.admit(checkout, NAME, {}).path == images.verify(checkout, NAME)
    with pytest.raises(images.ImageError, match="use one of known, signed"):
        trust.admit(checkout, NAME, {"image_policy": "sined"})


def test_a_strangers_key_is_refused(checkout: Path, folder: Path) -> None:
    before = images.verify(checkout, NAME).read_bytes()
    stranger = print_of(folder, "stranger")
    ring = {"APPTAINER_KEYSDIR": str(folder / "keys")}
    done = run(checkout, "trust", "sign", "--key", stranger, **ring)
    assert done.returncode == 1 and "none of the trusted keys" in done.stderr
    assert images.verify(checkout, NAME).read_bytes() == before
    sign_by_hand(checkout, folder, "stranger")
    assert_refused(checkout, "none of the trusted keys")


def test_an_expired_key_is_refused_and_another_can_take_its_place(
    checkout: Path, folder: Path
) -> None:
    sign_by_hand(checkout, folder, "old")
    assert_refused(checkout, "expired on 2020-06-01")
    ring = {"APPTAINER_KEYSDIR": str(folder / "keys")}
    done = run(checkout, "trust", "sign", "--key", print_of(folder, "good"), **ring)
    assert done.returncode == 0, done.stderr
    assert run(checkout, "trust", "verify").returncode == 0


def test_a_change_after_signing_is_found(checkout: Path, folder: Path) -> None:
    path = sign_by_hand(checkout, folder, "good")
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(images.ImageError, match="has sha256"):
        trust.admit(checkout, NAME, SITE)
    # Even where the lock has been changed as well.
    entry = images.entry_of(checkout, NAME)
    travelling.lock_again(checkout, NAME)
    assert images.entry_of(checkout, NAME)["sha256"] != entry["sha256"]
    assert_refused(checkout, "the signature is not valid")


@pytest.mark.parametrize("group", ["0", "2"])
def test_a_file_system_that_is_added_after_signing_is_found(
    checkout: Path, folder: Path, group: str, tmp_path: Path
) -> None:
    path = sign_by_hand(checkout, folder, "good")
    (tmp_path / "overlay").write_bytes(b"0" * 4096)
    call("sif", "add", "--datatype", "4", "--parttype", "4", "--partfs", "2", "--partarch", "2",
         "--groupid", group, path, tmp_path / "overlay")  # fmt: skip
    travelling.lock_again(checkout, NAME)
    assert_refused(checkout, "the signature is not valid")


def test_a_private_key_among_the_trusted_is_refused(checkout: Path, folder: Path) -> None:
    sign_by_hand(checkout, folder, "good")
    (checkout / trust.FOLDER / "x.asc").write_text((folder / "good.secret").read_text())
    assert_refused(checkout, "contains a private key")
    (checkout / trust.FOLDER / "x.asc").write_text("nothing")
    assert_refused(checkout, "x.asc cannot be read as a key")


def test_a_new_key_signs_and_is_nobody_elses(checkout: Path) -> None:
    done = run(checkout, "trust", "new-key", "--name", "A B", "--email", "a@b")
    assert done.returncode == 0, done.stderr
    ring = checkout / ".wyeast" / "trust"
    assert stat.S_IMODE(ring.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in ring.iterdir()} == {0o600}
    done = run(checkout, "trust", "sign")
    assert done.returncode == 0, done.stderr
    assert trust.admit(checkout, NAME, SITE)
    for path in (checkout / trust.FOLDER).glob("*.asc"):
        assert "PRIVATE" not in path.read_text()
    assert run(checkout, "trust", "new-key", "--name", "A B").returncode == 1


def test_a_key_that_expires_while_a_process_runs_admits_nothing_any_more(
    checkout: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A campaign goes on for days; the old key counted in the first of its launches."""
    sign_by_hand(checkout, folder, "old")
    before = time.mktime((2020, 3, 1, 0, 0, 0, 0, 0, 0))
    monkeypatch.setattr(time, "time", lambda: before)
    # Apptainer has a clock of its own: what it says of a key that counts.
    old = next(key for key in trusted_keys.trusted(checkout) if key.file.name == "old.asc")
    monkeypatch.setattr(trust, "signers", lambda root, path: [old])
    assert trust.admit(checkout, NAME, SITE)
    monkeypatch.undo()
    with pytest.raises(images.ImageError, match="expired on 2020-06-01"):
        trust.admit(checkout, NAME, SITE)


def test_a_revoked_key_is_refused(checkout: Path, folder: Path, tmp_path: Path) -> None:
    sign_by_hand(checkout, folder, "good")
    assert trust.admit(checkout, NAME, SITE)
    home = tmp_path / "gpg"
    shutil.copytree(folder / "gpg", home, ignore=shutil.ignore_patterns("S.*"))
    [certificate] = (home / "openpgp-revocs.d").glob(f"{print_of(folder, 'good')}.rev")
    certificate.write_text(certificate.read_text().replace(":-----BEGIN", "-----BEGIN"))
    gpg = ["gpg", "--homedir", str(home), "--batch", "--quiet", "--no-autostart"]
    make(*gpg, "--import", str(certificate))
    revoked = make(*gpg, "--armor", "--export", "good@site")
    (checkout / trust.FOLDER / "good.asc").write_text(revoked)
    assert_refused(checkout, "was revoked")


def test_what_admitted_an_image_is_said(checkout: Path, folder: Path) -> None:
    """Also where the site asks for no signature."""
    built = {**images.entry_of(checkout, NAME), "origin": origin.BUILT}
    images.write_entry(checkout, NAME, built)
    assert trust.admit_by(checkout, NAME, {})[1] == "not verified: built here"
    images.write_entry(
        checkout, NAME, built | {"origin": {}, "admitted": origin.word("make admit")}
    )
    assert trust.admit_by(checkout, NAME, {})[1] == "not verified: vouched for"
    sign_by_hand(checkout, folder, "good")
    for site in ({}, SITE):
        said = trust.admit_by(checkout, NAME, site)[1]
        assert said == f"signed by {print_of(folder, 'good')}"


@pytest.mark.parametrize("way", ["file", "agent"])
def test_a_passphrase_comes_from_a_file_or_an_agent(
    checkout: Path, tmp_path: Path, way: str
) -> None:
    """Without a terminal, as in continuous integration, and never as a program's argument."""
    home, ring = tmp_path / "h", tmp_path / "keys"
    home.mkdir(mode=0o700)
    gpg = ["gpg", "--homedir", str(home), "--batch", "--quiet", "--pinentry-mode", "loopback"]
    word = ["--passphrase", "open sesame"]
    (home / "gpg-agent.conf").write_text("allow-preset-passphrase\n")
    try:
        make(*gpg, *word, "--quick-generate-key", "P <p@site>", "rsa2048", "sign", "never")
        public = checkout / trust.FOLDER / "p.asc"
        public.write_text(make(*gpg, "--armor", "--export", "p@site"))
        secret = tmp_path / "secret"
        secret.write_text(make(*gpg, *word, "--armor", "--export-secret-keys", "p@site"))
        subprocess.run(
            [apptainer_command(), "key", "import", str(secret)], input=b"open sesame\n", check=True,
            env={**os.environ, "APPTAINER_KEYSDIR": str(ring)}, capture_output=True,
        )  # fmt: skip
        given = {"APPTAINER_KEYSDIR": str(ring), "GNUPGHOME": str(home)}
        done = run(checkout, "trust", "sign", **given)
        assert done.returncode == 1 and "PASSPHRASE_FILE=" in done.stderr
        words = []
        if way == "file":
            file = tmp_path / "passphrase"
            file.write_text("open sesame\n")
            words = ["--passphrase-file", str(file)]
            file.chmod(0o644)
            done = run(checkout, "trust", "sign", *words, **given)
            assert done.returncode == 1 and "must be a file that only you can read" in done.stderr
            file.chmod(0o600)
        else:
            [key] = trust.private_keys(ring)
            preset = f"PRESET_PASSPHRASE wyeast:{key} -1 {b'open sesame'.hex().upper()}"
            make("gpg-connect-agent", "--homedir", str(home), preset, "/bye")
        done = run(checkout, "trust", "sign", *words, **given)
        assert done.returncode == 0, done.stderr
    finally:
        make("gpgconf", "--homedir", str(home), "--kill", "gpg-agent")
    assert trust.admit(checkout, NAME, SITE)


def test_of_several_names_of_a_key_one_that_counts_is_shown_without_its_tricks(
    tmp_path: Path,
) -> None:
    """GnuPG shows control characters as they can be read, and those of direction as they are."""
    home, root = tmp_path / "gpg", tmp_path / "checkout"
    home.mkdir(mode=0o700)
    gpg = ["gpg", "--homedir", str(home), "--batch", "--quiet", "--passphrase", ""]
    make(*gpg, "--quick-generate-key", "Wrong <wrong@site>", "rsa2048", "sign", "never")
    make(*gpg, "--quick-add-uid", "wrong@site", f"A\u202eB {'x' * 300} <a@site>")
    make(*gpg, "--quick-revoke-uid", "wrong@site", "Wrong <wrong@site>")
    (root / trust.FOLDER).mkdir(parents=True)
    (root / trust.FOLDER / "a.asc").write_text(make(*gpg, "--armor", "--export", "a@site"))
    make("gpgconf", "--homedir", str(home), "--kill", "gpg-agent")
    [key] = trusted_keys.trusted(root)
    assert key.owner.startswith("A\N{REPLACEMENT CHARACTER}B") and len(key.owner) <= 120
    assert not key.fault() and str(key).isprintable()
