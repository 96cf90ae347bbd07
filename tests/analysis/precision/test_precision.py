"""The spread on two levels is found, and the rounds that a plan names are enough and needed."""

import math
import subprocess
import sys
from pathlib import Path

import numpy
import pytest
from scipy import stats

from analysis.comparison.compare import compare
from analysis.precision.rounds_needed import (
    MOST_ROUNDS,
    deviation_limit,
    least,
    plans,
    rounds_for_width,
    rounds_to_show,
)
from analysis.precision.spread import LaunchTimes, effective_count, spread_of, spreads
from inference.families import DIFFERENCE_ERROR
from records import layout
from records.campaign import read_campaign
from tests.analysis.support.in_process import analysis
from tests.analysis.support.synthetic import TWICE, Synthetic


def launches(random: numpy.random.Generator, count: int, within: float, between: float,
             iterations: int) -> list[LaunchTimes]:  # fmt: skip
    found = []
    for _ in range(count):
        centre = math.exp(between * random.standard_normal())
        raw = centre * numpy.exp(within * random.standard_normal(iterations))
        low, middle, high = numpy.quantile(raw, [0.25, 0.5, 0.75])
        found.append(LaunchTimes(middle, (low, high), iterations, tuple(raw.tolist())))
    return found


@pytest.mark.parametrize(
    ("within", "between", "explained"), [(0.05, 0.05, 0.03), (0.2, 0.0, 1.0), (0.3, 0.04, 0.58)]
)
def test_spread_is_split(within: float, between: float, explained: float) -> None:
    random = numpy.random.default_rng(5)
    spread = spread_of("cell", "mpi", 8, launches(random, 400, within, between, 64))
    assert spread.within == pytest.approx(within, rel=0.05)
    assert spread.between == pytest.approx(between, abs=0.012)
    assert spread.explained == pytest.approx(explained, abs=0.12)


def test_quantiles_need_iterations_and_every_launch() -> None:
    random = numpy.random.default_rng(6)
    some = launches(random, 9, 0.1, 0.0, 50)
    assert set(spread_of("cell", "mpi", 8, some).quantiles) == {0.1, 0.9}
    many = spread_of("cell", "mpi", 8, launches(random, 9, 0.1, 0.0, 500))
    for share, (value, interval) in many.quantiles.items():
        truth = math.exp(0.1 * stats.norm.ppf(share))
        assert interval.low <= value <= interval.high
        assert value == pytest.approx(truth, rel=0.04)
        assert interval.coverage == pytest.approx(0.9609, abs=1e-4)
    without = LaunchTimes(1.0, (0.9, 1.1), 50)
    assert spread_of("cell", "mpi", 8, [*some, without]).quantiles == {}


@pytest.mark.parametrize("needed", [2, 3, 524_288, 524_289, 600_000, MOST_ROUNDS])
def test_the_least_number_is_found_up_to_the_last(needed: int) -> None:
    assert least(lambda count: count >= needed) == needed


def test_beyond_a_million_there_is_none() -> None:
    asked: list[int] = []

    def are_enough(count: int) -> bool:
        asked.append(count)
        return False

    assert least(are_enough) is None
    assert max(asked) == MOST_ROUNDS


def test_one_launch_has_no_spread_between() -> None:
    spread = spread_of("cell", "mpi", 8, [LaunchTimes(1.0, (0.9, 1.1), 50)])
    assert spread.between is None and spread.explained is None


def test_equal_iterations_count_all() -> None:
    assert effective_count([1.0] * 50) == 50
    assert effective_count([1.0, 2.0]) == 2


def test_spread_of_a_campaign(tmp_path: Path) -> None:
    folder = Synthetic(tmp_path / "c", TWICE, rounds=12, noise=0.1, pairs=["Send/Recv"]).write()
    rows = spreads(read_campaign(folder))
    assert len(rows) == 2 * 8 and all(row.launches == 12 for row in rows)
    # Synthetic launches differ by 10%, their iterations by 5%.
    assert numpy.median([row.between for row in rows]) == pytest.approx(0.1, rel=0.4)
    assert numpy.median([row.within for row in rows]) == pytest.approx(0.05, rel=0.2)
    shown = analysis("spread", str(folder), "--most", "3").stdout
    assert "3 of 16 rows" in shown and "10% quantile" in shown


@pytest.mark.parametrize("deviation", [0.005, 0.03, 0.2])
def test_rounds_for_width_are_enough_and_one_less_is_not(deviation: float) -> None:
    rounds = rounds_for_width(deviation, 0.02)
    assert rounds is not None

    def width(count: int) -> float:
        return float(stats.t.ppf(0.975, count - 1)) * deviation / math.sqrt(count)

    assert width(rounds) <= math.log(1.02)
    assert rounds == 2 or width(rounds - 1) > math.log(1.02)


def test_rounds_to_show_have_the_power_simulated() -> None:
    rounds = rounds_to_show(0.03, 0.02, 0.8, 1)
    assert rounds is not None
    data = math.log(1.02) + 0.03 * numpy.random.default_rng(7).standard_normal((20000, rounds))
    enough, less = (
        (stats.ttest_1samp(data[:, :count], 0, axis=1).pvalue < 0.04).mean()
        for count in (rounds, rounds - 1)
    )
    assert less - 0.01 < 0.8 < enough + 0.01 < 0.84
    corrected = rounds_to_show(0.03, 0.02, 0.8, 26)
    assert corrected is not None and corrected > rounds


def test_power_is_known_without_what_takes_most_of_a_second_to_be_loaded() -> None:
    """As people see who wait for a plan, or for what a comparison could have shown."""
    asks = (
        "import sys; from analysis.precision.rounds_needed import rounds_to_show; "
        "from analysis.history.regressions import smallest_slowdown; "
        "from inference.intervals import independent_ratio; values = [0.0, 0.01, -0.01, 0.02]; "
        "ratio = independent_ratio(values, values, margin=0.02); "
        "print(rounds_to_show(0.03, 0.02, 0.8, 26, 2), smallest_slowdown(ratio, 0.02, 0.01) > 0, "
        "'scipy.stats' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", asks], cwd=layout.CODE, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == [str(rounds_to_show(0.03, 0.02, 0.8, 26, 2)), "True", "False"]


@pytest.mark.parametrize("seen", [3, 6])
def test_power_is_kept_for_a_deviation_that_is_itself_estimated(seen: int) -> None:
    """Of campaigns whose deviation comes from few rounds; as if it were known, it is not."""
    deviation, difference, family = 0.1, 0.1, 9
    shift, level = math.log1p(difference), DIFFERENCE_ERROR / family
    data = deviation * numpy.random.default_rng(seen).standard_normal((200, seen))
    true_power: dict[float, list[float]] = {seen - 1.0: [], math.inf: []}
    for estimate in data.std(axis=1, ddof=1).tolist():
        for freedom, found in true_power.items():
            rounds = rounds_to_show(estimate, difference, 0.8, family, freedom)
            assert rounds is not None
            critical = stats.t.isf(level / 2, rounds - 1)
            away = min(shift / deviation * math.sqrt(rounds), critical + 30)
            found.append(float(stats.nct.sf(critical, rounds - 1, away)))
    kept, as_if_known = (numpy.array(of) for of in true_power.values())
    error = 2 / math.sqrt(len(data))
    assert kept.mean() >= 0.8 - error * kept.std()
    assert as_if_known.mean() < 0.8 - error * as_if_known.std()


def test_what_no_number_of_rounds_shows() -> None:
    assert least(lambda rounds: False) is None
    assert least(lambda rounds: True) == 2
    assert rounds_for_width(50.0, 0.001) is None


@pytest.mark.parametrize("rounds", [3, 5, 20])
def test_true_deviation_is_below_its_limit(rounds: int) -> None:
    data = numpy.random.default_rng(8).standard_normal((20000, rounds))
    limits = [deviation_limit(one, rounds - 1) for one in data.std(axis=1, ddof=1)[:4000]]
    assert numpy.mean(numpy.array(limits) >= 1) == pytest.approx(0.95, abs=0.012)


def test_plan_of_a_campaign(tmp_path: Path) -> None:
    folder = Synthetic(tmp_path / "c", TWICE, rounds=4, pairs=["Send/Recv"]).write()
    comparison = compare(read_campaign(folder))
    groups, cells = plans(comparison, 0.02, 0.8), plans(comparison, 0.02, 0.8, by_cell=True)
    assert len(groups) == 4 and len(cells) == 5
    for row in [*groups, *cells]:
        assert row.seen == 4 and row.deviation_at_most > 2 * row.deviation
        assert row.rounds is not None and row.rounds_at_most is not None
        assert row.rounds_at_most > row.rounds and row.seconds == row.rounds_at_most * row.round_s
    shown = analysis("plan", str(folder), "--precision", "0.05").stdout
    assert "comes from 4 rounds and is itself uncertain" in shown and "±0.05" in shown


def test_plan_corrects_as_verdicts_do(tmp_path: Path) -> None:
    """Cells and groups of an experiment are one family."""
    pairs = ["Send/Recv", "Isend/Recv"]
    folder = Synthetic(tmp_path / "c", TWICE, rounds=4, pairs=pairs).write()
    comparison = compare(read_campaign(folder))
    # Six cells in three ranges of sizes; two grids that are one group.
    assert {row.family for row in plans(comparison, 0.02, 0.8)} == {9, 3}
    cells = {row.name: row for row in plans(comparison, 0.02, 0.8, by_cell=True)}
    for experiment, family in (("PointToPoint", 9), ("Linpack", 3)):
        own = comparison.experiment(experiment)
        assert {cells[cell.name].family for cell in own} == {family}
        for row in (cells[cell.name] for cell in own):
            assert row.to_show == rounds_to_show(row.deviation, 0.02, 0.8, family, row.seen - 1)
    shown = analysis("plan", str(folder), "--cells").stdout
    said = " ".join(shown.split())
    assert "corrected for the number of comparisons of each experiment (3, 9)" in said


def test_rounds_that_agree_have_no_plan(tmp_path: Path) -> None:
    synthetic = Synthetic(tmp_path / "c", TWICE, rounds=3, pairs=["Send/Recv"], noise=0.0)
    comparison = compare(read_campaign(synthetic.write()))
    # Iterations differ all the same; HPL's rates have none.
    names = {row.name for row in plans(comparison, 0.02, 0.8)}
    assert names and not [name for name in names if name.startswith("Linpack")]
    assert rounds_to_show(0.0, 0.02, 0.8, 1) == 6 and rounds_to_show(0.0, 0.02, 0.8, 26) == 11


@pytest.mark.parametrize(
    ("rounds", "arguments", "sentence"),
    [(2, ["--power", "1.5"], "--power between"), (1, [], "it shows no spread")],
)
def test_plans_that_cannot_be(
    tmp_path: Path, rounds: int, arguments: list[str], sentence: str
) -> None:
    folder = Synthetic(tmp_path / "c", TWICE, rounds=rounds, pairs=["Send/Recv"]).write()
    done = analysis("plan", str(folder), *arguments)
    assert done.returncode == 1 and sentence in done.stderr


def test_rounds_of_several_checks_have_more_freedom() -> None:
    """Sixteen checks of three rounds are tested with up to 32 degrees of freedom, not with two."""
    alone = rounds_to_show(0.03, 0.02, 0.8, 26, 2, 3)
    assert alone == rounds_to_show(0.03, 0.02, 0.8, 26, 2)
    group = rounds_to_show(0.03, 0.02, 0.8, 26, 32, 3)
    of_test = rounds_to_show(0.03, 0.02, 0.8, 26, 32)
    assert group is not None and of_test is not None and group < of_test
