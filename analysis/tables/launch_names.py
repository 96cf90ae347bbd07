"""The names of many launches in few words: `round[001-003]_<cell>_<implementation>`.

The brackets are those of Slurm's lists of hosts: numbers and ranges, separated by commas.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable
from typing import Any, Protocol

from records.campaign import Campaign

NUMBERED = re.compile(r"round(\d+)(_.*)", re.DOTALL)


class NamedCell(Protocol):
    """What is asked of a compared cell to find its launches."""

    experiment: str
    launch_cell: str
    log_ratios: dict[str, dict[int, float]]
    values: dict[str, dict[int, dict[int, Any]]]
    refined: dict[str, dict[int, dict[int, Any]]]


class KeyedRow(Protocol):
    """What is asked of a table's row to find its launches."""

    @property
    def implementation(self) -> str | None:
        """The implementation, None of what is not of the campaign."""

    @property
    def cells(self) -> tuple[str, ...]:
        """The cells that its numbers were measured in."""


def ranges(numbers: list[str]) -> str:
    """Return numbers of equal length, in order, with runs as ranges: 001-003,005."""
    runs: list[list[str]] = []
    for number in numbers:
        if runs and int(number) == int(runs[-1][-1]) + 1:
            runs[-1] = [runs[-1][0], number]
        else:
            runs.append([number])
    return ",".join("-".join(run) for run in runs)


def folded(names: Iterable[str]) -> str:
    """Return names with a space between them, those that differ by their round alone as one."""
    rounds: dict[tuple[int, str], set[str]] = defaultdict(set)
    others = []
    for name in names:
        if found := NUMBERED.fullmatch(name):
            rounds[len(found[1]), found[2]].add(found[1])
        else:
            others.append(name)
    parts = [
        f"round{next(iter(numbers))}{rest}" if len(numbers) == 1
        else f"round[{ranges(sorted(numbers))}]{rest}"
        for (_, rest), numbers in rounds.items()
    ]  # fmt: skip
    return " ".join([*parts, *sorted(others)])


class LaunchNames:
    """The names of a campaign's sound launches by what they measured."""

    def __init__(self, campaign: Campaign) -> None:
        """Note every sound launch."""
        #: (experiment, cell, implementation) -> round -> name.
        self.by_cell: dict[tuple[str, str, str], dict[int, str]] = defaultdict(dict)
        for record in (launch.record for launch in campaign.sound()):
            key = (record.experiment, record.cell, record.implementation)
            self.by_cell[key][record.round] = record.launch
        #: (cell, implementation) -> its experiment, which a cell's name begins with.
        self.experiments = {(cell, name): experiment for experiment, cell, name in self.by_cell}
        self._known: dict[tuple[tuple[str, str, str], tuple[int, ...]], str] = {}

    def of(self, cell: NamedCell, implementation: str, rounds: Iterable[int]) -> str:
        """Return the launches of some rounds of a cell, folded."""
        return self._of((cell.experiment, cell.launch_cell, implementation), tuple(rounds))

    def every(self, experiment: str, cell: str, implementation: str) -> str:
        """Return all sound launches of a cell, folded."""
        key = (experiment, cell, implementation)
        return self._of(key, tuple(self.by_cell.get(key, {})))

    def of_row(self, row: KeyedRow, experiments: Collection[str] = ()) -> list[str]:
        """Return the launches of a row's cells, those of a cell as one.

        A row without cells takes those of its implementation in the experiments.
        """
        name = row.implementation or ""
        keys = [(self.experiments.get((cell, name), ""), cell, name) for cell in row.cells] or [
            key for key in self.by_cell if key[2] == name and key[0] in experiments
        ]
        return list(dict.fromkeys(found for key in keys if (found := self.every(*key))))

    def _of(self, key: tuple[str, str, str], rounds: tuple[int, ...]) -> str:
        # A launch of many series and sizes is in many rows.
        if (key, rounds) not in self._known:
            names = self.by_cell.get(key, {})
            self._known[key, rounds] = folded(names[one] for one in rounds if one in names)
        return self._known[key, rounds]

    def of_size(self, cell: NamedCell, implementation: str, message_bytes: int) -> str:
        """Return the launches that a median at a message size is of."""
        rounds = [
            number
            for values in (cell.values, cell.refined)
            for number, of in values.get(implementation, {}).items()
            if message_bytes in of
        ]
        return self.of(cell, implementation, rounds)

    def of_group(self, cells: Iterable[NamedCell], compared: str, implementation: str) -> str:
        """Return an implementation's launches in the rounds in which another one is compared.

        Each cell counts with the rounds that it has, as in `compare.ratio_over`.
        """
        having = [cell for cell in cells if cell.log_ratios.get(compared)]
        found = dict.fromkeys(
            self.of(cell, implementation, sorted(cell.log_ratios[compared])) for cell in having
        )
        return " ".join(name for name in found if name)
