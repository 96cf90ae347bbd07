"""Nights in a row: none without a change alarms, a slowdown does, and a bad moment does not."""

import inspect
import json
import re
import shutil
import xml.etree.ElementTree as ElementTree
import zlib
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy
import pytest

from analysis.commands.history import regress
from analysis.comparison.verdict import POWER, SLOWDOWN
from analysis.history.campaign_rows import KEPT
from analysis.history.index import history_rows
from analysis.history.regressions import tested as found_in
from analysis.nights.judging import NightJudgement, nights_like
from analysis.nights.summary import cases
from analysis.references.missed import MetricWithReference, held_references, power_sentences
from campaign.nightly import Wanted, course
from campaign.reference_findings import findings
from inference.prediction import certain_slowdown
from records.campaign import read_campaign
from records.reframe_reports import LAST, keep_last
from tests import whole_records
from tests.analysis.history.test_regressions import row, started
from tests.analysis.support.in_process import analysis
from tests.analysis.support.synthetic import SIZES, Synthetic, Truth

ALPHA = "alpha-1.0"
NIGHTS = 30


def night(
    runs: Path, day: int, factor: float = 1.0, name: str = "nightly", rounds: int = 2,
    facts: dict[str, Any] | None = None, implementations: Sequence[str] = (ALPHA,),
    noise: float = 0.005,
) -> Path:  # fmt: skip
    """Write the campaign of a night; `factor` is how fast everything is."""
    created = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=day)
    return Synthetic(
        runs / f"{created:%Y%m%dT%H%M%SZ}-local-{name}",
        {one: Truth(1e-6 / factor, 4e9 * factor, 30e9 * factor) for one in implementations},
        rounds=rounds, noise=noise, seed=zlib.crc32(f"{day} {name}".encode()), pairs=["Send/Recv"],
        created_utc=created.isoformat().replace("+00:00", "Z"),
        facts={"name": name, "night": facts or {"broken": {}}},
    ).write()  # fmt: skip


def judged(runs: Path, path: Path, again: Sequence[Path] = (), *more: str) -> dict[str, Any]:
    """Have a night judged by the command; return what it wrote."""
    words = [word for one in again for word in ("--again", str(one))]
    done = analysis("night", str(path), "--runs", str(runs), *words, *more)
    told: dict[str, Any] = json.loads((path / "night.json").read_text())
    assert done.returncode == told["exit_code"], done.stderr
    return told


def one_night(runs: Path, day: int, *factors: float) -> tuple[Path, dict[str, Any], list[Wanted]]:
    """Run a night whose campaigns, one after the other, are as fast as the factors say."""
    asked: list[Wanted] = []

    def measure(wanted: Wanted) -> Path:
        asked.append(wanted)
        factor = factors[min(len(asked), len(factors)) - 1]
        return night(runs, day, factor, wanted.name, facts=wanted.facts)

    def judge(path: Path, again: Sequence[Path], decide: bool) -> dict[str, Any]:
        return judged(runs, path, again, *(["--decide"] if decide else []))

    path, told = course(measure, judge, Wanted("nightly", None, (ALPHA,), {"broken": {}}))
    return path, told, asked


@pytest.fixture(scope="module")
def month(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return thirty nights without a change, each of which must end without an alarm."""
    runs = tmp_path_factory.mktemp("month") / "runs"
    for day in range(NIGHTS):
        path, told, _ = one_night(runs, day, 1.0)
        fine = {("nothing", 0), ("noise", 0)}
        # Three or four earlier nights are too few to confirm a slowdown of 25%.
        fine = {("not judged", 7)} if day < 3 else {("blind", 7)} if day < 5 else fine
        assert (told["verdict"], told["exit_code"]) in fine, told
        assert bool(told["power"]) == (day >= 3)
        assert ("slowdown that would" in (path / "night.md").read_text()) == (day >= 3)
        assert (told["previous"] is None) == (day == 0)
        assert told["untold"] == (5 if day < 3 else 0)
        assert (path / KEPT).is_file()
    return runs


@pytest.fixture
def runs(month: Path, tmp_path: Path) -> Path:
    """Return a copy of the month, to add to."""
    return Path(shutil.copytree(month, tmp_path / "runs"))


def test_nights_of_a_site_whose_name_ends_alike_are_others(tmp_path: Path) -> None:
    for site in ("b-local", "local"):
        path = night(tmp_path, 0 if site == "b-local" else 1)
        manifest = json.loads((path / "manifest.json").read_text())
        folder = path.with_name(path.name.replace("-local-", f"-{site}-"))
        facts = {"site": site, "campaign": folder.name}
        (path / "manifest.json").write_text(json.dumps({**manifest, **facts}))
        path.rename(folder)
    frame = history_rows(tmp_path, lambda sentence: pytest.fail(sentence))
    assert set(frame["site"]) == {"b-local", "local"}
    for site, name, found in (
        ("local", "nightly", 1), ("b-local", "nightly", 1), ("b", "local-nightly", 0),
    ):  # fmt: skip
        of = nights_like(frame, whole_records.manifest(site=site, name=name))
        assert of["campaign"].n_unique() == found, (site, name)


def test_what_nights_before_judged_and_this_one_does_not_is_named(tmp_path: Path) -> None:
    """Its ranks, more than processors, waited for these in this night alone."""
    waits = {"rank": 0, "counted_s": 1.0, "waited_s": 0.01, "turns": 100}
    for day in range(7):
        path = night(tmp_path, day)
        for file in path.glob("launches/*Linpack_grid=1x2*/launch.json"):
            waiting = waits | ({"waited_s": 0.5} if day == 6 else {})
            facts = json.loads(file.read_text()) | {"oversubscribed": True, "waiting": waiting}
            file.write_text(json.dumps(facts))
    told = judged(tmp_path, path)
    assert (told["verdict"], told["exit_code"]) == ("incomplete", 4)
    [(name, said)] = told["unjudged"].items()
    assert "grid=1x2" in name and said.startswith("3 of the last 3 campaigns judged it; in this")
    assert "## No longer judged" in (path / "night.md").read_text()


def test_a_launch_missing_from_a_round_shows_in_the_exit_code(runs: Path) -> None:
    """Whatever became of it: that its round has ended says nothing."""
    path = night(runs, NIGHTS)
    lost = sorted((path / "launches").iterdir())[-1]
    shutil.rmtree(lost)
    told = judged(runs, path)
    assert (told["verdict"], told["exit_code"]) == ("incomplete", 4)
    assert "it is missing" in (path / "night.md").read_text()


def test_a_tenth_slower_is_confirmed(runs: Path) -> None:
    path, told, asked = one_night(runs, NIGHTS, 1 / 1.1)
    assert told["verdict"] == "regression" and told["exit_code"] == 3
    assert len(told["findings"]) == 5
    for one in told["findings"]:
        assert one["outcome"] == "regression" and len(one["ratios"]) == 3
        assert all(0.87 < ratio < 0.95 for ratio in one["ratios"])
    assert [wanted.name for wanted in asked] == ["nightly", "nightly-again1", "nightly-again2"]
    assert asked[1].facts == {"again_of": path.name, "number": 1}
    assert "Linpackgrid=1x1" in (asked[1].checks or "") and asked[1].images == (ALPHA,)
    summary = (path / "night.md").read_text()
    assert "## Confirmed regressions" in summary and "Linpack grid=1x1" in summary
    assert all(Path(runs, name).is_dir() for name in told["measured_again"])
    suite = ElementTree.parse(path / "night.xml").getroot()
    assert suite.get("failures") == "5" and suite.get("errors") == "0"


def test_a_bad_moment_is_noise_and_kept(runs: Path) -> None:
    path, told, asked = one_night(runs, NIGHTS, 1 / 1.3, 1.0, 1.0)
    assert told["verdict"] == "noise" and told["exit_code"] == 0 and len(asked) == 3
    assert {one["outcome"] for one in told["findings"]} == {"noise"}
    assert "## Tripped, and not confirmed" in (path / "night.md").read_text()
    suite = ElementTree.parse(path / "night.xml").getroot()
    assert suite.get("failures") == "0"
    # What was measured again is there, and in no history: it was chosen for being slow.
    rows = history_rows(runs, lambda sentence: pytest.fail(sentence))
    assert path.name in rows["folder"] and len(told["measured_again"]) == 2
    assert not set(told["measured_again"]) & set(rows["folder"])


def test_what_a_hypervisor_took_is_beside_the_verdict(runs: Path) -> None:
    before = night(runs, NIGHTS)
    told = judged(runs, before)
    assert told["stolen_time"] == {}
    tonight = night(runs, NIGHTS + 1, 1 / 1.1)
    for path in tonight.glob("launches/*/launch.json"):
        stolen = {"processors_s": {"busy": 4.0, "idle": 5.0, "stolen": 1.0}}
        path.write_text(json.dumps(json.loads(path.read_text()) | stolen))
    told = judged(runs, tonight, [before])
    assert "processors had work, a hypervisor took 20.0% in" in told["stolen_time"][tonight.name]
    assert list(told["stolen_time"]) == [tonight.name]
    summary = (tonight / "night.md").read_text()
    assert "## Time taken by other guests" in summary and "took 20.0%" in summary


def test_faster_is_no_alarm(runs: Path) -> None:
    _, told, asked = one_night(runs, NIGHTS, 1.3)
    assert told["verdict"] == "nothing" and len(asked) == 1


def test_what_cannot_be_measured_again_is_undecided(runs: Path) -> None:
    path = night(runs, NIGHTS, 1 / 1.3)
    assert judged(runs, path)["verdict"] == "measure again"
    one = night(runs, NIGHTS, 1 / 1.3, "nightly-again1", facts={"again_of": path.name})
    told = judged(runs, path, [one], "--decide")
    assert told["verdict"] == "incomplete" and told["exit_code"] == 4
    assert {found["outcome"] for found in told["findings"]} == {"undecided"}
    assert judged(runs, path, [], "--decide")["verdict"] == "incomplete"
    assert "could not be measured 2 times again" in (path / "night.md").read_text()


@pytest.mark.parametrize("other", [1, 2])
def test_what_was_measured_again_at_other_sizes_confirms_nothing(
    runs: Path, other: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are other series, so the median of three would be the night's own number."""
    path = night(runs, NIGHTS, 1 / 1.3)
    judged(runs, path)
    again = []
    for number in (1, 2):
        if number > 2 - other:
            monkeypatch.setitem(SIZES, "long", [200000])
        facts = {"again_of": path.name}
        again.append(night(runs, NIGHTS, 1 / 1.3, f"nightly-again{number}", facts=facts))
    told = judged(runs, path, again)
    [found] = [one for one in told["findings"] if "message_range=long" in one["cell"]]
    assert found["outcome"] == "undecided" and len(found["ratios"]) == 3 - other
    assert "2 times again at the same message sizes" in found["words"]
    rest = [one for one in told["findings"] if one != found]
    assert len(rest) == 4 and {one["outcome"] for one in rest} == {"regression"}


def test_what_people_measure_by_day_is_not_a_nights_history(runs: Path) -> None:
    night(runs, NIGHTS, 1 / 1.5, "quick")
    _, told, _ = one_night(runs, NIGHTS + 1, 1.0)
    assert told["verdict"] in ("nothing", "noise") and "nightly" in told["previous"]


@pytest.mark.parametrize(("launch", "verdict"), [("mpiexec", "measure again"), ("srun", "nothing")])
def test_a_start_up_is_not_held_against_another_launcher(
    tmp_path: Path, launch: str, verdict: str
) -> None:
    for day in range(5):
        path = started(tmp_path, day, launch if day == 4 else "mpiexec", 3.0 if day == 4 else 1.0)
        manifest = json.loads((path / "manifest.json").read_text())
        facts = {"name": "nightly", "night": {"broken": {}}}
        (path / "manifest.json").write_text(json.dumps(manifest | facts))
    done = analysis("night", str(path), "--runs", str(tmp_path))
    told = json.loads((path / "night.json").read_text())
    assert told["verdict"] == verdict and told["untold"] == (launch == "srun")
    assert ("not compared: launch of a start-up" in done.stderr) == (launch == "srun")


def test_a_broken_implementation_is_said_and_the_other_judged(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    both = (ALPHA, "beta-2.0")
    night(runs, 0, implementations=both)
    facts = {"broken": {"gamma-3.0": "gamma-3.0 is not in containers/images.lock"}}
    path = night(runs, 1, implementations=both, facts=facts)
    for record in (path / "launches").glob("*beta-2.0/launch.json"):
        said = {"outcome": "failed", "sentence": "its ranks form no world"}
        record.write_text(json.dumps(json.loads(record.read_text()) | said))
    told = judged(runs, path)
    assert told["verdict"] == "incomplete" and told["exit_code"] == 4
    assert told["broken"] == facts["broken"] | {"beta-2.0": "its ranks form no world"}
    assert told["failed"] == {} and told["untold"] == 5
    summary = (path / "night.md").read_text()
    assert "## Broken implementations" in summary and "its ranks form no world" in summary


def test_a_night_is_not_fine_where_it_is_blind(tmp_path: Path) -> None:
    """Nights that scatter by a third would not have confirmed a slowdown of a quarter."""
    runs = tmp_path / "runs"
    for day in range(6):
        path = night(runs, day, noise=0.3)
        told = judged(runs, path)
    assert (told["verdict"], told["exit_code"]) == ("blind", 7) and not told["findings"]
    said = (path / "night.md").read_text()
    assert "most comparisons would not have confirmed a slowdown of 25%" in said
    # What they would have confirmed is said beside it.
    assert any("smallest slowdown that would have been seen" in one for one in told["power"])
    asked = inspect.signature(regress).parameters["slowdown"].default
    assert asked == SLOWDOWN, "regress asks for the same"


def test_summary_says_what_changed_since_the_night_before(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    night(runs, 0, rounds=6)
    path = night(runs, 1, 1 / 1.2, rounds=6)
    manifest = json.loads((path / "manifest.json").read_text())
    manifest["images"][ALPHA]["sha256"] = "f" * 64
    manifest["machine"]["kernel"] = "another"
    (path / "manifest.json").write_text(json.dumps(manifest))
    for record in (path / "launches").glob("*/launch.json"):
        record.write_text(json.dumps(json.loads(record.read_text()) | {"image_sha256": "f" * 64}))
    judged(runs, path)
    summary = (path / "night.md").read_text()
    assert "5 of 5 cells and implementations with a conclusive comparison differ" in summary
    assert "worse by " in summary and "sha256 000000000000 became ffffffffffff" in summary
    assert "- kernel: none and another" in summary


def with_reference(path: Path, *values: float) -> None:
    """Leave what ReFrame writes of a reference that asks for 90% of 100 at least."""
    (path / "reframe").mkdir()
    for value in values:
        entry = [value, 100.0, -0.1, None, "B/s", "pass" if value >= 90 else "fail"]
        name = "PointToPoint pair=Send/Recv message_range=long"
        case = {"display_name": name, "perfvalues": {"local:default:bandwidth": entry}}
        report = {"runs": [{"testcases": [case, {"display_name": "other", "perfvalues": None}]}]}
        (path / "reframe" / LAST).write_text(json.dumps(report))
        keep_last(path)
    (path / "reframe" / "round009.json").write_text("{")


@pytest.mark.parametrize(
    ("again", "verdict"), [((80.0, 85.0), "regression"), ((95.0, 80.0), "noise")]
)
def test_missed_references_are_decided_by_the_median_of_three(
    tmp_path: Path, again: tuple[float, ...], verdict: str
) -> None:
    runs = tmp_path / "runs"
    path = night(runs, 0)
    # The median of the night, 91, does not miss it; one of its rounds does.
    with_reference(path, 92.0, 89.0 if verdict == "noise" else 70.0)
    told = judged(runs, path)
    assert told["verdict"] == "measure again" and len(told["findings"]) == 1
    others = []
    for number, value in enumerate(again, 1):
        others.append(night(runs, 0, 1.0, f"nightly-again{number}", facts={"again_of": path.name}))
        with_reference(others[-1], value)
    told = judged(runs, path, others)
    [found] = told["findings"]
    assert told["verdict"] == verdict and found["against"] == "reference"
    assert "missed in 1 of 2 rounds" in found["words"]


def test_the_worse_side_of_a_reference() -> None:
    rate = MetricWithReference("check", "bandwidth", "B/s", 100.0, 90.0, 120.0)
    time = MetricWithReference("check", "latency", "s", 1.0, 0.8, 1.1)
    assert rate.is_worse(80) and not rate.is_worse(130) and rate.ratio(50) == 0.5
    assert time.is_worse(1.2) and not time.is_worse(0.5) and time.ratio(2) == 0.5
    assert held_references(Path("nowhere")) == {}


def held(*values: float, low: float | None = 90.0) -> MetricWithReference:
    """Return a rate with a floor, and its rounds."""
    return MetricWithReference("check", "bandwidth", "B/s", 100.0, low, None, list(values))


def test_a_reference_says_which_slowdown_it_would_have_shown() -> None:
    near, far, once = held(100, 101, 99, 100), held(9000, 9100, 8900), held(100)
    # From the median round to the limit it is 11%, and rounds scatter by 1%.
    assert near.smallest == pytest.approx(0.12, abs=0.01) and not near.is_blind
    # In seconds it is the same: a limit a tenth above.
    time = MetricWithReference("check", "latency", "s", 1.0, None, 10 / 9, [1, 1.01, 0.99, 1])
    assert time.smallest == pytest.approx(near.smallest, abs=0.005)
    assert far.is_blind and far.smallest == pytest.approx(99, rel=0.02)
    assert once.is_blind and once.smallest is None and held(1, 2, low=None).is_blind
    seen, blind = power_sentences([near, far, once])
    assert re.search(
        r"with a probability of 80%: 12(\.\d)?% at best, a factor of 10\d in the median", seen
    )
    assert "2 of 3 metrics" in blind and "measured once" in blind and "25%" in blind
    assert power_sentences([]) == [] and len(power_sentences([near])) == 1


def test_a_campaign_ends_with_the_power_of_its_references(tmp_path: Path) -> None:
    with_reference(tmp_path, 9000.0, 9100.0)
    seen, blind = findings(tmp_path, (), "local")
    assert "would have missed its reference with a probability of 80%: a factor of 1" in seen
    assert blind.startswith("1 of 1 metrics with a reference would not have shown a slowdown of 25")


def test_the_promised_share_of_slower_launches_misses_a_reference() -> None:
    random = numpy.random.default_rng(3)
    missed = []
    for _ in range(4000):
        seen = random.normal(0.3, 0.1, 4).tolist()
        slowdown = certain_slowdown(seen, POWER)
        assert slowdown is not None
        missed.append(random.normal(0.3, 0.1) - slowdown < 0)
    # Two standard errors of a share of 80% in 4000.
    assert numpy.mean(missed) == pytest.approx(POWER, abs=0.013)


def test_references_that_show_nothing_make_no_night_fine() -> None:
    """Where nothing is compared with earlier nights, as of checks that compare nothing."""
    near, far = held(100, 101, 99, 100), held(9000, 9100, 8900)
    told = [NightJudgement([], [], {}, {}, of).verdict for of in ([near, near, far], [far], [])]
    assert told == ["nothing", "blind", "not judged"]
    told = [one.tag for one in cases(NightJudgement([], [], {}, {}, [near, far, held(80, 100)]))]
    assert told == ["system-out", "skipped"], "what is missed is a finding"


def test_history_survives_the_removal_of_raw_output(runs: Path) -> None:
    before = history_rows(runs, lambda sentence: None)
    name = before["folder"][0]
    shutil.rmtree(runs / name / "launches")
    manifest = json.loads((runs / name / "manifest.json").read_text())
    manifest["raw_removed_utc"] = "2026-03-01T00:00:00.000Z"
    (runs / name / "manifest.json").write_text(json.dumps(manifest))
    assert history_rows(runs, lambda sentence: pytest.fail(sentence)).equals(before)
    [problem] = read_campaign(runs / name).problems
    assert "retention of nights" in problem.sentence
    # By other metrics the kept numbers would mean something else.
    import polars

    frame = polars.read_parquet(runs / name / KEPT)
    frame.with_columns(stamp=polars.lit("0 another")).write_parquet(runs / name / KEPT)
    said: list[str] = []
    rows = history_rows(runs, said.append, rebuild=True)
    assert name not in rows["folder"] and "use metrics other than today's" in said[0]


def test_what_is_no_regression_of_a_night_is_none_in_its_cases() -> None:
    """What is below 5% but not below the level of nights is no failure, and no regression."""
    middling = row("cell", -0.05, noise=0.017)
    sure = row("other", -0.3, noise=0.001)
    little, much = cases(NightJudgement([], [middling, sure], {}, {}))
    assert [one.outcome for one in found_in([middling, sure], None)] == 2 * ["regression"]
    assert "none shown" in little.words
    assert "; regression;" not in much.words and "not confirmed: it did not trip" in much.words
