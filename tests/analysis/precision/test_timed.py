"""What of a launch's time its program timed, in a sample of a real campaign."""

from pathlib import Path

import pytest

from analysis.precision.timed import timed_table
from records.campaign import read_campaign
from records.program_output import ProgramOutput
from records.sample import sample_folder
from records.timed import timed_s

PROJECT = Path(__file__).resolve().parents[3]


def test_every_program_times_a_part_of_its_launch() -> None:
    campaign = read_campaign(sample_folder(PROJECT))
    table = timed_table(campaign)
    assert table
    rows = {row.values[:2]: row.values[2:] for row in table.rows}
    keys = [(one.record.experiment, one.record.implementation) for one in campaign.sound()]
    assert set(rows) == set(keys)
    for name, (count, wall, timed, share) in rows.items():
        assert 0 < timed < wall and share == pytest.approx(timed / wall), name
        assert count == keys.count(name)
    # Its launches are a part of those that its rounds had.
    assert campaign.manifest.sample and "s of rounds" not in table.notes[-1]
    campaign.manifest = campaign.manifest.changed(sample=None)
    again = timed_table(campaign)
    assert again and "s of rounds" in again.notes[-1]


def test_iterations_count_as_often_as_they_were_timed() -> None:
    campaign = read_campaign(sample_folder(PROJECT))
    [echo, *_] = [one for one in campaign.sound() if one.record.experiment == "EchoTest"]
    assert isinstance(echo.output, ProgramOutput)
    # The raw iterations of the launch are those that the results summarise.
    raw = sum(sum(one.time_s) for one in echo.output.iterations)
    assert timed_s(echo.output) == pytest.approx(raw, rel=0.01)
