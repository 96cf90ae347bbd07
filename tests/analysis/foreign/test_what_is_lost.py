"""A run that failed, a variable or a size that is gone: never green, and never without a word."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from analysis.foreign.samples import Key
from records.foreign.run import NoRun
from tests.analysis.support.foreign import (
    SIZES,
    database,
    google_set,
    noisy,
    osu,
    osu_set,
    perflog,
    perflog_file,
    session,
)
from tests.analysis.support.in_process import analysis

#: Of the newest night the line that ReFrame logs if the test fails.
FAILED = "fail|2026-01-15T00:00:00+00:00|gnu|nid01|StreamTest|cpu|null|MB/s|100|-0.1|null|cluster\n"


def in_words(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize(
    ("line", "why"), [(FAILED, "StreamTest has no value: fail"), ("pass|pass|1\n", "3 fields"),
                      (FAILED.replace("null|MB/s", "99.0|MB/s")[:-3], "the line has no end")],
)  # fmt: skip
def test_the_newest_line_of_a_log_that_failed(tmp_path: Path, line: str, why: str) -> None:
    """The night before it is not called the newest, and its verdict is not the newest one's."""
    rates = [100 * one for one in noisy(14, 1)]
    done = analysis("judge", str(perflog_file(tmp_path / "S.log", perflog(rates) + line)))
    assert done.returncode == 4, done.stdout + done.stderr
    assert why in done.stdout and "failed or cannot be read" in done.stdout
    if line == FAILED:
        assert "its newest run left no value" in in_words(done.stdout)
        assert "2026-01-14T00:00:00Z, is not judged in its place" in in_words(done.stdout)
        assert "Nothing can be compared" in done.stdout


def test_an_earlier_failure_is_history(tmp_path: Path) -> None:
    rates = [100 * one for one in noisy(15, 1)]
    earlier = FAILED.replace("-15T", "-07T")
    done = analysis("judge", str(perflog_file(tmp_path / "S.log", earlier + perflog(rates))))
    assert done.returncode == 0 and "StreamTest has no value: fail" in done.stderr


def test_one_of_the_newest_session_that_failed(tmp_path: Path) -> None:
    """The others of the session are judged, and the failure is told."""
    lines = "".join(perflog([100 * one]).replace("-01T", f"-{day:02d}T")
                    for day, one in enumerate(noisy(14, 1), 1))  # fmt: skip
    done = analysis("judge", str(perflog_file(
        tmp_path / "S.log", lines + FAILED.replace("15T00:00", "14T00:10"))))  # fmt: skip
    assert done.returncode == 4 and "1 compared" in done.stdout
    assert "StreamTest has no value: fail" in done.stdout


def test_the_newest_session_in_which_everything_failed(tmp_path: Path) -> None:
    sessions = [session(day, [100 * one]) for day, one in enumerate(noisy(7, 1), 1)]
    done = analysis("judge", str(database(tmp_path / "r.db", [*sessions, session(8, [None])])))
    assert done.returncode == 4, done.stdout + done.stderr
    assert "the newest session has no value of it" in in_words(done.stdout)
    assert "it failed in sanity" in done.stdout


def test_the_newest_session_that_cannot_be_read(tmp_path: Path) -> None:
    sessions = [session(day, [100 * one]) for day, one in enumerate(noisy(7, 1), 1)]
    broken = {**session(8, [100.0]), "runs": 1}
    done = analysis("judge", str(database(tmp_path / "results.db", [*sessions, broken])))
    assert done.returncode == 4 and "its runs are not ReFrame's" in done.stdout


@pytest.mark.parametrize("text", ["", "srun: error: node failed\n", osu([10.0] * 10)[:-4]])
def test_the_newest_file_that_failed(tmp_path: Path, text: str) -> None:
    """Files without a time are in the order of their names; one that is cut ends in 1 of 10.00."""
    folder = osu_set(tmp_path / "history", 10, 9, 1)
    assert analysis("judge", str(folder)).returncode == 0
    (folder / "run10.txt").write_text(text)
    done = analysis("judge", str(folder))
    assert done.returncode == 4 and "run10.txt" in done.stdout, done.stdout + done.stderr
    assert "is not judged in its place" in in_words(done.stdout)
    (folder / "run10.txt").rename(folder / "run0.txt")
    assert analysis("judge", str(folder)).returncode == 0


def test_a_last_line_without_an_end_that_is_whole_counts(tmp_path: Path) -> None:
    folder = osu_set(tmp_path / "history", 10, 9, 1)
    (folder / "run10.txt").write_text(osu([10.0 * (1 + at / 10) for at in range(10)]).rstrip())
    assert analysis("judge", str(folder)).returncode == 0


def test_other_files_in_a_folder_are_no_failures(tmp_path: Path) -> None:
    folder = osu_set(tmp_path / "history", 10, 9, 1)
    (folder / "zz-notes.txt").write_text("hello")
    done = analysis("judge", str(folder))
    assert done.returncode == 0 and "zz-notes.txt is none of" in done.stderr


def test_the_newest_json_that_was_cut_off(tmp_path: Path) -> None:
    folder = google_set(tmp_path / "history", 100, 12, 1)
    whole = (folder / "11.json").read_text()
    (folder / "12.json").write_text(whole[:-40])
    for changed in (2e9, 1e9):
        os.utime(folder / "12.json", (changed, changed))
        done = analysis("judge", str(folder))
        assert done.returncode == 4 and "12.json: it is not JSON" in done.stdout
    # It says that it ran on another day, whatever its name is and whenever it was copied.
    (folder / "12.json").write_text(whole.replace("2026-01-12T", "2026-01-05T")[:-40])
    done = analysis("judge", str(folder))
    assert done.returncode == 0 and "12.json: it is not JSON" in done.stderr


@pytest.mark.parametrize("text", ["", "{", "srun: error: node failed\n"])
def test_an_old_damaged_file_of_a_history_that_was_copied(tmp_path: Path, text: str) -> None:
    """All files of a copy have a new time of change: the name is between those of sound ones."""
    folder = google_set(tmp_path / "history", 100, 12, 1)
    (folder / "5.json").write_text(text)
    done = analysis("judge", str(folder))
    assert done.returncode == 0 and "5.json" in done.stderr, done.stdout + done.stderr
    # One that was measured again later does not undo the order of the others.
    again = (folder / "3.json").read_text()
    (folder / "3.json").write_text(again.replace("2026-01-04T00", "2026-01-11T12"))
    done = analysis("judge", str(folder))
    assert done.returncode == 0 and "5.json" in done.stderr, done.stdout + done.stderr
    (folder / "3.json").write_text(again)
    (folder / "5.json").rename(folder / "12.json")
    os.utime(folder / "12.json", (1e9, 1e9))
    assert analysis("judge", str(folder)).returncode == 4


def test_a_damaged_file_that_nothing_dates(tmp_path: Path) -> None:
    """It may be the newest, unless it was changed before that one ran; the sentence says why."""
    folder = google_set(tmp_path / "history", 100, 12, 1)
    for number, name in enumerate("gjbkfdlcahei"):
        (folder / f"{number}.json").rename(folder / f"{name}.json")
    (folder / "m.json").write_text("{")
    done = analysis("judge", str(folder))
    assert done.returncode == 4
    assert "neither it nor its name says when it ran" in in_words(done.stdout)
    os.utime(folder / "m.json", (1e9, 1e9))
    assert analysis("judge", str(folder)).returncode == 0


def test_the_newest_run_that_lacks_sizes(tmp_path: Path) -> None:
    folder = osu_set(tmp_path / "history", 10, 9, 1)
    (folder / "run10.txt").write_text(osu([10.0, 11.0]))
    for words in ([], ["--each-size"]):
        done = analysis("judge", str(folder), *words)
        assert done.returncode == 4, done.stdout + done.stderr
    assert "run10.txt has OSU MPI Latency Datatype: MPI_CHAR 0 B, and no value of it" in in_words(
        done.stdout
    )


def test_a_variable_that_newer_runs_lack(tmp_path: Path) -> None:
    folder = google_set(tmp_path / "history", 100, 12, 1)
    for number in range(11):
        data = json.loads((folder / f"{number}.json").read_text())
        data["benchmarks"].append({"name": "BM_gone", "real_time": 5.0 + number / 100})
        (folder / f"{number}.json").write_text(json.dumps(data))
    done = analysis("judge", str(folder))
    assert done.returncode == 4, done.stdout + done.stderr
    assert "BM_gone: 2026-01-12T00:00:00Z has BM_copy/64, and no value of it" in in_words(
        done.stdout
    )


def test_sizes_that_all_new_runs_lack(tmp_path: Path) -> None:
    base, new = osu_set(tmp_path / "old", 10, 6, 1), tmp_path / "new"
    new.mkdir()
    for number, factor in enumerate(noisy(6, 2)):
        times = [10 * factor * (1 + at / 10) for at in range(8)]
        (new / f"{number}.txt").write_text(osu(times))
    for words in ([], ["--each-size"]):
        done = analysis("judge", str(base), str(new), *words)
        assert done.returncode == 4, done.stdout + done.stderr
        assert "128 B" in in_words(done.stdout).partition("lost: the new runs lack")[2]
    assert f"{len(SIZES) - 2} compared" in done.stdout


def test_a_new_run_that_failed(tmp_path: Path) -> None:
    """Those that are left are compared; that one crashed is told, and not green."""
    base, new = osu_set(tmp_path / "old", 10, 6, 1), osu_set(tmp_path / "new", 10, 6, 2)
    assert analysis("judge", str(base), str(new)).returncode == 0
    (new / "run7.txt").write_text("Segmentation fault\n")
    done = analysis("judge", str(base), str(new))
    assert done.returncode == 4 and "run7.txt has no result: did its run fail?" in done.stdout
    (base / "run7.txt").write_text("Segmentation fault\n")
    (new / "run7.txt").unlink()
    assert analysis("judge", str(base), str(new)).returncode == 0


def test_a_test_that_measures_nothing_has_lost_nothing(tmp_path: Path) -> None:
    """Of ReFrame's tests many only check something; such a one may fail, too."""
    sides = []
    for side, seed in (("old", 1), ("new", 2)):
        told = [session(day, [100 * one]) for day, one in enumerate(noisy(6, seed), 1)]
        for number, one in enumerate(told):
            one["session_info"]["uuid"] = f"{side}{number}"
            for case in one["runs"][0]["testcases"]:
                case["uuid"] = f"{side}{number}:0:0"
            one["runs"][0]["testcases"] += [
                {"name": "Hello", "perfvalues": {}, "fail_phase": phase} for phase in (None, "run")
            ]
        sides.append(str(database(tmp_path / f"{side}.db", told)))
    assert analysis("judge", *sides).returncode == 0


def test_a_broken_line_is_of_its_own_log(tmp_path: Path) -> None:
    for name, seed in (("Stream", 1), ("Other", 2)):
        lines = perflog([100 * one for one in noisy(14, seed)]).replace("StreamTest", name)
        perflog_file(tmp_path / f"{name}.log", lines + ("1|2\n" if name == "Other" else ""))
    done = analysis("judge", str(tmp_path))
    assert done.returncode == 4 and "Other.log:16: it has 2 fields" in done.stdout
    assert "lost" not in done.stdout and "2 compared" in done.stdout


def test_the_newest_report_that_cannot_be_read(tmp_path: Path) -> None:
    for day, one in enumerate(noisy(8, 1), 1):
        (tmp_path / f"run-{day}.json").write_text(json.dumps(session(day, [100 * one])))
    assert analysis("judge", str(tmp_path)).returncode == 0
    (tmp_path / "run-9.json").write_text('{"session_info": {')
    done = analysis("judge", str(tmp_path))
    assert done.returncode == 4 and "Nothing can be compared" in done.stdout
    assert "run-9.json: it is not JSON" in done.stdout


def test_one_unusable_variable_leaves_the_others(tmp_path: Path) -> None:
    sides = []
    for side, seed in (("old", 1), ("new", 2)):
        told = [session(day, [100 * one]) for day, one in enumerate(noisy(6, seed), 1)]
        for number, one in enumerate(told):
            one["session_info"]["uuid"] = f"{side}{number}"
            for case in one["runs"][0]["testcases"]:
                case["uuid"] = f"{side}{number}:0:0"
                case["perfvalues"]["cluster:cpu:bad"] = [
                    0.0 if side == "new" else 5.0,
                    None,
                    None,
                    None,
                    "s",
                ]
        sides.append(str(database(tmp_path / f"{side}.db", told)))
    done = analysis("judge", *sides)
    assert done.returncode == 4 and "1 compared" in done.stdout
    assert "StreamTest: bad: 0 is not above 0" in done.stderr
    assert "lack: StreamTest bad (cluster+cpu+gnu)" in in_words(done.stdout)


def test_what_cannot_be_judged_is_not_green(tmp_path: Path) -> None:
    for side, seed in (("old", 1), ("new", 2)):
        lines = perflog([100 * one for one in noisy(8, seed)], month=seed)
        perflog_file(tmp_path / side / "x.log", lines)
        power = lines.replace("StreamTest", "Power").replace("MB/s|100|-0.1", "W|0|null")
        perflog_file(tmp_path / side / "power.log", power)
    done = analysis("judge", str(tmp_path / "old"), str(tmp_path / "new"))
    assert done.returncode == 5, done.stdout + done.stderr
    assert "1 could not be judged: Power copy" in in_words(done.stdout)


def test_what_failed_before_it_had_a_layout_may_be_of_any() -> None:
    """ReFrame writes its default of one task for a test that fails before it is set up."""
    place = {"system": "cluster", "partition": "cpu", "environ": "gnu"}
    key = Key("StreamTest copy", "MB/s", "cluster+cpu+gnu, num_tasks=128")
    failed = NoRun("it failed in compile", True, "StreamTest", labels=place | {"num_tasks": "1"})
    assert key.may_have_lost(failed)
    assert key.may_have_lost(replace(failed, labels={}))
    assert not key.may_have_lost(replace(failed, labels=place | {"partition": "gpu"}))
