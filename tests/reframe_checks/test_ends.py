"""What ended a launch is named in one line, however much its program has written."""

import pytest

from tests.reframe_checks.conftest import StandIn
from tests.reframe_checks.rates import linpack

LONG = "x" * 2_000_000


@pytest.mark.parametrize(
    ("words", "code"),
    [(f"{LONG}\n\x1b[31msrun: error: task 0: Bus error\nForce Terminated\n", 1), (LONG, 135)],
    ids=["said by a launcher", "by the exit code"],
)
def test_a_bus_error_is_named_and_a_line_of_megabytes_is_cut(
    words: str, code: int, stand_in: StandIn
) -> None:
    stand_in.write(linpack(), words, code)
    outcome = stand_in.run(only="^SerialLinpack")
    assert outcome.code != 0
    [launch] = outcome.launches
    sentence = str(launch["sentence"])
    assert len(sentence) <= 400 and sentence.isprintable()
    assert sentence.startswith("linpack ended by a bus error (signal 7)")
    assert "df /dev/shm" in sentence
