"""Compare our programs' times with those of third-party programs.

Each side is a list of launches, and a launch has one or more times for each message size: averages
over a loop, in seconds. A launch's least time counts, as NetPIPE reports the least of its trials.
The programs took turns, so launches of one turn are close together and what drifts or happens once
is in both, or in one turn alone: what counts is the median over the turns of our time divided by
the other's, with its interval (order statistics). A ratio outside the tolerance whose interval
reaches inside proves neither disagreement nor agreement: it fails with another sentence.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Annotated, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from records.program_output import explain
from records.yaml_text import from_yaml

#: The times of one message size in bytes, in seconds.
Times = Mapping[int, Sequence[float]]
Factor = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Size = Annotated[int, Field(ge=0)]


class ReasonsError(ValueError):
    """The table of documented reasons cannot be used; the text names the file and the place."""


class _StrictModel(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Reason(_StrictModel):
    """Why times may differ more than the tolerance somewhere, and by how much at most."""

    operation: str
    #: The other program.
    program: str
    #: A site's `launch`: `mpiexec` is shared memory in one container, `srun` and `mpirun` are one
    #: container a rank.
    launch: Literal["mpiexec", "srun", "mpirun"] | None = None
    #: Families of implementations; all if none is named.
    families: list[str] = []
    #: Sites, if a site's network is the reason; all if none is named.
    sites: list[str] = []
    #: The message sizes in bytes, both included.
    sizes: tuple[Size, Size]
    #: The least and the largest allowed ratio of our time to the other's.
    ratio: tuple[Factor, Factor]
    reason: Annotated[str, Field(min_length=40)]

    @model_validator(mode="after")
    def ordered(self) -> Reason:
        """Refuse ranges that end before they begin, and ones that do not allow for agreement."""
        if self.sizes[0] > self.sizes[1]:
            raise ValueError("sizes: the first is above the last")
        if not self.ratio[0] <= 1 <= self.ratio[1]:
            raise ValueError("ratio: 1 is not between the least and the most")
        return self


class Reasons(_StrictModel):
    """The tolerance, as a fraction of the other program's time, and the documented reasons."""

    tolerance: Annotated[float, Field(gt=0, lt=1)]
    reasons: list[Reason]


def read_reasons(path: Path) -> Reasons:
    """Return the documented reasons; raises ReasonsError."""
    try:
        return Reasons.model_validate(from_yaml(path.read_text()))
    except OSError as error:
        raise ReasonsError(f"{path} cannot be read: {error.strerror}") from None
    except yaml.YAMLError as error:
        raise ReasonsError(f"{path}: not YAML: {' '.join(str(error).split())}") from None
    except ValidationError as error:
        raise ReasonsError(f"{path}: {explain(error)}") from None


@dataclass(frozen=True)
class Circumstances:
    """Where two programs were compared, and which; see Reason."""

    operation: str
    program: str
    launch: str
    family: str
    site: str


@dataclass(frozen=True)
class Agreement:
    """The two times of one message size, in seconds, and the allowed ratio of ours to theirs."""

    message_bytes: int
    #: The medians of the launches.
    ours_s: float
    theirs_s: float
    #: The median over the turns of our time divided by theirs, and its interval.
    ratio: float
    interval: tuple[float, float]
    allowed: tuple[float, float]
    #: The documented reason that widened `allowed`, if any.
    reason: str | None

    @property
    def holds(self) -> bool:
        """Return whether the ratio is allowed."""
        return self.allowed[0] <= self.ratio <= self.allowed[1]

    @property
    def shown(self) -> bool:
        """Return whether the whole interval of the ratio is allowed."""
        return self.allowed[0] <= self.interval[0] and self.interval[1] <= self.allowed[1]

    @property
    def can_be_told(self) -> bool:
        """Return whether the interval lies wholly on one side of the allowed range."""
        return self.interval[1] < self.allowed[0] or self.interval[0] > self.allowed[1]


def times_by_size(pairs: Iterable[tuple[int, float]]) -> dict[int, list[float]]:
    """Gather (message size in bytes, time in seconds) by size."""
    found: dict[int, list[float]] = {}
    for size, time in pairs:
        found.setdefault(size, []).append(time)
    return found


def best_of_launches(launches: Sequence[Times]) -> dict[int, list[float]]:
    """Return each launch's least time, by message size."""
    return times_by_size((size, min(times)) for one in launches for size, times in one.items())


def compare(
    ours: Sequence[Times], theirs: Sequence[Times], reasons: Reasons, where: Circumstances
) -> list[Agreement]:
    """Return the comparison of every message size.

    Each side has one launch of each turn, in the turns' order. Raises ValueError with a sentence
    unless both have the same message sizes and the same number of launches.
    """
    sizes = [[sorted(launch) for launch in side] for side in (ours, theirs)]
    if sizes[0] != sizes[1] or not any(sizes[0]):
        raise ValueError(
            f"{where.operation}: our program measured message sizes {sizes[0]} and "
            f"{where.program} {sizes[1]}, launch by launch"
        )
    # Checks load this file whenever they are listed, and scipy takes longer than all of them.
    from inference.intervals import median_interval

    ours_best, theirs_best = best_of_launches(ours), best_of_launches(theirs)
    found = []
    for size in sorted(ours_best):
        sides = (ours_best[size], theirs_best[size])
        ratios = [one / other for one, other in zip(*sides, strict=True)]
        interval = median_interval(ratios)
        allowed, why = _allowed(size, reasons, where)
        found.append(
            Agreement(
                size, median(sides[0]), median(sides[1]), median(ratios),
                (interval.low, interval.high), allowed, why,
            )
        )  # fmt: skip
    return found


def _allowed(
    size: int, reasons: Reasons, where: Circumstances
) -> tuple[tuple[float, float], str | None]:
    least, most, why = 1 - reasons.tolerance, 1 + reasons.tolerance, None
    for reason in reasons.reasons:
        if (
            (reason.operation, reason.program) == (where.operation, where.program)
            and reason.launch in (None, where.launch)
            and (not reason.families or where.family in reason.families)
            and (not reason.sites or where.site in reason.sites)
            and reason.sizes[0] <= size <= reason.sizes[1]
        ):
            least, most = min(least, reason.ratio[0]), max(most, reason.ratio[1])
            why = reason.reason
    return (least, most), why


def disagreement(found: Sequence[Agreement], where: Circumstances) -> str | None:
    """Return a sentence about the worst size that does not agree and all others, or None."""
    beyond = sorted(
        (one for one in found if not one.holds),
        key=lambda one: max(one.ratio, 1 / one.ratio),
        reverse=True,
    )
    if not beyond:
        return None
    worst, *others = beyond
    known = f", for which {worst.reason}" if worst.reason else ""
    sentence = (
        f"{where.operation}, {worst.message_bytes} bytes: {worst.ours_s:.4g} s here, "
        f"{worst.theirs_s:.4g} s by {where.program}, ratio turn by turn {worst.ratio:.3f} "
        f"({worst.interval[0]:.3f} to {worst.interval[1]:.3f}); allowed is {worst.allowed[0]:.2f} "
        f"to {worst.allowed[1]:.2f}{known}"
    )
    if not any(one.can_be_told for one in beyond):
        sentence += ", and the interval overlaps that range: repeat it when nothing else is running"
    if others:
        sizes = ", ".join(str(one.message_bytes) for one in sorted(others, key=_size))
        sentence += f" (also beyond it: {sizes} bytes)"
    return sentence


def _size(one: Agreement) -> int:
    return one.message_bytes
