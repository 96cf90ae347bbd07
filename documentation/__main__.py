"""`python -m documentation`: build the site of the documentation, or say what is wrong in it.

The pages are gathered, and those that are drawn from the code are added, in a folder of their own;
mkdocs makes the site of them. It is strict: a link to nothing or a page that no menu leads to ends
it with a sentence. The site needs no server and no network.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from documentation.pages import SETTINGS, gather
from records import layout
from records.command_words import CommandWords

ROOT = Path(os.environ.get("WYEAST_ROOT", Path(__file__).resolve().parents[1]))
#: Where the Makefile installs mkdocs: its packages are none of ours.
MKDOCS = Path(".wyeast") / "tools" / "bin" / "mkdocs"

#: What a site that was built here has, so that no other folder is replaced.
MARK = ".wyeast-docs"
DEFAULT = layout.state(ROOT) / "docs"
#: It takes seconds.
PATIENCE_S = 600


def build(root: Path, site: Path) -> str | None:
    """Build the site into a folder, which it replaces; return what is wrong, or None."""
    program = root / MKDOCS
    if not program.is_file():
        return f"{MKDOCS} is not installed: make docs installs it"
    if refused := why_kept(site, site == DEFAULT):
        return refused
    try:
        site.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        return f"{site} cannot be written: {error.filename}: {error.strerror}"
    try:
        # Before the pages are made, which takes long.
        with tempfile.TemporaryDirectory(prefix=".wyeast-docs-", dir=site.parent):
            pass
    except OSError as error:
        return f"{site} cannot be written: {error.strerror}"
    with tempfile.TemporaryDirectory(prefix="wyeast-docs-") as scratch:
        pages, made, settings = (Path(scratch) / name for name in ("pages", "site", "mkdocs.yml"))
        gather(root, pages)
        settings.write_text(f"INHERIT: {root / SETTINGS}\ndocs_dir: {pages}\nsite_dir: {made}\n")
        done = subprocess.run(
            [program, "build", "--strict", "--config-file", settings],
            capture_output=True, text=True, check=False, timeout=PATIENCE_S,
            env={**os.environ, "NO_MKDOCS_2_WARNING": "true"},
        )  # fmt: skip
        if done.returncode:
            return (done.stderr + done.stdout).replace(f"{pages}/", "").strip()
        (made / MARK).touch()
        try:
            shutil.rmtree(site, ignore_errors=True)
            shutil.copytree(made, site)
        except (OSError, shutil.Error) as error:
            return f"{site} cannot be written: {getattr(error, 'strerror', None) or error}"
    return None


def why_kept(site: Path, is_ours: bool) -> str | None:
    """Return why a place is not replaced by a site: it has what is no site; None if it may be."""
    if not site.is_dir():
        return f"{site} is a file; name a folder with OUT=" if site.exists() else None
    try:
        is_empty = not any(site.iterdir())
    except OSError as error:
        return f"{site} cannot be read: {error.strerror}"
    if is_empty or is_ours or (site / MARK).is_file():
        return None
    return f"{site} has other files, which a site would replace; name a new or empty folder"


def arguments(words: list[str] | None = None) -> argparse.Namespace:
    """Return the parsed command line."""
    parser = CommandWords(
        prog="python -m documentation", description="Build the site of the documentation."
    )
    parser.add_argument(
        "--out", type=layout.meant, default=DEFAULT, help="the folder (%(default)s)"
    )
    return parser.parse_args(words)


def main() -> int:
    """Build the site; return the exit code."""
    options = arguments()
    wrong = build(ROOT, options.out)
    if wrong:
        print(f"docs: {wrong}", file=sys.stderr)
        return 1
    print(f"docs: {options.out / 'index.html'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
