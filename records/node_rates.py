"""Records of what the nodes' cores and memory do by themselves, and of ORNL's Linpack."""

from __future__ import annotations

import math
from statistics import median
from typing import Annotated, Literal

from pydantic import Field, model_validator

from records.base import Count, Positive, Record, Seconds, TimeSummary

Hertz = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Operations = Annotated[float, Field(gt=0, allow_inf_nan=False)]
#: A residual of LINPACK's kind, or of HPL's, is about 1; HPL refuses 16.
LARGEST_RESIDUAL = 16.0
#: What STREAM counts of each element of 8 bytes: those that a loop reads and those that it writes.
STREAM_BYTES = {"copy": 16, "scale": 16, "add": 24, "triad": 24}
RELATIVE_ROUNDING = 1e-12


class Rate(Record):
    """Computation by all ranks at once: an iteration takes as long as its slowest rank."""

    record: Literal["result"]
    ranks: Positive
    iterations: Positive
    warmup: Count
    time_s: TimeSummary
    median_by_rank_s: list[Seconds]
    clock_hz_by_rank: list[Hertz]

    @model_validator(mode="after")
    def one_entry_per_rank(self) -> Rate:
        """Refuse a result that does not describe every rank, or that took no time."""
        if not len(self.median_by_rank_s) == len(self.clock_hz_by_rank) == self.ranks:
            raise ValueError("the lists do not have one entry for each rank")
        if min(self.median_by_rank_s) <= 0 or self.time_s.min <= 0:
            raise ValueError("a rank took no time")
        return self

    @property
    def clock_hz(self) -> float:
        """Return the median of the ranks' clocks, in Hz."""
        return median(self.clock_hz_by_rank)


class DgemmResult(Rate):
    """Products of square matrices by the BLAS that HPL uses."""

    operation: Literal["dgemm"]
    n: Positive
    #: Of one rank's product: 2 n^3.
    flop: Positive
    checked_entries: Positive
    #: The largest difference of an entry to a dot product, as a part of what rounding allows.
    error: Annotated[float, Field(ge=0, allow_inf_nan=False)]

    @model_validator(mode="after")
    def right(self) -> DgemmResult:
        """Refuse another count of operations, and a wrong product."""
        if self.flop != 2 * self.n**3:
            raise ValueError(f"{self.flop} operations are not the 2 n^3 of order {self.n}")
        if self.error > 1:
            raise ValueError(
                f"an entry is off by {self.error:.6g} times what rounding allows; 1 is the most "
                "(n eps times the sum of the products' sizes): the product is wrong"
            )
        return self

    @property
    def rate_flops(self) -> float:
        """Return the rate of all ranks together in FLOP/s: the sum of their own rates."""
        return sum(self.flop / seconds for seconds in self.median_by_rank_s)


class StreamResult(Rate):
    """One of STREAM's loops (McCalpin 1995) over arrays beyond the caches."""

    operation: Literal["stream"]
    kernel: Literal["copy", "scale", "add", "triad"]
    array_bytes: Positive
    #: Of one rank, as McCalpin counts.
    moved_bytes: Positive
    verified_elements: Positive

    @model_validator(mode="after")
    def whole(self) -> StreamResult:
        """Refuse another count of bytes, and elements that were not compared."""
        if self.verified_elements * 8 != self.array_bytes:
            raise ValueError(
                f"{self.verified_elements} elements were verified, not all of {self.array_bytes} "
                "bytes"
            )
        if self.moved_bytes != self.verified_elements * STREAM_BYTES[self.kernel]:
            raise ValueError(f"{self.moved_bytes} bytes are not what {self.kernel} moves")
        return self

    @property
    def bandwidth(self) -> float:
        """Return the median bandwidth of all ranks together, in B/s."""
        return self.ranks * self.moved_bytes / self.time_s.median

    @property
    def best_bandwidth(self) -> float:
        """Return the best iteration's bandwidth, in B/s: what STREAM reports."""
        return self.ranks * self.moved_bytes / self.time_s.min


class LinpackSolve(Rate):
    """A dense system as in ORNL 1996, Table 3.1: by columns, or by LAPACK."""

    operation: Literal["linpack"]
    method: Literal["columns", "lapack"]
    n: Positive
    #: 2/3 n^3 + 2 n^2, as LINPACK counts whatever the method.
    flop: Operations
    #: How many systems one timing solved; times are of one.
    repetitions: Positive
    residual: Annotated[float, Field(ge=0, allow_inf_nan=False)]

    @model_validator(mode="after")
    def right(self) -> LinpackSolve:
        """Refuse another count of operations, and a wrong solution."""
        counted = 2 / 3 * self.n**3 + 2 * self.n**2
        if not math.isclose(self.flop, counted, rel_tol=RELATIVE_ROUNDING):
            raise ValueError(f"{self.flop} operations, LINPACK counts {counted}")
        if self.residual >= LARGEST_RESIDUAL:
            raise ValueError(
                f"the residual of N={self.n}, {self.method}, is {self.residual:.6g} and must be "
                f"below {LARGEST_RESIDUAL:g} (max|Ax-b| / (N max|A| max|x| eps), the LINPACK "
                "benchmark): the answer is wrong"
            )
        return self

    @property
    def rate_flops(self) -> float:
        """Return the rate of one rank in FLOP/s, by the median iteration."""
        return self.flop / self.time_s.median

    @property
    def operations_per_cycle(self) -> float:
        """Return floating-point operations per cycle of the core's measured clock."""
        return self.rate_flops / self.clock_hz
