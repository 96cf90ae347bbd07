"""P values and intervals that hold whenever one stops."""

import math
from collections.abc import Sequence

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference.families import claims
from inference.intervals import Ratio, paired_ratio
from inference.looks import Looks, anytime_p, anytime_ratio

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


def test_first_look_is_students_test_at_its_share() -> None:
    logarithms = [0.11, 0.14, 0.10]
    once = paired_ratio(logarithms, margin=0.02)
    p = anytime_p([*logarithms, 5.0], 0.02, LOOKS)
    assert once.p_value is not None and p.difference == pytest.approx(once.p_value / 0.4)
    assert anytime_p(logarithms[:2], 0.02, LOOKS).difference == 1


def test_a_coarser_step_decides_by_signs_and_has_no_interval() -> None:
    logarithms = [0.103, 0.1, 0.101, 0.102, 0.1]
    fine, coarse = (anytime_p(logarithms, 0.02, LOOKS, step).difference for step in (1e-4, 0.01))
    assert fine < 1e-4 and coarse == pytest.approx(2 * 0.5**5 / 0.25)
    assert looked_at(logarithms).interval_at(0.04) is not None
    assert looked_at(logarithms, step=0.01).interval_at(0.04) is None


def test_published_quantile_stands_behind_the_second_look() -> None:
    """Student's t of 4 degrees of freedom is beyond 4.604 with 1% (any table of quantiles)."""
    deviation = math.sqrt(5) / 4.604
    shape = numpy.array([-1, -0.5, 0, 0.5, 1])
    logarithms = (1 + deviation * shape / shape.std(ddof=1)).tolist()
    looks = Looks((5,), (0.25,))
    assert anytime_p(logarithms, 0.02, looks).difference == pytest.approx(0.04, rel=1e-3)


MARGIN = 0.02


def looked_at(
    logarithms: list[float], looks: Sequence[tuple[int, float]] = tuple(LOOKS.reached(99)),
    step: float = 1e-12,
) -> Ratio:  # fmt: skip
    """Return the ratio of a series, with the looks that it has reached."""
    seen = [(share, paired_ratio(logarithms[:blocks], margin=MARGIN, step=step))
            for blocks, share in looks if blocks <= len(logarithms)]  # fmt: skip
    return anytime_ratio(paired_ratio(logarithms, margin=MARGIN, step=step), seen, MARGIN)


@given(LOGARITHMS, st.floats(0.001, 0.2))
def test_a_ratio_of_looks_claims_what_its_p_values_do_and_never_against_its_value(
    logarithms: list[float], level: float
) -> None:
    ratio = looked_at(logarithms)
    if len(logarithms) < 3:
        told = 1.0 if logarithms else None
        assert ratio.p_value == ratio.equivalence_p == told and ratio.interval is None
        return
    p = anytime_p(logarithms, MARGIN, LOOKS, step=1e-12)
    assert ratio.p_value is not None and ratio.equivalence_p is not None
    assert ratio.p_value in (1.0, p.difference) and ratio.equivalence_p in (1.0, p.equivalence)
    interval = ratio.interval_at(level)
    if interval is None:
        return
    assert interval.low <= ratio.value <= interval.high
    if not interval.low <= 1 <= interval.high and not math.isclose(ratio.p_value, level):
        assert ratio.p_value < level


def test_what_later_blocks_contradict_is_not_claimed() -> None:
    clear = [0.30, 0.31, 0.30]
    assert looked_at(clear).p_value == anytime_p(clear, MARGIN, LOOKS, step=1e-12).difference
    turned = looked_at([*clear, -2.0, -2.1])
    assert turned.value < 1 and turned.p_value == 1.0
    interval = turned.interval_at(0.04)
    assert interval and interval.low < 1 < interval.high
    equal = [0.001, -0.001, 0.0]
    assert looked_at(equal).equivalence_p == pytest.approx(
        anytime_p(equal, MARGIN, LOOKS, step=1e-12).equivalence
    )
    assert looked_at([*equal, 0.3]).equivalence_p == 1.0


def test_peeking_is_wrong_more_often_than_stated_and_looks_are_not() -> None:
    """Campaigns in which nothing differs, measured on until something does, to 34 blocks."""
    trials, series, level = 150, 4, 0.05
    random = numpy.random.default_rng(4)
    peeks = [(blocks, 1.0) for blocks in LOOKS.blocks]
    wrong = {"looks": 0, "peeking": 0}
    for _ in range(trials):
        rows = random.normal(0, 0.1, (series, LOOKS.blocks[-1])).tolist()
        # Stopping is by what is seen: at the first look with a claim, else at the last.
        for name, looks in (("looks", LOOKS.reached(99)), ("peeking", peeks)):
            wrong[name] += any(
                any(one.is_different or one.is_equivalent
                    for one in claims([looked_at(row[:blocks], looks) for row in rows]))
                for blocks in LOOKS.blocks
            )  # fmt: skip
    error = 2 * math.sqrt(level * (1 - level) / trials)
    assert wrong["looks"] / trials <= level + error < wrong["peeking"] / trials, wrong
