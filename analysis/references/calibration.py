"""References proposed from finished campaigns of a site: values, thresholds, sources."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from analysis.comparison.metrics import better_of, margin_of
from analysis.comparison.oversubscription import without_waiting
from analysis.comparison.verdict import POWER
from inference.intervals import median
from inference.prediction import FEWEST_LAUNCHES, limits_of
from records.base import CampaignError
from records.campaign import Campaign, is_imported, measured_on, read_campaign
from records.digests import LaunchFiles
from records.experiments import proving
from records.files import json_of, read_json
from records.launch import LaunchRecord
from records.manifest import Manifest, read_manifest
from records.proof import proof_of
from records.references import METRICS_FILE, METRICS_SCHEMA, CellReference, MetricReference

#: A limit further from the value than this factor is useless and is not proposed.
FARTHEST = 10.0

Metrics = dict[str, tuple[float, str]]


@dataclass
class Proposal:
    """References, and sentences on metrics without one.

    `looked_at` counts the metrics that had launches enough, with those that scatter too much: what
    is proposed of few launches are those that happened to scatter little. `unproven` says of which
    campaigns it is not proven that nothing was lost or mixed.
    """

    references: list[CellReference] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    looked_at: int = 0
    unproven: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class CellLevels:
    """A sound launch of a campaign with what its check reported."""

    campaign: str
    manifest: Manifest
    record: LaunchRecord
    metrics: Metrics


def calibrating_campaigns(runs: Path, site: str) -> list[Path]:
    """Return the newest finished campaign of a site and those before it with the same images.

    They end where a shared image differs; campaigns of another tier, or with none
    of the images, are skipped. Raises CampaignError if the site has none.
    """
    found = []
    for path in runs.glob("*/manifest.json"):
        try:
            manifest = read_manifest(path.parent)
        except CampaignError:
            continue
        if is_imported(path.parent):
            continue
        if manifest.site == site and manifest.finished_utc:
            found.append((manifest.created_utc, path.parent, manifest))
    if not found:
        raise CampaignError(
            f"there is no finished campaign of site {site}; measure one: make run SITE={site} "
            "ROUNDS=10"
        )
    found.sort(key=lambda one: (one[0], one[1].name), reverse=True)
    newest, chosen = found[0][2], []
    for _, path, manifest in found:
        shared = newest.images.keys() & manifest.images.keys()
        if manifest.tier != newest.tier or not shared:
            continue
        if any(manifest.images[name].sha256 != newest.images[name].sha256 for name in shared):
            break
        chosen.append(path)
    return chosen


def reported(folder: Path) -> dict[tuple[int, str], Metrics]:
    """Return the content of a campaign's ReFrame reports, by round and the check's hash.

    For campaigns older than the launches' own metrics.json.
    """
    found: dict[tuple[int, str], Metrics] = {}
    for path in sorted((folder / "reframe").glob("round*.json")):
        try:
            number = int(path.stem.removeprefix("round"))
            for run in read_json(path)["runs"]:
                for case in run["testcases"]:
                    found[number, case["hashcode"]] = {
                        name.rpartition(":")[2]: (float(values[0]), str(values[4]))
                        for name, values in (case.get("perfvalues") or {}).items()
                    }
        except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
            raise CampaignError(f"{path} is not a ReFrame report: {error!r}") from None
    return found


def read_metrics(launch: LaunchFiles) -> Metrics | None:
    """Return what a launch's check reported, None if it left no file."""
    try:
        data = json_of(launch.read(METRICS_FILE).decode())
        if data["schema"] != METRICS_SCHEMA:
            raise ValueError(f"the schema is {data['schema']!r}")
        return {
            name: (float(one["value"]), str(one["unit"])) for name, one in data["metrics"].items()
        }
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        path = launch.where / METRICS_FILE
        raise CampaignError(f"{path} cannot be read: {error!r}") from None


def measured(campaign: Campaign) -> Iterator[CellLevels]:
    """Yield the sound launches of a campaign that count; raises CampaignError."""
    path = campaign.path
    manifest = measured_on(path, campaign.manifest)
    reports: dict[tuple[int, str], Metrics] | None = None
    # Where ranks wait for processors there is no answer and no reference.
    for launch in without_waiting(campaign):
        record = launch.record
        # What only says whether anything else may be measured is held to none either.
        if record.experiment in proving("image"):
            continue
        metrics = read_metrics(campaign.kept[record.launch])
        if metrics is None:
            if reports is None:
                reports = reported(path)
            metrics = reports.get((record.round, record.reframe.get("hash", "")), {})
        yield CellLevels(path.name, manifest, record, metrics)


def metric_reference(
    campaigns: list[list[float]], unit: str, least: float
) -> MetricReference | None:
    """Return the limits of a metric from each campaign's launches; None if they give none.

    `least` is the smallest threshold, as a fraction of the value. Raises ValueError below two
    launches.
    """
    values = [value for launches in campaigns for value in launches]
    logarithms = [[math.log(value) for value in launches] for launches in campaigns]
    limits = limits_of(logarithms)
    value = median(values)
    middle = limits.middle - math.log(value)
    if limits.half + abs(middle) > math.log(FARTHEST):
        return None
    below = min(math.exp(middle - limits.half), 1 / (1 + least))
    above = max(math.exp(middle + limits.half), 1 + least)
    kept = float(f"{value:.6g}")
    lower, upper, limit = (
        (round(below - 1, 4), None, above)
        if better_of(unit) == "higher"
        else (None, round(above - 1, 4), below)
    )
    # From the middle of what is expected to the limit, and on until most launches are beyond it.
    to_limit = middle - math.log(below) if better_of(unit) == "higher" else math.log(above) - middle
    beyond = limits_of(logarithms, 1 - POWER).half
    return MetricReference(
        reference=(kept, lower, upper, unit), better_beyond=float(f"{value * limit:.6g}"),
        launches=len(values), sees=round(math.expm1(to_limit + beyond), 4),
    )  # fmt: skip


def add_cell(proposal: Proposal, launches: list[CellLevels], fewest: int) -> None:
    """Add the references of one cell and implementation, or why its metrics have none.

    Raises CampaignError if its launches are not alike.
    """
    first = launches[0].record
    facts = ("image_sha256", "ranks", "nodes")
    for one in launches:
        for name in facts:
            if getattr(one.record, name) != getattr(first, name):
                raise CampaignError(
                    f"{first.cell}, {first.implementation}: {name} is not the same in "
                    f"{launches[0].campaign} and {one.campaign}; name campaigns measured alike: "
                    "make calibrate CAMPAIGNS=a,b"
                )
    models = {one.manifest.machine.get("cpu_model") for one in launches}
    if len(models) > 1:
        raise CampaignError(
            f"{first.cell}, {first.implementation}: the campaigns are of different processors "
            f"({', '.join(sorted(map(str, models)))}); name campaigns measured alike: make "
            "calibrate CAMPAIGNS=a,b"
        )
    found: dict[str, MetricReference] = {}
    units = {name: unit for one in launches for name, (_, unit) in one.metrics.items()}
    for name, unit in units.items():
        if better_of(unit) is None:
            continue
        by_campaign: dict[str, list[float]] = defaultdict(list)
        for one in launches:
            if one.metrics.get(name, (0.0, ""))[0] > 0:
                by_campaign[one.campaign].append(one.metrics[name][0])
        count = sum(map(len, by_campaign.values()))
        of = f"{first.cell}, {first.implementation}, {name}"
        if count < max(2, fewest):
            proposal.left_out.append(f"{of}: {count} of at least {max(2, fewest)} launches")
            continue
        proposal.looked_at += 1
        reference = metric_reference(list(by_campaign.values()), unit, margin_of(first.experiment))
        if reference is None:
            proposal.left_out.append(
                f"{of}: {count} launches of {len(by_campaign)} campaigns spread so much that the "
                f"limit would be a factor of {FARTHEST:g} away: measure more"
            )
        else:
            found[name] = reference
    if not found:
        return
    proposal.references.append(
        CellReference(
            tier=first.tier,
            experiment=first.experiment,
            cell=first.cell,
            implementation=first.implementation,
            image_sha256=first.image_sha256,
            ranks=first.ranks,
            nodes=first.nodes,
            cpu_model=models.pop(),
            measured_utc=max(str(one.manifest.finished_utc) for one in launches),
            campaigns=sorted({one.campaign for one in launches}),
            rounds=len({(one.campaign, one.record.round) for one in launches}),
            metrics=found,
        )
    )


def propose(campaigns: Iterable[Path], site: str, fewest: int = FEWEST_LAUNCHES) -> Proposal:
    """Return references from campaigns; raises CampaignError if they do not match."""
    proposal = Proposal()
    cells: dict[tuple[str, str, str], list[CellLevels]] = defaultdict(list)
    for path in campaigns:
        manifest = read_manifest(path)
        if manifest.site != site:
            raise CampaignError(f"{path.name} belongs to site {manifest.site}, not to {site}")
        if not manifest.finished_utc:
            raise CampaignError(
                f"{path.name} is not finished; resume it: make run RESUME={path.name}"
            )
        campaign = read_campaign(path)
        proof = proof_of(campaign)
        proposal.unproven += [proof.caveat] if proof.doubts else []
        for one in measured(campaign):
            record = one.record
            cells[record.tier, record.cell, record.implementation].append(one)
    for _, launches in sorted(cells.items()):
        add_cell(proposal, launches, fewest)
    return proposal
