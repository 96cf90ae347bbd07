"""What is done inside the box: `python -m cluster.inside OPERATION`, run by `box`."""

import dataclasses
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

from cluster import box, filesystem, gridengine, network, slurm
from cluster.description import CONTROLLER, Cluster, ClusterError, Link

STATE = box.state_folder()
NODES = Path("/run/nodes")
DESCRIPTION = STATE / "run" / "description.json"


def described() -> Cluster:
    """Return the cluster that this box is for."""
    data = json.loads(DESCRIPTION.read_text())
    link = data.pop("link")
    return Cluster(**data, link=Link(**link) if link else None)


def scheduler() -> ModuleType:
    """Return the module of the cluster's scheduler: the two have the same functions."""
    return SCHEDULERS[described().scheduler]


def become(*command: str) -> None:
    """Continue as the first process of a namespace, which reaps orphaned processes."""
    os.execvp("tini", ["tini", "-s", "--", *command])


def become_box() -> None:
    """Arrange the box's files and hold its namespaces."""
    socket.sethostname(CONTROLLER)
    filesystem.lay_out_box(described(), box.PROJECT, STATE)
    Path("/run/laid-out").touch()
    become("sleep", "infinity")


def cores_of_node(cluster: Cluster, number: int) -> set[int]:
    """Return the machine's cores that a node has: as many as it should, assigned in turn.

    With this binding, every rank of every implementation has only the cores of its node.
    """
    cores = sorted(os.sched_getaffinity(0))
    first = (number - 1) * cluster.cores_per_node
    return {cores[(first + k) % len(cores)] for k in range(cluster.cores_per_node)}


def nodes_by_cores(cluster: Cluster) -> dict[str, list[str]]:
    """Return patterns of the nodes' names by the cores that they share, as a site's `topology`.

    Pairs that share a core take turns on it, and pairs of nodes with cores of their own do not. It
    is empty where no node shares any.
    """
    by_cores: dict[str, list[str]] = {}
    for number, name in enumerate(cluster.node_names(), start=1):
        cores = "-".join(map(str, sorted(cores_of_node(cluster, number))))
        by_cores.setdefault(f"core{cores}", []).append(f"^{name}$")
    shares = any(len(nodes) > 1 for nodes in by_cores.values())
    return by_cores if shares else {}


def become_node(number: int) -> None:
    """Arrange a node's files, wait for its link, and run the scheduler's daemon of a node."""
    name = described().node_names()[number - 1]
    socket.sethostname(name)
    filesystem.lay_out_node(described())
    os.sched_setaffinity(0, cores_of_node(described(), number))
    connected = NODES / f"{number}.connected"
    slurm.wait_until(connected.exists, 30, f"{name} did not get a link")
    become(*scheduler().node_command(name))


def node_process(number: int) -> int | None:
    """Return the box's process id of a node's first process, or None when it is down."""
    try:
        pid, started = (NODES / f"{number}.process").read_text().split()
    except (OSError, ValueError):
        return None
    return int(pid) if box.started_at(int(pid)) == started else None


def open_node(number: int) -> int:
    """Make a node's namespaces and return its first process."""
    if node_process(number):
        raise ClusterError(f"node{number} is already up")
    for remains in NODES.glob(f"{number}.*"):
        remains.unlink()
    with (STATE / "logs" / f"node{number}.start.log").open("w") as log:
        holder = subprocess.Popen(
            ["unshare", *box.NAMESPACES, "--fork", "--kill-child=KILL", "--mount-proc",
             sys.executable, "-m", "cluster.inside", "become-node", str(number)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )  # fmt: skip
    deadline = time.monotonic() + 20
    while not (pid := box.child_of(holder.pid)):
        if holder.poll() is not None or time.monotonic() > deadline:
            raise ClusterError(f"node{number} did not start; see node{number}.start.log")
        time.sleep(0.005)
    (NODES / f"{number}.process").write_text(f"{pid} {box.started_at(pid)}\n")
    return pid


def connect_node(number: int, pid: int) -> None:
    """Lay the link to a node, and let its daemon start."""
    network.connect(number, pid, described().link)
    (NODES / f"{number}.connected").touch()


def start() -> None:
    """Start the daemons and the nodes."""
    cluster = described()
    network.make_switch(cluster.link)
    pids = [open_node(number) for number in range(1, cluster.nodes + 1)]
    scheduler().start(cluster, STATE)
    for number, pid in enumerate(pids, start=1):
        connect_node(number, pid)
    scheduler().wait_for_nodes(cluster.node_names())


def check_links() -> None:
    """Measure every link and print the rates in bit/s."""
    cluster = described()
    pids = [node_process(number) for number in range(1, cluster.nodes + 1)]
    print(json.dumps(network.check_links([pid for pid in pids if pid], cluster.link)))


def stop_node(number: int) -> None:
    """End a node with all its processes, as a power failure does."""
    pid = node_process(number)
    if pid is None:
        raise ClusterError(f"node{number} is not up")
    os.kill(pid, signal.SIGKILL)
    slurm.wait_until(lambda: node_process(number) is None, 20, f"node{number} did not end")


def start_node(number: int) -> None:
    """Start a node that was stopped, and wait until the scheduler has it back."""
    connect_node(number, open_node(number))
    scheduler().wait_for_nodes([f"node{number}"])


def slow_link(number: int, by: float) -> None:
    """Lower the rate of the link to a node by a share of it."""
    set_share(number, 1 - by)


def set_share(number: int, share: float) -> None:
    """Set the link to a node to a fraction of its original rate."""
    link, pid = described().link, node_process(number)
    if link is None:
        raise ClusterError("the links have no rate to lower: LINK=none")
    if pid is None:
        raise ClusterError(f"node{number} is not up")
    lowered = dataclasses.replace(link, rate_bit_per_s=round(link.rate_bit_per_s * share))
    network.set_rate(number, pid, lowered)


def mend_link(number: int) -> None:
    """Mend a link that was cut or slowed, and wait until the scheduler has the node back."""
    network.mend(number)
    if described().link and node_process(number):
        set_share(number, 1)
    scheduler().wait_for_nodes([f"node{number}"])


def memory_of(number: int) -> int | None:
    """Return the memory of a node's own processes in bytes, shared pages by share."""
    first = node_process(number)
    if first is None:
        return None
    namespace = os.readlink(f"/proc/{first}/ns/pid")
    total = 0
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if os.readlink(entry / "ns" / "pid") != namespace:
                continue
            lines = (entry / "smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        total += sum(1024 * int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total


def status() -> None:
    """Print what the nodes do, as JSON: their state, their first process and memory."""
    states = scheduler().node_states()
    cluster = described()
    print(
        json.dumps(
            {
                name: {
                    "state": states.get(name, "unknown: the scheduler does not answer"),
                    "process": node_process(number),
                    "memory_bytes": memory_of(number),
                }
                for number, name in enumerate(cluster.node_names(), start=1)
            }
        )
    )


SCHEDULERS = {"slurm": slurm, "sge": gridengine}
OPERATIONS: dict[str, Callable[[], object]] = {
    "become-box": become_box,
    "start": start,
    "check-links": check_links,
    "status": status,
    "stop-controller": lambda: scheduler().stop_controller(),
    "start-controller": lambda: scheduler().start_controller(),
}
OF_ONE_NODE: dict[str, Callable[..., object]] = {
    "become-node": become_node,
    "stop-node": stop_node,
    "start-node": start_node,
    "cut-link": network.cut,
    "slow-link": slow_link,
    "mend-link": mend_link,
}


def main() -> int:
    """Run one operation; return the exit code."""
    operation, *numbers = sys.argv[1:]
    try:
        if operation in OPERATIONS:
            OPERATIONS[operation]()
        else:
            OF_ONE_NODE[operation](int(numbers[0]), *map(float, numbers[1:]))
    except (ClusterError, OSError, subprocess.SubprocessError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
