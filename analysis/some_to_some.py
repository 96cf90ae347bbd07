"""The messages that a sparse random exchange has (benchmarks/some_to_some), by its seed alone."""

from __future__ import annotations

from collections.abc import Callable

from analysis.link_limits import Message

BITS = 2**64 - 1


def numbers_below(seed: int) -> Callable[[int], int]:
    """Return a source of whole numbers from 0 to below a limit, each equally likely.

    SplitMix64 of Steele, Lea and Flood (2014); what would favour the small numbers is dropped.
    """
    state = seed

    def below(limit: int) -> int:
        nonlocal state
        while True:
            state = (state + 0x9E3779B97F4A7C15) & BITS
            number = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & BITS
            number = ((number ^ (number >> 27)) * 0x94D049BB133111EB) & BITS
            number ^= number >> 31
            if number < BITS - BITS % limit:
                return number % limit

    return below


def drawn_messages(
    seed: int, ranks: int, messages: int, most_bytes: int, *, double: bool
) -> list[Message]:
    """Return the messages of an exchange; `messages` are those that a rank sends on average.

    Sizes are from 0 to `most_bytes`. With `double` every pair also has one the other way.
    """
    below = numbers_below(seed)
    drawn = []
    for _ in range(ranks * messages):
        source, destination = below(ranks), below(ranks - 1)
        destination += destination >= source
        drawn.append(Message(source, destination, below(most_bytes + 1)))
    if double:
        drawn += [Message(m.destination, m.source, below(most_bytes + 1)) for m in list(drawn)]
    return drawn
