"""Which implementations a site measures; `python -m campaign.choice` prints them."""

import argparse
import os
import sys
from pathlib import Path
from typing import Any

from analysis.studies.declaration import Study, StudyError
from analysis.studies.reading import papers, read_paper
from campaign.folder import CampaignError
from containers import images
from site_configs.site_file import SiteError, read_site

ROOT = Path(os.environ.get("WYEAST_ROOT", Path(__file__).resolve().parents[1]))


def site_file(root: Path, site: str) -> Path:
    """Return the path of a site's data; raise CampaignError for a site that there is none of."""
    path = root / "site_configs" / site / "site.yaml"
    if not path.is_file():
        known = sorted(found.parent.name for found in path.parents[1].glob("*/site.yaml"))
        raise CampaignError(f"site {site} is unknown; site_configs/ has {', '.join(known)}")
    return path


def site_data(root: Path, site: str) -> dict[str, Any]:
    """Return a site's data.

    Raises CampaignError for a site that there is none of, or whose data are not as they must be.
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

    Without words they are the site's, without those of them that are not built; if none is, all,
    so that each says what is missing.
    """
    if words == "default":
        return images.default_implementations(root)
    if words == "all":
        return images.available(root)
    named = [name.strip() for name in words.split(",") if name.strip()]
    if named:
        return named
    built = images.available(root)
    of_site = wanted(root, site)
    return [name for name in of_site if images.split_variant(name)[0] in built] or of_site


def study_of(root: Path, paper: str) -> Study:
    """Return what a report's study declares; raise CampaignError if there is none."""
    if not paper:
        known = ", ".join(papers(root))
        raise CampaignError(f"say which report: make study PAPER=<name>; literature/ has: {known}")
    try:
        return read_paper(root, paper).study
    except StudyError as error:
        raise CampaignError(str(error)) from None


def main() -> int:
    """Print what `make images` builds for a site or a study, by comma."""
    parser = argparse.ArgumentParser(
        prog="python -m campaign.choice",
        description="Print the implementations that a site measures, separated by commas.",
    )
    parser.add_argument("--site", default="local", help="a folder of site_configs/ (%(default)s)")
    parser.add_argument(
        "--study", metavar="PAPER",
        help="print those that a report of literature/ takes; nothing if it takes the site's",
    )  # fmt: skip
    options = parser.parse_args()
    try:
        if options.study is not None:
            print(",".join(study_of(ROOT, options.study).images()))
        else:
            print(",".join(wanted(ROOT, options.site)))
    except CampaignError as error:
        print(f"choice: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
