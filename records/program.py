"""Where this program is to be had, and its version: for whoever is handed what it measured."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import yaml

from records.acting_user import git
from records.causes import CONTROLS
from records.yaml_text import from_yaml

CITATION = "CITATION.cff"
#: Its key for the address of a repository, which whoever publishes a fork sets.
SETTING = "repository-code"
#: How git writes an address for ssh: user@host:path.
OF_SSH = re.compile(r"(?:[^@/\s]+@)?([\w.-]+\.[\w-]+):(?!//)([^\s]+)")
#: A host as the internet has them, which is neither a number nor known at one place alone.
PUBLIC_HOST = re.compile(r"(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+[a-z]{2,}")
INTERNAL = frozenset(("corp", "home", "intern", "internal", "intra", "intranet", "invalid", "lan",
                      "local", "localdomain", "localhost", "priv", "private"))  # fmt: skip
COMMIT = re.compile(r"[0-9a-f]{40,64}")
LONGEST = 500


@dataclass(frozen=True)
class Program:
    """What measured: its version and commit, and an address; None for what is not known."""

    version: str | None
    commit: str | None
    repository: str | None

    @property
    def name(self) -> str:
        """Return its name with version and commit."""
        commit = f", commit {self.commit}" if self.commit else ""
        return f"Wyeast {self.version or 'of an unknown version'}{commit}"


def public_address(address: str) -> str | None:
    """Return an address of git's as others can use it, None where there is none.

    Users, passwords and tokens are taken out, ssh becomes https, and a path of this machine is no
    address.
    """
    address = address.strip()
    if CONTROLS.search(address) or len(address) > LONGEST:
        return None
    if found := OF_SSH.fullmatch(address):
        address = f"https://{found[1]}/{found[2].lstrip('/')}"
    try:
        parts = urlsplit(address)
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    if parts.scheme not in ("https", "http", "ssh", "git") or not host or not parts.path.strip("/"):
        return None
    # Of ssh the port is that of its own service.
    is_web = parts.scheme in ("https", "http")
    place = f"{host}:{port}" if port and is_web else host
    scheme = parts.scheme if is_web else "https"
    return urlunsplit((scheme, place, parts.path, "", ""))


def looks_public(address: str) -> bool:
    """Return whether an address of git's may be published without asking anybody.

    It is one of the web without a user, a port or a query, at a name as the internet has them. Of
    others whoever publishes them says so.
    """
    try:
        parts = urlsplit(address.strip())
        host, port = (parts.hostname or "").lower(), parts.port
    except ValueError:
        return False
    labels = host.split(".")
    return bool(
        parts.scheme == "https" and "@" not in parts.netloc and port is None
        and not parts.query and not parts.fragment and PUBLIC_HOST.fullmatch(host)
        and not INTERNAL.intersection(labels) and public_address(address)
    )  # fmt: skip


def remote_of(root: Path) -> str | None:
    """Return git's remote `origin` as it is written, which may have a password in it."""
    remote = git(root, "remote", "get-url", "origin")
    return remote.decode(errors="replace").strip() or None if remote else None


def setting_of(root: Path) -> str | None:
    """Return the address that CITATION.cff names, None if it names none that others can use."""
    try:
        said = from_yaml((root / CITATION).read_text())
    except (OSError, ValueError, yaml.YAMLError):
        said = None
    if isinstance(said, dict) and isinstance(said.get(SETTING), str):
        return public_address(said[SETTING])
    return None


def repository_of(root: Path) -> str | None:
    """Return where the program of a checkout is to be had, None if nothing says so.

    What the setting in CITATION.cff says takes precedence over git's remote `origin`, which is
    taken only where it looks public: it was not written to be published.
    """
    if said := setting_of(root):
        return said
    remote = remote_of(root)
    return public_address(remote) if remote and looks_public(remote) else None


def version_at(root: Path, commit: str | None) -> str | None:
    """Return the version that pyproject.toml had at a commit; None if that is not here."""
    # Anybody may have written what names it, and git would take other words for options.
    is_one = commit is not None and COMMIT.fullmatch(commit)
    text = git(root, "show", f"{commit}:pyproject.toml") if is_one else None
    try:
        found = tomllib.loads((text or b"").decode())["project"]["version"]
    except (ValueError, KeyError, TypeError):
        return None
    return str(found)


def program_of(root: Path, commit: str | None, repository: str | None = None) -> Program:
    """Return what measured a campaign of a commit; an address that is given is taken as it is."""
    given = public_address(repository) if repository else None
    return Program(version_at(root, commit), commit, given or repository_of(root))
