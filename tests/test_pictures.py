"""The README's pictures are there, small, and of the screens that they are said to be of."""

import re
from itertools import product
from pathlib import Path

import pytest

from tests.pictures import SCHEMES, SCREENS, file_of

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
