"""`python -m campaign`: measure a campaign on a site and report it."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from campaign import beginning, concluding, driver, measuring, request, resuming
from campaign.missing import first_failure
from campaign.site_lock import only_campaign
from containers.ending import exit_code
from containers.installed import prefix_of
from records import files
from records.acting_user import act_for
from records.command_words import CommandWords


def arguments(words: list[str] | None = None) -> argparse.Namespace:
    """Return the parsed command line, or other words that are parsed like it."""
    parser = CommandWords(
        prog="python -m campaign",
        description="Measure every cell with every implementation, in rounds or for a time, in "
        "random order, one launch at a time; keep everything in a folder of runs/ and report it.",
    )
    parser.add_argument("--site", default="local", help="a folder of site_configs/ (%(default)s)")
    parser.add_argument("--tier", default="quick", help="quick, paper or site (%(default)s)")
    parser.add_argument(
        "--rounds", type=request.number_of_rounds,
        help="number of rounds of everything, in place of a budget",
    )  # fmt: skip
    parser.add_argument(
        "--budget", type=request.budget, metavar="TIME",
        help="a time, such as 15m, to be spent where answers are open; tier quick has one by "
        "default, the others have rounds",
    )  # fmt: skip
    parser.add_argument("--name", help="the campaign's name (the tier)")
    parser.add_argument(
        "--images", default="", help="implementations, separated by commas (default: the site's)"
    )
    parser.add_argument("--checks", help="only checks whose name matches this expression")
    parser.add_argument(
        "--study", metavar="PAPER",
        help="repeat a report of literature/: its checks and implementations, and a page of claims",
    )  # fmt: skip
    parser.add_argument(
        "--time-limit", help="time limit of a launch, such as 30m (each check's own)"
    )
    parser.add_argument(
        "--raw-by-rank", action="store_true",
        help="keep each rank's time for every iteration of a communication",
    )  # fmt: skip
    parser.add_argument(
        "--all-pairs", action="store_true",
        help="compare every two implementations, and not each with the base alone",
    )  # fmt: skip
    parser.add_argument(
        "--ranks", type=request.numbers, metavar="2,4,8",
        help="measure collectives, neighbourhoods and exchanges with each of these numbers of "
        "ranks",
    )  # fmt: skip
    parser.add_argument(
        "--ranks-per-node", type=request.numbers, metavar="1,2",
        help="and with each of these numbers of them on a node",
    )  # fmt: skip
    parser.add_argument("--seed", type=int, help="seed of the rounds' order (drawn at random)")
    parser.add_argument(
        "--like", metavar="CAMPAIGN",
        help="repeat a campaign of runs/: its checks, images, tier, rounds and the seed of their "
        "order, instead of what these options say",
    )  # fmt: skip
    parser.add_argument("--resume", metavar="CAMPAIGN", help="resume a campaign of runs/")
    parser.add_argument(
        "--host-mpi", metavar="PREFIX", type=prefix_of,
        help="bind the MPI that is installed there into the images, instead of their own",
    )  # fmt: skip
    parser.add_argument(
        "--driver", type=driver.kind, metavar="job",
        help="have a chain of jobs drive the campaign, and return",
    )  # fmt: skip
    parser.add_argument(
        "--estimate", action="store_true",
        help="estimate the duration from the last similar campaign, and measure nothing",
    )  # fmt: skip
    parser.add_argument(
        "--look", action="store_true",
        help="check the request as far as possible without images, and measure nothing",
    )  # fmt: skip
    parser.add_argument(
        "--site-by-default", action="store_true",
        help="with --look: nobody has named the site, so a machine that jobs are submitted from is "
        "refused",
    )  # fmt: skip
    options = parser.parse_args(words)
    request.refuse_with_budget(options)
    request.refuse_all_pairs(options)
    request.refuse_ranks(options)
    # With a budget a campaign has its first round, and further ones as it decides.
    options.rounds = options.rounds or (1 if options.budget else None)
    return options


def main() -> int:
    """Measure and report; return the exit code."""
    act_for(beginning.ROOT)
    os.environ.setdefault("WYEAST_ROOT", str(beginning.ROOT))
    files.only_owner_writes()
    return exit_code(
        "campaign",
        lambda: work(arguments()),
        beginning.ERRORS,
        "resume it: make run RESUME=<the folder>",
    )


def site_of(options: argparse.Namespace) -> str:
    """Return the site of a campaign that is begun or resumed."""
    if options.resume:
        return beginning.read_manifest(options.resume).site
    return str(options.site)


def work(options: argparse.Namespace) -> int:
    """Do what the command line says; return the exit code.

    Raises what ERRORS names, and OSError.
    """
    beginning.as_before(options)
    beginning.as_study(options)
    if options.driver and not options.estimate:
        driver.refuse(beginning.ROOT, site_of(options))
    request.with_design(beginning.ROOT, options)
    if options.look:
        return resuming.look(options)
    options.site = site_of(options)
    if options.driver and not options.estimate:
        return driver.begin(options)
    with only_campaign(beginning.ROOT, options.site):
        if options.estimate:
            print(beginning.expected(options))
            return 0
        campaign, manifest = (resuming.old_campaign if options.resume else beginning.new_campaign)(
            options
        )
        passed = measuring.measure(campaign, manifest)
        reported = concluding.report(campaign, manifest.study)
    if not passed:
        print(f"campaign: {why_not_passed(campaign)}", file=sys.stderr)
    pages = {"report": campaign / "report.html"}
    if manifest.study:
        pages["study"] = campaign / "study.html"
    for name, page in pages.items():
        if reported or page.is_file():
            print(f"{name}: {page}")
    return 0 if passed and reported else 1


def why_not_passed(campaign: Path) -> str:
    """Return why a measured campaign ends with an error, and where more is said."""
    if first := first_failure(campaign):
        return (
            f"some checks failed or are missing, first {first}; see {campaign / 'reframe'} and "
            "the report's list of what was left out"
        )
    return (
        "every launch is sound, but some checks failed in ReFrame, for instance because one is "
        f"worse than its reference; see {campaign / 'reframe'}"
    )


if __name__ == "__main__":
    sys.exit(main())
