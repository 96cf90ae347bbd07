"""A cause is one printable line of some hundred characters, wherever it is shown."""

import json
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from records.campaign import LeftOut, read_campaign
from records.causes import LONGEST, of_signal, one_line
from tests.folders import write_launch
from tests.whole_records import launch, put_manifest


@given(st.text(max_size=3 * LONGEST) | st.text("\x1b[]m;0\x07a\n\t\u202e", max_size=60))
def test_any_text_becomes_one_printable_line(text: str) -> None:
    line = one_line(text)
    assert line.isprintable() and len(line) <= LONGEST
    assert one_line(line) == line and line == line.strip()


def test_what_can_be_read_stays() -> None:
    assert (
        one_line("x: \x1b[31mno such\x1b[0m\n file ü\x00")
        == "x: no such file ü\N{REPLACEMENT CHARACTER}"
    )
    assert one_line("word " * 50) == ("word " * 50).strip()


def test_a_line_of_five_megabytes_is_not_a_sentence_of_them(tmp_path: Path) -> None:
    began = time.process_time()
    long = "x" * 5_000_000
    put_manifest(tmp_path)
    record = launch(outcome="failed", sentence=f"dgemm ended with exit code 1: {long}")
    kept = write_launch(tmp_path, record, {}) / "launch.json"
    assert time.process_time() - began < 5
    assert kept.stat().st_size < 5_000
    facts = json.loads(kept.read_text())
    # Of a version that cut nothing.
    kept.write_text(json.dumps(facts | {"sentence": f"a\nb\x1b[1m{long}"}))
    [problem] = read_campaign(tmp_path).problems
    [failed] = read_campaign(tmp_path).launches
    assert failed.record.sentence and failed.record.sentence.startswith("a b xxx")
    assert len(failed.record.sentence) == LONGEST and failed.record.sentence.isprintable()
    assert len(problem.sentence) == LONGEST
    assert LeftOut("x", "a\nb").sentence == "a b"


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (135, ""), (1, "task 0: Bus error"), (7, "EXIT STRING: Bus error (signal 7)"),
        (None, "exited on signal 7 (Bus error)"), (1, "caught SIGBUS"),
    ],
)  # fmt: skip
def test_a_bus_error_is_named(code: int | None, said: str) -> None:
    cause = of_signal(code, said)
    assert cause is not None and "df /dev/shm" in cause


def test_other_ends_are_no_bus_error() -> None:
    for code, said in ((0, "Bus error"), (1, "no bus here"), (137, "signal 79"), (1, "")):
        assert of_signal(code, said) is None
