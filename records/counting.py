"""How many of something there are, in words: 1 run, 2 runs."""


def how_many(count: int, one: str, more: str = "") -> str:
    """Return a number with what it counts; `more` where an s does not make several of it."""
    return f"{count:,} {one if count == 1 else more or f'{one}s'}"
