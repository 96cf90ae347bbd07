"""What a campaign accepts; everything else is refused before anything is built or measured."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from campaign import choice
from campaign.patterns import refuse_pattern
from cluster import box
from cluster.description import SCHEDULERS, ClusterError
from containers import images, installations, installed, selection, table
from containers.table import HOST, load_table
from records import layout
from records.base import CampaignError
from records.causes import sentence_in
from records.environment import for_reframe
from reframe_checks.mixins.tiers import TIERS
from site_configs.installation_entries import is_installation
from site_configs.site_file import seconds_of

#: The default number of rounds where rounds are fixed.
ROUNDS = 3
MOST_ROUNDS = 999_999
#: The tier whose campaigns have a budget by default: the site's, or this one in seconds, with which
#: a bare machine has its report in 15 minutes, with set-up and two images. The other tiers
#: are as large as a report or a site, however long that takes.
BUDGET_TIER, BUDGET_S = "quick", 540.0
#: Of `make run`: 1 is the only value that they are given.
FLAGS = ("RAW_BY_RANK", "ALL_PAIRS")
FOUND = re.compile(r"^Found (\d+) check", re.MULTILINE)


def number_of_rounds(words: str) -> int:
    """Return a number of rounds; raise CampaignError for anything else."""
    if not re.fullmatch(r"[0-9]{1,6}", words) or not 1 <= int(words) <= MOST_ROUNDS:
        raise CampaignError(
            f"ROUNDS={words}: a campaign has 1 to {MOST_ROUNDS} rounds; give such a number"
        )
    return int(words)


def budget(words: str) -> float:
    """Return a time in seconds, given in s, m or h; raise CampaignError for anything else."""
    seconds = seconds_of(words)
    if seconds is None:
        raise CampaignError(
            f"BUDGET={words}: a budget is a time in seconds, minutes or hours, such as 900s, 15m "
            "or 2h"
        )
    return seconds


def with_design(root: Path, options: argparse.Namespace) -> None:
    """Give a request that names neither rounds nor a budget its default.

    A campaign of tier `quick` has the site's budget, or the usual one. A study, and what repeats or
    continues another campaign, has rounds, as the other tiers have. Raises CampaignError for an
    unknown site or tier.
    """
    refuse_tier(options.tier)
    is_new = not (options.study or options.like or options.resume)
    is_open = options.rounds is None and options.budget is None
    if is_new and is_open and options.tier == BUDGET_TIER:
        named = selection.site_data(root, options.site).get("budget")
        options.budget = budget(str(named)) if named else BUDGET_S
    options.rounds = options.rounds or (1 if options.budget else ROUNDS)


def numbers(words: str) -> list[int]:
    """Return numbers of ranks, each once; raise CampaignError for anything else."""
    if not re.fullmatch(r"[1-9][0-9]{0,6}(,[1-9][0-9]{0,6}){0,99}", words):
        raise CampaignError(
            f"{words!r} are no numbers of ranks: give some separated by commas, as in RANKS=2,4,8 "
            "RANKS_PER_NODE=1,2"
        )
    return [*dict.fromkeys(map(int, words.split(",")))]


def joined(numbers: Sequence[int] | None) -> str | None:
    """Return numbers as `numbers` reads them."""
    return ",".join(map(str, numbers)) if numbers else None


def refuse_ranks(options: argparse.Namespace) -> None:
    """Raise CampaignError where ranks are asked for that a campaign has already."""
    if 1 in (options.ranks or ()):
        raise CampaignError("RANKS=1: a single rank has no partner; give 2 or more")
    for name, value in (("RESUME", options.resume), ("--like", options.like),
                        ("STUDY", options.study)):  # fmt: skip
        if value and (options.ranks or options.ranks_per_node):
            raise CampaignError(
                f"RANKS and RANKS_PER_NODE cannot be given with {name}={value}, which has numbers "
                "of ranks of its own"
            )


def refuse_with_budget(options: argparse.Namespace) -> None:
    """Raise CampaignError if a campaign with its own rounds is given a budget as well."""
    if options.budget is None:
        return
    fixed = {
        "ROUNDS": options.rounds, "STUDY": options.study, "--like": options.like,
        "RESUME": options.resume,
    }  # fmt: skip
    for name, value in fixed.items():
        if value is not None:
            why = "it continues with its own budget" if name == "RESUME" else "its rounds are fixed"
            raise CampaignError(
                f"BUDGET cannot be given with {name}={value}: {why}; give one of them"
            )


def refuse_all_pairs(options: argparse.Namespace) -> None:
    """Raise CampaignError if a campaign that has begun is to be one of all pairs from now on."""
    if options.all_pairs and options.resume:
        raise CampaignError(
            f"ALL_PAIRS cannot be given with RESUME={options.resume}: what is compared is declared "
            "before anything is measured; a campaign of all pairs continues as one by itself"
        )


def refuse(root: Path, options: argparse.Namespace) -> None:
    """Raise CampaignError for a tier, a site or a pattern of checks that cannot be measured."""
    refuse_tier(options.tier)
    selection.site_file(root, options.site)
    refuse_pattern(options.checks)


def refuse_tier(tier: str) -> None:
    """Raise CampaignError for an unknown tier."""
    if tier not in TIERS:
        raise CampaignError(f"TIER={tier} is unknown; choose one of: {', '.join(TIERS)}")


def refuse_before_building(root: Path, options: argparse.Namespace) -> None:
    """Refuse what is known to be impossible before any image is built.

    Raises CampaignError, TableError or ImageError for an unknown image's name, and PrefixError
    where HOST_MPI is not the prefix of an MPI.
    """
    if selection.in_a_box(root, options.site):
        if layout.is_shared(root):
            raise CampaignError(
                f"site {options.site} is a cluster in a box, which measures in a checkout of one's "
                f"own, and {layout.HOME} is {layout.home(root)}: make one: git clone {root}"
            )
        try:
            _, cluster = box.running(box.state_folder(root))
        except ClusterError as error:
            raise CampaignError(f"SITE={options.site}: {error}") from None
        refuse_another_scheduler(root, options.site, cluster.get("scheduler", "slurm"))
    names = known(root, options.site, options.images)
    refuse_installations(root, options.site, names)
    refuse_unbound(names, options.host_mpi)
    # In the cluster in a box the nodes have other folders than this machine.
    if options.host_mpi and not selection.in_a_box(root, options.site):
        installed.find(options.host_mpi, load_table(root), ("mpiexec",))
    refuse_checks(root, options, names)


def refuse_another_scheduler(root: Path, site: str, found: str) -> None:
    """Raise CampaignError where the cluster in a box has another scheduler than a site of it."""
    wanted = "sge" if selection.site_data(root, site)["scheduler"] == "sge" else "slurm"
    if found != wanted:
        raise CampaignError(
            f"SITE={site}: the cluster that is up has {SCHEDULERS[found]}; stop it and start one "
            f"with {SCHEDULERS[wanted]}: make cluster-down && make cluster-up SCHEDULER={wanted}"
        )


def refuse_installations(root: Path, site: str, names: Sequence[str]) -> None:
    """Raise ImageError for an installation that the site does not have, or that is not there."""
    for name in filter(is_installation, names):
        # In the cluster in a box the nodes have other folders than this machine: its jobs say it.
        if not selection.in_a_box(root, site):
            installations.of_site(root, selection.site_data(root, site), name)


def refuse_unbound(names: Sequence[str], prefix: str | None) -> None:
    """Raise CampaignError if an image should have an MPI of this machine, but none is named."""
    unbound = [name for name in names if name.endswith(f"+{HOST}")]
    if unbound and not prefix:
        raise CampaignError(
            f"{unbound[0]} has an MPI of this machine bound in; say which: HOST_MPI=/opt/some-mpi"
        )


def refuse_checks(root: Path, options: argparse.Namespace, names: Sequence[str]) -> None:
    """Raise CampaignError if a pattern of checks matches none for these implementations."""
    if options.checks and not matching(root, options, names):
        raise CampaignError(
            f"CHECKS={shlex.quote(options.checks)} matches no check of {', '.join(names)} on site "
            f"{options.site}, tier {options.tier}; their names: "
            ". ./activate && reframe -c reframe_checks -l"
        )


def known(root: Path, site: str, words: str) -> list[str]:
    """Return the implementations that are meant.

    Raises CampaignError if the words name none, and TableError or ImageError for unknown images.
    """
    if words in ("all", "default"):
        return load_table(root).choose(words)
    names = [*dict.fromkeys(name.strip() for name in words.split(",") if name.strip())]
    if words and not names:
        raise CampaignError(
            f"IMAGES={shlex.quote(words)} names no implementation; containers/implementations.yaml "
            "has the names"
        )
    built = images.available(root)
    for name in names:
        if is_installation(name):
            continue
        implementation, variant = table.split_variant(name)
        # An MPI of this machine, which a campaign that has begun names in full.
        if variant == HOST or (variant or "").startswith(f"{HOST}-"):
            name = implementation
        if implementation in built:
            images.entry_of(root, name)
        else:
            load_table(root).resolve(name)
    return names or selection.wanted(root, site)


def matching(root: Path, options: argparse.Namespace, names: Sequence[str]) -> int:
    """Return how many checks a campaign's pattern matches, according to ReFrame; needs no image.

    Raises CampaignError if ReFrame cannot load the checks.
    """
    plain = [
        table.split_variant(name)[0] if f"+{HOST}" in name else name for name in names
    ]  # the MPI that is bound in is not looked at here
    environment = {
        **for_reframe(os.environ, {}, RFM_CONFIG_PATH=str(root / "site_configs"),
                      RFM_SYSTEM=options.site, RFM_COLORIZE="no"),
        "WYEAST_ROOT": str(root), "PYTHONPATH": str(root),
        "WYEAST_TIER": options.tier, "WYEAST_IMAGES": ",".join(plain),
        "WYEAST_RANKS": joined(options.ranks) or "",
        "WYEAST_RANKS_PER_NODE": joined(options.ranks_per_node) or "",
    }  # fmt: skip
    command: list[Any] = [root / "reframe_checks" / "bin" / "reframe", "-c",
                          root / "reframe_checks",
                          "-l", f"--name={options.checks}"]  # fmt: skip
    done = subprocess.run(
        command, cwd=root, env=environment, capture_output=True, text=True, check=False
    )
    found = FOUND.search(done.stdout)
    if done.returncode or not found:
        said = sentence_in(f"{done.stderr}\n{done.stdout}")
        raise CampaignError(f"ReFrame cannot list the checks: {said}")
    return int(found[1])


def command_line(words: list[str], given: dict[str, Any]) -> str:
    """Return a make command that can be pasted into a shell; what is empty is left out."""
    named = [f"{key}={shlex.quote(str(value))}" for key, value in given.items() if value]
    return " ".join([*words, *named])


def time_in_words(seconds: float) -> str:
    """Return a time as `budget` reads it, to the millisecond."""
    return f"{seconds:.3f}".rstrip("0").rstrip(".") + "s"


def command_of(options: argparse.Namespace) -> str:
    """Return the command that repeats this campaign, as a person would type it in a shell."""
    # Options that `make run` does not have.
    own = {"--name": options.name, "--time-limit": options.time_limit, "--seed": options.seed}
    given = {"SITE": options.site, "TIER": options.tier,
             "ROUNDS": None if options.budget else options.rounds,
             "BUDGET": options.budget and time_in_words(options.budget),
             "HOST_MPI": options.host_mpi, "RAW_BY_RANK": int(options.raw_by_rank) or None,
             "ALL_PAIRS": int(options.all_pairs) or None,
             "RANKS": joined(options.ranks), "RANKS_PER_NODE": joined(options.ranks_per_node),
             "CHECKS": options.checks, "IMAGES": options.images}  # fmt: skip
    if options.resume:
        return command_line(["make", "run"], {"SITE": options.site,
                                                      "RESUME": options.resume})  # fmt: skip
    if not options.like and not any(value is not None for value in own.values()):
        if not options.study:
            return command_line(["make", "run"], given)
        if options.checks == choice.study_of(choice.ROOT, options.study).checks():
            del given["CHECKS"]
        return command_line(["make", "study"], {"PAPER": options.study, **given})
    if options.like:
        own = {"--like": options.like}
    else:
        own |= {f"--{key.lower().replace('_', '-')}": given[key] for key in given
                if key not in FLAGS} | {"--study": options.study}  # fmt: skip
    words = {"--site": options.site, "--host-mpi": options.host_mpi, **own}
    command = [f"{name}={value}" for name, value in words.items() if value not in (None, "")]
    command += [f"--{key.lower().replace('_', '-')}" for key in FLAGS if given[key]]
    return shlex.join(["python", "-m", "campaign", *command])
