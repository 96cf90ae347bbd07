"""Intervals cover as often as they say, and no difference is claimed where there is none."""

import math

import numpy
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from analysis.comparison.verdict import Verdict, correct
from inference.intervals import (
    holm,
    independent_ratio,
    median,
    median_interval,
    paired_ratio,
)

VALUES = st.lists(st.floats(1e-9, 1e9), min_size=1, max_size=40)


@given(st.lists(st.floats(), min_size=1, max_size=60))
def test_the_median_of_few_values_is_that_of_many(values: list[float]) -> None:
    """As numpy has it, which takes an array."""
    with numpy.errstate(all="ignore"):
        numpy.testing.assert_equal(abs(median(values)), abs(float(numpy.median(values))))


@given(VALUES)
def test_median_interval_holds_the_median(values: list[float]) -> None:
    interval = median_interval(values)
    assert interval.low <= numpy.median(values) <= interval.high
    assert 0 <= interval.coverage <= 1
    assert {interval.low, interval.high} <= set(values)


@pytest.mark.parametrize(("count", "coverage"), [(1, 0.0), (2, 0.5), (3, 0.75), (5, 0.9375)])
def test_few_launches_are_not_called_95_percent(count: int, coverage: float) -> None:
    assert median_interval(list(range(count))).coverage == coverage


def test_narrowest_interval_that_suffices_is_taken() -> None:
    # Of 10 values, the 2nd and 9th cover with 97.9%, the 3rd and 8th with 89.1%.
    interval = median_interval([float(value) for value in range(1, 11)])
    assert (interval.low, interval.high) == (2.0, 9.0)
    assert interval.coverage == pytest.approx(0.978515625)


@pytest.mark.parametrize("count", [3, 6, 11, 20])
def test_median_interval_covers_as_often_as_it_says(count: int) -> None:
    random = numpy.random.default_rng(count)
    trials, covered, stated = 4000, 0, 0.0
    for _ in range(trials):
        interval = median_interval(list(numpy.exp(random.standard_t(2, count))))
        covered += interval.low <= 1.0 <= interval.high
        stated = interval.coverage
    assert covered / trials == pytest.approx(stated, abs=4 * math.sqrt(0.25 / trials))


NOISE = {
    "normal": lambda random, n: random.standard_normal(n),
    "heavy tails": lambda random, n: random.standard_t(3, n),
    "bursts": lambda random, n: random.standard_normal(n) * (1 + 9 * (random.random(n) < 0.1)),
}


#: How often Student's 95% interval has the truth, of a million trials by numpy alone: what
#: it says where noise is normal, and more where a few values make it wide.
STATED = {
    "normal": {3: 0.95, 5: 0.95, 10: 0.95},
    "heavy tails": {3: 0.962, 5: 0.962, 10: 0.960},
    "bursts": {3: 0.961, 5: 0.966, 10: 0.974},
}


@pytest.mark.parametrize("noise", NOISE)
@pytest.mark.parametrize("rounds", [3, 5, 10])
def test_ratio_interval_covers(noise: str, rounds: int) -> None:
    """Symmetric noise on the logarithm, heavy tails included; Student's interval is then safe."""
    random = numpy.random.default_rng(rounds)
    trials, truth = 4000, math.log(1.3)
    covered = 0
    for _ in range(trials):
        interval = paired_ratio(list(truth + 0.05 * NOISE[noise](random, rounds))).interval
        assert interval is not None
        covered += interval.low <= 1.3 <= interval.high
    stated = STATED[noise][rounds]
    chance = 3 * math.sqrt(stated * (1 - stated) / trials)
    assert covered / trials == pytest.approx(stated, abs=chance)


@given(st.lists(st.floats(-2, 2), min_size=2, max_size=12))
def test_swapping_implementations_inverts_the_ratio(logarithms: list[float]) -> None:
    one, other = paired_ratio(logarithms), paired_ratio([-value for value in logarithms])
    assert one.value == pytest.approx(1 / other.value)
    assert (one.interval is None) == (other.interval is None)
    if one.interval and other.interval:
        assert one.interval.low == pytest.approx(1 / other.interval.high, rel=1e-6)
    assert one.p_value == pytest.approx(other.p_value, abs=1e-12)


def test_one_pair_tells_nothing() -> None:
    ratio = paired_ratio([0.5])
    assert ratio.interval is None and ratio.p_value is None and ratio.pairs == 1
    assert math.isnan(paired_ratio([]).value) and paired_ratio([]).words == "–"


def test_holm_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([]) == []


@given(st.lists(st.floats(0, 1), max_size=20))
def test_holm_never_lowers_and_keeps_order(p_values: list[float]) -> None:
    adjusted = holm(p_values)
    assert all(a >= p and a <= 1 for a, p in zip(adjusted, p_values, strict=True))
    order = sorted(range(len(p_values)), key=lambda index: p_values[index])
    assert [adjusted[index] for index in order] == sorted(adjusted)


def test_family_rarely_claims_a_difference_where_there_is_none() -> None:
    random = numpy.random.default_rng(9)
    families, cells = 1000, 26
    false = 0
    for _ in range(families):
        p_values = [paired_ratio(list(random.standard_normal(3))).p_value for _ in range(cells)]
        false += min(holm([p or 0.0 for p in p_values])) < 0.05
    assert false / families <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / families)


def test_welch_is_scipys() -> None:
    of, base = [0.1, 0.3, 0.25, 0.2], [0.0, 0.05, 0.02]
    ratio = independent_ratio(of, base)
    known = scipy.stats.ttest_ind(of, base, equal_var=False)
    low, high = known.confidence_interval(0.95)
    assert ratio.interval is not None
    assert ratio.p_value == pytest.approx(known.pvalue)
    assert (ratio.interval.low, ratio.interval.high) == pytest.approx(
        (math.exp(low), math.exp(high))
    )
    assert independent_ratio([0.1], base).interval is None
    assert independent_ratio([], base).counted == "0 and 3 launches"


def test_equivalence_is_the_interval_of_90_percent_within_the_margin() -> None:
    """Schuirmann's two tests at 5% say the same as that the 90% interval is inside."""
    random = numpy.random.default_rng(4)
    for _ in range(300):
        logarithms = list(0.004 * random.standard_normal(5) + 0.012)
        p_value = paired_ratio(logarithms, margin=0.02).equivalence_p
        inner = paired_ratio(logarithms, confidence=0.9).interval
        assert p_value is not None and inner is not None
        assert (p_value < 0.05) == (inner.low > 1 / 1.02 and inner.high < 1.02)


@given(st.lists(st.floats(-0.1, 0.1), min_size=3, max_size=8))
def test_equivalence_does_not_depend_on_the_base(logarithms: list[float]) -> None:
    one = paired_ratio(logarithms, margin=0.02)
    other = paired_ratio([-value for value in logarithms], margin=0.02)
    assert one.equivalence_p == pytest.approx(other.equivalence_p, abs=1e-9)


# Launches that agree to the last digit, as HPL's rates of four digits do.


def test_two_equal_rounds_show_nothing() -> None:
    """No spread was seen, which is not none: two coins fall alike every other time."""
    for value in (0.3, math.log(0.1 + 0.2) - math.log(0.3) + 0.3):
        ratio = paired_ratio([0.3, value], margin=0.02)
        assert ratio.interval is None and ratio.p_value == 0.5 and ratio.equivalence_p == 1.0
        assert ratio.counted == "2 paired rounds that agree to the last digit"
    verdict = Verdict("mpi", "base", paired_ratio([0.3, 0.3], margin=0.02), 0.02)
    correct([verdict])
    assert verdict.words == "inconclusive (2 paired rounds that agree to the last digit)"


@pytest.mark.parametrize(
    ("value", "rounds", "words"),
    [(0.3, 5, "inconclusive"), (0.3, 6, "faster"), (-0.3, 6, "slower"),
     (0.0, 6, "inconclusive"), (0.0, 7, "equivalent within 2%"), (0.01, 7, "faster")],
)  # fmt: skip
def test_equal_rounds_are_judged_by_signs(value: float, rounds: int, words: str) -> None:
    verdict = Verdict("mpi", "base", paired_ratio([value] * rounds, margin=0.02), 0.02)
    correct([verdict])
    assert verdict.words.startswith(words)
    sign_test = scipy.stats.binomtest(rounds, rounds).pvalue
    assert verdict.ratio.p_value == pytest.approx(sign_test if value else 1.0)


def test_equal_launches_of_two_campaigns_are_judged_by_their_order() -> None:
    for counts in ((2, 2), (3, 4), (4, 4)):
        of, base = [0.3] * counts[0], [0.0] * counts[1]
        ratio = independent_ratio(of, base)
        of, base = list(numpy.arange(counts[0]) + 10.0), list(numpy.arange(counts[1]))
        ranks = scipy.stats.mannwhitneyu(of, base, method="exact")
        assert ratio.interval is None and ratio.p_value == pytest.approx(ranks.pvalue)
    assert independent_ratio([0.3, 0.3], [0.0, 0.1]).interval is not None


def test_coarse_numbers_are_seldom_called_different() -> None:
    """Rates of so few digits that rounds often agree: no more false alarms than stated."""
    random = numpy.random.default_rng(12)
    for rounds in (2, 3, 6, 10):
        data = numpy.round(0.4 * random.standard_normal((4000, rounds, 2)))
        ratios = [paired_ratio(list(row)) for row in numpy.diff(data, axis=2)[:, :, 0]]
        false = numpy.mean([ratio.p_value < 0.05 for ratio in ratios])
        assert any(ratio.interval is None and ratio.value != 1 for ratio in ratios) or rounds > 3
        assert false <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 4000)
