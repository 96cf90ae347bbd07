"""What network devices carried: real loopback and memory, and folders that play devices of RDMA."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from records.communication import Fabric
from records.limits.fabric import carried_by, wrong_fabric
from records.program_output import read_program_output
from tests.benchmarks.conftest import PROJECT, SANITIZERS, UNSHARE, Built

PROGRAM = PROJECT / "tests/benchmarks/programs/played_devices.c"
#: What each device's counters are, below its folder, before and after.
PLAYED = {
    "class/infiniband/mlx5_0/ports/1/counters/port_xmit_data": ("1000", "251000"),
    "class/infiniband/mlx5_0/ports/1/counters/port_rcv_data": ("7", "250007"),
    "class/infiniband/mlx5_0/ports/2/counters/port_xmit_data": ("0", "5"),
    "class/infiniband/mlx5_0/ports/2/hw_counters/duplicate_request": ("0", "9999999"),
    "class/infiniband/rdmap0s6/ports/1/hw_counters/tx_bytes": ("10", "1000010"),
    "class/infiniband/rdmap0s6/ports/1/hw_counters/rx_bytes": ("10", "2000010"),
    "class/net/ib0/statistics/tx_bytes": ("500", "500"),
    "class/net/ib0/statistics/rx_bytes": ("500", "500"),
    "class/net/eth0/statistics/tx_bytes": ("100", "400"),
    "class/net/eth0/statistics/rx_bytes": ("100", "90"),
    "class/net/bond0/statistics/tx_bytes": ("0", "300"),
    # As it is where a driver knows no traffic.
    "class/net/dummy0/statistics/tx_bytes": ("what", ""),
}
CXI = {
    "class/cxi/cxi0/device/telemetry/hni_sts_tx_ok_octets": (
        "5@1700000000.1",
        "1000005@1700000009",
    ),
    "class/cxi/cxi0/device/telemetry/hni_sts_rx_ok_octets": (
        "0@1700000000.1",
        "2000000@1700000009",
    ),
}


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("played") / "played_devices"
    parts = ("preflight/device_counters", "common/record_pieces", "common/summary",
             "common/disturbances", "common/written")  # fmt: skip
    sources = [PROJECT / f"benchmarks/{part}.c" for part in parts]
    words = ["-std=c11", "-D_DEFAULT_SOURCE", "-Wall", "-Wextra", "-Werror", *SANITIZERS.split()]
    subprocess.run(["gcc", *words, "-o", program, PROGRAM, *sources, "-lm"], check=True)
    return program


def carried(played: Path, folder: Path, counters: dict[str, tuple[str, str]]) -> dict[str, Any]:
    """Return what a folder's devices carried, by their names, as their counters changed."""
    for name, (before, after) in counters.items():
        for root, text in ((folder, before), (folder / "after", after)):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(f"{text}\n")
    (folder / "class/net/eth0").mkdir(parents=True, exist_ok=True)
    (folder / "class/net/eth0/upper_bond0").symlink_to("../bond0")
    command = [str(played), str(folder), f"cp -r {folder}/after/class {folder}/"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return {one["device"]: one for one in json.loads(done.stdout)}


def test_devices_of_rdma_are_counted_in_bytes(played: Path, tmp_path: Path) -> None:
    found = carried(played, tmp_path, PLAYED)
    ways = {name: (one["sent_bytes"], one["received_bytes"]) for name, one in found.items()}
    assert ways == {
        "mlx5_0": (4 * 250005, 1000000), "rdmap0s6": (1000000, 2000000), "eth0": (300, 0),
        "bond0": (300, 0),
    }  # fmt: skip
    kinds = {name: one["kind"] for name, one in found.items()}
    assert kinds == {
        "mlx5_0": "infiniband", "rdmap0s6": "infiniband", "eth0": "net", "bond0": "net"
    }  # fmt: skip
    assert {name: one["stacked"] for name, one in found.items() if one["stacked"]} == {
        "eth0": ["bond0"]
    }


@pytest.mark.long
def test_slingshot_s_counters_are_waited_for(played: Path, tmp_path: Path) -> None:
    found = carried(played, tmp_path, CXI)["cxi0"]
    assert (found["kind"], found["sent_bytes"], found["received_bytes"]) == (
        "cxi",
        10**6,
        2 * 10**6,
    )


def test_a_node_without_any_device_has_none(played: Path, tmp_path: Path) -> None:
    done = subprocess.run([played, tmp_path, "true"], capture_output=True, text=True, check=True)
    assert done.stdout == "[]"


#: Has Open MPI's ranks talk by TCP, and MPICH's.
BY_TCP = {
    "openmpi": {"OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": "tcp,self"},
    "mpich": {"MPIR_CVAR_NOLOCAL": "1", "UCX_TLS": "tcp,self"},
}
#: A network of its own, so that nobody else's messages pass its loopback device. Libraries look for
#: another one, whose address leads to the loopback device from here.
OWN_NETWORK = [
    *UNSHARE, "--net", "--mount", "sh", "-c",
    "mount -t sysfs none /sys && ip link add eth0 type veth peer name eth1 && "
    "ip address add 10.77.0.1/24 dev eth0 && ip link set lo up && ip link set eth0 up && "
    'ip link set eth1 up && exec "$@"', "sh",
]  # fmt: skip


@pytest.mark.each_library
@pytest.mark.real
def test_ranks_of_a_node_share_memory_or_are_caught_at_tcp(built: Built, tmp_path: Path) -> None:
    """Really: loopback's counters are the kernel's, and copies are counted where they are made."""
    family = built.implementation.split("-")[0]
    said: dict[str, str] = {}
    for way, variables in (("memory", {}), ("tcp", BY_TCP[family])):
        words = [f"{name}={value}" for name, value in variables.items()]
        program = str(built.build / "bin/preflight")
        command = ["env", *words, program, "--ranks", "2", "--iterations", "20"]
        done = built.run_command(command, before=OWN_NETWORK)
        assert done.returncode == 0, done.stderr
        (tmp_path / way).write_text(done.stdout)
        results = read_program_output(tmp_path / way).results
        [host] = [one for one in results if isinstance(one, Fabric)]
        # Twelve messages of a megabyte and 22 of 8 bytes, there and back.
        assert (host.ranks, host.between_bytes, host.within_bytes) == (2, 0, 2 * (12000176))
        assert host.counted_devices >= 1
        said[way] = wrong_fabric([host], "memory") or ""
        if way == "tcp":
            assert carried_by([host]) == "loopback TCP" and host.cma_bytes == 0
            assert "lo carried 10" in said[way]
        else:
            assert carried_by([host]).startswith("shared memory")
            # Where the kernel lets a rank read another one's memory, both libraries copy so.
            assert host.cma_bytes in (0, 24 * 10**6)
    assert said["memory"] == ""
