"""The public keys whose signatures of images count: `containers/trust/*.asc`, read by GnuPG.

Apptainer does not say when a key has expired.
"""

import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from containers import images
from records import layout
from records.causes import one_line

#: In a checkout, and in a user's home: whose signatures count. Both are looked at.
FOLDER = "containers/trust"
#: How long GnuPG may take, in seconds: it reads and writes some kilobytes.
PATIENCE_S = 60.0
PUBLIC = "pgp-public"
#: Of a key's owner, whose name anybody may have chosen, in characters.
LONGEST_OWNER = 120


class TrustError(images.ImageError):
    """A signature or a key does not hold; the text is a sentence with the next step."""


@dataclass(frozen=True)
class PublicKey:
    """A public key of the trust folder; `expires` in seconds since 1970, 0 for never."""

    file: Path
    fingerprint: str
    owner: str
    expires: int
    revoked: bool

    def fault(self) -> str:
        """Return why the key does not count; empty if it does."""
        if self.revoked:
            return "was revoked"
        if self.expires and self.expires <= time.time():
            return f"expired on {time.strftime('%Y-%m-%d', time.gmtime(self.expires))}"
        return ""

    def __str__(self) -> str:
        place = f"{FOLDER}/{self.file.name}"
        if layout.is_shared(layout.CODE) and self.file.is_relative_to(layout.home(layout.CODE)):
            place = str(self.file)
        return f"{self.fingerprint} ({self.owner}, {place})"


def own_folder(root: Path) -> str:
    """Return the folder into which a user puts keys, as sentences name it."""
    return str(layout.home(root) / FOLDER) if layout.is_shared(root) else FOLDER


def gpg(home: str | Path, *arguments: str | Path) -> bytes:
    """Run GnuPG in its own home folder and return its output; raises TrustError."""
    program = shutil.which("gpg")
    if not program:
        raise TrustError("gpg, which reads keys, is missing; install the package gnupg")
    try:
        done = subprocess.run(
            [program, "--homedir", home, "--batch", "--no-autostart", "--quiet", *arguments],
            stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE_S,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise TrustError(
            f"gpg did not end within {PATIENCE_S:g} s on {arguments[-1]}: check whether another "
            f"gpg holds a lock in {home}, and run this again"
        ) from None
    if done.returncode:
        lines = done.stderr.decode(errors="replace").splitlines()
        said = one_line((lines or ["gpg failed"])[0])
        raise TrustError(f"{arguments[-1]} cannot be read as a key: {said}")
    return done.stdout


def trusted(root: Path) -> list[PublicKey]:
    """Return the keys of the trust folder, those that do not count any more included.

    In a shared installation its keys and the user's count; a key that has expired or was revoked
    in one of the two folders counts in neither. Raises TrustError for a file that is no public key.
    """
    found = []
    with tempfile.TemporaryDirectory() as home:
        for path in files(root):
            found += _keys_in(path, home)
    faulty = {key.fingerprint for key in found if key.fault()}
    return [key for key in found if key.fault() or key.fingerprint not in faulty]


def files(root: Path) -> list[Path]:
    """Return the files of the keys: the installation's, and those of the user."""
    folders = dict.fromkeys((root, layout.home(root)))
    return [path for one in folders for path in sorted((one / FOLDER).glob("*.asc"))]


def _keys_in(path: Path, home: str) -> list[PublicKey]:
    found: list[PublicKey] = []
    primary: list[str] = []
    listing = gpg(home, "--with-colons", "--show-keys", path).decode(errors="replace")
    for fields in (line.split(":") for line in listing.splitlines()):
        if fields[0] in ("sec", "ssb"):
            raise TrustError(
                f"{path} contains a private key: remove the file, keep it out of the repository, "
                "and "
                "put the public key there (gpg --armor --export)"
            )
        if fields[0] == "pub":
            primary = fields
        elif fields[0] == "fpr" and primary:
            expires = int(primary[6] or 0)
            found.append(PublicKey(path, fields[9], "", expires, primary[1] == "r"))
            primary = []
        elif fields[0] == "uid" and fields[1] != "r" and found and not found[-1].owner:
            key = found[-1]
            owner = one_line(fields[9], LONGEST_OWNER)
            found[-1] = PublicKey(key.file, key.fingerprint, owner, key.expires, key.revoked)
    if not found:
        raise TrustError(f"{path} contains no public key; put one there (gpg --armor --export)")
    return found


@contextmanager
def keyring(keys: list[PublicKey]) -> Iterator[Path]:
    """Give a keyring for Apptainer, of public keys of the trust folder and nothing else."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        home.mkdir(mode=0o700)
        ring = Path(folder) / "keys"
        ring.mkdir(mode=0o700)
        for file in sorted({key.file for key in keys}):
            gpg(home, "--import", file)
        public = gpg(home, "--export", *(key.fingerprint for key in keys)) if keys else b""
        (ring / PUBLIC).write_bytes(public)
        (ring / PUBLIC).chmod(0o600)
        yield ring
