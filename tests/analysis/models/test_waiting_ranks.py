"""Cells that models leave out, since ranks waited, are left out of every implementation."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from analysis.models.guidelines.trials import collectives_in
from analysis.models.linpack import solved_in
from analysis.models.messages import sweeps_of
from analysis.references.calibration import measured
from records.campaign import Campaign, read_campaign
from tests.analysis.models.test_guidelines import collective
from tests.analysis.support.synthetic import TWICE, Synthetic

ROUNDS = 5
Found = list[tuple[str, int]]
#: The implementation and round of all that a model or a reference is made of.
MADE_OF: dict[str, Callable[[Campaign], Found]] = {
    "messages": lambda of: [(s.implementation, n) for s in sweeps_of(of) for n in s.rounds],
    "linpack": lambda of: [(one.implementation, one.round) for one in solved_in(of)],
    "guidelines": lambda of: [
        (launch.record.implementation, launch.record.round)
        for launch, _, _ in collectives_in(of)
    ],
    "references": lambda of: [
        (one.record.implementation, one.record.round) for one in measured(of)
    ],
}  # fmt: skip


def with_waits(folder: Path, rounds: int) -> Campaign:
    """Return a campaign with more ranks than processors, which alpha waited for in some rounds."""
    made = Synthetic(folder / "c", TWICE, rounds=ROUNDS, pairs=["Send/Recv"])
    made.write()
    for number in range(1, ROUNDS + 1):
        for name in TWICE:
            collective(made, number, name, {("bcast", 64): 1e-5})
    for path in made.folder.glob("launches/*/launch.json"):
        facts = json.loads(path.read_text())
        waited_s = 0.5 if "alpha" in facts["implementation"] and facts["round"] <= rounds else 1e-7
        waiting = {"rank": 0, "counted_s": 1.0, "waited_s": waited_s, "turns": 200}
        path.write_text(json.dumps(facts | {"oversubscribed": True, "waiting": waiting}))
    return read_campaign(made.folder)


@pytest.mark.parametrize("name", MADE_OF)
def test_a_launch_that_waited_is_not_left_out_of_one_side(tmp_path: Path, name: str) -> None:
    found = MADE_OF[name](with_waits(tmp_path, 2))
    assert {(one, number) for one in TWICE for number in range(1, ROUNDS + 1)} == set(found)


@pytest.mark.parametrize("name", MADE_OF)
def test_a_cell_in_which_one_library_waited_is_left_out_of_all(tmp_path: Path, name: str) -> None:
    assert MADE_OF[name](with_waits(tmp_path, 3)) == []
