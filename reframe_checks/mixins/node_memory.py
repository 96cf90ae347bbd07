"""Find out what does not fit into the nodes' memory before the system kills a launch for it."""

from __future__ import annotations

from records.counting import how_many

#: hpl_dat has the same limit: the rest is for the system, MPI's buffers and HPL's own panels.
LARGEST_SHARE = 0.8


def too_large(
    what: str, purpose: str, needed_bytes: float, nodes: int, memory_bytes_per_node: float
) -> str | None:
    """Return a sentence, with numbers, if something needs more than that share of the memory."""
    room = LARGEST_SHARE * nodes * memory_bytes_per_node
    if needed_bytes <= room:
        return None
    return (
        f"{what} needs {needed_bytes / 1e9:.2f} GB for {purpose}, but {100 * LARGEST_SHARE:.0f}% "
        f"of the memory of {how_many(nodes, 'node')} is {room / 1e9:.2f} GB; it is left out"
    )
