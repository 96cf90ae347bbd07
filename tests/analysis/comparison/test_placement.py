"""Where two implementations' ranks were placed differently is said beside the answer."""

import json
from pathlib import Path
from typing import Any

from analysis.comparison.caveats.placement import placement_sentences, placement_table
from analysis.comparison.compare import compare
from analysis.report.first_screen import warnings
from analysis.report.report import write_report
from records.campaign import read_campaign
from tests.analysis.support.synthetic import TWICE, Synthetic

BOUND = {"hosts": [["a", 2]], "processors": [["0", 1], ["1", 1]], "cores": [["0", 1], ["1", 1]],
         "sockets": [["0", 2]], "numa_nodes": [["0", 2]]}  # fmt: skip
#: The same on other cores, and unbound.
ELSEWHERE = BOUND | {"processors": [["5", 1], ["4", 1]], "cores": [["5", 1], ["4", 1]]}
UNBOUND = BOUND | {"processors": [["0-7", 2]], "cores": [["0-7", 2]]}
WAITING = {"rank": 1, "counted_s": 1.0, "waited_s": 0.25, "turns": 100}


def placed(folder: Path, of_beta: dict[str, Any], rounds: tuple[int, ...] = (1, 2)) -> Path:
    made = Synthetic(folder, TWICE, rounds=2, pairs=["Send/Recv"]).write()
    for path in made.glob("launches/*PointToPoint*/launch.json"):
        facts = json.loads(path.read_text())
        is_beta = facts["implementation"].startswith("beta")
        is_apart = is_beta and "short" in facts["cell"] and facts["round"] in rounds
        own = of_beta if is_apart else BOUND
        path.write_text(json.dumps(facts | {"placement": own, "waiting": WAITING}))
    return made


def test_placements_that_differ_are_said_and_shown(tmp_path: Path) -> None:
    comparison = compare(read_campaign(placed(tmp_path / "c", UNBOUND)))
    [sentence] = placement_sentences(comparison)
    assert sentence.startswith(
        "Ranks were placed differently in 1 cell (PointToPoint pair=Send/Recv "
        "message_range=short), in 2 of 2 rounds: "
    )
    assert "alpha-1.0: 2 ranks on 1 node, each may run on 1 core" in sentence
    assert "beta-2.0: 2 ranks on 1 node, each may run on 8 cores" in sentence
    assert sentence in [one.sentence for one in warnings(comparison)]
    table = placement_table(comparison)
    assert table
    # Those that differ come first; one that waited is told, whatever its number of ranks.
    assert [table.words(row)[4] for row in table.rows] == (
        ["no, in 2 of 2 rounds"] * 2 + ["yes"] * 4
    )
    assert {table.value(row, "waited") for row in table.rows} == {0.25}
    records = [dict(zip(table.heads, table.record(row), strict=True)) for row in table.rows]
    numbers = ("alike", "differing_rounds (1)", "compared_rounds (1)", "nodes_most (1)",
               "ranks_of_a_node_least (1)", "cores_of_a_rank_least (1)",
               "cores_of_a_rank_most (1)", "crowded_ranks_most (1)")  # fmt: skip
    assert [tuple(one[head] for head in numbers) for one in records[:3]] == [
        (False, 2, 2, 1, 2, 1, 1, 0), (False, 2, 2, 1, 2, 8, 8, 0), (True, 0, 2, 1, 2, 1, 1, 0),
    ]  # fmt: skip
    assert "<h3>Where the ranks were</h3>" in write_report(tmp_path / "c", None, None).read_text()


def test_placements_are_held_against_those_of_their_round(tmp_path: Path) -> None:
    """Those that change together are alike, and those that do so in turn are not."""
    once = compare(read_campaign(placed(tmp_path / "once", UNBOUND, (2,))))
    assert ", in 1 of 2 rounds: " in placement_sentences(once)[0]
    for name, of_alpha, expected in (("together", 2, []), ("in-turn", 1, ["2 of 2"])):
        made = placed(tmp_path / name, UNBOUND, (2,))
        for path in made.glob("launches/*short*alpha*/launch.json"):
            facts = json.loads(path.read_text())
            own = UNBOUND if facts["round"] == of_alpha else BOUND
            path.write_text(json.dumps(facts | {"placement": own}))
        said = placement_sentences(compare(read_campaign(made)))
        assert [one.partition(", in ")[2].partition(" rounds")[0] for one in said] == expected


def test_other_cores_of_the_same_kind_are_no_other_placement(tmp_path: Path) -> None:
    comparison = compare(read_campaign(placed(tmp_path / "c", ELSEWHERE)))
    assert placement_sentences(comparison) == []
    unknown = Synthetic(tmp_path / "old", TWICE, rounds=1, pairs=["Send/Recv"]).write()
    assert placement_table(compare(read_campaign(unknown))) is None
