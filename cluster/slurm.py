"""Slurm's configuration and daemons in the box."""

import os
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from cluster.description import CONTROLLER, CONTROLLER_ADDRESS, Cluster, ClusterError, address_of
from records.acting_user import give
from records.causes import sentence_in

CONFIGURATION = "/run/slurm/slurm.conf"
#: What its commands need, and jobs besides.
ENVIRONMENT = {"SLURM_CONF": CONFIGURATION}
#: How long a Slurm command that only queries may take, in seconds.
PATIENCE_S = 60.0
#: Everybody's view of the munge socket, where munge's library looks for it.
MUNGE_SOCKET = "/run/munge/munge.socket.2"
# When a job ends, nothing of its user stays on the node: nodes are given to one job at a time. Only
# what is the node's own (-xdev): a checkout that lies in /tmp is mounted there for all nodes.
EPILOG = """#!/bin/sh
pkill -KILL -U "$SLURM_JOB_UID"
find /tmp /dev/shm -xdev -mindepth 1 -user "$SLURM_JOB_UID" -delete 2>/dev/null
exit 0
"""


def configuration(cluster: Cluster, logs: Path) -> str:
    """Return slurm.conf."""
    memory = cluster.memory_bytes_per_node // 2**20
    nodes = [
        f"NodeName={name} NodeAddr={address_of(k)} CPUs={cluster.cores_per_node} "
        f"RealMemory={memory} State=UNKNOWN"
        for k, name in enumerate(cluster.node_names(), start=1)
    ]
    return "\n".join(
        [
            "ClusterName=wyeast",
            f"SlurmctldHost={CONTROLLER}({CONTROLLER_ADDRESS})",
            "SlurmUser=slurm",
            "AuthType=auth/munge",
            "CredType=cred/munge",
            "StateSaveLocation=/run/slurm/controller",
            "SlurmdSpoolDir=/run/slurm/%n",
            "SlurmctldPidFile=/run/slurm/controller/slurmctld.pid",
            "SlurmdPidFile=/run/slurm/%n/slurmd.pid",
            f"SlurmctldLogFile={logs}/slurmctld.log",
            f"SlurmdLogFile={logs}/%n.log",
            "Epilog=/run/slurm/epilog",
            # Without systemd and without the machine's control groups.
            "ProctrackType=proctrack/linuxproc",
            "TaskPlugin=task/none",
            "JobAcctGatherType=jobacct_gather/none",
            "AccountingStorageType=accounting_storage/none",
            # The nodes' processors are those of the one machine, whatever the description says.
            "SlurmdParameters=config_overrides",
            # Jobs are few, and each is waited for: it is placed at once, and not within 3 s. One
            # whose time has come, as that of a night, is noticed within 2 s, not within a minute.
            "SchedulerParameters=batch_sched_delay=0,sched_interval=2",
            "SelectType=select/cons_tres",
            "SelectTypeParameters=CR_Core",
            "DisableRootJobs=YES",
            "TmpFS=/tmp",
            "MpiDefault=none",
            # Users may have jobs at fixed times, as nightly campaigns are (scrontab).
            "ScronParameters=enable",
            # A node that dies is noticed within seconds, and a job of it is lost, not repeated:
            # a repeated launch would be measured as if nothing had happened.
            "SlurmdTimeout=10",
            "JobRequeue=0",
            "KillWait=2",
            "ReturnToService=2",
            "TCPTimeout=2",
            "MessageTimeout=10",
            *nodes,
            "PartitionName=compute Nodes=ALL Default=YES MaxTime=INFINITE State=UP "
            "OverSubscribe=EXCLUSIVE",
            "",
        ]
    )


def write_configuration(cluster: Cluster, state: Path, daemons: Mapping[str, int]) -> None:
    """Write what the daemons read, including a new munge key; `daemons` are their users' ids."""
    run = state / "run"
    munge, slurm = daemons["munge"], daemons["slurm"]
    give(run / "slurm", 0, 0, 0o755)
    give(run / "slurm" / "controller", slurm, slurm, 0o700)
    give(run / "munge", munge, munge, 0o755)
    give(state / "keys", munge, munge, 0o700)
    (run / "slurm" / "slurm.conf").write_text(configuration(cluster, state / "logs"))
    (run / "slurm" / "cgroup.conf").write_text("CgroupAutomount=yes\nIgnoreSystemd=yes\n")
    epilog = run / "slurm" / "epilog"
    epilog.write_text(EPILOG)
    epilog.chmod(0o755)
    key = state / "keys" / "munge.key"
    descriptor = os.open(key, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o400)
    with os.fdopen(descriptor, "wb") as file:
        file.write(os.urandom(128))
    os.chown(key, munge, munge, follow_symlinks=False)
    for name, owner in (("munged", munge), ("slurmctld", slurm)):
        log = state / "logs" / f"{name}.log"
        log.touch(0o640)
        os.chown(log, owner, -1, follow_symlinks=False)


def wait_until(condition: Callable[[], bool], seconds: float, complaint: str) -> None:
    """Wait for a condition; raise ClusterError with the complaint if it does not come true."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise ClusterError(complaint)
        time.sleep(0.05)


def start(_: Cluster, state: Path) -> None:
    """Start munged and slurmctld."""
    start_munge(state)
    start_controller()


def node_command(name: str) -> list[str]:
    """Return what runs on a node, in the foreground, once there is a folder for it."""
    (Path("/run/slurm") / name).mkdir(exist_ok=True)
    return ["slurmd", "-D", "-N", name]


def start_munge(state: Path) -> None:
    """Start munged as the user munge."""
    done = subprocess.run(
        ["setpriv", "--reuid=munge", "--regid=munge", "--clear-groups",
         "munged", f"--socket={MUNGE_SOCKET}", f"--key-file={state}/keys/munge.key",
         "--pid-file=/run/munge/munged.pid", "--seed-file=/run/munge/munged.seed",
         f"--log-file={state}/logs/munged.log",
         # The checkout's folders may be writable by a group, which munge calls insecure.
         "--force"],
        capture_output=True, text=True,
    )  # fmt: skip
    if done.returncode:
        raise ClusterError(f"munged does not start: {sentence_in(done.stderr) or '?'}")


def start_controller() -> None:
    """Start slurmctld, which becomes the user slurm, and wait until it answers."""
    environment = {**os.environ, "SLURM_CONF": CONFIGURATION}
    subprocess.run(["slurmctld"], env=environment, check=True, stdin=subprocess.DEVNULL)
    wait_until(
        lambda: "UP" in _said("scontrol", "ping"),
        20,
        "slurmctld does not answer; see slurmctld.log in the cluster's logs",
    )


def stop_controller() -> None:
    """Kill slurmctld without warning, as a crash does."""
    subprocess.run(["pkill", "-KILL", "-x", "slurmctld"], check=False)


def _said(*command: str) -> str:
    environment = {**os.environ, "SLURM_CONF": CONFIGURATION}
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=PATIENCE_S
        )
    except subprocess.TimeoutExpired:
        raise ClusterError(
            f"{command[0]} did not answer within {PATIENCE_S:g} s: slurmctld or munged hangs; see "
            "slurmctld.log in the cluster's logs, or restart the cluster (make cluster-down)"
        ) from None
    return done.stdout


def node_states() -> dict[str, str]:
    """Return each node's state in Slurm, such as `idle`, `allocated` or `down*`."""
    lines = _said("sinfo", "--noheader", "--Node", "--format=%N %T").splitlines()
    return dict(line.split(maxsplit=1) for line in lines)


def wait_for_nodes(names: list[str]) -> None:
    """Wait until Slurm would give a job any of the nodes."""

    def ready() -> bool:
        states = node_states()
        return all(states.get(name) in ("idle", "mixed", "allocated") for name in names)

    wait_until(ready, 90, f"not all of {', '.join(names)} are ready; see the nodes' logs")
