"""A file that cannot be read is as old as what is left of it says, or its name, and no newer."""

import pytest

from records.foreign.dating import Unreadable, dated, time_told
from records.foreign.run import NoRun, Run

DAY = 1767225600.0


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"context": {"date": "2026-01-01T00:00:00+00:00", "host_na', DAY),
        ('{"session_info": {"uuid": "x", "time_start_unix": 1767225600.0, "ti', DAY),
        ('{"session_info": {"time_start_unix": 17672256', None),
        ('{"date": "yesterday at 10"', None),
        ("a_value|job_completion_time\n1|2025-01-01T00:00:00\n1|2026-01-01T00:00:00\n1|20", DAY),
        ("srun: error: node failed", None), ("", None), ("{", None),
        ("2026-13-45T99:00:00", None), ('{"date": "' + "9" * 40 + '"', None),
    ],
)  # fmt: skip
def test_what_is_left_of_a_file_tells_when_it_ran(text: str, told: float | None) -> None:
    assert time_told(text) == told


def began(name: str, times: dict[str, float], changed: float, told: float | None = None) -> float:
    runs = [Run(source, (), time, source=source) for source, time in times.items()]
    lost = NoRun("it is damaged", True, where=name, source=name)
    [found] = dated([Unreadable(lost, told, changed)], runs)
    assert found.began_utc is not None
    return found.began_utc


def test_a_name_between_others_is_as_old_as_they_are() -> None:
    nights = {f"night-{day}.json": DAY + 86400 * day for day in (1, 2, 3, 5, 10)}
    assert began("night-4.json", nights, 9e9) == nights["night-3.json"]
    assert began("night-0.json", nights, 9e9) < nights["night-1.json"]
    # Behind all of them it is no older than the last, however old its file seems.
    assert began("night-11.json", nights, 0.0) == nights["night-10.json"]
    assert began("night-11.json", nights, 9e9) == 9e9
    assert began("night-4.json", nights, 9e9, told=DAY) == DAY


def test_names_without_an_order_date_nothing() -> None:
    shuffled = {f"{name}.json": DAY + at for at, name in enumerate((7, 2, 9, 1, 5))}
    few = {f"{name}.json": DAY + name for name in (1, 2, 9)}
    for times in (shuffled, few, {}):
        assert began("3.json", times, 9e9) == 9e9
