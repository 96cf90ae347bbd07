"""The report of a campaign with a budget: cells have different numbers of rounds, tested at looks.

The sample campaign has rounds of everything, and no looks.
"""

import shutil
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from analysis.comparison.compare import compare
from analysis.precision import waves
from analysis.report.campaign_end import ending
from analysis.report.headline import headlines
from analysis.report.report import write_report
from inference.looks import AnytimeRatio
from records.campaign import read_campaign
from tests.analysis.report.test_first_screen import DESK, PHONE, assert_nothing_is_cut
from tests.analysis.report.test_report import browser, open_page  # noqa: F401
from tests.analysis.support.synthetic import PAIRS, TWICE, Synthetic

LOOKED = "results were looked at more than once: at 3, 5, 8, 13, 21, 34 rounds of a cell"
#: Of which cells the campaign has more rounds than it began with.
CHOSEN = {"long": 5, "1x2": 8}


def synthetic(folder: Path, **facts: object) -> Path:
    """Return a campaign in which few cells have eight rounds, and one lost launches."""
    # All pairs, so that there are as many rows as a real one has.
    made = Synthetic(folder, TWICE, rounds=max(CHOSEN.values()), pairs=list(PAIRS), facts=facts)
    for path in made.write().glob("launches/*"):
        number = int(path.name[5:8])
        most = next((rounds for word, rounds in CHOSEN.items() if word in path.name), 3)
        is_lost = number == 2 and "pair=Send_Recv_message_range=short_beta" in path.name
        if number > most or is_lost:
            shutil.rmtree(path)
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("looks") / "campaign"
    return synthetic(path, design=waves.declared(900.0, 7).model_dump())


@pytest.fixture(scope="module")
def written(folder: Path) -> Path:
    return write_report(folder, None, None)


def test_its_verdicts_are_those_of_looks(folder: Path, written: Path) -> None:
    comparison = compare(read_campaign(folder))
    verdicts = {cell.name: cell.verdicts["beta-2.0"] for cell in comparison.cells}
    at_looks = {name: one.ratio for name, one in verdicts.items()
                if isinstance(one.ratio, AnytimeRatio)}  # fmt: skip
    assert {len(one.looks) for one in at_looks.values()} == {1, 2, 3}
    [lost] = verdicts.keys() - at_looks.keys()
    assert verdicts[lost].words == "inconclusive (2 paired rounds, before the first look)"
    text = written.read_text()
    assert f"{verdicts[lost].words}</td>" in text
    [headline] = headlines(comparison)
    assert headline.sentence in text and headline.faster > 0 and headline.open > 0
    assert len(ending(comparison)) <= 22


def test_its_method_is_said_as_it_was(written: Path, tmp_path: Path) -> None:
    text = written.read_text()
    assert LOOKED in text and "with 40, 25, 15, 10, 6, 4% of the level" in text
    assert "The first 3 rounds had all cells" in text
    assert "of each look at the campaign" in text and "not corrected for looks" in text
    assert "In a <em>round</em> every cell was launched once" not in text
    # What was tested once, at the end, had no looks, though it had a budget.
    once = synthetic(
        tmp_path / "once", design=waves.declared(300.0, 7).model_dump(), tested_once=True
    )
    text = write_report(once, None, None).read_text()
    assert "looked at more than once" not in text and "of each look" not in text
    assert "corrected for looks" not in text
    assert "In a <em>round</em> every cell was launched once" in text


@pytest.mark.browser
@pytest.mark.parametrize(
    ("width", "height", "most"), [(1200, DESK, 15), (1920, DESK, 15), (390, PHONE, 40)]
)
def test_it_is_short_and_nothing_is_cut(
    browser: Browser,  # noqa: F811
    written: Path,
    width: int,
    height: int,
    most: int,
) -> None:
    page = open_page(browser, written, width)
    assert page.evaluate("document.documentElement.scrollHeight") / height <= most
    top = page.locator(".answer > p").first.bounding_box()
    assert top is not None and top["y"] + top["height"] < height
    assert_nothing_is_cut(page)
    page.close()
