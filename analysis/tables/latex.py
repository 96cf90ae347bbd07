"""Tables for other programs: CSV and LaTeX.

Names of cells and sentences of failed launches come from outside: in each format they are escaped
so that they can be nothing but text.
"""

from __future__ import annotations

import re

from analysis.tables.csv import plain
from analysis.tables.table import NOTHING, Table
from records.campaign import Campaign
from records.terminal_encoding import plain as in_ascii

LATEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "%": r"\%",
    "#": r"\#", "_": r"\_", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\textquotedbl{}",
    "–": "--", "µ": r"\textmu{}", "\u00d7": r"$\times$",
    "\n": " ", "\t": " ", "`": r"\textasciigrave{}",
}  # fmt: skip


#: Letters below, of Europe's languages, are in fonts of the encoding T1.
END_OF_T1 = 0x180
DIGEST_BREAKS = re.compile(r"[0-9a-f]{8}(?=[0-9a-f]{8})")
BREAKS = re.compile(r"(?<=\w)(?:[=/]|\\_)(?=\w)")


def latex_value(value: object) -> str:
    """Return a value in words, a number with four digits."""
    return f"{value:.4g}" if isinstance(value, float) else plain(value)


def latex_cell(value: object) -> str:
    """Return a value as LaTeX text: every sign that LaTeX would act on is escaped."""
    found = "".join(map(_latex_sign, latex_value(value)))
    # Names of cells have no spaces where a line could end, and digests none.
    return DIGEST_BREAKS.sub(r"\g<0>\\allowbreak{}", BREAKS.sub(r"\g<0>\\allowbreak{}", found))


def _latex_sign(sign: str) -> str:
    """Return a sign as LaTeX sets it; one that its T1 fonts lack by one that reads alike."""
    if sign in LATEX:
        return LATEX[sign]
    if sign.isascii() or (sign.isalpha() and ord(sign) < END_OF_T1):
        return sign
    return "".join(LATEX.get(one, one) for one in in_ascii(sign))


#: How many characters at \\footnotesize go into a line of an article's page, upright and turned.
UPRIGHT_WIDTH = 66
TURNED_WIDTH = 104
#: A table that breaks over pages is in no document of two columns: these lines leave them for it.
ONE_COLUMN = (
    r"\makeatletter\if@twocolumn\onecolumn\let\wyeastcolumns\twocolumn"
    r"\else\let\wyeastcolumns\relax\fi\makeatother"
)
COLUMNS_AS_BEFORE = r"\wyeastcolumns"
#: A column of words is not made narrower than that.
NARROWEST = 12


def without_constants(
    title: str, columns: tuple[str, ...], rows: list[tuple[object, ...]]
) -> tuple[str, tuple[str, ...], list[tuple[object, ...]]]:
    """Return a table whose columns of one value stand in its title, where that says something.

    So does the word that every text of the first column begins with.
    """
    if len(rows) < 2:
        # What is empty, or a word that the title has, is as much as nothing.
        filled = [
            place for row in rows for place, value in enumerate(row)
            if not place or not (
                value is None or value is False or (isinstance(value, str) and value in title)
            )
        ]  # fmt: skip
        kept = filled if rows else list(range(len(columns)))
        few = [tuple(row[place] for place in kept) for row in rows]
        return title, tuple(columns[place] for place in kept), few
    constant = [len({row[place] for row in rows}) == 1 for place in range(len(columns))]
    said = [
        f"{name.removesuffix(' (1)')} {latex_value(value)}"
        for name, value, same in zip(columns, rows[0], constant, strict=True)
        if same and value not in ("", None, False)
    ]
    kept = [place for place, same in enumerate(constant) if not same]
    rows = [tuple(row[place] for place in kept) for row in rows]
    first = f"{rows[0][0]}".partition(" ")[0] if kept else ""
    same = all(f"{row[0]}".startswith(f"{first} ") for row in rows)
    if first and title.startswith(first) and same:
        rows = [(f"{row[0]}".removeprefix(f"{first} "), *row[1:]) for row in rows]
    return "; ".join([title, *said]), tuple(columns[place] for place in kept), rows


def head_lines(name: str) -> list[str]:
    """Return a column's name in lines of a word each; a unit of 1 is none."""
    return name.removesuffix(" (1)").replace("_", " ").split() or [""]


def column_widths(columns: tuple[str, ...], rows: list[tuple[object, ...]]) -> list[int]:
    """Return how wide each column is in characters, with the space between two."""
    return [
        2 + max(len(word) for word in [*head_lines(name), *(latex_value(row[i]) for row in rows)])
        for i, name in enumerate(columns)
    ]


def narrowed(widths: list[int], words: list[bool], most: int) -> list[int]:
    """Return the widths with those of words made narrower, the widest first, until they fit."""
    found = list(widths)
    while sum(found) > most:
        widest = max(
            (place for place, is_words in enumerate(words) if is_words),
            key=lambda place: found[place], default=None,
        )  # fmt: skip
        if widest is None or found[widest] <= NARROWEST:
            break
        found[widest] -= 1
    return found


def latex_table(title: str, columns: tuple[str, ...], rows: list[tuple[object, ...]]) -> str:
    """Return a table in the manner of booktabs, which breaks over pages by longtable.

    One that is too wide for a page is turned, and has its words in lines of several.
    """
    title, columns, rows = without_constants(title, columns, rows)
    numbers = [
        all(isinstance(row[place], (int, float, type(None))) for row in rows)
        for place in range(len(columns))
    ]
    cells = [tuple(map(latex_cell, row)) for row in rows]
    widths = column_widths(columns, rows)
    turned = sum(widths) > UPRIGHT_WIDTH
    fitting = narrowed(widths, [not number for number in numbers], TURNED_WIDTH)
    kinds = [
        "r" if number else "l" if width == natural
        else f">{{\\raggedright\\arraybackslash}}p{{{(width - 2) / TURNED_WIDTH:.3f}\\linewidth}}"
        for number, width, natural in zip(numbers, fitting, widths, strict=True)
    ]  # fmt: skip
    head = " & ".join(
        rf"\shortstack[{'r' if number else 'l'}]{{"
        + r"\\".join(map(latex_cell, head_lines(name))) + "}"
        for name, number in zip(columns, numbers, strict=True)
    ) + r" \\"  # fmt: skip
    body = [" & ".join(row) + r" \\" for row in cells]
    around = ("landscape",) if turned else ()
    return "\n".join([
        ONE_COLUMN, *(f"\\begin{{{name}}}" for name in around),
        r"{\footnotesize\setlength{\tabcolsep}{3pt}\setlength{\LTcapwidth}{\linewidth}",
        f"\\begin{{longtable}}{{{''.join(kinds)}}}",
        f"\\caption{{{latex_cell(title)}}}\\\\", r"\toprule", head, r"\midrule", r"\endfirsthead",
        r"\toprule", head, r"\midrule", r"\endhead",
        *body, r"\bottomrule", r"\end{longtable}", "}",
        *(f"\\end{{{name}}}" for name in around), COLUMNS_AS_BEFORE, "",
    ])  # fmt: skip


#: Columns that make a row traceable and a page too wide: titles and groups name the experiment,
#: and campaign and images are printed once, below the tables.
TRACE = ("campaign", "experiment", "cell_names", "image_sha256", "base_image_sha256",
         "launch_names", "base_launch_names", "formula")  # fmt: skip


def named(table: Table) -> tuple[str, ...]:
    """Return the headings; of two alike the first is named after the column before it."""
    heads = [column.heading or "" for column in table.shown]
    for place, head in enumerate(heads):
        if heads.count(head) > 1 and place:
            heads[place] = f"{head} of {heads[place - 1]}"
    return tuple(heads)


def latex(numbers: list[Table], words: list[Table], campaign: Campaign) -> str:
    """Return tables for LaTeX, some by their numbers and some as people read them.

    What the rows come from stands at the end.
    """
    packages = "textcomp,array,booktabs,longtable,pdflscape"
    parts = [rf"% \usepackage[T1]{{fontenc}}, \usepackage{{{packages}}}", ""]
    for table in numbers:
        kept = [place for place, name in enumerate(table.heads) if name not in TRACE]
        columns = tuple(table.heads[place] for place in kept)
        records = [table.record(row) for row in table.rows]
        rows = [tuple(record[place] for place in kept) for record in records]
        parts.append(latex_table(table.title, columns, rows))
    for table in words:
        shown: list[tuple[object, ...]] = [
            tuple(None if word == NOTHING else word for word in table.words(row))
            for row in table.rows
        ]
        parts.append(latex_table(table.title, named(table), shown))
    parts.append(f"\\noindent Campaign {latex_cell(campaign.path.name)}, measured with the images")
    parts += [
        rf"\par\noindent {latex_cell(name)}: {{\scriptsize\texttt{{"
        + latex_cell(image.sha256)
        + "}}"
        for name, image in campaign.manifest.images.items()
    ]
    parts.append("")
    return "\n".join(parts)
