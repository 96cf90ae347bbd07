"""The pages of the site: those of the repository in their places, and those drawn from the code."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from documentation import command_line, formats, sentences, targets

THEME = Path("documentation") / "theme"
SETTINGS = Path("documentation") / "mkdocs.yml"
#: Pages that code fills in are no pages yet.
TEMPLATES = re.compile(r"(?:^|/)templates/")
#: What pages show or link that is no page.
SHOWN = re.compile(r"\]\(<?([^()\s>#]+)|<img[^>]* src=\"([^\"]+)\"")
LIST = re.compile(r"[-*] |\d+\. ")
#: Pages drawn from the code, each by its place and by what draws it.
DRAWN = {
    "docs/reference/make.md": targets.page,
    "docs/reference/command-line.md": command_line.page,
    "docs/reference/site-keys.md": formats.site_keys,
    "docs/reference/records.md": formats.records,
    "docs/troubleshooting.md": sentences.troubleshooting,
    "docs/refusals.md": sentences.refusals,
}


def listed(root: Path) -> list[str]:
    """Return the names of the repository's pages, with those that are not committed yet."""
    said = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
        cwd=root, text=True, capture_output=True, check=True, timeout=60,
    ).stdout.splitlines()  # fmt: skip
    return [name for name in said if not TEMPLATES.search(name) and (root / name).is_file()]


def gather(root: Path, pages: Path) -> None:
    """Write all pages, and what they show, into a folder; links between them hold as they are."""
    texts = {name: (root / name).read_text() for name in listed(root)}
    texts |= {name: draw(root) for name, draw in DRAWN.items()}
    for name, text in texts.items():
        place = pages / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(with_lists(text))
        for shown in files_of(text):
            file = Path(os.path.normpath(root / name / ".." / shown))
            if file.is_relative_to(root) and file.is_file() and file.suffix != ".md":
                copied = pages / file.relative_to(root)
                copied.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, copied)
    shutil.copytree(root / THEME, pages / "theme")


def files_of(text: str) -> list[str]:
    """Return what a page links or shows, without addresses."""
    found = [link or picture for link, picture in SHOWN.findall(text)]
    return [name for name in found if not re.match(r"[a-z]+:", name)]


def with_lists(text: str) -> str:
    """Return a page with an empty line before each list that continues a paragraph.

    GitHub and GitLab need none there, and mkdocs would take the list for words.
    """
    lines: list[str] = []
    fence = ""
    for line in text.splitlines():
        mark = re.match(r"\s*(`{3,}|~{3,})", line)
        if mark and (not fence or mark[1].startswith(fence)):
            fence = "" if fence else mark[1]
        before = lines[-1] if lines else ""
        if (
            not fence and LIST.match(line) and before.strip()
            and not LIST.match(before) and not before.startswith((" ", "#", "|"))
        ):  # fmt: skip
            lines.append("")
        lines.append(line)
    return "\n".join(lines) + "\n"
