"""True numbers of the cells that claims are about, by table and column of the studies."""

from collections.abc import Callable
from typing import Any

import numpy
import polars as pl

from analysis.studies.relations import Report

Row = dict[str, Any]
#: A table's columns with the true number of each row.
Truths = dict[str, dict[str, Callable[[Row], float]]]


def lam(faster: float, elsewhere: float | None = None,
        where: Callable[[Row], bool] = lambda _: False) -> Callable[[Row], float]:  # fmt: skip
    """Return a rate of LAM over MPICH's, and another for some rows."""

    def rate(row: Row) -> float:
        if row["mpi"] != "LAM":
            return 1.0
        return float(elsewhere if elsewhere is not None and where(row) else faster)

    return rate


def one_size(row: Row) -> bool:
    return bool(row["message_bytes"] == 65_000)


def one_range(row: Row) -> bool:
    return bool(row["pair"] == "Ssend/Irecv" and row["range"] == "medium")


def bandwidth(*rate: Any) -> Truths:
    return {"bandwidth": {"avg_mbs": lam(*rate)}}


def hpl(gain: float, small: float) -> Truths:
    """Return rates that grow from grid to grid by a factor, at N=2000 and 4000 by another."""
    grids = [1, 2, 4, 8, 10, 12, 16, 20, 24]
    return {
        "hpl": {
            "gflops": lambda row: (small if row["n"] < 6000 else gain) ** grids.index(row["procs"]),
            "seconds": lambda _: 1.0,
        }
    }


def speedup(efficiency: float, elsewhere: float) -> Truths:
    def seconds(row: Row) -> float:
        part = elsewhere if row["procs"] == 8 and row["mpi"] == "LAM" else efficiency
        return 1.0 if row["procs"] == 1 else 1 / (part * row["procs"])

    return {"hpl": {"gflops": lambda _: 1.0, "seconds": seconds}}


def su3(growth: float, of_mpich: float) -> Truths:
    """Return times that grow from number to number of processes by a factor."""

    def seconds(row: Row) -> float:
        of_smallest = row["mpi"] == "MPICH" and row["experiment"] == 1
        return float((of_mpich if of_smallest else growth) ** numpy.log2(row["procs"]))

    return {"su3": {"wall_s": seconds, "cpu_s": lambda _: 1.0}}


def su3_ratio(wall: float, elsewhere: float) -> Truths:
    """Return MPICH's time over LAM's, and another in one cell."""

    def seconds(row: Row) -> float:
        one = row["experiment"] == 3 and row["procs"] == 8
        return 1.0 if row["mpi"] == "LAM" else elsewhere if one else wall

    return {"su3": {"wall_s": seconds, "cpu_s": lambda _: 1.0}}


def su3_cpu(cpu: float, wall: float, few: bool) -> Truths:
    """Return MPICH's CPU time and LAM's wall time over the other's: in three quarters, or one."""

    def so(row: Row) -> bool:
        return bool((row["experiment"] % 4 == 0) == few)

    def of_cpu(row: Row) -> float:
        return 1.0 if row["mpi"] == "LAM" else cpu if so(row) else 1 / cpu

    def of_wall(row: Row) -> float:
        return 1.0 if row["mpi"] == "MPICH" else wall if so(row) else 1 / wall

    return {"su3": {"cpu_s": of_cpu, "wall_s": of_wall}}


def slowest(name: str, columns: list[str], factor: float, elsewhere: float) -> Truths:
    """Return times of which one implementation's are longer by a factor; by another at 100."""

    def time(row: Row) -> float:
        if row["mpi"] != name:
            return 1.0
        return elsewhere if row.get("size_doubles") == 100 else factor

    return {"pingpong": dict.fromkeys(columns, time)}


def all_to_all(of_mvapich: float, of_openmpi: float) -> Truths:
    """Return MVAPICH's minimum and Open MPI's average, as parts of the others'."""
    return {
        "alltoall": {
            "min_s": lambda row: of_mvapich if row["mpi"] == "MVAPICH" else 1.0,
            "avg_s": lambda row: of_openmpi if row["mpi"] == "Open MPI" else 1.0,
            "max_s": lambda _: 1.0,
        }
    }


def overhead(percent: float, elsewhere: float) -> Truths:
    """Return all-to-alls of which one of 40 bytes takes that part of one of 100,000."""

    def rate(row: Row) -> float:
        part = elsewhere if row["procs"] == 8 else percent
        return float(row["buffer_bytes"] / (part / 100 if row["buffer_bytes"] == 40 else 1.0))

    return {"ata_size": {"bandwidth_mbs": rate}}


def passes(percent: float, elsewhere: float) -> Truths:
    return {
        "sts": {
            "per_pass_ms": lambda row: 10 * (elsewhere if row["procs"] == 256 else percent),
            "bandwidth_mbs": lambda _: 1.0,
        }
    }


def beyond_peak(part: float) -> Truths:
    """Return bandwidths that rise to 500,000 bytes; of 20,000,000 it is a part of that."""

    def rate(row: Row) -> float:
        return part if row["message_bytes"] == 20_000_000 else min(1.0, row["message_bytes"] / 5e5)

    return {"lbw_size": {"bandwidth_mbs": rate}}


def strided(part: float) -> Truths:
    return {
        "mpptest": {
            "bandwidth_mbs": lambda row: part if row["message_bytes"] == 1024 else 1.0,
            "one_way_us": lambda _: 1.0,
        }
    }


def bisection(elsewhere: float, short: float) -> Truths:
    """Return a bandwidth over size that is constant but for one long size, and of short ones."""

    def rate(row: Row) -> float:
        if row["suite"] == "short":
            return float(short * row["message_bytes"] / 1024)
        return elsewhere if row["message_bytes"] == 524_288 else 1.0

    return {"bisection": {"bandwidth_mbs": rate}}


def iit_frame(name: str) -> pl.DataFrame:
    """Return cells of the report whose tables are figures; tier `paper` has them."""
    short, long = range(0, 1025, 64), range(262_144, 1_048_577, 65_536)
    rows = [
        {"suite": suite, "message_bytes": size, "mpi": "LAM", "a_node": 1, "procs": 2}
        for suite, sizes in {"short": short, "long": long, "strided": short}.items()
        for size in sizes
        if size and (suite != "strided" or name == "mpptest")
    ]
    return pl.DataFrame(rows)


def ata_frame() -> pl.DataFrame:
    return pl.DataFrame(
        [{"system": "any", "procs": procs, "buffer_bytes": size}
         for procs in (2, 4, 8, 16, 24, 32, 48, 64) for size in (40, 100_000)]
    )  # fmt: skip


def cells_only(report: Report, name: str) -> pl.DataFrame:
    """Return a table's cells, of an implementation and a repeat one each."""
    if report.paper.name == "iit":
        return iit_frame(name)
    if name == "ata_size":
        return ata_frame()
    frame = report.base(name, report.study.tables[name])
    if name == "alltoall":
        # In the table's order, so that a seed gives each cell the same noise in every run.
        return frame.unique(subset=["class", "mpi"], keep="first", maintain_order=True)
    return frame
