"""How close HPL comes to the DGEMM rate of its cores, as one of the platform's numbers."""

from __future__ import annotations

import argparse

from costs.places import Place
from records.hpl import read_hpl_output
from records.node_rates import DgemmResult
from records.program_output import read_program_output
from reframe_checks.mixins import hpl_problem, node_memory

RANKS = 2
N, NB = 4000, hpl_problem.USUAL_BLOCK_SIZE
DGEMM = ["dgemm", "--n", "2000", "--iterations", "3"]


def dgemm_rate(place: Place, mpiexec: list[str], ranks: int = RANKS) -> float:
    """Return the rate of all ranks at once by DGEMM, in FLOP/s."""
    path = place.keep([*mpiexec, "-n", str(ranks), *DGEMM])
    [product] = read_program_output(path).results
    assert isinstance(product, DgemmResult)
    return product.rate_flops


def hpl_rate(place: Place, mpiexec: list[str], order: int) -> float:
    """Return HPL's rate on 1x2 in FLOP/s."""
    place.run(["hpl_dat", "--p=1", f"--q={RANKS}", f"--n={order}", f"--nb={NB}",
               "--output=HPL.dat"])  # fmt: skip
    [run] = read_hpl_output(place.keep([*mpiexec, "-n", str(RANKS), "xhpl"]))
    return run.rate_flops


def linpack(place: Place, mpiexec: list[str]) -> dict[str, float]:
    """Return HPL's rate on 1x2 and DGEMM's of the same two cores in FLOP/s, and their ratio."""
    rate = hpl_rate(place, mpiexec, N)
    dgemm = dgemm_rate(place, mpiexec)
    return {
        f"HPL rate, N={N} on 1x{RANKS} (FLOP/s)": rate,
        f"DGEMM rate of {RANKS} ranks at once (FLOP/s)": dgemm,
        "HPL rate over DGEMM rate": rate / dgemm,
    }


def memory_share(text: str) -> float:
    """Return the share of the memory that an option requests; refuse what hpl_dat would."""
    try:
        share = float(text)
    except ValueError:
        share = 0.0
    if not 0 < share <= node_memory.LARGEST_SHARE:
        raise argparse.ArgumentTypeError(
            f"{text} is not a fraction of the memory: give a number above 0 and at most "
            f"{node_memory.LARGEST_SHARE}"
        )
    return share


FILLED_HEADER = (
    "| image | N of HPL on 1x2 | DGEMM before (FLOP/s) | HPL (FLOP/s) | DGEMM after (FLOP/s) "
    "| HPL over DGEMM |\n|---|---|---|---|---|---|"
)


def filled(
    implementation: str, place: Place, mpiexec: list[str], memory_bytes: float, share: float
) -> str:
    """Return a row about one HPL whose matrix takes a share of the memory, between two DGEMMs.

    HPL is compared with the mean of both, since it takes minutes and a machine's clock may drift.
    """
    order = hpl_problem.largest_order(memory_bytes, share, NB)
    if not order:
        raise SystemExit(
            f"performance: no matrix of a block of {NB} fits into {share:g} of {memory_bytes:.3g} "
            "bytes; give a larger --hpl-memory-share"
        )
    before = dgemm_rate(place, mpiexec)
    rate = hpl_rate(place, mpiexec, order)
    after = dgemm_rate(place, mpiexec)
    return (
        f"| {implementation} | {order} | {before:.4g} | {rate:.4g} | {after:.4g} "
        f"| {2 * rate / (before + after):.3f} |"
    )
