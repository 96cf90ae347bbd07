"""What happens to a campaign when something breaks: one sentence, and all the rest goes on."""

import os
import shlex
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from tests.cluster.conftest import (
    Campaign,
    Checkout,
    Cluster,
    Launch,
    new_checkout,
    wait_for,
)  # fmt: skip

pytestmark = pytest.mark.cluster
MPICH = "mpich-5.0.2"
# Launches of some seconds each after the preflight: one for each fault, and one after the last.
EIGHT_LONG = [
    "--checks", "PointToPoint.*=(Send|Isend|Ssend|Issend)/(Recv|Irecv).*=long|Preflight",
    "--images", MPICH,
]  # fmt: skip
TWO_LONG = [
    "--checks", "PointToPoint.*=(Send|Isend)/Recv.*=long|Preflight",
    "--images", MPICH,
]  # fmt: skip


@dataclass(frozen=True)
class Hit:
    """A launch that a fault has hit, on its nodes: that of the batch script, and the other one."""

    launch: Launch
    batch: int
    other: int


@dataclass(frozen=True)
class Faults:
    """A campaign of which faults have hit one launch after the other."""

    code: int
    text: str
    hits: dict[str, Hit]
    #: What came after the last of them.
    last: Launch
    preflights: list[Launch]
    #: Of a campaign that was begun beside it.
    second: tuple[int, str]

    def failed(self, fault: str) -> str:
        """Check that the launch has failed; return its sentence."""
        launch = self.hits[fault].launch
        assert launch.outcome == "failed", self.text
        return told(launch, self.text)


def told(launch: Launch, text: str) -> str:
    """Check that the person at the terminal reads a launch's sentence too; return it."""
    assert launch.sentence in " ".join(text.split()), text
    assert launch.sentence.count("\n") == 0
    return launch.sentence


#: Run by root where all nodes' processes are seen: waits until both ranks have been at work for a
#: second and holds them, so that it is this launch that is hit, however slow the machine is.
HOLD = """
until [ "$(pgrep -c -u wyeast -x pingpong)" -ge 2 ]; do sleep 0.1; done
sleep 1
pkill -STOP -u wyeast -x pingpong
scontrol show hostnames "$(squeue --noheader --states=RUNNING --format=%N)"
"""


def held(cluster: Cluster) -> tuple[int, int]:
    """Wait for a launch and hold its ranks; return the nodes of the batch script and of the other.

    It ends by its time limit where no rank comes, or where they have ended meanwhile.
    """
    batch, other = cluster.execute(f"timeout 600 sh -c {shlex.quote(HOLD)}", user="root").split()
    return int(batch.removeprefix("node")), int(other.removeprefix("node"))


def go_on(cluster: Cluster, node: int | None = None) -> None:
    """Let the ranks that are held go on, those of a node or all."""
    cluster.execute("pkill -CONT -u wyeast -x pingpong || true", user="root", node=node)


#: Run by root: names the one job that runs.
JOB = "squeue --noheader --states=RUNNING --format=%i"
#: Run by root: changes what Slurm knows of a job, and waits until that is written down.
WRITTEN_DOWN = f"""
touch /run/changed
scontrol update JobId="$({JOB})" Comment=held
until [ /run/slurm/controller/job_state -nt /run/changed ]; do sleep 0.1; done
"""


def end_job_now(cluster: Cluster) -> None:
    """Have the time limit of the job that runs be over."""
    cluster.execute(f'scontrol update JobId="$({JOB})" EndTime=now', user="root")


def restart_controller(cluster: Cluster) -> None:
    # Slurm writes down what it knows within seconds. A controller that is killed before has
    # forgotten the job, on any cluster, so it is written while the launch is held up.
    cluster.execute(f"timeout 600 sh -c {shlex.quote(WRITTEN_DOWN)}", user="root")
    cluster.run("stop-controller")
    # So long that ReFrame asks meanwhile.
    time.sleep(4)
    cluster.run("start-controller")


def give_up(cluster: Cluster, node: int) -> None:
    """Say that a node is lost, as a centre's health check does: of one, Slurm finds it out itself.

    That takes it half a minute. What it then does with the job, and the node with Slurm, is alike.
    """
    words = f"scontrol update NodeName=node{node} State=DOWN Reason=unhealthy"
    cluster.execute(words, user="root")


def has_launched(campaign: Campaign, count: int) -> bool:
    return len(campaign.launches("PointToPoint")) >= count


def spoil(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(-4096, os.SEEK_END)
        file.write(b"spoilt")


@pytest.fixture(scope="module")
def faults(running_cluster: Cluster) -> Faults:
    """Return a campaign of whose launches each but the last was hit by a fault.

    What a fault breaks is mended when the next launch is at work, which has gone round it.
    """
    cluster = running_cluster
    wait_for(cluster.is_idle, 300, "an idle cluster")
    with new_checkout() as checkout:
        return with_faults(cluster, checkout)


def with_faults(cluster: Cluster, checkout: Checkout) -> Faults:
    """Measure that campaign in a checkout whose image is spoilt."""
    image = checkout.give_image(MPICH)
    # Each launch is held up to be hit, and would be measured again for that.
    rule = checkout.root / "records" / "disturbance.py"
    assert '"stopped": 0' in rule.read_text()
    rule.write_text(rule.read_text().replace('"stopped": 0', '"stopped": 1000'))
    hits: dict[str, Hit] = {}
    mending: list[str] = []

    def end(what: str, node: int, mend: str, is_told: bool = True) -> None:
        cluster.run(what, str(node))
        mending[:] = [mend, str(node)]
        if is_told:
            give_up(cluster, node)

    # By a launch's two nodes.
    what: dict[str, Callable[[int, int], object]] = {
        "abort": lambda batch, other: cluster.execute(
            "pkill -ABRT -x pingpong", user="root", node=other
        ),
        "hang": lambda batch, other: end_job_now(cluster),
        "node": lambda batch, other: end("stop-node", other, "start-node", is_told=False),
        "link": lambda batch, other: end("cut-link", other, "mend-link"),
        "batch": lambda batch, other: end("stop-node", batch, "start-node"),
        "controller": lambda batch, other: restart_controller(cluster),
        "image": lambda batch, other: spoil(image),
    }
    campaign = cluster.campaign("test-faults", *EIGHT_LONG, checkout=checkout)
    second = None
    try:
        for number, (fault, hit) in enumerate(what.items()):
            batch, other = held(cluster)
            # Beside the first, for which it does not hold up anything.
            second = second or cluster.campaign("test-second", *TWO_LONG, checkout=checkout)
            if mending:
                cluster.run(*mending)
                mending.clear()
            hit(batch, other)
            # The other rank hangs, until the job's time is over.
            go_on(cluster, batch if fault == "hang" else None)
            wait_for(
                partial(has_launched, campaign, number + 1), 1200, f"the end of a launch ({fault})",
            )  # fmt: skip
            hits[fault] = Hit(campaign.launches("PointToPoint")[number], batch, other)
            if number == 0:
                refused = (second.end(), second.text)
        code = campaign.end()
    finally:
        if mending:
            cluster.run(*mending)
        for begun in (campaign, *([second] if second else [])):
            begun.stop()
    launches = campaign.launches("PointToPoint")
    assert len(launches) == len(hits) + 1, campaign.text
    found = Faults(code, campaign.text, hits, launches[-1], campaign.launches("Preflight"), refused)
    wait_for(cluster.is_idle, 300, "an idle cluster")
    return found


def test_each_fault_costs_its_own_launch_alone(faults: Faults) -> None:
    assert faults.code == 1, faults.text
    outcomes = {fault: hit.launch.outcome for fault, hit in faults.hits.items()}
    assert outcomes == {
        "abort": "failed", "hang": "failed", "node": "failed", "link": "failed",
        "batch": "failed", "controller": "sound", "image": "failed",
    }, faults.text  # fmt: skip
    assert [launch.outcome for launch in faults.preflights] == ["sound"]


def test_a_rank_aborts(faults: Faults) -> None:
    sentence = faults.failed("abort")
    # MPICH's other rank may crash when its peer has gone. Whose end Slurm reports first is the
    # machine's, but it is this one that is named and quoted.
    crashed = "pingpong ended by a segmentation fault (signal 11)"
    own = f"node{faults.hits['abort'].batch}: task 0: Segmentation fault"
    if sentence.startswith(crashed):
        assert own in sentence, sentence
        return
    ends = ("pingpong ended by an abort (signal 6)", "pingpong ended with exit code")
    assert sentence.startswith(ends), sentence


def test_a_rank_hangs(faults: Faults) -> None:
    sentence = faults.failed("hang")
    assert "time limit" in sentence, sentence


def test_a_node_dies_during_a_launch(faults: Faults) -> None:
    sentence = faults.failed("node")
    node = f"node{faults.hits['node'].other}"
    assert "node failure" in sentence or node in sentence, sentence


def test_a_link_is_cut_during_a_launch(faults: Faults) -> None:
    sentence = faults.failed("link")
    assert "ended by the scheduler" in sentence, sentence


def test_the_batch_node_dies_during_a_launch(faults: Faults) -> None:
    sentence = faults.failed("batch")
    assert "ended by the scheduler" in sentence, sentence


def test_the_controller_is_killed_and_restarted(faults: Faults) -> None:
    assert faults.hits["controller"].launch.outcome == "sound", faults.text


def test_an_image_is_corrupted_on_disk(faults: Faults) -> None:
    sentence = faults.failed("image")
    assert "it is uncertain which image ran" in sentence and "sha256" in sentence
    assert faults.last.outcome == "failed", faults.text
    assert "sha256" in faults.last.sentence and "make images" in faults.last.sentence


def test_two_campaigns_at_once(faults: Faults) -> None:
    code, text = faults.second
    assert code == 1 and "another campaign is measuring on site virtual" in text


def test_a_nodes_tmp_is_full(cluster: Cluster) -> None:
    fill = "head -c 10G /dev/zero >/tmp/full 2>/dev/null; df --output=avail /tmp | tail -n 1"
    assert cluster.execute(fill, user="root", node=2).strip() == "0"
    try:
        campaign = cluster.campaign(
            "test-full", "--checks", "Preflight", "--images", f"lam-7.1.4,{MPICH}"
        )
        assert campaign.end() == 1, campaign.text
    finally:
        cluster.execute("rm /tmp/full", user="root", node=2)
    outcomes = {launch.name.rpartition("_")[2]: launch for launch in campaign.launches()}
    assert outcomes[MPICH].outcome == "sound", "MPICH needs no room in /tmp"
    assert outcomes["lam-7.1.4"].outcome == "failed"
    assert "node2: no space left in /tmp" in outcomes["lam-7.1.4"].sentence
    wait_for(cluster.is_idle, 300, "an idle cluster")
