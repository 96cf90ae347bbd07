"""Tables for other programs: CSV and LaTeX.

Names of cells and sentences of failed launches come from outside: in each format they are escaped
so that they can be nothing but text.
"""

from __future__ import annotations

import csv
import io
import re

from analysis.campaign import Campaign
from analysis.data_tables import DataTable

#: What no text format may hold: control characters but tab and newline, and what is no character.
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
#: What a spreadsheet takes for a formula: these, but for a number with its sign.
FORMULA = re.compile(r"[=@\t\r]|[+-](?![\d.])")


def plain(text: object) -> str:
    """Return a value as text without control characters."""
    return CONTROL.sub("", "" if text is None else str(text))


def csv_field(value: object) -> object:
    """Return a value as CSV has it: numbers in full, no text that a spreadsheet would run."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float)):
        return repr(value)
    text = plain(value)
    return f"'{text}" if FORMULA.match(text) else text


def csv_text(table: DataTable) -> str:
    """Return a table as CSV (RFC 4180), the first line the headers."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(table.columns)
    writer.writerows([csv_field(value) for value in row] for row in table.rows)
    return out.getvalue()


LATEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "%": r"\%",
    "#": r"\#", "_": r"\_", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\textquotedbl{}",
    "–": "--", "µ": r"\textmu{}", "\u00d7": r"$\times$",
    "\n": " ", "\t": " ", "`": r"\textasciigrave{}",
}  # fmt: skip


def latex_cell(value: object) -> str:
    """Return a value as LaTeX text: every sign that LaTeX would act on is escaped."""
    if isinstance(value, float):
        value = f"{value:.4g}"
    return "".join(LATEX.get(sign, sign) for sign in plain(value))


def latex_table(title: str, columns: tuple[str, ...], rows: list[tuple[object, ...]]) -> str:
    """Return a table in the manner of booktabs, which breaks over pages by longtable."""
    numbers = [
        all(isinstance(row[place], (int, float, type(None))) for row in rows)
        for place in range(len(columns))
    ]
    head = " & ".join(map(latex_cell, columns)) + r" \\"
    body = [" & ".join(map(latex_cell, row)) + r" \\" for row in rows]
    return "\n".join([
        f"\\begin{{longtable}}{{{''.join('r' if number else 'l' for number in numbers)}}}",
        f"\\caption{{{latex_cell(title)}}}\\\\", r"\toprule", head, r"\midrule", r"\endhead",
        *body, r"\bottomrule", r"\end{longtable}", "",
    ])  # fmt: skip


#: What makes a row traceable and a page too wide: it stands once, below the tables.
TRACE = ("campaign", "image_sha256", "base_image_sha256", "formula")


def latex(tables: list[DataTable], campaign: Campaign) -> str:
    """Return all tables for LaTeX; what the rows come from stands at the end."""
    parts = [r"% \usepackage[T1]{fontenc}, \usepackage{textcomp,booktabs,longtable}", ""]
    for table in tables:
        if table.name in ("launches", "left-out"):
            continue
        kept = [place for place, name in enumerate(table.columns) if name not in TRACE]
        columns = tuple(table.columns[place] for place in kept)
        rows = [tuple(row[place] for place in kept) for row in table.rows]
        parts.append(latex_table(table.title, columns, rows))
    images = ", ".join(
        f"{latex_cell(name)}: sha256 {latex_cell(image.get('sha256'))}"
        for name, image in campaign.manifest["images"].items()
    )
    parts.append(f"Campaign {latex_cell(campaign.path.name)}; images: {images}.\n")
    return "\n".join(parts)
