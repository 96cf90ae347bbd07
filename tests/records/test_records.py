"""Outputs are read whole or refused with file and line."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from records.base import Header, RecordError, TimeSummary
from records.communication import (
    OPERATIONS,
    Communication,
    CommunicationIterations,
    Iterations,
    LeastAndMost,
    PingPong,
    RankIterations,
    Startup,
    StartupDurations,
)
from records.emulation import EmulationIterations
from records.ending import End
from records.hpl import read_hpl_output
from records.program_output import RESULTS, read_program_output
from records.su3 import Su3Iterations
from tests.analysis.support.synthetic import HPL
from tests.reframe_checks.conftest import PREFLIGHT, header, lines, pingpong

GOOD = pingpong(iterations=3)


def refused(tmp_path: Path, text: str) -> str:
    path = tmp_path / "out"
    path.write_text(text)
    with pytest.raises(RecordError) as error:
        read_program_output(path)
    return str(error.value).removeprefix(str(path))


def test_whole_output_is_read(tmp_path: Path) -> None:
    (tmp_path / "out").write_text(GOOD)
    output = read_program_output(tmp_path / "out")
    sizes = [r.message_bytes for r in output.results if isinstance(r, PingPong)]
    assert sizes == [300, 1800, 3300, 4800] and len(output.results) == 4
    assert output.header.ranks == 2 and len(output.iterations) == 4
    (tmp_path / "out").write_text(PREFLIGHT)
    assert [r.operation for r in read_program_output(tmp_path / "out").results] == [
        "world", "latency", "transport",
    ]  # fmt: skip


def test_an_older_output_was_timed_by_mpi_wtime(tmp_path: Path) -> None:
    """A launch's start-up names a clock of its own in both."""
    newest, *rest = GOOD.splitlines()
    older = json.loads(newest) | {"format": "wyeast-records-1", "clock": "MPI_Wtime"}
    del older["mpi_wtime"]
    for first, clock in ((newest, "CLOCK_MONOTONIC"), (json.dumps(older), "MPI_Wtime")):
        (tmp_path / "out").write_text("\n".join([first, *rest]))
        output = read_program_output(tmp_path / "out")
        assert output.clock == clock
        assert (output.header.mpi_wtime is None) == (clock == "MPI_Wtime")
    (tmp_path / "out").write_text(STARTED)
    assert read_program_output(tmp_path / "out").clock == "CLOCK_REALTIME"


@given(st.data())
@settings(max_examples=60)
def test_output_cut_anywhere_is_refused(data: st.DataObject) -> None:
    import tempfile

    cut = data.draw(st.integers(0, len(GOOD) - 2))
    with tempfile.TemporaryDirectory() as folder:
        refused(Path(folder), GOOD[:cut])


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda t: "", ":1: the output is empty"),
        (lambda t: t + t, ":11: there is more after the end record"),
        (lambda t: t.split("\n", 1)[0] + "\n" + t, ":2: a second header: the ranks did not form"),
        (lambda t: t.split("\n", 1)[1], ":1: the first record is not the header"),
        (lambda t: "warning: x\n" + t, ":1: not a JSON object"),
        (lambda t: t.replace('"results": 4', '"results": 5'), "counts 5 results, there are 4"),
        (lambda t: t.replace('"ranks": 2', '"ranks": 3'), ":1: hosts and processors do not"),
        (lambda t: t.replace('"min": 1e-05', '"min": 2e-05'), ":2: time_s: min, quartiles"),
        (lambda t: t.replace('"min": 1e-05', '"min": -1.0'), ":2: time_s.min: Input should"),
        (lambda t: t.replace('"min": 1e-05', '"min": Infinity'), ":2: Infinity is not a number"),
        (lambda t: t.replace('"warmup": 100, ', ""), ":2: warmup: Field required"),
        (lambda t: t.replace('"warmup"', '"wramup"'), ":2: "),
        (lambda t: t.replace('"result"', '"resutl"', 1), ":2: the record 'resutl' is unknown"),
        (lambda t: t.replace("[1e-05, 1e-05, 1e-05]", "[1e-05]", 1), ":3: 1 times, but the result"),
        (lambda t: t.replace("wyeast-records-2", "wyeast-records-3"), ":1: format"),
        (lambda t: t.replace('"mpi_wtime"', '"mpi_wtimes"'), ":1: mpi_wtime: Field required"),
        (lambda t: t.replace("wyeast-records-2", "wyeast-records-1"),
         ":1: mpi_wtime is not a key of"),
        (lambda t: t.replace('"iterations": 3', '"iterations": "3"', 1), ":2: iterations: Input"),
        (lambda t: t.replace('"operation": "pingpong"', '"operation": []'), "[] is not a name"),
        # Of a number like this there is no floating-point number.
        (lambda t: t.replace('"warmup": 100', f'"warmup": 1{"0" * 400}'), ":2: warmup: Input"),
    ],
)  # fmt: skip
def test_anything_else_is_refused_with_its_line(tmp_path: Path, change, sentence: str) -> None:  # type: ignore[no-untyped-def]
    assert sentence in refused(tmp_path, change(GOOD))


TIMES: dict[str, object] = {
    "record": "result", "operation": "startup", "clock": "CLOCK_REALTIME", "ranks": 2,
    "main_s": [100.25, 100.5], "initialised_s": [101.0, 101.5], "last_integer_s": 101.75,
}  # fmt: skip
DURATIONS: dict[str, object] = {
    "record": "result", "operation": "startup_durations", "since_s": 100.0,
    "launch_to_main_s": {"min": -0.25, "max": 0.5},
    "main_to_initialised_s": {"min": 0.75, "max": 1.0}, "launch_to_last_integer_s": 1.75,
}  # fmt: skip
STARTED = lines(header("startup"), TIMES, DURATIONS, {"record": "end", "results": 2})


def test_start_up_is_read(tmp_path: Path) -> None:
    (tmp_path / "out").write_text(STARTED)
    points, durations = read_program_output(tmp_path / "out").results
    assert isinstance(points, Startup) and points.last_integer_s == 101.75
    assert isinstance(durations, StartupDurations)
    assert durations.launch_to_main_s.min == -0.25, "a node's clock may be behind"


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("[100.25, 100.5]", "[100.25]", ":2: main_s and initialised_s do not have one time"),
        ("[101.0, 101.5]", "[101.0, 101.5, 102.0]", ":2: main_s and initialised_s do not have"),
        ("[101.0, 101.5]", '[101.0, "late"]', ":2: initialised_s.1: Input should be"),
        ("[101.0, 101.5]", "[101.0, 0.0]", ":2: initialised_s.1: Input should be greater than 0"),
        ('"last_integer_s": 101.75', '"last_integer_s": NaN', ":2: NaN is not a number"),
        (', "last_integer_s": 101.75', "", ":2: last_integer_s: Field required"),
        ('"CLOCK_REALTIME", "ranks": 2', '"CLOCK_REALTIME", "ranks": 1', ":2: ranks: Input"),
        ("CLOCK_REALTIME", "MPI_Wtime", ":2: clock: Input"),
        ('"min": -0.25', '"min": 0.75', ":3: launch_to_main_s: min and max are not in order"),
        ('"launch_to_last_integer_s": 1.75', '"launch_to_last_integer_s": -1.0', ":3: launch_to"),
        ('{"record": "end", "results": 2}\n', "", ":3: no end record: the output is truncated"),
    ],
)
def test_start_up_that_is_not_whole_is_refused(
    tmp_path: Path, old: str, new: str, sentence: str
) -> None:
    assert old in STARTED
    assert sentence in refused(tmp_path, STARTED.replace(old, new))


SOLVED = HPL.format(n=2000, q=2, time=0.13, gflops=40.8)


def test_hpl_is_read(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_text("some banner\n" + SOLVED)
    [run] = read_hpl_output(path)
    assert (run.n, run.nb, run.p, run.q, run.passed) == (2000, 192, 1, 2, True)
    assert run.rate_flops == pytest.approx(40.8e9) and run.residual == 0.0031


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "truncated or empty"),
        (SOLVED.replace("End of Tests.", ""), "did not finish"),
        (SOLVED.replace("PASSED", "FAILED"), "HPL counts"),
        (SOLVED.replace("0.0031", "nan"), "'nan' is not a time"),
        (SOLVED.replace("4.080e+01", "inf"), "'inf' is not a time"),
        ("\n".join(SOLVED.splitlines()[:2]), "no residual"),
        ("\n".join(line for line in SOLVED.splitlines() if "||Ax" not in line), "no residual"),
        ("End of Tests.\n", "HPL counts"),
        (SOLVED.replace("2000", "9" * 400), "… is more than any program counts"),
    ],
)
def test_hpl_that_is_not_whole_is_refused(tmp_path: Path, text: str, sentence: str) -> None:
    path = tmp_path / "out"
    path.write_text(text)
    with pytest.raises(RecordError, match=str(path)) as error:
        read_hpl_output(path)
    assert sentence in str(error.value)


#: What not every program counts.
NOT_EVERYWHERE = {"end": {"stopped", "carriers", "placement", "waiting"}}


def test_format_is_documented() -> None:
    """The schema in benchmarks/ and the reader know the same keys."""
    project = Path(__file__).resolve().parents[2]
    schema = json.loads((project / "benchmarks/format.schema.json").read_text())["$defs"]
    models = {"header": Header, "iterations": Iterations, "end": End, "time_s": TimeSummary,
              "least_and_most": LeastAndMost, "communication_iterations": CommunicationIterations,
              "emulation_iterations": EmulationIterations, "su3_iterations": Su3Iterations,
              "rank_iterations": RankIterations,
              **{"communication" if model is Communication else name: model
                 for name, model in RESULTS.items()}}  # fmt: skip
    pattern = schema["communication_operation"]["pattern"]
    assert len(OPERATIONS) > 17 and all(re.fullmatch(pattern, name) for name in OPERATIONS)
    for name, model in models.items():
        keys = {field.alias or key for key, field in model.model_fields.items()}
        assert keys == set(schema[name]["properties"]), name
        assert keys - NOT_EVERYWHERE.get(name, set()) == set(schema[name]["required"]), name
