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

TIMEOUT_S = 30
MIB = 1 << 20
#: What lshosts and pbsnodes write behind a number of bytes.
UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
#: How the MPIs introduce themselves; see `mpirun --version` of each.
MPI_BANNERS = {
    r"\(Open MPI\) (\S+)": "Open MPI",
    r"HYDRA.*?Version:\s*(\S+)": "MPICH's launcher",
    r"Intel\(R\) MPI Library.*?Version (\S+)": "Intel MPI",
    r"(?m)^mvapich2?[ -](\S+)": "MVAPICH",
}


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
Kind = tuple[int, int | None, int | None]


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


def _least(partition: str, found: list[Kind], source: str, others: tuple[str, ...]) -> Nodes | None:
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
    kinds: list[Kind] = []
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
    kinds: list[Kind] = []
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
    """Return the servers that lshosts lists, and the default queue's name."""
    lines = (machine.says("lshosts", "-w") or "").splitlines()
    header = lines[0].split() if lines else []
    kinds: list[Kind] = []
    for line in lines[1:]:
        has = dict(zip(header, line.split(), strict=False))
        if has.get("server") == "Yes" and _number(has.get("ncpus", "")):
            kinds.append((1, _number(has["ncpus"]), _bytes(has.get("maxmem", ""))))
    queues = tuple(re.findall(r"^(\S+) +\d+ ", machine.says("bqueues", "-w") or "", re.M))
    default = re.search(r"Default Queues:\s*(\S+)", machine.says("bparams") or "")
    chosen = queue or (default[1] if default else next(iter(queues), None))
    if chosen is None or (queue and queue not in queues):
        return None
    others = tuple(name for name in queues if name != chosen)
    return _least(chosen, kinds, "lshosts, of all queues together", others)


#: How nodes are found, by ReFrame's name of the scheduler.
NODES: dict[str, Callable[[Machine, str | None], Nodes | None]] = {
    "slurm": slurm_nodes, "squeue": slurm_nodes, "pbs": pbs_nodes, "pbspro": pbs_nodes,
    "torque": pbs_nodes, "lsf": lsf_nodes,
}  # fmt: skip


def has_accounting(machine: Machine) -> bool:
    """Return whether Slurm's accounting answers; ReFrame's scheduler `slurm` asks it."""
    said = machine.says("scontrol", "show", "config") or ""
    kind = re.search(r"AccountingStorageType\s*=\s*(\S+)", said)
    return bool(kind) and "slurmdbd" in str(kind and kind[1]) and machine.has("sacct")


def scheduler(machine: Machine, family: str | None = None) -> tuple[str, str]:
    """Return ReFrame's name of the scheduler here, and the evidence.

    `family` (slurm, pbs, lsf or local) is not checked if it is given.
    """
    if family is None:
        if machine.says("sinfo", "--version") and slurm_nodes(machine):
            family = "slurm"
        elif machine.says("pbsnodes", "-a"):
            family = "pbs"
        elif machine.says("lshosts", "-w"):
            family = "lsf"
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
    return "local", "neither sinfo nor pbsnodes nor lshosts answers"


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
    found = []
    for command in ("mpirun", "mpiexec"):
        said = machine.says(command, "--version") or ""
        for banner, name in MPI_BANNERS.items():
            match = re.search(banner, said, re.S)
            if match:
                found.append(f"{name} {match[1].rstrip(',')} ({command})")
    info = re.search(r"(?m)^\s*Open MPI: (\S+)", machine.says("ompi_info") or "")
    if info and not any("Open MPI" in name for name in found):
        found.append(f"Open MPI {info[1]} (ompi_info)")
    return found


def version_of(machine: Machine, command: str) -> str | None:
    """Return the first line of `<command> --version`."""
    said = machine.says(command, "--version")
    return said.splitlines()[0] if said else None
