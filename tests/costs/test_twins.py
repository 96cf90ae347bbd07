"""The same programs under two names differ in nothing: real campaigns say so, too."""

from pathlib import Path

import pytest

from analysis.comparison.compare import compare
from containers import images
from costs.twins import CHECKS, TwinsCampaign, judged, measure, twins
from records.campaign import read_campaign
from tests.analysis.support.synthetic import TWICE, Synthetic

PROJECT = Path(__file__).resolve().parents[2]
IMAGE = "mpich-5.0.2"
#: Each of two experiments may have a false difference in 4% of campaigns: two of three have any in
#: 2% at most.
CAMPAIGNS, MOST_WRONG = 3, 1


def test_what_a_campaign_found_is_one_line() -> None:
    series = {"EchoTest": 1, "HaloExchange": 4}
    assert TwinsCampaign(series, {}).line() == "5 series of 2 experiments: none differs"
    found = TwinsCampaign(series, {"EchoTest": ["EchoTest"], "HaloExchange": ["a", "b"]})
    assert found.line() == "5 series of 2 experiments: 3 differ (EchoTest; a; b)"


def test_a_group_that_differs_counts_as_a_series_does(tmp_path: Path) -> None:
    comparison = compare(read_campaign(Synthetic(tmp_path / "c", TWICE, rounds=6).write()))
    [short] = [one for one in comparison.groups if one.name == "Short messages, all pairs"]
    for cell in comparison.cells:
        for verdict in cell.verdicts.values():
            verdict.claim = None
    found = judged(comparison)
    assert found.series["PointToPoint"] == 24 and short.verdicts["beta-2.0"].is_different
    assert short.name in found.different["PointToPoint"]
    assert not {cell.name for cell in comparison.cells} & set(found.different["PointToPoint"])


def test_an_image_that_is_not_built_has_no_twin(tmp_path: Path) -> None:
    with (
        pytest.raises(images.ImageError, match=r"^nothing-1\.0 is not built; run `make images "),
        twins(tmp_path, "nothing-1.0"),
    ):
        raise AssertionError


@pytest.mark.real
@pytest.mark.serial
@pytest.mark.long
def test_an_image_differs_from_its_twin_no_more_often_than_stated() -> None:
    with twins(PROJECT, IMAGE) as (twin, guests):
        found = [measure((IMAGE, twin), guests, "90s", CHECKS) for _ in range(CAMPAIGNS)]
    # On a busy machine the budget may have no room for both experiments.
    assert all(sum(one.series.values()) for one in found)
    assert sum(bool(one.different) for one in found) <= MOST_WRONG, found
    assert not images.guest_root(PROJECT, guests).exists()
