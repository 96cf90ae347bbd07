"""Which implementations a site measures, by its data and by the command line."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

from containers import images, table
from records import layout
from records.base import CampaignError
from site_configs.entries import SiteError
from site_configs.installation_entries import is_installation
from site_configs.site_file import NAME, read_site


def site_file(root: Path, site: str) -> Path:
    """Return the path of a site's data; raise CampaignError for an unknown site."""
    path = layout.site_file(root, site)
    # A path instead of a name would lead out of the folder of sites, and of that of locks.
    if not NAME.fullmatch(site) or not path.is_file():
        known = [found.parent.name for found in layout.site_files(root)]
        raise CampaignError(f"site {site} is unknown; site_configs/ has {', '.join(known)}")
    return path


def site_data(root: Path, site: str) -> dict[str, Any]:
    """Return a site's data.

    Raises CampaignError for an unknown site, or one whose data are not valid.
    """
    try:
        return read_site(site_file(root, site), root)
    except SiteError as error:
        raise CampaignError(str(error)) from None


def wanted(root: Path, site: str) -> list[str]:
    """Return the implementations that a site's data names, else those that are built by default.

    Raises CampaignError as `site_data` does.
    """
    names = site_data(root, site).get("implementations")
    return [str(name) for name in names] if names else images.default_implementations(root)


def implementations(root: Path, site: str, words: str) -> list[str]:
    """Return the implementations, or variants of them, that `words` names: IMAGES on the command.

    Without words they are the site's that are built, and its installations that it names there; if
    there are none, all, so that each says what is missing.
    """
    if words == "default":
        return images.default_implementations(root)
    if words == "all":
        return images.available(root)
    # Each once: of two of one name, each launch would be two.
    named = [*dict.fromkeys(name.strip() for name in words.split(",") if name.strip())]
    if named:
        return named
    built = images.available(root)
    of_site = wanted(root, site)
    return [
        name for name in of_site
        if is_installation(name) or table.split_variant(name)[0] in built
    ] or of_site  # fmt: skip


def in_a_box(root: Path, site: str) -> bool:
    """Return whether a site's jobs are submitted from within the cluster in a box."""
    return layout.site_file(root, site, "cluster.yaml").is_file()


def runs_here(root: Path, site: str) -> bool:
    """Return whether a site's launches run on this machine: by no scheduler, or in its box.

    Raises what site_data does.
    """
    return in_a_box(root, site) or site_data(root, site)["scheduler"] == "local"


def campaign_lock(root: Path, site: str) -> Path:
    """Return the file that a campaign holds while it measures on a site.

    It is beside what else is of whoever measures on the site: on the cluster in a box that is the
    job user, and no folder is written by two users.
    """
    return layout.state(root) / "reframe" / site / f"campaign-{site}.lock"


def sites_here(root: Path) -> list[str]:
    """Return the sites whose launches run on this machine; one that cannot be read is none."""
    found = []
    for path in layout.site_files(root):
        with suppress(CampaignError):
            if runs_here(root, path.parent.name):
                found.append(path.parent.name)
    return found
