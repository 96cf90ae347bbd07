"""The README's pictures are there, small, and of the screens that they are said to be of."""

import re
from itertools import product
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.analysis.report.conftest import sample_report  # noqa: F401
from tests.analysis.report.test_report import browser  # noqa: F401
from tests.pictures import NUMBERED, PARTS, SCHEMES, SCREENS, file_of, numbered, places_of

PROJECT = Path(__file__).resolve().parents[1]
#: So that a clone stays small and the page loads at once.
MOST_BYTES = 200_000


@pytest.mark.parametrize(("screen", "scheme"), [*product(SCREENS, SCHEMES)])
def test_the_first_screen_is_shown(screen: str, scheme: str) -> None:
    file = file_of(screen, scheme)
    data = file.read_bytes()
    assert len(data) < MOST_BYTES
    # WebP's extended header has width and height in px, each less by one.
    assert data[:4] == b"RIFF" and data[8:16] == b"WEBPVP8X"
    found = [int.from_bytes(data[place : place + 3], "little") + 1 for place in (24, 27)]
    width, height, scale = SCREENS[screen]
    assert found == [width * scale, height * scale]
    readme = (PROJECT / "README.md").read_text()
    name = file.relative_to(PROJECT).as_posix()
    [said] = re.findall(rf'<img src="{re.escape(name)}" width="\d+%" alt="([^"]+)">', readme)
    assert len(said) > 20


def test_the_readme_shows_no_picture_that_is_not_there() -> None:
    shown = re.findall(r'<img src="([^"]+)"', (PROJECT / "README.md").read_text())
    assert len(shown) == len(set(shown)) == len(SCREENS) * len(SCHEMES)
    assert all((PROJECT / name).is_file() for name in shown)


def test_each_number_of_the_picture_is_explained() -> None:
    page = (PROJECT / "docs" / "reading-the-report.md").read_text()
    first, *_ = page.partition("\n## ")
    assert [int(one) for one in re.findall(r"(?m)^(\d+)\. \*\*", first)] == [
        *range(1, len(PARTS) + 1)
    ]
    [(name, said)] = re.findall(r'<img src="([^"]+)" width="100%" alt="([^"]+)">', page)
    assert PROJECT / "docs" / name == NUMBERED and f"1 to {len(PARTS)}" in said
    assert NUMBERED.stat().st_size < MOST_BYTES


@pytest.mark.browser
def test_all_parts_that_are_numbered_are_on_the_first_screen(
    browser: Browser,  # noqa: F811
    sample_report: Path,  # noqa: F811
) -> None:
    width, height, scale = SCREENS["desk"]
    page = browser.new_page(viewport={"width": width, "height": height})
    page.goto(sample_report.as_uri())
    places = places_of(page)
    page.close()
    assert len(set(places)) == len(PARTS)
    assert all(0 <= x < width and 0 <= y < height for x, y in places)
    taken = numbered(browser, sample_report)
    found = [int.from_bytes(taken[place : place + 3], "little") + 1 for place in (24, 27)]
    assert taken[8:16] == b"WEBPVP8X" and found == [width * scale, height * scale]
