"""`python -m tests.house`: draw the rooms of docs/architecture.md from pyproject's contracts.

What stands between the two marks of the page is replaced; tests/test_places.py holds it current.
"""

import ast
import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
PAGE = PROJECT / "docs" / "architecture.md"
BEGIN, END = "<!-- drawn by python -m tests.house -->\n", "<!-- end of the drawing -->\n"
WIDTH = 98
#: Folders that ReFrame loads files of by their paths have no `__init__.py` to say it.
SAID = {
    "reframe_checks": "ReFrame's checks: what is started, on how many ranks, and when it fails.",
    "site_configs": "What each site has, and how ReFrame is told.",
    "__main__": "The command line.",
}


def sentence_of(folder: Path) -> str:
    """Return the first sentence of what a package says of itself."""
    if folder.name in SAID:
        return SAID[folder.name]
    text = ast.get_docstring(ast.parse((folder / "__init__.py").read_text())) or ""
    return " ".join(text.split("\n\n")[0].split())


def wrapped(words: str, width: int) -> list[str]:
    """Return words in lines of a width."""
    lines = [""]
    for word in words.split():
        if lines[-1] and len(lines[-1]) + 1 + len(word) > width:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return lines


def floor(rooms: list[tuple[str, str]], width: int) -> list[str]:
    """Return a floor: its rooms beside each other, each with its name and what it is for."""
    room = (width - 1) // len(rooms) - 1
    widths = [room] * (len(rooms) - 1) + [width - 1 - (room + 1) * (len(rooms) - 1) - 1]
    cells = [
        [f" {name}", *(f" {line}" for line in wrapped(words, one - 2))]
        for (name, words), one in zip(rooms, widths, strict=True)
    ]
    height = max(map(len, cells))
    return [
        "|" + "|".join(
            (cell[row] if row < len(cell) else "").ljust(one)
            for cell, one in zip(cells, widths, strict=True)
        ) + "|"
        for row in range(height)
    ]  # fmt: skip


def drawing(project: Path = PROJECT) -> str:
    """Return the house as text: whoever stands higher may import what stands lower."""
    settings = tomllib.loads((project / "pyproject.toml").read_text())["tool"]["importlinter"]
    lines = []
    for contract in settings["contracts"]:
        if contract["type"] != "layers":
            continue
        folder = project / contract["containers"][0] if "containers" in contract else project
        lines += ["", f"{contract['name']}:", "", "```text", "+" + "-" * (WIDTH - 2) + "+"]
        for layer in contract["layers"]:
            rooms = [word.strip() for word in layer.split("|")]
            # More than three in a row leave no room for words.
            for first in range(0, len(rooms), 3):
                named = [(room, sentence_of(folder / room)) for room in rooms[first : first + 3]]
                lines += floor(named, WIDTH)
            lines.append("+" + "-" * (WIDTH - 2) + "+")
        lines.append("```")
    return "\n".join(lines).lstrip("\n") + "\n"


def with_drawing(page: str, picture: str) -> str:
    """Return a page with the picture between its marks."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{PAGE.name} lacks the marks of the drawing: {BEGIN!r} and {END!r}")
    return f"{before}{BEGIN}\n{picture}\n{END}{after}"


def main() -> int:
    """Draw the page's house anew."""
    PAGE.write_text(with_drawing(PAGE.read_text(), drawing()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
