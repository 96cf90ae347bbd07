r"""A campaign's part of a paper's appendix: artifact description and artifact evaluation.

In the form that the SC conferences ask for, in LaTeX with the macros of their template and in
Markdown. What only an author knows is left to the author, in angle brackets.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from analysis.comparison.answer import sentences_of
from analysis.comparison.result import Comparison
from analysis.comparison.tables import INTERVAL_OF_VERDICT, of_verdict
from analysis.tables.latex import latex_cell, latex_table
from analysis.tables.markdown import markdown_cell, markdown_table
from analysis.tables.table import (
    PERCENT,
    RATIO,
    Column,
    Row,
    Table,
    digests,
    interval,
)
from analysis.tables.units import about
from records.campaign import manifest_of_nodes

#: What the template defines: in another document a heading is as good.
MACROS = r"""% Where the template of SC's appendix is not in use, these stand for its macros.
\providecommand{\newartifact}{\subsection*{Artifact}}
\providecommand{\artrel}{\subsubsection*{Relation to contributions}}
\providecommand{\artexp}{\subsubsection*{Expected results}}
\providecommand{\arttime}{\subsubsection*{Expected reproduction time}}
\providecommand{\artin}{\subsubsection*{Artifact setup}}
\providecommand{\artinpart}[1]{\paragraph{#1}}
\providecommand{\artcomp}{\subsubsection*{Artifact execution}}
\providecommand{\artout}{\subsubsection*{Artifact analysis}}
\providecommand{\arteval}[1]{\subsection*{Evaluation of artifact #1}}
"""


@dataclass(frozen=True)
class AppendixPart:
    """A part of the appendix: its macro of the template, its title, and what it says.

    `commands` are typed as they are, one a line.
    """

    macro: str
    title: str
    sentences: Sequence[str] = ()
    commands: Sequence[str] = ()
    table: Table | None = None


@dataclass
class Appendix:
    """All parts in order, below two headings."""

    description: list[AppendixPart] = field(default_factory=list)
    evaluation: list[AppendixPart] = field(default_factory=list)


def bytes_of(folder: Path) -> int:
    """Return what a folder takes on the disk, without following links."""
    return sum(path.lstat().st_size for path in folder.rglob("*") if not path.is_dir())


def expected_table(comparison: Comparison) -> Table:
    """Return the verdicts that somebody who repeats it is to find, for each group of cells."""
    columns = (
        Column("group", "contribution"), Column("implementation", "implementation"),
        Column("verdict", "verdict"), Column("ratio", "ratio", RATIO, "1"),
        interval("ratio", INTERVAL_OF_VERDICT, "1"),
        Column("margin", "counts as equal", PERCENT, "1"),
    )  # fmt: skip
    rows = []
    for number, group in enumerate(comparison.groups, 1):
        for name, verdict in group.verdicts.items():
            ratio, ends, words = of_verdict(verdict)
            rows.append(
                Row((f"C{number}: {group.name}", name, words, ratio, ends, verdict.margin), name)
            )
    title = f"Verdicts of {comparison.campaign.path.name}, against {comparison.base}"
    return Table("expected", title, columns, rows)


def appendix_of(comparison: Comparison, repository: str | None) -> Appendix:
    """Return the appendix of a campaign; `repository` is where the program is available."""
    campaign = comparison.campaign
    manifest = manifest_of_nodes(campaign)
    machine, software = manifest.machine, manifest.software
    where = repository or "<address of the repository>"
    bundle = f"{manifest.campaign}.tar.gz"
    contributions = [
        f"C{number}: {sentence}"
        for number, group in enumerate(comparison.groups, 1)
        for sentence in sentences_of(group)
    ]
    measured = math.fsum(done.wall_s for done in manifest.rounds_done)
    launches = math.fsum(launch.record.wall_s or 0.0 for launch in campaign.sound())
    memory = machine.get("memory_bytes")
    hardware = [
        f"{machine.get('cpu_model') or 'a processor that was not recorded'}, "
        f"{machine.get('cores', 'unknown')} cores"
        + (f", {memory / 2**30:.0f} GiB of memory" if isinstance(memory, int) else "")
        + f"; {max((x.record.nodes for x in campaign.sound()), default=1)} nodes at most; site "
        f"{manifest.site}"
    ]
    programs = [
        f"Wyeast, commit {manifest.commit or '<commit>'}, from {where}",
        *(f"{name} {version}" for name, version in software.items()
          if version and name in ("reframe", "apptainer", "slurm", "python")),
        *(f"image {name}, SHA-256 {digest}" for name, digest in digests(campaign).items()),
        f"kernel {machine.get('kernel') or 'not recorded'}",
    ]  # fmt: skip
    took = (
        f"The campaign took {about(measured or launches)} on its machine, "
        f"{about(launches)} of it in {len(campaign.sound())} launches; its folder takes "
        f"{bytes_of(campaign.path) / 1e6:.0f} MB, the images and what builds them some GB more."
    )
    expected = expected_table(comparison)
    tolerance = (
        "A shown difference is expected again, with the same sign. On the machine that measured "
        "it, the interval of a rerun is expected to overlap the one that is given; on another one "
        "the size of a ratio may be any other. What is not shown here may be shown by more rounds."
    )
    found = Appendix()
    found.description = [
        AppendixPart("newartifact", f"Artifact A1: {bundle}",
             [f"The campaign with the raw output of every launch, and all that repeats it; <DOI>. "
              f"Artifact A2, the program, is at {where}."]),
        AppendixPart("artrel", "Relation to contributions", contributions or ["<contributions>"]),
        AppendixPart("artexp", "Expected results", [tolerance]),
        AppendixPart("arttime", "Expected reproduction time", [took]),
        AppendixPart("artin", "Artifact setup"),
        AppendixPart("artinpart{Hardware}", "Hardware", hardware),
        AppendixPart("artinpart{Software}", "Software", programs),
        AppendixPart("artinpart{Installation and Deployment}", "Installation", [],
             [f"git clone {where} wyeast && cd wyeast", "make setup"]),
        AppendixPart("artcomp", "Artifact execution",
             ["The campaign was measured by the first command, and is repeated by the second one, "
              "in the same order."],
             [*manifest.commands_to_paste(), f"make rerun BUNDLE={bundle} SITE=<your site>"]),
        AppendixPart("artout", "Artifact analysis",
             ["The rerun ends with its comparison to this campaign. Its own report is written by:"],
             ["make report"]),
    ]  # fmt: skip
    found.evaluation = [
        AppendixPart("arteval{1}", "Evaluation of artifact A1"),
        AppendixPart("artin", "Artifact setup", [],
             [f"make rerun BUNDLE={bundle} SITE=<your site> DRY_RUN=1"]),
        AppendixPart("artcomp", "Artifact execution", [took],
             [f"make rerun BUNDLE={bundle} SITE=<your site>"]),
        AppendixPart("artout", "Artifact analysis", [tolerance], [], expected),
    ]  # fmt: skip
    return found


def in_markdown(appendix: Appendix) -> str:
    """Return the appendix in Markdown."""
    lines: list[str] = []
    for title, parts in headed(appendix):
        lines += [f"# {title}", ""]
        for part in parts:
            lines += [f"## {markdown_cell(part.title)}", ""]
            marks = "- " if len(part.sentences) > 1 else ""
            lines += [f"{marks}{markdown_cell(sentence)}" for sentence in part.sentences]
            if part.commands:
                lines += ["", "```", *(" ".join(one.split()) for one in part.commands), "```"]
            if part.table:
                lines += ["", *markdown_table(part.table)]
            lines.append("")
    return "\n".join(lines)


def in_latex(appendix: Appendix) -> str:
    """Return the appendix in LaTeX, as a part of a document."""
    lines = [
        r"% \usepackage[T1]{fontenc}, \usepackage{textcomp,array,booktabs,longtable,pdflscape}",
        MACROS,
    ]
    for title, parts in headed(appendix):
        lines += [rf"\section*{{{latex_cell(title)}}}", ""]
        for part in parts:
            lines.append(f"\\{part.macro}")
            if len(part.sentences) > 1:
                lines += [r"\begin{itemize}",
                          *(rf"\item {latex_cell(one)}" for one in part.sentences),
                          r"\end{itemize}"]  # fmt: skip
            else:
                lines += map(latex_cell, part.sentences)
            if part.commands:
                lines += [r"\begin{flushleft}\footnotesize",
                          *(rf"\texttt{{{latex_cell(one)}}}\\" for one in part.commands),
                          r"\end{flushleft}"]  # fmt: skip
            if part.table:
                table = part.table
                heads = tuple(column.heading or "" for column in table.shown)
                rows: list[tuple[object, ...]] = [tuple(table.words(row)) for row in table.rows]
                lines.append(latex_table(table.title, heads, rows))
            lines.append("")
    return "\n".join(lines)


def headed(appendix: Appendix) -> list[tuple[str, list[AppendixPart]]]:
    """Return the two halves with their headings."""
    return [
        ("Artifact Description", appendix.description),
        ("Artifact Evaluation", appendix.evaluation),
    ]
