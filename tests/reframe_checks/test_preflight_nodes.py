"""A preflight runs on as many nodes as the largest launch that waits for it."""

import os
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from records.base import MOST_RANKS_LISTED
from reframe_checks.bin import choosing, session
from reframe_checks.preflight import OF_RANK, Preflight, noting, trips_told


@dataclass
class PlacedCheck:
    """What stands for a check that takes so many nodes where it is placed."""

    unique_name: str
    takes: int = 1
    nodes: int = 1
    proves: list[int] = field(default_factory=list)

    def place_on(self, partition: str) -> None:
        assert partition == "partition"
        self.nodes = self.takes

    def prove_nodes(self, nodes: int) -> None:
        self.proves.append(nodes)


@dataclass(eq=False)
class PlacedCase:
    """What stands for a test case of ReFrame."""

    check: PlacedCheck
    deps: list[Any]
    partition: str = "partition"


def test_each_image_s_preflight_has_the_nodes_of_its_largest_launch(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for module in (session, choosing):
        monkeypatch.setattr(module, "RecordedCheck", PlacedCheck)
    alpha, beta = (PlacedCase(PlacedCheck(name), []) for name in ("alpha", "beta"))
    launches = [
        PlacedCase(PlacedCheck("small"), [alpha]), PlacedCase(PlacedCheck("hpl", 1000), [alpha]),
        PlacedCase(PlacedCheck("pairs", 2), [beta]), PlacedCase(PlacedCheck("raw", 500), []),
    ]  # fmt: skip
    cases = [alpha, beta, *launches]
    session.Rounds(tmp_path, cases, None).place(cases)
    assert [case.check.proves for case in cases] == [[1000], [2], [], [], [], []]


@pytest.mark.parametrize(("nodes", "ranks"), [(1, 2), (2, 2), (1000, 1000)])
def test_a_rank_runs_on_each_node_and_two_at_least(nodes: int, ranks: int) -> None:
    class Proving:
        num_tasks = 2

    proving: Any = Proving()
    Preflight.prove_nodes(proving, nodes)
    assert proving.num_tasks == ranks


def test_of_a_large_world_a_host_tells_two_trips_at_most() -> None:
    assert trips_told(["a"] * MOST_RANKS_LISTED) == MOST_RANKS_LISTED - 1
    assert trips_told(["a"] * MOST_RANKS_LISTED + ["b"]) == 2
    assert trips_told([f"node{n}" for n in range(5000)]) == 4999


@pytest.mark.parametrize("variable", ["PMI_RANK", "PMIX_RANK", "SLURM_PROCID", None])
def test_no_rank_tries_the_numbers_of_those_before_it(variable: str | None, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    # Notes each attempt, and makes the folder.
    mkdir = tmp_path / "bin" / "mkdir"
    mkdir.write_text('#!/bin/sh\necho "$1" >>tried\nexec /bin/mkdir "$1"\n')
    mkdir.chmod(0o755)
    path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    for number in range(4):
        own = {variable: str(number)} if variable else {"PMI_RANK": "none"}
        subprocess.run(
            ["sh", "-c", noting(OF_RANK), "sh", "true"], cwd=tmp_path, check=True,
            env={"PATH": path, **own},
        )  # fmt: skip
    assert {f"{OF_RANK}.{n}" for n in range(4)} < {path.name for path in tmp_path.iterdir()}
    tried = len((tmp_path / "tried").read_text().splitlines())
    assert tried == (4 if variable else 1 + 2 + 3 + 4)


def test_a_rank_that_can_make_no_folder_stops_trying_and_starts_its_program(tmp_path: Path) -> None:
    """As on a full disk, where every number fails."""
    (tmp_path / "bin").mkdir()
    mkdir = tmp_path / "bin" / "mkdir"
    mkdir.write_text(f'#!/bin/sh\necho "$1" >>{tmp_path}/tried\nexit 1\n')
    mkdir.chmod(0o755)
    (tmp_path / f"{OF_RANK}.0.taken").mkdir()
    done = subprocess.run(
        ["sh", "-c", noting(OF_RANK), "sh", "echo", "measured"], cwd=tmp_path, check=True,
        capture_output=True, text=True, env={"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"},
    )  # fmt: skip
    assert done.stdout == "measured\n"
    tried = (tmp_path / "tried").read_text().split()
    assert tried == [f"{OF_RANK}.0.taken", f"{OF_RANK}.1.taken"]
