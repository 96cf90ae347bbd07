"""What a site has its jobs prepare and load, and what they find without anybody's variables."""

import subprocess
from pathlib import Path

from reframe_checks.mixins.job_script import found_on_nodes
from tests.reframe_checks.conftest import StandIn

#: What Lmod says of itself where ReFrame asks, and a `module` that notes what it is asked for.
PROGRAMS = {
    "lmod": 'echo "Modules based on Lua: Version 8.7.18  2023-02-02" >&2',
    "module": 'echo "$PREPARED $*" >>"$STAND_IN/loaded"',
}


def test_a_job_prepares_and_then_loads_what_its_site_names(stand_in: StandIn) -> None:
    for name, script in PROGRAMS.items():
        path = stand_in.root / "bin" / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
    stand_in.variables["LMOD_CMD"] = str(stand_in.root / "bin" / "lmod")
    more = (
        "modules_system: lmod\nmodules: [apptainer/1.4, gcc]\n"
        'prepare: ["export PREPARED=prepared"]\n'
    )
    outcome = stand_in.run("-C", stand_in.settings(lambda data: data + more))
    assert outcome.code == 0, outcome.text
    said = (stand_in.root / "loaded").read_text().splitlines()
    # Of each job: that which looks at the image, the preflight's and the launch's.
    assert said == ["prepared load apptainer/1.4", "prepared load gcc"] * 3


def test_a_job_that_is_handed_nothing_finds_our_apptainer_after_the_nodes(tmp_path: Path) -> None:
    for place in ("node", "our own"):
        (tmp_path / place).mkdir()
    for place, name in (("node", "first"), ("our own", "first"), ("our own", "second")):
        program = tmp_path / place / name
        program.write_text(f"#!/bin/sh\necho '{place}'\n")
        program.chmod(0o755)
    script = tmp_path / "job.sh"
    commands = [*found_on_nodes(tmp_path / "our own"), "first", "second",
                'echo "${SLURM_EXPORT_ENV-nothing}"', "sh -c second"]  # fmt: skip
    script.write_text("\n".join(commands))
    done = subprocess.run(
        ["bash", script], env={"PATH": f"{tmp_path}/node:/bin", "SLURM_EXPORT_ENV": "NONE"},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.splitlines() == ["node", "our own", "nothing", "our own"]
