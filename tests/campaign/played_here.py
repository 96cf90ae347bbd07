"""A ReFrame that is played in the campaign's own process."""

import os

import pytest

from campaign import leftovers, reframe_session, resuming, rounds
from records.base import CampaignError
from tests.campaign.played_reframe import measure


def play_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Play ReFrame in the campaign's own process, as one that dies of what it cannot write.

    It takes no time then to start one, and none is looked for.
    """

    def measured(self: reframe_session.ReframeSession, number: int) -> int:
        self.log.parent.mkdir(exist_ok=True)
        os.environ["WYEAST_CAMPAIGN"] = str(self.campaign)
        try:
            return measure(self.root, number)
        except (CampaignError, OSError) as error:
            print(error)
            return 1

    monkeypatch.setenv("WYEAST_CAMPAIGN", "")
    monkeypatch.setattr(reframe_session.ReframeSession, "measure", measured)
    for module in (leftovers, resuming):
        monkeypatch.setattr(module, "end_all", lambda *_: 0)
    for module in (rounds, resuming):
        monkeypatch.setattr(module, "end_leftovers", lambda *_, **__: 0)
