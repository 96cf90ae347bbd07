"""Labels that somebody wrote to have this machine do something, played by the real ReFrame."""

import json

import pytest

from tests.reframe_checks.conftest import IMPLEMENTATION, LABELS, StandIn

#: A scheduler that runs a job where it is submitted, and is asked for it when it has ended.
SBATCH = """#!/bin/sh
for script; do :; done
bash "$script" >rfm_job.out 2>rfm_job.err
echo Submitted batch job 1
"""


def relabel(stand_in: StandIn, in_lock: bool, **more: str) -> None:
    """Write labels into the image, and into images.lock, too, or only into the image."""
    stand_in.label(LABELS | {f"org.wyeast.{name}": value for name, value in more.items()})
    if not in_lock:
        path = stand_in.root / "containers" / "images.lock"
        lock = json.loads(path.read_text())
        lock["images"][IMPLEMENTATION]["labels"] = LABELS
        path.write_text(json.dumps(lock))


@pytest.mark.parametrize(
    ("label", "value", "image", "only", "in_lock"),
    [
        ("eager_limit", "X=1;touch${IFS}%s;:", "", "EagerLimit.*limit=1024", False),
        ("eager_limit", "X=$(touch${IFS}%s)", "", "EagerLimit.*limit=1024", True),
        ("variant.slow", "A=1;touch${IFS}%s;:", "+slow", "PointToPoint.*=Send/Recv.*=short", True),
    ],
)
def test_no_label_runs_a_command(
    stand_in: StandIn, label: str, value: str, image: str, only: str, in_lock: bool
) -> None:
    trace = stand_in.root / "ran"
    relabel(stand_in, in_lock, **{label: value % trace})
    stand_in.variables = {"WYEAST_IMAGES": f"{IMPLEMENTATION}{image}"}
    outcome = stand_in.run(only=only)
    assert not trace.exists()
    assert outcome.code != 0 and f"the label org.wyeast.{label} is" in outcome.text


def test_no_label_gives_srun_options_or_runs_a_command_beside_it(stand_in: StandIn) -> None:
    trace = stand_in.root / "ran"
    for name, text in {"sbatch": SBATCH, "srun": "#!/bin/sh\n", "squeue": "#!/bin/sh\n"}.items():
        program = stand_in.root / "bin" / name
        program.write_text(text)
        program.chmod(0o755)
    relabel(stand_in, False, pmi=f"pmix;touch {trace};:")

    def by_srun(text: str) -> str:
        return text.replace("launch: mpiexec", "launch: srun").replace(
            "scheduler: local", "scheduler: squeue"
        )

    outcome = stand_in.run("-C", stand_in.settings(by_srun))
    assert not trace.exists()
    assert outcome.code != 0 and "the label org.wyeast.pmi is" in outcome.text


def test_no_label_binds_a_folder_of_the_machine(stand_in: StandIn) -> None:
    relabel(stand_in, True, **{"binds": "/root:/mnt", "variant.seen": "A=1"})
    stand_in.variables = {"WYEAST_IMAGES": f"{IMPLEMENTATION}+seen"}
    outcome = stand_in.run()
    scripts = [path.read_text() for path in stand_in.root.rglob("job.sh")]
    assert not [text for text in scripts if "/root:/mnt" in text]
    assert outcome.code != 0 and "an image does not choose which folders" in outcome.text
