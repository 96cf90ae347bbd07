"""References follow from campaigns of a known spread, fail as rarely as they say, and are kept."""

import itertools
import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pytest
import yaml

from analysis.comparison.metrics import better_of, metrics
from analysis.references.calibration import calibrating_campaigns, metric_reference, propose
from analysis.simulation.coverage import false_failures
from inference.prediction import CHANCE, limits_of
from records import references
from records.base import CampaignError
from tests.analysis.support.in_process import analysis
from tests.analysis.support.synthetic import TWICE, Synthetic

PROJECT = Path(__file__).resolve().parents[3]
CELL = "PointToPoint pair=Send/Recv message_range=long"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a project with the site `local` and no campaign."""
    shutil.copytree(PROJECT / "site_configs/local", tmp_path / "site_configs/local")
    (tmp_path / "runs").mkdir()
    return tmp_path


def measure(root: Path, day: int, rounds: int = 4, **more: Any) -> Path:
    """Write a campaign of some day."""
    folder = root / "runs" / f"202601{day:02d}T000000Z-local-quick"
    return Synthetic(
        folder, TWICE, rounds=rounds, seed=day, pairs=["Send/Recv"],
        created_utc=f"2026-01-{day:02d}T00:00:00.000Z", **more,
    ).write()  # fmt: skip


def ask(root: Path, command: str, *options: str) -> tuple[int, str]:
    """Run a command on a project; return its exit code and all that it printed."""
    runs = ["--runs", str(root / "runs")] if command == "calibrate" else []
    done = analysis(
        command, "local", *options, *runs, "--sites", str(root / "site_configs")
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("campaigns", "launches"), [(1, 3), (1, 10), (3, 5), (5, 5), (6, 2)]
)  # fmt: skip
def test_a_launch_without_a_change_fails_as_rarely_as_stated(campaigns: int, launches: int) -> None:
    """The limit of a hundredth, which a short simulation can tell, and the one in effect."""
    trials = 50_000
    one_in_100, _ = false_failures("normal", campaigns, launches, 0.0, trials, chance=0.01)
    assert 0.007 < one_in_100 < 0.01 + 4 * math.sqrt(0.01 / trials)
    in_effect, _ = false_failures("normal", campaigns, launches, 0.0, trials)
    assert in_effect < CHANCE + 4 * math.sqrt(CHANCE / trials)


def test_days_that_differ_are_in_the_limit() -> None:
    """Half of the variance is between days: five campaigns hold the rate within four times."""
    assert false_failures("normal", 5, 5, 0.5, 100_000)[0] < 4 * CHANCE
    pooled = [[launch for day in days for launch in day] for days in [[[0.0, 0.1], [1.0, 1.1]]]]
    assert limits_of([[0.0, 0.1], [1.0, 1.1]]).half > 3 * limits_of(pooled).half


def test_limits_of_one_campaign_are_those_of_student() -> None:
    found = limits_of([[1.0, 2.0, 4.0]], chance=0.025)
    # t with 2 degrees of freedom, 4.303; the deviation is 1.5275.
    assert found.half == pytest.approx(4.3027 * 1.52753 * math.sqrt(4 / 3), rel=1e-4)
    assert found.middle == pytest.approx(7 / 3)
    with pytest.raises(ValueError, match="no spread"):
        limits_of([[1.0]])


def test_more_launches_make_it_narrow_and_few_make_it_wide() -> None:
    random = numpy.random.default_rng(5)
    halves = {
        count: numpy.median([
            limits_of([(0.01 * random.standard_normal(count)).tolist()]).half for _ in range(200)
        ])
        for count in (3, 6, 12, 40)
    }  # fmt: skip
    assert all(halves[a] > 1.3 * halves[b] for a, b in itertools.pairwise(halves))
    assert halves[3] > 0.5 and halves[40] < 0.05


def test_every_unit_of_a_metric_has_a_direction() -> None:
    assert {name: metric["better"] for name, metric in metrics().items()}["StartUp"] == "lower"
    assert all(metric["better"] in ("higher", "lower") for metric in metrics().values())
    assert better_of("FLOP/s") == "higher" and better_of("1") is None


def test_only_the_worse_direction_has_a_threshold() -> None:
    rate = metric_reference([[100.0, 101.0, 99.0, 100.0, 102.0]], "B/s", 0.02)
    time = metric_reference([[100.0, 101.0, 99.0, 100.0, 102.0]], "s", 0.02)
    assert rate and time
    assert rate.reference[0] == 100.0 and rate.reference[2] is None
    assert time.reference[1] is None and rate.reference[1] is not None
    assert rate.worst < 99 < 102 < rate.better_beyond and time.better_beyond < 99 < time.worst
    # A launch at the middle is beyond the limit when it is slower by that, and as much again as
    # most launches scatter.
    for one in (rate, time):
        to_limit = max(one.worst / one.reference[0], one.reference[0] / one.worst) - 1
        assert one.sees is not None and to_limit < one.sees < 1.5 * to_limit
    assert rate.better_by(rate.better_beyond * 1.01) and rate.better_by(101.0) is None
    assert time.better_by(50.0) == pytest.approx(1.0) and time.better_by(200.0) is None
    same = metric_reference([[5.0, 5.0, 5.0]], "s", 0.02)
    assert same and same.reference == (5.0, None, 0.02, "s"), "never narrower than the margin"
    assert metric_reference([[1.0, 9.0, 3.0]], "s", 0.02) is None, "a limit that tells nothing"


def test_proposal_is_of_each_implementation_and_says_where_from(root: Path) -> None:
    paths = [measure(root, 1, rounds=6), measure(root, 2, rounds=6)]
    proposal = propose(paths, "local")
    found = {one.key: one for one in proposal.references}
    assert len(found) == 2 * (3 + 2) and proposal.looked_at == 2 * (2 * 3 + 2)
    alpha = found["quick", CELL, "alpha-1.0"]
    assert alpha.campaigns == [path.name for path in paths] and alpha.rounds == 12
    assert alpha.image_sha256 == f"{1:064x}" and alpha.measured_utc == "2026-01-01T01:00:00.000Z"
    bandwidth, other = (
        found["quick", CELL, name].metrics["bandwidth"] for name in ("alpha-1.0", "beta-2.0")
    )
    assert bandwidth.reference[0] == pytest.approx(4e9, rel=0.03) and bandwidth.launches == 12
    assert other.reference[0] == pytest.approx(8e9, rel=0.03)


def test_fewer_launches_than_asked_for_give_none(root: Path) -> None:
    measure(root, 1, rounds=4)
    code, text = ask(root, "calibrate", "--rounds", "5")
    assert code == 1 and "4 of at least 5 launches" in text and "make run SITE=local" in text
    assert not (root / "site_configs/local" / references.PROPOSED).exists()


def test_default_campaigns_are_those_with_the_newest_images(root: Path) -> None:
    measure(root, 1, first_image=7)
    others = [measure(root, 2), measure(root, 3)]
    measure(root, 4, facts={"finished_utc": None})
    measure(root, 5, facts={"tier": "paper"})
    newest = measure(root, 6)
    assert calibrating_campaigns(root / "runs", "local") == [newest, *reversed(others)]
    with pytest.raises(CampaignError, match="no finished campaign of site virtual"):
        calibrating_campaigns(root / "runs", "virtual")


def test_campaigns_that_do_not_go_together_are_refused(root: Path) -> None:
    measure(root, 1)
    measure(root, 2, first_image=7)
    days = "20260101T000000Z-local-quick,20260102T000000Z-local-quick"
    code, text = ask(root, "calibrate", "--campaigns", days)
    assert code == 1 and "image_sha256 is not the same in" in text
    machine = {"cpu_model": "another"}
    measure(root, 3, facts={"machine": machine})
    code, text = ask(root, "calibrate", "--campaigns", days.replace("102T", "103T"))
    assert code == 1 and "of different processors" in text
    measure(root, 4, facts={"finished_utc": None})
    code, text = ask(root, "calibrate", "--campaigns", "20260104T000000Z-local-quick")
    assert code == 1 and "make run RESUME=" in text
    measure(root, 5, facts={"site": "virtual"})
    code, text = ask(root, "calibrate", "--campaigns", "20260105T000000Z-local-quick")
    assert code == 1 and "belongs to site virtual, not to local" in text


def test_proposed_shown_accepted_and_nothing_left(root: Path) -> None:
    site = root / "site_configs/local"
    by_hand = (site / "references.yaml").read_bytes()
    assert "nothing to accept" in ask(root, "accept-references")[1]
    measure(root, 1)
    code, text = ask(root, "calibrate")
    assert (
        code == 0
        and "one campaign: the thresholds do not include variation from day to day" in text
    )
    assert "Of 16 metrics examined, 16 have references" in text
    assert "fail one or more of them in 0.16% of rounds" in text
    assert "by hand 11.8 MB/s" in text and "make accept-references SITE=local" in text
    again = (site / references.PROPOSED).read_bytes()
    assert ask(root, "calibrate")[0] == 0 and (site / references.PROPOSED).read_bytes() == again
    assert ask(root, "accept-references", "--dry-run")[0] == 0
    assert not (site / references.ACCEPTED).exists()
    code, text = ask(root, "accept-references")
    assert code == 0 and "16 changes, 10 cells in all" in text
    assert not (site / references.PROPOSED).exists()
    accepted = (site / references.ACCEPTED).read_bytes()
    assert accepted == again and (site / "references.yaml").read_bytes() == by_hand
    code, text = ask(root, "accept-references")
    assert code == 0 and "nothing to accept" in text
    code, text = ask(root, "calibrate")
    assert code == 0 and "there is nothing to accept" in text
    assert not (site / references.PROPOSED).exists()
    assert (site / references.ACCEPTED).read_bytes() == accepted


def test_metric_that_gets_no_reference_again_is_shown_as_lost(root: Path) -> None:
    measure(root, 1)
    ask(root, "calibrate")
    ask(root, "accept-references")
    newer = measure(root, 2)
    for path in (newer / "launches").glob("*/metrics.json"):
        data = json.loads(path.read_text())
        data["metrics"].pop("latency", None)
        path.write_text(json.dumps(data))
    code, text = ask(root, "calibrate", "--campaigns", newer.name)
    assert code == 0
    lost = [line for line in text.splitlines() if "latency" in line]
    assert len(lost) == 6 and all(line.count("none") == 5 for line in lost)


def test_spread_of_days_widens_the_limits(root: Path) -> None:
    """Campaigns that differ by more than their launches do have limits beyond all of them."""
    days = [measure(root, day, rounds=3, noise_of_campaign=0.1) for day in range(1, 6)]
    found = {one.key: one for one in propose(days, "local").references}
    rate = found["quick", "Linpack grid=1x2 n=4000 nb=192", "alpha-1.0"].metrics["rate"]
    _, lower, upper, _ = rate.reference
    assert upper is None and lower is not None and lower < -0.2
    one_day = {one.key: one for one in propose(days[:1], "local", 3).references}
    narrow = one_day["quick", "Linpack grid=1x2 n=4000 nb=192", "alpha-1.0"].metrics
    assert rate.launches == 15 and narrow["rate"].launches == 3


def test_what_was_not_measured_again_stays(root: Path) -> None:
    folder = root / "site_configs/local"
    measure(root, 1)
    ask(root, "calibrate")
    ask(root, "accept-references")
    newer = measure(root, 2, first_image=7)
    for path in (newer / "launches").glob("*"):
        if "Linpack" in path.name or "beta" in path.name:
            shutil.rmtree(path)
    code, text = ask(root, "calibrate")
    assert code == 0 and "%" in text
    [source] = [line for line in text.splitlines() if line.startswith("source:")]
    assert source == (
        "source: alpha-1.0, tier quick, image 000000000000 (before: 000000000000): 4 rounds of "
        f"{newer.name}, until 2026-01-01"
    )
    assert source in ask(root, "accept-references", "--dry-run")[1]
    ask(root, "accept-references")
    digests = {one.key: one.image_sha256 for one in references.load(folder / references.ACCEPTED)}
    assert len(digests) == 10
    assert digests["quick", CELL, "alpha-1.0"] == f"{7:064x}"
    assert digests["quick", CELL, "beta-2.0"] == f"{2:064x}"
    assert digests["quick", "Linpack grid=1x2 n=4000 nb=192", "alpha-1.0"] == f"{1:064x}"


def test_older_campaigns_are_read_from_the_reports_of_reframe(root: Path) -> None:
    path = measure(root, 1)
    before = propose([path], "local")
    reports: dict[int, list[dict[str, object]]] = {}
    for number, file in enumerate(sorted((path / "launches").glob("*/launch.json"))):
        record = json.loads(file.read_text()) | {"reframe": {"name": "x", "hash": f"{number:x}"}}
        file.write_text(json.dumps(record))
        reported = json.loads((file.parent / "metrics.json").read_text())["metrics"]
        (file.parent / "metrics.json").unlink()
        reports.setdefault(record["round"], []).append({
            "hashcode": f"{number:x}",
            "perfvalues": {
                f"local:default:{name}": [one["value"], 0, None, None, one["unit"], "pass"]
                for name, one in reported.items()
            },
        })  # fmt: skip
    (path / "reframe").mkdir()
    for number, cases in reports.items():
        report = {"runs": [{"testcases": cases}]}
        (path / "reframe" / f"round{number:03d}.json").write_text(json.dumps(report))
    assert propose([path], "local") == before


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda text: text.replace("B/s", "B/s\n  x: ["), "is not YAML"),
        (lambda text: text.replace("launches:", "launched:"), "launches: Field required"),
        (lambda text: text.replace("site: local", "site: virtual"), "belongs to site virtual"),
        (lambda text: text.replace("null, B/s]", "0.1, B/s]"), "threshold on one side"),
        (lambda text: "- 1\n", "References"),
    ],
    ids=["not YAML", "unknown key", "copied", "both sides", "a list"],
)
def test_an_invalid_file_of_references_is_refused_with_a_sentence(
    root: Path, change: Callable[[str], str], sentence: str
) -> None:
    measure(root, 1)
    ask(root, "calibrate")
    path = root / "site_configs/local" / references.PROPOSED
    path.write_text(change(path.read_text()))
    code, text = ask(root, "accept-references")
    assert code == 1 and str(path) in text and sentence in text and "Traceback" not in text


def test_file_has_the_tuples_of_reframe(root: Path) -> None:
    measure(root, 1)
    ask(root, "calibrate")
    path = root / "site_configs/local" / references.PROPOSED
    [first, *_] = yaml.safe_load(path.read_text())["references"]
    value, lower, upper, unit = first["metrics"]["rate"]["reference"]
    assert value > 1e9 and -1 < lower < 0 and upper is None and unit == "FLOP/s"
