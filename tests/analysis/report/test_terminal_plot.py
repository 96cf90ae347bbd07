"""Curves in the terminal: what is drawn where, at any width, without colour."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from analysis.__main__ import app
from analysis.comparison.compare import compare
from analysis.report.drawings.terminal_plot import curves_of, drawing
from inference.estimates import Estimate
from inference.intervals import Interval
from records.campaign import read_campaign
from tests.analysis.support.synthetic import TWICE, Synthetic


def estimates(values: dict[int, float]) -> list[Estimate]:
    return [Estimate(n, v, Interval(v, v, 0.95), (v,)) for n, v in sorted(values.items())]


def places(text: str, sign: str) -> list[tuple[int, int]]:
    lines = text.splitlines()[1:-3]
    return [(x, y) for y, line in enumerate(lines) for x, one in enumerate(line) if one == sign]


def test_each_implementation_has_a_sign_and_better_is_higher() -> None:
    slow, fast = {2**k: 1e6 * 2**k for k in range(4)}, {2**k: 4e6 * 2**k for k in range(4)}
    text = drawing("t", {"slow": estimates(slow), "fast": estimates(fast)}, "B/s", 80, 24)
    o, x = places(text, "o"), places(text, "x")
    assert len(o) == len(x) == 4
    for (low_x, low_y), (high_x, high_y) in zip(sorted(o), sorted(x), strict=True):
        assert low_x == high_x and high_y < low_y
    # On logarithmic axes a power of the size is a straight line.
    steps = {(b[0] - a[0], a[1] - b[1]) for a, b in zip(sorted(o), sorted(o)[1:], strict=False)}
    assert max(s[0] for s in steps) - min(s[0] for s in steps) <= 1
    assert max(s[1] for s in steps) - min(s[1] for s in steps) <= 1
    assert text.splitlines()[-1] == "o slow   x fast   = several"


def test_where_curves_meet_it_says_so() -> None:
    same = {8: 1.0, 64: 2.0}
    text = drawing("t", {"a": estimates(same), "b": estimates(same)}, "s", 60, 20)
    assert len(places(text, "=")) == 2 and not places(text, "x")


@settings(max_examples=60)
@given(
    st.dictionaries(st.integers(1, 2**40), st.floats(1e-12, 1e15), min_size=1, max_size=30),
    st.integers(1, 200), st.integers(1, 60), st.integers(1, 12),
)  # fmt: skip
def test_any_curve_fits_the_screen(
    values: dict[int, float], width: int, height: int, count: int
) -> None:
    curves = {f"implementation {i}": estimates(values) for i in range(count)}
    lines = drawing("t", curves, "B/s", width, height).splitlines()
    assert len(lines) <= max(height, 8) and all(len(line) <= max(width, 40) for line in lines[1:-1])


def test_ranges_are_one_curve(tmp_path: Path) -> None:
    folder = Synthetic(tmp_path / "c", TWICE, pairs=["Send/Recv"]).write()
    curves = curves_of(compare(read_campaign(folder)), "PointToPoint")
    assert list(curves) == ["PointToPoint pair=Send/Recv"]
    sizes = [one.message_bytes for one in curves["PointToPoint pair=Send/Recv"]["alpha-1.0"]]
    assert sizes == [300, 1800, 4800, 5000, 43000, 100000, 200000, 2000000]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["-e", "Nas"], "Nas was not measured; there is: PointToPoint, Linpack"),
        (["-e", "Linpack"], "Linpack has no curve over message size"),
        (["-e", "PointToPoint", "--cell", "none"], "with 'none' in its name"),
    ],
)
def test_command(tmp_path: Path, words: list[str], sentence: str) -> None:
    folder = Synthetic(tmp_path / "c", TWICE, pairs=["Send/Recv"]).write()
    drawn = CliRunner().invoke(app, ["plot", str(folder), "-e", "PointToPoint", "--no-pager"])
    assert drawn.exit_code == 0 and "o alpha-1.0   x beta-2.0" in drawn.output
    assert "\x1b" not in drawn.output
    done = CliRunner().invoke(app, ["plot", str(folder), *words])
    assert done.exit_code == 1 and sentence in done.stderr
