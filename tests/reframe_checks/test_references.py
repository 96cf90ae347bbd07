"""Calibrated references fail a check in the worse direction, and are said in the better one."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from campaign import provenance
from campaign.reference_findings import findings
from containers import images
from records import references
from records.kept import kept_launches
from records.references import METRICS_FILE, CellReference, MetricReference
from tests.reframe_checks.conftest import IMPLEMENTATION, Outcome, StandIn, pingpong

PROJECT = Path(__file__).resolve().parents[2]
CELL = "PointToPoint pair=Send/Recv message_range=short"
#: Of a stand-in's usual output: two messages of 4,800 bytes in 10 µs.
BANDWIDTH, LATENCY = 9.6e8, 5e-6


@pytest.fixture
def site(stand_in: StandIn) -> Path:
    """Return a copy of the site's folder, which a test may write to."""
    folder = stand_in.root / "site_configs"
    folder.unlink()
    shutil.copytree(PROJECT / "site_configs/local", folder / "local")
    (folder / "local" / references.ACCEPTED).unlink(missing_ok=True)
    return folder / "local"


def accept(stand_in: StandIn, site: Path, **changed: Any) -> None:
    """Write references that the usual output meets."""
    metrics = {
        "bandwidth": MetricReference(
            reference=(BANDWIDTH, -0.1, None, "B/s"), better_beyond=1.1 * BANDWIDTH, launches=9
        ),
        "latency": MetricReference(
            reference=(LATENCY, None, 0.1, "s"), better_beyond=LATENCY / 1.1, launches=9
        ),
    }
    facts: dict[str, Any] = {
        "tier": "quick", "experiment": "PointToPoint", "cell": CELL,
        "implementation": IMPLEMENTATION, "ranks": 2, "nodes": 1,
        "image_sha256": images.entry_of(stand_in.root, IMPLEMENTATION)["sha256"],
        "cpu_model": provenance.machine()["cpu_model"], "rounds": 9,
        "measured_utc": "2026-01-01T00:00:00Z", "campaigns": ["one"], "metrics": metrics,
    }  # fmt: skip
    references.write(site / references.ACCEPTED, [CellReference(**facts | changed)])


def kept(stand_in: StandIn) -> dict[str, Any]:
    """Return what the launch's check left of its metrics."""
    launches = kept_launches(stand_in.root / "runs/campaign")
    [one] = [one for one in launches if METRICS_FILE in one.names()]
    found: dict[str, Any] = json.loads(one.read(METRICS_FILE))
    return found


def said(stand_in: StandIn) -> str:
    """Return what the campaign's end says."""
    campaign = stand_in.root / "runs/campaign"
    return " | ".join(findings(campaign, kept_launches(campaign), "local"))


def run(stand_in: StandIn, seconds: float) -> Outcome:
    stand_in.write(pingpong(seconds=seconds))
    return stand_in.run()


def test_as_expected_passes_without_a_word(stand_in: StandIn, site: Path) -> None:
    accept(stand_in, site)
    outcome = run(stand_in, 1e-5)
    assert outcome.code == 0 and "WARNING" not in outcome.text, outcome.text
    bandwidth = kept(stand_in)["metrics"]["bandwidth"]
    assert bandwidth["value"] == pytest.approx(BANDWIDTH) and bandwidth["unit"] == "B/s"
    assert bandwidth["by"] == "calibration" and bandwidth["finding"] is None
    assert said(stand_in) == ""


def test_worse_fails(stand_in: StandIn, site: Path) -> None:
    accept(stand_in, site)
    outcome = run(stand_in, 1.2e-5)
    assert outcome.code != 0 and "Failing phase: performance" in outcome.text
    assert "failed to meet reference" in outcome.text and "latency=" in outcome.text
    [launch] = outcome.launches
    assert launch["outcome"] == "sound", "slow is a finding, not a fault of the launch"
    assert kept(stand_in)["metrics"]["bandwidth"]["finding"].startswith("worse")
    assert f"worse than the reference: {CELL}, {IMPLEMENTATION}, bandwidth (1 launch)" in said(
        stand_in
    )


def test_better_is_said_and_passes(stand_in: StandIn, site: Path) -> None:
    accept(stand_in, site)
    outcome = run(stand_in, 0.8e-5)
    assert outcome.code == 0, outcome.text
    assert "bandwidth is better than the reference by 25.0%" in outcome.text
    assert "make calibrate SITE=local" in outcome.text
    assert "latency is better than the reference by 25.0%" in outcome.text
    assert "better than the reference: " in said(stand_in)


def test_stale_is_said_and_judges_nothing(stand_in: StandIn, site: Path) -> None:
    accept(stand_in, site, image_sha256="0" * 64)
    outcome = run(stand_in, 2e-5)
    assert outcome.code == 0, outcome.text
    sentence = "measured with another image (000000000000, now "
    assert "stale references are not applied" in outcome.text and sentence in outcome.text
    found = kept(stand_in)
    assert sentence in found["stale"] and found["metrics"]["bandwidth"]["by"] == "hand"
    assert "stale references were not applied in 1 launch of" in said(stand_in)


def test_what_makes_a_reference_stale(stand_in: StandIn, site: Path) -> None:
    accept(stand_in, site)
    [found] = references.load(site / references.ACCEPTED)
    here = references.Here(found.image_sha256, 2, 1, found.cpu_model)
    assert found.stale(here) is None
    for name, now, sentence in (
        ("image_sha256", "1" * 64, "another image ("),
        ("ranks", 4, "another number of ranks (2, now 4) until 2026-01-01"),
        ("nodes", 2, "another number of nodes (1, now 2)"),
        ("cpu_model", "Pentium III", "now Pentium III)"),
    ):
        changed: dict[str, Any] = {name: now}
        assert sentence in str(found.stale(here._replace(**changed)))


def test_under_a_stale_one_the_handwritten_one_judges(stand_in: StandIn, site: Path) -> None:
    accept(stand_in, site, image_sha256="0" * 64)
    outcome = run(stand_in, 1e-2)
    assert outcome.code != 0 and "Failing phase: performance" in outcome.text


def test_calibration_is_enough_for_a_site_without_handwritten_ones(
    stand_in: StandIn, site: Path
) -> None:
    (site / "references.yaml").unlink()
    accept(stand_in, site, image_sha256="0" * 64)
    outcome = run(stand_in, 1e-5)
    assert outcome.code == 0 and "are not applied" in outcome.text, outcome.text
    assert kept(stand_in)["metrics"]["bandwidth"]["by"] is None


def test_other_cells_and_tiers_keep_the_handwritten_one(stand_in: StandIn, site: Path) -> None:
    accept(stand_in, site, tier="paper")
    outcome = run(stand_in, 2e-5)
    assert outcome.code == 0 and "WARNING" not in outcome.text
    assert kept(stand_in)["metrics"]["latency"]["reference"][0] == 0.0001087


def test_an_invalid_file_of_references_fails_the_check(stand_in: StandIn, site: Path) -> None:
    (site / references.ACCEPTED).write_text("schema: other\n")
    outcome = run(stand_in, 1e-5)
    assert outcome.code != 0 and references.ACCEPTED in outcome.reason()
    assert "make calibrate SITE=local" in outcome.text
