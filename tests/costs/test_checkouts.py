"""What two checkouts take for the same campaign is compared pair by pair."""

import math
import sys
from pathlib import Path

import pytest

from costs import checkouts
from costs.checkouts import (
    CheckoutCourse,
    compared,
    measure,
    of_all,
    rows,
    share_of,
    shares,
    speeds,
)
from records.base import CampaignError
from records.program_output import ProgramOutput
from records.su3 import Su3Result
from tests.analysis.support.synthetic import HPL, TWICE, Synthetic

PROJECT = Path(__file__).resolve().parents[2]
CELL = "Linpack grid=1x2 n=4000 nb=192"
#: What a checkout's `python` does: a campaign, unless it is told that another one measures.
PYTHON = """#!{python}
import sys
from pathlib import Path
sys.path.insert(0, {project!r})
from tests.costs.test_checkouts import campaign
sys.exit(campaign(Path.cwd(), sys.argv[sys.argv.index("--name") + 1]))
"""


def campaign(checkout: Path, name: str) -> int:
    """Measure a made-up campaign: three launches of a second each, a half of one between them."""
    if (checkout / "fails").exists():
        print("campaign: something is wrong")
        return 1
    if not (checkout / "asked").exists():
        (checkout / "asked").touch()
        print("campaign: another campaign is measuring on this machine (process 1), and two at "
              "once would disturb each other; wait until it has ended")  # fmt: skip
        return 1
    done = [{"round": 1, "started_utc": "2026-01-01T00:00:00Z", "wall_s": 6.0, "launches": 3,
             "load_average": 0.0, "reframe_exit_code": 0}]  # fmt: skip
    made = Synthetic(
        checkout / "runs" / f"20260101T000000Z-local-{name}", {"alpha-1.0": TWICE["alpha-1.0"]},
        rounds=0, facts={"rounds_done": done},
    )  # fmt: skip
    made.write()
    for number, seconds in enumerate((0.0, 1.5, 3.0)):
        made.launch(
            1, "alpha-1.0", "Linpack", {"grid": "1x2", "n": 4000 + number, "nb": 192},
            HPL.format(n=4000 + number, q=2, time=1.0, gflops=40.0),
            started_utc=f"2026-01-01T00:00:0{seconds}00Z", wall_s=1.0,
            ended_utc=f"2026-01-01T00:00:0{seconds + 1}00Z",
        )  # fmt: skip
    return 0


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(checkouts, "BUSY_POLL_S", 0.0)
    (tmp_path / "runs").mkdir()
    (tmp_path / "activate").write_text('PATH="$PWD/bin:$PATH"\n')
    (tmp_path / "bin").mkdir()
    python = tmp_path / "bin" / "python"
    python.write_text(PYTHON.format(python=sys.executable, project=str(PROJECT)))
    python.chmod(0o755)
    return tmp_path


def test_a_campaign_that_had_to_wait_is_measured_read_and_removed(checkout: Path) -> None:
    found = measure(checkout, "cost-1", 1, "Linpack", "alpha-1.0")
    whole = found.seconds.pop("the whole command (s)")
    assert whole > 0 and found.seconds == {
        "between two launches, median (s)": pytest.approx(0.5),
        "between two launches, mean (s)": pytest.approx(0.5),
        "a round without its launches, of each (s)": pytest.approx(1.0),
    }
    assert found.measured[CELL, "alpha-1.0"] == pytest.approx(math.log(40e9))
    assert not list((checkout / "runs").iterdir())


def test_what_cannot_be_measured_ends_with_its_last_words(checkout: Path) -> None:
    (checkout / "fails").touch()
    with pytest.raises(CampaignError, match="did not measure: campaign: something is wrong"):
        measure(checkout, "cost-1", 1, "Linpack", "alpha-1.0")


def pairs(times: float, cell: str = CELL) -> list[tuple[CheckoutCourse, CheckoutCourse]]:
    """Return six pairs: half the time here, and of a cell so many times what there is there."""
    found = []
    for number in range(6):
        noise = 1e-4 * (-1) ** number
        here = CheckoutCourse(
            {"time (s)": 1 + noise}, {(cell, "alpha-1.0"): math.log(times) + noise}
        )
        found.append((here, CheckoutCourse({"time (s)": 2.0}, {(cell, "alpha-1.0"): 0.0})))
    return found


def test_times_are_a_ratio_and_results_are_equivalent_or_differ() -> None:
    [row] = rows(pairs(1.0))
    assert row.startswith("| time (s) | 1.000 | 2.000 | 0.500 | ")
    said = {
        rate: [one.verdict.words for _, one in compared(map(speeds, pairs(rate)))]
        for rate in (1.0, 0.9)
    }
    assert said == {1.0: ["equivalent within 2%"], 0.9: ["slower"]}


def test_the_mean_of_all_cells_tells_what_no_cell_does_alone() -> None:
    found = []
    for number in range(6):
        # Each cell is as often faster as slower, by much; both together vary little.
        apart = 0.1 * (-1) ** number
        keys = {(CELL, "alpha-1.0"): apart, (CELL, "beta-1.0"): -0.99 * apart}
        found.append((CheckoutCourse({}, keys), CheckoutCourse({}, dict.fromkeys(keys, 0.0))))
    assert {one.verdict.words for _, one in compared(map(speeds, found))} == {"no difference shown"}
    assert of_all(map(speeds, found)).verdict.words == "equivalent within 2%"


def su3(wall_s: float, cpu_s: float) -> ProgramOutput:
    """Return what su3 told of two ranks that had a processor for so long."""
    told = Su3Result.model_construct(wall_s=wall_s, cpu_by_rank_s=[cpu_s, cpu_s])
    return ProgramOutput.model_construct(results=[told])


def test_a_share_of_processors_is_compared_whatever_the_machine_s_speed() -> None:
    """A tenth of the time is lost here, and the machine was twice as fast at times."""
    found = []
    for number in range(6):
        fast = 2.0 ** (number % 2)
        lost, whole = (share_of(su3(wall / fast, 1 / fast)) for wall in (1.1 + 1e-4 * number, 1.0))
        assert lost is not None and whole is not None and whole == pytest.approx(0.0)
        key = ("Su3 ranks=2", "alpha-1.0")
        found.append((CheckoutCourse({}, {}, {key: lost}), CheckoutCourse({}, {}, {key: whole})))
    [(_, one)] = compared(map(shares, found))
    assert one.verdict.words == "slower" and one.verdict.ratio.value == pytest.approx(
        1 / 1.1, rel=1e-3
    )
    assert share_of("HPL's own words") is None


@pytest.mark.parametrize(("cell", "speed"), [(CELL, 1.25), ("HaloExchange ranks=2", 0.8)])
def test_more_of_a_rate_is_faster_and_more_of_a_time_is_slower(cell: str, speed: float) -> None:
    [(_, found)] = compared(map(speeds, pairs(1.25, cell)))
    assert found.verdict.ratio.value == pytest.approx(speed, rel=1e-3)
    assert found.verdict.words == ("faster" if speed > 1 else "slower")


def test_a_folder_that_is_not_a_checkout_is_refused_with_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["checkouts", str(tmp_path)])
    with pytest.raises(CampaignError, match="is no checkout"):
        checkouts.main()


def test_a_launch_in_a_dozen_that_takes_twice_as_long_leaves_the_median_alone() -> None:
    """Either side has such launches now and then, so that the mean decides nothing."""
    signs = [(-1) ** (number // 6) for number in range(60)]
    apart = [sign * (1e-3 if number % 6 else math.log(2)) for number, sign in enumerate(signs)]
    found = [{(CELL, "alpha-1.0"): one} for one in apart]
    [(_, one)] = compared(found)
    assert one.verdict.words == "no difference shown"
    assert 0.99 < one.median.low < one.median.high < 1.01
