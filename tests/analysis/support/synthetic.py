"""A campaign that nobody measured: numbers with a known truth, for tests only."""

import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy

PAIRS = ["Send/Recv", "Send/Irecv", "Isend/Recv", "Isend/Irecv",
         "Ssend/Recv", "Ssend/Irecv", "Issend/Recv", "Issend/Irecv"]  # fmt: skip
SIZES = {"short": [300, 1800, 4800], "medium": [5000, 43000, 100000], "long": [200000, 2000000]}
HPL = """\
T/V                N    NB     P     Q               Time             Gflops
WR11C2R4        {n}   192     1     {q}               {time:.2f}              {gflops:.3e}
||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)=        0.0031 ...... PASSED

Finished      1 tests with the following results:
              1 tests completed and passed residual checks,
              0 tests completed and failed residual checks,
              0 tests skipped because of illegal input values.

End of Tests.
"""


@dataclass
class Truth:
    """How fast an implementation is: latency in s, bandwidth in B/s, Linpack in FLOP/s."""

    latency: float
    bandwidth: float
    linpack: float


@dataclass
class Synthetic:
    """Writes a campaign folder; noise multiplies, per launch and per iteration."""

    folder: Path
    truths: dict[str, Truth]
    rounds: int = 3
    noise: float = 0.02
    seed: int = 1
    iterations: int = 11
    pairs: list[str] = field(default_factory=lambda: list(PAIRS))
    created_utc: str = "2026-01-01T00:00:00.000Z"
    #: The digest of the first implementation's image; the next ones follow.
    first_image: int = 1
    #: How much campaigns differ, beyond their launches' own noise.
    noise_of_campaign: float = 0.0
    #: What else the manifest says, over what is there.
    facts: dict[str, Any] = field(default_factory=dict)

    def write(self) -> Path:
        random = numpy.random.default_rng(self.seed)
        (self.folder / "launches").mkdir(parents=True)
        images: dict[str, dict[str, Any]] = {
            name: {"sha256": self.digest(name), "labels": {}, "manifest": None}
            for name in self.truths
        }
        manifest = {
            "schema": "wyeast-campaign-1", "campaign": self.folder.name, "name": "synthetic",
            "site": "local", "tier": "quick", "created_utc": self.created_utc,
            "finished_utc": "2026-01-01T01:00:00.000Z", "rounds": max(1, self.rounds),
            "order_seed": 7, "checks": None, "images": images,
            "inputs": {"containers/sources.lock": "0" * 64},
            "machine": {"hostname": "synthetic", "kernel": "none", "cpu_model": "a synthetic CPU",
                        "cores": 2, "memory_bytes": 1, "governor": None, "microcode": None},
            "software": {"reframe": "none", "slurm": None}, "commands": ["make run"],
            "rounds_done": [], **self.facts,
        }  # fmt: skip
        (self.folder / "manifest.json").write_text(json.dumps(manifest))
        for number in range(1, self.rounds + 1):
            for name, truth in self.truths.items():
                for pair in self.pairs:
                    for message_range, sizes in SIZES.items():
                        self.point_to_point(random, number, name, truth, pair, message_range, sizes)
                for grid in ("1x1", "1x2"):
                    self.linpack(random, number, name, truth, grid)
        return self.folder

    def digest(self, name: str) -> str:
        """Return the digest of an implementation's image."""
        return f"{self.first_image + list(self.truths).index(name):064x}"

    def launch(self, number: int, name: str, experiment: str, parameters: dict[str, Any],
               stdout: str, metrics: dict[str, tuple[float, str]] | None = None,
               **more: Any) -> Path:  # fmt: skip
        cell = " ".join([experiment, *(f"{key}={value}" for key, value in parameters.items())])
        folder = f"round{number:03d}_{cell}_{name}".replace(" ", "_").replace("/", "_")
        path = self.folder / "launches" / folder
        path.mkdir()
        record = {
            "schema": "wyeast-launch-1", "launch": folder, "round": number, "position": 1,
            "experiment": experiment, "parameters": parameters, "cell": cell,
            "implementation": name,
            "image_sha256": self.digest(name),
            "program": "xhpl" if experiment == "Linpack" else "pingpong",
            "output_format": "hpl" if experiment == "Linpack" else "wyeast-records-1",
            "ranks": 2, "nodes": 1, "site": "local", "partition": "local:default",
            "tier": "quick", "command": "none", "started_utc": "2026-01-01T00:00:00Z",
            "ended_utc": "2026-01-01T00:00:01Z", "wall_s": 1.0, "exit_code": 0,
            "outcome": "sound", "sentence": None, "reframe": {"name": cell, "hash": "0"}, **more,
        }  # fmt: skip
        (path / "launch.json").write_text(json.dumps(record))
        manifest = json.loads((self.folder / "manifest.json").read_text())
        if number > manifest["rounds"]:
            manifest["rounds"] = number
            (self.folder / "manifest.json").write_text(json.dumps(manifest))
        (path / "stdout").write_text(stdout)
        (path / "stderr").write_text("")
        reported = {
            metric: {"value": value, "unit": unit, "reference": None, "by": None, "finding": None}
            for metric, (value, unit) in (metrics or {}).items()
        }
        if reported:
            (path / "metrics.json").write_text(json.dumps({
                "schema": "wyeast-metrics-1", "cell": cell, "implementation": name, "stale": None,
                "metrics": reported,
            }))  # fmt: skip
        return path

    def ping_pongs(self, random: numpy.random.Generator, name: str, truth: Truth, pair: str,
                   sizes: list[int]) -> tuple[str, list[float]]:  # fmt: skip
        """Return the output of a ping-pong, and its median round trips in s."""
        records: list[dict[str, Any]] = [{
            "record": "header", "format": "wyeast-records-1", "program": "pingpong",
            "program_version": "1.0.0", "library": name, "mpi_standard": "4.1", "ranks": 2,
            "hosts": ["a", "a"], "processors": [[0], [1]], "clock": "MPI_Wtime",
            "clock_tick_s": 1e-9, "clock_resolution_s": 2e-8, "started_utc": "2026",
            "parameters": {},
        }]  # fmt: skip
        of_launch = self.of_campaign() * math.exp(self.noise * random.standard_normal())
        medians = []
        for size in sizes:
            time = 2 * (truth.latency + size / truth.bandwidth) * of_launch
            times = time * numpy.exp(0.05 * random.standard_normal(self.iterations))
            quantiles = numpy.quantile(times, [0, 0.25, 0.5, 0.75, 1])
            medians.append(float(quantiles[2]))
            names = ("min", "quartile1", "median", "quartile3", "max")
            key = {"operation": "pingpong", "pair": pair, "order": "modified",
                   "message_bytes": size}  # fmt: skip
            summary = dict(zip(names, map(float, quantiles), strict=True))
            records += [
                {"record": "result", **key, "iterations": self.iterations, "warmup": 1,
                 "time_s": {**summary, "mean": float(times.mean())},
                 "verified_bytes": 2 * size, "memory_copy_s": size / 3e10},
                {"record": "iterations", **key, "time_s": times.tolist()},
            ]  # fmt: skip
        records.append({"record": "end", "results": len(sizes)})
        return "".join(json.dumps(record) + "\n" for record in records), medians

    def point_to_point(self, random: numpy.random.Generator, number: int, name: str, truth: Truth,
                       pair: str, message_range: str, sizes: list[int]) -> Path:  # fmt: skip
        text, medians = self.ping_pongs(random, name, truth, pair, sizes)
        parameters = {"pair": pair, "message_range": message_range}
        metrics = {
            "bandwidth": (2 * sizes[-1] / medians[-1], "B/s"), "latency": (medians[0] / 2, "s"),
        }  # fmt: skip
        return self.launch(number, name, "PointToPoint", parameters, text, metrics)

    def of_campaign(self) -> float:
        """Return by what times of this campaign are multiplied."""
        random = numpy.random.default_rng(self.seed)
        return math.exp(self.noise_of_campaign * random.standard_normal())

    def linpack(self, random: numpy.random.Generator, number: int, name: str, truth: Truth,
                grid: str) -> Path:  # fmt: skip
        ranks = int(grid[-1])
        noise = math.exp(self.noise * random.standard_normal())
        rate = truth.linpack * ranks * noise / self.of_campaign()
        time = (2 / 3 * 4000**3 + 1.5 * 4000**2) / rate
        text = HPL.format(n=4000, q=ranks, time=time, gflops=rate / 1e9)
        return self.launch(
            number, name, "Linpack", {"grid": grid, "n": 4000, "nb": 192}, text,
            {"rate": (rate, "FLOP/s")}, ranks=ranks,
        )  # fmt: skip


TWICE = {
    "alpha-1.0": Truth(latency=1e-6, bandwidth=4e9, linpack=30e9),
    "beta-2.0": Truth(latency=5e-7, bandwidth=8e9, linpack=30e9),
}


def timed_anew(folder: Path) -> Path:
    """Have a campaign's programs time by CLOCK_MONOTONIC, as they do since MPI_Wtime did."""
    mpi_wtime = {"tick_s": 1e-9, "resolution_s": 2e-8, "cost_s": 2e-8}
    newer = {"format": "wyeast-records-2", "clock": "CLOCK_MONOTONIC", "mpi_wtime": mpi_wtime}
    for path in (folder / "launches").glob("*/stdout"):
        first, *rest = path.read_text().splitlines(keepends=True)
        if '"header"' in first:
            path.write_text(json.dumps(json.loads(first) | newer) + "\n" + "".join(rest))
    return folder
