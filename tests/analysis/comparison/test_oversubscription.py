"""With more ranks than processors, what counts is by how much waiting ranks may be late."""

import json
from pathlib import Path
from typing import Any

import pytest

from analysis.comparison.caveats.limited import limited_sentences
from analysis.comparison.compare import compare
from analysis.comparison.oversubscription import cells_that_waited
from analysis.comparison.result import Cell, Comparison
from analysis.report.report import write_report
from records.campaign import read_campaign
from tests.analysis.support.synthetic import TWICE, Synthetic

ALPHA, BETA = TWICE
#: Ranks that wait hardly ever; in which a slice now and then may hide; for less than a twentieth of
#: their time; that give the processor away and get it back at once; that spin.
HARDLY = {"rank": 1, "counted_s": 1.0, "waited_s": 1e-7, "turns": 9}
SELDOM = {"rank": 0, "counted_s": 1.0, "waited_s": 1.25e-5, "turns": 100}
LITTLE = {"rank": 1, "counted_s": 1.0, "waited_s": 0.049, "turns": 9}
YIELDING = {"rank": 0, "counted_s": 1.0, "waited_s": 0.5, "turns": 5_000_000}
SPINNING = {"rank": 0, "counted_s": 1.0, "waited_s": 0.5, "turns": 200}


def crowded(folder: Path, of: str = "PointToPoint", **waiting: dict[str, Any] | None) -> Comparison:
    """Return a comparison of launches of four ranks on two processors, with their waits."""
    made = Synthetic(folder / "c", TWICE, rounds=6, pairs=["Send/Recv"]).write()
    for path in made.glob(f"launches/*{of}*/launch.json"):
        facts = json.loads(path.read_text()) | {"oversubscribed": True, "ranks": 4}
        if own := waiting[facts["implementation"].partition("-")[0]]:
            facts["waiting"] = own
        path.write_text(json.dumps(facts))
    return compare(read_campaign(made))


def judged(comparison: Comparison) -> list[Cell]:
    return [cell for cell in comparison.experiment("PointToPoint") if not cell.oversubscribed]


@pytest.mark.parametrize("beta", [None, SPINNING, YIELDING, LITTLE])
def test_ranks_that_wait_or_were_not_asked_are_in_no_answer(
    tmp_path: Path, beta: dict[str, Any] | None
) -> None:
    comparison = crowded(tmp_path, alpha=HARDLY, beta=beta)
    assert not judged(comparison) and not comparison.limited
    assert not [one for one in comparison.groups if one.experiment == "PointToPoint"]


def test_a_rate_counts_where_ranks_wait_for_less_than_five_percent(tmp_path: Path) -> None:
    counted = crowded(tmp_path, "Linpack", alpha=LITTLE, beta=LITTLE).experiment("Linpack")
    assert counted and not any(cell.oversubscribed for cell in counted)
    # At that share it does not, and no other rank may wait for so much.
    for name, more in (("waited_s", 0.05), ("most_share", 0.05)):
        most = crowded(tmp_path / name, "Linpack", alpha=LITTLE, beta={**LITTLE, name: more})
        assert all(cell.oversubscribed for cell in most.experiment("Linpack"))


#: Two ranks, and the one core that both were put on, or one for each.
ONE_CORE = {"hosts": [["a", 2]], "processors": [["3", 2]], "cores": [["3", 2]],
            "sockets": [["0", 2]], "numa_nodes": [["0", 2]]}  # fmt: skip
APART = ONE_CORE | {"processors": [["3", 1], ["4", 1]], "cores": [["3", 1], ["4", 1]]}


@pytest.mark.parametrize(
    ("placement", "waiting", "is_judged"),
    [(ONE_CORE, SPINNING, False), (ONE_CORE, HARDLY, True), (ONE_CORE, None, True),
     (APART, SPINNING, True)],
)  # fmt: skip
def test_ranks_that_were_put_on_one_core_are_more_than_cores(
    tmp_path: Path, placement: Any, waiting: Any, is_judged: bool
) -> None:
    """Where the machine has enough: an MPI bound them so. Others' load has no such placement."""
    made = Synthetic(tmp_path / "c", TWICE, rounds=6, pairs=["Send/Recv"]).write()
    for path in made.glob("launches/*PointToPoint*alpha*/launch.json"):
        facts = json.loads(path.read_text()) | {"placement": placement}
        path.write_text(json.dumps(facts | ({"waiting": waiting} if waiting else {})))
    assert len(judged(compare(read_campaign(made)))) == (3 if is_judged else 0)
    # One launch of many that was put there is what it is, and no reason to judge none.
    for path in made.glob("launches/*PointToPoint*alpha*/launch.json"):
        facts = json.loads(path.read_text())
        own = placement if facts["round"] == 1 else APART
        path.write_text(json.dumps(facts | {"placement": own}))
    assert len(judged(compare(read_campaign(made)))) == 3


def test_messages_count_where_their_ranks_cannot_be_late(tmp_path: Path) -> None:
    every = crowded(tmp_path / "every", alpha=HARDLY, beta=HARDLY)
    assert len(judged(every)) == 3 and not every.limited
    assert all(cell.verdicts[BETA].claim for cell in judged(every))
    comparison = crowded(tmp_path, alpha=SELDOM, beta=HARDLY)
    # A message waits for 1.25e-5 of 4 ms, an operation for eight of these: 400 ns, so 8 us count.
    [medium, long] = judged(comparison)
    assert [one.message_bytes for one in medium.estimates[ALPHA]] == [43_000, 100_000]
    assert len(medium.estimates[BETA]) == 3 and len(long.estimates[ALPHA]) == 2
    assert {(one.implementation, one.point.message_bytes, one.point.late)
            for one in comparison.limited} == {(ALPHA, 5000, True)}  # fmt: skip
    [sentence] = limited_sentences(comparison)
    assert sentence.startswith("Limited by waiting for processors: 1 point of alpha-1.0")
    report = write_report(comparison.campaign.path, None, None).read_text()
    assert "<h3>Limited by waiting for processors</h3>" in report


def test_models_are_of_cells_all_of_whose_times_count(tmp_path: Path) -> None:
    for of, waiting, left in (
        ("PointToPoint", HARDLY, 0), ("PointToPoint", SELDOM, 2), ("PointToPoint", LITTLE, 3),
        ("Linpack", LITTLE, 0), ("Linpack", SPINNING, 2),
    ):  # fmt: skip
        folder = tmp_path / f"{of} {waiting['waited_s']}"
        comparison = crowded(folder, of, alpha=waiting, beta=HARDLY)
        waited = cells_that_waited(comparison.campaign)
        # Of SELDOM, the cell that is too short, and one of which a size is.
        assert len(waited) == left, (of, waiting)


def test_a_computation_may_have_any_number_of_messages(tmp_path: Path) -> None:
    made = crowded(tmp_path, alpha=YIELDING, beta=HARDLY).campaign.path
    for path in made.glob("launches/*PointToPoint*/launch.json"):
        path.write_text(json.dumps(json.loads(path.read_text()) | {"program": "su3"}))
    assert not judged(compare(read_campaign(made)))
