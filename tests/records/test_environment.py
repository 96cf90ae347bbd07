"""The table of variables, and that the shell on the node goes by it as ReFrame does."""

import os
import subprocess
from pathlib import Path

import pytest

from records.environment import (
    OF_OWN_JOB,
    OF_SHELLS,
    TABLE,
    Fate,
    environment,
    for_reframe,
    from_elsewhere,
    measures,
    of_own_job,
    removed,
    values,
)
from reframe_checks.mixins.job_script import INTO_CONTAINER, QuotedApptainer, quoted

#: What may be set where a campaign is started, by what is to become of it.
GIVEN = {
    Fate.GOES: (
        "APPTAINERENV_OMPI_MCA_btl", "SINGULARITYENV_FI_PROVIDER", "APPTAINERENV_PATH",
        "APPTAINER_BIND", "SINGULARITY_BINDPATH", "APPTAINER_MOUNT", "APPTAINER_NV",
        "APPTAINER_CONTAIN", "APPTAINER_CONTAINALL", "SINGULARITY_NO_HOME", "OMPI_MCA_btl",
        "MPICH_ASYNC_PROGRESS", "FI_PROVIDER", "UCX_TLS", "I_MPI_FABRICS", "PMIX_MCA_gds",
        "OMP_NUM_THREADS", "LAM_MPI_SSI_rpi", "I_MPI_PIN", "I_MPI_PIN_DOMAIN",
    ),
    Fate.STAYS: (
        "APPTAINER_CACHEDIR", "SINGULARITY_TMPDIR", "APPTAINER_CONFIG_FILE", "APPTAINER_KEYSDIR",
        "APPTAINER_DOCKER_PASSWORD", "APPTAINER_AUTHFILE", "APPTAINER_AUTH_FILE",
        "APPTAINER_NOHTTPS", "SINGULARITY_NO_HTTPS", "APPTAINER_PULLDIR", "SLURM_JWT",
        "OMPI_COMM_WORLD_RANK", "PMIX_PREFIX", "LD_LIBRARY_PATH", "HOME", "FINE", "TMPDIR",
        "MY_OMPI_X", "SLURM_JOB_ID", "PMI_RANK", "PMI2_FD", "PMIX_RANK", "OMPI_MCA_orte_launch",
        "OMPI_MCA_orte_ess_num_procs",
    ),
}  # fmt: skip
#: What ranks are told by whatever starts them, and by nothing else.
TOLD = {
    "srun": ("SLURM_JOB_ID", "PMI_RANK", "PMI2_FD", "PMIX_RANK"),
    "mpirun": (
        "PMI_RANK", "PMI2_FD", "PMIX_RANK", "OMPI_MCA_orte_launch", "OMPI_MCA_orte_ess_num_procs",
        "I_MPI_PIN", "I_MPI_PIN_PROCESSOR_LIST",
    ),
    "mpiexec": (),
}  # fmt: skip
#: Beside what a shell cannot do without.
EVERY = {name: f"of {name}" for names in GIVEN.values() for name in names}
#: What it prints is what a container, and Apptainer itself, would have.
APPTAINER = "#!/bin/sh\nenv\n"


def on_the_node(
    folder: Path, variables: dict[str, str], launch: str, *by_site: str, **more: str
) -> dict[str, str]:
    """Return the environment in which a job's script would call Apptainer on a node."""
    program = folder / "apptainer"
    program.write_text(APPTAINER)
    program.chmod(0o755)
    platform = QuotedApptainer()
    platform.image, platform.command = "image.sif", quoted("program")
    platform.launch, platform.variables = launch, by_site
    done = subprocess.run(
        ["sh", "-c", platform.launch_command("/stage")], cwd=folder, text=True, check=True,
        env={**variables, "PATH": f"{folder}:{os.environ['PATH']}", **more}, stdout=subprocess.PIPE,
        errors="surrogateescape",
    )  # fmt: skip
    lines = (line.partition("=") for line in done.stdout.splitlines() if "=" in line)
    return {name: value for name, _, value in lines if name not in ("PATH", "PWD", "_", "SHLVL")}


@pytest.mark.parametrize("by_site", [(), ("OMPI_MCA_btl", "APPTAINER_BIND", "APPTAINERENV_PATH")])
def test_what_is_removed_is_the_same_everywhere(tmp_path: Path, by_site: tuple[str, ...]) -> None:
    gone = sorted({*GIVEN[Fate.GOES]} - {*by_site})
    assert removed(EVERY, by_site) == gone
    left = environment(EVERY, by_site)
    assert left == {name: value for name, value in EVERY.items() if name not in gone}
    found = on_the_node(tmp_path, EVERY, "mpiexec", *by_site)
    handed = {f"APPTAINERENV_{name}": EVERY[name] for name in by_site if name == "OMPI_MCA_btl"}
    assert found == left | handed
    assert sorted((tmp_path / "launch_removed").read_text().split()) == gone


@pytest.mark.parametrize("launch", TOLD)
def test_what_ranks_are_told_is_handed_to_them_as_it_is(tmp_path: Path, launch: str) -> None:
    """A launcher's ranks are none of Slurm's, though its daemons may be: they would ask Slurm."""
    odd = "a b; $(touch here)\nPMI_LINE=`two`'\""
    names = {name for told in TOLD.values() for name in told}
    found = on_the_node(tmp_path, dict.fromkeys(names, odd), launch)
    # The second line of a value has no name of its own.
    handed = {name for name in found if name.startswith("APPTAINERENV_")}
    handed.discard("APPTAINERENV_PMI_LINE")
    assert handed == {f"APPTAINERENV_{name}" for name in TOLD[launch]}
    assert all(found[name] == "a b; $(touch here)" for name in handed)
    assert not (tmp_path / "here").exists()
    # What somebody has set for containers by himself is not what a rank is told.
    if launch != "mpiexec":
        found = on_the_node(tmp_path, {"PMI_RANK": odd}, launch, APPTAINERENV_PMI_RANK="mine")
        assert found["APPTAINERENV_PMI_RANK"] == "a b; $(touch here)"


def test_what_stays_outside_is_not_handed_over_though_a_wider_row_passes(tmp_path: Path) -> None:
    given = {"SLURM_JWT": "secret", "SLURM_PROCID": "0"}
    found = on_the_node(tmp_path, given, "srun")
    assert found == given | {"APPTAINERENV_SLURM_PROCID": "0"}
    # The site's word prevails.
    found = on_the_node(tmp_path, given, "srun", "SLURM_JWT")
    assert found["APPTAINERENV_SLURM_JWT"] == "secret"


@pytest.mark.parametrize(
    ("told", "notes"),
    [
        ({"SLURM_PROCID": "1"}, False),
        ({"SLURM_PROCID": "0"}, True),
        # A launcher's own number of a rank, whatever that of its daemon in a Slurm job is.
        ({"SLURM_PROCID": "0", "PMI_RANK": "1"}, False),
        ({"SLURM_PROCID": "1", "PMIX_RANK": "0"}, True),
    ],
)
def test_only_the_first_rank_notes_what_was_removed(
    tmp_path: Path, told: dict[str, str], notes: bool
) -> None:
    on_the_node(tmp_path, {"FI_PROVIDER": "tcp", **told}, "srun")
    assert (tmp_path / "launch_removed").exists() == notes


def test_a_value_that_is_no_text_is_no_name(tmp_path: Path) -> None:
    """As Grid Engine's QRSH_COMMAND, whose words bytes of 255 set apart."""
    odd = "\udcfftest\udcff-r;export OMPI_X;OMPI_Y=/opt"
    given = {"QRSH_COMMAND": f"({odd}", "FINE": "1", "LANG": "C.UTF-8"}
    found = on_the_node(tmp_path, given, "mpirun")
    assert found["FINE"] == "1"


def test_folders_of_any_name_become_the_container_s_own(tmp_path: Path) -> None:
    (tmp_path / "apptainer").write_text('#!/bin/sh\nprintf "%s " "$@"\n')
    (tmp_path / "apptainer").chmod(0o755)
    folder = '/a,"b c'
    done = subprocess.run(
        [INTO_CONTAINER, "named:-", folder, "/b", "image.sif"], cwd=tmp_path, check=True,
        env={"PATH": f"{tmp_path}:{os.environ['PATH']}"}, capture_output=True, text=True,
    )  # fmt: skip
    # Whichever terminals are open.
    terminals = "--mount=type=bind,source=/proc/tty/ldisc,destination=/dev/pts "
    assert (terminals in done.stdout) == os.path.isdir("/dev/pts")
    assert done.stdout.replace(terminals, "", 1) == (
        'exec --mount=type=bind,"source=/b",destination=/dev/shm '
        '--mount=type=bind,"source=/a,""b c",destination=/tmp image.sif '
    )


def test_values_are_recorded_of_what_decides_times_alone() -> None:
    assert values({"OMPI_MCA_btl": "tcp", "APPTAINERENV_TOKEN": "s3", "HOME": "/home/alice"}) == {
        "APPTAINERENV_TOKEN": None, "HOME": None, "OMPI_MCA_btl": "tcp",
    }  # fmt: skip
    assert measures("APPTAINERENV_FI_PROVIDER") and measures("LD_PRELOAD")
    assert not measures("APPTAINER_BIND") and not measures("SLURM_JOB_ACCOUNT")


def test_what_nobody_here_has_set_is_told_from_what_somebody_has() -> None:
    inside = {"PATH": "", "OMPI_MCA_btl": "", "UCX_TLS": "", "PMI_RANK": "", "LD_LIBRARY_PATH": ""}
    assert from_elsewhere(inside, ["APPTAINERENV_UCX_TLS"], "srun") == ["OMPI_MCA_btl"]
    assert from_elsewhere(inside, [], "mpiexec") == ["OMPI_MCA_btl", "PMI_RANK", "UCX_TLS"]
    pinned = {"I_MPI_PIN": "", "I_MPI_PIN_DOMAIN": ""}
    assert from_elsewhere(pinned, [], "mpirun") == ["I_MPI_PIN_DOMAIN"]
    assert from_elsewhere(pinned, [], "srun") == ["I_MPI_PIN", "I_MPI_PIN_DOMAIN"]


def test_a_job_asked_for_in_a_job_is_its_own() -> None:
    names = ["SLURM_JOB_ID", "SBATCH_EXPORT", "SRUN_DEBUG", "SLURM_CONF", "SLURMD", "HOME"]
    assert of_own_job(names) == names[:3]


def test_names_are_patterns_that_a_shell_and_python_read_alike() -> None:
    names = [name for row in TABLE for name in row.names]
    assert all(name.replace("*", "").replace("_", "").isalnum() for name in names)
    assert all("*" not in name[:-1] for name in (*names, *OF_OWN_JOB, *OF_SHELLS))
    assert len(names) == len(set(names))


def test_a_campaigns_reframe_has_none_of_the_users_options() -> None:
    """As RFM_CHECK_SEARCH_RECURSIVE, by which it would find nothing to measure."""
    users = {"RFM_CHECK_SEARCH_RECURSIVE": "y", "RFM_STAGE_DIR": "/x", "RFM_SYSTEM": "x", "A": "b"}
    found = for_reframe(users, {}, RFM_SYSTEM="local")
    assert found == {"RFM_SYSTEM": "local", "A": "b"}


def test_a_campaigns_jobs_have_no_habits_of_the_users_shell() -> None:
    """But for those of a site that loads modules, or prepares its jobs otherwise."""
    habits = {"BASH_ENV": "x", "ENV": "x", "SHELLOPTS": "nounset", "BASH_FUNC_grep%%": "() { :; }"}
    users = {**habits, "BASH_COMPAT": "5", "MODULEPATH": "/x"}
    assert for_reframe(users, {}) == {"BASH_COMPAT": "5", "MODULEPATH": "/x"}
    assert for_reframe(users, {"modules": ["apptainer"]}) == users
    assert for_reframe(users, {"prepare": [". /etc/profile"]}) == users
    installed = {"one": {"prefix": "/opt"}, "other": {"prepare": ["module load mpi"]}}
    assert for_reframe(users, {"installations": installed}) == users
    assert "ENV" in for_reframe(users, {"variables": ["ENV"]})
