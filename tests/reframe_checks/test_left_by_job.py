"""What a launch leaves running on a scheduler's nodes is ended by its job, and told with it."""

import os
import subprocess
from pathlib import Path

import pytest

from records.environment import OF_LAUNCH
from records.processes import processes
from reframe_checks.mixins.job_script import LAUNCHERS, UNSEEN, end_what_is_left
from tests.reframe_checks.conftest import StandIn
from tests.reframe_checks.test_session import by_slurm, during_the_launch

#: Runs a job at once, as Slurm does later on a node.
SBATCH = """#!/bin/sh
for script; do :; done
bash "$script" >rfm_job.out 2>rfm_job.err
echo Submitted batch job 17
"""
SRUN = """#!/bin/sh
while case $1 in -*) true ;; *) false ;; esac; do shift; done
exec "$@"
"""


def by_srun(stand_in: StandIn) -> list[str]:
    """Have Slurm start jobs and ranks; return the options."""
    options = by_slurm(stand_in, SBATCH)
    (stand_in.root / "bin" / "srun").write_text(SRUN)
    settings = Path(options[1])
    text = settings.read_text()
    settings.write_text(text.replace('"site": {**site,', '"site": {**site, "launch": "srun",'))
    assert settings.read_text() != text
    return options


def test_what_a_job_left_running_on_its_nodes_is_ended_and_told(stand_in: StandIn) -> None:
    pid = stand_in.root / "pid"
    # In a session of its own, whose first process has ended.
    leave = f"setsid sh -c 'sleep 600 & echo $! >{pid}' </dev/null >/dev/null 2>&1"
    during_the_launch(stand_in, leave)
    stand_in.label({**stand_in.labels(), "org.wyeast.pmi": "pmi2"})
    outcome = stand_in.run(*by_srun(stand_in))
    assert outcome.code == 0, outcome.text
    assert "left 1 process running, ended since: sleep" in outcome.text
    [launch] = outcome.launches
    assert launch["outcome"] == "sound" and launch["left_running"] == 1
    assert int(pid.read_text()) not in processes()


def left_of(word: str, path: str = "") -> str:
    """Return what is said of what is left of a launch; `path` has programs to use instead."""
    done = subprocess.run(
        [LAUNCHERS / "end_what_is_left", word], capture_output=True, text=True, check=True,
        env={"PATH": f"{path}:{os.environ['PATH']}"},
    )  # fmt: skip
    return done.stdout


def sleeper(word: str) -> subprocess.Popen[bytes]:
    name, _, value = word.partition("=")
    return subprocess.Popen(["sleep", "600"], env={"OTHER": word, name: value})


def test_what_is_of_another_launch_or_ends_by_itself_is_spared(tmp_path: Path) -> None:
    # Another checkout's tests may look on this machine, too.
    word = f"{OF_LAUNCH}=wy-{os.getpid()}"
    own, other, soon = (sleeper(f"{word}.{number}") for number in (1, 12, 3))
    try:
        assert left_of(f"{word}.1") == "sleep\n" and own.wait() == -9
        # It ends while it is waited for.
        (tmp_path / "sleep").write_text(
            f"#!/bin/sh\nkill {soon.pid} 2>/dev/null\n"
            f'until [ "$(cut -d " " -f 3 /proc/{soon.pid}/stat)" = Z ]; do :; done\n'
        )
        (tmp_path / "sleep").chmod(0o755)
        assert not left_of(f"{word}.3", str(tmp_path)) and soon.wait() == -15
        assert other.poll() is None and not left_of(word)
    finally:
        for one in (own, other, soon):
            one.kill()
            one.wait()


@pytest.mark.parametrize("code", [0, 1])
def test_nodes_that_cannot_be_looked_at_are_noted(tmp_path: Path, code: int) -> None:
    (tmp_path / "srun").write_text(f"#!/bin/sh\nexit {code}\n")
    (tmp_path / "srun").chmod(0o755)
    script = "\n".join([*end_what_is_left("17", True, 3, "left"), "end_left"])
    path = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    subprocess.run(["bash", "-c", script], cwd=tmp_path, check=True, env=path)
    assert (tmp_path / f"left{UNSEEN}").exists() == bool(code)
    assert (tmp_path / "left").read_text() == ""


@pytest.mark.parametrize(("by_slurm", "nodes"), [(True, 1), (True, 3), (False, 3)])
def test_all_nodes_are_looked_at_where_slurm_starts_ranks(by_slurm: bool, nodes: int) -> None:
    script = "\n".join(end_what_is_left("wy 1", by_slurm, nodes, "left"))
    assert ("srun --nodes=3 --ntasks=3" in script) == (by_slurm and nodes > 1)
    assert subprocess.run(["bash", "-n"], input=script, text=True, check=False).returncode == 0
