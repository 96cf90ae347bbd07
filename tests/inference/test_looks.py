"""P values and intervals that hold whenever one stops."""

import math

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference.intervals import paired_ratio
from inference.looks import Looks, anytime_interval, anytime_p

LOOKS = Looks()
LOGARITHMS = st.lists(st.floats(-1, 1).map(lambda value: round(value, 3)), max_size=40)


@pytest.mark.parametrize(
    ("blocks", "shares", "said"),
    [((3, 5), (0.5,), "one share"), ((), (), "one share"), ((5, 3), (0.5, 0.5), "ascend"),
     ((3, 3), (0.5, 0.5), "ascend"), ((1, 3), (0.5, 0.5), "two blocks"),
     ((3, 5), (0.6, 0.5), "more than 1"), ((3, 5), (1.0, 0.0), "not all above 0")],
)  # fmt: skip
def test_looks_that_spend_too_much_are_refused(
    blocks: tuple[int, ...], shares: tuple[float, ...], said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        Looks(blocks, shares)


def test_looks_between_counts() -> None:
    assert LOOKS.reached(2) == [] and LOOKS.reached(4) == [(3, 0.4)]
    assert LOOKS.coming(33) == [(34, 0.04)] and LOOKS.coming(34) == []


@given(LOGARITHMS)
def test_more_blocks_never_take_a_claim_back(logarithms: list[float]) -> None:
    before = (1.0, 1.0)
    for count in range(len(logarithms) + 1):
        p = anytime_p(logarithms[:count], 0.02, LOOKS)
        assert 0 <= p.difference <= before[0] and 0 <= p.equivalence <= before[1]
        before = (p.difference, p.equivalence)


@given(LOGARITHMS.filter(lambda logarithms: len(logarithms) >= 3), st.floats(0.001, 0.2))
def test_interval_leaves_out_1_where_the_p_value_says_so(
    logarithms: list[float], level: float
) -> None:
    interval = anytime_interval(logarithms, level, LOOKS)
    p = anytime_p(logarithms, 0.02, LOOKS).difference
    if interval is None:
        # Only where blocks agree to the last digit.
        assert any(len(set(logarithms[:n])) == 1 for n, _ in LOOKS.reached(len(logarithms)))
    elif not math.isclose(p, level, rel_tol=1e-6):
        assert (p < level) == (not interval.low <= 1 <= interval.high)


def test_first_look_is_students_test_at_its_share() -> None:
    logarithms = [0.11, 0.14, 0.10]
    once = paired_ratio(logarithms, margin=0.02)
    p = anytime_p([*logarithms, 5.0], 0.02, LOOKS)
    assert once.p_value is not None and p.difference == pytest.approx(once.p_value / 0.4)
    assert anytime_p(logarithms[:2], 0.02, LOOKS).difference == 1
    before = anytime_interval(logarithms[:2], 0.04, LOOKS)
    assert before is not None and before.high == math.inf


def test_a_coarser_step_decides_by_signs_and_has_no_interval() -> None:
    logarithms = [0.103, 0.1, 0.101, 0.102, 0.1]
    fine, coarse = (anytime_p(logarithms, 0.02, LOOKS, step).difference for step in (1e-4, 0.01))
    assert fine < 1e-4 and coarse == pytest.approx(2 * 0.5**5 / 0.25)
    assert anytime_interval(logarithms, 0.04, LOOKS) is not None
    assert anytime_interval(logarithms, 0.04, LOOKS, 0.01) is None


def test_published_quantile_stands_behind_the_second_look() -> None:
    """Student's t of 4 degrees of freedom is beyond 4.604 with 1% (any table of quantiles)."""
    deviation = math.sqrt(5) / 4.604
    shape = numpy.array([-1, -0.5, 0, 0.5, 1])
    logarithms = (1 + deviation * shape / shape.std(ddof=1)).tolist()
    looks = Looks((5,), (0.25,))
    assert anytime_p(logarithms, 0.02, looks).difference == pytest.approx(0.04, rel=1e-3)
