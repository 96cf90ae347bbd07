"""Which launches a row of a table is of, told by the words that name its cell."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from analysis.campaign import Campaign
from analysis.launch_names import LaunchNames
from analysis.message_models import RANGE
from analysis.records import ProgramOutput


class RowLaunches:
    """The launches of a campaign by the words of a row."""

    def __init__(self, names: LaunchNames) -> None:
        """Note the words that name each cell."""
        self.names = names
        self._cells: dict[str, list[tuple[str, str, frozenset[str]]]] = defaultdict(list)
        for experiment, cell, name in names.by_cell:
            self._cells[name].append((experiment, cell, frozenset(cell.split())))
        self._known: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}

    def of(
        self, words: str, implementation: str, experiments: Iterable[str] | None = None
    ) -> list[str]:
        """Return the launches of the cells that words name, those of a cell as one.

        Those of a sweep's row name no range of sizes: it is of all of them. Without words they are
        all of the experiments, or of the campaign.
        """
        key = (words, implementation, tuple(experiments or ()))
        if key not in self._known:
            of_words = set(words.split())
            if not any(word.startswith(f"{RANGE}=") for word in of_words):
                own = (part for _, _, parts in self._cells[implementation] for part in parts)
                of_words |= {part for part in own if part.startswith(f"{RANGE}=")}
            self._known[key] = [
                self.names.every(experiment, cell, implementation)
                for experiment, cell, parts in self._cells[implementation]
                if (parts <= of_words if words else not key[2] or experiment in key[2])
            ]
        return self._known[key]

    def of_cells(self, cells: Iterable[str], implementation: str) -> list[str]:
        """Return the launches of several cells, those of each cell as one."""
        return list(dict.fromkeys(name for cell in cells for name in self.of(cell, implementation)))


def cells_with(
    campaign: Campaign, kinds: type | tuple[type, ...], oversubscribed: bool = False
) -> dict[str, tuple[str, ...]]:
    """Return the cells by implementation whose sound launches have results of some kinds.

    With `oversubscribed` also those of more ranks than processors.
    """
    found: dict[str, dict[str, None]] = defaultdict(dict)
    for launch in campaign.sound():
        if not isinstance(launch.output, ProgramOutput):
            continue
        if launch.record.oversubscribed and not oversubscribed:
            continue
        if any(isinstance(result, kinds) for result in launch.output.results):
            found[launch.record.implementation][launch.record.cell] = None
    return {name: tuple(cells) for name, cells in found.items()}
