"""What of a launch's time its program timed, in a sample of a real campaign."""

from pathlib import Path
from typing import Any

import pytest

from analysis.precision.timed import between_s, said_between, timed_table
from records.campaign import read_campaign
from records.communication import PingPong
from records.files import utc_of
from records.launch import LaunchRecord
from records.program_output import ProgramOutput
from records.timed import timed_s, warm_ups_s
from tests.busy_campaign import busy_campaign
from tests.whole_records import launch

PROJECT = Path(__file__).resolve().parents[3]


def test_every_program_times_a_part_of_its_launch() -> None:
    campaign = read_campaign(busy_campaign())
    table = timed_table(campaign)
    assert table
    rows = {row.values[:2]: row.values[2:] for row in table.rows}
    keys = [(one.record.experiment, one.record.implementation) for one in campaign.sound()]
    assert set(rows) == set(keys)
    for name, (count, wall, timed, share, warm) in rows.items():
        assert 0 < timed <= timed + warm < wall and share == pytest.approx(timed / wall), name
        assert count == keys.count(name)
    # Its launches are a part of those that its rounds had.
    assert campaign.manifest.sample and "s of rounds" not in table.notes[-1]
    campaign.manifest = campaign.manifest.changed(sample=None)
    again = timed_table(campaign)
    assert again and any("s of rounds" in note for note in again.notes)


def test_iterations_count_as_often_as_they_were_timed() -> None:
    campaign = read_campaign(busy_campaign())
    [echo, *_] = [one for one in campaign.sound() if one.record.experiment == "EchoTest"]
    assert isinstance(echo.output, ProgramOutput)
    # The raw iterations of the launch are those that the results summarise.
    raw = sum(sum(one.time_s) for one in echo.output.iterations)
    assert timed_s(echo.output) == pytest.approx(raw, rel=0.01)
    # Each size has so many warm-ups for so many iterations.
    [share] = {
        one.warmup / one.iterations for one in echo.output.results if isinstance(one, PingPong)
    }
    assert warm_ups_s(echo.output) == pytest.approx(share * timed_s(echo.output)) and share > 0
    of_hpl = next(one for one in campaign.sound() if one.record.experiment == "Linpack")
    assert of_hpl.output is not None and warm_ups_s(of_hpl.output) == 0


def at(position: int | None, began_s: float, number: int = 1) -> LaunchRecord:
    """Return the record of a launch of two seconds."""
    facts: dict[str, Any] = {
        "round": number, "position": position, "wall_s": 2.0,
        "started_utc": utc_of(1e9 + began_s), "ended_utc": utc_of(1e9 + began_s + 2.0),
    }  # fmt: skip
    return launch(**facts)


def test_between_launches_are_those_that_followed_one_another() -> None:
    of_round = [at(2, 2.5), at(1, 0.0), at(3, 5.5), at(5, 11.0), at(None, 13.5)]
    # The fourth is not there, and the first of another round did not follow.
    assert between_s([*of_round, at(1, 20.0, number=2)]) == pytest.approx([0.5, 1.0])
    assert said_between(of_round) == (
        "Between the end of a launch and the beginning of the next in its round: 0.75 s (median of "
        "2; middle half 0.625 to 0.875 s)."
    )
    # The clock was set back in the second.
    assert between_s([at(1, 0.0), at(2, 1.0)]) == [] and said_between([at(1, 0.0)]) is None
