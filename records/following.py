"""A campaign's journal as one process reads it: each line once, however often it is needed.

Whoever measures asks many times in each round what is left. What a journal had is kept with what it
amounts to, and only what was added is read. That nothing else was changed is looked at each time
(`records.journal.Content.goes_on`); what is changed in the midst of a journal that grows meanwhile
is found by who reads it next from the beginning, as each command does.
"""

from __future__ import annotations

from pathlib import Path

from records.events import Event
from records.fold import State
from records.journal import Content, read_journal


class Following:
    """What a process knows of a campaign's journal."""

    def __init__(self, campaign: Path) -> None:
        self.campaign = campaign
        self._content: Content | None = None
        self._state = State()
        #: How many entries the state has taken in.
        self._folded = 0

    @property
    def content(self) -> Content | None:
        """Return what was read, None of a campaign without a journal."""
        return self._content

    @content.setter
    def content(self, content: Content | None) -> None:
        if content is not self._content:
            self._content = content
            self.fold_anew()

    def read(self) -> Content | None:
        """Read what was added; return all, None of a campaign without a journal.

        Raises JournalError if it cannot be read or is damaged; then it is read anew the next time.
        """
        try:
            self.content = read_journal(self.campaign, self._content)
        except BaseException:
            self.content = None
            raise
        return self._content

    @property
    def state(self) -> State:
        """Return what was read amounts to; it changes with the journal.

        Raises JournalError for what cannot have happened.
        """
        entries = self._content.entries if self._content else []
        for entry in entries[self._folded :]:
            try:
                self._state.apply(entry.event)
            except BaseException:
                self.fold_anew()
                raise
            self._folded += 1
        return self._state

    def expect(self, event: Event) -> None:
        """Take in what is about to be added; raise JournalError for what cannot have happened."""
        try:
            self.state.apply(event)
            self._folded += 1
        except BaseException:
            self.fold_anew()
            raise

    def fold_anew(self) -> None:
        """Have the state made again, from the entries already read."""
        self._state, self._folded = State(), 0


_last = Following(Path())


def following(campaign: Path) -> Following:
    """Return what this process knows of a campaign's journal.

    It is kept of the campaign alone that was asked for last, so that whoever looks at many keeps
    nothing of those before.
    """
    global _last
    path = campaign.absolute()
    if _last.campaign != path:
        _last = Following(path)
    return _last
