"""What NPB's programs wrote on a real machine, and what ours write, is read whole or refused.

The files captured/npb34_*.stdout are of NPB 3.4.1 (gfortran 12, MPICH 4.0.2, 2 ranks), its compile
options shortened. OLDER and FAILED below are written by hand after them.
"""

import re
from pathlib import Path

import pytest

from analysis.comparison.metrics import metrics
from analysis.tables.parquet import result_rows
from records.base import RecordError
from records.launch import Launch, LaunchRecord
from records.npb import OPERATIONS, literature, problem, read_npb_output
from records.timed import timed_s
from records.values import values_of

CAPTURED = Path(__file__).with_name("captured")
CG = (CAPTURED / "npb34_cg.stdout").read_text()
#: NPB 3.3 says for how many processes it was compiled, and its text ends alike.
OLDER = CG.replace("Active processes=  ", "Compiled procs  =  ").replace("3.4.1", "3.3.1")
FAILED = CG.replace("VERIFICATION SUCCESSFUL", "VERIFICATION FAILED").replace(
    " Zeta is     0.8597177507865E+01\n Error is    0.8264837327252E-15\n",
    " Zeta                0.8597178507865E+01\n The correct zeta is 0.8597177507865E+01\n",
).replace("              SUCCESSFUL", "            UNSUCCESSFUL")  # fmt: skip
OURS = """\


 MG of the NAS Parallel Benchmarks, class S, by Wyeast 1.0.0

 Hosts           = one two


 MG Benchmark Completed.
 Class           =                        S
 Size            =             32x  32x  32
 Iterations      =                        4
 Time in seconds =              0.001928296
 Total processes =                        2
 Mop/s total     =              3942.432074
 Mop/s/process   =              1971.216037
 Operation type  =           floating point
 Verification    =               SUCCESSFUL
 Version         =             Wyeast 1.0.0
"""
WRONG = " the residual's norm is 5.4e-05, expected is 5.3e-05 within 1e-08 (NPB3.4.1-MPI)\n"


def write(folder: Path, text: str) -> Path:
    path = folder / "stdout"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("benchmark", "size", "rate"),
    [("EP", (2**25,), 27.04), ("IS", (65536,), 1.05), ("CG", (1400,), 13.88),
     ("MG", (32, 32, 32), 7.51), ("FT", (64, 64, 64), 260.64)],
)  # fmt: skip
def test_npb(benchmark: str, size: tuple[int, ...], rate: float) -> None:
    run = read_npb_output(CAPTURED / f"npb34_{benchmark.lower()}.stdout")
    assert (run.benchmark, run.problem_class, run.size) == (benchmark, "S", size)
    assert run.verified and run.processes == 2 and run.hosts is None and run.version == "3.4.1"
    assert run.rate_ops == pytest.approx(rate * 1e6)
    assert run.iterations == problem(benchmark, "S").iterations


def test_data_traffic_of_npb_names_its_graph(tmp_path: Path) -> None:
    """As NPB 3.4's c_print_results writes it: the class behind the name, nodes for iterations."""
    text = CG.replace(" CG Benchmark Completed.", " DT_SH.S Benchmark Completed")
    known = problem("DT_SH", "S")
    assert known.size == (6912,) and known.iterations == 12
    rate = 6912 * 16 / 2**20 / 4.8
    changes = {"1400\n Iter": "6912\n Iter", "15\n Time": "12\n Time",
               "13.88": f"{rate:.6f}", "6.94": f"{rate / 2:.6f}"}  # fmt: skip
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new, 1)
    run = read_npb_output(write(tmp_path, text))
    assert (run.benchmark, run.problem_class, run.size, run.iterations) == (
        "DT_SH", "S", (6912,), 12,
    )  # fmt: skip
    assert run.verified and run.rate_ops == pytest.approx(rate * 1e6, rel=1e-4)
    with pytest.raises(RecordError, match="there is no benchmark DT_XX"):
        read_npb_output(write(tmp_path, text.replace("DT_SH.S", "DT_XX.S")))


def test_older_npb(tmp_path: Path) -> None:
    run = read_npb_output(write(tmp_path, OLDER))
    assert run.version == "3.3.1" and run.processes == 2 and run.time_s == 4.8


def test_ours(tmp_path: Path) -> None:
    run = read_npb_output(write(tmp_path, OURS))
    assert run.hosts == ("one", "two") and run.version == "Wyeast 1.0.0"
    assert run.time_s == 0.001928296 and run.rate_per_process_ops == pytest.approx(1971.216037e6)


def repeated(times: str) -> str:
    line = " Time in seconds =              0.001928296\n"
    assert line in OURS
    return OURS.replace(line, f"{line} Each time       = {times}\n")


def test_the_median_of_repeated_times_counts(tmp_path: Path) -> None:
    run = read_npb_output(write(tmp_path, repeated("0.001928296 0.190000000 0.001900000")))
    assert run.times_s == (0.001928296, 0.19, 0.0019) and run.time_s == 0.001928296
    assert timed_s(run) == pytest.approx(0.193828296)
    assert read_npb_output(write(tmp_path, OURS)).times_s == (0.001928296,)


@pytest.mark.parametrize(
    ("times", "sentence"),
    [
        ("0.001928296 0.190000000 0.191000000", "not the median of an odd number"),
        ("0.001928296 0.001928296", "not the median of an odd number"),
        ("0.001928296 -0.1 0.2", "'-0.1', which is not a number"),
        (" ".join(101 * ["0.001928296"]), "101 times, more than 99"),
        (f"0.001928296 0.0019 {400 * '9'}", "is not a finite number"),
        (f"0.001928296 0.0019 {'9' * 308} {'9' * 308} 0.0019", "is not a finite number"),
        ("0.001928296\n Each time       = 0.001928296", "Each time appears a second time"),
    ],
)
def test_times_of_which_the_summary_is_not_the_median(
    tmp_path: Path, times: str, sentence: str
) -> None:
    with pytest.raises(RecordError, match=rf"stdout:1\d: .*{re.escape(sentence)}"):
        read_npb_output(write(tmp_path, repeated(times)))


def test_failed_verification_is_kept_as_such(tmp_path: Path) -> None:
    run = read_npb_output(write(tmp_path, FAILED))
    assert not run.verified
    assert run.wrong == (
        "VERIFICATION FAILED; Zeta                0.8597178507865E+01; "
        "The correct zeta is 0.8597177507865E+01",
    )
    text = OURS.replace(" Hosts", WRONG + " Hosts").replace("  SUCCESSFUL", "UNSUCCESSFUL")
    assert read_npb_output(write(tmp_path, text)).wrong == (WRONG.strip(),)


def test_short_time_is_a_bound_only(tmp_path: Path) -> None:
    """A time of less than half its last digit is printed as 0.00, and still bounds the rate."""
    text = OLDER.replace(" 4.80\n", " 0.00\n").replace(" 6.94\n", " 10000.00\n")
    fast = text.replace(" 13.88\n", " 20000.00\n")
    assert read_npb_output(write(tmp_path, fast)).rate_ops == 2e10
    with pytest.raises(RecordError, match=r"13\.88 Mop/s, but"):
        read_npb_output(write(tmp_path, text))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", ":1: no benchmark completed"),
        (CG[: CG.index(" CG Benchmark Completed")], "no benchmark completed"),
        (OURS[: OURS.index(" Verification")], "lacks Verification, Version"),
        (OURS[: OURS.index(" Wyeast 1.0.0\n", 90)], "lacks Version"),
        (OURS[:-1], "lacks the end of its last line"),
        (OURS.replace(" Operation type  =           floating point\n", ""), "lacks Operation type"),
        (OURS + OURS, ":26: a second benchmark: the ranks did not form one world"),
        (CG + CG, ": a second benchmark"),
        (OURS.replace(" Hosts ", " Hosts           = one\n Hosts "), "hosts are named 2 times"),
        (OURS.replace(" Class ", " Class           = S\n Class "), ":10: Class appears a second"),
        (OURS.replace("= " + 23 * " " + "S", "= X"), ":9: MG has no class 'X'"),
        (OURS.replace("MG Benchmark", "XY Benchmark"), "there is no benchmark XY"),
        (OURS.replace("32x  32x  32", "32x  32x  64"), "that of class S is 32x32x32"),
        (OURS.replace("32x  32x  32", "**x  32x  32"), "Size is '**', which is not a whole number"),
        (OURS.replace("                 4\n", "                 5\n"), "class S has 4"),
        (OURS.replace("3942.432074", "3943.432074"), ":14: 3943.432074 Mop/s, but 7.6"),
        (OURS.replace("1971.216037", "3942.432074"), "in each of 2 processes"),
        (OURS.replace("3942.432074", "        nan"), "Mop/s total is 'nan', which is not a number"),
        (OURS.replace("3942.432074", "***********"), "which is not a number"),
        (OURS.replace("3942.432074", "0.00"), "is not a valid rate"),
        (OURS.replace("0.001928296", "0.002928296"), "million operations in 0.002928296 s"),
        (OURS.replace("  SUCCESSFUL", "NOT PERFORMED"), "neither SUCCESSFUL nor UNSUCCESSFUL"),
        (CG.replace("Active processes=                        2",
                    "Active processes=                        3"), "3 of 2 processes are active"),
    ],
)  # fmt: skip
def test_damaged(tmp_path: Path, text: str, sentence: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(RecordError) as caught:
        read_npb_output(path)
    assert f"{path}:" in str(caught.value) and sentence in str(caught.value)


def test_no_file_at_all(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="none:1: "):
        read_npb_output(tmp_path / "none")


def test_every_benchmark_of_the_literature_has_its_count() -> None:
    """Also LU, SP and BT, which are read where an image has NPB's own programs; in every class."""
    assert {name.partition("_")[0] for name in OPERATIONS} == literature().keys() - {"meta"}
    for benchmark in OPERATIONS:
        classes = literature()[benchmark.partition("_")[0]]["classes"]
        assert set("SWAB" if benchmark.startswith("DT") else "SWABCDE") <= classes.keys()
        found = [problem(benchmark, name).operations for name in classes]
        assert found == sorted(found) and found[0] > 1e4, benchmark


def test_rate_reaches_comparison_and_tables(tmp_path: Path) -> None:
    run = read_npb_output(write(tmp_path, OURS))
    record = LaunchRecord.model_construct(launch="one", experiment="Nas")
    launch = Launch(record, run)
    values = values_of("Nas", run, 0.0)
    assert values.series == {"": {0: pytest.approx(3942.432074e6)}}
    assert values.seconds == (run.time_s,) and not values.times
    [row] = result_rows(launch)
    assert set(row) == {"launch", "operation", "benchmark", "problem_class", "iterations", "time_s",
                        "rate_ops"}  # fmt: skip
    assert (row["operation"], row["benchmark"], row["problem_class"]) == ("npb", "MG", "S")
    assert metrics()["Nas"]["unit"] == "op/s" and metrics()["Nas"]["better"] == "higher"
