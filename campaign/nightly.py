"""`python -m campaign.nightly`: measure a night, repeat what trips, and decide.

Nothing is built or updated. Exit codes: 0 nothing became worse, 3 a regression is confirmed, 4 none
is, but something was not measured (a broken implementation, a failed launch), 5 another campaign
is using the site, 1 an error, 130 interrupted.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from campaign import __main__ as campaigns
from campaign import beginning, estimate, measuring, request, resuming, retention
from campaign.driver import forget_own_job
from campaign.site_lock import SiteIsBusy, only_campaign
from containers import images, installations, selection
from containers.ending import exit_code
from records import layout
from records.acting_user import act_for
from records.base import CampaignError
from records.command_words import CommandWords
from records.files import only_owner_writes, read_json
from records.manifest import read_manifest

ROOT = beginning.ROOT
AGAIN = 2
NAME = "nightly"
ANOTHER_AT_WORK = 5
#: The exit codes of `python -m analysis night` when it has judged.
JUDGED = (0, 3, 4, 6, 7)
MEASURE_AGAIN = "measure again"
#: The kernel takes no longer argument; beyond this everything is measured again.
LONGEST_EXPRESSION = 100_000


@dataclass(frozen=True)
class Wanted:
    """A campaign that a night needs; `facts` are in its manifest under `night`."""

    name: str
    checks: str | None
    images: tuple[str, ...]
    facts: dict[str, Any]


#: Measures or resumes a campaign and returns its folder; raises campaigns.ERRORS and
#: OSError.
MeasureWanted = Callable[[Wanted], Path]
#: Judges a night: the folder, what was measured again, whether to decide by that.
Judge = Callable[[Path, Sequence[Path], bool], dict[str, Any]]


def arguments() -> argparse.Namespace:
    """Return the parsed command line."""
    parser = CommandWords(
        prog="python -m campaign.nightly",
        description="Measure a site's tier, compare it with the references and with earlier "
        "nights, repeat twice whatever is worse, and decide. Nothing is built or "
        "updated. Exit codes: "
        "0 nothing became worse; 3 a regression is confirmed; 4 none is, but something was not "
        "measured; 7 nothing was judged, for want of earlier nights; 5 another campaign is using "
        "the site; 1 an error.",
    )
    parser.add_argument("--site", default="local", help="a folder of site_configs/ (%(default)s)")
    parser.add_argument("--tier", default="quick", help="quick, paper or site (%(default)s)")
    parser.add_argument(
        "--rounds",
        type=request.number_of_rounds,
        default=3,
        help="number of rounds (default: %(default)s)",
    )
    parser.add_argument(
        "--name", default=NAME, help="a night is compared with those of the same name "
        "(default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--images", default="", help="implementations, separated by commas (default: the site's)"
    )
    parser.add_argument("--checks", help="only checks whose name matches this expression")
    parser.add_argument(
        "--time-limit", help="time limit of a launch, such as 30m (each check's own)"
    )
    parser.add_argument("--resume", metavar="NIGHT", help="resume a night of runs/")
    parser.add_argument(
        "--keep-nights", type=int, default=retention.KEEP_NIGHTS, metavar="N",
        help="keep all tables, but the raw output of only the newest N nights "
             "(default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--dry-run", action="store_true", help="print what would be done, and do nothing"
    )
    return parser.parse_args()


def usable(root: Path, site: str, words: str) -> tuple[list[str], dict[str, str]]:
    """Return the implementations that can be measured, and what is wrong with the others.

    Raises CampaignError if none can be measured.
    """
    data = selection.site_data(root, site)
    names = selection.implementations(root, site, words) if words else selection.wanted(root, site)
    broken = {}
    for name in names:
        try:
            installations.refuse_unusable(root, data, name)
        except images.ImageError as error:
            broken[name] = str(error)
    whole = [name for name in names if name not in broken]
    if not whole:
        raise CampaignError(f"no image can be measured: {'; '.join(broken.values())}")
    return whole, broken


def wanted_again(night: Path, wanted: Wanted, told: dict[str, Any], number: int) -> Wanted:
    """Return the campaign that repeats what tripped in a night, and nothing else."""
    tripped = [one for one in told["findings"] if one["outcome"] == "tripped"]
    # ReFrame matches names without their spaces.
    names = sorted({re.escape(one["check"].replace(" ", "")) for one in tripped})
    expression: str | None = f"^({'|'.join(names)})$"
    if len(str(expression)) > LONGEST_EXPRESSION:
        expression = wanted.checks
    return Wanted(
        f"{wanted.name}-again{number}", expression,
        tuple(sorted({one["implementation"] for one in tripped})),
        {"again_of": night.name, "number": number},
    )  # fmt: skip


def course(measure: MeasureWanted, judge: Judge, wanted: Wanted) -> tuple[Path, dict[str, Any]]:
    """Measure and judge a night, repeat what trips, decide; return its folder and verdict.

    What cannot be repeated leaves the night undecided. Raises campaigns.ERRORS and OSError
    if the night itself cannot be measured or judged.
    """
    night = measure(wanted)
    told = judge(night, [], False)
    if told["verdict"] != MEASURE_AGAIN:
        return night, told
    again = []
    for number in range(1, AGAIN + 1):
        try:
            again.append(measure(wanted_again(night, wanted, told, number)))
        except (*beginning.ERRORS, OSError) as error:
            print(f"nightly: {error}", file=sys.stderr)
    return night, judge(night, again, True)


def say_analysis(*arguments: str) -> int:
    """Run a command of the analysis; return its exit code."""
    command = [sys.executable, "-m", "analysis", *arguments]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


def judged(night: Path, again: Sequence[Path], decide: bool) -> dict[str, Any]:
    """Let the analysis judge a night; return what it wrote."""
    words = [word for path in again for word in ("--again", str(path))]
    code = say_analysis("night", str(night), *words, *(["--decide"] if decide else []))
    if code not in JUDGED:
        raise CampaignError(f"{night.name} could not be judged; the sentence above says why")
    try:
        return dict(read_json(night / "night.json"))
    except (OSError, ValueError, TypeError) as error:
        raise CampaignError(f"{night / 'night.json'} cannot be read: {error}") from None


def as_campaign(options: argparse.Namespace) -> argparse.Namespace:
    """Return a night's options, completed by those that only campaigns have."""
    # It has rounds, whatever the site's budget is.
    return argparse.Namespace(**{**vars(campaigns.arguments([])), **vars(options)})


def begun(options: argparse.Namespace, wanted: Wanted) -> Path | None:
    """Return the campaign that was begun for this purpose, if a night is resumed."""
    if not options.resume:
        return None
    if "again_of" not in wanted.facts:
        return layout.runs(ROOT) / Path(options.resume).name
    for path in sorted(layout.runs(ROOT).glob(f"*-{options.site}-{wanted.name}/manifest.json")):
        try:
            night = read_manifest(path.parent).night
        except CampaignError:
            continue
        if night and night.again_of == wanted.facts["again_of"]:
            return path.parent
    return None


def measured(options: argparse.Namespace, wanted: Wanted) -> Path:
    """Measure a campaign and its report, or whatever one that was begun still lacks."""
    old = begun(options, wanted)
    own = as_campaign(options)
    own.name, own.checks, own.images = wanted.name, wanted.checks, ",".join(wanted.images)
    own.resume = old.name if old else None
    if old and beginning.read_manifest(old.name).finished_utc:
        campaign = old
    else:
        campaign, manifest = (
            resuming.old_campaign(own)
            if old
            else beginning.new_campaign(
                own, {"night": wanted.facts, "commands": [command_of(options)]}
            )
        )
        measuring.measure(campaign, manifest)
    # What a night answers is asked of it, and of those before it, afterwards.
    say_analysis("conclude", str(campaign), "--no-answer")
    return campaign


def command_of(options: argparse.Namespace) -> str:
    """Return the command that a person would type for this night."""
    if options.resume:
        return request.command_line(
            ["make", "nightly"], {"SITE": options.site, "RESUME": options.resume}
        )
    given = {"SITE": options.site, "TIER": options.tier, "ROUNDS": options.rounds,
             "CHECKS": options.checks, "IMAGES": options.images,
             "NAME": options.name if options.name != NAME else None}  # fmt: skip
    return request.command_line(["make", "nightly"], given)


def wanted_of(options: argparse.Namespace) -> Wanted:
    """Return the requested night, or the one that is resumed."""
    if options.resume:
        manifest = beginning.read_manifest(options.resume)
        night = manifest.night
        if night is None or night.again_of:
            raise CampaignError(f"{options.resume} is not a night; see: ls runs")
        # Repetitions are measured like the night.
        for key in ("site", "tier", "rounds", "time_limit"):
            setattr(options, key, getattr(manifest, key))
        name = manifest.name or manifest.tier
        return Wanted(name, manifest.checks, tuple(manifest.images), night.facts)
    request.refuse(ROOT, options)
    names, broken = usable(ROOT, options.site, options.images)
    for name, sentence in broken.items():
        print(f"broken: {name}: {sentence}", file=sys.stderr)
    request.refuse_checks(ROOT, as_campaign(options), names)
    return Wanted(options.name, options.checks, tuple(names), {"broken": broken})


def say_plan(options: argparse.Namespace, wanted: Wanted) -> None:
    """Print what a night would do."""
    print(f"would measure {', '.join(wanted.images)} on site {options.site}, tier {options.tier}")
    own = as_campaign(options)
    own.images = ",".join(wanted.images)
    print(estimate.expectation(ROOT, beginning.alike(own), options.rounds))


def clear_away(options: argparse.Namespace) -> None:
    """Remove the raw output of old nights; a sentence says what cannot be removed."""
    plan = retention.plan(ROOT, options.site, options.keep_nights)
    for sentence in retention.sentences(plan, options.dry_run):
        print(sentence)
    for removal in [] if options.dry_run else plan.removals:
        try:
            retention.remove(removal)
        except CampaignError as error:
            print(f"nightly: {error}", file=sys.stderr)


def main() -> int:
    """Run a night; return the exit code."""
    act_for(ROOT)
    os.environ.setdefault("WYEAST_ROOT", str(ROOT))
    only_owner_writes()
    # A night that is itself a Slurm job submits independent jobs.
    forget_own_job()
    state = "resume it: make nightly RESUME=<folder>"
    return exit_code("nightly", lambda: work(arguments()), beginning.ERRORS, state)


def work(options: argparse.Namespace) -> int:
    """Run a night; return the exit code.

    Raises what campaign.__main__.ERRORS names, and OSError.
    """
    retention.checked(options.keep_nights)
    wanted = wanted_of(options)
    if options.dry_run:
        say_plan(options, wanted)
        clear_away(options)
        return 0
    try:
        with only_campaign(ROOT, options.site):
            night, told = course(lambda one: measured(options, one), judged, wanted)
            clear_away(options)
    except SiteIsBusy as error:
        print(f"nightly: {error}; nothing was started or changed", file=sys.stderr)
        return ANOTHER_AT_WORK
    if (night / "report.html").is_file():
        print(f"report: {night / 'report.html'}")
    print(f"summary: {night / 'night.md'}")
    return int(told["exit_code"])


if __name__ == "__main__":
    sys.exit(main())
