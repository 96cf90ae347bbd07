"""Where things are: the installation, which has the code, and the home, which has what users write.

Both are one folder, the checkout, unless WYEAST_HOME names another: many users then measure with
one installation that none of them writes, and each has a home: campaigns, sites and references,
the locks of images and their store, keys and state. A home is laid out as a checkout, and what it
has is read before what the installation has. `campaign/bin/home` decides which folder it is.

Standard library only: this is read before anything is installed.
"""

from __future__ import annotations

import os
from pathlib import Path

HOME = "WYEAST_HOME"
#: The home that `activate` has chosen: it is where the user was then, and not one that is named.
CHOSEN = "WYEAST_ACTIVATED"
#: The folder in which a user has typed a command: relative paths are meant from there.
CALLER = "WYEAST_CALLER"
#: The checkout that this code is in.
CODE = Path(__file__).resolve().parents[1]
#: Parts of a checkout, or of a home.
SITES, RUNS, STATE = "site_configs", "runs", ".wyeast"


def installation() -> Path:
    """Return the checkout whose code and programs are used."""
    return Path(os.environ.get("WYEAST_ROOT") or CODE)


def home(root: Path) -> Path:
    """Return where the user of a checkout writes; only the installation's is not itself."""
    given = os.environ.get(HOME)
    return Path(given) if given and root in (CODE, installation()) else root


def is_shared(root: Path) -> bool:
    """Return whether what users of a checkout write is elsewhere."""
    return home(root) != root


def seen(path: Path) -> Path:
    """Return a path; if it is a home's and nothing is there, what the installation has for it."""
    given = os.environ.get(HOME)
    if not given or path.exists() or not path.is_relative_to(given):
        return path
    other = installation() / path.relative_to(given)
    return other if other.exists() else path


def all_seen(folder: Path, pattern: str) -> list[Path]:
    """Return the paths of a pattern in a folder, by name; a home's replace the installation's."""
    given, folders = os.environ.get(HOME), [folder]
    if given and folder.is_relative_to(given):
        folders.append(installation() / folder.relative_to(given))
    found: dict[Path, Path] = {}
    for one in folders:
        for path in one.glob(pattern):
            found.setdefault(path.relative_to(one), path)
    return [found[name] for name in sorted(found)]


def find(root: Path, name: str) -> Path:
    """Return what a checkout has at a path in it; its user's is before the installation's."""
    return seen(home(root) / name)


def input_file(root: Path, name: str) -> Path:
    """Return an input of a campaign: of a home only its sites count, and its lock of images.

    That one counts together with the installation's, `containers.images.lock_content`.
    """
    return find(root, name) if name.startswith(f"{SITES}/") else root / name


def meant(path: str) -> Path:
    """Return a path that a user has typed: it is relative to the folder of the user's shell."""
    # Some shells leave a tilde behind a variable's name as it is.
    return Path(os.environ.get(CALLER, ""), os.path.expanduser(path))


def meant_anywhere(path: str) -> str:
    """Return a path that a user has typed so that it is the same from wherever it is read."""
    return os.path.abspath(meant(path))


def name_of(root: Path, path: Path) -> str:
    """Return a file's path in the checkout or the home; as it is, if it is in neither."""
    for one in (home(root), root):
        if path.is_relative_to(one):
            return path.relative_to(one).as_posix()
    return str(path)


def runs(root: Path) -> Path:
    """Return the folder of campaigns."""
    return home(root) / RUNS


def state(root: Path) -> Path:
    """Return the folder of what is built, pulled, locked and left by ReFrame."""
    return home(root) / STATE


def installed(root: Path) -> Path:
    """Return the folder of what `make setup` installs: Python's packages and Apptainer."""
    return root / STATE


def sites(root: Path) -> Path:
    """Return the folder in which a user's sites and references are written."""
    return home(root) / SITES


def site_file(root: Path, site: str, name: str = "site.yaml") -> Path:
    """Return a file of a site's folder, whether it is there or not."""
    return find(root, f"{SITES}/{site}/{name}")


def site_files(root: Path) -> list[Path]:
    """Return the site.yaml of all sites, by their names."""
    return all_seen(sites(root), "*/site.yaml")
