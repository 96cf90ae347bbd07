"""A played ReFrame that is forked does, to its campaign, what one does that was started."""

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest

from campaign import __main__ as campaigns
from campaign import beginning, measuring, reframe_session
from records import schedule
from records.base import CampaignError
from records.manifest import read_manifest
from tests.campaign import conftest
from tests.campaign.test_budget import _few_looks  # noqa: F401
from tests.lanes import REALLY

#: Times differ from run to run.
TIME = re.compile(r"\d+-\d+-\d+T[\d:.]+Z")
#: What a campaign is asked for, and what each start of its ReFrame does.
CAMPAIGNS: list[tuple[tuple[str, ...], list[dict[str, Any]], list[int]]] = [
    (("--rounds", "2"), [{"killed after": 1}, {"lost after": 1}, {"outcome": "failed"}],
     [-9, 1, 0]),
    (("--rounds", "2"), [{"before": True}], [1]),
    # One that is told of its rounds.
    (("--budget", "1000s", "--seed", "3"), [{"killed after": 2}], [-9, 0]),
]  # fmt: skip


def told(root: Path, *words: str) -> tuple[object, ...]:
    """Return what a campaign keeps of its ReFrame: text, what became of launches, and starts."""
    # A campaign is named by the second in which it began.
    second = int(time.time())
    while int(time.time()) == second:
        time.sleep(0.01)
    path = beginning.new_campaign(campaigns.arguments(list(words)))[0]
    ended: object
    try:
        ended = measuring.measure(path, read_manifest(path))
    except CampaignError as error:
        ended = str(error).replace(path.name, "")
    state = schedule.state_of(path)
    assert state is not None
    starts = root / "starts"
    count = len(starts.read_text())
    starts.unlink()
    text = TIME.sub("", reframe_session.log_of(path).read_text())
    return ended, text, [(one.name, one.outcome) for one in state.of(None)], count


@pytest.mark.parametrize(("words", "plays", "first"), CAMPAIGNS)
def test_it_says_and_does_the_same(
    words: tuple[str, ...], plays: list[dict[str, Any]], first: list[int], played: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    (played / "plays.json").write_text(json.dumps(plays))
    codes: list[int] = []
    end = reframe_session.ReframeSession.end

    def noted(session: reframe_session.ReframeSession) -> int:
        is_running = session.is_running
        code = end(session)
        codes.extend([code] if is_running else [])
        return code

    monkeypatch.setattr(reframe_session.ReframeSession, "end", noted)
    forked = told(played, *words), codes.copy()
    codes.clear()
    monkeypatch.setenv(REALLY, "1")
    monkeypatch.setattr(conftest, "Forked", lambda *_: pytest.fail("it was to be started"))
    assert forked == (told(played, *words), codes)
    assert codes[: len(first)] == first
