"""`python -m costs.checkouts OTHER`: what measuring costs here, and by another checkout.

The same short checks are measured by campaigns of one round, in this checkout and in another one
(of an earlier version, say), alternately and with the same seed. What lies between two launches is
the platform's; what the programs measured must be the same. With `--turns` both measure at once, a
launch of one and then one of the other, and only what programs measured is compared, much more
closely. Each checkout has its own images, which must be built, and its campaigns are removed once
they are read.
"""

from __future__ import annotations

import argparse
import math
import os
import shlex
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from analysis.comparison.metrics import direction, margin_of
from analysis.comparison.verdict import Verdict, correct
from analysis.tables.units import within
from containers.ending import exit_code
from costs.turns import in_turns, not_measured
from inference.intervals import PRINTED_STEP, Interval, median_interval, paired_ratio
from records.base import CampaignError
from records.campaign import Campaign, read_campaign
from records.program_output import ProgramOutput
from records.su3 import Su3Result
from site_configs.installation_entries import is_installation

ROOT = Path(__file__).resolve().parent.parent
#: Short ones, of which a round has several.
CHECKS = "PointToPoint.*=Send/Recv|EchoTest"
IMAGES = "mpich-5.0.2,openmpi-5.0.11"
#: What a campaign is told of while another one measures, in any version; and how often one looks.
BUSY, BUSY_POLL_S = "two at once would", 5.0
#: What a checkout's own shell sets, and is not handed on to the other one's.
OWN = ("WYEAST_", "RFM_", "PYTHONPATH")
HEADER = "| time | here | there | here / there | 95% interval |\n|---|---|---|---|---|"
#: Of what programs measured: for a rate its ratio, for a time the inverse of its ratio.
SPEEDS = (
    "| cell | implementation | speed here / there | interval | result | median round |\n"
    "|---|---|---|---|---|---|"
)
#: How fast the machine is at the moment has no part in these: whoever takes a processor does.
SHARES = SPEEDS.replace("speed", "share of processors")

#: A cell with an implementation.
CheckoutKey = tuple[str, str]


@dataclass(frozen=True)
class CheckoutCourse:
    """A campaign of one round: what it took, in seconds, and the mean logarithms of its values.

    `shares` are the logarithms of the share of the measured time in which ranks had a processor, of
    programs that tell.
    """

    seconds: dict[str, float]
    measured: dict[CheckoutKey, float]
    shares: dict[CheckoutKey, float] = field(default_factory=dict)


def course_of(campaign: Campaign, whole_s: float) -> CheckoutCourse:
    """Return what a campaign took that was read; `whole_s` is the whole command's time.

    Raises CampaignError where a launch is not sound, or none says how long it took.
    """
    if bad := campaign.problems:
        raise CampaignError(f"{campaign.path.name}: {bad[0].where}: {bad[0].sentence}")
    records = sorted((one.record for one in campaign.launches), key=lambda one: one.started_s())
    spans = [(one.started_s(), one.started_s() + one.wall_s) for one in records if one.wall_s]
    if len(spans) < 2:
        raise CampaignError(f"{campaign.path.name} has no two launches that say what they took")
    between = [after[0] - before[1] for before, after in pairwise(spans)]
    round_s = sum(one.wall_s for one in campaign.manifest.rounds_done)
    in_launches = sum(end - start for start, end in spans)
    return CheckoutCourse(
        seconds={
            "between two launches, median (s)": statistics.median(between),
            "between two launches, mean (s)": statistics.fmean(between),
            "a round without its launches, of each (s)": (round_s - in_launches) / len(spans),
            "the whole command (s)": whole_s,
        },
        measured={(cell, name): value for (_, cell, name), value in values_of(campaign).items()},
        shares={
            (one.record.cell, one.record.implementation): share
            for one in campaign.sound()
            if (share := share_of(one.output)) is not None
        },
    )


def share_of(output: object) -> float | None:
    """Return the logarithm of the share of its measured time in which a program had processors."""
    if not isinstance(output, ProgramOutput):
        return None
    found = [
        math.log(statistics.fmean(one.cpu_by_rank_s) / one.wall_s)
        for one in output.results
        if isinstance(one, Su3Result)
    ]
    return statistics.fmean(found) if found else None


def values_of(campaign: Campaign) -> dict[tuple[int, *CheckoutKey], float]:
    """Return the mean logarithm of what each launch measured, by round, cell and implementation."""
    return {
        (one.record.round, one.record.cell, one.record.implementation): statistics.fmean(
            math.log(value) for sizes in one.values.series.values() for value in sizes.values()
        )
        for one in campaign.sound()
        if one.values.series
    }


def by_round(here: Campaign, there: Campaign) -> list[dict[CheckoutKey, float]]:
    """Return the logarithms of the ratios of speeds, here and there, of each round of both."""
    found: dict[int, dict[CheckoutKey, float]] = defaultdict(dict)
    ours, theirs = values_of(here), values_of(there)
    for key in sorted(ours.keys() & theirs.keys()):
        number, cell, implementation = key
        better = direction(cell.partition(" ")[0])
        found[number][cell, implementation] = better * (ours[key] - theirs[key])
    return list(found.values())


def measure_in_turns(
    checkouts: tuple[Path, Path], first: int, name: str, words: list[str]
) -> list[dict[CheckoutKey, float]]:
    """Measure a campaign of both at once, launch by launch in turns; return the ratios by round.

    `first` is whose turn is first. Raises CampaignError where one fails.
    """
    order = (checkouts[first], checkouts[1 - first])
    try:
        in_turns(order, words, own_environment())
        found = [folders(one, name) for one in checkouts]
        for one, paths in zip(checkouts, found, strict=True):
            if len(paths) != 1:
                raise CampaignError(f"{one}/runs has {len(paths)} campaigns of the name {name}")
        (here,), (there,) = found
        return by_round(read_campaign(here), read_campaign(there))
    finally:
        for one in checkouts:
            remove(one, name)


def own_environment() -> dict[str, str]:
    """Return the environment without what a checkout's own shell has set."""
    return {key: value for key, value in os.environ.items() if not key.startswith(OWN)}


def campaign_words(name: str, seed: int, rounds: int, checks: str, images: str) -> list[str]:
    """Return the words that measure a campaign in any checkout."""
    return ["python", "-m", "campaign", "--rounds", str(rounds), "--seed", str(seed),
            "--name", name, "--images", images, "--checks", checks]  # fmt: skip


def measure(checkout: Path, name: str, seed: int, checks: str, images: str) -> CheckoutCourse:
    """Measure a campaign of one round by a checkout, which waits for others to end; remove it.

    Raises CampaignError where that fails.
    """
    words = campaign_words(name, seed, 1, checks, images)
    try:
        while True:
            began = time.monotonic()
            done = subprocess.run(
                ["bash", "-c", f". ./activate && exec {shlex.join(words)}"],
                cwd=checkout, env=own_environment(), stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                check=False,
            )  # fmt: skip
            whole_s = time.monotonic() - began
            if done.returncode == 0:
                break
            if BUSY not in done.stdout:
                raise not_measured(checkout, done.stdout)
            time.sleep(BUSY_POLL_S)
        [path] = folders(checkout, name)
        return course_of(read_campaign(path), whole_s)
    finally:
        remove(checkout, name)


def folders(checkout: Path, name: str) -> list[Path]:
    """Return the folders of a checkout's campaigns of a name."""
    return list((checkout / "runs").glob(f"*-local-{name}"))


def remove(checkout: Path, name: str) -> None:
    """Remove a checkout's campaigns of a name."""
    for path in folders(checkout, name):
        # A campaign that was interrupted may still be ending.
        shutil.rmtree(path, ignore_errors=True)


def rows(pairs: list[tuple[CheckoutCourse, CheckoutCourse]]) -> Iterable[str]:
    """Yield a row of a Markdown table for each time; `pairs` are of here and there."""
    for name in pairs[0][0].seconds:
        here, there = ([one[side].seconds[name] for one in pairs] for side in (0, 1))
        logarithms = [math.log(one / other) for one, other in zip(here, there, strict=True)]
        ratio = paired_ratio(logarithms)
        yield (
            f"| {name} | {statistics.median(here):.3f} | {statistics.median(there):.3f} "
            f"| {ratio.value:.3f} | {within(ratio.interval)} |"
        )


@dataclass(frozen=True)
class Compared:
    """What pairs of one cell say: of their mean, and the interval of their median.

    A shared machine takes a launch in a dozen half as long again, here or there: the mean varies by
    these, and the median by what the others do. The median's interval is for it alone.
    """

    verdict: Verdict
    median: Interval


def compared(ratios: Iterable[dict[CheckoutKey, float]]) -> Iterable[tuple[CheckoutKey, Compared]]:
    """Yield for each cell and implementation whether both measured the same, as one family.

    `ratios` are those of each pair, as logarithms.
    """
    logarithms: dict[CheckoutKey, list[float]] = defaultdict(list)
    for one in ratios:
        for key, logarithm in one.items():
            logarithms[key].append(logarithm)
    found = {key: of_pairs(logarithms[key], margin(key)) for key in sorted(logarithms)}
    correct([one.verdict for one in found.values()])
    yield from found.items()


def of_all(ratios: Iterable[dict[CheckoutKey, float]]) -> Compared:
    """Return whether both measured the same on the mean of all cells, by the least margin of them.

    What a loop does to its launches it does to all of them, and their mean varies less than each.
    """
    found = [one for one in ratios if one]
    least = min((margin(key) for one in found for key in one), default=0.0)
    one = of_pairs([statistics.fmean(logarithms.values()) for logarithms in found], least)
    correct([one.verdict])
    return one


def speeds(pair: tuple[CheckoutCourse, CheckoutCourse]) -> dict[CheckoutKey, float]:
    """Return the logarithms of the ratios of speeds, here and there, of what both measured.

    Above 0 more was measured here of a rate, and less of a time.
    """
    here, there = (one.measured for one in pair)
    return {
        key: direction(key[0].partition(" ")[0]) * (here[key] - there[key])
        for key in here.keys() & there.keys()
    }


def shares(pair: tuple[CheckoutCourse, CheckoutCourse]) -> dict[CheckoutKey, float]:
    """Return the logarithms of the ratios of shares, here and there, of what both told."""
    here, there = (one.shares for one in pair)
    return {key: here[key] - there[key] for key in here.keys() & there.keys()}


def margin(key: CheckoutKey) -> float:
    """Return how far from 1 a ratio of speeds may be to be called equivalent."""
    return margin_of(key[0].partition(" ")[0])


def of_pairs(logarithms: list[float], margin: float) -> Compared:
    """Return what logarithms of ratios say, pair by pair, before others are counted in."""
    ratio = paired_ratio(logarithms, margin=margin, step=PRINTED_STEP)
    low_high = median_interval(logarithms)
    median = Interval(math.exp(low_high.low), math.exp(low_high.high), low_high.coverage)
    return Compared(Verdict("here", "there", ratio, margin), median)


def row(cell: str, implementation: str, one: Compared) -> str:
    """Return a row of a Markdown table for a cell with an implementation."""
    ratio = f"{one.verdict.ratio.value:.3f} | {within(one.verdict.interval)}"
    return f"| {cell} | {implementation} | {ratio} | {one.verdict.words} | {within(one.median)} |"


def main() -> int:
    """Measure alternately in both checkouts; print Markdown."""
    parser = argparse.ArgumentParser(prog="python -m costs.checkouts", description=__doc__)
    parser.add_argument("other", type=Path, help="the folder of another checkout")
    parser.add_argument(
        "--rounds", type=int, default=10, help="alternations, at least 2 (%(default)s)"
    )
    parser.add_argument("--checks", default=CHECKS, help="as CHECKS of a campaign (%(default)s)")
    parser.add_argument("--images", default=IMAGES, help="as IMAGES of a campaign (%(default)s)")
    parser.add_argument(
        "--turns", type=int, metavar="N",
        help="in each alternation N rounds of both at once, launch by launch in turns",
    )  # fmt: skip
    options = parser.parse_args()
    checkouts = (ROOT, options.other.resolve())
    if not (checkouts[1] / "activate").is_file():
        raise CampaignError(f"{options.other} is no checkout: it has no file `activate`")
    if options.turns is not None and options.turns < 1:
        raise CampaignError(f"--turns {options.turns}: give a number of rounds, at least 1")
    outside = [name for name in options.images.split(",") if is_installation(name.strip())]
    if options.turns and outside:
        raise CampaignError(
            f"--turns: launches of {outside[0]}, an installation, are started by no Apptainer, at "
            "which they would wait for their turns: measure images, or without --turns"
        )
    if options.turns and checkouts[0] == checkouts[1]:
        raise CampaignError("--turns: two campaigns at once need two checkouts: give another one")
    # Ended in another way than by a person, it removes its campaigns, too.
    for ending in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, signal.default_int_handler)
    pairs: list[tuple[CheckoutCourse, CheckoutCourse]] = []
    ratios: list[dict[CheckoutKey, float]] = []
    rounds = max(1 if options.turns else 2, options.rounds)
    try:
        for number in range(rounds):
            order = (0, 1) if number % 2 else (1, 0)
            name, what = f"cost-{os.getpid()}", (options.checks, options.images)
            if options.turns:
                words = campaign_words(name, number, options.turns, *what)
                ratios += measure_in_turns(checkouts, order[0], name, words)
            else:
                found = {side: measure(checkouts[side], name, number, *what) for side in order}
                pairs.append((found[0], found[1]))
            print(f"{number + 1} of {rounds}", file=sys.stderr, flush=True)
    except KeyboardInterrupt:
        # What was measured until then counts.
        if len(pairs) + len(ratios) < 2:
            raise
    if pairs:
        print("\n".join([HEADER, *rows(pairs)]))
        ratios = [speeds(one) for one in pairs]
    for header, of_each in ((SPEEDS, ratios), (SHARES, [shares(one) for one in pairs])):
        if not any(of_each):
            continue
        print(f"\n{header}")
        for (cell, implementation), one in compared(of_each):
            print(row(cell, implementation, one))
        print(row("the mean of all", "", of_all(of_each)))
    return 0


if __name__ == "__main__":
    sys.exit(exit_code("checkouts", main, (CampaignError,), "campaigns are removed"))
