"""Checks of what a site has installed: real ReFrame, and a launcher that is played."""

import json
import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from reframe.core.exceptions import SanityError

from containers import installations
from reframe_checks.mixins.job_script import OWN_TMP, OnTheMachine, quoted
from tests.packed import records_in
from tests.reframe_checks.conftest import LABELS, PREFLIGHT, StandIn

NAME = "mpich-5.0.2+site"
#: It plays ranks: what they leave, and what they print.
MPIEXEC = """#!/bin/sh
case "$*" in
    *preflight*) for number in 0 1; do env -0 >environment_of_rank.$number; done
                 cat "$STAND_IN/preflight.out" ;;
    *) sed "s/\\"NOW\\"/$(date +%s.%6N)/g" "$STAND_IN/stdout" ;;
esac
pwd >&2
"""


@pytest.fixture
def installed(stand_in: StandIn) -> StandIn:
    """A root whose site has an installation: programs that the loader knows, and a launcher."""
    prefix = stand_in.root / "prefix"
    (prefix / "bin").mkdir(parents=True)
    for name in ("preflight", "pingpong", "startup"):
        shutil.copy("/bin/true", prefix / "bin" / name)
    launcher = stand_in.root / "mpiexec"
    launcher.write_text(MPIEXEC)
    launcher.chmod(0o755)
    entry = {"prefix": str(prefix), "family": "mpich", "version": "5.0.2", "mpiexec": str(launcher),
             "environment": {"UCX_TLS": "self"}, "prepare": ["export PREPARED=yes"]}  # fmt: skip
    more = json.dumps({"installations": {"mpich-5.0.2": entry}})
    settings = stand_in.settings(lambda data: f"{data}\n{more[1:-1]}\n")
    stand_in.variables = {"RFM_CONFIG_FILES": settings, "RFM_CONFIG_PATH": "",
                          "WYEAST_IMAGES": NAME}  # fmt: skip
    return stand_in


def test_it_is_measured_without_a_container_and_marked_as_such(installed: StandIn) -> None:
    (installed.root / "preflight.out").write_text(PREFLIGHT)
    outcome = installed.run()
    assert outcome.code == 0, outcome.text
    records = records_in(installed.root / "runs" / "campaign").values()
    assert {one["experiment"] for one in records} == {"Preflight", "PointToPoint"}
    assert {one["runs"] for one in records} == {"outside a container"}
    assert {one["implementation"] for one in records} == {NAME}
    [digest] = {one["image_sha256"] for one in records}
    assert len(digest) == 64
    [preflight] = [one for one in records if one["experiment"] == "Preflight"]
    # The site's own, and what a job prepares; nothing of Apptainer is asked.
    assert preflight["environment"]["UCX_TLS"] == "self" and "PREPARED" in preflight["environment"]
    assert preflight["apptainer"] is None and preflight["from_elsewhere"] == []
    [launch] = outcome.launches
    assert launch["command"].startswith(f"{installed.root}/mpiexec -bind-to core -n 2 pingpong ")
    scripts = list((installed.root / "reframe").rglob("rfm_job.sh"))
    assert scripts and not any("apptainer exec" in path.read_text() for path in scripts)


def test_an_image_s_record_has_no_such_word(stand_in: StandIn) -> None:
    outcome = stand_in.run()
    [launch] = outcome.launches
    assert outcome.code == 0 and "runs" not in launch


def test_what_is_replaced_during_a_campaign_fails(installed: StandIn) -> None:
    launcher = installed.root / "mpiexec"
    launcher.write_text(
        MPIEXEC + f"echo >>{shlex.quote(str(installed.root / 'prefix/bin/pingpong'))}\n"
    )
    outcome = installed.run()
    assert outcome.code != 0
    assert f"{NAME} was replaced since the campaign began; measure a new one" in outcome.reason()


def test_what_is_of_containers_or_not_installed_is_left_out(installed: StandIn) -> None:
    assert "StartUp measures what is in them" in installed.run("-v", only="StartUp").text
    outcome = installed.run("-v", only="HaloExchange")
    assert f"{NAME} has no program halo" in outcome.text


def started(tmp_path: Path, launch: str, **variables: str) -> dict[str, str]:
    """Return the variables with which a launch's command starts, and its folder as PWD."""
    program = tmp_path / "prefix" / "bin" / "told"
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text("#!/bin/sh\nexec env -0\n")
    program.chmod(0o755)
    found = installations.Installation(
        NAME, program.parent, None, (), (), (("UCX_TLS", "self"),), (), tuple(LABELS.items())
    )
    stage = tmp_path / "stage"
    (stage / "work").mkdir(parents=True, exist_ok=True)
    platform = OnTheMachine(found)
    platform.launch, platform.options = launch, ["--env=SPARED=a b"]
    platform.command, platform.has_own_folders = quoted("told"), True
    platform.inputs = ("HPL.dat",)
    (stage / "HPL.dat").write_text("input")
    done = subprocess.run(
        ["bash", "-c", f"{OWN_TMP}=/tmp/own\n{platform.launch_command(str(stage))}"],
        cwd=stage, env={"PATH": os.environ["PATH"], **variables}, capture_output=True, text=True,
        check=True, timeout=60,
    )  # fmt: skip
    assert (stage / "work" / "HPL.dat").read_text() == "input"
    return dict(line.split("=", 1) for line in done.stdout.split("\0") if line)


def test_its_ranks_have_what_is_said_of_them_and_nothing_of_another_launcher(
    tmp_path: Path,
) -> None:
    outside = {"OMPI_MCA_btl": "tcp", "UCX_TLS": "tcp", "SLURM_JOB_ID": "7", "PMI_RANK": "1",
               "LD_LIBRARY_PATH": "/opt/mpi/lib", "PLAIN": "yes"}  # fmt: skip
    inside = started(tmp_path, "mpiexec", **outside)
    assert inside["PATH"].startswith(f"{tmp_path}/prefix/bin:") and inside["TMPDIR"] == "/tmp/own"
    assert inside["PWD"] == f"{tmp_path}/stage/work"
    assert inside["UCX_TLS"] == "self" and inside["SPARED"] == "a b"
    assert inside["LD_LIBRARY_PATH"] == "/opt/mpi/lib" and inside["PLAIN"] == "yes"
    # An MPI would believe a job of Slurm's, or another launcher's rank.
    assert not {"OMPI_MCA_btl", "SLURM_JOB_ID", "PMI_RANK"} & inside.keys()
    removed = (tmp_path / "stage" / "launch_removed").read_text().split()
    assert {"OMPI_MCA_btl", "SLURM_JOB_ID", "PMI_RANK", "UCX_TLS"} == set(removed)
    # What Slurm tells its ranks reaches them, as it reaches containers.
    by_slurm = started(tmp_path, "srun", **outside)
    assert by_slurm["SLURM_JOB_ID"] == "7" and by_slurm["PMI_RANK"] == "1"
    assert not any(name.startswith("APPTAINER") for name in by_slurm)


def test_what_only_a_container_can_have_is_refused() -> None:
    found = installations.Installation(NAME, Path("/opt/w/bin"), None, (), (), (), (), ())
    platform = OnTheMachine(found)
    platform.options, platform.command = ["--mount=type=bind,source=/a,destination=/b"], "told"
    with pytest.raises(SanityError, match="has no meaning outside of a container"):
        platform.launch_command("/stage")
