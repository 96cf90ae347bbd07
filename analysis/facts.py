"""Facts of a machine in words: what manifests have as numbers, names and objects of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def fact_text(fact: object) -> str:
    """Return a fact for people, one of several named facts too."""
    if isinstance(fact, Mapping):
        return ", ".join(
            f"{str(name).replace('_', ' ')} ({fact_text(inner)})" if isinstance(inner, Mapping)
            else f"{str(name).replace('_', ' ')} {fact_text(inner)}"
            for name, inner in fact.items()
        )  # fmt: skip
    if isinstance(fact, list | tuple):
        return ", ".join(map(fact_text, fact))
    return "not known" if fact is None else str(fact)


def differing(facts: Sequence[object]) -> str:
    """Return what nodes differ in, each value once in words; those of many words by semicolons."""
    between = "; " if any(isinstance(fact, Mapping | list) for fact in facts) else ", "
    return between.join(sorted(set(map(fact_text, facts))))
