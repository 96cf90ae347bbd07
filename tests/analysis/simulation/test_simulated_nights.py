"""The rates of docs/method/nights.md, with fewer trials than there."""

from analysis.simulation.nights import false_alarms, found_slowdowns


def test_thirty_nights_without_change_rarely_alarm() -> None:
    wrong, tripped = false_alarms("normal", 30, 4, 30)
    assert wrong <= 0.1 and 0 < tripped < 3
    wrong, _ = false_alarms("normal", 30, 4, 20, shared=1.0)
    assert wrong <= 0.15


def test_measuring_again_is_what_holds_the_rate() -> None:
    """One night of ten is disturbed: hardly any such night is confirmed, most trip."""
    wrong, tripped = false_alarms("bursts", 30, 4, 15)
    assert tripped > 1 and wrong < tripped


def test_a_slowdown_of_a_tenth_is_found() -> None:
    assert found_slowdowns("normal", 30, 10, 30) >= 0.9
    assert found_slowdowns("normal", 30, 10, 30, slowdown=0.0) == 0
    # Where nights differ by 5%, a tenth is not told from them.
    assert found_slowdowns("normal", 10, 10, 30, spread=0.05) < 0.2
