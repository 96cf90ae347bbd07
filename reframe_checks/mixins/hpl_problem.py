"""HPL's grid, problem size and block sizes from a site's cores and memory, by rule.

The rules are the usual ones (HPL's own notes on tuning): the grid as square as the ranks allow with
P <= Q, the matrix of 8 N^2 bytes as large as a share of the memory, N a multiple of the block size
NB, and NB a small multiple of what the BLAS works on at once, between 32 and 256.
"""

from __future__ import annotations

import math

from reframe_checks.mixins import node_memory

#: Bytes of an entry of the matrix.
ENTRY = 8
#: The block sizes that are tried; the usual one is used unless the site names another.
BLOCK_SIZES = (64, 128, 192, 256)
USUAL_BLOCK_SIZE = 192
#: Block sizes are compared at this part of N, which takes 1/64 of the time.
PART_OF_SEARCH = 4


def grid_of(ranks: int) -> tuple[int, int]:
    """Return P and Q with P <= Q and P Q = ranks, as close to a square as there is."""
    if ranks < 1:
        raise ValueError(f"{ranks} ranks do not form a grid")
    rows = next(p for p in range(math.isqrt(ranks), 0, -1) if ranks % p == 0)
    return rows, ranks // rows


def largest_order(memory_bytes: float, share: float, block_size: int) -> int:
    """Return the largest N, a multiple of a block size, whose matrix fits; 0 if none does."""
    room = int(memory_bytes * share) // ENTRY
    return math.isqrt(room) // block_size * block_size


def order_of_search(order: int) -> int:
    """Return the N at which block sizes are compared: a multiple of every one of them, or 0."""
    every = math.lcm(*BLOCK_SIZES)
    return order // PART_OF_SEARCH // every * every


def too_large(order: int, nodes: int, memory_bytes_per_node: float) -> str | None:
    """Return a sentence if a matrix does not fit into the nodes' memory."""
    sentence = node_memory.too_large(
        f"N={order}", "the matrix", ENTRY * order**2, nodes, memory_bytes_per_node
    )
    return f"{sentence} as in the thesis, section 4.1.1" if sentence else None
