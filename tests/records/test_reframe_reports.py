"""Reports of all of ReFrame's sessions are in one file, whatever a kill leaves of one."""

import json
from pathlib import Path

from records.reframe_reports import (
    BEGINNING,
    FILE,
    FOLDER,
    LAST,
    cases_in,
    keep_last,
    last_messages,
)


def leave(campaign: Path, *names: str) -> None:
    """Leave the report that a session writes at its end."""
    (campaign / FOLDER).mkdir(parents=True, exist_ok=True)
    cases = [{"display_name": name, "value": float("nan")} for name in names]
    report = json.dumps({"runs": [{"testcases": cases}]}, indent=1)
    (campaign / FOLDER / LAST).write_text(report)


def names(campaign: Path) -> list[str]:
    return [case["display_name"] for case in cases_in(campaign)]


def test_every_session_is_listed_in_one_file(tmp_path: Path) -> None:
    keep_last(tmp_path)
    assert names(tmp_path) == []
    for number in range(3):
        leave(tmp_path, f"{number} a", f"{number} b")
        keep_last(tmp_path)
        keep_last(tmp_path)
    assert names(tmp_path) == ["0 a", "0 b", "1 a", "1 b", "2 a", "2 b"]
    assert [path.name for path in (tmp_path / FOLDER).iterdir()] == [FILE]
    assert all(case["value"] is None for case in cases_in(tmp_path)), "it has no value"


def test_what_a_kill_has_cut_costs_its_session_alone(tmp_path: Path) -> None:
    leave(tmp_path, "a")
    keep_last(tmp_path)
    (tmp_path / FOLDER / LAST).write_text('{"runs": [')
    keep_last(tmp_path)
    with (tmp_path / FOLDER / FILE).open("a") as reports:
        reports.write('{"runs": [{"te')
    leave(tmp_path, "b")
    keep_last(tmp_path)
    assert names(tmp_path) == ["a", "b"]


def test_a_kill_before_the_report_is_removed_has_it_reported_once(tmp_path: Path) -> None:
    for name in "ab":
        leave(tmp_path, name)
        report = (tmp_path / FOLDER / LAST).read_bytes()
        keep_last(tmp_path)
        (tmp_path / FOLDER / LAST).write_bytes(report)
        keep_last(tmp_path)
        assert not (tmp_path / FOLDER / LAST).exists()
    assert names(tmp_path) == ["a", "b"]


def test_campaigns_of_a_report_a_round_are_read(tmp_path: Path) -> None:
    for number in (1, 2):
        leave(tmp_path, str(number))
        (tmp_path / FOLDER / LAST).rename(tmp_path / FOLDER / f"round{number:03d}.json")
    assert names(tmp_path) == ["1", "2"]


def test_the_messages_of_a_round_are_those_after_its_line(tmp_path: Path) -> None:
    log = tmp_path / "rounds.log"
    assert last_messages(log) == ""
    log.write_bytes(f"\n{BEGINNING}1, now\nERROR: old\n\n{BEGINNING}2, now\nnew\n".encode())
    assert last_messages(log) == "new\n"
    with log.open("ab") as file:
        file.write(b"\xff" * 2_000_000)
    assert set(last_messages(log)) <= {"\N{REPLACEMENT CHARACTER}", ""}
