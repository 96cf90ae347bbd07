"""With more ranks than processors, what counts is by how much waiting ranks may be late."""

import json
from pathlib import Path
from typing import Any

import pytest

from analysis.comparison.caveats.limited import limited_sentences
from analysis.comparison.compare import compare
from analysis.comparison.result import Cell, Comparison
from analysis.report.report import write_report
from records.campaign import read_campaign
from tests.analysis.support.synthetic import TWICE, Synthetic

ALPHA, BETA = TWICE
#: Ranks that never wait; that give the processor away and get it back at once; that spin.
LITTLE = {"rank": 1, "counted_s": 1.0, "waited_s": 0.049, "turns": 9}
YIELDING = {"rank": 0, "counted_s": 1.0, "waited_s": 0.5, "turns": 5_000_000}
SPINNING = {"rank": 0, "counted_s": 1.0, "waited_s": 0.5, "turns": 200}


def crowded(folder: Path, **waiting: dict[str, Any] | None) -> Comparison:
    """Return a comparison of launches of four ranks on two processors, with their waits."""
    made = Synthetic(folder / "c", TWICE, rounds=6, pairs=["Send/Recv"]).write()
    for path in made.glob("launches/*PointToPoint*/launch.json"):
        facts = json.loads(path.read_text()) | {"oversubscribed": True, "ranks": 4}
        if own := waiting[facts["implementation"].partition("-")[0]]:
            facts["waiting"] = own
        path.write_text(json.dumps(facts))
    return compare(read_campaign(made))


def judged(comparison: Comparison) -> list[Cell]:
    return [cell for cell in comparison.experiment("PointToPoint") if not cell.oversubscribed]


@pytest.mark.parametrize("beta", [None, SPINNING])
def test_ranks_that_wait_or_were_not_asked_are_in_no_answer(
    tmp_path: Path, beta: dict[str, Any] | None
) -> None:
    comparison = crowded(tmp_path, alpha=LITTLE, beta=beta)
    assert not judged(comparison) and not comparison.limited
    assert not [one for one in comparison.groups if one.experiment == "PointToPoint"]


def test_below_five_percent_a_launch_counts_whatever_its_ranks(tmp_path: Path) -> None:
    comparison = crowded(tmp_path, alpha=LITTLE, beta=LITTLE)
    assert len(judged(comparison)) == 3 and not comparison.limited
    assert all(cell.verdicts[BETA].claim for cell in judged(comparison))
    # At that share it does not.
    most = crowded(tmp_path / "most", alpha=LITTLE, beta=LITTLE | {"waited_s": 0.05})
    assert not judged(most)


#: Two ranks, and the one core that both were put on, or one for each.
ONE_CORE = {"hosts": [["a", 2]], "processors": [["3", 2]], "cores": [["3", 2]],
            "sockets": [["0", 2]], "numa_nodes": [["0", 2]]}  # fmt: skip
APART = ONE_CORE | {"processors": [["3", 1], ["4", 1]], "cores": [["3", 1], ["4", 1]]}


@pytest.mark.parametrize(
    ("placement", "waiting", "is_judged"),
    [(ONE_CORE, SPINNING, False), (ONE_CORE, LITTLE, True), (ONE_CORE, None, True),
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


def test_ranks_that_give_the_processor_away_are_compared_where_they_cannot_be_late(
    tmp_path: Path,
) -> None:
    comparison = crowded(tmp_path, alpha=YIELDING, beta=LITTLE)
    # A message waits for half of 100 ns, an operation for eight of these: 400 ns, so 8 us count.
    [medium, long] = judged(comparison)
    assert [one.message_bytes for one in medium.estimates[ALPHA]] == [43_000, 100_000]
    assert len(medium.estimates[BETA]) == 3 and len(long.estimates[ALPHA]) == 2
    assert {(one.implementation, one.point.message_bytes, one.point.late)
            for one in comparison.limited} == {(ALPHA, 5000, True)}  # fmt: skip
    [sentence] = limited_sentences(comparison)
    assert sentence.startswith("Limited by waiting for processors: 1 point of alpha-1.0")
    report = write_report(comparison.campaign.path, None, None).read_text()
    assert "<h3>Limited by waiting for processors</h3>" in report


def test_a_computation_may_have_any_number_of_messages(tmp_path: Path) -> None:
    made = crowded(tmp_path, alpha=YIELDING, beta=LITTLE).campaign.path
    for path in made.glob("launches/*PointToPoint*/launch.json"):
        path.write_text(json.dumps(json.loads(path.read_text()) | {"program": "su3"}))
    assert not judged(compare(read_campaign(made)))
