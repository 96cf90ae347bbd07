"""The real ReFrame and the real checks over an image that a script stands in for.

The script plays `apptainer`: it answers `inspect` with labels and `exec` with canned output. So
every way in which a launch can go wrong is provoked without a wrong machine. "NOW" in the output
becomes the time at which it is printed.
"""

import hashlib
import json
import os
import re
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.unmeasured import unmeasured

PROJECT = Path(__file__).resolve().parents[2]
IMPLEMENTATION = "mpich-5.0.2"
LABELS = {
    "org.wyeast.implementation": IMPLEMENTATION,
    "org.wyeast.family": "mpich",
    "org.wyeast.version": "5.0.2",
    "org.wyeast.mpiexec": "mpiexec",
    "org.wyeast.mpiexec.pinned": "-bind-to core",
    "org.wyeast.mpiexec.oversubscribed": "",
    "org.wyeast.foreign_programs": "IMB-MPI1",
}
APPTAINER = """#!/bin/sh
case "$1" in
    inspect) cat "$STAND_IN/labels.json" ;;
    *) case "$*" in
           *hpl_dat*) exit 0 ;;
           *preflight*) cat "$STAND_IN/preflight.out" ;;
           *NPmpi*) file=${*##* -o }
                    [ ! -f "$STAND_IN/netpipe.out" ] || cp "$STAND_IN/netpipe.out" "${file%% *}"
                    cat "$STAND_IN/netpipe.stdout"; exit $(cat "$STAND_IN/netpipe.code") ;;
           *IMB-MPI1*) cat "$STAND_IN/imb.stdout" ;;
           */bin/true) exit $(cat "$STAND_IN/container_code") ;;
           *) [ ! -f "$STAND_IN/profile.jsonl" ] || cp "$STAND_IN/profile.jsonl" .
              [ ! -f "$STAND_IN/boots_daemons" ] || date +%s.%N >lam_booted
              sed "s/\\"NOW\\"/$(date +%s.%6N)/g" "$STAND_IN/stdout"
              cat "$STAND_IN/stderr" >&2; exit $(cat "$STAND_IN/code") ;;
       esac ;;
esac
"""


def header(program: str, ranks: int = 2, **more: object) -> dict[str, object]:
    return {
        "record": "header",
        "format": "wyeast-records-1",
        "program": program,
        "program_version": "1.0.0",
        "library": "MPICH Version: 5.0.2",
        "mpi_standard": "5.0",
        "ranks": ranks,
        "hosts": ["node"] * ranks,
        "processors": [[rank] for rank in range(ranks)],
        "clock": "MPI_Wtime",
        "clock_tick_s": 1e-9,
        "clock_resolution_s": 2.5e-8,
        "started_utc": "2026-01-01T00:00:00Z",
        "parameters": {},
        **more,
    }


def summary(seconds: float) -> dict[str, float]:
    return dict.fromkeys(("min", "quartile1", "median", "mean", "quartile3", "max"), seconds)


def lines(*records: dict[str, object]) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


PREFLIGHT = lines(
    header("preflight"),
    {"record": "result", "operation": "world", "ranks": 2, "distinct_hosts": 1},
    {
        "record": "result", "operation": "latency", "from": 0, "to": 1, "message_bytes": 8,
        "iterations": 100, "time_s": summary(1e-6),
    },
    {
        "record": "result", "operation": "transport", "from": 0, "to": 1,
        "transport": "shared memory", "evidence": "same host",
    },
    {"record": "end", "results": 3},
)  # fmt: skip


def pingpong(
    sizes: tuple[int, ...] = (300, 1800, 3300, 4800),
    seconds: float = 1e-5,
    memory_copy: float = 1e-7,
    iterations: int = 1000,
) -> str:
    records: list[dict[str, object]] = [header("pingpong")]
    for size in sizes:
        key = {"operation": "pingpong", "pair": "Send/Recv", "order": "modified",
               "message_bytes": size}  # fmt: skip
        records.append({
            "record": "result", **key, "iterations": iterations, "warmup": 100,
            "time_s": summary(seconds), "verified_bytes": 2 * size, "memory_copy_s": memory_copy,
        })  # fmt: skip
        records.append({"record": "iterations", **key, "time_s": [seconds] * iterations})
    return lines(*records, {"record": "end", "results": len(sizes)})


@dataclass
class Outcome:
    """What ReFrame said and what the campaign kept."""

    code: int
    text: str
    launches: list[dict[str, object]]

    def reason(self) -> str:
        """Return the reasons that ReFrame gave for failures, as one line."""
        return " | ".join(re.findall(r"(?:Reason|ERROR): (.*)", self.text))


def check_path(only: str) -> list[str]:
    """Return where the checks are: the files of those that are named, else the whole folder.

    Loading all of them takes most of a test's time.
    """
    files = {
        name: file
        for file in (PROJECT / "reframe_checks").glob("*.py")
        for name in re.findall(r"^class (\w+)\(", file.read_text(), re.M)
    }
    named = {files[name] for name in re.findall(r"[A-Z]\w+", only) if name in files}
    if not named:
        return ["-c", str(PROJECT / "reframe_checks")]
    named |= {files["Preflight"]}
    return [word for file in sorted(named) for word in ("-c", str(file))]


@dataclass
class StandIn:
    """A project root with one image that the script plays."""

    root: Path
    #: More of the environment in which ReFrame runs.
    variables: dict[str, str] = field(default_factory=dict)

    def write(self, stdout: str, stderr: str = "", code: int = 0) -> None:
        (self.root / "stdout").write_text(stdout)
        (self.root / "stderr").write_text(stderr)
        (self.root / "code").write_text(str(code))

    def run(self, *options: str, only: str = "PointToPoint.*=Send/Recv.*=short") -> Outcome:
        """Run the checks whose names match `only`."""
        campaign = self.root / "runs" / "campaign"
        (campaign / "launches").mkdir(parents=True, exist_ok=True)
        environment = {
            **unmeasured(),
            "PATH": f"{self.root}/bin:{os.environ['PATH']}",
            "PYTHONPATH": str(PROJECT),
            "RFM_CONFIG_PATH": str(PROJECT / "site_configs"),
            "RFM_SYSTEM": "local",
            "RFM_COLORIZE": "no",
            "RFM_PREFIX": str(self.root / "reframe"),
            "STAND_IN": str(self.root),
            "WYEAST_ROOT": str(self.root),
            "WYEAST_IMAGES": IMPLEMENTATION,
            "WYEAST_CAMPAIGN": str(campaign),
            "WYEAST_TIER": "quick",
            **self.variables,
        }
        done = subprocess.run(
            [
                PROJECT / "campaign/bin/reframe", *check_path(only), "-r", "-n", only,
                "--exec-policy=serial", *options,
            ],
            env=environment, cwd=PROJECT, capture_output=True, text=True, timeout=120,
            check=False,
        )  # fmt: skip
        kept = sorted((campaign / "launches").glob("*/launch.json"))
        return Outcome(
            done.returncode,
            done.stdout + done.stderr,
            [record for path in kept
             if (record := json.loads(path.read_text()))["experiment"] != "Preflight"],
        )  # fmt: skip

    def settings(self, change: Callable[[str], str]) -> str:
        """Return the path of settings for a site `local` whose file is another."""
        sites = self.root / "sites"
        (sites / "local").mkdir(parents=True)
        for name in ("settings.py", "local/references.yaml"):
            (sites / name).write_text((PROJECT / "site_configs" / name).read_text())
        data = (PROJECT / "site_configs/local/site.yaml").read_text()
        assert change(data) != data
        (sites / "local/site.yaml").write_text(change(data))
        return str(sites / "settings.py")


@pytest.fixture
def stand_in(tmp_path: Path) -> StandIn:
    """Return a project root with a locked image and a script in Apptainer's place."""
    for name in ("site_configs", "literature"):
        (tmp_path / name).symlink_to(PROJECT / name)
    (tmp_path / "containers").mkdir()
    table = PROJECT / "containers" / "implementations.yaml"
    (tmp_path / "containers" / "implementations.yaml").symlink_to(table)
    image = tmp_path / ".wyeast" / "images" / f"{IMPLEMENTATION}.sif"
    image.parent.mkdir(parents=True)
    image.write_bytes(b"stands in for an image")
    entry = {
        "file": image.name,
        "sha256": hashlib.sha256(image.read_bytes()).hexdigest(),
        "bytes": image.stat().st_size,
        "inputs_sha256": "0" * 64,
        "built_utc": "2026-01-01T00:00:00Z",
        "labels": LABELS,
    }
    lock = {"schema": "wyeast-images-1", "images": {IMPLEMENTATION: entry}}
    (tmp_path / "containers" / "images.lock").write_text(json.dumps(lock))
    (tmp_path / "labels.json").write_text(json.dumps({"data": {"attributes": {"labels": LABELS}}}))
    (tmp_path / "preflight.out").write_text(PREFLIGHT)
    script = tmp_path / "bin" / "apptainer"
    script.parent.mkdir()
    script.write_text(APPTAINER)
    script.chmod(0o755)
    here = StandIn(tmp_path)
    here.write(pingpong())
    (tmp_path / "container_code").write_text("0")
    return here


@pytest.fixture
def relock(stand_in: StandIn) -> Callable[[str], None]:
    """Return a function that writes another digest into images.lock."""

    def write(sha256: str) -> None:
        path = stand_in.root / "containers" / "images.lock"
        lock = json.loads(path.read_text())
        lock["images"][IMPLEMENTATION]["sha256"] = sha256
        path.write_text(json.dumps(lock))

    return write
