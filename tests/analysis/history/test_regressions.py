"""A regression sets the exit code where it is shown and large, and nothing else does."""

import json
import math
import shutil
import xml.etree.ElementTree as ElementTree
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy
import pytest
import scipy

from analysis.comparison.caveats import comparability
from analysis.comparison.caveats.comparability import rules
from analysis.comparison.verdict import Verdict
from analysis.history import limits, regressions
from analysis.history.lost_cells import lost_cells
from analysis.history.regressions import outcome, smallest_slowdown, write_junit
from analysis.history.regressions import tested as found_in
from analysis.history.two_campaigns import ComparedCell
from inference.intervals import Ratio, independent_ratio
from records import schedule
from records.budget import BEYOND
from records.campaign import read_campaign
from records.events import NotStarted, PlannedLaunch
from records.manifest import read_manifest
from tests.analysis.history.test_history import campaign
from tests.analysis.support.in_process import analysis
from tests.analysis.support.synthetic import Synthetic, Truth
from tests.reframe_checks.conftest import header, lines


def row(name: str, shift: float, noise: float = 0.001) -> ComparedCell:
    base = [0.0, noise, -noise, 2 * noise, -2 * noise]
    of = [value + shift for value in base]
    verdict = Verdict("mpi", "old", independent_ratio(of, base, margin=0.02), 0.02)
    return ComparedCell(name, "Linpack", verdict)


def test_both_size_and_significance_are_needed() -> None:
    found = found_in(
        [row("same", 0), row("worse", -0.1), row("better", 0.1), row("little", -0.01),
         row("noisy", -0.1, noise=0.1)], None,
    )  # fmt: skip
    outcomes = {one.row.cell: one.outcome for one in found}
    assert outcomes == {"same": "none shown", "worse": "regression", "better": "none shown",
                        "little": "none shown", "noisy": "none shown"}  # fmt: skip
    assert found_in([row("little", -0.01)], 0.005)[0].outcome == "regression"
    assert found_in([row("worse", -0.1)], 0.2)[0].outcome == "none shown"


def test_family_is_corrected() -> None:
    def middling(name: str) -> ComparedCell:
        return row(name, -0.05, noise=0.017)

    assert found_in([middling("alone")], None)[0].outcome == "regression"
    many = found_in([middling("one"), *(row(f"other {n}", 0, 0.02) for n in range(30))], None)
    assert many[0].outcome == "none shown"


def test_junit_is_xml_whatever_a_cell_is_called(tmp_path: Path) -> None:
    name = 'cell "<&>" \x1b[31m\x00 µ'
    write_junit(tmp_path / "junit.xml", name, found_in([row(name, -0.1)], None))
    suite = ElementTree.parse(tmp_path / "junit.xml").getroot()
    assert suite[0].get("name") == 'cell "<&>"  \N{REPLACEMENT CHARACTER} µ'


def test_one_launch_cannot_tell() -> None:
    verdict = Verdict("mpi", "old", independent_ratio([0.0], [0.0], margin=0.02), 0.02)
    assert outcome(verdict, 0.02, 0.05, verdict.ratio.p_worse) == "inconclusive"
    assert found_in([ComparedCell("alone", "Linpack", verdict)], None)[0].outcome == "inconclusive"


def test_a_regression_is_one_sided() -> None:
    """What is worse is held against the whole level; what is better is none, however sure."""
    [worse] = found_in([row("worse", -0.0245, noise=0.0119)], None)
    both = worse.row.verdict.ratio.p_value
    assert both is not None and 0.05 < both < 0.1
    assert worse.outcome == "regression" and worse.p_value == pytest.approx(both / 2)
    [better] = found_in([row("better", 0.5)], None)
    assert better.outcome == "none shown" and better.p_value == pytest.approx(1.0)


@pytest.mark.parametrize("noise", [0.002, 0.05])
def test_the_smallest_slowdown_is_seen_at_least_as_often_as_said(noise: float) -> None:
    """Of a true spread as likely as the one seen makes it: at least 80% of it are shown."""
    found = found_in([row("one", 0, noise), *(row(f"{n}", 0, noise) for n in range(9))], None)
    smallest, ratio = found[0].smallest, found[0].row.verdict.ratio
    assert smallest is not None and smallest > 0.02 and ratio.freedom and ratio.error
    random = numpy.random.default_rng(3)
    true = ratio.error * numpy.sqrt(ratio.freedom / random.chisquare(ratio.freedom, 20000))
    errors = true * numpy.sqrt(random.chisquare(ratio.freedom, 20000) / ratio.freedom)
    means = -math.log1p(smallest) + true * random.standard_normal(20000)
    p_values = scipy.stats.t.cdf(means / errors, ratio.freedom)
    shown = (p_values < 0.05 / 10) & (means < -math.log1p(0.02))
    # Where errors are small the margin is what a slowdown must pass, and the statement is safe.
    assert shown.mean() > 0.78 and (shown.mean() < 0.9 or noise < 0.01)


def test_launches_that_agree_see_what_is_beyond_the_margin() -> None:
    base = [0.0] * 5
    verdict = Verdict("mpi", "old", independent_ratio(base, base, margin=0.02), 0.02)
    [one] = found_in([ComparedCell("alike", "Linpack", verdict)], None, needed=0.1)
    assert one.outcome == "none shown" and one.smallest == pytest.approx(0.02, abs=1e-3)


def test_what_rounding_may_hide_is_not_said_to_be_seen() -> None:
    """A true slowdown as large as said is shown whatever values are rounded to."""
    step, offsets = 0.015, numpy.linspace(0, 1, 29)
    agree = independent_ratio([0.0] * 8, [0.0] * 8, margin=0.02, step=step)
    vary = independent_ratio(
        list(numpy.linspace(-0.02, 0.02, 8)), list(numpy.linspace(-0.02, 0.02, 8)), margin=0.02,
        step=step,
    )  # fmt: skip
    fine = independent_ratio(
        list(numpy.linspace(-0.02, 0.02, 8)), list(numpy.linspace(-0.02, 0.02, 8)), margin=0.02
    )
    smallest = smallest_slowdown(agree, 0.02, 0.05)
    assert smallest is not None and smallest > 0.02 + step
    for offset in offsets:
        base = round(float(offset)) * step
        new = round(float(offset) - math.log1p(smallest) / step) * step
        shown = independent_ratio([new] * 8, [base] * 8, margin=0.02, step=step)
        assert shown.p_value is not None and shown.p_value < 0.05
        assert shown.value < 1 / 1.02
    seen = [smallest_slowdown(one, 0.02, 0.05) for one in (vary, fine)]
    assert seen[0] and seen[1] and seen[0] > seen[1] + 0.9 * step


def test_a_gate_is_not_green_where_it_is_blind() -> None:
    rows = [row("sure", 0, 0.001), row("noisy", 0, 0.2)]
    sure, noisy = found_in(rows, None, needed=0.1)
    assert sure.outcome == "none shown" and sure.smallest is not None and sure.smallest < 0.1
    assert noisy.outcome == "could not be seen" and "slowdown of 10%" in noisy.sentence
    assert noisy.smallest is None or noisy.smallest > 0.1
    assert found_in(rows, None)[1].outcome == "none shown"


def test_what_a_row_could_have_shown_is_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float | None] = []

    def counted(ratio: Ratio, margin: float, level: float) -> float | None:
        asked.append(smallest_slowdown(ratio, margin, level))
        return asked[-1]

    monkeypatch.setattr(regressions, "smallest_slowdown", counted)
    told = found_in([row("sure", 0, 0.001), row("noisy", 0, 0.2)], None, needed=0.1)
    assert told[1].outcome == "could not be seen"
    assert regressions.power_sentences(told, 0.1)
    assert [one.smallest for one in told] == asked


@pytest.mark.parametrize("history", [True, False])
def test_oversubscribed_cells_are_not_judged(runs: Path, history: bool) -> None:
    """Where ranks wait for processors, that is no regression, and no blindness either."""
    new = campaign(runs, 7, 0.5, rounds=4)
    for path in runs.glob("*/launches/*PointToPoint*/launch.json"):
        path.write_text(json.dumps(json.loads(path.read_text()) | {"oversubscribed": True}))
    old = min(runs.glob("*000000Z-local-nightly"))
    done = analysis("regress", str(new), "--against", "history" if history else str(old),
                    "--runs", str(runs))  # fmt: skip
    assert done.returncode == 3 and done.stdout.count("regression: Linpack") == 2
    assert "regression: PointToPoint" not in done.stdout
    assert "2 conclusive comparisons" in done.stdout and "inconclusive in" not in done.stdout


def with_more_ranks(path: Path, waited_s: float) -> None:
    """Give a launch more ranks than processors, and a rank that waited."""
    waiting = {"rank": 0, "counted_s": 1.0, "waited_s": waited_s, "turns": 100}
    path.write_text(
        json.dumps(json.loads(path.read_text()) | {"oversubscribed": True, "waiting": waiting})
    )


@pytest.mark.parametrize("history", [True, False])
def test_what_was_judged_and_waits_now_is_said(runs: Path, history: bool) -> None:
    """The gate is not green, and says why."""
    new = campaign(runs, 7, 1.0, rounds=4)
    for path in runs.glob("*/launches/*PointToPoint*/launch.json"):
        with_more_ranks(path, 0.5 if new in path.parents else 1e-7)
    old = min(runs.glob("*000000Z-local-nightly"))
    junit = runs.parent / "junit.xml"
    done = analysis("regress", str(new), "--against", "history" if history else str(old),
                    "--runs", str(runs), "--junit", str(junit))  # fmt: skip
    assert done.returncode == 5, done.stdout + done.stderr
    before = "3 of the last 3 campaigns" if history else old.name
    assert f"not judged: alpha-1.0, 3 cells: {before} judged it; in this one ranks waited" in (
        done.stderr
    )
    assert "3 no longer judged" in done.stdout and "not measured:" not in done.stderr
    assert "not judged: " in junit.read_text()


def test_a_night_in_which_ranks_waited_is_no_other_series(runs: Path) -> None:
    """What disturbed one night leaves the next with all the others to be compared with."""
    for path in runs.glob("*/launches/*PointToPoint*/launch.json"):
        with_more_ranks(path, 0.5 if path.parents[2].name.startswith("20260103") else 1e-7)
    new = campaign(runs, 7, 0.5, rounds=4)
    for path in new.glob("launches/*PointToPoint*/launch.json"):
        with_more_ranks(path, 1e-7)
    done = analysis("regress", str(new), "--against", "history", "--runs", str(runs))
    assert done.returncode == 3, done.stdout + done.stderr
    assert done.stdout.count("regression: PointToPoint") == 3
    assert done.stdout.count("5 earlier campaigns; regression") == 3


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    for day in range(6):
        campaign(tmp_path / "runs", day, 1.0, rounds=4)
    return tmp_path / "runs"


@pytest.mark.parametrize(("factor", "code"), [(1.0, 0), (1.2, 0), (0.8, 3)])
@pytest.mark.parametrize("history", [True, False])
def test_exit_codes(runs: Path, factor: float, code: int, history: bool) -> None:
    old = min(runs.glob("*000000Z-local-nightly"))
    new = campaign(runs, 7, factor, rounds=4)
    junit = runs.parent / "junit.xml"
    done = analysis("regress", str(new), "--against", "history" if history else str(old),
                    "--runs", str(runs), "--margin", "0.05", "--junit", str(junit))  # fmt: skip
    assert done.returncode == code, done.stdout + done.stderr
    bad = 5 if code else 0
    assert done.stdout.count("regression: ") == bad
    assert f"{bad} regressions in 5 conclusive comparisons of cells" in done.stdout
    suite = ElementTree.parse(junit).getroot()
    assert suite.attrib["tests"] == "5" and suite.attrib["failures"] == str(bad)
    assert len(suite.findall("testcase/failure")) == bad
    assert all("95% interval" in str(e.get("message")) for e in suite.iter("failure"))


def test_a_gate_is_not_green_where_most_is_inconclusive(runs: Path) -> None:
    """Ping-pongs by a clock that earlier campaigns had not are shown by none of these."""
    new = campaign(runs, 7, 1.0, rounds=4)
    for path in new.glob("launches/*PointToPoint*/stdout"):
        path.write_text(path.read_text().replace("MPI_Wtime", "CLOCK_MONOTONIC"))
    done = analysis("regress", str(new), "--against", "history", "--runs", str(runs))
    assert done.returncode == 5, done.stdout + done.stderr
    assert "inconclusive in 3 of 5 comparisons, such as PointToPoint" in done.stdout
    assert "0 earlier campaigns with CLOCK_MONOTONIC; 6 with MPI_Wtime" in done.stdout


def test_lower_is_better_where_the_metric_says_so(tmp_path: Path) -> None:
    """Linpack's rate and a time change to the same side of 1: above is always better."""
    fast, slow = (
        Synthetic(tmp_path / name, {"alpha-1.0": Truth(1e-6, 4e9, rate)}, rounds=4, noise=0.005,
                  seed=seed, pairs=["Send/Recv"]).write()
        for name, rate, seed in (("fast", 30e9, 1), ("slow", 20e9, 2))
    )  # fmt: skip
    worse = analysis("regress", str(slow), "--against", str(fast))
    assert "smallest slowdown that would have been seen with a probability of 80%" in worse.stdout
    assert worse.returncode == 3 and worse.stdout.count("regression: Linpack") == 2
    assert analysis("regress", str(fast), "--against", str(slow)).returncode == 0


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--against", "history"], "1 earlier campaigns"),
        (["--against", "no-such"], "no-such is not a campaign"),
        (["--against", "history", "--margin", "-1"], "--margin must be"),
    ],
)
def test_an_undecidable_question_is_an_error(
    tmp_path: Path, arguments: list[str], sentence: str
) -> None:
    runs = tmp_path / "runs"
    campaign(runs, 1, 1.0)
    new = campaign(runs, 2, 1.0)
    done = analysis("regress", str(new), "--runs", str(runs), *arguments)
    assert done.returncode == 1 and sentence in done.stderr
    said = [line for line in done.stderr.splitlines() if "unproven" not in line]
    assert len(said) == 1


def without(folder: Path, fits: str, fail: bool = False) -> None:
    """Take away a campaign's launches of some name, or have them failed."""
    launches = list((folder / "launches").glob(fits))
    assert launches
    for launch in launches:
        if fail:
            file = launch / "launch.json"
            said = {"outcome": "failed", "sentence": "it hung"}
            file.write_text(json.dumps(json.loads(file.read_text()) | said))
        else:
            shutil.rmtree(launch)


@pytest.mark.parametrize("history", [True, False])
@pytest.mark.parametrize("fail", [True, False])
def test_what_was_measured_before_and_is_not_now_is_an_error(
    runs: Path, history: bool, fail: bool
) -> None:
    old = next(runs.glob("*06T000000Z-local-nightly"))
    new = campaign(runs, 7, 1.0, rounds=4)
    without(new, "*range=short*", fail)
    junit = runs.parent / "junit.xml"
    done = analysis("regress", str(new), "--against", "history" if history else str(old),
                    "--runs", str(runs), "--junit", str(junit))  # fmt: skip
    assert done.returncode == 1, done.stdout + done.stderr
    assert "not measured: alpha-1.0, PointToPoint pair=Send/Recv message_range=short" in done.stderr
    assert ("failed: it hung" in done.stderr) == fail
    assert "1 not measured" in done.stdout
    suite = ElementTree.parse(junit).getroot()
    assert suite.attrib["errors"] == "1" and suite.attrib["tests"] == "5"
    [case] = [case for case in suite if case.find("error") is not None]
    assert case.get("name") == "PointToPoint pair=Send/Recv message_range=short"


@pytest.mark.parametrize("left_out", [True, False])
def test_what_nobody_has_tried_is_not_lost(runs: Path, left_out: bool) -> None:
    """Of a campaign that was stopped, or whose budget had no room for a cell."""
    new = campaign(runs, 7, 1.0, rounds=4)
    without(new, "*range=short*")
    cell = "PointToPoint pair=Send/Recv message_range=short"
    name = "round001_PointToPoint_pair=Send_Recv_message_range=short_alpha-1.0"
    schedule.begin(new, is_converted=True)
    with schedule.held(new) as held:
        held.plan(1, [PlannedLaunch(launch=name, cell=cell, implementation="alpha-1.0")])
        if left_out:
            held.add(NotStarted(launch=name, why="skipped", cause=BEYOND))
    junit = runs.parent / "junit.xml"
    done = analysis("regress", str(new), "--against", "history", "--runs", str(runs),
                    "--junit", str(junit))  # fmt: skip
    assert done.returncode == 5, done.stdout + done.stderr
    said = "its budget had no room for it" if left_out else "it is still to be measured"
    assert f"not measured: alpha-1.0, {cell}: " in done.stderr and said in done.stderr
    suite = ElementTree.parse(junit).getroot()
    assert suite.attrib["errors"] == "0"
    [case] = [case for case in suite if case.get("name") == cell]
    assert case.find("skipped") is not None


def test_no_room_for_an_implementation_hides_no_failure_of_another(runs: Path) -> None:
    old, new = next(runs.glob("*06T000000Z-local-nightly")), campaign(runs, 7, 1.0, rounds=4)
    without(new, "*range=short*", fail=True)
    cell = "PointToPoint pair=Send/Recv message_range=short"
    after = read_campaign(new)
    after.no_room = [cell]
    had = [(cell, cell, "PointToPoint", name) for name in ("alpha-1.0", "beta-2.0")]
    after.manifest = after.manifest.changed(
        images={name: after.manifest.images["alpha-1.0"] for name in ("alpha-1.0", "beta-2.0")}
    )
    alpha, beta = lost_cells(had, set(), read_manifest(old), after)
    assert alpha.kind == "lost" and "failed: it hung" in alpha.sentence
    assert beta.kind == "no room" and "no room for it" in beta.sentence


@pytest.mark.parametrize("history", [True, False])
@pytest.mark.parametrize(
    "other", [{"checks": "Linpack"}, {"tier": "paper"}, {"images": {}}], ids=lambda one: str(*one)
)
def test_what_was_not_asked_for_is_not_lost(
    runs: Path, other: dict[str, Any], history: bool
) -> None:
    """Alpha is not lost by a campaign of beta, nor messages by one of Linpack."""
    old = next(runs.glob("*06T000000Z-local-nightly"))
    new = campaign(runs, 7, 1.0, rounds=4)
    without(new, "*PointToPoint*")
    manifest = json.loads((new / "manifest.json").read_text())
    (new / "manifest.json").write_text(json.dumps(manifest | other))
    done = analysis("regress", str(new), "--against", "history" if history else str(old),
                    "--runs", str(runs))  # fmt: skip
    assert "not measured" not in done.stderr
    if "checks" in other:
        assert done.returncode == 0 and "0 not measured" in done.stdout
        told = f"whether 3 cells of {old.name}" in done.stderr
        assert told != history


def started(runs: Path, day: int, launch: str, seconds: float, cores: int = 2) -> Path:
    """Write a campaign of a day that starts up by a launcher in some time."""
    path = campaign(runs, day, 1.0, rounds=4)
    writer = Synthetic(path, {"alpha-1.0": Truth(1e-6, 4e9, 30e9)})
    began = datetime(2026, 1, 1, tzinfo=UTC).timestamp()
    for number in range(1, 5):
        last = seconds * (1 + 0.001 * number + 0.002 * (day % 3))
        result = {
            "record": "result", "operation": "startup", "clock": "CLOCK_REALTIME", "ranks": 2,
            "main_s": 2 * [began + last / 4], "initialised_s": 2 * [began + last / 2],
            "last_integer_s": began + last,
        }  # fmt: skip
        text = lines(header("startup", 2), result, {"record": "end", "results": 1})
        writer.launch(number, "alpha-1.0", "StartUp", {"ranks": 2, "cache": "cold"}, text)
    manifest = json.loads((path / "manifest.json").read_text())
    manifest["site_data"] = {"launch": launch}
    manifest["machine"]["cores"] = cores
    (path / "manifest.json").write_text(json.dumps(manifest))
    return path


def test_what_forbids_and_what_bears_on_a_history_is_said(tmp_path: Path) -> None:
    """srun after mpiexec starts something else; other processors are a caveat of all."""
    runs, junit = tmp_path / "runs", tmp_path / "junit.xml"
    for day in range(5):
        started(runs, day, "mpiexec", 1.0)

    def regress(path: Path) -> tuple[int, str, list[str]]:
        done = analysis("regress", str(path), "--against", "history", "--runs", str(runs),
                        "--junit", str(junit))  # fmt: skip
        said = [line for line in done.stderr.splitlines() if "unproven" not in line]
        return done.returncode, done.stdout, said

    same = started(runs, 5, "mpiexec", 1.0)
    code, out, said = regress(same)
    assert code == 0 and said == [] and "6 conclusive comparisons of cells" in out
    slower = started(runs, 6, "mpiexec", 3.0)
    assert regress(slower)[0] == 3
    shutil.rmtree(slower)
    # The second one of a new launcher is not held against the old ones either.
    for day in (7, 8):
        other = started(runs, day, "srun", 3.0, cores=4)
        code, out, said = regress(other)
        assert code == (0 if day == 7 else 5), out
        assert "0 regressions in 5 conclusive comparisons of cells" in out, out
        assert ("inconclusive in 1 of 6 comparisons, such as StartUp" in out) == (day == 8)
        assert ("1 not compared" in out) == (day == 7)
        assert ("0 earlier" not in out) and out.count("regression: ") == 0
        # The one before it has four, too, and those before that are in the series.
        caveat = f"caveat: since {same.name} processors: 2 and 4: "
        assert sum(one.startswith(caveat) and one.endswith("(5 cells)") for one in said) == 1
        refused = [one for one in said if one.startswith("not compared: ")]
        assert len(refused) == (day == 7)
        if day == 7:
            assert refused[0].startswith("not compared: launch of a start-up: mpiexec and srun")
            assert "StartUp" in refused[0]
            suite = ElementTree.parse(junit).getroot()
            skipped = [case.get("name") for case in suite if case.find("skipped") is not None]
            assert skipped == ["StartUp ranks=2 cache=cold"]
    # Back again, what was measured with the old launcher counts.
    code, out, said = regress(started(runs, 9, "mpiexec", 3.0))
    assert code == 3 and "regression: StartUp" in out


@pytest.mark.parametrize("history", [True, False])
def test_an_image_with_other_pages_is_not_held_against_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, history: bool
) -> None:
    """As of NAS and su3; here of Linpack. The other implementation's rows go on."""
    linpack = [
        one.model_copy(update={"experiments": ["Linpack"]})
        if one.name == "pages of large arrays" else one
        for one in rules()
    ]  # fmt: skip
    for module in (comparability, limits):
        monkeypatch.setattr(module, "rules", lambda: linpack)
    runs = tmp_path / "runs"
    for day in range(5):
        created = f"2026-01-{day + 1:02}T00:00:00Z"
        two = {name: Truth(1e-6, 4e9, 30e9) for name in ("alpha-1.0", "beta-2.0")}
        new = Synthetic(
            runs / f"2026010{day + 1}T000000Z-local-nightly", two, rounds=4, noise=0.01, seed=day,
            pairs=["Send/Recv"], created_utc=created,
        ).write()  # fmt: skip
    manifest = json.loads((new / "manifest.json").read_text())
    manifest["images"]["alpha-1.0"]["labels"]["org.wyeast.pages"] = "huge"
    (new / "manifest.json").write_text(json.dumps(manifest))
    against = "history" if history else str(next(runs.glob("20260101*")))
    done = analysis("regress", str(new), "--against", against, "--runs", str(runs))
    of = " of alpha-1.0" if history else ""
    assert done.stderr.count(f"not compared: pages of large arrays{of}: usual and huge") == 1
    assert "(2 cells)" in done.stderr and "2 not compared" in done.stdout
    assert "in 8 conclusive comparisons of cells" in done.stdout, done.stdout


def test_nothing_but_what_is_refused_is_an_error(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    for day in range(4):
        new = started(runs, day, "srun" if day == 3 else "mpiexec", 1.0)
        without(new, "*PointToPoint*")
        without(new, "*Linpack*")
    done = analysis("regress", str(new), "--against", "history", "--runs", str(runs))
    assert done.returncode == 1 and "not compared: launch of a start-up" in done.stderr
    assert "is compared with its history" in done.stderr


def test_a_cell_that_is_gone_for_three_campaigns_was_given_up(runs: Path) -> None:
    for day in range(7, 11):
        new = campaign(runs, day, 1.0, rounds=4)
        without(new, "*range=short*")
        done = analysis("regress", str(new), "--against", "history", "--runs", str(runs))
        assert done.returncode == (1 if day < 10 else 0), done.stdout + done.stderr


def test_cells_that_are_refused_are_cases_too(tmp_path: Path) -> None:
    """Of those that ran on other nodes nothing is said, and JUnit has them; so if it is all."""
    old = campaign(tmp_path, 1, 1.0, rounds=4)
    new = campaign(tmp_path, 2, 1.0, rounds=4)
    junit = tmp_path / "junit.xml"
    for fits, code, tests in (("*PointToPoint*", 0, 5), ("*", 1, 5)):
        for file in (new / "launches").glob(f"{fits}/launch.json"):
            file.write_text(json.dumps(json.loads(file.read_text()) | {"nodes": 2}))
        done = analysis("regress", str(new), "--against", str(old), "--junit", str(junit))
        assert done.returncode == code, done.stdout + done.stderr
        suite = ElementTree.parse(junit).getroot()
        assert suite.attrib["tests"] == str(tests)
        said = [str(one.get("message")) for one in suite.iter("skipped")]
        assert sum(one.startswith("not compared: nodes: 1 and 2") for one in said) >= 3
