"""All pairs of nodes in one picture: how much longer each way takes than the typical one."""

from __future__ import annotations

from markupsafe import Markup, escape

from analysis.models.nodes.pairs import JudgedPairs, Measure, Pair

#: Of the picture, and of the margin for names, in px.
SIDE, MARGIN = 340.0, 90.0
#: Of more nodes, neighbours share a square, which shows the slowest way among them.
MOST_SQUARES = 64
#: So many names have room beside the squares.
MOST_NAMES = 24
#: The share of time beyond the typical that has the full colour, at least.
LEAST_FULL = 0.1


def pair_map(of: JudgedPairs, measure: Measure) -> Markup | None:
    """Return senders downwards and receivers to the right, both in the order of the topology."""
    times = of.times.get(measure)
    if times is None:
        return None
    usual = {way: times.typical(way) for way in times.seconds}
    middle = sorted(usual.values())[len(usual) // 2]
    each = -(-len(of.nodes) // MOST_SQUARES)
    squares: dict[Pair, tuple[float, Pair]] = {}
    for way, seconds in usual.items():
        slowest = (seconds / middle - 1, way)
        square = (way[0] // each, way[1] // each)
        squares[square] = max(squares.get(square, slowest), slowest)
    full = max(LEAST_FULL, max(more for more, _ in squares.values()))
    count = -(-len(of.nodes) // each)
    side = SIDE / count
    parts = [
        f'<rect class="frame" x="{MARGIN:.0f}" y="{MARGIN:.0f}" width="{SIDE:.0f}" '
        f'height="{SIDE:.0f}"/>'
    ]
    for (row, column), (more, way) in sorted(squares.items()):
        said = f"{of.nodes[way[0]]} to {of.nodes[way[1]]}: {more:+.1%} of the typical time"
        parts.append(
            f'<rect class="cell" x="{MARGIN + column * side:.2f}" y="{MARGIN + row * side:.2f}" '
            f'width="{side:.2f}" height="{side:.2f}" '
            f'fill-opacity="{0.04 + 0.7 * max(0.0, more) / full:.3f}">'
            f"<title>{escape(said)}</title></rect>"
        )
    for place in range(0, count, -(-count // MOST_NAMES)):
        name = escape(of.nodes[place * each][-12:])
        at = MARGIN + (place + 0.5) * side
        parts += [
            f'<text class="tick" x="{MARGIN - 5:.0f}" y="{at + 4:.1f}" text-anchor="end">{name}'
            "</text>",
            f'<text class="tick" text-anchor="start" transform="translate({at + 4:.1f} '
            f'{MARGIN - 5:.0f}) rotate(-90)">{name}</text>',
        ]
    size = MARGIN + SIDE + 10
    return Markup(
        f'<svg class="map" viewBox="0 0 {size:.0f} {size:.0f}" role="img" aria-label="'
        f"{measure} between all pairs of nodes; the darkest square takes {full:.0%} longer than "
        f'the typical one">{"".join(parts)}</svg>'
    )


def pair_maps(found: list[JudgedPairs]) -> list[tuple[str, Markup]]:
    """Return the pictures of both measures with their captions, pairs together before alone."""
    pictures = []
    for one in found:
        for measure in one.times:
            drawing = pair_map(one, measure)
            how = "all pairs at once" if one.together else "pairs alone"
            if drawing:
                pictures.append((f"{measure.capitalize()} between nodes, {how}", drawing))
    return pictures
