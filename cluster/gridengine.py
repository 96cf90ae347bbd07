"""Grid Engine's configuration and daemons in the box."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from cluster.description import CONTROLLER, Cluster, ClusterError
from cluster.slurm import wait_until
from records.acting_user import give
from records.causes import sentence_in

ROOT = Path("/run/gridengine")
#: What its commands and daemons need, and jobs besides. The ports are those that IANA lists.
ENVIRONMENT = {
    "SGE_ROOT": str(ROOT), "SGE_CELL": "default", "SGE_QMASTER_PORT": "6444",
    "SGE_EXECD_PORT": "6445",
}  # fmt: skip
COMMON, SPOOL = ROOT / "default" / "common", ROOT / "default" / "spool"
#: Where Debian's packages have its programs, and what they call an empty cluster's configuration.
LIBRARIES, SHARE = "/usr/lib/gridengine", Path("/usr/share/gridengine")
QUEUE, PARALLEL_ENVIRONMENT = "all.q", "mpi"
#: How long a command that only queries may take, in seconds.
PATIENCE_S = 60.0
BOOTSTRAP = f"""admin_user              none
default_domain          none
ignore_fqdn             true
spooling_method         classic
spooling_lib            libspoolc
spooling_params         {COMMON};{SPOOL}/qmaster
binary_path             {ROOT}/bin
qmaster_spool_dir       {SPOOL}/qmaster
security_mode           none
listener_threads        2
worker_threads          2
scheduler_threads       1
"""
# What differs from Debian's: nodes that are lost are noticed within seconds, as by Slurm here.
GLOBAL = {"execd_spool_dir": f"{SPOOL}/nodes", "shell_start_mode": "unix_behavior",
          "load_report_time": "00:00:03", "max_unheard": "00:00:12",
          "mailer": "/bin/true", "xterm": "/bin/true"}  # fmt: skip
# Jobs are few, and each is waited for.
SCHEDULING = {"schedule_interval": "0:0:2", "flush_submit_sec": "1", "flush_finish_sec": "1",
              "queue_sort_method": "seqno"}  # fmt: skip
# A launch's ranks on other nodes are tasks of its job (qrsh -inherit), of which there may be one
# more on each: the launcher's own daemon.
ENVIRONMENT_OF_RANKS = f"""pe_name            {PARALLEL_ENVIRONMENT}
slots              99999
user_lists         NONE
xuser_lists        NONE
start_proc_args    NONE
stop_proc_args     NONE
allocation_rule    $fill_up
control_slaves     TRUE
job_is_first_task  FALSE
urgency_slots      min
accounting_summary FALSE
qsort_args         NONE
"""
#: The limits of a queue, of which it has none.
LIMITS = [f"{kind}_{what}" for what in
          ("rt", "cpu", "fsize", "data", "stack", "core", "rss", "vmem")
          for kind in ("s", "h")]  # fmt: skip


def queue(cluster: Cluster) -> str:
    """Return the queue of all nodes, with a slot for each core."""
    keys = {
        "qname": QUEUE, "hostlist": " ".join(cluster.node_names()),
        # As Slurm gives them: two ranks are on node1 and node2, and so on two cores.
        "seq_no": ",".join(["0", *(f"[{name}={place}]" for place, name
                                   in enumerate(cluster.node_names()))]),
        # However busy the one machine is that plays the nodes.
        "load_thresholds": "NONE", "suspend_thresholds": "NONE", "nsuspend": "1",
        "suspend_interval": "00:05:00", "priority": "0", "min_cpu_interval": "00:05:00",
        "processors": "UNDEFINED", "qtype": "BATCH INTERACTIVE", "ckpt_list": "NONE",
        "pe_list": PARALLEL_ENVIRONMENT, "rerun": "FALSE", "slots": str(cluster.cores_per_node),
        "tmpdir": "/tmp", "shell": "/bin/bash", "prolog": "NONE", "epilog": "NONE",
        "shell_start_mode": "unix_behavior", "starter_method": "NONE", "suspend_method": "NONE",
        "resume_method": "NONE", "terminate_method": "NONE", "notify": "00:00:60",
        "owner_list": "NONE", "user_lists": "NONE", "xuser_lists": "NONE",
        "subordinate_list": "NONE", "complex_values": "NONE", "projects": "NONE",
        "xprojects": "NONE", "calendar": "NONE", "initial_state": "default",
        **dict.fromkeys(LIMITS, "INFINITY"),
    }  # fmt: skip
    return "".join(f"{key:20} {value}\n" for key, value in keys.items())


def host(name: str) -> str:
    """Return the description of a node."""
    keys = {"hostname": name, "load_scaling": "NONE", "complex_values": "NONE",
            "user_lists": "NONE", "xuser_lists": "NONE", "projects": "NONE", "xprojects": "NONE",
            "usage_scaling": "NONE", "report_variables": "NONE"}  # fmt: skip
    return "".join(f"{key:20} {value}\n" for key, value in keys.items())


def replaced(text: str, values: Mapping[str, str]) -> str:
    """Return a configuration, a key and its value on each line, with other values of some keys."""
    lines = []
    for line in text.splitlines():
        key = line.split(maxsplit=1)[0] if line.strip() else ""
        lines.append(f"{key:24} {values[key]}" if key in values else line)
    return "\n".join(lines) + "\n"


def write_configuration(cluster: Cluster, state: Path, daemons: Mapping[str, int]) -> None:
    """Write what its master begins with; its daemons are root's."""
    root = state / "run" / ROOT.name
    shutil.rmtree(root, ignore_errors=True)
    for folder in (COMMON, SPOOL / "qmaster", SPOOL / "nodes", ROOT / "bin", ROOT / "new"):
        give(root / folder.relative_to(ROOT), 0, 0, 0o755)
    common = root / COMMON.relative_to(ROOT)
    (common / "bootstrap").write_text(BOOTSTRAP)
    (common / "act_qmaster").write_text(f"{CONTROLLER}\n")
    # Launchers look for qrsh in a folder that is named after the processor, and it for others.
    for name in ("bin", "utilbin", "lib"):
        (root / name).mkdir(exist_ok=True)
        (root / name / "lx-amd64").symlink_to(LIBRARIES)
    (root / "util").symlink_to(SHARE / "util")
    new = root / "new"
    (new / "queue").write_text(queue(cluster))
    (new / "ranks").write_text(ENVIRONMENT_OF_RANKS)
    for name in cluster.node_names():
        (new / name).write_text(host(name))


def environment() -> dict[str, str]:
    """Return the environment of its daemons and commands."""
    return {**os.environ, **ENVIRONMENT, "LD_LIBRARY_PATH": LIBRARIES}


def run(*command: str | Path) -> str:
    """Run one of its commands as root; return what it prints. Raises ClusterError."""
    try:
        done = subprocess.run(
            command, env=environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=PATIENCE_S,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise ClusterError(f"{command[0]} did not answer within {PATIENCE_S:g} s") from None
    if done.returncode:
        said = sentence_in(done.stderr) or sentence_in(done.stdout) or "?"
        raise ClusterError(f"{' '.join(map(str, command))}: {said}")
    return done.stdout


def start(cluster: Cluster, state: Path) -> None:
    """Start its master, and tell it of the nodes."""
    programs = Path(LIBRARIES)
    run(programs / "spoolinit", "classic", "libspoolc", f"{COMMON};{SPOOL}/qmaster", "init")
    configuration = ROOT / "new" / "configuration"
    configuration.write_text(replaced((SHARE / "default-configuration").read_text(), GLOBAL))
    resources = SHARE / "util" / "resources"
    run(programs / "spooldefaults", "configuration", configuration)
    run(programs / "spooldefaults", "complexes", resources / "centry")
    run(programs / "spooldefaults", "usersets", resources / "usersets")
    run(programs / "spooldefaults", "managers", "root")
    start_controller()
    scheduling = ROOT / "new" / "scheduling"
    scheduling.write_text(replaced(run("qconf", "-ssconf"), SCHEDULING))
    run("qconf", "-Msconf", scheduling)
    run("qconf", "-as", CONTROLLER)
    for name in cluster.node_names():
        run("qconf", "-ah", name)
        run("qconf", "-as", name)
        run("qconf", "-Ae", ROOT / "new" / name)
    run("qconf", "-Ap", ROOT / "new" / "ranks")
    run("qconf", "-Aq", ROOT / "new" / "queue")


def start_controller() -> None:
    """Start sge_qmaster, and wait until it answers; raises ClusterError."""
    run("sge_qmaster")
    wait_until(
        _answers, 20, f"sge_qmaster does not answer; see {SPOOL}/qmaster/messages in the cluster"
    )


def _answers() -> bool:
    try:
        return bool(run("qconf", "-sss"))
    except ClusterError:
        return False


def stop_controller() -> None:
    """Kill sge_qmaster without warning, as a crash does."""
    subprocess.run(
        ["pkill", "-KILL", "-x", "sge_qmaster"], check=False, timeout=PATIENCE_S
    )  # fmt: skip


def node_command(name: str) -> list[str]:
    """Return what runs on a node, in the foreground."""
    words = [f"{key}={value}" for key, value in {**ENVIRONMENT, "SGE_ND": "1"}.items()]
    return ["env", *words, f"LD_LIBRARY_PATH={LIBRARIES}", "sge_execd"]


def node_states() -> dict[str, str]:
    """Return each node's state: `idle`, `allocated`, or what Grid Engine calls it."""
    states = {}
    for line in run("qstat", "-f").splitlines():
        if line.startswith(f"{QUEUE}@"):
            # Queue, type, reserved/used/all slots, load, processor, states.
            name, _, slots, _, _, *letters = line.split()
            used = slots.split("/")[1] != "0"
            found = letters[0] if letters else "allocated" if used else "idle"
            states[name.partition("@")[2]] = found
    return states


def wait_for_nodes(names: list[str]) -> None:
    """Wait until Grid Engine would give a job any of the nodes."""

    def ready() -> bool:
        states = node_states()
        return all(states.get(name) in ("idle", "allocated") for name in names)

    wait_until(ready, 90, f"not all of {', '.join(names)} are ready; see the nodes' logs")
