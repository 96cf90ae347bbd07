"""Runs of other programs as samples: for each thing that was measured, one value of each run."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from inference.intervals import PRINTED_STEP, Interval, median, median_interval
from records.foreign.run import NoRun, Run, Value

#: The labels of a run that tell one series from another, unless runs are chosen by them: where it
#: ran, and on how much.
PLACE = ("system", "partition", "environ")
LAYOUT = ("num_tasks", "num_tasks_per_node", "num_cpus_per_task", "num_gpus_per_node")


@dataclass(frozen=True)
class Key:
    """What is compared: a name, its unit, where it ran, and a message size if each is judged."""

    name: str
    unit: str
    place: str = ""
    message_bytes: int | None = None

    @property
    def title(self) -> str:
        """Return it for people."""
        size = "" if self.message_bytes is None else f" {self.message_bytes:,} B"
        return f"{self.name}{size}{f' ({self.place})' if self.place else ''}"

    def may_have_lost(self, one: NoRun, chosen_by: Collection[str] = ()) -> bool:
        """Return whether what is left out may be a value of this."""
        # What failed early has no layout yet, or only defaults.
        own = [one.labels.get(name) for name in PLACE if name not in chosen_by]
        known = [name for name in own if name]
        is_known = bool(known) and len(known) == len(own)
        elsewhere = is_known and self.place.partition(", ")[0] != "+".join(known)
        return one.is_loss and one.may_be_of(self.name) and not elsewhere


@dataclass(frozen=True)
class Directions:
    """Patterns of names of which less, or more, is better, whatever the files say."""

    lower: Sequence[str] = ()
    higher: Sequence[str] = ()

    def of(self, key: Key, told: Collection[bool | None]) -> bool | str:
        """Return whether less is better, or a sentence why that is unknown."""
        named = [
            is_lower for is_lower, patterns in ((True, self.lower), (False, self.higher))
            if any(fnmatchcase(key.title, pattern) for pattern in patterns)
        ]  # fmt: skip
        known = named or sorted(one for one in set(told) if one is not None)
        if len(known) == 1:
            return known[0]
        said = "contradicts itself" if known else "is unknown"
        return (
            f"whether less or more is better {said}; say it with --lower-is-better or "
            f"--higher-is-better '{key.name}*'"
        )


@dataclass
class Sample:
    """The runs of one key: the values of each by message size."""

    runs: list[Run] = field(default_factory=list)
    values: list[Mapping[int | None, Value]] = field(default_factory=list)
    told: set[bool | None] = field(default_factory=set)

    def sizes(self) -> set[int | None]:
        """Return the sizes that most runs have."""
        counts: Counter[frozenset[int | None]] = Counter(frozenset(of) for of in self.values)
        return set(
            max(
                ((count, len(sizes), sizes) for sizes, count in counts.items()),
                default=(0, 0, frozenset[int | None]()), key=lambda one: one[:2],
            )[2]
        )  # fmt: skip

    def without_cut(self) -> list[Run]:
        """Leave out runs that lack sizes which most have, as one that was cut off; return them."""
        wanted = self.sizes()
        whole = [wanted <= of.keys() for of in self.values]
        cut = [run for run, is_whole in zip(self.runs, whole, strict=True) if not is_whole]
        self.runs = [run for run, is_whole in zip(self.runs, whole, strict=True) if is_whole]
        self.values = [of for of, is_whole in zip(self.values, whole, strict=True) if is_whole]
        return cut


#: Samples by what they are of, in the order in which the files have them.
Samples = dict[Key, Sample]


def samples_of(
    runs: Iterable[Run], chosen_by: Collection[str] = (), each_size: bool = False
) -> Samples:
    """Return the samples of runs; labels that they are `chosen_by` tell no series apart.

    `each_size` makes every message size a sample of its own.
    """
    found: Samples = defaultdict(Sample)
    for run in runs:
        place = place_of(run.labels, chosen_by)
        for one in run.measured:
            parts = [({size: value}, size) for size, value in one.values.items()]
            for values, size in parts if each_size else [(one.values, None)]:
                sample = found[Key(one.name, one.unit, place, size)]
                sample.runs.append(run)
                sample.values.append(values)
                sample.told.add(one.lower_is_better)
    return dict(found)


def place_of(labels: Mapping[str, str], chosen_by: Collection[str]) -> str:
    """Return what tells series of one name apart; labels that runs are `chosen_by` do not."""
    known = {name: labels[name] for name in (*PLACE, *LAYOUT)
             if name in labels and name not in chosen_by}  # fmt: skip
    where = "+".join(known[name] for name in PLACE if name in known)
    layout = [f"{name}={known[name]}" for name in LAYOUT if name in known]
    return ", ".join([where, *layout] if where else layout)


@dataclass(frozen=True)
class Levels:
    """A logarithm for each run, better upwards, at the sizes that all of them have."""

    values: list[float]
    lower_is_better: bool

    @property
    def median(self) -> float:
        """Return the median over runs, in the unit; over several sizes of geometric means."""
        return self._amount(median(self.values))

    @property
    def interval(self) -> Interval:
        """Return the median's interval, in the unit."""
        found = median_interval(self.values)
        ends = sorted((self._amount(found.low), self._amount(found.high)))
        return Interval(ends[0], ends[1], found.coverage)

    def _amount(self, level: float) -> float:
        return math.exp(-level if self.lower_is_better else level)


def levels_of(sample: Sample, sizes: Collection[int | None], lower_is_better: bool) -> Levels:
    """Return a sample's levels: means over sizes of logarithms."""
    sign = -1 if lower_is_better else 1
    return Levels(
        [
            sign * sum(math.log(of[size].value) for size in sizes) / len(sizes)
            for of in sample.values
        ],
        lower_is_better,
    )


def step_of(samples: Sequence[Sample], sizes: Collection[int | None]) -> float:
    """Return the coarsest step of samples' levels: of a mean over sizes that are rounded each.

    The step of a size is that of the finest digits that any run has, as a number without a
    fraction may have lost it.
    """
    squares = 0.0
    for size in sizes:
        values = [of[size] for sample in samples for of in sample.values]
        share = min(one.step for one in values) / median([one.value for one in values])
        squares += share**2
    return max(PRINTED_STEP, math.sqrt(squares) / len(sizes))
