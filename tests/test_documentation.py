"""Every relative link and anchor of the repository's Markdown leads somewhere."""

import re
import subprocess
from collections import Counter
from pathlib import Path
from urllib.parse import unquote

import pytest

from documentation.pages import DRAWN

PROJECT = Path(__file__).parents[1]
#: A page's link or picture, [text](target) or [text](target "title").
LINK = re.compile(r"\[(?:[^\[\]]|\[[^\]]*\])*\]\(<?([^()\s>]*(?:\([^()\s]*\)[^()\s]*)*)>?[^)]*\)")
SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)


def pages() -> list[Path]:
    """Return the Markdown files of the repository, templates of such files excepted."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
        cwd=PROJECT, text=True, capture_output=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    return [
        PROJECT / name for name in listed if "templates" not in name and (PROJECT / name).exists()
    ]


def prose(text: str) -> str:
    """Return a page without its blocks of code, which show text and link nothing."""
    kept: list[str] = []
    fence = ""
    for line in text.splitlines():
        mark = re.match(r"\s*(`{3,}|~{3,})", line)
        if mark and not fence:
            fence = mark[1]
        elif mark and mark[1].startswith(fence):
            fence = ""
        elif not fence:
            kept.append(line)
    return "\n".join(kept)


def links(text: str) -> list[str]:
    """Return the targets of a page's links, those in code between backticks left out."""
    return LINK.findall(re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "code", prose(text), flags=re.DOTALL))


def anchors(text: str) -> set[str]:
    """Return the anchors of a page's headings as GitHub and GitLab make them, and named ones."""
    found: set[str] = set()
    seen: Counter[str] = Counter()
    for title in re.findall(r"(?m)^#{1,6}\s+(.+?)\s*#*$", prose(text)):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title).replace("`", "").replace("*", "")
        slug = re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")
        found.add(f"{slug}-{seen[slug]}" if seen[slug] else slug)
        seen[slug] += 1
    return found | set(re.findall(r"<a (?:id|name)=\"([^\"]+)\"", text))


def broken(page: Path, target: str) -> str | None:
    """Return why a relative link leads nowhere, or None where it leads somewhere."""
    name, _, anchor = unquote(target).partition("#")
    place = (page.parent / name).resolve() if name else page
    if not place.is_relative_to(PROJECT) or not place.exists():
        return "no such file"
    if anchor and (place.suffix != ".md" or anchor not in anchors(place.read_text())):
        return "no such heading"
    return None


@pytest.mark.parametrize("page", [pytest.param(p, id=str(p.relative_to(PROJECT))) for p in pages()])
def test_links_lead_somewhere(page: Path) -> None:
    targets = [target for target in links(page.read_text()) if not SCHEME.match(target)]
    assert {target: why for target in targets if (why := broken(page, target))} == {}


@pytest.mark.parametrize("page", [pytest.param(p, id=str(p.relative_to(PROJECT))) for p in pages()])
def test_rows_of_tables_are_whole_lines(page: Path) -> None:
    """Each in a line of its own, with as many cells as the line above it."""
    assert split_rows(page.read_text()) == []


def split_rows(text: str) -> list[str]:
    """Return the lines of a page that are no whole row of the table that they are in."""
    found, cells = [], 0
    for line in prose(text).splitlines():
        if not line.startswith("|"):
            found += [line] if cells and line.strip() else []
            cells = cells if line.strip() else 0
            continue
        here = len(re.findall(r"(?<!\\)\|", re.sub(r"`[^`]*`", "code", line)))
        if (cells and here != cells) or not line.rstrip().endswith("|"):
            found.append(line)
        cells = cells or here
    return found


def test_a_split_row_is_found() -> None:
    rows = ["| a | b |", "|---|---|", "| c `|` \\| | d |"]
    assert split_rows("\n".join([*rows, "", "text | of more"])) == []
    for wrong in ("| e |", "| e", "f | g |", "| e | f | | g | h |"):
        assert split_rows("\n".join([*rows, wrong])) == [wrong]


def test_pages_that_the_code_names_exist() -> None:
    listed = subprocess.run(
        ["git", "grep", "-hoIE", r"docs/[a-z0-9/_-]+\.md", "--", ":!*.md", ":!runs/sample"],
        cwd=PROJECT, text=True, capture_output=True, check=True,
    ).stdout.split()  # fmt: skip
    assert "docs/method/su3.md" in listed
    drawn = set(DRAWN)
    assert {name for name in listed if not (PROJECT / name).is_file()} - drawn == set()


def test_the_pages_link_each_other() -> None:
    readme = (PROJECT / "README.md").read_text()
    assert "docs/method/README.md" in links(readme)
    index = links((PROJECT / "docs/method/README.md").read_text())
    method = {one.name for one in (PROJECT / "docs/method").glob("*.md")} - {"README.md"}
    assert method <= set(index)


def test_a_link_to_nothing_is_found(tmp_path: Path) -> None:
    page = PROJECT / "docs/method/README.md"
    assert broken(page, "nowhere.md") == "no such file"
    assert broken(page, "verdicts.md#no-such-verdict") == "no such heading"
    assert broken(page, "../../../outside.md") == "no such file"
    assert broken(page, "verdicts.md#how-many-rounds") is None
    text = (
        "# A `name`: of *two*\n\n[a](b.md#c) [`d`](e%20f.md 'g')\n\n"
        "```\n[h](i.md)\n# no\n```\n`[j](k)`\n"
    )
    assert links(text) == ["b.md#c", "e%20f.md"]
    assert anchors(text + "# A name of two\n") == {"a-name-of-two", "a-name-of-two-1"}


def test_what_is_said_to_work_on_a_machine_is_shown_somewhere() -> None:
    """Every cell of the page on machines has its test, or the reason for none; tests are there."""
    page = (PROJECT / "docs/reference/machines.md").read_text()
    told, _, shown = page.partition("## How we know")
    rows = [line.strip("| ").split(" | ") for line in told.splitlines() if line.startswith("|")][2:]
    assert len(rows) > 10
    above = [""] * 7
    for row in rows:
        assert len(row) == 7, row
        for place, cell in enumerate(row[1:], 1):
            like = {"as above": above[place], "refused likewise": row[place - 1]}.get(cell, cell)
            if cell in ("as above", "refused likewise"):
                row[place] = like
            assert re.search(r"\[\d+\]", like) or like.startswith("as others"), (row[0], cell)
        above = row
    assert all(re.search(r"\[\d+\]", cell) for cell in rows[0][1:]), "the others are as these"
    reasons = dict(re.findall(r"(?m)^\| (\d+) \| (.+) \|$", shown))
    assert set(re.findall(r"\[(\d+)\]", told)) == set(reasons)
    for number, reason in reasons.items():
        file = None
        for path, name in re.findall(r"`(?:(tests/[\w/]+\.py)::)?(test_\w+)`", reason):
            file = PROJECT / path if path else file
            assert file, f"{number} does not say where {name} is"
            assert re.search(rf"(?m)^def {name}\(", file.read_text()), f"{number}: no {name}"
        assert "tests/" not in re.sub(r"`tests/[\w/]+\.py::test_\w+`", "", reason), number
        # What names none says why there is none.
        assert file or re.match("(it needs|there is none) ", reason), number
