"""The box: the namespaces in which the whole cluster lives, as seen from outside.

One process, the box's first, holds them. All that the cluster starts is inside its process
namespace, so the kernel ends the whole cluster with that process, and the namespaces, interfaces
and mounts vanish with their last user: after a crash nothing is left that would have to be found.
"""

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from cluster import accounts, gridengine, slurm
from cluster.description import Cluster, ClusterError
from cluster.terminal_session import has_terminal, own_session
from records import acting_user
from records.causes import sentence_in

PROJECT = Path(__file__).resolve().parents[1]
NAMESPACES = ("--mount", "--uts", "--ipc", "--net", "--pid")
SITE_OVERRIDES = "site.yaml"


def state_folder(project: Path = PROJECT) -> Path:
    """Return the folder with the cluster's state, sockets, keys and logs."""
    return project / ".wyeast" / "cluster"


def demand_root() -> None:
    """Raise ClusterError for an ordinary user, and where it is unsafe for root."""
    if os.geteuid() != 0:
        raise ClusterError(
            "only root can start, enter or stop the cluster in a box, since it is made of network "
            "and mount namespaces; run the command as root (jobs run as an ordinary user anyway)"
        )
    if sentence := acting_user.untrusted(PROJECT):
        raise ClusterError(sentence)


def started_at(pid: int) -> str | None:
    """Return when a process started, in the kernel's ticks, or None when it is gone."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else fields[19]


def first_process(state: Path) -> int | None:
    """Return the id of the box's first process, or None when there is no box."""
    try:
        pid, started = (state / "process").read_text().split()
    except (OSError, ValueError):
        return None
    return int(pid) if started_at(int(pid)) == started else None


def running(state: Path) -> tuple[int, dict[str, Any]]:
    """Return the box's first process and the cluster's description.

    Raises ClusterError if no cluster is up.
    """
    pid = first_process(state)
    try:
        description: dict[str, Any] = json.loads((state / "cluster.json").read_text())
    except (OSError, ValueError):
        pid = None
    if pid is None:
        raise ClusterError("the cluster is not up; start it with: make cluster-up")
    return pid, description


def prepare(cluster: Cluster, project: Path, state: Path) -> None:
    """Write the configuration and keys of a new cluster."""
    remove_remains(state)
    # The owner of a checkout can read it whatever its modes; root's jobs are another user's.
    if project.stat().st_uid == 0 and not Path(__file__).stat().st_mode & stat.S_IROTH:
        raise ClusterError(
            f"the checkout {project} is readable by root alone, but jobs run as an ordinary user; "
            "make it readable: chmod -R go+rX ."
        )
    state.mkdir(parents=True, exist_ok=True)
    state.chmod(0o755)
    shutil.rmtree(state / "logs", ignore_errors=True)
    for name in ("run", "run/nodes", "home", "logs"):
        (state / name).mkdir(exist_ok=True)
    accounts.choose_numbers(project)
    writer = gridengine if cluster.scheduler == "sge" else slurm
    writer.write_configuration(cluster, state, accounts.daemons(project))


def open_box(state: Path) -> int:
    """Start the box's first process, record it, and return its id once the files are laid out."""
    with (state / "logs" / "box.log").open("w") as log:
        holder = subprocess.Popen(
            ["unshare", *NAMESPACES, "--fork", "--kill-child=KILL", "--mount-proc",
             sys.executable, "-m", "cluster.inside", "become-box"],
            cwd=PROJECT,
            env=clean_environment(),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )  # fmt: skip
    ready = state / "run" / "laid-out"
    deadline = time.monotonic() + 30
    while not ready.exists():
        pid = child_of(holder.pid)
        if pid and not (state / "process").exists():
            (state / "process").write_text(f"{pid} {started_at(pid)}\n")
        if holder.poll() is not None or time.monotonic() > deadline:
            said = sentence_in((state / "logs" / "box.log").read_text(errors="replace"))
            raise ClusterError(f"the box's namespaces cannot be made: {said or 'no reason given'}")
        time.sleep(0.01)
    pid = first_process(state)
    if pid is None:
        raise ClusterError("the box's first process has ended; see box.log in the cluster's logs")
    return pid


def child_of(pid: int) -> int | None:
    """Return the first child of a process, if it has one."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return None
    return int(children[0]) if children else None


def status_of(pid: int, field: str) -> list[int]:
    """Return the numbers in a field of a process' status; none for a process that is gone."""
    try:
        # A process may call itself anything, but ends no line by that.
        lines = Path(f"/proc/{pid}/status").read_bytes().split(b"\n")
    except OSError:
        return []
    begins = f"{field}:".encode()
    return next((list(map(int, line.split()[1:])) for line in lines if line.startswith(begins)), [])


def is_below(pid: int, ancestor: int) -> bool:
    """Return whether a process descends from another: another cluster's nodes do not."""
    while pid and pid != ancestor:
        pid = next(iter(status_of(pid, "PPid")), 0)
    return pid == ancestor


def clean_environment() -> dict[str, str]:
    """Return the environment of the cluster's own processes, without the user's shell variables."""
    return {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "LANG": "C.UTF-8",
        "PYTHONDONTWRITEBYTECODE": "1",
        **slurm.ENVIRONMENT,
    }


def inside(pid: int, *arguments: str, user: str | None = None) -> list[str]:
    """Return the command that runs another one in the box, or in a node, as root or as a user.

    A user's is in a session of its own and ends with the process that waits for it here.
    """
    enter = ["nsenter", f"--target={pid}", *NAMESPACES, f"--wdns={os.getcwd()}"]
    become = (
        [*own_session(has_terminal()), "setpriv", f"--reuid={user}",
         f"--regid={user}", "--init-groups", "--inh-caps=-all", "--pdeathsig=TERM"]
        if user
        else []
    )  # fmt: skip
    return [*enter, *become, *arguments]


def environment_of_user(user: str, state: Path) -> dict[str, str]:
    """Return the environment in which a user of the cluster submits jobs."""
    home = str(state / "home" / user) if user != "root" else "/root"
    return acting_user.environment_of(user, home) | {
        # Each is of use to its own scheduler's commands alone.
        **slurm.ENVIRONMENT,
        **gridengine.ENVIRONMENT,
        # The user may read the checkout, and git need not fear what is in it.
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "safe.directory",
        "GIT_CONFIG_VALUE_0": str(PROJECT),
    }


def ask(pid: int, operation: str, *arguments: str) -> str:
    """Run an operation of `inside` in the box and return its output.

    Raises ClusterError with the operation's own sentence.
    """
    done = subprocess.run(
        inside(pid, sys.executable, "-m", "cluster.inside", operation, *arguments),
        cwd=PROJECT,
        env=clean_environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        said = sentence_in(done.stderr)
        raise ClusterError(said or f"{operation} failed without a message")
    return done.stdout


def close_box(state: Path) -> bool:
    """End the cluster with all its processes, and return whether there was one."""
    pid = first_process(state)
    if pid is not None:
        os.kill(pid, signal.SIGKILL)
        deadline = time.monotonic() + 30
        # The kernel lets the first process go only after all others of its namespace.
        while started_at(pid) is not None:
            if time.monotonic() > deadline:
                raise ClusterError(
                    f"process {pid}, the cluster's first, does not end; a process of the cluster "
                    "waits for the kernel (see: ps -eo pid,stat,args)"
                )
            time.sleep(0.02)
    remove_remains(state)
    return pid is not None


def remove_remains(state: Path) -> None:
    """Remove the keys, sockets and descriptions of a cluster that has ended; keep the logs."""
    for name in ("process", "cluster.json", SITE_OVERRIDES):
        (state / name).unlink(missing_ok=True)
    for name in ("run", "keys"):
        shutil.rmtree(state / name, ignore_errors=True)
