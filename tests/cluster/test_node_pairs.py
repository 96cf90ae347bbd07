"""A link that lost a fifth of its rate, and a node whose core is taken away, are named."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest
import yaml

from analysis.models.nodes.pairs import judged_launches
from containers import images
from containers.apptainer import apptainer_command
from records.node_pairs import NodePairsRound
from records.program_output import program_output
from tests.cluster.conftest import CLUSTER, PROJECT, Cluster, wait_for
from tests.unmeasured import unmeasured

pytestmark = pytest.mark.cluster
#: So many that chance, which must not name anything, leaves room for a node whose core is taken.
SWEEPS = 12
#: In turns: nodes share the machine's cores.
ARGUMENTS = f"--alone --bandwidth-bytes 65536 --round-trips 10 --windows 3 --sweeps {SWEEPS}"
TRIALS = 20
#: So often a fault is looked for where other work takes the machine's cores.
TRIES = 4
#: Stops the node's rank for 30 of every 50 ms, as who takes its core does, until it has ended.
TAKEN = """
for turn in $(seq 3000); do
    if p=$(pgrep -x node_pairs); then
        seen=1; kill -STOP $p 2>/dev/null; sleep 0.03; kill -CONT $p 2>/dev/null
    elif [ "$seen" ]; then
        exit 0
    fi
    sleep 0.02
done
"""


def named(cluster: Cluster) -> dict[str, str]:
    """Return the nodes and links that are named, with their verdicts."""
    image = images.verify(PROJECT, "openmpi-5.0.11")
    text = cluster.execute(
        f"srun -N4 --ntasks-per-node=1 --mpi=pmix {apptainer_command()} -q exec {image} "
        f"node_pairs {ARGUMENTS} 2>/dev/null"
    )
    output = program_output(text, Path("node_pairs"))
    rounds = [one for one in output.results if isinstance(one, NodePairsRound)]
    site = yaml.safe_load((PROJECT / ".wyeast" / "cluster" / "site.yaml").read_text())
    launch = ("NodePairs", False, output.header.hosts, rounds)
    found = judged_launches([launch], site["topology"], together=False)
    assert found.rounds == found.all_rounds == 3 and found.sweeps == SWEEPS
    return {one.name: one.verdict for one in found.named}


@contextmanager
def slow_link(cluster: Cluster) -> Iterator[None]:
    """Take a fifth of the rate of a node's link."""
    cluster.run("slow-link", "2", "--by", "0.2")
    try:
        yield
    finally:
        cluster.run("mend-link", "2")


@contextmanager
def taken_core() -> Iterator[None]:
    """Take a node's core away again and again."""
    taker = subprocess.Popen(
        [*CLUSTER, "exec", "--user=root", "--node=3", "--", "sh", "-c", TAKEN],
        cwd=PROJECT, env={**unmeasured(), "PYTHONPATH": str(PROJECT)}, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        yield
    finally:
        assert taker.wait(120) == 0


def test_a_link_that_lost_a_fifth_of_its_rate(cluster: Cluster) -> None:
    found: list[dict[str, str]] = []
    with slow_link(cluster):
        while {"node2": "slow"} not in found:
            assert len(found) < TRIES, found
            found.append(named(cluster))


@pytest.mark.long
def test_each_fault_in_19_of_20_trials_and_nothing_where_all_is_well(cluster: Cluster) -> None:
    def trials(fault: str) -> list[dict[str, str]]:
        found = []
        for _ in range(TRIALS):
            with taken_core() if fault == "node3" else nullcontext():
                found.append(named(cluster))
            wait_for(cluster.is_idle, 60, "an idle cluster")
            print(fault, found[-1], file=sys.stderr)
        return found

    with slow_link(cluster):
        of_link = trials("node2")
    assert sum("node2" in one for one in of_link) >= TRIALS - 1
    assert sum("node3" in one for one in trials("node3")) >= TRIALS - 1
    assert sum(bool(one) for one in trials("")) <= 1
