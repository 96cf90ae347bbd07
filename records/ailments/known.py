"""An ailment that is known by what was printed."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Known:
    """A cause that is known by what was said, and what to say of it.

    `examples` are what kernels, launchers and Apptainer say of it, and `source` is where that, or
    what helps, is explained. Some is also said where nothing fails: it `may_be_harmless`, and is no
    cause where a program gives its own.
    """

    said: re.Pattern[str]
    sentence: str
    examples: tuple[str, ...]
    source: str
    may_be_harmless: bool = False
