"""Curves of what commands cost over the size of their work, and the numbers that they show.

A folder has the seconds of each command, size and repetition in one file, and of each axis an SVG
file that stands by itself. `python -m tests.analysis.support.curves <folder>` draws them again.
"""

import csv
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from markupsafe import escape

from analysis.figures.axes import HEIGHT, WIDTH
from analysis.figures.lines import Line, Point, legend_mark, line_figure

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
FILE = "measured.csv"
FIELDS = ("axis", "size", "command", "processors_s")
#: The processors' seconds of the repetitions of each command, by size.
Seconds = Mapping[str, Mapping[int, Sequence[float]]]


def kept(folder: Path) -> dict[str, dict[str, dict[int, list[float]]]]:
    """Return what a folder has of each axis; nothing where it has no file."""
    found: dict[str, dict[str, dict[int, list[float]]]] = {}
    if not (folder / FILE).exists():
        return found
    with (folder / FILE).open(newline="") as file:
        for row in csv.DictReader(file):
            of_axis = found.setdefault(row["axis"], {})
            of_size = of_axis.setdefault(row["command"], {})
            of_size.setdefault(int(row["size"]), []).append(float(row["processors_s"]))
    return found


def keep(folder: Path, axis: str, seconds: Seconds) -> None:
    """Put what was measured of an axis in the place of what a folder has of it, and draw it."""
    every: dict[str, Seconds] = {**kept(folder), axis: seconds}
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / FILE).open("w", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(FIELDS)
        for name, of_axis in every.items():
            for command, of_command in of_axis.items():
                for size, repetitions in sorted(of_command.items()):
                    rows.writerows([name, size, command, f"{one:.2f}"] for one in repetitions)
    draw(folder, folder)


def draw(folder: Path, target: Path) -> None:
    """Draw all that a folder has, each axis as a file of its own."""
    for axis, seconds in kept(folder).items():
        (target / f"{axis}.svg").write_text(curves_of(axis, seconds))


def curves_of(axis: str, seconds: Seconds) -> str:
    """Return the drawing of each command's time over the sizes of an axis, all repetitions."""
    lines = []
    for style, (name, of) in enumerate(seconds.items()):
        points = []
        for size, repetitions in sorted(of.items()):
            ordered = sorted(repetitions)
            points.append(Point(size, ordered[len(ordered) // 2], ordered[0], ordered[-1]))
        lines.append(Line(name, style, points))
    title = f"processors' time (s) over {axis}"
    figure = line_figure(title, lines, f"{axis} (processors' time in s)")
    legend = ""
    for number, name in enumerate(seconds):
        x, y = 70 + 190 * (number % 2), HEIGHT + 4 + LINE_OF_LEGEND * (number // 2)
        legend += (
            f'<g transform="translate({x},{y:.0f})">{sized(legend_mark(number), 28, 14)}'
            f'<text x="34" y="11">{escape(name)}</text></g>'
        )
    height = HEIGHT + 8 + LINE_OF_LEGEND * -(-len(seconds) // 2)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH:.0f} {height:.0f}">'
        f"<style>{STYLE}</style>{sized(figure, WIDTH, HEIGHT)}{legend}</svg>\n"
    )


def sized(drawing: str, width: float, height: float) -> str:
    """Return a drawing with its size, which it has from nothing else within another one."""
    # As text: markup would escape what is put in.
    return str(drawing).replace("<svg ", f'<svg width="{width:.0f}" height="{height:.0f}" ', 1)


if __name__ == "__main__":
    draw(Path(sys.argv[1]), Path(sys.argv[1]))
