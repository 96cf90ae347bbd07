"""A series has one verdict, in one family, wherever it stands."""

import json
from pathlib import Path

from analysis.comparison.answer import sentences_of
from analysis.comparison.compare import compare
from analysis.comparison.families import family_in, group_title
from records.campaign import read_campaign
from records.experiments import compared
from tests.analysis.support.synthetic import TWICE, Synthetic


def test_a_group_of_one_cell_has_the_verdict_of_that_cell(tmp_path: Path) -> None:
    """In table, answer and report it is one object, so there is no second family to contradict."""
    campaign = Synthetic(tmp_path / "c", TWICE, pairs=["Send/Recv"], noise=0.3).write()
    comparison = compare(read_campaign(campaign))
    alone = [group for group in comparison.groups if len(group.cells) == 1]
    assert len(alone) == 3
    for group in alone:
        [cell] = group.cells
        assert group.verdicts["beta-2.0"] is cell.verdicts["beta-2.0"]
        own = cell.verdicts["beta-2.0"]
        [sentence] = sentences_of(group)
        is_shown = f"{own.words} than" in sentence
        assert is_shown == own.is_different
        assert is_shown or f"no difference from {own.base} shown" in sentence


def test_what_is_oversubscribed_is_of_no_family_and_in_no_group(tmp_path: Path) -> None:
    """It would make the others harder to show, and a title say more than it has."""
    campaign = Synthetic(tmp_path / "c", TWICE, pairs=["Send/Recv", "Isend/Recv"]).write()
    before = compare(read_campaign(campaign))
    for path in campaign.glob("launches/*Isend*/launch.json"):
        path.write_text(json.dumps(json.loads(path.read_text()) | {"oversubscribed": True}))
    after = compare(read_campaign(campaign))
    families = [family_in(one.pairs, "PointToPoint") for one in (before, after)]
    # Six cells and three groups over two each; three cells, which are their groups.
    assert [len(family) for family in families] == [9, 3]
    names = [group.name for group in after.groups if group.experiment == "PointToPoint"]
    assert names and all(name.endswith("but the oversubscribed") for name in names)
    entry = compared()["StartUp"]
    ranks = [{"ranks": 4}, {"ranks": 2}]
    assert group_title(entry, "Process start-up", ranks, True) == "Process start-up, 2 and 4 ranks"
    assert group_title(entry, "Process start-up", ranks[1:], True) == "Process start-up, 2 ranks"
