"""Results of other programs become runs of one value each; what is damaged is refused."""

import json
import os
import re
import sqlite3
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from records.foreign import run as foreign_run
from records.foreign.reading import RunSet, chosen, read_set
from records.foreign.reframe_values import by_thresholds, by_unit
from records.foreign.run import ForeignError, Run, step_of
from tests.analysis.support.foreign import (
    database,
    google,
    osu,
    perflog,
    perflog_file,
    session,
)
from tests.folders import deep

CAPTURED = Path(__file__).with_name("captured")


def read(tmp_path: Path, text: str, name: str = "run.txt") -> RunSet:
    (tmp_path / name).write_text(text)
    return read_set(tmp_path / name)


def values(run: Run) -> dict[str, dict[int | None, float]]:
    return {one.name: {size: of.value for size, of in one.values.items()} for one in run.measured}


def sentences(found: RunSet) -> list[str]:
    return [one.sentence for one in found.left_out]


def test_osu_latency(tmp_path: Path) -> None:
    [run] = read(tmp_path, "srun: hello\n" + osu([1.25, 1.5]) + "bye\n").runs
    name = "OSU MPI Latency Datatype: MPI_CHAR"
    assert values(run)[name] == pytest.approx({0: 1.25e-6, 1: 1.5e-6})
    [one] = run.measured
    assert (one.unit, one.lower_is_better) == ("s", True)
    assert one.values[0].step == pytest.approx(1e-8)


@pytest.mark.parametrize("again", [True, False])
def test_osu_with_two_tables_in_one_run(tmp_path: Path, again: bool) -> None:
    """As for two datatypes: none is a repetition of the other, with a heading again or without."""
    chars = osu([1.0, 2.0]).replace("# Size", "# [ pairs: 4 ] [ window size: 64 ]\n# Size")
    ints = "# Datatype: MPI_INT.\n# Size       Avg Latency(us)\n1   7.00\n2   8.00\n"
    [run] = read(tmp_path, chars + (ints if again else ints.replace(ints.splitlines()[1], ""))).runs
    window = "[ pairs: 4 ] [ window size: 64 ]"
    assert values(run) == {
        f"OSU MPI Latency Datatype: MPI_CHAR {window}": pytest.approx({0: 1e-6, 1: 2e-6}),
        f"OSU MPI Latency Datatype: MPI_INT {window}": pytest.approx({1: 7e-6, 2: 8e-6}),
    }


def test_osu_with_tables_of_a_time_and_of_a_rate(tmp_path: Path) -> None:
    [run] = read(tmp_path, osu([1.0]) + "# Size      Bandwidth (MB/s)\n0   5.00\n").runs
    assert [(one.unit, one.lower_is_better, [of.value for of in one.values.values()])
            for one in run.measured] == [("s", True, [1e-6]), ("B/s", False, [5e6])]  # fmt: skip


def test_osu_with_the_same_table_twice(tmp_path: Path) -> None:
    """A table that is printed again is repeated within the run; one without an end was cut off."""
    head = "# Size       Avg Latency(us)\n"
    [run] = read(tmp_path, osu([1.0]) + head + "0   3.00\n").runs
    assert values(run) == {"OSU MPI Latency Datatype: MPI_CHAR": pytest.approx({0: 2e-6})}
    with pytest.raises(ForeignError, match="it was cut off"):
        read(tmp_path, osu([1.0]) + head)


def test_osu_of_several_runs_and_kinds(tmp_path: Path) -> None:
    rate = "# OSU MPI Bandwidth Test v5.9\n# Size      Bandwidth (MB/s)\n1  2.5\n2 5.0\n"
    barrier = "# OSU MPI Barrier Latency Test v5.9\n# Avg Latency(us)\n   3.11\n"
    pairs = (
        "# OSU MPI Multiple Bandwidth / Message Rate Test v5.9\n"
        "# [ pairs: 2 ] [ window size: 64 ]\n# Size  MB/s  Messages/s\n1 4.00 4000000.00\n"
    )
    found = read(tmp_path, rate + barrier + pairs + barrier).runs
    assert [run.where for run in found] == [f"run.txt:{line}" for line in (1, 5, 8, 12)]
    assert values(found[0])["OSU MPI Bandwidth"] == {1: 2.5e6, 2: 5e6}
    assert values(found[1])["OSU MPI Barrier Latency"] == pytest.approx({None: 3.11e-6})
    assert found[2].measured[0].name.endswith("[ pairs: 2 ] [ window size: 64 ]")
    assert not found[0].measured[0].lower_is_better
    # Two runs of one value may agree.
    assert found[1].identity is None


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("# OSU MPI Latency Test v7.4\n", "a run without a result"),
        ("# OSU MPI Latency Test v7.4\n1 2.0\n", ":2: a result without a heading"),
        (osu([1.0]).replace("1.00", "nan"), ":4: nan is not a number"),
        (osu([1.0]).replace("1.00", "0.00"), ":4: 0 is not above 0"),
        (osu([1.0]).replace("1.00", "1e999"), ":4: 1e999 is not a number"),
        (osu([1.0]) + "16\n", ":5: a message size without a result"),
        (osu([1.0]) + "16x 2.0\n", ":5: 16x is not a message size"),
        ("hello\n", "is none of"),
        ("", "is none of"),
        ("{", "it is not JSON"),
        ("[" * 100_000, "is none of"),
        ('{"a":' * 100_000, "nested too deeply"),
        ('{"benchmarks": []}', "it has no benchmark"),
        ('{"benchmarks": [1, {"name": "x"}]}', "benchmark 1: it is not a benchmark"),
        ('{"session_info": {}, "runs": 1}', "its runs are not ReFrame's"),
    ],
)  # fmt: skip
def test_what_is_damaged_is_refused(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(ForeignError, match=r"run\.txt") as caught:
        read(tmp_path, text)
    assert sentence in str(caught.value)


def test_imb(tmp_path: Path) -> None:
    text = (CAPTURED / "imb_allreduce.stdout").read_text()
    [run] = read(tmp_path, "a launcher's line\n" + text + "epilogue 12\n").runs
    [one] = run.measured
    assert one.name == "IMB Allreduce processes=2"
    assert one.values[64].value == pytest.approx(0.75e-6, rel=0.2)
    assert run.began_utc == 1795263899.0
    both = read(tmp_path, text + text.replace("12:24:59", "12:25:59"))
    assert len(both.runs) == 2 and both.left_out == []
    again = read(tmp_path, text + text)
    assert len(again.runs) == 1 and "a copy of a run" in sentences(again)[0]
    with pytest.raises(ForeignError, match=r"run\.txt:\d+: IMB did not finish"):
        read(tmp_path, text[: text.index("# All processes")])


def test_imb_of_several_numbers_of_processes(tmp_path: Path) -> None:
    text = (CAPTURED / "imb_allreduce.stdout").read_text()
    table = text[text.index("#---", text.index("# Allreduce")) : text.index("# All processes")]
    more = text.replace(table, table + table.replace("#processes = 2", "#processes = 4"))
    [run] = read(tmp_path, more).runs
    assert [one.name[-1] for one in run.measured] == ["2", "4"]
    with pytest.raises(ForeignError, match="was to run Allreduce but ran Allreduce, Allreduce"):
        read(tmp_path, text.replace(table, table + table))


def test_megabytes_of_old_releases_are_binary(tmp_path: Path) -> None:
    """IMB_output.c has MEGA = 1/1048576 up to 4.x, and 1/1e6 since 2018."""
    text = (CAPTURED / "imb_pingpong.stdout").read_text()
    row = re.compile(r"^( +(\d+) +\d+ +\d+\.\d\d +)(\d+\.\d\d)$", re.MULTILINE)

    def binary(match: re.Match[str]) -> str:
        return f"{match[1]}{float(match[3]) * 1e6 / 2**20:.2f}"

    now = read(tmp_path, text).runs[0]
    for heading in ("Intel (R) MPI Benchmark Suite V3.2.4", "Intel (R) MPI Benchmarks 4.1"):
        old = row.sub(binary, text).replace("Intel(R) MPI Benchmarks 2021.11", heading)
        then = read(tmp_path, old).runs[0]
        for size, value in now.measured[0].values.items():
            assert then.measured[0].values[size].value == pytest.approx(value.value, rel=2e-3)
        assert then.labels["version"] == heading.split()[-1].lstrip("V")
    with pytest.raises(ForeignError, match="Mbytes/sec take"):
        read(tmp_path, row.sub(binary, text))


def test_one_damaged_run_of_a_file_leaves_the_others(tmp_path: Path) -> None:
    found = read(tmp_path, osu([1.0, 2.0]) + osu([1.0, 2.0]).replace("2.00", "0.00"))
    assert len(found.runs) == 1 and sentences(found) == [
        "run.txt:10: 0 is not above 0, and has no ratio to others"]  # fmt: skip
    text = (CAPTURED / "imb_allreduce.stdout").read_text()
    both = read(tmp_path, text + text[: text.index("# All processes")])
    assert len(both.runs) == 1 and "IMB did not finish" in sentences(both)[0]
    assert both.left_out[0].began_utc == both.runs[0].began_utc


@pytest.mark.parametrize("keep", [4, 3, 2, 1])
def test_a_number_that_was_cut_off_is_not_believed(tmp_path: Path, keep: int) -> None:
    text = osu([1.25, 15.25]).removesuffix("\n").removesuffix("15.25")
    with pytest.raises(ForeignError, match=r":5: the file ends in the middle of a line"):
        read(tmp_path, text + "15.25"[:keep])
    assert read(tmp_path, text + "15.25").runs[0].measured[0].values[1].value == 15.25e-6


def test_aggregates_without_a_run_type(tmp_path: Path) -> None:
    """Releases before 1.4.1 tell aggregates by their names alone."""

    def entries(*names: str) -> str:
        data = [{"name": name, "real_time": 100.0 + at} for at, name in enumerate(names)]
        return json.dumps({"benchmarks": data})

    found = read(tmp_path, entries("BM", "BM", "BM_mean", "BM_median", "BM_stddev"))
    assert values(found.runs[0]) == {"BM": {None: pytest.approx(100.5e-9)}}
    found = read(tmp_path, entries("BM_mean", "BM_median", "BM_stddev"))
    assert values(found.runs[0]) == {"BM": {None: pytest.approx(101e-9)}}
    assert values(read(tmp_path, entries("geometric_mean")).runs[0]).keys() == {"geometric_mean"}


def test_repetitions_of_a_process_are_one_value(tmp_path: Path) -> None:
    found = read(tmp_path, json.dumps(google([3.0, 1.0, 2.0, 9.0, 2.5])))
    [run] = found.runs
    assert values(run) == {"BM_copy/64": {None: pytest.approx(2.5e-9)}}
    assert run.began_utc == 1767225600.0 and run.labels["host"] == "vm"


def test_an_aggregate_stands_for_repetitions_that_were_not_written(tmp_path: Path) -> None:
    data = google([])
    common = {"name": "BM_copy/64", "time_unit": "us", "run_type": "aggregate"}
    data["benchmarks"] += [
        {**common, "aggregate_name": "mean", "real_time": 5.0},
        {**common, "aggregate_name": "median", "real_time": 4.0},
        {"name": "BM_bad", "error_occurred": True, "error_message": "no\x1b[2J memory"},
    ]
    found = read(tmp_path, json.dumps(data))
    assert values(found.runs[0]) == {"BM_copy/64": {None: pytest.approx(4e-6)}}
    assert sentences(found) == ["run.txt: benchmark 4, BM_bad: it ended with: no memory"]


def test_perflog(tmp_path: Path) -> None:
    lines = perflog([100.0, 101.5]) + "fail|2026-01-03T00:00:00+00:00|gnu|n|StreamTest|cpu|"
    lines += "null|MB/s|100|-0.1|null|cluster\nshort|line\n"
    found = read_set(perflog_file(tmp_path / "Stream.log", lines))
    assert [values(run) for run in found.runs] == [
        {"StreamTest copy": {None: 100.0}}, {"StreamTest copy": {None: 101.5}},
    ]  # fmt: skip
    [one] = found.runs[0].measured
    assert (one.unit, one.lower_is_better) == ("MB/s", False)
    assert found.runs[0].labels == {
        "system": "cluster", "partition": "cpu", "environ": "gnu", "job_nodelist": "nid[01-02]",
    }  # fmt: skip
    assert sentences(found) == [
        "Stream.log:4: StreamTest has no value: fail", "Stream.log:5: it has 2 fields, not 12",
    ]  # fmt: skip


def test_a_perflog_whose_fields_change(tmp_path: Path) -> None:
    """Logs that were put together name their fields again; the order of fields may be another."""
    lines = perflog([100.0])
    heads = "copy_value|copy_unit|name|job_completion_time_unix|num_tasks\n"
    found = read_set(
        perflog_file(tmp_path / "S.log", f"{lines}{heads}99.5|MB/s|Other|1767312000|4\n")
    )
    assert [values(run) for run in found.runs] == [
        {"StreamTest copy": {None: 100.0}}, {"Other copy": {None: 99.5}},
    ]  # fmt: skip
    assert found.left_out == [] and found.runs[1].labels == {"num_tasks": "4"}
    with pytest.raises(ForeignError, match=r"S\.log:3: the field copy_value appears twice"):
        read_set(perflog_file(tmp_path / "S.log", f"{lines}copy_value|copy_value\n"))


def test_a_time_with_a_zone_is_preferred(tmp_path: Path) -> None:
    """ReFrame's other time is local, and has no zone by default."""
    text = "job_completion_time|job_completion_time_unix|name|copy_value\n"
    log = tmp_path / "x.log"
    log.write_text(text + "2026-01-01T02:00:00|1767225600.5|T|5.0\n")
    assert read_set(log).runs[0].began_utc == 1767225600.5


def test_one_unusable_variable_of_a_line(tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    log.write_text("name|a_value|a_unit|b_value|b_unit\nT|0.0|s|5.0|s\nT|null|s|6.0|s\n")
    found = read_set(log)
    assert [values(run) for run in found.runs] == [{"T b": {None: 5.0}}, {"T b": {None: 6.0}}]
    assert sentences(found) == [
        "x.log:2: a: 0 is not above 0, and has no ratio to others", "x.log:3: T has no value of a",
    ]  # fmt: skip
    assert [(one.is_loss, one.of) for one in found.left_out] == [(True, "T a")] * 2


def test_a_perflog_that_reframe_wrote() -> None:
    """Two sessions with three repetitions of a test with a parameter and two variables."""
    found = read_set(CAPTURED / "reframe_perflog.log")
    assert len(found.runs) == 12 and found.left_out == []
    first = found.runs[0]
    assert [(one.name, one.unit, one.lower_is_better) for one in first.measured] == [
        ("StreamTest %size=1 copy", "MB/s", False), ("StreamTest %size=1 took", "s", True),
    ]  # fmt: skip
    assert {one.name for run in found.runs for one in run.measured if one.unit == "s"} == {
        "StreamTest %size=1 took", "StreamTest %size=2 took",
    }  # fmt: skip
    assert first.began_utc == 1795552556.579181 and first.labels["environ"] == "gnu"


def test_a_unit_that_contradicts_the_thresholds_is_refused(tmp_path: Path) -> None:
    lines = perflog([100.0]).replace("MB/s", "seconds")
    with pytest.raises(ForeignError, match="more is better, but by its unit seconds the opposite"):
        read_set(perflog_file(tmp_path / "Stream.log", lines))


@pytest.mark.parametrize(
    ("unit", "lower"),
    [("s", True), ("us", True), ("µs", True), ("seconds", True), ("ns/op", True), ("MB/s", False),
     ("GFLOPS", False), ("Gflop/s", False), ("it/sec", False), ("Mbps", False), ("W", None),
     ("", None), ("steps", None)],
)  # fmt: skip
def test_units_say_what_is_better(unit: str, lower: bool | None) -> None:
    assert by_unit(unit) is lower


def test_thresholds_say_what_is_better() -> None:
    assert by_thresholds(100, -0.1, None) is False
    assert by_thresholds(100, None, 0.1) is True
    assert by_thresholds(100, -0.1, 0.1) is None
    assert by_thresholds(0, None, 0.1) is None and by_thresholds(None, None, None) is None


def test_database(tmp_path: Path) -> None:
    path = database(
        tmp_path / "results.db", [session(1, [100.0, None, 102.0], [7.0]), session(2, [99.0])]
    )
    found = read_set(path)
    assert [values(run)["StreamTest copy"][None] for run in found.runs] == [100.0, 102.0, 99.0]
    assert sentences(found) == [
        "results.db, session 1: StreamTest: no value: it failed in sanity",
        "results.db, session 1: StreamTest: a retry, made because of the result before it",
    ]
    one = chosen(found, {"session": "20260102T000000+0000"})
    assert len(one.runs) == 1
    with pytest.raises(ForeignError, match="no run with environ=cray: there is environ=gnu"):
        chosen(found, {"environ": "cray"})


def test_a_database_runs_nothing_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "results.db"
    with sqlite3.connect(path) as db:
        db.execute("CREATE VIEW sessions AS SELECT 1 AS uuid, 2 AS session_start_unix, "
                   "'x' AS json_blob")  # fmt: skip
    db.close()
    with pytest.raises(ForeignError, match="it has no plain table of ReFrame's sessions"):
        read_set(path)
    path.write_bytes(path.read_bytes()[:600])
    with pytest.raises(ForeignError, match="it cannot be read"):
        read_set(path)


@pytest.mark.parametrize("kind", ["", "GENERATED ALWAYS ", "/**/"])
@pytest.mark.parametrize("stored", ["", " STORED"])
def test_a_database_computes_nothing(tmp_path: Path, kind: str, stored: str) -> None:
    """Else a file of kilobytes would have gigabytes to read."""
    path = tmp_path / "results.db"
    with sqlite3.connect(path) as db:
        db.execute(
            "CREATE TABLE sessions(uuid TEXT, session_start_unix REAL, told TEXT, "
            f"json_blob TEXT {kind}AS(told || hex(zeroblob(1000))){stored})"
        )
        db.execute(
            "INSERT INTO sessions(uuid, told) VALUES ('a', ?)", (json.dumps(session(1, [1.0])),)
        )
    db.close()
    with pytest.raises(ForeignError, match="it has no plain table of ReFrame's sessions"):
        read_set(path)


@pytest.mark.parametrize(
    ("value", "unit"), [("1e-320", "ns"), ("5e-324", "s"), ("1e308", "s"), ("1e-80", "us")]
)
def test_what_nobody_measures_is_left_out(tmp_path: Path, value: str, unit: str) -> None:
    """Ratios of it would be of zero, or without end."""
    path = tmp_path / "some.json"
    entry = f'{{"name": "a", "real_time": {value}, "time_unit": "{unit}"}}'
    path.write_text(f'{{"benchmarks": [{entry}, {entry}]}}')
    with pytest.raises(ForeignError, match="is nothing that can be measured"):
        read_set(path)


def test_entries_are_counted_before_there_is_a_sentence_on_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(foreign_run, "MOST_RUNS", 5)
    path = tmp_path / "some"
    texts = [
        "name|a_value|a_unit\n" + "x\n" * 6, '{"benchmarks": [' + ",".join(["1"] * 6) + "]}",
        '{"session_info": {}, "runs": [{"testcases": [' + ",".join(["1"] * 6) + "]}]}",
    ]  # fmt: skip
    for text in texts:
        path.write_text(text)
        with pytest.raises(ForeignError, match=r"has \d entries, and at most 5 are read"):
            read_set(path)
    path.unlink()
    database(path, [session(number, [100.0]) for number in range(6)])
    with pytest.raises(ForeignError, match="has 6 entries"):
        read_set(path)
    with sqlite3.connect(path) as db:
        db.execute("UPDATE sessions SET json_blob = 'damaged'")
    db.close()
    with pytest.raises(ForeignError, match="has 6 entries"):
        read_set(path)


def test_a_folder_has_each_run_once(tmp_path: Path) -> None:
    times = [1.0 + at / 10 for at in range(10)]
    (tmp_path / "a.txt").write_text(osu(times))
    (tmp_path / "b.txt").write_text(osu([one + 1 for one in times]))
    (tmp_path / "latest.txt").symlink_to("a.txt")
    (tmp_path / "copy.txt").write_text(osu(times))
    (tmp_path / "notes").write_text("hello")
    os.mkfifo(tmp_path / "pipe")
    found = read_set(tmp_path)
    assert [run.where for run in found.runs] == ["a.txt", "b.txt"]
    assert sentences(found)[0] == "copy.txt: a copy of a run that is there already"
    assert sentences(found)[1].startswith("notes is none of")


def test_folders_that_nobody_can_walk_are_a_sentence(tmp_path: Path) -> None:
    with deep(tmp_path / "results"), pytest.raises(ForeignError, match="folders deeper than 64"):
        read_set(tmp_path / "results")


def test_perflogs_beside_the_database_are_the_same_runs(tmp_path: Path) -> None:
    database(tmp_path / "results.db", [session(1, [100.0])])
    perflog_file(tmp_path / "perflogs" / "Stream.log", perflog([100.0]))
    with pytest.raises(ForeignError, match="which have the same runs: name one"):
        read_set(tmp_path)


def test_what_cannot_be_read_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(ForeignError, match="cannot be read"):
        read_set(tmp_path / "missing")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ForeignError, match="it is empty"):
        read_set(tmp_path / "empty")


@pytest.mark.parametrize(
    ("text", "step"), [("1.25", 0.01), ("1.25e-5", 1e-7), ("100", 1.0), ("100.0", 0.1), (".5", 0.1)]
)
def test_steps(text: str, step: float) -> None:
    assert step_of(text) == pytest.approx(step)


@given(st.text(max_size=300))
def test_any_text_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.getbasetemp() / "any"
    heads = ["", osu([1.0]), "a_value|b\n", '{"benchmarks": ', "# Intel(R) MPI Benchmarks 2\n"]
    for head in heads:
        path.write_text(head + text, errors="replace")
        try:
            read_set(path)
        except ForeignError as error:
            assert str(error).isprintable()
