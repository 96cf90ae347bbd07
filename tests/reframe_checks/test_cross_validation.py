"""The check of agreement fails where programs disagree, and where one of them said too little."""

from pathlib import Path

import pytest

from records.kept import kept_launches
from tests.reframe_checks.conftest import IMPLEMENTATION, LABELS, StandIn, pingpong

SIZES = tuple(sorted({1 << n for n in range(14)} | {3 << n for n in range(12)}))
ONLY = "CrossValidation.*operation=pingpong.*short"
TRIALS, ITERATIONS = 3, 1000
ONE_WAY = 1e-5


def netpipe(sizes: tuple[int, ...] = SIZES, **times: float) -> str:
    lines = []
    for size in sizes:
        time = times.get(f"of_{size}", ONE_WAY)
        lines.append(f"{size:8d} {8 * size / 2**20 / time:.6f} {time:12.8f}\n")
    return "".join(lines)


def imb(trials: int = TRIALS, iterations: int = ITERATIONS, time: float = ONE_WAY) -> str:
    rows = "".join(
        f"{size:13d} {iterations:12d} {time * 1e6:12.2f} {size / time / 1e6:12.2f}\n"
        for size in SIZES * trials
    )
    return (
        "# List of Benchmarks to run:\n\n# PingPong\n\n# Benchmarking PingPong \n"
        "# #processes = 2 \n       #bytes #repetitions      t[usec]   Mbytes/sec\n"
        f"{rows}\n\n# All processes entering MPI_Finalize\n\n"
    )


def ours(sizes: tuple[int, ...] = SIZES * TRIALS) -> str:
    """Return what our program says, which is not asked for each iteration's time."""
    return pingpong(sizes, 2 * ONE_WAY, iterations=ITERATIONS, is_raw=False)


@pytest.fixture
def programs(stand_in: StandIn) -> StandIn:
    """Return a stand-in whose programs all agree."""
    stand_in.write(ours())
    say(stand_in, **{"netpipe.out": netpipe(), "netpipe.stdout": "0: node\n1: node\n",
                     "netpipe.code": "0", "imb.stdout": imb()})  # fmt: skip
    return stand_in


def say(stand_in: StandIn, **files: str) -> None:
    for name, text in files.items():
        (stand_in.root / name).write_text(text)


def test_agreement_passes_and_keeps_what_every_program_said(programs: StandIn) -> None:
    outcome = programs.run(only=ONLY)
    assert outcome.code == 0, outcome.text
    [launch] = outcome.launches
    assert launch["outcome"] == "sound"
    assert launch["cell"] == "CrossValidation operation=pingpong message_range=short"
    [found] = [one for one in kept_launches(Path(programs.root) / "runs" / "campaign")
               if one.name == launch["launch"]]  # fmt: skip
    kept = set(found.names())
    assert {"NPmpi.1.out", "NPmpi.9.out", "IMB-MPI1.1.stdout", "IMB-MPI1.9.stderr"} <= kept
    assert {"pingpong.1.stdout", "pingpong.8.stdout", "agreement.json", "stdout"} <= kept
    assert found.read("NPmpi.9.out").decode() == netpipe()
    # IMB is told its sizes by a file, as every release of it can be.
    job = found.read("job.sh").decode()
    assert "-msglen imb_sizes" in job and "destination=/rfm_workdir/imb_sizes,ro" in job
    assert "-msgsize" not in job


def test_imb_has_the_sizes_of_ours_as_often_as_they_are_timed(programs: StandIn) -> None:
    """Where the container has them as a file of its working folder."""
    script = programs.root / "bin" / "apptainer"
    text = script.read_text()
    seen = '*IMB-MPI1*) cat ../imb_sizes >"$STAND_IN/seen"; '
    script.write_text(text.replace("*IMB-MPI1*) ", seen))
    assert script.read_text() != text
    outcome = programs.run(only=ONLY)
    assert outcome.code == 0, outcome.text
    asked = (programs.root / "seen").read_text().splitlines()
    assert asked == [str(size) for size in SIZES] * TRIALS


WRONG = [
    ({"netpipe.out": netpipe(of_128=2e-5)},
     "pingpong, 128 bytes: 1e-05 s here, 2e-05 s by NPmpi, ratio turn by turn 0.500"),
    ({"imb.stdout": imb(time=4e-6)}, "4e-06 s by IMB-MPI1, ratio turn by turn 2.5"),
    ({"netpipe.out": ""}, "NPmpi.1.out:1: the output is empty"),
    ({"netpipe.out": netpipe(SIZES[:-1])}, "NPmpi, turn 1: 25 message sizes were measured"),
    ({"netpipe.out": netpipe()[:-4]}, "NPmpi.1.out:26: the last line is cut off"),
    ({"netpipe.stdout": "0: node\n"}, "2 on 1 node were requested"),
    ({"netpipe.stdout": "0: node1\n1: node2\n"}, "ranks were on node1, node2"),
    ({"netpipe.code": "3"}, "NPmpi.1 ended with exit code 3"),
    ({"imb.stdout": ""}, "IMB-MPI1.1.stdout:1: IMB did not finish"),
    ({"imb.stdout": imb().partition("# All")[0]}, "IMB did not finish"),
    ({"imb.stdout": imb(trials=2)}, "requested, each 3 times"),
    ({"imb.stdout": imb(iterations=999)}, "not ('PingPong', 2, 1000) as requested"),
    ({"stdout": ours(SIZES)},
     "pingpong, turn 1: 26 message sizes were measured, not the 26 requested, each 3 times"),
    ({"stdout": ""}, "pingpong.1.stdout:1: the output is empty"),
]  # fmt: skip


def test_what_must_not_pass(programs: StandIn) -> None:
    programs.refuse([(files, "failed", sentence) for files, sentence in WRONG], only=ONLY)


def test_netpipe_that_writes_nothing(programs: StandIn) -> None:
    (programs.root / "netpipe.out").unlink()
    outcome = programs.run(only=ONLY)
    assert outcome.code != 0 and "NetPIPE left no output" in outcome.reason()


def test_an_image_without_imb_has_no_collective_operation_to_compare(programs: StandIn) -> None:
    labels = {name: text for name, text in LABELS.items() if not name.endswith("foreign_programs")}
    programs.label(labels)
    outcome = programs.run(only="CrossValidation.*operation=bcast.*short")
    assert f"IMB-MPI1 does not have the binary interface of {IMPLEMENTATION}" in outcome.text
    assert not outcome.launches
    # Its ping-pong is compared with NetPIPE's alone.
    say(programs, **{"imb.stdout": ""})
    assert programs.run(only=ONLY).code == 0
