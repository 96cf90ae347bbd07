"""The band over message size is one for the whole curve, and the figure says what it shows."""

import itertools
import math
from pathlib import Path
from xml.etree import ElementTree

import numpy
import pytest
from scipy import stats

from analysis.comparison.compare import compare
from analysis.comparison.ratio_curves import RatioPoint, differs_at, ratio_curve
from analysis.comparison.result import Cell
from analysis.figures.axes import Axis
from analysis.report.drawings.ratio_figure import ratio_figure, ratio_ticks
from inference.bands import band_factor, simultaneous_band
from inference.intervals import Interval
from records.campaign import read_campaign
from tests.analysis.support.synthetic import TWICE, Synthetic


def test_few_rounds_have_bonferronis_band() -> None:
    data = numpy.random.default_rng(1).standard_normal((3, 6))
    assert band_factor(data) == pytest.approx(stats.t.isf(0.025 / 6, 2))


def test_many_rounds_narrow_the_band_by_what_sizes_share() -> None:
    random = numpy.random.default_rng(2)
    own = random.standard_normal((20, 12))
    shared = random.standard_normal((20, 1)) + 0.1 * own
    bonferroni = stats.t.isf(0.025 / 12, 19)
    assert band_factor(shared) < 0.95 * bonferroni
    assert band_factor(own) == pytest.approx(bonferroni, rel=0.05)
    assert band_factor(shared) > stats.t.isf(0.025, 19), "narrower than a single interval"


def test_one_size_has_students_interval() -> None:
    data = numpy.random.default_rng(3).standard_normal((12, 1))
    assert band_factor(data) == pytest.approx(stats.t.isf(0.025, 11))
    means, halves = simultaneous_band(data)
    low, high = stats.t.interval(0.95, 11, data.mean(), stats.sem(data[:, 0]))
    assert (means[0] - halves[0], means[0] + halves[0]) == pytest.approx((low, high))


@pytest.mark.parametrize("rounds", [1, 4])
def test_curve_of_a_campaign(tmp_path: Path, rounds: int) -> None:
    folder = Synthetic(tmp_path / "c", TWICE, rounds=rounds, pairs=["Send/Recv"]).write()
    comparison = compare(read_campaign(folder))
    for cell in comparison.experiment("PointToPoint"):
        curve = ratio_curve(cell, "beta-2.0", "alpha-1.0")
        assert [point.message_bytes for point in curve] == cell.message_sizes()
        assert all(1.8 < point.ratio < 2.2 for point in curve)
        mean = sum(math.log(point.ratio) for point in curve) / len(curve)
        assert math.exp(mean) == pytest.approx(cell.verdicts["beta-2.0"].ratio.value)
        assert all((point.band is None) == (rounds == 1) for point in curve)
    assert ratio_curve(cell, "gamma", "alpha-1.0") == []


def points(*bands: tuple[int, float, float]) -> list[RatioPoint]:
    return [
        RatioPoint(size, math.sqrt(low * high), Interval(low, high, 0.95))
        for size, low, high in bands
    ]


def test_figure_says_where_the_band_leaves_out_1() -> None:
    curve = points((8, 0.9, 1.1), (64, 1.1, 1.3), (512, 1.0, 1.2), (4096, 0.2, 0.9))
    assert differs_at(curve) == [64, 4096]
    svg = ratio_figure("<Ratio>", [("beta", 1, curve)])
    assert svg is not None
    root = ElementTree.fromstring(str(svg))
    assert [element.text for element in root][:2] == [
        "<Ratio>", "beta: the band leaves out 1 at 64, 4096 of 4 sizes in bytes",
    ]  # fmt: skip
    [group] = [element for element in root if element.get("data-name") == "beta"]
    assert len([e for e in group if e.get("class") == "mark"]) == 4
    inside = [float(part) for e in group if e.get("class") in ("band", "line")
              for pair in str(e.get("points")).split() for part in pair.split(",")]  # fmt: skip
    assert min(inside) >= 10 and max(inside[::2]) <= 450 and max(inside[1::2]) <= 260


def test_ticks_hold_1_and_have_room() -> None:
    for reach in (1.02, 1.3, 3.0, 90.0):
        up = Axis(1 / reach, reach, 260.0, 10.0)
        ticks = sorted(ratio_ticks(up))
        places = [up.place(tick) for tick in ticks]
        assert 1.0 in ticks and all(1 / reach <= tick <= reach for tick in ticks)
        assert all(a - b >= 15 for a, b in itertools.pairwise(places))
    assert len(ticks) >= 5


def test_two_sizes_do_not_make_a_curve() -> None:
    assert ratio_figure("title", [("beta", 1, points((8, 0.9, 1.1), (64, 1.1, 1.3)))]) is None


def test_sizes_at_which_rounds_agree_have_no_band() -> None:
    """A clock too coarse for short messages gives one ratio every time, which is no certainty."""
    rounds = {n: {1: 2.0, 8: 2.0 + 0.01 * n, 64: 2.0 - 0.01 * n, 512: 2.0} for n in (1, 2, 3)}
    base = {n: dict.fromkeys((1, 8, 64, 512), 1.0) for n in (1, 2, 3)}
    values = {"of": rounds, "base": base}
    cell = Cell("c", "c", "PointToPoint", "", False, {}, {}, {}, {}, {}, values)
    curve = ratio_curve(cell, "of", "base")
    assert [point.band is None for point in curve] == [True, False, False, True]
    assert set(differs_at(curve)) <= {8, 64}
    drawn = str(ratio_figure("t", [("of", 0, curve)]))
    assert drawn.count('class="band"') == 1
