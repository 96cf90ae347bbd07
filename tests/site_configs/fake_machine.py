"""Machines that are none: commands on a PATH that say what a cluster's would, and files of /sys."""

from __future__ import annotations

from pathlib import Path

from site_configs.machine import Machine

# As Slurm 23.11 prints them; columns as site_configs/machine.py asks sinfo for them.
SINFO = """\
batch|batch*|up|40|64|2|32|257000|1-infinite
batch|batch*|up|2|128|2|32|515000|1-infinite
debug|debug|up|4|64|2|32|257000|1-2
old|old|down|8|16|2|8|64000|1-infinite
"""
SRUN = """\
MPI plugin types are...
	none
	pmi2
	pmix
specific pmix plugin versions available: pmix_v4,pmix_v5
"""
SLURM = {
    "sinfo": f'[ "$1" = --version ] && echo "slurm 23.11.4" || echo "{SINFO}"',
    "scontrol": 'echo "AccountingStorageType   = accounting_storage/slurmdbd"',
    "srun": f'[ "$1" = --mpi=list ] && echo "{SRUN}"',
    **dict.fromkeys(("sacct", "sbatch", "squeue", "scancel"), "exit 0"),
}
PBSNODES = """\
node1
     Mom = node1.cluster
     state = free
     pcpus = 36
     resources_available.mem = 197697024kb
     resources_available.ncpus = 36

node2
     state = job-busy
     resources_available.mem = 197697024kb
     resources_available.ncpus = 36

node3
     state = state-unknown,down
     resources_available.ncpus = 4
"""
QSTAT_Q = """\
Queue              Max   Tot Ena Str   Que   Run   Hld   Wat   Trn   Ext Type
---------------- ----- ----- --- --- ----- ----- ----- ----- ----- ----- ----
workq                0     2 yes yes     0     2     0     0     0     0 Exec
long                 0     0 yes yes     0     0     0     0     0     0 Exec
"""
PBS = {
    "pbsnodes": f'echo "{PBSNODES}"',
    "qstat": f'case "$1" in --version) echo "pbs_version = 22.05.11";; '
    f'-Q) echo "{QSTAT_Q}";; -B) echo "    default_queue = workq";; esac',
    **dict.fromkeys(("qsub", "qdel"), "exit 0"),
}
TORQUE = {
    "pbsnodes": 'echo "n1\n     state = free\n     np = 8\n     '
    'status = rectime=1,ncpus=8,physmem=32879336kb,loadave=0.00"',
    "qstat": f'case "$1" in --version) echo "Version: 6.1.2" >&2;; -Q) echo "{QSTAT_Q}";; esac',
}
LSHOSTS = """\
HOST_NAME                       type       model  cpuf ncpus maxmem maxswp server RESOURCES
login1                        X86_64 Intel_E5  12.5     8  31.2G      -     No ()
hostA                         X86_64 Intel_E5  12.5    40 187.5G   15.9G    Yes (mg)
hostB                         X86_64 Intel_E5  12.5    40 187.5G   15.9G    Yes ()
hostC                         X86_64 Intel_E5  12.5    16  31.2G   15.9G    Yes ()
"""
BQUEUES = """\
QUEUE_NAME      PRIO STATUS          MAX JL/U JL/P JL/H NJOBS  PEND   RUN  SUSP
short            35  Open:Active       -    -    -    -     0     0     0     0
normal           30  Open:Active       -    -    -    -     0     0     0     0
"""
BHOSTS = """\
HOST_NAME          STATUS          JL/U    MAX  NJOBS    RUN  SSUSP  USUSP    RSV
login1             closed_Adm         -      8      0      0      0      0      0
hostA              ok                 -     40      0      0      0      0      0
hostB              closed_Full        -     40     40     40      0      0      0
hostC              unavail            -     16      0      0      0      0      0
"""
LSF = {
    "bhosts": f'echo "{BHOSTS}"',
    "lshosts": f'echo "{LSHOSTS}"',
    "bqueues": f'echo "{BQUEUES}"',
    "bparams": 'echo "Default Queues:  normal"',
    **dict.fromkeys(("bsub", "bjobs", "bkill"), "exit 0"),
}
# As Grid Engine 8.1.9 prints them.
QHOST = """\
HOSTNAME                ARCH         NCPU NSOC NCOR NTHR  LOAD  MEMTOT  MEMUSE  SWAPTO  SWAPUS
----------------------------------------------------------------------------------------------
global                  -               -    -    -    -     -       -       -       -       -
node1                   lx-amd64       64    2   32   64  0.01  125.5G    2.1G     0.0     0.0
node2                   lx-amd64       64    2   32   64  0.02  125.5G    2.1G     0.0     0.0
node3                   lx-amd64       64    2   32   64     -  125.5G       -     0.0       -
"""
SGE = {
    "qhost": f'echo "{QHOST}"',
    "qconf": 'case "$1" in -sql) printf "all.q\\nlong.q\\n";; -spl) printf "make\\nmpi\\n";; esac',
    "qstat": "exit 0",
    **dict.fromkeys(("qsub", "qdel"), "exit 0"),
}
# Of its own form, as flux-resource(1) and flux-queue(1) of flux-core 0.60 have it.
FLUX = {
    "flux": 'case "$1" in resource) printf "free 3 96\\nallocated 1 32\\ndown 1 32\\n";; '
    "queue) echo batch; echo debug;; esac",
}
CLUSTERS = {"slurm": SLURM, "pbs": PBS, "lsf": LSF, "sge": SGE, "flux": FLUX, "local": {}}
#: Launchers of the machine's MPIs.
LAUNCHERS = {
    "mpirun": "echo 'mpirun (Open MPI) 5.0.11'",
    "mpiexec": "echo 'HYDRA build details:'; echo '    Version:    4.0.2'",
}


def commands(folder: Path, scripts: dict[str, str]) -> Path:
    """Write executables that say what they are given to say; return their folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, script in scripts.items():
        path = folder / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
    return folder


def machine(folder: Path, scripts: dict[str, str]) -> Machine:
    """Return a machine that has these commands and no other, and no devices."""
    return Machine(str(commands(folder / "bin", scripts)), folder)


def interface(root: Path, name: str, speed: str, state: str = "up", real: bool = True) -> None:
    """Give a machine a network interface."""
    device = root / "sys/class/net" / name
    (device / "device").mkdir(parents=True) if real else device.mkdir(parents=True)
    (device / "speed").write_text(f"{speed}\n")
    (device / "operstate").write_text(f"{state}\n")


def port(root: Path, name: str, rate: str, state: str) -> None:
    """Give a machine an InfiniBand port."""
    device = root / "sys/class/infiniband" / name / "ports/1"
    device.mkdir(parents=True)
    (device / "rate").write_text(f"{rate}\n")
    (device / "state").write_text(f"{state}\n")
