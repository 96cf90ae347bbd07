"""How a launcher of the machine is told to start a container for each rank: `launch: mpirun`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from reframe.core.launchers import JobLauncher

from records.environment import named
from reframe_checks.mixins.job_script import quoted
from site_configs.launchers import HostLauncher, by_family

#: What a job writes its allocation's nodes to, in the launcher's own form.
HOSTS = "launch_hosts"
HOSTS_OF_JOB = Path(__file__).resolve().parents[1] / "launchers" / "hosts_of_job"
#: How each family's launcher is told where ranks go: as many on each node as there are on a full
#: one, node by node, and whether each is bound to a core. `alone` it has its node's only core as it
#: is: a launcher would count cores from the machine's first, which is another's where nodes are
#: told apart by affinity, as those of a box are.
PLACEMENTS = {
    "openmpi": {
        "alone": "--map-by ppr:1:node --bind-to none",
        "pinned": "--map-by ppr:{on_a_node}:node --bind-to core",
        "oversubscribed": "--map-by ppr:{on_a_node}:node:OVERSUBSCRIBE --bind-to none",
    },
    "mpich": {
        "alone": "-ppn 1 -bind-to none",
        "pinned": "-ppn {on_a_node} -bind-to core",
        "oversubscribed": "-ppn {on_a_node} -bind-to none",
    },
    "intel-mpi": {
        "alone": "-ppn 1 -genv I_MPI_PIN=0",
        "pinned": "-ppn {on_a_node} -genv I_MPI_PIN=1 -genv I_MPI_PIN_PROCESSOR_LIST=allcores",
        "oversubscribed": "-ppn {on_a_node} -genv I_MPI_PIN=0",
    },
}
#: How each is given the file of nodes, and what a line of that is.
HOSTFILES = {"openmpi": ("--hostfile", "%s slots=%s"), "mpich": ("-f", "%s:%s"),
             "intel-mpi": ("-f", "%s:%s")}  # fmt: skip


def words_of(
    launcher: HostLauncher, site: dict[str, Any], family: str, ranks: int, on_a_node: int,
    placement: str,
) -> list[str]:  # fmt: skip
    """Return the words by which a launcher starts ranks of an image of a family of MPIs.

    Where ranks go is told in the launcher's own words; the site's options are by the image's family
    as its launchers are, and none is of those that say where ranks go (site_configs/
    launch_options.py). Its files are in /tmp, which containers see: TMPDIR may be elsewhere, or not
    be on each node.
    """
    if on_a_node == site["cores_per_node"] == 1 and placement == "pinned":
        placement = "alone"
    placed = PLACEMENTS[launcher.family][placement].format(on_a_node=on_a_node).split()
    hosts = [HOSTFILES[launcher.family][0], HOSTS] if site.get("hostfile") else []
    own = by_family(site.get("launch_options"), family) or []
    return ["env", "TMPDIR=/tmp", launcher.command, *placed, *hosts, *own, "-n", str(ranks)]


def look_at_hosts(
    launcher: HostLauncher, site: dict[str, Any], nodes: int, on_a_node: int
) -> tuple[str, ...]:  # fmt: skip
    """Return the commands of a job that look at its nodes, and end it where it shares them.

    They write the file of nodes, where the site asks for one. Grid Engine alone is told slots, and
    may take them from more nodes in part: it is looked at whether the launcher is told or not.
    """
    is_gridengine = site.get("scheduler") == "sge"
    if not site.get("hostfile") and not is_gridengine:
        return ()
    line = HOSTFILES[launcher.family][1]
    # What the job has requested of each node.
    slots = site["cores_per_node"] if is_gridengine else on_a_node
    file = HOSTS if site.get("hostfile") else "/dev/null"
    return (f"{quoted(HOSTS_OF_JOB, line, on_a_node, nodes, slots)} >{file} || exit 1",)


def handed_on(launcher: HostLauncher, site: dict[str, Any]) -> tuple[str, ...]:
    """Return the variables of a job that are handed on by name to ranks on other nodes.

    Those that containers are found by, and that the site names. Open MPI's launcher hands on no
    other, except where Slurm starts its daemons; the others hand on all.
    """
    return ("PATH", *named(site)) if launcher.family == "openmpi" else ()


def request_whole_nodes(job: Any, scheduler: str, nodes: int, on_a_node: int) -> None:
    """Have a job of ReFrame's request so many nodes, each for as many ranks as a full one has.

    ReFrame divides the ranks by those of a node and rounds down. How many there are is the
    launcher's to know, and not the scheduler's.
    """
    job.num_tasks, job.num_tasks_per_node = nodes * on_a_node, on_a_node
    if scheduler == "lsf":
        # ReFrame's `-nnodes` is for machines of IBM's CSM alone; this is for all.
        job.options += [f'-R "span[ptile={on_a_node}]"']
        job.num_tasks_per_node = None


def request_flux_node(job: Any, cores: int) -> None:
    """Have a job of Flux request a whole node, and the end that it should have.

    ReFrame makes Flux's specification with the job, before it knows what is requested: a core,
    without an end. Its script runs once, as one task that has all cores.
    """
    before = job.fluxjob
    whole = type(before).from_command(
        command=["/bin/bash", job.script_filename], num_tasks=1, cores_per_task=cores,
        num_nodes=1, exclusive=True,
    )  # fmt: skip
    for name in ("stdout", "stderr", "cwd", "environment"):
        setattr(whole, name, getattr(before, name))
    whole.duration = job.time_limit or 0
    job.fluxjob = whole


class OutsideLauncher(JobLauncher):  # type: ignore[misc]
    """ReFrame's launcher for words that are not its own, and variables that are handed on."""

    def __init__(self, words: Sequence[str], handed_on: Sequence[str]) -> None:
        super().__init__()
        self.words = words
        self.handed_on = handed_on

    def command(self, job: Any) -> list[str]:
        """Return the command, without the options that ReFrame adds."""
        # Each only where it is set: of a missing one Open MPI would complain.
        return [quoted(*self.words), *(f"${{{name}+-x {name}}}" for name in self.handed_on)]
