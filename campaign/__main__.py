"""`python -m campaign`: measure a campaign of rounds on a site and report it."""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from analysis.campaign import is_imported, wrong_key
from campaign import choice, estimate, folder, provenance
from campaign.folder import CampaignError
from campaign.progress import Progress
from campaign.reference_findings import findings
from campaign.rounds import only_campaign, run_round
from containers import host_mpi, images
from containers.ending import exit_code
from containers.installed import PrefixError
from containers.programs import ProvisionError
from containers.table import HOST, TableError
from reframe_checks.mixins.tiers import TIERS
from site_configs.settings import load_site
from site_configs.site_file import SiteError

ROOT = Path(__file__).resolve().parent.parent
#: What of a manifest decides a campaign that is like it.
LIKE: dict[str, type | tuple[type, ...]] = {
    "campaign": str, "tier": str, "rounds": int, "order_seed": int, "images": dict,
    "checks": (str, type(None)), "name": (str, type(None)), "study": (str, type(None)),
    "time_limit": (str, type(None)), "raw_by_rank": (bool, type(None)),
}  # fmt: skip
#: What a campaign cannot be measured for; the texts are sentences.
ERRORS = (CampaignError, SiteError, images.ImageError, PrefixError, TableError, ProvisionError)


def arguments(words: list[str] | None = None) -> argparse.Namespace:
    """Return the parsed command line, or other words that are parsed like it."""
    parser = argparse.ArgumentParser(
        prog="python -m campaign",
        description="Measure every cell with every implementation, a number of rounds, in random "
        "order, one launch at a time; keep all in a folder of runs/ and report it.",
    )
    parser.add_argument("--site", default="local", help="a folder of site_configs/ (%(default)s)")
    parser.add_argument("--tier", default="quick", help="quick, paper or site (%(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="number of rounds (%(default)s)")
    parser.add_argument("--name", help="the campaign's name (the tier)")
    parser.add_argument("--images", default="", help="implementations, by comma (the site's)")
    parser.add_argument("--checks", help="only checks whose name matches this expression")
    parser.add_argument(
        "--study", metavar="PAPER",
        help="repeat a report of literature/: its checks and implementations, and its claims' page",
    )  # fmt: skip
    parser.add_argument("--time-limit", help="of a launch, such as 30m (each check's own)")
    parser.add_argument(
        "--raw-by-rank", action="store_true",
        help="keep what each rank took for every iteration of a communication",
    )  # fmt: skip
    parser.add_argument("--seed", type=int, help="seed of the rounds' order (drawn)")
    parser.add_argument(
        "--like", metavar="CAMPAIGN",
        help="repeat a campaign of runs/: its checks, images, tier, rounds and the seed of their "
        "order, in place of what these options say",
    )  # fmt: skip
    parser.add_argument("--resume", metavar="CAMPAIGN", help="go on with a campaign of runs/")
    parser.add_argument(
        "--host-mpi", metavar="PREFIX",
        help="bind the MPI that is installed there into the images, in place of their own",
    )  # fmt: skip
    parser.add_argument(
        "--estimate", action="store_true",
        help="say how long it will take by the last campaign like it, and measure nothing",
    )  # fmt: skip
    return parser.parse_args(words)


def chosen(options: argparse.Namespace) -> tuple[list[str], dict[str, Any]]:
    """Return the implementations to measure, and what of the manifest a bound MPI adds."""
    names = choice.implementations(ROOT, options.site, options.images)
    if not options.host_mpi:
        unbound = [name for name in names if name.endswith(f"+{HOST}")]
        if unbound:
            raise CampaignError(
                f"{unbound[0]} has an MPI of this machine bound in; say which: "
                "HOST_MPI=/opt/some-mpi"
            )
        return names, {}
    facts, names = host_mpi.bind(ROOT, options.host_mpi, names, options.site)
    return names, {"host_mpi": facts}


def alike(options: argparse.Namespace) -> dict[str, Any]:
    """Return what of a new campaign decides how long it takes."""
    choice.site_file(ROOT, options.site)
    return {
        "campaign": None,
        "site": options.site,
        "tier": options.tier,
        "checks": options.checks,
        "time_limit": options.time_limit,
        "images": chosen(options)[0],
        "inputs": provenance.input_digests(ROOT, options.site),
    }


def new_campaign(
    options: argparse.Namespace, facts: Mapping[str, Any] | None = None
) -> tuple[Path, dict[str, Any]]:
    """Make the folder and the manifest of a new campaign; `facts` are put into the manifest."""
    if options.rounds < 1:
        raise CampaignError(f"ROUNDS={options.rounds}: a campaign has at least one round")
    if options.tier not in TIERS:
        raise CampaignError(f"TIER={options.tier} is unknown; choose one of: {', '.join(TIERS)}")
    choice.site_file(ROOT, options.site)
    site = load_site(options.site)
    implementations, bound = chosen(options)
    name = str(options.name or options.study or options.tier)
    if not folder.PLAIN.fullmatch(name):
        raise CampaignError(
            f"NAME={name!r} cannot be part of a folder's name: use letters, digits, points, _ and "
            "-, and begin with a letter or digit"
        )
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    campaign = ROOT / "runs" / f"{stamp}-{options.site}-{name}"
    manifest = {
        "schema": folder.MANIFEST_SCHEMA,
        "campaign": campaign.name,
        "name": name,
        "site": options.site,
        "tier": options.tier,
        "created_utc": folder.utc_now(),
        "finished_utc": None,
        "rounds": options.rounds,
        "checks": options.checks,
        "study": options.study,
        **({"like": options.like} if options.like else {}),
        "time_limit": options.time_limit,
        "raw_by_rank": options.raw_by_rank,
        "order_seed": random.randrange(1, 10**6) if options.seed is None else options.seed,
        "images": provenance.describe_images(ROOT, implementations, site),
        **bound,
        "site_data": site,
        "inputs": provenance.input_digests(ROOT, options.site),
        "machine": provenance.machine(),
        "software": provenance.software(ROOT, site),
        "commands": [command_of(options)],
        "rounds_done": [],
        **(facts or {}),
    }
    try:
        campaign.mkdir(parents=True)
        (campaign / "launches").mkdir()
        folder.write_json(campaign / "manifest.json", manifest)
    except OSError as error:
        raise CampaignError(f"{campaign} cannot be written: {error.strerror}") from None
    return campaign, manifest


def command_of(options: argparse.Namespace) -> str:
    """Return the command that a person would type for this campaign."""
    if options.like:
        return f"python -m campaign --site {options.site} --like {options.like}"
    given = {"SITE": options.site, "TIER": options.tier, "ROUNDS": options.rounds}
    if options.host_mpi:
        given["HOST_MPI"] = options.host_mpi
    if options.raw_by_rank:
        given["RAW_BY_RANK"] = 1
    if options.checks and not options.study:
        given["CHECKS"] = options.checks
    if options.resume:
        given = {"RESUME": options.resume}
    elif options.study:
        given = {"PAPER": options.study, **given}
        if options.images:
            given["IMAGES"] = options.images
        return "make study " + " ".join(f"{key}={value}" for key, value in given.items())
    return "make run " + " ".join(f"{key}={value}" for key, value in given.items())


def read_manifest(name: str) -> dict[str, Any]:
    """Return the manifest of a campaign that is named by its folder."""
    campaign = ROOT / "runs" / Path(name).name
    try:
        manifest: dict[str, Any] = json.loads((campaign / "manifest.json").read_text())
    except (OSError, ValueError):
        raise CampaignError(
            f"{campaign} is no campaign: it has no readable manifest.json; see: ls runs"
        ) from None
    return manifest


def old_campaign(options: argparse.Namespace) -> tuple[Path, dict[str, Any]]:
    """Open a campaign to go on with; refuse if its images are no longer the same."""
    campaign = ROOT / "runs" / Path(options.resume).name
    manifest = read_manifest(options.resume)
    if not folder.belongs_to_us(campaign):
        raise CampaignError(f"{campaign.name} is another user's; measure a campaign of your own")
    if is_imported(campaign):
        raise CampaignError(
            f"{campaign.name} came in a bundle and is another machine's; repeat it with: "
            f"python -m campaign --like {campaign.name}"
        )
    if manifest["finished_utc"]:
        raise CampaignError(f"{campaign.name} is finished; there is nothing to go on with")
    if "host_mpi" in manifest:
        host_mpi.bind_again(ROOT, manifest["host_mpi"], list(manifest["images"]), options.site)
    site = load_site(manifest["site"])
    for name, now in provenance.describe_images(ROOT, list(manifest["images"]), site).items():
        if now["sha256"] != manifest["images"][name]["sha256"]:
            raise CampaignError(
                f"the image {name} is another than the one that {campaign.name} began with; "
                "measure a new campaign instead"
            )
    manifest["commands"].append(command_of(options))
    return campaign, manifest


def measure(campaign: Path, manifest: dict[str, Any]) -> bool:
    """Measure the rounds that are missing; return whether every check passed.

    Raises CampaignError where a round measures nothing or the campaign cannot be written.
    """
    try:
        return measure_rounds(campaign, manifest)
    except OSError as error:
        night = manifest.get("night")
        go_on = f"nightly RESUME={night.get('again_of') or campaign.name}" if night else (
            f"run RESUME={campaign.name}"
        )  # fmt: skip
        raise CampaignError(
            f"{error.filename or campaign} cannot be written: {error.strerror or error}; put that "
            f"right and go on with: make {go_on}"
        ) from None


def measure_rounds(campaign: Path, manifest: dict[str, Any]) -> bool:
    """Measure the rounds that are missing; return whether every check passed."""
    progress = Progress(manifest["rounds"])
    progress.say(f"campaign runs/{campaign.name}: {', '.join(manifest['images'])}")
    done = {entry["round"] for entry in manifest["rounds_done"]}
    left = manifest["rounds"] - len(done)
    progress.say(estimate.expectation(ROOT, manifest, left))
    for number in range(1, manifest["rounds"] + 1):
        if number in done:
            continue
        entry = run_round(ROOT, campaign, manifest, number, progress)
        manifest["rounds_done"].append(entry)
        folder.write_json(campaign / "manifest.json", manifest)
        left -= 1
        if left:
            others = estimate.duration(left * entry["wall_s"])
            took = estimate.duration(entry["wall_s"])
            progress.say(f"round {number} took {took}; the {left} left take about {others}")
    manifest["finished_utc"] = folder.utc_now()
    folder.write_json(campaign / "manifest.json", manifest)
    say_overhead(campaign, manifest, progress)
    for sentence in findings(campaign, manifest["site"]):
        progress.say(sentence)
    return all(entry["reframe_exit_code"] == 0 for entry in manifest["rounds_done"])


def say_overhead(campaign: Path, manifest: dict[str, Any], progress: Progress) -> None:
    """Print how much of the campaign's time the launches themselves took."""
    records = [
        json.loads(path.read_text()) for path in (campaign / "launches").glob("*/launch.json")
    ]
    of_launches = sum(record.get("wall_s") or 0.0 for record in records)
    of_rounds = sum(entry["wall_s"] for entry in manifest["rounds_done"])
    progress.say(
        f"{len(records)} launches took {of_launches:.0f} s, the rounds {of_rounds:.0f} s "
        f"(ratio {of_rounds / max(of_launches, 1e-9):.2f})"
    )


def report_commands(campaign: Path, study: str | None) -> list[list[str]]:
    """Return what `python -m analysis` is asked for after a campaign."""
    commands = [[command, str(campaign)] for command in ("ingest", "report", "table")]
    if study:
        commands.append(["study", study, str(campaign), "--page", "--no-tables"])
    return commands


def report(campaign: Path, study: str | None) -> bool:
    """Make the tables and the report, print the table; return whether that went well."""
    python = [sys.executable, "-m", "analysis"]
    codes = [
        subprocess.run([*python, *command], cwd=ROOT, check=False).returncode
        for command in report_commands(campaign, study)
    ]
    return not any(codes)


def as_study(options: argparse.Namespace) -> None:
    """Fill in what a study decides and the command line leaves open; refuse an unknown report."""
    if options.study:
        study = choice.study_of(ROOT, options.study)
        options.checks = options.checks or study.checks()
        options.images = options.images or ",".join(study.images())


def as_before(options: argparse.Namespace) -> None:
    """Fill in what decides a campaign from the manifest of the one that it is to be like."""
    if not options.like:
        return
    manifest = read_manifest(options.like)
    names = list(manifest.get("images") or ())
    marked = [name for name in names if f"+{HOST}-" in name]
    if marked and not options.host_mpi:
        raise CampaignError(
            f"{options.like} measured {marked[0]}, with an MPI of its machine bound in; say which "
            "one is to stand for it here: --host-mpi /opt/some-mpi"
        )
    # It may be of a bundle, and so anybody's.
    if wrong := wrong_key(manifest, LIKE):
        raise CampaignError(f"the manifest of {options.like} {wrong}")
    options.like = manifest["campaign"]
    options.tier, options.rounds = manifest["tier"], manifest["rounds"]
    options.seed, options.checks = manifest["order_seed"], manifest["checks"]
    options.study, options.time_limit = manifest.get("study"), manifest.get("time_limit")
    options.raw_by_rank = options.raw_by_rank or bool(manifest.get("raw_by_rank"))
    options.name = options.name or manifest.get("name")
    options.images = ",".join(
        f"{images.split_variant(name)[0]}+{HOST}" if name in marked else name for name in names
    )


def main() -> int:
    """Measure and report; return the exit code."""
    options = arguments()
    os.environ.setdefault("WYEAST_ROOT", str(ROOT))
    folder.only_owner_writes()
    return exit_code(
        "campaign", lambda: work(options), ERRORS, "go on with: make run RESUME=<the folder>"
    )


def work(options: argparse.Namespace) -> int:
    """Do what the command line says; return the exit code.

    Raises what ERRORS names, and OSError.
    """
    as_before(options)
    as_study(options)
    if options.resume:
        options.site = read_manifest(options.resume)["site"]
    with only_campaign(ROOT, options.site):
        if options.estimate:
            print(estimate.expectation(ROOT, alike(options), options.rounds))
            return 0
        campaign, manifest = (old_campaign if options.resume else new_campaign)(options)
        passed = measure(campaign, manifest)
        passed = report(campaign, manifest.get("study")) and passed
    if not passed:
        print(
            f"campaign: some checks failed; see {campaign / 'reframe'} and the report's list of "
            "what was left out",
            file=sys.stderr,
        )
    print(f"report: {campaign / 'report.html'}")
    if manifest.get("study"):
        print(f"study: {campaign / 'study.html'}")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
