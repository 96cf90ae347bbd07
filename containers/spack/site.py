"""What Spack takes of a site, when it builds images or renews locks: the site's mirrors.

WYEAST_SITE names the site, as for Spack outside images. Its externals are the machine's, which no
image stands on: images and locks have those of their base, whatever the site.
"""

import os
from pathlib import Path
from typing import Any

import yaml

from containers.programs import ProvisionError
from records import layout
from records.yaml_text import from_yaml

VARIABLE = "WYEAST_SITE"
#: The site whose externals the base has.
BASE = "virtual"


def named_site() -> str | None:
    """Return the site that WYEAST_SITE names; None where it names none but the base's own."""
    site = os.environ.get(VARIABLE, "")
    return None if site in ("", BASE) else site


def mirrors_of_site(root: Path) -> dict[str, dict[str, Any]]:
    """Return the mirrors of the site that WYEAST_SITE names, by name; those to fetch from alone.

    Raises ProvisionError for a site without a folder of Spack's configuration, and for a file of
    mirrors that cannot be read.
    """
    site = named_site()
    if site is None:
        return {}
    folder = layout.site_file(root, site, "spack")
    if not folder.is_dir():
        raise ProvisionError(
            f"{VARIABLE} is {site}, but {layout.name_of(root, folder)} does not exist; make it, or "
            f"unset {VARIABLE}"
        )
    path = folder / "mirrors.yaml"
    try:
        data = from_yaml(path.read_text()) if path.exists() else None
        listed = (data or {}).get("mirrors") or {}
        return {name: _fetched(value, folder) for name, value in listed.items()}
    except (OSError, yaml.YAMLError, AttributeError, KeyError, TypeError) as error:
        raise ProvisionError(
            f"{path.relative_to(root)} does not match Spack's documentation: {error!r}"
        ) from None


def sentence(root: Path) -> str | None:
    """Return what is used of the site that WYEAST_SITE names; None where it names none.

    Raises ProvisionError as `mirrors_of_site` does.
    """
    site = named_site()
    if site is None:
        return None
    mirrors = mirrors_of_site(root)
    used = f"its mirrors ({', '.join(mirrors)})" if mirrors else "nothing, since it has no mirrors"
    return (
        f"from the site {site}, images and locks use {used}; externals are those of the "
        "images' base"
    )


def _fetched(value: Any, folder: Path) -> dict[str, Any]:
    """Return a mirror as it is fetched from; a path is absolute, from the file's folder."""
    entry = {"url": value} if isinstance(value, str) else dict(value)
    fetch = entry.pop("fetch", None)
    entry |= {"url": fetch} if isinstance(fetch, str) else dict(fetch or {})
    for key in ("push", "autopush"):
        entry.pop(key, None)
    place = local_path(entry["url"])
    if place:
        entry["url"] = f"file://{(folder / place).absolute()}"
    return entry


def local_path(url: str) -> str | None:
    """Return the path of a mirror that is a folder; None for one that is elsewhere."""
    if url.startswith("file://"):
        return url.removeprefix("file://")
    return None if "://" in url else os.path.expanduser(os.path.expandvars(url))


def in_base(mirrors: dict[str, dict[str, Any]]) -> tuple[dict[str, dict[str, Any]], dict[str, str]]:
    """Return mirrors as the base sees them, and the folder → name of its place under /mnt.

    Raises ProvisionError for a folder that is not there.
    """
    seen: dict[str, dict[str, Any]] = {}
    places: dict[str, str] = {}
    for name, entry in mirrors.items():
        path = local_path(entry["url"])
        if path and not Path(path).is_dir():
            raise ProvisionError(
                f"{path}, the site's mirror {name}, is not a folder on this machine"
            )
        if path:
            places[path] = f"mirror-{len(places) + 1}"
        # Ours is called otherwise, whatever the site calls its own.
        seen[f"site-{name}"] = entry | (
            {"url": f"file:///mnt/{places[path]}"} if path else {}
        )  # fmt: skip
    return seen, places
