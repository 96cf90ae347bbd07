"""What does not fit into the nodes' memory, known before a launch that the system would kill."""

from __future__ import annotations

#: What hpl_dat allows too: the rest is for the system, MPI's buffers and HPL's own panels.
LARGEST_SHARE = 0.8


def too_large(
    what: str, purpose: str, needed_bytes: float, nodes: int, memory_bytes_per_node: float
) -> str | None:
    """Say so, with the numbers, where something needs more than the share of the nodes' memory."""
    room = LARGEST_SHARE * nodes * memory_bytes_per_node
    if needed_bytes <= room:
        return None
    return (
        f"{what} needs {needed_bytes / 1e9:.2f} GB for {purpose}, and {100 * LARGEST_SHARE:.0f}% "
        f"of the memory of {nodes} node(s) is {room / 1e9:.2f} GB; it is left out"
    )
