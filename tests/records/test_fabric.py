"""Which device carried messages, and whether it had to."""

from typing import Any

import pytest

from records.communication import Fabric
from records.limits.fabric import carried_by, passed_devices, wrong_fabric

MEGABYTE = 10**6
VOLUME = 12 * MEGABYTE


def device(name: str, share: float, kind: str = "net", back: float | None = None,
           stacked: tuple[str, ...] = ()) -> dict[str, Any]:  # fmt: skip
    received = share if back is None else back
    return {"device": name, "kind": kind, "sent_bytes": int(share * VOLUME),
            "received_bytes": int(received * VOLUME), "stacked": list(stacked)}  # fmt: skip


def host(*devices: dict[str, Any], within: bool = False, name: str = "node1",
         **more: int) -> Fabric:  # fmt: skip
    said = {
        "record": "result", "operation": "fabric", "host": name, "ranks": 1 + within,
        "between_bytes": 0 if within else VOLUME, "within_bytes": VOLUME if within else 0,
        "cma_bytes": 0, "xpmem_ranks": 0, "counted_devices": 4, "devices": list(devices), **more,
    }  # fmt: skip
    return Fabric.model_validate(said)


def kind_of(name: str) -> str:
    return "net" if name.startswith("eth") else "cxi" if name.startswith("cxi") else "infiniband"


def test_a_network_device_that_is_named_beside_one_of_rdma_proves_nothing() -> None:
    fallen_back = host(device("eth0", 1.04), name="node2")
    sentence = wrong_fabric([fallen_back], ["mlx5_0", "eth0"]) or ""
    assert "mlx5_0, eth0 0%" in sentence and "HOST_MPI=" in sentence
    assert wrong_fabric([host(IB, device("eth0", 1))], ["mlx5_0", "eth0"]) is None


def test_other_traffic_is_not_the_ranks_where_the_kernel_copied_their_messages() -> None:
    busy = device("lo", 3)
    assert wrong_fabric([host(busy, within=True, cma_bytes=VOLUME)], "memory") is None
    assert "lo carried 300%" in (wrong_fabric([host(busy, within=True)], "memory") or "")


IB = device("mlx5_0", 1.01, "infiniband")


@pytest.mark.parametrize(
    ("devices", "fabric"),
    [
        ([device("eth1", 1.05)], ["eth1"]),
        ([IB], ["mlx5_0"]),
        # Others' traffic, and what a node says to itself.
        ([IB, device("eth0", 0.4)], ["mlx5_0"]),
        ([IB, device("eth0", 3, back=0.1)], ["mlx5_0"]),
        ([IB, device("lo", 1.2)], ["mlx5_0"]),
        ([device("eth1", 1.05), device("eth0", 0.9)], ["eth1"]),
        # Two rails; and a bond, whichever is named.
        ([device("cxi0", 0.5, "cxi"), device("cxi1", 0.5, "cxi")], ["cxi0", "cxi1"]),
        ([device("bond0", 1, stacked=("eth0",)), device("eth0", 1, stacked=("bond0",))], ["bond0"]),
        ([device("bond0", 1, stacked=("eth0",)), device("eth0", 1, stacked=("bond0",))], ["eth0"]),
        # Of one name: the port, as rdma-core calls both.
        ([device("ibp65s0", 1, "infiniband")], ["ibp65s0"]),
    ],
)
def test_what_a_site_names_has_carried_it(devices: list[dict[str, Any]], fabric: list[str]) -> None:
    assert wrong_fabric([host(*devices), host(*devices, name="node2")], fabric) is None


@pytest.mark.parametrize(
    ("devices", "fabric", "said", "helps"),
    [
        ([device("eth0", 1.04)], ["mlx5_0"], "eth0 carried 104% and mlx5_0 0%", "HOST_MPI="),
        ([device("eth0", 1.04)], ["eth1"], "eth0 carried 104% and eth1 0%", "btl_tcp_if_include"),
        # TCP over InfiniBand passes both.
        ([IB, device("ib0", 1.0)], ["mlx5_0"], "ib0 carried 100% and mlx5_0 101%", "HOST_MPI="),
        (
            [device("ibp65s0", 1, "infiniband"), device("ibp65s0", 1)],
            ["ibp65s0"], "ibp65s0 carried 100% and ibp65s0 100%", "HOST_MPI=",
        ),
        # Half over each of two, of which one is named.
        ([device("eth0", 0.5), device("eth1", 0.5)], ["eth1"], "eth0 carried 50% and eth1 50%", ""),
        ([], ["cxi0"], "no other device carried them and cxi0 0%", "HOST_MPI="),
        # One way only.
        ([device("eth1", 1, back=0.2)], ["eth1"], "no other device carried them and eth1 20%", ""),
    ],
)  # fmt: skip
def test_another_device_carried_it(
    devices: list[dict[str, Any]], fabric: list[str], said: str, helps: str
) -> None:
    right = host(*(device(name, 1, kind_of(name)) for name in fabric))
    sentence = wrong_fabric([right, host(*devices, name="node2")], fabric) or ""
    assert "of the 12.0 MB that ranks on node2 exchanged, " in sentence
    assert said in sentence and helps in sentence and len(sentence) < 400
    assert f"`fabric: [{fabric[0]}]`" in sentence


def test_messages_of_one_node_pass_its_memory() -> None:
    assert wrong_fabric([host(within=True)], "memory") is None
    assert wrong_fabric([host(device("lo", 0.3), within=True)], "memory") is None
    said = wrong_fabric([host(device("lo", 1), within=True)], "memory")
    assert said and "lo carried 100%, where the site says `fabric: memory`: look for" in said
    # An adapter that hands messages back to its own node is no memory either.
    assert wrong_fabric([host(IB, within=True)], "memory")


def test_without_messages_nothing_is_proven() -> None:
    assert "could be proven" in str(wrong_fabric([host(within=True)], ["eth0"]))
    assert "could be proven" in str(wrong_fabric([host(IB)], "memory"))
    assert "could be proven" in str(wrong_fabric([], ["eth0"]))


def test_what_devices_carried_did_not_pass_memory() -> None:
    assert passed_devices([host(IB), host(device("eth0", 1), name="node2")])
    # Of one host nothing is known; and its loopback device leads to no other.
    assert not passed_devices([host(IB), host(name="node2")])
    assert not passed_devices([host(IB), host(device("lo", 1), name="node2")])
    assert not passed_devices([])


@pytest.mark.parametrize(
    ("hosts", "words"),
    [
        ([host(IB), host(IB, name="node2")], "mlx5_0"),
        ([host(device("eth0", 1)), host(device("eth1", 1))], "eth0; eth1"),
        ([host()], "between nodes no device that is counted"),
        ([host(within=True, cma_bytes=VOLUME)], "shared memory, long messages by CMA"),
        ([host(within=True, xpmem_ranks=2)], "shared memory, with XPMEM open"),
        ([host(within=True)], "shared memory"),
        ([host(device("lo", 1), within=True)], "loopback TCP"),
        ([host(IB, within=True)], "mlx5_0 within a node"),
    ],
)
def test_what_carried_messages_in_words(hosts: list[Fabric], words: str) -> None:
    assert carried_by(hosts) == words
