"""`python -m cluster`: start, inspect, use and stop the cluster in a box."""

import argparse
import dataclasses
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import yaml

from cluster import accounts, box, inside, network, programs, scrontab, terminal_session
from cluster.description import Cluster, ClusterError, describe
from records import layout
from records.acting_user import hand_over
from records.command_words import CommandWords
from records.files import only_owner_writes
from records.locks import LockHeld, exclusive
from site_configs.processor import detected_processor

FAULTS = {
    "stop-node": "end a node with all its processes, as a power failure does",
    "start-node": "start a node that was stopped",
    "cut-link": "cut the link to a node",
    "slow-link": "lower the rate of the link to a node, by a tenth unless told otherwise",
    "mend-link": "mend a link that was cut or slowed",
}


def arguments() -> argparse.Namespace:
    """Return the parsed command line."""
    parser = CommandWords(
        prog="python -m cluster",
        description="A cluster in a box: nodes in namespaces of this machine, on a shaped "
        "network of their own.",
    )
    commands = parser.add_subparsers(dest="command", required=True)
    up = commands.add_parser("up", help="start the cluster and check its links")
    up.add_argument("--nodes", default="", help="how many nodes (cluster.yaml)")
    up.add_argument("--link", default="", help="rate of the links, or none (cluster.yaml)")
    up.add_argument("--scheduler", default="", help="slurm or sge (slurm)")
    commands.add_parser("status", help="print the nodes, their state and memory")
    commands.add_parser("down", help="stop the cluster and everything that belongs to it")
    execute = commands.add_parser("exec", help="run a command as a user of the cluster")
    execute.add_argument(
        "--user", default="", help=f"the job user, {accounts.GUEST_USER}, or root (the job user)"
    )
    execute.add_argument("--node", type=int, help="on this node (the controller's host)")
    execute.add_argument("arguments", nargs="+", metavar="COMMAND")
    for name, what in FAULTS.items():
        fault = commands.add_parser(name, help=what)
        fault.add_argument("number", type=int, help="the node's")
        if name == "slow-link":
            fault.add_argument(
                "--by", type=float, default=0.1, help="the share of the rate that it loses"
            )
    commands.add_parser("scrontab", help="build Slurm's scrontab, which Debian does not package")
    commands.add_parser("stop-controller", help="kill slurmctld, as a crash does")
    commands.add_parser("start-controller", help="start slurmctld again")
    return parser.parse_args()


def up(cluster: Cluster, project: Path, state: Path) -> None:
    """Start the cluster; undo everything if it fails."""
    if box.first_process(state) and (state / "cluster.json").exists():
        raise ClusterError("the cluster is already up; stop it first with: make cluster-down")
    programs.provide(state, cluster.scheduler)
    began = time.monotonic()
    # A start that was interrupted, or a crash, may have left something.
    box.close_box(state)
    try:
        box.prepare(cluster, project, state)
        accounts.give_to_job_user(project)
        description = dataclasses.asdict(cluster)
        (state / "run" / "description.json").write_text(json.dumps(description))
        pid = box.open_box(state)
        box.ask(pid, "start")
        rates = json.loads(box.ask(pid, "check-links"))
        (state / box.SITE_OVERRIDES).write_text(yaml.safe_dump(site_facts(cluster, rates)))
        (state / "cluster.json").write_text(
            json.dumps({**description, "measured_bit_per_s": rates})
        )
    except BaseException:
        box.close_box(state)
        raise
    name = cluster.link.name if cluster.link else "unshaped"
    measured = ", ".join(f"{rate / 1e6:.1f}" for rate in rates) or "no pair of nodes to measure"
    print(
        f"{cluster.nodes} nodes are up after {time.monotonic() - began:.1f} s; links {name}, "
        f"measured {measured} Mbit/s"
    )
    if sentence := network.slow_links(rates, cluster.link):
        print(sentence)


def site_facts(cluster: Cluster, rates: list[float]) -> dict[str, Any]:
    """Return what its sites have of a cluster that is up, whose links have `rates` in bit/s."""
    # Asked here: what runs on a node, as the job of a night does, may use one of them only.
    processors, peak = detected_processor()
    facts = {
        "nodes": cluster.nodes,
        "link_bytes_per_s": cluster.link_bytes_per_s(),
        "processors": processors,
        "peak_flops_per_node": peak,
        # Nothing follows from it, but campaigns keep it.
        "measured_links_bit_per_s": rates,
    }
    # Where each node has cores of its own, nothing tells their pairs apart.
    topology = inside.nodes_by_cores(cluster)
    return {**facts, "topology": topology} if topology else facts


def status(state: Path) -> None:
    """Print the nodes with their state and memory."""
    pid, description = box.running(state)
    nodes = json.loads(box.ask(pid, "status"))
    link = description["link"]
    print(f"{len(nodes)} nodes, links {link['name'] if link else 'unshaped'}")
    for name, facts in nodes.items():
        memory = facts["memory_bytes"]
        used = f"{memory / 1e6:.1f} MB" if memory else "not running"
        print(f"  {name:8} {facts['state']:12} {used}")


def execute(options: argparse.Namespace, project: Path, state: Path) -> int:
    """Run a command in the cluster; return its exit code. Root becomes a command of root's."""
    pid, description = box.running(state)
    user = options.user or accounts.job_user(project)[0]
    if options.node is not None:
        if not 1 <= options.node <= description["nodes"]:
            raise ClusterError(f"there is no node{options.node}")
        pid = node_outside(pid, options.node)
    command = box.inside(pid, *options.arguments, user=None if user == "root" else user)
    if user == "root":
        os.execvpe(command[0], command, box.environment_of_user(user, state))
    return terminal_session.run(command, box.environment_of_user(user, state), box.child_of)


def node_outside(pid: int, number: int) -> int:
    """Return the machine's process id of a node's first process."""
    wanted = json.loads(box.ask(pid, "status"))[f"node{number}"]["process"]
    for entry in Path("/proc").glob("[0-9]*"):
        # Seen from the machine, from the box, and from the node itself.
        numbers = box.status_of(int(entry.name), "NSpid")
        if numbers[1:] == [wanted, 1] and box.is_below(int(entry.name), pid):
            return int(entry.name)
    raise ClusterError(f"node{number} is not up")


def main() -> int:
    """Run the requested command; return the exit code."""
    options = arguments()
    project, state = box.PROJECT, box.state_folder()
    # Whoever enters the cluster takes it along, and so do their jobs.
    only_owner_writes()
    try:
        box.demand_root()
        # Its job user reads and writes one checkout.
        if layout.is_shared(project):
            raise ClusterError(
                f"the cluster in a box measures in a checkout of one's own, and {layout.HOME} is "
                f"{layout.home(project)}: make one (git clone {project}), and there: make "
                "cluster-up"
            )
        hand_over(project)
        if options.command == "up":
            cluster = describe(options.nodes, options.link, scheduler=options.scheduler)
            with exclusive(project / ".wyeast" / "locks" / "cluster", str(os.getpid())):
                up(cluster, project, state)
        elif options.command == "down":
            print("the cluster is down" if box.close_box(state) else "the cluster was not up")
        elif options.command == "status":
            status(state)
        elif options.command == "exec":
            return execute(options, project, state)
        elif options.command == "scrontab":
            print(scrontab.build(project))
        elif options.command in FAULTS:
            pid, description = box.running(state)
            if not 1 <= options.number <= description["nodes"]:
                raise ClusterError(f"there is no node{options.number}")
            if options.command == "slow-link" and not 0 < options.by < 1:
                raise ClusterError(f"--by must be a share between 0 and 1, not {options.by:g}")
            more = [str(options.by)] if options.command == "slow-link" else []
            box.ask(pid, options.command, str(options.number), *more)
        else:
            box.ask(box.running(state)[0], options.command)
    except LockHeld as holder:
        print(f"cluster: process {holder} is already starting it", file=sys.stderr)
        return 1
    except (ClusterError, OSError, subprocess.SubprocessError) as error:
        print(f"cluster: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("cluster: interrupted; nothing of it is left running", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
