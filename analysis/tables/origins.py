"""Where a number comes from: the launches behind a cell of a table."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass

from analysis.tables.table import DIGEST_CHARACTERS, digests
from records.campaign import Campaign

#: What all entries may take of a report, in characters; rows beyond share the last one.
ROOM = 600_000
#: How many cells an entry lists by name.
MOST_CELLS = 40


@dataclass(frozen=True)
class Origin:
    """The launches of an implementation; `left` are the cells that there was no room for."""

    implementation: str
    digest: str
    launches: tuple[str, ...]
    left: int

    @property
    def characters(self) -> int:
        """Return about how long it is."""
        return 120 + sum(len(one) + 15 for one in self.launches)


@dataclass(frozen=True)
class Trace:
    """An entry of the list: what the numbers are, and from which launches."""

    id: str
    title: str
    formulas: tuple[str, ...]
    sources: tuple[Origin, ...]


class TraceList:
    """The entries that rows have asked for, in the order in which they did."""

    def __init__(self, campaign: Campaign, room: int = ROOM) -> None:
        """Begin an empty list for the numbers of a campaign."""
        self.digest = digests(campaign)
        self.room = room
        self.entries: list[Trace] = []
        self._known: dict[Hashable, str] = {}
        self._is_full = False

    def add(
        self, title: str, formulas: tuple[str, ...], launches: Mapping[str, Collection[str]]
    ) -> str:
        """Return the id of an entry, which is a new one unless there is the same."""
        sources = tuple(
            Origin(
                name, self.digest.get(name, "")[:DIGEST_CHARACTERS], tuple(of)[:MOST_CELLS],
                max(0, len(of) - MOST_CELLS),
            )
            for name, of in sorted(launches.items())
        )  # fmt: skip
        key = (title, formulas, sources)
        if key in self._known:
            return self._known[key]
        characters = 200 + sum(map(len, formulas)) + sum(source.characters for source in sources)
        if self._is_full or characters > self.room:
            return self._others()
        self.room -= characters
        self._known[key] = f"trace-{len(self.entries) + 1}"
        self.entries.append(Trace(self._known[key], title, formulas, sources))
        return self._known[key]

    def _others(self) -> str:
        """Return the id of the entry that rows share for which there is no room."""
        if not self._is_full:
            self._is_full = True
            words = (
                "the report has no room to list these: the saved tables of medians and ratios "
                "have them in launch_names and formula, and launches.csv has all launches"
            )
            every = [
                Origin(name, one[:DIGEST_CHARACTERS], (), 0) for name, one in self.digest.items()
            ]
            self.entries.append(Trace("trace-others", "Other rows", (words,), tuple(every)))
        return "trace-others"
