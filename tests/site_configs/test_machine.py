"""What is read out of the words of schedulers and of the kernel's files."""

import re
from pathlib import Path

import pytest
import reframe

from site_configs import machine as look
from site_configs.site_file import SCHEDULERS
from tests.site_configs.fake_machine import (
    CLUSTERS,
    FLUX,
    LSF,
    PBS,
    SGE,
    SLURM,
    TORQUE,
    interface,
    machine,
    port,
)

MIB = 1 << 20


def test_a_slurm_partition_is_its_smallest_node(tmp_path: Path) -> None:
    found = look.slurm_nodes(machine(tmp_path, SLURM))
    assert found is not None
    # 64 processors are 2 x 32 cores in the first kind of nodes, 128 are threads in the second.
    assert (found.partition, found.nodes, found.cores) == ("batch", 42, 64)
    assert found.memory_bytes == 257000 * MIB and found.others == ("debug",)
    assert found.mixed
    debug = look.slurm_nodes(machine(tmp_path, SLURM), "debug")
    assert debug and debug.nodes == 2 and "allows a job 2 of its 4 nodes" in debug.source
    assert look.slurm_nodes(machine(tmp_path, SLURM), "gpu") is None


def test_pbs_counts_nodes_that_are_up(tmp_path: Path) -> None:
    found = look.pbs_nodes(machine(tmp_path, PBS))
    assert found and (found.partition, found.nodes, found.cores) == ("workq", 2, 36)
    assert found.memory_bytes == 197697024 * 1024 and found.others == ("long",)
    assert look.pbs_nodes(machine(tmp_path, PBS), "gpu") is None


def test_torque_is_not_pbs(tmp_path: Path) -> None:
    here = machine(tmp_path, TORQUE)
    found = look.pbs_nodes(here)
    assert look.scheduler(here)[0] == "torque"
    assert found and (found.cores, found.memory_bytes) == (8, 32879336 * 1024)


def test_lsf_counts_servers(tmp_path: Path) -> None:
    found = look.lsf_nodes(machine(tmp_path, LSF))
    assert found and (found.partition, found.nodes, found.cores) == ("normal", 2, 40)
    assert found.memory_bytes == int(187.5 * 2**30) and found.others == ("short",)


def test_grid_engine_counts_cores_of_hosts_that_answer(tmp_path: Path) -> None:
    found = look.sge_nodes(machine(tmp_path, SGE))
    assert found and (found.partition, found.nodes, found.cores) == ("all.q", 2, 32)
    assert found.memory_bytes == int(125.5 * 2**30) and found.others == ("long.q",)
    assert look.sge_nodes(machine(tmp_path, SGE), "gpu.q") is None
    assert look.parallel_environments(machine(tmp_path, SGE)) == ["mpi", "make"]


def test_flux_counts_what_is_not_down(tmp_path: Path) -> None:
    found = look.flux_nodes(machine(tmp_path, FLUX))
    assert found and (found.partition, found.nodes, found.cores) == ("batch", 4, 32)
    assert found.memory_bytes is None and found.others == ("debug",)
    # An instance without queues has one without a name.
    alone = {"flux": FLUX["flux"].replace("queue)", "none)")}
    found = look.flux_nodes(machine(tmp_path, alone))
    assert found and (found.partition, found.others) == ("default", ())


@pytest.mark.parametrize("family", CLUSTERS)
def test_the_scheduler_is_the_one_that_answers(tmp_path: Path, family: str) -> None:
    assert look.scheduler(machine(tmp_path, CLUSTERS[family]))[0] == family


def test_a_slurm_that_does_not_answer_is_none(tmp_path: Path) -> None:
    silent = "[ $1 = --version ] && echo slurm 22.05 || { echo no controller >&2; exit 1; }"
    assert look.scheduler(machine(tmp_path, {"sinfo": silent}))[0] == "local"


def test_without_accounting_squeue_is_asked(tmp_path: Path) -> None:
    none = {"scontrol": 'echo "AccountingStorageType = accounting_storage/none"'}
    assert look.scheduler(machine(tmp_path, SLURM | none))[0] == "squeue"


@pytest.mark.parametrize(
    "script",
    [
        SLURM["srun"],
        'printf "srun: MPI types are...\\nsrun: none\\nsrun: pmi2\\nsrun: pmix\\n" >&2',
    ],
)
def test_pmi_types_of_old_and_new_slurm(tmp_path: Path, script: str) -> None:
    assert look.pmi_types(machine(tmp_path, {"srun": script})) == ["pmi2", "pmix"]


def test_the_link_is_the_fastest_that_is_up(tmp_path: Path) -> None:
    here = machine(tmp_path, {})
    assert look.fastest_link(here) is None
    interface(tmp_path, "docker0", "100000", real=False)
    interface(tmp_path, "eth1", "25000", state="down")
    interface(tmp_path, "eth2", "-1")
    assert look.fastest_link(here) is None
    interface(tmp_path, "eth0", "1000")
    assert look.fastest_link(here) == (125_000_000, "eth0, 1000 Mbit/s")
    port(tmp_path, "mlx5_1", "400 Gb/sec (4X NDR)", "1: DOWN")
    port(tmp_path, "mlx5_0", "100 Gb/sec (4X EDR)", "4: ACTIVE")
    assert look.fastest_link(here) == (12_500_000_000, "mlx5_0, 100 Gb/sec (4X EDR)")


@pytest.mark.parametrize(
    ("banner", "name"),
    [
        ("mpirun (Open MPI) 5.0.11\n\nReport bugs to", "Open MPI 5.0.11 (/"),
        ("HYDRA build details:\n    Version:                 4.0.2\n", "MPICH's launcher 4.0.2"),
        ("Intel(R) MPI Library for Linux* OS, Version 2021.13 Build", "Intel MPI 2021.13 (/"),
    ],
)
def test_mpis_introduce_themselves(tmp_path: Path, banner: str, name: str) -> None:
    [found] = look.mpis(machine(tmp_path, {"mpirun": f'echo "{banner}"'}))
    assert found.startswith(name)


def test_schedulers_are_those_of_reframe() -> None:
    files = (Path(reframe.__file__).parent / "core/schedulers").glob("*.py")
    texts = [path.read_text() for path in files]
    known = {n for text in texts for n in re.findall(r"@register_scheduler\('(\w+)'", text)}
    assert set(SCHEDULERS) == known
