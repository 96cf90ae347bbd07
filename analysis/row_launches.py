"""Which launches a row of a table is of, told by the words that name its cell."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from analysis.launch_names import LaunchNames
from analysis.message_models import RANGE


class RowLaunches:
    """The launches of a campaign by the words of a row."""

    def __init__(self, names: LaunchNames) -> None:
        """Note the words that name each cell; those of a sweep's rows name no range of sizes."""
        self.names = names
        self._cells: dict[str, list[tuple[str, str, frozenset[str]]]] = defaultdict(list)
        for experiment, cell, name in names.by_cell:
            parts = frozenset(part for part in cell.split() if not part.startswith(f"{RANGE}="))
            self._cells[name].append((experiment, cell, parts))
        self._known: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}

    def of(
        self, words: str, implementation: str, experiments: Iterable[str] | None = None
    ) -> list[str]:
        """Return the launches of the cells that words name, those of a cell as one.

        Without words they are all of the experiments, or of the campaign.
        """
        key = (words, implementation, tuple(experiments or ()))
        if key not in self._known:
            of_words = set(words.split())
            self._known[key] = [
                self.names.every(experiment, cell, implementation)
                for experiment, cell, parts in self._cells[implementation]
                if (parts <= of_words if words else not key[2] or experiment in key[2])
            ]
        return self._known[key]
