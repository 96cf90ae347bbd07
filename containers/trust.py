"""Signatures of images, and whose count: `python -m containers.trust sign|verify|new-key`.

Apptainer signs and verifies (PGP). Whose signatures count stands in `containers/trust/*.asc`.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from containers import images, origin, store
from containers.apptainer import Admitted, CallError, apptainer_command, call, command, state_of
from containers.ending import exit_code
from containers.locking import BuildError, only_build
from containers.passphrases import passphrase_of
from containers.programs import ProvisionError
from containers.sources import sha256_of
from containers.trusted_keys import FOLDER as FOLDER
from containers.trusted_keys import PUBLIC, files, gpg, keyring, own_folder, trusted
from containers.trusted_keys import PublicKey as PublicKey
from containers.trusted_keys import TrustError as TrustError
from records import layout
from records.acting_user import (
    list_lets_others_write,
    name_of,
    name_of_group,
    others_write,
    refuse_unsafe_home,
)
from records.command_words import CommandWords
from records.files import write_whole

ROOT = Path(os.environ.get("WYEAST_ROOT", Path(__file__).resolve().parents[1]))
#: What a site's file says of the images that may run, and what it means without a word.
POLICY_KEY = "image_policy"
POLICIES = ("known", "signed")
#: The group whose members may write the images besides their owner.
GROUP_KEY = "image_group"
SECRET = "pgp-secret"


def signers(root: Path, path: Path) -> list[PublicKey]:
    """Return the keys of the trust folder that have signed everything in a SIF file.

    Raises TrustError for one that is unsigned, or whose keys are unknown, expired or revoked, or
    that was changed after it was signed.
    """
    named = _named_signers(path)
    if not named:
        raise TrustError(f"{path} is not signed; sign it: make sign")
    keys = trusted(root)
    good = [key for key in keys if not key.fault()]
    for key in keys:
        if key.fault() and key.fingerprint in named and not named & {k.fingerprint for k in good}:
            raise TrustError(
                f"{path} is signed by {key}, which {key.fault()}; renew the key and put it into "
                f"{own_folder(root)}, or sign the image with another: make sign"
            )
    if not named & {key.fingerprint for key in good}:
        raise TrustError(
            f"{path} is signed by {', '.join(sorted(named))}, which is none of the trusted keys; "
            f"if you trust it, put its public key into {own_folder(root)}"
        )
    with keyring(good) as ring:
        try:
            # Without --all, objects outside the first group are not verified.
            said = json.loads(
                call("verify", "--all", "--local", "--json", path, APPTAINER_KEYSDIR=str(ring))
            )
        except (CallError, ValueError) as error:
            raise TrustError(
                f"{path}: the signature is not valid: {error}; do not use the image, fetch or "
                "build it again"
            ) from None
    # Apptainer also takes keys of the machine's own keyring, which do not count here.
    found = [part["Signer"] for part in said.get("SignerKeys") or []]
    prints = {str(signer["Fingerprint"]).upper() for signer in found}
    counted = [key for key in good if key.fingerprint in prints]
    foreign = prints - {key.fingerprint for key in good}
    if not counted or foreign or not all(signer["DataCheck"] for signer in found):
        raise TrustError(
            f"{path} has parts that no key of {FOLDER} has signed; do not use the image, fetch or "
            "build it again"
        )
    return counted


def _signatures(path: Path) -> list[str]:
    """Return the numbers of the objects in a SIF file that are signatures; raises TrustError."""
    try:
        rows = [line.split("|") for line in call("sif", "list", path).splitlines()]
    except CallError as error:
        raise TrustError(f"{path} cannot be opened: {error}") from None
    return [row[0].strip() for row in rows if len(row) == 5 and row[4].startswith("Signature")]


def _named_signers(path: Path) -> set[str]:
    """Return the fingerprints that a SIF file's signatures name, whether they hold or not."""
    try:
        told = [call("sif", "info", number, path) for number in _signatures(path)]
    except CallError as error:
        raise TrustError(f"{path} cannot be opened: {error}") from None
    return {found.upper() for text in told for found in re.findall(r"\b[0-9a-fA-F]{40}\b", text)}


def admit(root: Path, name: str, site: Mapping[str, Any]) -> Admitted:
    """Return the image of an implementation, or its variant, that a site may run.

    By the site's `image_policy`: `known`, in images.lock with this digest (as without the key), and
    built here, signed by a key of the trust folder, or answered for by a person; or `signed`, in
    the lock and signed. Raises ImageError otherwise. Nothing of the image runs for it.
    """
    return _admitted(root, name, site)[0]


def _admitted(
    root: Path, name: str, site: Mapping[str, Any]
) -> tuple[Admitted, Mapping[str, Any]]:  # fmt: skip
    policy = site.get(POLICY_KEY, POLICIES[0])
    if policy not in POLICIES:
        raise TrustError(
            f"{POLICY_KEY} of the site is `{policy}`; use one of {', '.join(POLICIES)}"
        )
    path, state, entry = images.verified(root, name)
    refuse_what_others_write(root, path, site.get(GROUP_KEY))
    if policy == "signed":
        _signers_of(root, path)
    elif not _vouched(root, entry):
        raise TrustError(origin.question(root, name))
    return Admitted(path, state), entry


def refuse_what_others_write(root: Path, image: Path, group: str | None) -> None:
    """Raise TrustError for an image that others may write, or put another in the place of.

    Between the moment at which it is admitted and that at which it starts on a node there is time.
    The members of the site's `image_group` may, and whoever has the installation.
    """
    real = image.resolve()
    ours = {0, os.geteuid(), root.stat().st_uid, layout.home(root).stat().st_uid}
    # Whoever may write the folder of the store can put another store in its place.
    above = [real.parent.parent] if real.parent.name == store.STORE else []
    for path in (real, real.parent, *above):
        found = path.stat()
        whose = name_of_group(found.st_gid)
        if found.st_uid not in ours and (group is None or whose != group):
            raise TrustError(
                f"{path} belongs to {name_of(found.st_uid)}, who could put another image in its "
                "place; copy it, so that it is yours; or, if all of the group "
                f"{whose} may do so, name it in the site's file: {GROUP_KEY}: {whose}"
            )
        if others_write(found, group):
            raise TrustError(
                f"{path} can be written by others than {name_of(found.st_uid)}, who could put "
                f"another image in its place; deny them that: chmod go-w {path}; or, if all of "
                f"the group {whose} may do so, name it in the site's file: {GROUP_KEY}: {whose}"
            )
        if list_lets_others_write(path, group):
            raise TrustError(
                f"{path} can be written by others by its access control list, who could put "
                f"another image in its place; remove the list: setfacl -b {path}; or name the one "
                f"group that it is for in the site's file: {GROUP_KEY}: <group>"
            )


def vouched(root: Path, name: str) -> bool:
    """Tell whether an image was built here, is answered for, or is signed by a key that counts."""
    return _vouched(root, images.entry_of(root, name))


def _vouched(root: Path, entry: Mapping[str, Any]) -> bool:
    if origin.answered_for(entry):
        return True
    if not files(root):
        return False
    try:
        return bool(_signers_of(root, store.path_of(root, entry)))
    except (TrustError, OSError, ProvisionError):
        return False


def _signers_of(root: Path, path: Path) -> list[PublicKey]:
    stamps = tuple((path, state_of(path)) for path in files(root))
    found = _signers_once(root, path, state_of(path), stamps)
    # A campaign takes days, in which a key may expire: asked again, it says so.
    return signers(root, path) if any(key.fault() for key in found) else found


def admit_by(root: Path, name: str, site: Mapping[str, Any]) -> tuple[Admitted, str]:
    """Return an image as `admit` does, and what it is admitted by.

    That is `signed by` keys, or `not verified` and why it may run. Keys that count are named also
    where the site does not ask for them.
    """
    image, entry = _admitted(root, name, site)
    must_be = site.get(POLICY_KEY, POLICIES[0]) == "signed"
    if must_be or files(root):
        try:
            keys = sorted(key.fingerprint for key in _signers_of(root, image.path))
            return image, f"signed by {', '.join(keys)}"
        except (TrustError, ProvisionError):
            if must_be:
                raise
    by = "built here" if entry.get("origin") == origin.BUILT else "vouched for"
    return image, f"not verified: {by}"


@cache
def _signers_once(root: Path, path: Path, file: object, keys: object) -> list[PublicKey]:
    # Once a process and state of image and keys: checks of one campaign ask many times.
    return signers(root, path)


def private_keyring(root: Path) -> Path:
    """Return the folder of the keyring to sign with.

    It is APPTAINER_KEYSDIR, else what `make new-key` has made, else the user's own.
    """
    named = os.environ.get("APPTAINER_KEYSDIR")
    own = layout.state(root) / "trust"
    if named:
        return Path(named)
    return own if (own / SECRET).exists() else Path.home() / ".apptainer" / "keys"


def private_keys(ring: Path) -> list[str]:
    """Return the fingerprints of a keyring's private keys, by Apptainer's index."""
    try:
        listing = call("key", "list", "--secret", APPTAINER_KEYSDIR=str(ring))
    except CallError as error:
        raise TrustError(f"the keyring {ring} cannot be read: {error}") from None
    return re.findall(r"Fingerprint:\s*([0-9A-F]{40})", listing)


def sign(root: Path, words: str, wanted: str, dry_run: bool, passphrase_file: str = "") -> None:
    """Sign the named images and renew their digests in images.lock.

    `wanted` is the end of a fingerprint; without it the keyring must have one key. An image that
    the key has signed is left alone. Raises TrustError, ImageError or BuildError; the image is
    then as it was.
    """
    ring = private_keyring(root)
    ending = wanted.upper().removeprefix("0X").replace(" ", "")
    fitting = [(i, k) for i, k in enumerate(private_keys(ring)) if k.endswith(ending)]
    if len(fitting) != 1:
        found = ", ".join(key for _, key in fitting) or "none"
        raise TrustError(
            f"{ring} has {found} to sign with; "
            + ("name one: KEY=<fingerprint>" if fitting else "make one: make new-key NAME= EMAIL=")
        )
    [(index, fingerprint)] = fitting
    for name in images.chosen(root, words):
        path = images.verify(root, name)
        try:
            if fingerprint in {key.fingerprint for key in signers(root, path)}:
                print(f"is signed already by {fingerprint}: {name}")
                continue
        except TrustError:
            pass
        if dry_run:
            print(f"would sign with {fingerprint}: {name}")
            continue
        with only_build(root):
            sign_image(root, name, path, ring, index, passphrase_of(fingerprint, passphrase_file))
        print(f"signed by {fingerprint}: {name}; its sha256 is now that of the signed file")


def sign_image(
    root: Path, name: str, path: Path, ring: Path, index: int, passphrase: bytes | None = None
) -> None:
    """Sign a copy of an image by a key of a keyring; it replaces the image if its signature counts.

    The unsigned one stays in the store until the next build.
    """
    aside = store.folder(root) / f".signed-{path.name}"
    aside.parent.mkdir(parents=True, exist_ok=True)
    entry = images.entry_of(root, name)
    # One that was killed in between has left a file that not even its owner may write.
    aside.unlink(missing_ok=True)
    try:
        shutil.copy2(path, aside)
        aside.chmod(0o755)
        try:
            signers(root, aside)
        except TrustError:
            # One signature that does not count, of a key that expired, would spoil the others.
            for number in _signatures(aside):
                call("sif", "del", number, aside)
        # With the terminal, if nothing else knows it: Apptainer asks for the passphrase there.
        done = subprocess.run(
            command("sign", "--keyidx", str(index), aside),
            env={**os.environ, "APPTAINER_KEYSDIR": str(ring)},
            input=None if passphrase is None else passphrase + b"\n",
        )
        if done.returncode:
            raise TrustError(
                f"{name} could not be signed; Apptainer's own message is above. Where there is no "
                "terminal to ask at, a passphrase comes from a file (PASSPHRASE_FILE=) or from "
                "gpg-agent"
            )
        signers(root, aside)
        renewed = {**entry, "sha256": sha256_of(aside), "bytes": aside.stat().st_size}
        images.take_over(root)
        store.keep(root, aside, renewed["sha256"])
        images.write_entry(root, name, renewed)
        store.name_in_folder(root, renewed)
    finally:
        aside.unlink(missing_ok=True)


def verify(root: Path, words: str, wanted: str) -> list[str]:
    """Verify the named images' digests and signatures; return the sentences about bad ones.

    With `wanted`, the end of a fingerprint, that key must be among the signers.
    """
    bad = []
    ending = wanted.upper().removeprefix("0X").replace(" ", "")
    for name in images.chosen(root, words):
        try:
            found = [str(key) for key in signers(root, images.verify(root, name))
                     if key.fingerprint.endswith(ending)]  # fmt: skip
            if not found:
                raise TrustError(f"{name} is signed, but not by {wanted}")
            print(f"{name} is in {images.LOCK}, and signed by {', '.join(found)}")
        except images.ImageError as error:
            bad.append(str(error))
    return bad


def new_key(root: Path, owner: str, email: str) -> None:
    """Make a key pair: the private one in .wyeast/trust, the public one in the trust folder.

    Raises TrustError.
    """
    if not owner or "@" not in email:
        raise TrustError('name its owner: make new-key NAME="First Last" EMAIL=name@host')
    ring = layout.state(root) / "trust"
    ring.mkdir(parents=True, exist_ok=True)
    ring.chmod(0o700)
    before = private_keys(ring) if (ring / SECRET).exists() else []
    # At a terminal Apptainer asks for a passphrase; arguments are seen by everybody on the machine.
    unasked = [] if sys.stdin.isatty() else ["--password", ""]
    done = subprocess.run(
        command("key", "newpair", "--name", owner, "--email", email,
                "--comment", "Wyeast", "--push=false", *unasked),
        env={**os.environ, "APPTAINER_KEYSDIR": str(ring)},
    )  # fmt: skip
    made = [key for key in private_keys(ring) if key not in before]
    if done.returncode or len(made) != 1:
        raise TrustError("no key was made; Apptainer's own message is above")
    with tempfile.TemporaryDirectory() as home:
        gpg(home, "--import", ring / PUBLIC)
        public = gpg(home, "--armor", "--export", made[0])
    path = layout.home(root) / FOLDER / f"{made[0]}.asc"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, public)
    protected = "without a passphrase" if unasked else "under its passphrase"
    print(f"private key: {ring / SECRET}, {protected}; keep a copy in a safe place")
    print(f"public key:  {path}; commit it, so that images signed by it are trusted")


def main() -> int:
    """Sign or verify images, or make a key, or print a sentence on why not."""
    parser = CommandWords(
        prog="python -m containers.trust",
        description=f"Sign images, verify them with the keys in {FOLDER}, or make a key.",
    )
    parser.add_argument("action", choices=["sign", "verify", "new-key"])
    parser.add_argument("--images", default="", metavar="a,b|all", help="which (default: all)")
    parser.add_argument("--key", default="", metavar="FINGERPRINT", help="or the end of it")
    parser.add_argument("--name", default="", help="new-key: the owner's name")
    parser.add_argument("--email", default="", help="new-key: the owner's e-mail address")
    parser.add_argument(
        "--passphrase-file", default="", help="sign: a file whose first line is the key's"
    )
    parser.add_argument("--dry-run", action="store_true", help="sign: print what would be done")
    options = parser.parse_args()
    refuse_unsafe_home(ROOT)

    def work() -> int:
        apptainer_command()
        if options.action == "sign":
            sign(ROOT, options.images, options.key, options.dry_run, options.passphrase_file)
        elif options.action == "new-key":
            new_key(ROOT, options.name, options.email)
        else:
            bad = verify(ROOT, options.images, options.key)
            for sentence in bad:
                print(f"verify: {sentence}", file=sys.stderr)
            return 1 if bad else 0
        return 0

    errors = (images.ImageError, BuildError, ProvisionError, CallError)
    return exit_code(options.action, work, errors, "the images are unchanged")


if __name__ == "__main__":
    sys.exit(main())
