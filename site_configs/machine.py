"""What this machine reports about itself: scheduler, nodes, PMI, links, MPI, Apptainer, Spack.

Nothing here needs a job: the scheduler's own listings, the kernel's files, and `--version`s.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from site_configs.launchers import HostLauncher, identify

TIMEOUT_S = 30
MIB = 1 << 20
#: What lshosts and pbsnodes write behind a number of bytes.
UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


class Machine:
    """A machine, seen through the commands on a PATH and the files under a root."""

    def __init__(self, path: str | None = None, root: Path = Path("/")) -> None:
        self.path = os.environ.get("PATH", os.defpath) if path is None else path
        self.root = root

    def has(self, command: str) -> bool:
        """Return whether a command is on PATH."""
        return shutil.which(command, path=self.path) is not None

    def says(self, command: str, *options: str) -> str | None:
        """Return what a command prints; None if it is missing, fails, or prints nothing."""
        found = shutil.which(command, path=self.path)
        if found is None:
            return None
        try:
            done = subprocess.run(
                [found, *options],
                env={**os.environ, "PATH": self.path, "LC_ALL": "C"}, stdin=subprocess.DEVNULL,
                capture_output=True, text=True, errors="replace", timeout=TIMEOUT_S, check=True,
            )  # fmt: skip
        except (OSError, subprocess.SubprocessError):
            return None
        # Older Slurm lists its types of MPI on standard error.
        return done.stdout.strip() or done.stderr.strip() or None

    def reads(self, path: Path) -> str | None:
        """Return the content of a kernel file, or None if it is missing or empty."""
        try:
            return path.read_text().strip() or None
        except (OSError, UnicodeDecodeError):
            return None


#: Nodes that are alike: how many, their cores, their bytes of memory.
NodeKind = tuple[int, int | None, int | None]


@dataclass(frozen=True)
class Nodes:
    """The nodes of one partition or queue, with the resources of the smallest."""

    partition: str
    nodes: int
    cores: int | None
    memory_bytes: int | None
    #: Where the numbers come from, in words.
    source: str
    #: The other partitions or queues.
    others: tuple[str, ...]
    #: Whether some nodes have more than that.
    mixed: bool
    #: The cores of the node that has the most.
    most_cores: int | None = None


def _least(
    partition: str, found: list[NodeKind], source: str, others: tuple[str, ...]
) -> Nodes | None:
    """Return what every node has at least, from each kind of node; None if there are none."""
    count = sum(kind[0] for kind in found)
    if not count:
        return None
    cores = [kind[1] for kind in found if kind[1]]
    memory = [kind[2] for kind in found if kind[2]]
    return Nodes(
        partition, count, min(cores, default=None), min(memory, default=None), source, others,
        mixed=len({kind[1:] for kind in found}) > 1, most_cores=max(cores, default=None),
    )  # fmt: skip


def slurm_nodes(machine: Machine, partition: str | None = None) -> Nodes | None:
    """Return a partition's nodes as sinfo lists them; without a name the default partition's."""
    form = "%R|%P|%a|%D|%c|%X|%Y|%m|%s"
    said = machine.says("sinfo", "--noheader", "--exact", f"--format={form}") or ""
    rows = [row for line in said.splitlines() if len(row := line.strip().split("|")) == 9]
    names = list(dict.fromkeys(row[0] for row in rows if row[2] == "up" or row[0] == partition))
    default = [row[0] for row in rows if row[1].endswith("*")]
    chosen = partition or next(iter([*default, *names]), None)
    if chosen not in names:
        return None
    kinds: list[NodeKind] = []
    for row in rows:
        if row[0] != chosen:
            continue
        count, processors, sockets, cores, memory = (_number(word) for word in row[3:8])
        # Processors are threads where Slurm counts them; a rank gets a core.
        physical = sockets * cores if 0 < sockets * cores <= processors else processors
        kinds.append((count, physical or None, memory * MIB or None))
    found = _least(
        chosen, kinds, f"sinfo, partition {chosen}", tuple(n for n in names if n != chosen)
    )
    # The most that a job of this partition may have: `1-4`, `1-infinite`, or `4`.
    most = next((_number(row[8].rpartition("-")[2]) for row in rows if row[0] == chosen), 0)
    if found and 0 < most < found.nodes:
        allowed = f"{found.source}, which allows a job {most} of its {found.nodes} nodes"
        return replace(found, nodes=most, source=allowed)
    return found


def _number(word: str) -> int:
    match = re.match(r"\d+", word.strip())
    return int(match.group()) if match else 0


def _bytes(word: str) -> int | None:
    match = re.fullmatch(r"([\d.]+)([kmgt]?)b?", word.strip().lower())
    return int(float(match[1]) * UNITS[match[2]]) if match else None


def pbs_nodes(machine: Machine, queue: str | None = None) -> Nodes | None:
    """Return the nodes that pbsnodes lists and that are not down; the default queue's name."""
    kinds: list[NodeKind] = []
    for block in re.split(r"\n(?=\S)", machine.says("pbsnodes", "-a") or ""):
        has = dict(re.findall(r"^\s+([\w.]+) = (.*)$", block, re.M))
        cores = has.get("resources_available.ncpus") or has.get("np")
        if not cores or re.search("down|offline|unknown", has.get("state", "")):
            continue
        physical = re.search(r"physmem=(\w+)", has.get("status", ""))
        memory = has.get("resources_available.mem") or (physical[1] if physical else "")
        kinds.append((1, _number(cores) or None, _bytes(memory)))
    queues = tuple(re.findall(r"^(\S+) +\d+ ", machine.says("qstat", "-Q") or "", re.M))
    default = re.search(r"default_queue = (\S+)", machine.says("qstat", "-B", "-f") or "")
    chosen = queue or (default[1] if default else next(iter(queues), None))
    if chosen is None or (queue and queue not in queues):
        return None
    others = tuple(name for name in queues if name != chosen)
    return _least(chosen, kinds, "pbsnodes, of all queues together", others)


def lsf_nodes(machine: Machine, queue: str | None = None) -> Nodes | None:
    """Return the servers that lshosts lists and bhosts has not lost; the default queue's name."""
    states = {has["HOST_NAME"]: has.get("STATUS", "") for has in _rows(machine, "bhosts", "-w")}
    kinds: list[NodeKind] = []
    for has in _rows(machine, "lshosts", "-w"):
        lost = re.match("un|closed_Adm", states.get(has["HOST_NAME"], ""))
        if has.get("server") == "Yes" and _number(has.get("ncpus", "")) and not lost:
            kinds.append((1, _number(has["ncpus"]), _bytes(has.get("maxmem", ""))))
    queues = tuple(re.findall(r"^(\S+) +\d+ ", machine.says("bqueues", "-w") or "", re.M))
    default = re.search(r"Default Queues:\s*(\S+)", machine.says("bparams") or "")
    chosen = queue or (default[1] if default else next(iter(queues), None))
    if chosen is None or (queue and queue not in queues):
        return None
    others = tuple(name for name in queues if name != chosen)
    return _least(chosen, kinds, "lshosts, of all queues together", others)


def _rows(machine: Machine, command: str, *options: str) -> list[dict[str, str]]:
    """Return what a command prints as a table with a header, row by row."""
    header, *rows = [line.split() for line in (machine.says(command, *options) or "").splitlines()
                     if line.strip()] or [[]]  # fmt: skip
    return [dict(zip(header, row, strict=False)) for row in rows]


def sge_nodes(machine: Machine, queue: str | None = None) -> Nodes | None:
    """Return the hosts of Grid Engine that qhost lists with a load; the first queue's name."""
    kinds: list[NodeKind] = []
    for has in _rows(machine, "qhost"):
        # The rule below the header, what all hosts have in common, and hosts that do not answer.
        if has.get("LOAD", "-") == "-" or has["HOSTNAME"] == "global":
            continue
        # Of processors that are threads, NCOR are the cores.
        cores = _number(has.get("NCOR", "")) or _number(has.get("NCPU", ""))
        kinds.append((1, cores or None, _bytes(has.get("MEMTOT", ""))))
    queues = tuple((machine.says("qconf", "-sql") or "").split())
    chosen = queue or next(iter(queues), None)
    if chosen is None or (queue and queue not in queues):
        return None
    others = tuple(name for name in queues if name != chosen)
    return _least(chosen, kinds, "qhost, of all queues together", others)


def parallel_environments(machine: Machine) -> list[str]:
    """Return Grid Engine's parallel environments, those first that are for MPI by their names."""
    names = (machine.says("qconf", "-spl") or "").split()
    return sorted(names, key=lambda name: not re.search("mpi|orte", name))


def flux_nodes(machine: Machine, queue: str | None = None) -> Nodes | None:
    """Return the nodes that Flux lists as free or allocated; the first queue's name."""
    form = "{state} {nnodes} {ncores}"
    said = machine.says("flux", "resource", "list", "--no-header", f"--format={form}") or ""
    kinds: list[NodeKind] = []
    for line in said.splitlines():
        state, nodes, cores = [*line.split(), "", "", ""][:3]
        if state in ("free", "allocated") and _number(nodes):
            kinds.append((_number(nodes), _number(cores) // _number(nodes) or None, None))
    words = (machine.says("flux", "queue", "list", "--no-header", "--format={queue}") or "").split()
    queues = tuple(dict.fromkeys(words)) or ("default",)
    if queue and queue not in queues:
        return None
    chosen = queue or queues[0]
    others = tuple(name for name in queues if name != chosen)
    return _least(chosen, kinds, "flux resource list, of all queues together", others)


#: How nodes are found, by ReFrame's name of the scheduler.
NODES: dict[str, Callable[[Machine, str | None], Nodes | None]] = {
    "slurm": slurm_nodes, "squeue": slurm_nodes, "pbs": pbs_nodes, "pbspro": pbs_nodes,
    "torque": pbs_nodes, "lsf": lsf_nodes, "sge": sge_nodes, "flux": flux_nodes,
}  # fmt: skip


def has_accounting(machine: Machine) -> bool:
    """Return whether Slurm's accounting answers; ReFrame's scheduler `slurm` asks it."""
    said = machine.says("scontrol", "show", "config") or ""
    kind = re.search(r"AccountingStorageType\s*=\s*(\S+)", said)
    return bool(kind) and "slurmdbd" in str(kind and kind[1]) and machine.has("sacct")


def scheduler(machine: Machine, family: str | None = None) -> tuple[str, str]:
    """Return ReFrame's name of the scheduler here, and the evidence.

    `family` (slurm, pbs, lsf, sge, flux or local) is not checked if it is given.
    """
    if family is None:
        if machine.says("sinfo", "--version") and slurm_nodes(machine):
            family = "slurm"
        elif machine.says("pbsnodes", "-a"):
            family = "pbs"
        elif machine.says("lshosts", "-w"):
            family = "lsf"
        elif sge_nodes(machine):
            family = "sge"
        elif flux_nodes(machine):
            family = "flux"
    if family == "slurm":
        if has_accounting(machine):
            return "slurm", "Slurm's accounting (slurmdbd) is on, so sacct is used"
        return "squeue", "scontrol shows no accounting by slurmdbd, so squeue is used, not sacct"
    if family == "pbs":
        if "pbs_version" in (machine.says("qstat", "--version") or "pbs_version"):
            return "pbs", "qstat --version is that of PBS"
        return "torque", "qstat --version is not that of PBS"
    if family == "lsf":
        return "lsf", "lshosts answers"
    if family == "sge":
        return "sge", "qhost lists hosts that answer"
    if family == "flux":
        return "flux", "flux resource list answers"
    return "local", "none of sinfo, pbsnodes, lshosts, qhost and flux answers"


def pmi_types(machine: Machine) -> list[str]:
    """Return the types of `srun --mpi=list`, without `none`; empty if srun lists nothing."""
    said = machine.says("srun", "--mpi=list") or ""
    # Below, newer Slurm says which versions of a type there are.
    listed = re.split(r"specific \w+ plugin versions", said)[0]
    words = re.findall(r"^(?:srun:)?\s*(\w+)\s*$", listed, re.M)
    return [word for word in dict.fromkeys(words) if word != "none"]


def fastest_link(machine: Machine) -> tuple[int, str] | None:
    """Return the rate (B/s, one way) of the fastest link that is up, and the source."""
    found: list[tuple[int, str]] = []
    for rate in machine.root.glob("sys/class/infiniband/*/ports/*/rate"):
        said, state = machine.reads(rate), machine.reads(rate.with_name("state"))
        match = re.match(r"([\d.]+) Gb/sec", said or "")
        if match and "ACTIVE" in (state or ""):
            device = rate.parents[2].name
            found.append((round(float(match[1]) * 1e9 / 8), f"{device}, {said}"))
    for interface in machine.root.glob("sys/class/net/*"):
        # An interface without a device, such as a bridge, is virtual; so is one without a speed.
        if not (interface / "device").exists() or machine.reads(interface / "operstate") != "up":
            continue
        speed = machine.reads(interface / "speed") or ""
        if speed.isdigit() and int(speed) > 0:
            found.append((int(speed) * 1_000_000 // 8, f"{interface.name}, {speed} Mbit/s"))
    return max(found, default=None)


def mpis(machine: Machine) -> list[str]:
    """Return the MPIs on PATH with their versions, in words."""
    found = [str(one) for one in launchers_of(machine)]
    info = re.search(r"(?m)^\s*Open MPI: (\S+)", machine.says("ompi_info") or "")
    if info and not any("Open MPI" in name for name in found):
        found.append(f"Open MPI {info[1]} (ompi_info)")
    return found


def launchers_of(machine: Machine) -> list[HostLauncher]:
    """Return the launchers of MPIs that are on PATH, by their paths."""
    found = []
    for command in ("mpirun", "mpiexec"):
        if known := identify(machine.says(command, "--version") or ""):
            path = shutil.which(command, path=machine.path) or command
            found.append(HostLauncher(path, *known))
    return found


def version_of(machine: Machine, command: str) -> str | None:
    """Return the first line of `<command> --version`."""
    said = machine.says(command, "--version")
    return said.splitlines()[0] if said else None
