"""Records of the SU(3) lattice gauge code."""

from __future__ import annotations

import math
import statistics
import sys
from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field, model_validator

from records.base import Count, Difference, Positive, Record, Seconds, Times, TimesThatLast

FourSides = Annotated[list[Positive], Field(min_length=4, max_length=4)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
#: Operations of one site update by the usual count (docs/method/su3.md).
FLOPS_OF_SITE_UPDATE = 16_272
#: How often a step turns the momenta.
TURNS_OF_STEP = {"leapfrog": 1, "omelyan": 2, "omelyan4": 4}
#: Fewer values do not know their own spread.
FEWEST_VALUES = 8
#: Of Wolff's window: how much longer correlations may last than their integrated time says.
WINDOW_FACTOR = 1.5


def error_of_mean(values: Sequence[float]) -> float:
    """Return the error of a mean of values that depend on those before them.

    By their autocorrelation, up to the distance from which on it is noise (Wolff 2004, equations
    31 to 52), and never less than that of independent values; 0 where there are too few. As
    benchmarks/su3/report.c has it.
    """
    count = len(values)
    if count < FEWEST_VALUES:
        return 0.0
    mean = 0.0
    for value in values:
        mean += value / count
    deviations = [value - mean for value in values]
    variance = _autocovariance(deviations, 0)
    if variance <= 0:
        return 0.0
    integrated, distance = 0.5, 0
    while True:
        distance += 1
        integrated += _autocovariance(deviations, distance) / variance
        if distance >= count // 2 or _window_suffices(integrated, distance, count):
            break
    # The mean was taken of the same values, which makes all covariances too small.
    unbiased = 1 + (2 * distance + 1) / count
    correlated = 2 * integrated * variance * unbiased / count
    return math.sqrt(max(correlated, variance / (count - 1)))


def _autocovariance(deviations: Sequence[float], distance: int) -> float:
    total = 0.0
    # One after the other as the program adds them: a sum of another order could end at another
    # distance.
    for one, other in zip(deviations, deviations[distance:], strict=False):
        total += one * other
    return total / (len(deviations) - distance)


def _window_suffices(integrated: float, distance: int, count: int) -> bool:
    """Return whether what is summed has all of the correlation that is worth its noise."""
    if integrated <= 0.5:
        return True
    time = WINDOW_FACTOR / math.log((2 * integrated + 1) / (2 * integrated - 1))
    return math.exp(-distance / time) < time / math.sqrt(distance * count)


def binned_error(values: Sequence[float]) -> float:
    """Return the error that earlier programs printed, which was up to 1.6 times too large.

    The largest standard error of the means of bins of 1, 2, 4, … values, as long as there are
    enough bins; 0 where there are too few values.
    """
    bins, largest = list(values), 0.0
    while len(bins) >= FEWEST_VALUES:
        largest = max(largest, statistics.stdev(bins) / math.sqrt(len(bins)))
        bins = [(one + other) / 2 for one, other in zip(bins[::2], bins[1::2], strict=False)]
    return largest


def mean_exponential(delta_h: Sequence[float]) -> float:
    """Return the mean of exp(-dH), or the largest double if it overflows."""
    try:
        return min(sum(math.exp(-change) / len(delta_h) for change in delta_h), sys.float_info.max)
    except OverflowError:
        return sys.float_info.max


class Su3Setting(Record):
    """What was simulated, and how; step size and beta have no unit."""

    lattice: FourSides
    grid: FourSides
    own_sites: Positive
    beta: NotNegative
    steps: Positive
    step_size: NotNegative
    integrator: Literal["leapfrog", "omelyan", "omelyan4"]
    exchange: Literal["ssend-irecv", "isend-irecv", "persistent", "neighbourhood"]
    precision: Literal["double", "single"]
    instructions: Literal["portable", "avx2", "avx512"]

    @property
    def ranks(self) -> int:
        """Return how many ranks the grid has."""
        return math.prod(self.grid)

    @property
    def sites(self) -> int:
        """Return the number of the lattice's sites."""
        return math.prod(self.lattice)

    @model_validator(mode="after")
    def grid_divides_lattice(self) -> Su3Setting:
        """Refuse a grid that does not divide the lattice into the ranks' own sites."""
        if any(side % ranks for side, ranks in zip(self.lattice, self.grid, strict=True)):
            raise ValueError(f"a grid of {self.grid} does not divide {self.lattice} sites")
        if self.own_sites * self.ranks != self.sites:
            raise ValueError(
                f"{self.ranks} ranks with {self.own_sites} sites do not make up the lattice"
            )
        return self


class Su3Result(Su3Setting):
    """Trajectories of a gauge field."""

    record: Literal["result"]
    operation: Literal["su3"]
    trajectories: Positive
    warmups: Count
    first_trajectory: Count
    start: Literal["cold", "hot"]
    accept: bool
    plaquettes: list[Difference]
    plaquette: Difference
    plaquette_error: NotNegative
    delta_h: list[Difference]
    exp_minus_delta_h: NotNegative
    accepted: Count
    unitarity_deviation: NotNegative
    time_s: TimesThatLast
    wall_s: Seconds
    cpu_by_rank_s: list[Seconds]
    exchange_by_rank_s: list[Seconds]
    site_updates: Positive
    flops: Positive
    moved_bytes: Count
    verified_bytes: Count

    @property
    def iterations(self) -> int:
        """Return the length of the series of single times."""
        return self.trajectories

    @property
    def series(self) -> str:
        """Return the name of a launch's only series."""
        return ""

    @model_validator(mode="after")
    def one_entry_each(self) -> Su3Result:
        """Refuse a result that does not describe every rank and trajectory."""
        if {len(self.cpu_by_rank_s), len(self.exchange_by_rank_s)} != {self.ranks}:
            raise ValueError("the lists do not have one entry for each rank")
        if {len(self.plaquettes), len(self.delta_h)} != {self.trajectories}:
            raise ValueError("the lists do not have one entry for each trajectory")
        if not self.accepted <= self.trajectories:
            raise ValueError(f"{self.accepted} of {self.trajectories} trajectories were accepted")
        return self

    @model_validator(mode="after")
    def counts_agree(self) -> Su3Result:
        """Refuse bytes that were not verified, a wrong mean, and counts that do not follow."""
        if self.moved_bytes != self.verified_bytes:
            raise ValueError(
                f"an exchange moves {self.moved_bytes} bytes, and {self.verified_bytes} were "
                "verified"
            )
        updates = self.sites * self.steps * self.trajectories * TURNS_OF_STEP[self.integrator]
        if self.site_updates != updates or self.flops != updates * FLOPS_OF_SITE_UPDATE:
            raise ValueError(f"site_updates and flops are not those of {updates} site updates")
        mean = math.fsum(self.plaquettes) / self.trajectories
        if not math.isclose(mean, self.plaquette, rel_tol=0, abs_tol=1e-9):
            raise ValueError(f"the plaquette is {self.plaquette}, the mean of its list {mean}")
        return self

    @model_validator(mode="after")
    def statistics_follow(self) -> Su3Result:
        """Refuse an error and a mean of exp(-dH) that are not those of the trajectories."""
        said, error = self.plaquette_error, error_of_mean(self.plaquettes)
        if not any(
            math.isclose(one, said, rel_tol=1e-6, abs_tol=1e-12)
            for one in (error, binned_error(self.plaquettes))
        ):
            raise ValueError(f"plaquette_error is {said}, that of the plaquettes {error}")
        mean = mean_exponential(self.delta_h)
        if not math.isclose(mean, self.exp_minus_delta_h, rel_tol=1e-8):
            raise ValueError(
                f"exp_minus_delta_h is {self.exp_minus_delta_h}, the mean of delta_h gives {mean}"
            )
        return self


class Su3Iterations(Record):
    """The times of a field's trajectories, in seconds."""

    record: Literal["iterations"]
    operation: Literal["su3"]
    lattice: FourSides
    time_s: Times


class Su3Proof(Su3Setting):
    """By how much a field's dynamics violates what must hold exactly."""

    record: Literal["result"]
    operation: Literal["su3_proof"]
    proof: Literal["reversibility", "gauge"]
    deviation: NotNegative
