"""Curves of what commands cost over the size of their work: SVG files that stand by themselves."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from markupsafe import escape

from analysis.figures.axes import HEIGHT, WIDTH
from analysis.figures.lines import Line, Point, legend_mark, line_figure
from tests.analysis.support.costs import Cost

#: What a page's style sheet says of figures, in colours for light and dark pages.
STYLE = """
svg { color-scheme: light dark; }
text { font: 11px system-ui, sans-serif; fill: #777; }
.grid { stroke: #8884; stroke-width: .7; fill: none; }
.line { fill: none; stroke: currentColor; stroke-width: 1.7; }
.mark { fill: none; stroke: currentColor; stroke-width: 1.5; }
.style0 { color: #2b82c4; } .style1 { color: #d1541e; } .style2 { color: #239a74; }
.style3 { color: #ab5aaf; } .style4 { color: #9a8020; } .style5 { color: #7a7a7a; }
"""
LINE_OF_LEGEND = 16


def write_curves(path: Path, axis: str, found: Mapping[str, Mapping[int, Sequence[Cost]]]) -> None:
    """Write the processors' time of each command over the sizes of an axis, all repetitions."""
    lines = []
    for style, (name, of) in enumerate(found.items()):
        points = []
        for size, costs in sorted(of.items()):
            seconds = sorted(cost.cpu_s for cost in costs)
            points.append(Point(size, seconds[len(seconds) // 2], seconds[0], seconds[-1]))
        lines.append(Line(name, style, points))
    title = f"processors' time (s) over {axis}"
    figure = line_figure(title, lines, f"{axis} (processors' time in s)")
    legend = ""
    for number, name in enumerate(found):
        x, y = 70 + 190 * (number % 2), HEIGHT + 4 + LINE_OF_LEGEND * (number // 2)
        legend += (
            f'<g transform="translate({x},{y:.0f})">{sized(legend_mark(number), 28, 14)}'
            f'<text x="34" y="11">{escape(name)}</text></g>'
        )
    height = HEIGHT + 8 + LINE_OF_LEGEND * -(-len(found) // 2)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH:.0f} {height:.0f}">'
        f"<style>{STYLE}</style>{sized(figure, WIDTH, HEIGHT)}{legend}</svg>\n"
    )


def sized(drawing: str, width: float, height: float) -> str:
    """Return a drawing with its size, which it has from nothing else within another one."""
    # As text: markup would escape what is put in.
    return str(drawing).replace("<svg ", f'<svg width="{width:.0f}" height="{height:.0f}" ', 1)
