"""A new site's folder: written of what the machine says, right by the schema and for ReFrame."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from campaign.site import new
from site_configs.entries import SiteError
from tests.site_configs.fake_machine import (
    CLUSTERS,
    LAUNCHERS,
    SLURM,
    commands,
    interface,
    machine,
    port,
)

PROJECT = Path(__file__).resolve().parents[3]


def written(
    folder: Path, scripts: dict[str, str], family: str | None = None
) -> tuple[dict[str, Any], str]:
    """Return the data and the text of the site.yaml of a machine that is called login3."""
    text = new.files_of("mine", machine(folder, scripts), family, "login3")["site.yaml"]
    return yaml.safe_load(text), text


def comments_above(text: str, key: str) -> str:
    """Return the comments above a key, on one line."""
    lines: list[str] = []
    for line in text.splitlines():
        if line.startswith(f"{key}:"):
            return " ".join(lines)
        lines = [*lines, line.removeprefix("# ")] if line.startswith("# ") else []
    raise AssertionError(f"{key} is not in the file")


def test_a_slurm_cluster_is_described(tmp_path: Path) -> None:
    port(tmp_path, "mlx5_0", "100 Gb/sec (4X EDR)", "4: ACTIVE")
    interface(tmp_path, "eth0", "1000")
    scripts = SLURM | {"apptainer": "echo apptainer version 1.4.5", "spack": "echo 1.0.1"}
    site, text = written(tmp_path, scripts)
    assert site | {"peak_flops_per_node": 0} == {
        "description": "Slurm cluster", "hostnames": [r"^login\d+(\.|$)"], "scheduler": "slurm",
        "partition": "batch", "access": ["--partition=batch"], "launch": "srun", "nodes": 42,
        "cores_per_node": 64, "memory_bytes_per_node": 257000 << 20, "peak_flops_per_node": 0,
        "link_bytes_per_s": 12_500_000_000,
    }  # fmt: skip
    assert comments_above(text, "nodes") == "guess: sinfo, partition batch."
    assert "this is the smallest value" in comments_above(text, "cores_per_node")
    assert "There are also: debug" in comments_above(text, "access")
    assert "has pmi2, pmix" in comments_above(text, "launch")
    assert "mlx5_0, 100 Gb/sec (4X EDR)" in comments_above(text, "link_bytes_per_s")
    assert "Apptainer here: apptainer version 1.4.5." in text and "Spack here: 1.0.1." in text


def test_images_that_srun_cannot_start_are_left_out(tmp_path: Path) -> None:
    site, text = written(tmp_path, SLURM | {"srun": 'echo "MPI plugin types are...\n\tpmi2"'})
    assert site["implementations"] == ["mpich-5.0.2"]
    assert "openmpi-5.0.11 cannot be started" in comments_above(text, "implementations")
    site, text = written(
        tmp_path, SLURM | {"srun": 'echo "MPI plugin types are...\n\tcray_shasta"'}
    )
    assert "to do: `srun --mpi=list` has cray_shasta" in comments_above(text, "launch")


#: Of each scheduler's stand-in: its nodes, a node's cores, and what a job has to request.
OTHERS = {
    "pbs": (2, 36, ["-q workq", "-l place=scatter:excl"]),
    "lsf": (2, 40, ["-q normal", "-x"]),
    "sge": (2, 32, ["-q all.q", "-pe mpi {slots}"]),
}


@pytest.mark.parametrize("family", OTHERS)
def test_without_any_launcher_a_job_has_one_node(tmp_path: Path, family: str) -> None:
    nodes, cores, access = OTHERS[family]
    site, text = written(tmp_path, CLUSTERS[family])
    assert (site["scheduler"], site["launch"], site["nodes"]) == (family, "mpiexec", 1)
    assert comments_above(text, "nodes").startswith(f"Of {nodes}: ")
    assert (site["cores_per_node"], site["access"]) == (cores, access)
    assert "no MPI's launcher is on PATH here" in comments_above(text, "launch")


@pytest.mark.parametrize("family", OTHERS)
def test_with_launchers_a_job_has_all_nodes(tmp_path: Path, family: str) -> None:
    site, text = written(tmp_path, CLUSTERS[family] | LAUNCHERS)
    assert (site["launch"], site["nodes"]) == ("mpirun", OTHERS[family][0])
    bin_of = tmp_path / "bin"
    assert site["launcher"] == {"openmpi": f"{bin_of}/mpirun", "mpich": f"{bin_of}/mpiexec"}
    assert "implementations" not in site
    assert "add `hostfile: true`" in comments_above(text, "launcher")
    one, text = written(tmp_path / "one", CLUSTERS[family] | {"mpirun": LAUNCHERS["mpirun"]})
    assert one["implementations"] == ["openmpi-5.0.11"]
    assert "mpich-5.0.2 need another launcher" in comments_above(text, "implementations")


def test_reframe_requests_one_node_of_flux_and_no_queue(tmp_path: Path) -> None:
    site, _ = written(tmp_path, CLUSTERS["flux"] | LAUNCHERS)
    assert (site["scheduler"], site["launch"], site["nodes"]) == ("flux", "mpiexec", 1)
    assert site["cores_per_node"] == 32 and "access" not in site


@pytest.mark.parametrize("family", ["slurm", "pbs", "lsf", "sge"])
def test_what_nobody_says_is_left_to_do(tmp_path: Path, family: str) -> None:
    """A forced scheduler that is not here gives a template with marks, and numbers all the same."""
    _, text = written(tmp_path, {}, family)
    for key in ("cores_per_node", "memory_bytes_per_node", "access", "description"):
        assert "to do: " in comments_above(text, key), key
    assert "guess: " in comments_above(text, "peak_flops_per_node")


def run(*words: str | Path, path: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *words],
        cwd=PROJECT, env={**os.environ, "PYTHONPATH": str(PROJECT), "PATH": path, **more},
        capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("family", CLUSTERS)
def test_reframe_loads_what_is_written(tmp_path: Path, family: str) -> None:
    """From the command to ReFrame's own reading of the folder, with each scheduler's commands."""
    path = str(commands(tmp_path / "bin", CLUSTERS[family]))
    sites = tmp_path / "site_configs"
    sites.mkdir()
    done = run("-m", "campaign.site.new", "mine", f"--sites={sites}", path=path)
    assert done.returncode == 0 and "make check-site SITE=mine" in done.stdout, done.stderr
    (sites / "settings.py").write_text((PROJECT / "site_configs/settings.py").read_text())
    shown = run(
        "-m", "reframe_checks.bin.guards", "--show-config=systems/0/partitions/0/scheduler",
        path=f"{path}:{os.environ['PATH']}", RFM_CONFIG_PATH=str(sites), RFM_SYSTEM="mine",
    )  # fmt: skip
    if family == "flux":
        # Python's bindings of it come with it alone.
        assert "no flux Python bindings found" in shown.stdout
        return
    assert shown.returncode == 0 and shown.stdout.strip() == f'"{family}"', shown.stderr


def test_a_folder_is_never_overwritten(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/site.yaml").write_text("precious")
    done = run("-m", "campaign.site.new", "mine", f"--sites={tmp_path}", path=os.environ["PATH"])
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    assert "site_configs/mine already exists and is left unchanged" in done.stderr
    assert [path.read_text() for path in (tmp_path / "mine").iterdir()] == ["precious"]


def test_a_dry_run_writes_nothing(tmp_path: Path) -> None:
    done = run("-m", "campaign.site.new", "mine", f"--sites={tmp_path}", "--dry-run",
               "--scheduler=pbs", path=os.environ["PATH"])  # fmt: skip
    assert done.returncode == 0 and not list(tmp_path.iterdir())
    assert 'scheduler: "pbs"' in done.stdout and "PointToPoint:" in done.stdout


@pytest.mark.parametrize("name", ["", "../mine", "my site", "1st", "generic", ".hidden"])
def test_a_name_that_none_can_have(tmp_path: Path, name: str) -> None:
    with pytest.raises(SiteError, match="is not a valid site name"):
        new.refuse_name(name, tmp_path)


def test_a_folder_is_written_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {"references.yaml": "a", "site.yaml": "b"}
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(new, "put_in_place", interrupted)
        new.write(tmp_path / "mine", files)
    assert not list(tmp_path.iterdir())
    # What one that was killed has left is in nobody's way.
    (tmp_path / ".mine-left").mkdir()
    new.write(tmp_path / "mine", files)
    assert {path.name: path.read_text() for path in (tmp_path / "mine").iterdir()} == files
    with pytest.raises(SiteError, match="cannot be written: "):
        new.write(tmp_path / "mine", files)


def interrupted(*_: Path) -> None:
    raise KeyboardInterrupt


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(SiteError, match="cannot be written: "):
        new.write(tmp_path / "no" / "mine", {"site.yaml": ""})
