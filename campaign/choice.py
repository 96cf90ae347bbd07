"""Which implementations a site measures; `python -m campaign.choice` prints them."""

import os
import sys
from pathlib import Path

from analysis.studies.declaration import Study, StudyError
from analysis.studies.reading import papers, read_paper
from containers.selection import wanted
from records.base import CampaignError
from records.command_words import CommandWords

ROOT = Path(os.environ.get("WYEAST_ROOT", Path(__file__).resolve().parents[1]))


def study_of(root: Path, paper: str) -> Study:
    """Return what a report's study declares; raise CampaignError if there is none."""
    if not paper:
        known = ", ".join(papers(root))
        raise CampaignError(f"name a report: make study PAPER=<name>; literature/ has: {known}")
    try:
        return read_paper(root, paper).study
    except StudyError as error:
        raise CampaignError(str(error)) from None


def main() -> int:
    """Print what `make images` builds for a site or a study, separated by commas."""
    parser = CommandWords(
        prog="python -m campaign.choice",
        description="Print the implementations that a site measures, separated by commas.",
    )
    parser.add_argument("--site", default="local", help="a folder of site_configs/ (%(default)s)")
    parser.add_argument(
        "--study", metavar="PAPER",
        help="print those that a report of literature/ uses; nothing if it uses the site's",
    )  # fmt: skip
    options = parser.parse_args()
    try:
        if options.study is not None:
            print(",".join(study_of(ROOT, options.study).images()))
        else:
            print(",".join(wanted(ROOT, options.site)))
    except CampaignError as error:
        print(f"{'site' if options.study is None else 'study'}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
