"""The cluster in a box: what its nodes are, what its users may, and that nothing is left of it."""

import os
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster import accounts, box, programs
from tests.cluster.conftest import CLUSTER, PROJECT, Cluster, control, wait_for
from tests.other_user import users_stay

pytestmark = pytest.mark.cluster


def test_nodes_are_machines_of_their_own(cluster: Cluster) -> None:
    spaces = ("net", "uts", "ipc", "pid", "mnt")
    asked = "; ".join(f"readlink /proc/self/ns/{space}" for space in spaces)
    seen = [
        cluster.execute(
            f"{asked}; hostname; stat -c %d /tmp; stat -c %d /dev/shm", user="root", node=node
        ).split()
        for node in (1, 2, 3, 4)
    ]
    assert all(len(set(column)) == 4 for column in zip(*seen, strict=True)), seen
    assert [facts[5] for facts in seen] == ["node1", "node2", "node3", "node4"]


def test_jobs_reach_every_node_and_share_the_project(cluster: Cluster) -> None:
    said = cluster.execute("srun -N4 sh -c 'hostname; stat -c %i Makefile'").split()
    inode = str((PROJECT / "Makefile").stat().st_ino)
    assert sorted(said) == sorted([inode] * 4 + [f"node{k}" for k in (1, 2, 3, 4)])


def test_links_have_their_rate(cluster: Cluster) -> None:
    described = cluster.describe()
    assert len(described["measured_bit_per_s"]) == 4
    for rate in described["measured_bit_per_s"]:
        # Never faster; a busy machine makes it slower, which the start says.
        assert 0.85 <= rate / described["link"]["rate_bit_per_s"] <= 1.05


def test_jobs_run_as_an_ordinary_user(cluster: Cluster) -> None:
    owner = PROJECT.stat().st_uid
    uid = int(cluster.execute("srun id -u"))
    assert uid != 0 and (owner == 0 or uid == owner)
    refused = cluster.execute("srun --immediate=5 id -u", user="root", check=False)
    assert "Invalid user id" in refused


def test_a_second_user_sees_no_key_and_cancels_no_job(cluster: Cluster) -> None:
    key = PROJECT / ".wyeast" / "cluster" / "keys" / "munge.key"
    for user in ("guest", ""):
        assert "Permission denied" in cluster.execute(f"cat {key}", user=user, check=False)
    submitted = cluster.execute("sbatch --output=/dev/null --wrap 'sleep 6000'")
    job = submitted.split()[-1]
    refused = cluster.execute(f"scancel {job}", user="guest", check=False)
    assert "denied" in refused
    wait_for(
        lambda: "RUNNING" in cluster.execute(f"squeue -h -j {job} -o %T", user="guest"),
        300,
        "the job that nobody could cancel",
    )
    cluster.execute(f"scancel {job}")
    wait_for(cluster.is_idle, 300, "an idle cluster")


def test_status_shows_the_nodes(cluster: Cluster) -> None:
    text = cluster.run("status")
    assert "4 nodes" in text and text.count("idle") == 4


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--nodes=0"], "NODES=0: give a number from 1"),
        (["--nodes=many"], "NODES=many: give a number"),
        (["--link=56k"], "LINK=56k is unknown; choose one of: 10mbit, 100mbit"),
    ],
)
def test_wrong_wishes_get_a_sentence(options: list[str], sentence: str) -> None:
    done = control("up", *options)
    assert done.returncode == 1 and sentence in done.stderr


#: Run by root where all nodes' processes are seen: keeps the network of node 4 when that has died.
HOLD = """
first=$(pgrep -o -f -- '-N node4$')
(exec 3<"/proc/$first/ns/net"; exec sleep 600) >/dev/null 2>&1 &
echo "$!"
"""


def test_a_node_is_started_at_once_while_linux_still_has_its_old_link(cluster: Cluster) -> None:
    holder = cluster.execute(HOLD, user="root").strip()
    try:
        cluster.run("stop-node", "4")
        cluster.run("start-node", "4")
    finally:
        cluster.execute(f"kill {holder}", user="root")
    assert cluster.execute("srun --nodelist=node4 hostname").strip() == "node4"
    wait_for(cluster.is_idle, 300, "an idle cluster")


def test_a_second_start_is_refused(cluster: Cluster) -> None:
    done = control("up")
    assert done.returncode == 1 and "already up" in done.stderr
    assert cluster.is_idle()


def test_an_ordinary_user_is_told_what_is_missing(cluster: Cluster) -> None:
    said = cluster.execute(". ./activate; python -m cluster up", check=False)
    assert "only root can start" in said


# Not those of users and mounts, which any container on the machine has.
NAMESPACES = [f"lsns -n -o NS -t {kind}" for kind in ("net", "uts", "ipc", "pid")]


def traces() -> dict[str, object]:
    """Return what a cluster could leave behind on the machine."""
    said = {
        command: subprocess.run(command.split(), capture_output=True, text=True).stdout
        for command in ("ip -o link", "ip netns list", *NAMESPACES)
    }
    daemons = subprocess.run(
        ["pgrep", "-x", "-c", "slurmd|slurmctld|munged|tini"], capture_output=True, text=True
    ).stdout
    return {
        "interfaces": [line.split(":")[1] for line in said["ip -o link"].splitlines()],
        "named": said["ip netns list"],
        "namespaces": [sorted(said[command].split()) for command in NAMESPACES],
        "mounts": Path("/proc/mounts").read_text(),
        "daemons": daemons,
    }


#: What an installation changes: accounts, services, what is run at boot, programs, dpkg's list.
INSTALLED = ("/etc", "/usr", "/var/lib/dpkg")


def installed() -> dict[str, tuple[int, ...]]:
    """Return what distinguishes each file of the machine's system from one that was changed."""
    found: dict[str, tuple[int, ...]] = {}
    for top in INSTALLED:
        for folder, folders, files in os.walk(top):
            folders[:] = [name for name in folders if name != "__pycache__"]
            for path in (os.path.join(folder, name) for name in (*folders, *files)):
                status = os.lstat(path)
                facts = (status.st_mode, status.st_uid, status.st_gid)
                of_file = (status.st_size, status.st_mtime_ns, status.st_ino)
                found[path] = facts if stat.S_ISDIR(status.st_mode) else (*facts, *of_file)
    return found


@pytest.fixture
def other_checkout(running_cluster: Cluster, tmp_path: Path) -> Path:
    """Return a second checkout, in a folder that only root may enter."""
    for name in ("cluster", "containers", "records", "site_configs"):
        shutil.copytree(
            PROJECT / name, tmp_path / name, ignore=shutil.ignore_patterns("images.lock")
        )
    own = programs.folder_of(box.state_folder(tmp_path))
    shutil.copytree(programs.folder_of(box.state_folder(PROJECT)), own, symlinks=True)
    return tmp_path


@pytest.fixture
def same_users() -> Iterator[None]:
    """Other tests, in the lanes beside, make users of this machine, which is what is looked at."""
    with users_stay():
        yield


@pytest.mark.usefixtures("same_users")
def test_the_machine_is_as_before_also_where_the_start_was_killed(other_checkout: Path) -> None:
    state = box.state_folder(other_checkout)
    shutil.rmtree(programs.folder_of(state))
    before = installed()
    words = ["--nodes=1", "--link=none"]
    starting = subprocess.Popen(
        [*CLUSTER, "up", *words], cwd=other_checkout, start_new_session=True,
        env={**os.environ, "PYTHONPATH": str(other_checkout)}, stdout=subprocess.PIPE,
    )  # fmt: skip
    aside = state / programs.ASIDE
    wait_for(lambda: (aside / "downloads").is_dir(), 300, "the packages")
    os.killpg(starting.pid, signal.SIGKILL)
    out, _ = starting.communicate(timeout=300)
    assert b"nothing is installed on this machine" in out and not programs.versions(state)
    assert installed() == before
    done = control("up", *words, project=other_checkout)
    assert done.returncode == 0 and "1 nodes are up" in done.stdout, done.stderr
    assert set(programs.PACKAGES) <= programs.versions(state).keys() and not aside.exists()
    # Slurm in the box is the one that was unpacked, run by users whom the machine does not know.
    asked = "stat -c %i /usr/sbin/slurmd-wlm; stat -c %u /run/munge; getent passwd munge"
    said = control("exec", "--", "sh", "-c", asked, project=other_checkout).stdout.split()
    own = (programs.folder_of(state) / "usr" / "sbin" / "slurmd-wlm").stat().st_ino
    uid = accounts.daemons(other_checkout)["munge"]
    assert said[:2] == [str(own), str(uid)] and said[2].startswith(f"munge:x:{uid}:{uid}:")
    assert accounts.is_free(uid)
    assert "down" in control("down", project=other_checkout).stdout
    assert installed() == before


@pytest.mark.measures
def test_nothing_is_left_after_down_and_after_a_crash(
    cluster: Cluster, other_checkout: Path
) -> None:
    before = traces()
    process = other_checkout / ".wyeast" / "cluster" / "process"

    def up() -> None:
        done = control("up", "--nodes=2", "--link=none", project=other_checkout)
        assert done.returncode == 0 and "2 nodes are up" in done.stdout, done.stderr

    up()
    said = control("exec", "--", "srun", "-N2", "hostname", project=other_checkout)
    assert sorted(said.stdout.split()) == ["node1", "node2"], said.stderr
    # This checkout lies in /tmp, which is emptied on a node when a job ends; the checkout is not.
    assert (other_checkout / ".wyeast" / "reframe" / "virtual").is_dir()
    network = ["exec", "--user=root", "--node=1", "--", "readlink", "/proc/self/ns/net"]
    theirs, ours = control(*network, project=other_checkout), control(*network)
    assert theirs.stdout and theirs.stdout != ours.stdout, "each cluster enters its own nodes"
    assert traces() != before
    # A crash: the process that holds everything is killed.
    first = int(process.read_text().split()[0])
    os.kill(first, signal.SIGKILL)
    wait_for(lambda: not Path(f"/proc/{first}").exists(), 300, "the end of the first process")
    wait_for(lambda: traces() == before, 300, "nothing to be left")
    assert "not up" in control("status", project=other_checkout).stderr
    up()
    assert "down" in control("down", project=other_checkout).stdout
    assert traces() == before
    assert not (other_checkout / ".wyeast" / "cluster" / "keys").exists()


@pytest.mark.measures
def test_an_interrupted_start_leaves_nothing(other_checkout: Path) -> None:
    before = traces()
    starting = subprocess.Popen(
        [sys.executable, "-m", "cluster", "up"],
        cwd=other_checkout,
        env={**os.environ, "PYTHONPATH": str(other_checkout)},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    process = other_checkout / ".wyeast" / "cluster" / "process"
    wait_for(process.exists, 300, "the box")
    starting.send_signal(signal.SIGINT)
    _, complaint = starting.communicate(timeout=300)
    assert starting.returncode == 130 and "interrupted" in complaint
    assert traces() == before
