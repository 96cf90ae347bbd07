"""Ranks that a launcher of the machine starts: how it is told, and what their jobs request."""

import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from reframe.core.backends import getscheduler
from reframe.core.launchers.local import LocalLauncher
from reframe.core.schedulers import JobScheduler

from containers.apptainer import guard
from containers.labels import Labels
from reframe_checks.mixins import launching
from reframe_checks.mixins.host_launching import (
    HOSTS_OF_JOB,
    OutsideLauncher,
    request_flux_node,
    request_whole_nodes,
)
from reframe_checks.mixins.job_script import INTO_CONTAINER, quoted
from reframe_checks.mixins.launching import CannotStart, Placement, Start, start_ranks, started_by
from site_configs.launchers import HostLauncher, LauncherError
from tests.packed import text_of
from tests.reframe_checks.conftest import StandIn

SITE = {"name": "mine", "launch": "mpirun", "launcher": "/opt/mpi/mpirun", "cores_per_node": 4}


def labels(family: str) -> Labels:
    return Labels.of({"org.wyeast.family": family, "org.wyeast.version": "5"}, "an image")


@pytest.fixture
def launcher(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the machine a launcher of each family, and none of LAM."""

    def found(site: Mapping[str, Any], family: str, *_: object) -> HostLauncher:
        if family == "lam":
            raise LauncherError("they boot daemons of their own")
        return HostLauncher(site["launcher"], family, "5")

    monkeypatch.setattr(launching, "launcher_for", found)


def start(family: str, world: Placement, **more: Any) -> Start:
    return start_ranks(labels(family), {**SITE, **more}, world, ["program", "a b"])


@pytest.mark.usefixtures("launcher")
@pytest.mark.parametrize(
    ("family", "pinned", "oversubscribed"),
    [
        ("openmpi", "--map-by ppr:2:node --bind-to core",
         "--map-by ppr:5:node:OVERSUBSCRIBE --bind-to none"),
        ("mpich", "-ppn 2 -bind-to core", "-ppn 5 -bind-to none"),
        ("intel-mpi", "-ppn 2 -genv I_MPI_PIN=1 -genv I_MPI_PIN_PROCESSOR_LIST=allcores",
         "-ppn 5 -genv I_MPI_PIN=0"),
    ],
)  # fmt: skip
def test_ranks_are_placed_and_bound_alike(family: str, pinned: str, oversubscribed: str) -> None:
    """As by the image's own launcher: each to a core where the cores of a node suffice."""
    begin = "env TMPDIR=/tmp /opt/mpi/mpirun"
    few = start(family, Placement(3, 2))
    assert " ".join(few.launcher) == f"{begin} {pinned} -n 3"
    assert (few.container, few.command, few.before) == ([], "program 'a b'", ())
    assert few.together and not start(family, Placement(2, 2)).together
    many = start(family, Placement(10, 2))
    assert " ".join(many.launcher) == f"{begin} {oversubscribed} -n 10"


@pytest.mark.usefixtures("launcher")
@pytest.mark.parametrize(
    ("family", "words"),
    [("openmpi", "--map-by ppr:1:node --bind-to none"), ("mpich", "-ppn 1 -bind-to none"),
     ("intel-mpi", "-ppn 1 -genv I_MPI_PIN=0")],
)  # fmt: skip
def test_a_node_s_only_core_is_kept_and_not_the_machine_s_first_taken(
    family: str, words: str
) -> None:
    """Launchers bound the ranks of all nodes of a box to one core, since one machine plays them."""
    alone = start(family, Placement(2, 2), cores_per_node=1)
    assert " ".join(alone.launcher) == f"env TMPDIR=/tmp /opt/mpi/mpirun {words} -n 2"


@pytest.mark.usefixtures("launcher")
def test_open_mpi_hands_variables_on_by_name() -> None:
    """Where no scheduler starts its daemons; the other launchers hand on all of them."""
    assert start("openmpi", Placement(2, 2), variables=["UCX_TLS"]).handed_on == ("PATH", "UCX_TLS")
    assert start("mpich", Placement(2, 2), variables=["UCX_TLS"]).handed_on == ()


@pytest.mark.usefixtures("launcher")
def test_the_site_s_own_options_come_last_and_may_be_by_family() -> None:
    options = {"openmpi": ["--mca", "plm", "rsh"]}
    words = start("openmpi", Placement(2, 2), launch_options=options).launcher
    assert words[-5:] == ["--mca", "plm", "rsh", "-n", "2"]
    assert start("mpich", Placement(2, 2), launch_options=options).launcher[-4:] == [
        "-bind-to", "core", "-n", "2"
    ]  # fmt: skip


@pytest.mark.usefixtures("launcher")
def test_a_launcher_that_does_not_know_the_scheduler_is_given_the_nodes() -> None:
    found = start("openmpi", Placement(4, 2), hostfile=True)
    assert found.launcher[7:9] == ["--hostfile", "launch_hosts"]
    assert found.before == (f"{HOSTS_OF_JOB} '%s slots=%s' 2 2 2 >launch_hosts || exit 1",)
    found = start("mpich", Placement(4, 2), hostfile=True)
    assert found.launcher[7:9] == ["-f", "launch_hosts"] and "%s:%s 2 2 2 >" in found.before[0]


@pytest.mark.usefixtures("launcher")
@pytest.mark.parametrize(("world", "ranks"), [(Placement(2, 2), 1), (Placement(16, 2), 8)])
def test_of_grid_engine_each_node_must_be_whole(world: Placement, ranks: int) -> None:
    """Its job requests the cores of whole nodes, whatever the ranks on each."""
    said = start("openmpi", world, hostfile=True, scheduler="sge").before
    assert said == (f"{HOSTS_OF_JOB} '%s slots=%s' {ranks} 2 4 >launch_hosts || exit 1",)
    # A launcher that knows Grid Engine is told no nodes, and they are looked at all the same.
    said = start("openmpi", world, scheduler="sge").before
    assert said == (f"{HOSTS_OF_JOB} '%s slots=%s' {ranks} 2 4 >/dev/null || exit 1",)


@pytest.mark.usefixtures("launcher")
def test_options_are_of_the_image_s_family_as_launchers_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One launcher of MPICH's may start images of several."""

    def found(site: Mapping[str, Any], *_: object) -> HostLauncher:
        return HostLauncher(site["launcher"], "mpich", "5")

    monkeypatch.setattr(launching, "launcher_for", found)
    options = {"mvapich": ["-iface", "ib0"], "mpich": ["-iface", "eth1"]}
    words = start("mvapich", Placement(2, 2), launch_options=options).launcher
    assert words[-6:] == ["-bind-to", "core", "-iface", "ib0", "-n", "2"]


@pytest.mark.usefixtures("launcher")
def test_what_no_launcher_starts_says_so() -> None:
    with pytest.raises(CannotStart, match="they boot daemons of their own"):
        start("lam", Placement(2, 2))
    with pytest.raises(CannotStart, match=r"no label 'org\.wyeast\.family'"):
        start_ranks(Labels.of({}, "an image"), SITE, Placement(2, 2), ["program"])


@pytest.mark.usefixtures("launcher")
def test_what_starts_the_ranks_is_named() -> None:
    own = {"org.wyeast.mpiexec": "mpiexec", "org.wyeast.pmi": "pmi2"}
    assert started_by(labels("mpich"), SITE) == "MPICH's launcher 5 (/opt/mpi/mpirun)"
    assert started_by(Labels.of(own, "an image"), {"launch": "srun"}) == "srun --mpi=pmi2"
    assert started_by(Labels.of(own, "an image"), {"launch": "mpiexec"}) == "the image's mpiexec"


def test_variables_are_handed_on_where_they_are_set(tmp_path: Path) -> None:
    said = OutsideLauncher(["printf", "%s\\n", "a b"], ["GIVEN", "MISSING"]).run_command(None)
    script = tmp_path / "job.sh"
    script.write_text(said)
    done = subprocess.run(["sh", script], env={"GIVEN": ""}, capture_output=True, text=True)
    assert done.stdout.splitlines() == ["a b", "-x", "GIVEN"]


#: A job's nodes in the form of each scheduler, by its manual on the variables of jobs.
NODES_OF_JOBS = {
    "PBS_NODEFILE": "node1.x\nnode1.x\nnode2.x\nnode2.x\n",
    "LSB_DJOB_HOSTFILE": "node1.x\nnode1.x\nnode2.x\n",
    "PE_HOSTFILE": "node1.x 2 all.q@node1.x UNDEFINED\nnode2.x 2 all.q@node2.x UNDEFINED\n",
    "OAR_NODEFILE": "node1.x\nnode2.x\n",
}


@pytest.mark.parametrize("name", NODES_OF_JOBS)
def test_a_file_of_nodes_is_made_of_the_allocation(tmp_path: Path, name: str) -> None:
    (tmp_path / "nodes").write_text(NODES_OF_JOBS[name])
    assert hosts(tmp_path, {name: str(tmp_path / "nodes")}) == "node1.x slots=2\nnode2.x slots=2\n"


def test_of_slurm_and_of_lsf_s_words_as_well(tmp_path: Path) -> None:
    (tmp_path / "scontrol").write_text('#!/bin/sh\n[ "$*" = "show hostnames n[1-2]" ] && '
                                       "printf 'n1\\nn2\\n'\n")  # fmt: skip
    (tmp_path / "scontrol").chmod(0o755)
    assert hosts(tmp_path, {"SLURM_JOB_NODELIST": "n[1-2]"}) == "n1 slots=2\nn2 slots=2\n"
    assert hosts(tmp_path, {"LSB_HOSTS": "n1 n1 n2 n2"}) == "n1 slots=2\nn2 slots=2\n"


def test_without_a_scheduler_there_is_none(tmp_path: Path) -> None:
    with pytest.raises(subprocess.CalledProcessError) as failed:
        hosts(tmp_path, {})
    assert "no scheduler names this job's nodes: `hostfile` of site.yaml is for" in (
        failed.value.stderr
    )


@pytest.mark.parametrize(
    ("nodes", "sentence"),
    [
        ("node1 4 q X\nnode2 3 q X\nnode3 1 q X\n", "has 3 of node2's cores, and not 4 or more"),
        ("node1 8 q X\n", "it is on 1 node(s), and not on 2 (node1)"),
        ("node1 4 q X\nnode2 4 q X\n", None),
        # Of two queues of a node each has a line.
        ("node1 2 p X\nnode1 2 q X\nnode2 4 q X\n", None),
    ],
)
def test_a_job_that_shares_its_nodes_is_ended(
    tmp_path: Path, nodes: str, sentence: str | None
) -> None:
    """Otherwise ranks would start on cores that are another job's."""
    (tmp_path / "nodes").write_text(nodes)
    given = {"PE_HOSTFILE": str(tmp_path / "nodes")}
    if sentence is None:
        assert hosts(tmp_path, given, slots=4) == "node1 slots=2\nnode2 slots=2\n"
        return
    with pytest.raises(subprocess.CalledProcessError) as failed:
        hosts(tmp_path, given, slots=4)
    assert sentence in failed.value.stderr and failed.value.stdout == ""
    assert "have whole nodes requested in `access`" in failed.value.stderr


def hosts(folder: Path, variables: dict[str, str], slots: int = 1) -> str:
    return subprocess.run(
        [HOSTS_OF_JOB, "%s slots=%s", "2", "2", str(slots)],
        env={"PATH": f"{folder}:/usr/bin:/bin", **variables},
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip


#: A launcher that says that it is MPICH's and starts one container, of which a script plays the
#: whole launch.
HYDRA = """#!/bin/sh
[ "$1" != --version ] || { printf 'HYDRA build details:\n    Version: 5.0.2\n'; exit; }
while [ "${1##*/}" != into_container ]; do shift; done
exec "$@"
"""
ALONE = (
    "preflight: 1 rank(s) formed a world, not 2; several worlds of one rank mean that the launcher "
    "and the image's MPI do not speak the same PMI\n"
)


@pytest.fixture
def by_mpirun(stand_in: StandIn) -> list[str]:
    """Have the site `local` start ranks by such a launcher; return ReFrame's options for that."""
    path = stand_in.root / "bin" / "mpirun"
    path.write_text(HYDRA)
    path.chmod(0o755)
    more = f"launch: mpirun\nlauncher: {path}"
    return ["-C", stand_in.settings(lambda data: data.replace("launch: mpiexec", more))]


def test_reframe_starts_what_the_site_names(stand_in: StandIn, by_mpirun: list[str]) -> None:
    outcome = stand_in.run(*by_mpirun)
    assert outcome.code == 0, outcome.text
    [launch] = outcome.launches
    campaign = stand_in.root / "runs" / "campaign"
    script = text_of(campaign, launch["launch"], "job.sh")
    started = f"env TMPDIR=/tmp {stand_in.root}/bin/mpirun -ppn 2 -bind-to core -n 2 "
    assert f"\n{started}{quoted(*guard('.'), INTO_CONTAINER)} " in script
    # Ranks are in containers of their own, as those that srun starts.
    assert "--no-home" in script and "--pid" not in script
    assert "launch_tmp= launch_memory= launch_files=\n" in script
    assert "--sharens" in script


def test_ranks_that_are_alone_are_told_in_a_sentence(
    stand_in: StandIn, by_mpirun: list[str]
) -> None:
    (stand_in.root / "preflight.err").write_text(ALONE * 2)
    outcome = stand_in.run(*by_mpirun, only="Preflight")
    assert outcome.code != 0
    assert (
        "each rank believes that it is alone: MPICH's launcher 5.0.2 "
        f"({stand_in.root}/bin/mpirun) and the image's MPI (mpich 5.0.2) do not share PMI; name "
        "that MPI's own launcher in `launcher`"
    ) in outcome.reason()


def test_another_mpi_s_launcher_is_refused_before_any_job(
    stand_in: StandIn, by_mpirun: list[str]
) -> None:
    script = stand_in.root / "bin" / "mpirun"
    script.write_text("#!/bin/sh\necho 'mpirun (Open MPI) 5.0.11'\n")
    outcome = stand_in.run(*by_mpirun, only="Preflight")
    assert outcome.code != 0 and "cannot start images of mpich: each rank" in outcome.reason()
    assert not list((stand_in.root / "reframe").rglob("Preflight*/rfm_*"))


#: Three ranks on two nodes, two at most on each: what their job asks of each scheduler, in the
#: forms of qsub(1B) of PBS and of Torque, bsub(1) of LSF, and sbatch(1).
REQUESTS = {
    "pbs": ["#PBS -l walltime=0:5:0", "#PBS -l select=2:mpiprocs=2:ncpus=2", "#PBS -q long"],
    "pbspro": ["#PBS -l select=2:mpiprocs=2:ncpus=2", "#PBS -q long"],
    "torque": ["#PBS -l walltime=0:5:0", "#PBS -l nodes=2:ppn=2", "#PBS -q long"],
    "lsf": ["#BSUB -n 4", '#BSUB -R "span[ptile=2]"', "#BSUB -W 5", "#BSUB -q long"],
    "squeue": ["#SBATCH --ntasks=4", "#SBATCH --ntasks-per-node=2", "#SBATCH --nodes=2"],
}


@pytest.mark.parametrize("name", REQUESTS)
def test_a_job_requests_whole_nodes_in_its_scheduler_s_words(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What ReFrame's backends write, of schedulers that are not here."""
    options = {"use_nodes_option": True, "slurm_envvar_whitelist": [], "sched_access_in_submit": 0}
    monkeypatch.setattr(JobScheduler, "get_option", lambda _, option: options.get(option))
    scheduler = getscheduler(name)()
    job = scheduler.make_job(
        "wy-0123456789ab", workdir=str(tmp_path), script_filename=str(tmp_path / "job.sh"),
        stdout="out", stderr="err", sched_access=["-q long"],
    )  # fmt: skip
    job._scheduler = scheduler
    job.launcher = LocalLauncher()
    job.num_tasks, job.num_tasks_per_node, job.time_limit = 3, 2, 300
    request_whole_nodes(job, name, 2, 2)
    said = scheduler.emit_preamble(job)
    assert set(REQUESTS[name]) <= set(said), said
    assert not any("nnodes" in line for line in said)


class JobSpecification:
    """Flux's own, as far as its documentation of `flux.job.JobspecV1` says what is used here."""

    def __init__(self, command: list[str], **asked: Any) -> None:
        self.command, self.asked = command, asked
        self.duration, self.stdout, self.stderr, self.cwd = 0.0, "", "", ""
        self.environment: dict[str, str] = {}

    @classmethod
    def from_command(
        cls, command: list[str], num_tasks: int = 1, cores_per_task: int = 1,
        gpus_per_task: int | None = None, num_nodes: int | None = None, exclusive: bool = False,
    ) -> "JobSpecification":  # fmt: skip
        return cls(command, tasks=num_tasks, cores=cores_per_task, nodes=num_nodes,
                   exclusive=exclusive)  # fmt: skip


def test_a_job_of_flux_has_a_whole_node() -> None:
    """ReFrame asks for a core, and for no end: it makes the job before it knows either."""
    before = JobSpecification.from_command(["/bin/bash", "job.sh"])
    before.stdout, before.stderr, before.cwd = "/stage/out", "/stage/err", "/stage"
    before.environment = {"A": "b"}
    job = SimpleNamespace(fluxjob=before, time_limit=300.0, script_filename="job.sh")
    request_flux_node(job, 16)
    found = job.fluxjob
    assert found.command == ["/bin/bash", "job.sh"] and found.duration == 300
    assert found.asked == {"tasks": 1, "cores": 16, "nodes": 1, "exclusive": True}
    assert (found.stdout, found.stderr, found.cwd) == ("/stage/out", "/stage/err", "/stage")
    assert found.environment == {"A": "b"}
