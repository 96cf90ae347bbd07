"""How near HPL comes to the rate that its cores have by DGEMM, as one of the platform's numbers."""

from __future__ import annotations

from analysis.hpl_output import read_hpl_output
from analysis.linpack_records import Dgemm
from analysis.records import read_program_output
from campaign.places import Place

RANKS = 2
N, NB = 4000, 192
DGEMM = ["dgemm", "--n", "2000", "--iterations", "3"]


def dgemm_rate(place: Place, mpiexec: list[str]) -> float:
    """Return the rate of two ranks at once by DGEMM, in FLOP/s."""
    path = place.keep([*mpiexec, "-n", str(RANKS), *DGEMM])
    [product] = read_program_output(path).results
    assert isinstance(product, Dgemm)
    return product.rate_flops


def linpack(place: Place, mpiexec: list[str]) -> dict[str, float]:
    """Return HPL's rate on 1x2 and DGEMM's of the same two cores in FLOP/s, and their ratio."""
    place.run(["hpl_dat", "--p=1", f"--q={RANKS}", f"--n={N}", f"--nb={NB}", "--output=HPL.dat"])
    path = place.keep([*mpiexec, "-n", str(RANKS), "xhpl"])
    rate = read_hpl_output(path)[0].rate_flops
    dgemm = dgemm_rate(place, mpiexec)
    return {
        f"HPL rate, N={N} on 1x{RANKS} (FLOP/s)": rate,
        f"DGEMM rate of {RANKS} ranks at once (FLOP/s)": dgemm,
        "HPL rate over DGEMM rate": rate / dgemm,
    }
