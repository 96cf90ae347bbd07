"""The guidelines, as data (guidelines.yaml): what an operation should not take longer than.

Träff, Gropp and Thakur (IEEE TPDS 21(5), 2010): not longer than other operations with which a user
could do the same.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from records.yaml_text import from_yaml


class Term(BaseModel):
    """An operation, and its size for the same work as n bytes of another."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    operation: str
    bytes: Literal["n", "n * ranks", "n / ranks"]

    def size(self, n: int, ranks: int) -> int | None:
        """Return the size in bytes; None if n cannot be divided."""
        if self.bytes == "n / ranks":
            return n // ranks if n % ranks == 0 else None
        return n * ranks if self.bytes == "n * ranks" else n


class Guideline(BaseModel):
    """An operation takes at most as long as others together."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    operation: str
    at_most: Annotated[tuple[Term, ...], Field(min_length=1)]

    @property
    def name(self) -> str:
        """Return the guideline as it is written."""
        others = " + ".join(f"{term.operation}({term.bytes})" for term in self.at_most)
        return f"{self.operation}(n) <= {others}"


class BetweenSizes(BaseModel):
    """Which guidelines hold between sizes of one operation."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    monotone: bool
    split: bool


class Guidelines(BaseModel):
    """All guidelines (guidelines.yaml)."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    guidelines: tuple[Guideline, ...]
    every_operation: tuple[str, ...]
    between_sizes: BetweenSizes


@cache
def declared() -> Guidelines:
    """Return the guidelines of guidelines.yaml."""
    text = Path(__file__).with_name("guidelines.yaml").read_text()
    return Guidelines.model_validate(from_yaml(text))
