"""The sample campaign's numbers, as CSV had them before tables had typed columns.

Of each table its numbers in full, and the words where a table had words; no digests and formulas,
and nothing that depends on how verdicts are corrected.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import TypedDict

FILE = Path(__file__).parent / "sample_numbers.json.gz"


class Golden(TypedDict):
    """A table: `words` where its numbers were for people; a field is as CSV had it."""

    words: bool
    columns: list[str]
    rows: list[list[str]]


def golden() -> dict[str, Golden]:
    """Return the tables by name."""
    found: dict[str, Golden] = json.loads(gzip.decompress(FILE.read_bytes()))
    return found
