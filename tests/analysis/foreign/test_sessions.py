"""Runs that were started together are one draw from what differs between sessions."""

import json
from pathlib import Path

from analysis.foreign.sessions import nights_of, sessions_of
from records.foreign.run import Run
from tests.analysis.support.foreign import (
    database,
    google,
    noisy,
    osu,
    osu_set,
    perflog,
    perflog_file,
    session,
)
from tests.analysis.support.in_process import analysis


def in_words(text: str) -> str:
    return " ".join(text.split())


def of_levels(path: Path, levels: list[float], seed: int) -> str:
    """Write a database with a session of five runs at each level; return its path."""
    sessions = [
        session(number, [level * one for one in noisy(5, seed + number, 0.001)])
        for number, level in enumerate(levels, 1)
    ]
    for number, one in enumerate(sessions):
        own = f"{path.stem}{number}"
        one["session_info"]["uuid"] = own
        for place, case in enumerate(one["runs"][0]["testcases"]):
            case["uuid"] = f"{own}:0:{place}"
    return str(database(path, sessions))


def test_a_session_is_one_value_between_two_sets(tmp_path: Path) -> None:
    """Sessions differ by 4%: the fifteen runs of three are no fifteen draws from that."""
    base = of_levels(tmp_path / "old.db", [100.0, 104.0, 98.0], 1)
    new = of_levels(tmp_path / "new.db", [97.0, 101.0, 95.0], 10)
    done = analysis("judge", base, new)
    assert "no difference shown" in done.stdout and "slower" not in done.stdout
    assert "(15 and 15 runs in 3 and 3 sessions): each session is one value" in in_words(
        done.stdout
    )


def test_one_session_a_side_is_told(tmp_path: Path) -> None:
    base = of_levels(tmp_path / "old.db", [100.0], 1)
    new = of_levels(tmp_path / "new.db", [95.0], 10)
    done = analysis("judge", base, new)
    assert done.returncode == 3
    assert "(5 and 5 runs in 1 and 1 sessions): there is one session a side" in in_words(
        done.stdout
    )


def test_one_new_session_is_one_draw(tmp_path: Path) -> None:
    """As in a history: the spread between sessions is the base's."""
    base = of_levels(tmp_path / "old.db", [100.0, 104.0, 98.0, 101.0, 99.0], 1)
    inside = of_levels(tmp_path / "in.db", [97.0], 10)
    done = analysis("judge", base, inside, "--slowdown", "0.5")
    assert done.returncode == 0 and "no difference shown" in done.stdout, done.stdout
    beyond = of_levels(tmp_path / "out.db", [70.0], 20)
    assert analysis("judge", base, beyond).returncode == 3


def test_repeats_in_one_file_are_one_session(tmp_path: Path) -> None:
    levels = {"old": [10.0, 10.4, 9.8], "new": [10.3, 9.9, 10.5]}
    for side, of in levels.items():
        (tmp_path / side).mkdir()
        for number, level in enumerate(of):
            noise = noisy(50, number + 10 * (side == "old"), 0.004)
            repeats = [
                osu([level * noise[10 * run + at] * (1 + at / 10) for at in range(10)])
                for run in range(5)
            ]
            (tmp_path / side / f"{number}.txt").write_text("".join(repeats))
    done = analysis("judge", str(tmp_path / "old"), str(tmp_path / "new"))
    assert "no difference shown" in done.stdout
    assert "(15 and 15 runs in 3 and 3 sessions)" in in_words(done.stdout)


def test_runs_of_a_file_each_are_their_own(tmp_path: Path) -> None:
    base, new = osu_set(tmp_path / "old", 10, 6, 1), osu_set(tmp_path / "new", 11, 6, 2)
    done = analysis("judge", str(base), str(new))
    assert done.returncode == 3 and "sessions" not in done.stdout.partition("compared")[2]


def test_nights_are_hours_and_sessions_are_chains() -> None:
    """A check each half hour is a history of hours; an afternoon of long runs is one session."""
    runs = [Run(f"{at}", (), 1e9 + 1800.0 * at) for at in range(6)]
    assert nights_of(runs, range(6)) == [[0, 1], [2, 3], [4, 5]]
    assert sessions_of(runs) == [list(range(6))]
    apart = [Run(f"{at}", (), 1e9 + 3601.0 * at, source="a") for at in range(2)]
    assert sessions_of(apart) == [[0], [1]] == nights_of(apart, range(2))
    untimed = [Run(f"a:{at}", (), source="a") for at in range(2)] + [Run("b", (), source="b")]
    assert sessions_of(untimed) == [[0, 1], [2]] and nights_of(untimed, range(3)) == [[0], [1], [2]]


def test_a_history_of_two_sources_is_in_order(tmp_path: Path) -> None:
    """Each thing has an order of its own; one source without times takes none from the other."""
    osu_set(tmp_path / "osu", 10, 9, 1)
    perflog_file(tmp_path / "S.log", perflog([100 * one for one in noisy(14, 1)]))
    done = analysis("judge", str(tmp_path))
    assert done.returncode == 0 and "2 compared" in done.stdout, done.stdout + done.stderr
    assert "in the order of their files' names, since they have no time or time" in in_words(
        done.stdout
    )
    database(tmp_path / "bench.db", [])
    (tmp_path / "bench.db").unlink()
    (tmp_path / "S.log").unlink()
    database(
        tmp_path / "results.db", [session(d, [100 * one]) for d, one in enumerate(noisy(8, 1), 1)]
    )
    done = analysis("judge", str(tmp_path))
    assert done.returncode == 0 and "2 compared" in done.stdout, done.stdout + done.stderr


def test_a_thing_with_times_in_part_has_no_order(tmp_path: Path) -> None:
    for number in range(6):
        data = google([100.0 + number])
        if number % 2:
            del data["context"]["date"]
        (tmp_path / f"{number}.json").write_text(json.dumps(data))
    done = analysis("judge", str(tmp_path))
    assert done.returncode == 7 and "3 of 6 runs have no time" in done.stderr


def test_what_else_differs_is_told(tmp_path: Path) -> None:
    for side, host, seed in (("old", "vm1", 1), ("new", "vm2", 2)):
        (tmp_path / side).mkdir()
        for number, factor in enumerate(noisy(6, seed)):
            data = google([100 * factor], f"2026-01-{number + 1:02d}T00:00:00+00:00")
            data["context"] |= {"host_name": host, "library_build_type": "release"}
            (tmp_path / side / f"{number}.json").write_text(json.dumps(data))
    done = analysis("judge", str(tmp_path / "old"), str(tmp_path / "new"))
    assert done.returncode == 0
    assert (
        "caveat: host differs in 1 comparison, such as BM_copy/64: vm1 before, vm2 now"
        in in_words(done.stdout)
    )
    assert "build differs" not in done.stdout


def test_another_number_of_tasks_is_another_series(tmp_path: Path) -> None:
    def log(side: str, tasks: int, seed: int) -> str:
        lines = perflog([100 * one for one in noisy(8, seed)], month=seed)
        path = perflog_file(tmp_path / side / "x.log", "")
        path.write_text(path.read_text().strip() + "|num_tasks\n" + "".join(
            f"{line}|{tasks}\n" for line in lines.splitlines()))  # fmt: skip
        return str(path)

    base, new = log("old", 2, 1), log("new", 4, 2)
    done = analysis("judge", base, new)
    assert done.returncode == 1 and "StreamTest copy (cluster+cpu+gnu, num_tasks=2)" in done.stderr
    chosen = ("--base-where", "num_tasks=2", "--new-where", "num_tasks=4")
    assert analysis("judge", base, new, *chosen).returncode == 0


def test_a_newest_night_elsewhere_is_told(tmp_path: Path) -> None:
    lines = perflog([100 * one for one in noisy(14, 1)]).splitlines(keepends=True)
    lines[-1] = lines[-1].replace("nid[01-02]", "nid77")
    done = analysis("judge", str(perflog_file(tmp_path / "S.log", "".join(lines))))
    assert "caveat: job_nodelist differs in 1 comparison" in in_words(done.stdout)
    assert "nid[01-02] before, nid77 now" in in_words(done.stdout)
