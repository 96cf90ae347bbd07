"""No rate is above the peak of the cores that have a rank, over several nodes as on one."""

import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from records.npb import problem
from records.program_output import read_program_output
from records.su3 import FLOPS_OF_SITE_UPDATE
from reframe_checks.linpack import Linpack
from reframe_checks.mixins.experiment import Experiment
from reframe_checks.mixins.recording import Suspect
from reframe_checks.nas import Nas
from reframe_checks.su3 import Su3
from tests.reframe_checks import test_su3
from tests.reframe_checks.test_nas import summary
from tests.reframe_checks.test_no_vacuous_pass import hpl

PEAK_OF_NODE = 1e10


def check_of(path: Path, tasks: int, nodes: int, **asked: object) -> Any:
    """Return what stands for a check on a site of nodes with two cores each."""
    check: Any = SimpleNamespace(
        num_tasks=tasks,
        nodes=nodes,
        site=lambda: {"peak_flops_per_node": PEAK_OF_NODE, "cores_per_node": 2},
        output_path=lambda stream: path,
    )
    vars(check).update(asked)
    check.peak_flops = lambda: Experiment.peak_flops(check)
    return check


@pytest.mark.parametrize(
    ("ranks", "nodes", "full_nodes"), [(1, 1, 0.5), (2, 1, 1), (3, 1, 1), (2, 2, 1), (3, 2, 1.5),
                                       (4, 2, 2), (16, 2, 2)],
)  # fmt: skip
def test_ranks_have_a_core_each(ranks: int, nodes: int, full_nodes: float) -> None:
    check = check_of(Path(), ranks, nodes)
    assert check.peak_flops() == full_nodes * PEAK_OF_NODE


def linpack(path: Path, rate: float) -> None:
    path.write_text(hpl(rate=f"{rate / 1e9:.3e}"))
    Linpack.examine(check_of(path, 2, 2, grid="1x2", n=2000, nb=192))


def nas(path: Path, rate: float) -> None:
    seconds = problem("CG", "S").operations / rate
    path.write_text(summary(seconds=seconds, hosts="node1 node2"))
    check = check_of(
        path, 2, 2, benchmark="CG", size="S", check_hosts=lambda hosts: None,
        instants=lambda: (None, None),
    )  # fmt: skip
    Nas.examine(check)


def su3(path: Path, rate: float) -> None:
    flops = test_su3.SITES * test_su3.STEPS * test_su3.TRAJECTORIES * FLOPS_OF_SITE_UPDATE
    path.write_text(test_su3.simulation(wall_s=flops / rate))
    check = check_of(
        path, 2, 2, suite="scaling", scaling="strong", ranks=1, exchange="ssend-irecv",
        read_records=lambda: read_program_output(path),
    )  # fmt: skip
    check.expectation = lambda result: Su3.expectation(check, result)
    Su3.examine(check)


@pytest.mark.parametrize("examine", [linpack, nas, su3])
def test_a_rank_on_each_of_two_nodes_has_half_of_each(
    tmp_path: Path, examine: Callable[[Path, float], None]
) -> None:
    examine(tmp_path / "stdout", 0.9 * PEAK_OF_NODE)
    limit = re.escape("above the processors' peak of at most ")
    with pytest.raises(Suspect, match=limit + r"(10 GFLOP|10000$)"):
        examine(tmp_path / "stdout", 1.1 * PEAK_OF_NODE)
