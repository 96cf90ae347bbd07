"""Figures of profiles as inline SVG: shares as bars, and who sends to whom as a matrix.

Drawn as analysis/figures/over_size.py draws: readable without scripts, in the reader's own colours.
"""

from __future__ import annotations

from collections import defaultdict

from markupsafe import Markup, escape

from analysis.models.profile import FunctionShare, ProfiledCell
from analysis.tables.units import prefixed

WIDTH = 460.0
LABEL, VALUE = 150.0, 58.0
BAR, GAP = 15.0, 7.0
MOST_BARS = 10
#: The matrix: room for the ranks' numbers, and how many ranks have their bytes written in.
MARGIN, SIDE = 40.0, 300.0
MOST_WRITTEN = 8
MOST_NUMBERED = 16
#: More ranks than that are drawn in as many blocks of neighbours.
MOST_BLOCKS = 32


def _svg(height: float, title: str, text: str, parts: list[str]) -> Markup:
    return Markup(
        f'<svg viewBox="0 0 {WIDTH:.0f} {height:.0f}" role="img">'
        f"<title>{escape(title)}</title><desc>{escape(text)}</desc>{''.join(parts)}</svg>"
    )


def share_figure(cell: ProfiledCell) -> Markup:
    """Return the functions' shares of the time inside MPI as bars (Kearns 2003, Figure 14)."""
    functions = cell.functions
    rows = [(one.function, one.share_of_mpi, one) for one in functions[:MOST_BARS]]
    rest = functions[MOST_BARS:]
    bars: list[tuple[str, float, FunctionShare | None]] = list(rows)
    if rest:
        bars.append((f"{len(rest)} others", sum(one.share_of_mpi for one in rest), None))
    longest = max((share for _, share, _ in bars), default=0.0) or 1.0
    room = WIDTH - LABEL - VALUE
    parts = []
    for number, (name, share, one) in enumerate(bars):
        y = number * (BAR + GAP) + GAP
        told = (
            f"{name}: {one.calls} calls, {prefixed(one.time_s, 's')}, "
            f"{one.share_of_wall:.1%} of the ranks' time"
            if one
            else name
        )
        parts.append(
            f'<text class="tick" x="{LABEL - 6:.0f}" y="{y + 11:.1f}" text-anchor="end">'
            f"{escape(name)}</text>"
            f'<rect class="bar" x="{LABEL:.0f}" y="{y:.1f}" width="{room * share / longest:.1f}" '
            f'height="{BAR:.0f}"><title>{escape(told)}</title></rect>'
            f'<text class="tick" x="{LABEL + room * share / longest + 5:.1f}" y="{y + 11:.1f}">'
            f"{share:.1%}</text>"
        )
    text = "; ".join(f"{name} {share:.1%}" for name, share, _ in bars)
    height = len(bars) * (BAR + GAP) + GAP
    title = f"Share of the time inside MPI by function, {cell.title}"
    return _svg(height, title, text, [f'<g class="style0">{"".join(parts)}</g>'])


def in_blocks(matrix: dict[tuple[int, int], int], each: int) -> dict[tuple[int, int], int]:
    """Return the bytes between blocks of `each` neighbouring ranks, by the blocks' numbers."""
    blocks: dict[tuple[int, int], int] = defaultdict(int)
    for (from_, to), size in matrix.items():
        blocks[from_ // each, to // each] += size
    return dict(blocks)


def matrix_figure(cell: ProfiledCell) -> Markup:
    """Return who sends how many bytes to whom: senders downwards, receivers to the right.

    Of many ranks blocks of neighbours are drawn, of a profile by node nodes in place of ranks.
    """
    whose = "node" if cell.profiles[0].is_by_node else "rank"
    ranks = len(cell.profiles[0].ranks)
    matrix = cell.matrix()
    each = -(-ranks // MOST_BLOCKS)
    blocks = in_blocks(matrix, each)
    largest = max(blocks.values(), default=0) or 1
    side = SIDE / ranks
    parts = [
        f'<rect class="frame" x="{MARGIN:.0f}" y="{MARGIN:.0f}" width="{SIDE:.0f}" '
        f'height="{SIDE:.0f}"/>'
    ]
    for (row, column), size in sorted(blocks.items()):
        x, y = MARGIN + column * each * side, MARGIN + row * each * side
        # The last block may have fewer ranks.
        wide, high = (side * min(each, ranks - place * each) for place in (column, row))
        from_, to = (
            str(place) if each == 1 else f"{place * each}-{min((place + 1) * each, ranks) - 1}"
            for place in (row, column)
        )
        parts.append(
            f'<rect class="cell" x="{x:.2f}" y="{y:.2f}" width="{wide:.2f}" height="{high:.2f}" '
            f'fill-opacity="{0.04 + 0.5 * size / largest:.3f}">'
            f"<title>{whose} {from_} to {whose} {to}: {prefixed(size, 'B')}</title></rect>"
        )
        if ranks <= MOST_WRITTEN:
            parts.append(
                f'<text class="inside" x="{x + side / 2:.1f}" y="{y + side / 2 + 4:.1f}" '
                f'text-anchor="middle">{prefixed(size, "B")}</text>'
            )
    step = -(-ranks // MOST_NUMBERED)
    for rank in range(0, ranks, step):
        middle = MARGIN + (rank + 0.5) * side
        parts.append(
            f'<text class="tick" x="{middle:.1f}" y="{MARGIN - 5:.0f}" text-anchor="middle">{rank}'
            f'</text><text class="tick" x="{MARGIN - 6:.0f}" y="{middle + 4:.1f}" '
            f'text-anchor="end">{rank}</text>'
        )
    beside = MARGIN + SIDE + 8
    axes = ["rows send,", "columns receive"] + ([f"in blocks of {each}"] if each > 1 else [])
    parts += [
        f'<text class="axis" x="{beside:.0f}" y="{MARGIN + 12 + 15 * line:.0f}">{words}</text>'
        for line, words in enumerate(axes)
    ]
    text = f"{prefixed(sum(matrix.values()), 'B')} in all; "
    busiest = sorted(matrix.items(), key=lambda item: (-item[1], item[0]))[:10]
    text += "; ".join(f"{whose} {a} to {b}: {prefixed(size, 'B')}" for (a, b), size in busiest)
    title = f"Bytes from {whose} to {whose}, {cell.title}"
    return _svg(MARGIN + SIDE + 6, title, text, [f'<g class="style0">{"".join(parts)}</g>'])
