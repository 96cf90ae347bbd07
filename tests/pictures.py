"""`python -m tests.pictures CAMPAIGN`: photograph the first screen of a report for the README.

On a desk and on a phone, light and dark, as the headless browser of the tests shows it.
"""

import base64
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from analysis.report.report import write_report
from records.campaign import find_campaign
from tests.analysis.report.test_report import CHROMIUM, QUIET

PROJECT = Path(__file__).resolve().parents[1]
FOLDER = PROJECT / "docs" / "first_screen"
#: The width and height of a screen in px, and how many of a picture's are one of these.
SCREENS = {"desk": (1280, 900, 1.5), "phone": (390, 844, 2.0)}
SCHEMES = ("light", "dark")
#: Of a picture, of 100: letters stay sharp.
QUALITY = 80
#: What docs/reading-the-report.md explains, in its order: where each part begins in the report.
PARTS = ("nav", ".answer > p", ".warnings summary", ".forest caption", ".forest tbody th a",
         ".forest tbody .verdict", ".forest tbody svg", ".forest tbody .number a",
         ".answer > details:not(.warnings) summary")  # fmt: skip
NUMBERED = FOLDER / "numbered.webp"


def file_of(screen: str, scheme: str) -> Path:
    """Return where the picture of a screen is kept."""
    return FOLDER / f"{screen}-{scheme}.webp"


def picture(browser: Browser, report: Path, screen: str, scheme: str) -> bytes:
    """Return the first screen of a report as WebP."""
    width, height, scale = SCREENS[screen]
    page = browser.new_page(
        viewport={"width": width, "height": height},
        color_scheme="dark" if scheme == "dark" else "light",
    )  # fmt: skip
    page.goto(report.as_uri())
    taken = first_screen(page, width, height, scale)
    page.close()
    return taken


def first_screen(page: Page, width: int, height: int, scale: float) -> bytes:
    """Return what a page shows at first, as WebP."""
    session = page.context.new_cdp_session(page)
    clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": scale}
    taken = session.send(
        "Page.captureScreenshot", {"format": "webp", "quality": QUALITY, "clip": clip}
    )
    return base64.b64decode(taken["data"])


def places_of(page: Page) -> list[tuple[float, float]]:
    """Return where each of PARTS begins on the screen, in px; what is not there fails."""
    boxes = [page.locator(part).first.bounding_box(timeout=5000) for part in PARTS]
    return [(box["x"], box["y"] + box["height"] / 2) for box in boxes if box]


def put_numbers(page: Page, places: list[tuple[float, float]]) -> None:
    """Put a number beside each place."""
    page.evaluate(
        """places => places.forEach(([x, y], index) => {
            const badge = document.createElement("b")
            badge.textContent = index + 1
            badge.style.cssText = `position: absolute; left: ${Math.max(2, x - 27)}px;
                top: ${y - 12}px; width: 24px; height: 24px; border-radius: 12px; color: white;
                background: #b3261e; font: bold 15px/24px sans-serif; text-align: center`
            document.body.append(badge)
        })""",
        places,
    )


def numbered(browser: Browser, report: Path) -> bytes:
    """Return the first screen on a desk with a number beside each of its parts, as WebP."""
    width, height, scale = SCREENS["desk"]
    page = browser.new_page(viewport={"width": width, "height": height}, color_scheme="light")
    page.goto(report.as_uri())
    put_numbers(page, places_of(page))
    taken = first_screen(page, width, height, scale)
    page.close()
    return taken


def main(campaign: str) -> int:
    """Take all pictures anew."""
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        report = write_report(find_campaign(PROJECT, campaign), None, Path(folder) / "report.html")
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        for screen in SCREENS:
            for scheme in SCHEMES:
                taken = picture(browser, report, screen, scheme)
                file_of(screen, scheme).write_bytes(taken)
                print(f"{file_of(screen, scheme).relative_to(PROJECT)}: {len(taken)} bytes")
        NUMBERED.write_bytes(numbered(browser, report))
        print(f"{NUMBERED.relative_to(PROJECT)}: {NUMBERED.stat().st_size} bytes")
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))
