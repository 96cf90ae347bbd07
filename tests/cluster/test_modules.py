"""Jobs find what they need by a module of the site, which a real Lmod loads on the node.

They have nothing of the variables of whoever submits them, as centres want it. ReFrame itself
removes SBATCH_EXPORT, as all of sbatch's variables, so it is by the site that this is asked for.
"""

import json
from pathlib import Path

import pytest

from containers.apptainer import apptainer_command
from tests.cluster.conftest import Checkout
from tests.packed import records_in

pytestmark = pytest.mark.cluster
NAME = "mpich-5.0.2"
LMOD = Path("/usr/share/lmod/lmod/init/profile")
#: Where Apptainer is, and a variable that may change times: it stays outside of containers.
MODULE = 'prepend_path("PATH", "{folder}")\nsetenv("UCX_TLS", "tcp")\n'


def test_jobs_load_what_the_site_names(checkout: Checkout) -> None:
    folder = checkout.root / "modules"
    module = folder / "apptainer" / "1.4.lua"
    module.parent.mkdir(parents=True)
    module.write_text(MODULE.format(folder=apptainer_command().parent))
    # A job that has what its submitter exports does not begin; the image is looked at in no job.
    refusal = '[ -z "${SLURM_JOB_ID-}" ] || [ -z "${OF_THE_SUBMITTER-}" ] || exit 1'
    prepare = [refusal, f". {LMOD}", f"module use {folder}"]
    checkout.edit_site('access: ["--partition', 'access: ["--export=NONE", "--partition')
    checkout.edit_site(
        "launch: srun\n",
        "launch: srun\nmodules_system: lmod\nmodules: [apptainer/1.4]\n"
        f"prepare: {json.dumps(prepare)}\n",
    )
    checkout.give_image(NAME)
    done = checkout.run(
        f"export SBATCH_EXPORT=NONE OF_THE_SUBMITTER=1 && . {LMOD} && exec python -m campaign "
        f"--site virtual --rounds 1 --images {NAME} --checks '^Preflight' --name modules"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    [campaign] = (checkout.root / "runs").glob("*-modules")
    [record] = records_in(campaign).values()
    assert record["outcome"] == "sound"
    # By this it is seen that the module was loaded on the node.
    assert "UCX_TLS" in record["variables_removed"] and "UCX_TLS" not in record["environment"]
