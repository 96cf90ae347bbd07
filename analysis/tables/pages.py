"""How pages are rendered: what is put into them is escaped, and runs nothing.

A page's own style and script are allowed by their digests, which are those of the templates: what
others may have put into a page has another one, and no browser takes it for a style or script.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import jinja2


def digest_for_policy(text: str) -> str:
    """Return a text's digest as a Content Security Policy has it."""
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


#: The page that all share.
SHARED = Path(__file__).parent / "templates"


@cache
def page_environment(module: str, **filters: Callable[..., Any]) -> jinja2.Environment:
    """Return the environment in which the pages of a module are rendered, from the file that it is.

    Its templates are in a folder beside it; they extend the page that all share. What is Markdown
    is not escaped: it has a filter for that. A process has one for a module, since compiling the
    templates takes longer than most pages do.
    """
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader([Path(module).parent / "templates", SHARED]),
        autoescape=lambda name: not (name and name.endswith(".md")),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(filters, digest_for_policy=digest_for_policy)
    return environment
