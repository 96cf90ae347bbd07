"""`python -m campaign.nightly`: measure a night, measure again what trips, and decide.

Nothing is built or updated. Exit codes: 0 nothing became worse, 3 a regression is confirmed, 4 none
is, but something was not measured (a broken implementation, a failed launch), 5 another campaign
has the site, 1 an error, 130 interrupted.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from campaign import __main__ as campaigns
from campaign import choice, estimate, retention
from campaign.folder import CampaignError, only_owner_writes
from campaign.rounds import SiteIsBusy, only_campaign
from containers import images, trust
from containers.ending import exit_code

ROOT = campaigns.ROOT
AGAIN = 2
ANOTHER_AT_WORK = 5
#: What `python -m analysis night` ends with when it has judged.
JUDGED = (0, 3, 4, 6)
MEASURE_AGAIN = "measure again"
#: The kernel takes no longer argument; beyond this everything is measured again.
LONGEST_EXPRESSION = 100_000


@dataclass(frozen=True)
class Wanted:
    """A campaign that a night needs; `facts` stand in its manifest under `night`."""

    name: str
    checks: str | None
    images: tuple[str, ...]
    facts: dict[str, Any]


#: Measures a campaign, or goes on with it, and returns its folder; raises campaigns.ERRORS and
#: OSError.
Measure = Callable[[Wanted], Path]
#: Judges a night: the folder, what was measured again, whether to decide by that.
Judge = Callable[[Path, Sequence[Path], bool], dict[str, Any]]


def arguments() -> argparse.Namespace:
    """Return the parsed command line."""
    parser = argparse.ArgumentParser(
        prog="python -m campaign.nightly",
        description="Measure a site's tier, compare with its references and the nights before, "
        "measure again twice what is worse, and decide. Nothing is built or updated. Exit codes: "
        "0 nothing became worse; 3 a regression is confirmed; 4 none is, but something was not "
        "measured; 5 another campaign has the site; 1 an error.",
    )
    parser.add_argument("--site", default="local", help="a folder of site_configs/ (%(default)s)")
    parser.add_argument("--tier", default="quick", help="quick, paper or site (%(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="number of rounds (%(default)s)")
    parser.add_argument(
        "--name", default="nightly", help="nights are held against those of the same name "
        "(%(default)s)",
    )  # fmt: skip
    parser.add_argument("--images", default="", help="implementations, by comma (the site's)")
    parser.add_argument("--checks", help="only checks whose name matches this expression")
    parser.add_argument("--time-limit", help="of a launch, such as 30m (each check's own)")
    parser.add_argument("--resume", metavar="NIGHT", help="go on with a night of runs/")
    parser.add_argument(
        "--keep-nights", type=int, default=retention.KEEP_NIGHTS, metavar="N",
        help="remove the raw output of nights before the newest N, not their tables (%(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--dry-run", action="store_true", help="say what would be done, and do nothing"
    )
    return parser.parse_args()


def usable(root: Path, site: str, words: str) -> tuple[list[str], dict[str, str]]:
    """Return the implementations that can be measured, and the others with what is wrong.

    Raises CampaignError where there is none of the first.
    """
    data = choice.site_data(root, site)
    names = choice.implementations(root, site, words) if words else choice.wanted(root, site)
    broken = {}
    for name in names:
        try:
            trust.admit(root, name, data)
        except images.ImageError as error:
            broken[name] = str(error)
    whole = [name for name in names if name not in broken]
    if not whole:
        raise CampaignError(f"no image can be measured: {'; '.join(broken.values())}")
    return whole, broken


def wanted_again(night: Path, wanted: Wanted, told: dict[str, Any], number: int) -> Wanted:
    """Return the campaign that measures once more what tripped in a night, and nothing else."""
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


def course(measure: Measure, judge: Judge, wanted: Wanted) -> tuple[Path, dict[str, Any]]:
    """Measure and judge a night, measure again what trips, decide; return its folder and verdict.

    What cannot be measured again leaves the night undecided. Raises campaigns.ERRORS and OSError
    where the night itself cannot be measured or judged.
    """
    night = measure(wanted)
    told = judge(night, [], False)
    if told["verdict"] != MEASURE_AGAIN:
        return night, told
    again = []
    for number in range(1, AGAIN + 1):
        try:
            again.append(measure(wanted_again(night, wanted, told, number)))
        except (*campaigns.ERRORS, OSError) as error:
            print(f"nightly: {error}", file=sys.stderr)
    return night, judge(night, again, True)


def say_analysis(*arguments: str) -> int:
    """Run a command of the analysis; return its exit code."""
    command = [sys.executable, "-m", "analysis", *arguments]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


def judged(night: Path, again: Sequence[Path], decide: bool) -> dict[str, Any]:
    """Have the analysis judge a night; return what it wrote."""
    words = [word for path in again for word in ("--again", str(path))]
    code = say_analysis("night", str(night), *words, *(["--decide"] if decide else []))
    if code not in JUDGED:
        raise CampaignError(f"{night.name} could not be judged; the sentence above says why")
    told: dict[str, Any] = json.loads((night / "night.json").read_text())
    return told


def as_campaign(options: argparse.Namespace) -> argparse.Namespace:
    """Return a night's options with those of a campaign that a night does not have."""
    return argparse.Namespace(**{**vars(campaigns.arguments([])), **vars(options)})


def begun(options: argparse.Namespace, wanted: Wanted) -> Path | None:
    """Return the campaign that was begun for what is wanted, if a night is gone on with."""
    if not options.resume:
        return None
    if "again_of" not in wanted.facts:
        return ROOT / "runs" / Path(options.resume).name
    for path in sorted((ROOT / "runs").glob(f"*-{options.site}-{wanted.name}/manifest.json")):
        night = retention.json_of(path).get("night") or {}
        if night.get("again_of") == wanted.facts["again_of"]:
            return path.parent
    return None


def measured(options: argparse.Namespace, wanted: Wanted) -> Path:
    """Measure a campaign with its report, or what is missing of one that was begun."""
    old = begun(options, wanted)
    own = as_campaign(options)
    own.name, own.checks, own.images = wanted.name, wanted.checks, ",".join(wanted.images)
    own.resume = old.name if old else None
    if old and campaigns.read_manifest(old.name)["finished_utc"]:
        campaign = old
    else:
        campaign, manifest = (
            campaigns.old_campaign(own)
            if old
            else campaigns.new_campaign(
                own, {"night": wanted.facts, "commands": [command_of(options)]}
            )
        )
        campaigns.measure(campaign, manifest)
    for command in ("ingest", "report"):
        say_analysis(command, str(campaign))
    return campaign


def command_of(options: argparse.Namespace) -> str:
    """Return the command that a person would type for this night."""
    if options.resume:
        return f"make nightly RESUME={options.resume}"
    given = {"SITE": options.site, "TIER": options.tier, "ROUNDS": options.rounds,
             "CHECKS": options.checks, "IMAGES": options.images}  # fmt: skip
    return "make nightly " + " ".join(f"{key}={value}" for key, value in given.items() if value)


def wanted_of(options: argparse.Namespace) -> Wanted:
    """Return the night that is asked for, or that is gone on with."""
    if options.resume:
        manifest = campaigns.read_manifest(options.resume)
        night = manifest.get("night")
        if not isinstance(night, dict) or night.get("again_of"):
            raise CampaignError(f"{options.resume} is no night; see: ls runs")
        # What is measured again is measured as the night was.
        for key in ("site", "tier", "rounds", "time_limit"):
            setattr(options, key, manifest[key])
        return Wanted(manifest["name"], manifest["checks"], tuple(manifest["images"]), night)
    choice.site_file(ROOT, options.site)
    names, broken = usable(ROOT, options.site, options.images)
    for name, sentence in broken.items():
        print(f"broken: {name}: {sentence}", file=sys.stderr)
    return Wanted(options.name, options.checks, tuple(names), {"broken": broken})


def say_plan(options: argparse.Namespace, wanted: Wanted) -> None:
    """Print what a night would do."""
    print(f"would measure {', '.join(wanted.images)} on site {options.site}, tier {options.tier}")
    own = as_campaign(options)
    own.images = ",".join(wanted.images)
    print(estimate.expectation(ROOT, campaigns.alike(own), options.rounds))


def clear_away(options: argparse.Namespace) -> None:
    """Remove the raw output of old nights; what cannot be removed costs a sentence."""
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
    options = arguments()
    os.environ.setdefault("WYEAST_ROOT", str(ROOT))
    only_owner_writes()
    # A night that is itself a job of Slurm's asks for jobs of their own.
    for name in [name for name in os.environ if re.match(r"S(LURM|BATCH|RUN)_", name)]:
        if name != "SLURM_CONF":
            del os.environ[name]
    state = "go on with: make nightly RESUME=<folder>"
    return exit_code("nightly", lambda: work(options), campaigns.ERRORS, state)


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
        print(f"nightly: {error}; nothing was begun or changed", file=sys.stderr)
        return ANOTHER_AT_WORK
    print(f"report: {night / 'report.html'}\nsummary: {night / 'night.md'}")
    return int(told["exit_code"])


if __name__ == "__main__":
    sys.exit(main())
