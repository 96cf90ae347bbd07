"""`python -m analysis judge`: other programs' numbers get the verdicts of campaigns."""

import json
import math
from pathlib import Path

import pytest

from inference.intervals import independent_ratio
from tests.analysis.support.foreign import (
    SIZES,
    database,
    google,
    google_set,
    noisy,
    osu,
    osu_set,
    perflog,
    perflog_file,
    session,
)
from tests.analysis.support.in_process import analysis


def test_a_slower_set_is_told(tmp_path: Path) -> None:
    base, new = osu_set(tmp_path / "old", 10, 6, 1), osu_set(tmp_path / "new", 11, 6, 2)
    page, text = tmp_path / "page.html", tmp_path / "page.md"
    done = analysis("judge", str(base), str(new), "--html", str(page), "--markdown", str(text))
    assert done.returncode == 3, done.stdout + done.stderr
    assert "OSU MPI Latency Datatype: MPI_CHAR: slower, worse by" in done.stdout
    for found in (done.stdout, page.read_text(), text.read_text()):
        assert "slower" in found and "new against old" in found
    assert "sha256-" in page.read_text() and "<script" not in page.read_text()
    # The other way round it is better, and nothing is to be complained of.
    assert analysis("judge", str(new), str(base)).returncode == 0


def test_sets_of_one_name_are_told_apart(tmp_path: Path) -> None:
    base, new = (
        osu_set(tmp_path / day / "runs", 10, 3, seed)
        for seed, day in enumerate(("monday", "tuesday"), 1)
    )
    done = analysis("judge", str(base / "run1.txt"), str(new / "run2.txt"))
    assert "run2.txt against run1.txt" in done.stdout
    done = analysis("judge", str(base), str(new / "run2.txt"))
    assert "run2.txt against runs" in done.stdout
    done = analysis("judge", str(base / "run1.txt"), str(new / "run1.txt"))
    assert "tuesday/runs/run1.txt against monday/runs/run1.txt" in done.stdout


def test_one_of_something_is_told_in_the_singular(tmp_path: Path) -> None:
    base, new = osu_set(tmp_path / "old", 10, 6, 1), osu_set(tmp_path / "new", 9, 6, 2)
    text = tmp_path / "page.md"
    done = analysis("judge", str(base), str(new), "--markdown", str(text))
    assert "0 worse by more than 2%, 1 other difference, 0 equivalent" in done.stdout
    (new / "copy.txt").write_text((base / "run1.txt").read_text())
    done = analysis("judge", str(base), str(new))
    assert done.returncode == 1 and "1 run is in both sets, such as " in done.stderr
    done = analysis("judge", str(base), str(new / "run1.txt"), "--markdown", str(text))
    assert "- new: run1.txt, 1 run\n" in text.read_text()


def test_the_ratio_is_that_of_campaigns(tmp_path: Path) -> None:
    base, new = osu_set(tmp_path / "old", 10, 6, 1), osu_set(tmp_path / "new", 11, 6, 2)

    def levels(folder: Path) -> list[float]:
        found = []
        for path in sorted(folder.iterdir()):
            times = [float(line.split()[1]) for line in path.read_text().splitlines()
                     if not line.startswith("#")]  # fmt: skip
            found.append(-sum(map(math.log, times)) / len(SIZES))
        return found

    ratio = independent_ratio(levels(new), levels(base))
    done = analysis("judge", str(base), str(new))
    assert f"(ratio {ratio.value:.3f}, simultaneous interval " in done.stdout
    # One comparison alone has 4% for a difference.
    interval = ratio.interval_at(0.04)
    assert interval and f"{interval.low:.3f} – {interval.high:.3f})" in done.stdout


def test_equal_sets_are_equivalent_or_nothing_is_shown(tmp_path: Path) -> None:
    base, new = google_set(tmp_path / "old", 100, 12, 1), google_set(tmp_path / "new", 100, 12, 2)
    done = analysis("judge", str(base), str(new), "--margin", "0.05")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "equivalent within 5%" in done.stdout


def test_what_could_not_have_been_seen_is_not_green(tmp_path: Path) -> None:
    base, new = osu_set(tmp_path / "old", 10, 2, 1), osu_set(tmp_path / "new", 10, 2, 2)
    done = analysis("judge", str(base), str(new), "--slowdown", "0.02")
    assert done.returncode == 5
    assert "could not have shown a slowdown of 2%" in done.stdout


@pytest.mark.parametrize("count", [1, 3])
def test_repetitions_of_one_process_are_no_runs(tmp_path: Path, count: int) -> None:
    base, new = google_set(tmp_path / "old", 100, count, 1), tmp_path / "new.json"
    new.write_text(json.dumps(google([200.0 * one for one in noisy(50, 3, 0.001)])))
    done = analysis("judge", str(base), str(new))
    assert done.returncode == 7
    assert f"inconclusive (1 and {count} runs)" in " ".join(done.stdout.split())
    assert "iterations within a process are not repetitions" in done.stderr


def test_the_family_is_all_that_is_compared(tmp_path: Path) -> None:
    """A difference that is shown by itself is not among twenty, of which the others are equal."""
    for side, level in (("old", 100.0), ("new", 101.6)):
        factors = noisy(5, 1 if side == "old" else 2, 0.006)
        (tmp_path / side).mkdir()
        (tmp_path / f"{side}20").mkdir()
        for number, factor in enumerate(factors):
            data = google([level * factor], f"2026-01-{number + 1:02d}T00:00:00+00:00")
            (tmp_path / side / f"{number}.json").write_text(json.dumps(data))
            for other in range(19):
                one = {**data["benchmarks"][0], "name": f"BM{other}", "run_name": f"BM{other}"}
                one["real_time"] = 100 * noisy(10, other, 0.01)[number + 5 * (side == "old")]
                data["benchmarks"].append(one)
            (tmp_path / f"{side}20" / f"{number}.json").write_text(json.dumps(data))
    alone = analysis("judge", str(tmp_path / "old"), str(tmp_path / "new"), "--margin", "0.001")
    among = analysis("judge", str(tmp_path / "old20"), str(tmp_path / "new20"), "--margin", "0.001")
    assert alone.returncode == 3, alone.stdout
    assert among.returncode == 0 and "BM_copy/64: slower" not in among.stdout


def test_each_size_by_itself(tmp_path: Path) -> None:
    base, new = osu_set(tmp_path / "old", 10, 5, 1), osu_set(tmp_path / "new", 11, 5, 2)
    done = analysis("judge", str(base), str(new), "--each-size")
    assert done.returncode == 3
    assert f"{len(SIZES)} compared" in done.stdout and "256 B" in done.stdout
    # A message of no byte is a size as any other.
    assert "MPI_CHAR 0 B: slower" in done.stdout


def test_a_run_that_was_cut_off_is_left_out(tmp_path: Path) -> None:
    base, new = osu_set(tmp_path / "old", 10, 5, 1), osu_set(tmp_path / "new", 11, 5, 2)
    (new / "run6.txt").write_text(osu([10.0, 10.5]))
    done = analysis("judge", str(base), str(new))
    assert "run6.txt lacks sizes that most runs have: was it cut off?" in done.stderr
    assert done.returncode == 3


def test_two_environments_of_one_log(tmp_path: Path) -> None:
    rates = noisy(8, 1)
    lines = perflog([100 * one for one in rates])
    lines += perflog([80 * one for one in noisy(8, 2)], environ="cray", month=2)
    log = perflog_file(tmp_path / "perflogs" / "Stream.log", lines)
    done = analysis("judge", str(log), str(log), "--base-where", "environ=gnu",
                    "--new-where", "environ=cray")  # fmt: skip
    assert done.returncode == 3, done.stdout + done.stderr
    assert "StreamTest copy (cluster+cpu): slower, worse by 2" in done.stdout
    again = analysis("judge", str(log), str(log))
    assert again.returncode == 1 and "are in both sets" in again.stderr


def test_what_one_side_lacks_is_told(tmp_path: Path) -> None:
    base = google_set(tmp_path / "old", 100, 5, 1)
    osu_set(base / "osu", 10, 5, 3)
    new = google_set(tmp_path / "new", 100, 5, 2)
    done = analysis("judge", str(base), str(new))
    assert done.returncode == 4 and "1 lost: the new runs lack: OSU MPI Latency" in done.stdout


def test_direction_is_asked_for_where_nothing_tells(tmp_path: Path) -> None:
    for side, seed in (("old", 1), ("new", 2)):
        lines = perflog([100 * one for one in noisy(5, seed)], month=seed)
        perflog_file(tmp_path / side / "x.log", lines.replace("MB/s|100|-0.1", "W|0|null"))
    words = ["judge", str(tmp_path / "old"), str(tmp_path / "new")]
    done = analysis(*words)
    assert done.returncode == 7 and "say it with --lower-is-better" in done.stderr
    assert "1 could not be judged: StreamTest copy" in done.stdout
    assert analysis(*words, "--lower-is-better", "StreamTest*").returncode == 0


def test_the_newest_of_a_history(tmp_path: Path) -> None:
    rates = [100 * one for one in noisy(14, 1)]
    log = perflog_file(tmp_path / "Stream.log", perflog([*rates, 80.0]))
    done = analysis("judge", str(log))
    assert done.returncode == 3, done.stdout + done.stderr
    assert "14 earlier runs" not in done.stderr and "worse by 2" in done.stdout
    assert analysis("judge", str(perflog_file(tmp_path / "a.log", perflog(rates)))).returncode == 0


def test_a_history_has_its_changes(tmp_path: Path) -> None:
    rates = [100 * one for one in noisy(10, 1)] + [80 * one for one in noisy(10, 2)]
    done = analysis("judge", str(perflog_file(tmp_path / "Stream.log", perflog(rates))))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "worse by 2" in done.stdout and "from 2026-01-11T00:00:00Z on" in done.stdout


def test_runs_of_a_session_are_one_value(tmp_path: Path) -> None:
    """A session's five runs are no five draws from what differs between sessions."""
    levels = [100.0, 104.0, 97.0, 102.0]
    sessions = [
        session(number, [level * one for one in noisy(5, number, 0.001)])
        for number, level in enumerate([*levels, 93.0], 1)
    ]
    done = analysis("judge", str(database(tmp_path / "results.db", sessions)))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "no difference shown" in done.stdout and "Runs of one ReFrame session" in done.stdout


def test_runs_of_an_hour_are_one_value(tmp_path: Path) -> None:
    """A log names no session: five runs of a minute each are no five nights."""
    lines = "".join(
        perflog([100 * one]).replace("T00:00:00", f"T00:0{minute}:00").replace("-01T", f"-0{day}T")
        for day in (1, 2, 3)
        for minute, one in enumerate(noisy(5, day), 1)
    )
    done = analysis("judge", str(perflog_file(tmp_path / "Stream.log", lines)))
    assert done.returncode == 7 and "inconclusive (2 earlier ones)" in done.stdout


def test_too_short_a_history(tmp_path: Path) -> None:
    log = perflog_file(tmp_path / "Stream.log", perflog([100.0, 101.0, 99.0]))
    done = analysis("judge", str(log))
    assert done.returncode == 7 and "make more runs" in done.stderr


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["nowhere"], "cannot be read"),
        (["nowhere", "--margin", "nan"], "--margin must be a fraction"),
        (["nowhere", "--slowdown", "0"], "--slowdown must be a fraction"),
        (["nowhere", "--base-where", "environ"], "must be KEY=VALUE"),
        (["nowhere", "--new-where", "environ=x"], "--new-where is for two sets"),
    ],
)
def test_wrong_input_is_one_sentence(tmp_path: Path, words: list[str], sentence: str) -> None:
    done = analysis("judge", str(tmp_path / words[0]), *words[1:])
    assert done.returncode == 1 and sentence in done.stderr and done.stdout == ""
    assert len(done.stderr.splitlines()) == 1


def test_sets_of_different_places_are_told_how_to_be_compared(tmp_path: Path) -> None:
    for side, environ in (("old", "gnu"), ("new", "cray")):
        perflog_file(tmp_path / side / "x.log", perflog([100.0, 101.0, 99.0], environ=environ))
    done = analysis("judge", str(tmp_path / "old"), str(tmp_path / "new"))
    assert done.returncode == 1 and "choose the runs of each by --base-where" in done.stderr
    chosen = ("--base-where", "environ=gnu", "--new-where", "environ=cray")
    assert analysis("judge", str(tmp_path / "old"), str(tmp_path / "new"), *chosen).returncode != 1
