"""A ReFrame that is played in the campaign's own process."""

import os

import pytest

from campaign import leftovers, measuring, rounds
from records.base import CampaignError
from tests.campaign.played_reframe import measure


def play_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Play ReFrame in the campaign's own process, as one that dies of what it cannot write.

    It takes no time then to start one, and none is looked for.
    """

    def measured(self: rounds.ReframeSession, number: int) -> int:
        self.log.parent.mkdir(exist_ok=True)
        os.environ["WYEAST_CAMPAIGN"] = str(self.campaign)
        try:
            return measure(self.root, number)
        except (CampaignError, OSError) as error:
            print(error)
            return 1

    monkeypatch.setenv("WYEAST_CAMPAIGN", "")
    monkeypatch.setattr(rounds.ReframeSession, "measure", measured)
    monkeypatch.setattr(leftovers, "end_all", lambda *_: 0)
    for room in (rounds, measuring):
        monkeypatch.setattr(room, "end_leftovers", lambda *_, **__: 0)
