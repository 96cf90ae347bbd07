"""The rates of the NAS Parallel Benchmarks, for `python -m costs.inside_and_outside`."""

from __future__ import annotations

from dataclasses import dataclass

from costs.places import Place
from records.npb import read_npb_output

BENCHMARKS = ("EP", "IS", "CG", "MG", "FT")
RANKS = (1, 2)


@dataclass(frozen=True)
class NasRates:
    """The rates of all benchmarks for some classes (a letter each), on one rank and on two."""

    classes: str

    def __call__(self, place: Place, mpiexec: list[str]) -> dict[str, float]:
        """Return each benchmark's rate in Mop/s; the programs verify their answers."""
        found = {}
        for size in self.classes:
            for benchmark in BENCHMARKS:
                for ranks in RANKS:
                    program = [f"nas_{benchmark.lower()}", "--class", size]
                    path = place.keep([*mpiexec, "-n", str(ranks), *program])
                    rate = read_npb_output(path).rate_ops
                    found[f"{benchmark}, class {size}, {ranks} rank(s) (Mop/s)"] = rate / 1e6
        return found
