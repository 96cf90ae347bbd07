"""Simultaneous confidence bands over correlated points."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from scipy import special

from inference.intervals import CONFIDENCE

#: From this many rounds on the sizes' correlation is known well enough to narrow the band.
FEWEST_FOR_CORRELATION = 10
SIMULATIONS = 4000


def band_factor(logarithms: np.ndarray, confidence: float = CONFIDENCE) -> float:
    """Return how many standard errors the band is wide to each side, of an array (rounds, sizes).

    Below ten rounds it is Bonferroni's, Student's quantile at the level over the number of sizes.
    It needs no knowledge of how sizes vary together, which few rounds cannot give: a bootstrap of
    three rounds has ten different samples. From ten rounds on it is the quantile of the largest
    of Student's t over the sizes, simulated with the correlation seen, which is shrunk towards
    none by the share that as many rounds leave uncertain; never more than Bonferroni's.
    """
    rounds, sizes = logarithms.shape
    bonferroni = -float(special.stdtrit(rounds - 1, (1 - confidence) / 2 / sizes))
    spread = logarithms.std(axis=0, ddof=1)
    if rounds < FEWEST_FOR_CORRELATION or sizes == 1 or not spread.all():
        return bonferroni
    share = (rounds - 1) / (rounds + 1)
    correlation = share * np.corrcoef(logarithms.T) + (1 - share) * np.eye(sizes)
    independent, deviations = drawn(rounds, sizes)
    student = np.abs(independent @ np.linalg.cholesky(correlation).T) / deviations
    return min(bonferroni, float(np.quantile(student.max(axis=1), confidence)))


@lru_cache(maxsize=4)
def drawn(rounds: int, sizes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return normal values, and deviations of as many rounds, of arrays (simulations, sizes).

    Always of the same seed: the same campaign gives the same band. The deviations are as if those
    of sizes were independent: a little wider than with their correlation.
    """
    random = np.random.default_rng(sizes)
    normal = random.standard_normal((SIMULATIONS, sizes))
    return normal, np.sqrt(random.chisquare(rounds - 1, (SIMULATIONS, sizes)) / (rounds - 1))


def simultaneous_band(
    logarithms: np.ndarray, confidence: float = CONFIDENCE
) -> tuple[np.ndarray, np.ndarray]:
    """Return the means over rounds and the band's half widths, of an array (rounds, sizes)."""
    error = logarithms.std(axis=0, ddof=1) / math.sqrt(len(logarithms))
    return logarithms.mean(axis=0), band_factor(logarithms, confidence) * error
