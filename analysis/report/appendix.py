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
from analysis.comparison.result import Comparison, GroupKey
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
\providecommand{\appendixAD}{\section*{Artifact Description}}
\providecommand{\appendixAE}{\section*{Artifact Evaluation}}
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
#: How deep a heading is in Markdown, by the part's macro; of all others it is 3.
DEPTHS = {"subsection*": 2, "newartifact": 2, "arteval": 2, "artinpart": 4}

#: What may be expected of somebody who repeats it, and what the measurements do not tell.
TOLERANCE = (
    "On the same machine with the same images: each difference that is shown, with its sign, and "
    "each equivalence within its margin. Those of one experiment hold together in 95%, for the "
    "conditions of this one campaign; among many experiments some may be false.",
    "The intervals do not include what differs between campaigns, such as the nodes, the day or an "
    "update, so the ratio of a rerun may lie outside.",
    "For another machine neither the size nor the sign of a ratio follows from these measurements.",
    "Where no difference is shown, or a comparison is inconclusive, nothing is claimed: a rerun of "
    "more rounds may decide it either way.",
)


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

    @property
    def depth(self) -> int:
        """Return how deep its heading is in Markdown."""
        return DEPTHS.get(self.macro.partition("{")[0], 3)


@dataclass
class Appendix:
    """All parts in order, below two headings."""

    description: list[AppendixPart] = field(default_factory=list)
    evaluation: list[AppendixPart] = field(default_factory=list)


def bytes_of(folder: Path) -> int:
    """Return what a folder takes on the disk, without following links."""
    return sum(path.lstat().st_size for path in folder.rglob("*") if not path.is_dir())


def numbered(comparison: Comparison) -> dict[GroupKey, int]:
    """Return the number of each group of cells as a contribution."""
    keys = dict.fromkeys(group.key for group in comparison.groups_of_pairs)
    return {key: number for number, key in enumerate(keys, 1)}


def expected_table(comparison: Comparison) -> Table:
    """Return the verdicts that somebody who repeats it is to find, for each group of cells."""
    columns = (
        Column("group", "contribution"), Column("implementation", "implementation"),
        Column("verdict", "verdict"), Column("ratio", "ratio", RATIO, "1"),
        interval("ratio", INTERVAL_OF_VERDICT, "1"),
        Column("margin", "counts as equal", PERCENT, "1"),
    )  # fmt: skip
    rows = []
    numbers = numbered(comparison)
    for group in comparison.groups_of_pairs:
        for name, verdict in group.verdicts.items():
            against = f" against {verdict.base}" if comparison.among_others else ""
            ratio, ends, words = of_verdict(verdict)
            title = f"C{numbers[group.key]}: {group.name}"
            shown = (title, f"{name}{against}", words, ratio, ends, verdict.margin)
            rows.append(Row(shown, name))
    whom = "of every two" if comparison.among_others else f"against {comparison.base}"
    title = f"Verdicts of {comparison.campaign.path.name}, {whom}"
    return Table("expected", title, columns, rows)


def appendix_of(comparison: Comparison, repository: str | None) -> Appendix:
    """Return the appendix of a campaign; `repository` is where the program is available."""
    campaign = comparison.campaign
    manifest = manifest_of_nodes(campaign)
    machine, software = manifest.machine, manifest.software
    where = repository or "<address of the repository>"
    bundle = f"{manifest.campaign}.tar.gz"
    shown, contributions = contributions_of(comparison)
    supported = ", ".join(f"C{number}" for number in shown) or "none"
    elements = "<the paper's tables and figures that rest on it>"
    measured = math.fsum(done.wall_s for done in manifest.rounds_done)
    launches = math.fsum(launch.record.wall_s or 0.0 for launch in campaign.sound())
    memory = machine.get("memory_bytes")
    nodes = max((launch.record.nodes for launch in campaign.sound()), default=1)
    hardware = [
        f"{machine.get('cpu_model') or 'a processor that was not recorded'}, "
        f"{machine.get('cores', 'unknown')} cores"
        + (f", {memory / 2**30:.0f} GiB of memory" if isinstance(memory, int) else "")
        + f"; {nodes} node{'' if nodes == 1 else 's'} at most; site {manifest.site}"
    ]
    changed = " with files that were changed and not committed, whose digests are in the manifest"
    programs = [
        f"Wyeast, commit {manifest.commit or '<commit>'}"
        f"{changed if software.get('wyeast_changes') else ''}, from {where}",
        *(f"{name} {version.removeprefix(f'{name} version ')}" for name, version in software.items()
          if version and name in ("reframe", "apptainer", "slurm", "python")),
        *(f"image {name}, SHA-256 {digest}" for name, digest in digests(campaign).items()),
        f"kernel {machine.get('kernel') or 'not recorded'}",
    ]  # fmt: skip
    took = [
        f"Measuring took {about(measured or launches)} on this machine, {about(launches)} of it in "
        f"{len(campaign.sound())} launches that count. Not in it, and not recorded: what it takes "
        "to install the program, and to build or fetch the images.",
        f"The campaign's folder takes {bytes_of(campaign.path) / 1e6:.0f} MB without the images.",
    ]
    # The archive lies beside the checkout in which all commands are typed.
    rerun = f"make rerun BUNDLE=../{bundle} SITE=<your site>"
    kept = (
        f"the raw output of its launches was removed {manifest.raw_removed_utc}, so its numbers "
        "cannot be computed again"
        if manifest.raw_removed_utc else "with what each launch printed and its record"
    )  # fmt: skip
    install = [
        f"git clone {where} wyeast", "cd wyeast", f"git checkout {manifest.commit or '<commit>'}",
        "make setup",
    ]  # fmt: skip
    found = Appendix()
    found.description = [
        AppendixPart("subsection*{Paper's main contributions}", "Paper's main contributions",
             contributions),
        AppendixPart("subsection*{Computational artifacts}", "Computational artifacts",
             [f"A1: {bundle}, <DOI>; contributions supported: {supported}; {elements}",
              f"A2: the program, {where}; contributions supported: {supported}; {elements}"]),
        AppendixPart("newartifact", f"Artifact A1: {bundle}",
             [f"What make bundle packs: the campaign's folder, {kept}, and the files it was "
              "measured with, as far as bundle.json names none as missing; the images only with "
              "WITH_IMAGES=1."]),
        AppendixPart("artrel", "Relation to contributions",
             ["The contributions above rest on its numbers. Artifact A2 makes tables and reports "
              "of them, and repeats the campaign."]),
        AppendixPart("artexp", "Expected results", TOLERANCE),
        AppendixPart("arttime", "Expected reproduction time", took),
        AppendixPart("artin", "Artifact setup"),
        AppendixPart("artinpart{Hardware}", "Hardware", hardware),
        AppendixPart("artinpart{Software}", "Software", programs),
        AppendixPart("artinpart{Datasets / Inputs}", "Datasets and inputs",
             ["None: the programs make what they work on. The files that define the experiments "
              "are in the folder definitions of the bundle."]),
        AppendixPart("artinpart{Installation and Deployment}", "Installation",
             ["The site is a folder of site_configs: docs/how-to/add-a-site.md says how to add "
              "one. Images that neither the bundle nor the checkout has are built first."],
             install),
        AppendixPart("artcomp", "Artifact execution",
             ["The last command repeats the checks, images, tier and number of rounds; the order "
              "of launches is the same if the site has the same cells. Those before it measured "
              "the campaign."],
             [*manifest.commands_to_paste(), rerun]),
        AppendixPart("artout", "Artifact analysis",
             ["The rerun ends with its comparison to this campaign, and says what else differs. "
              "Its own report is written by:"],
             ["make report"]),
    ]  # fmt: skip
    found.evaluation = [
        AppendixPart("arteval{1}", "Evaluation of artifact A1"),
        AppendixPart("artin", "Artifact setup",
             ["In a checkout as installed above, with the archive beside it; the digests show that "
              "the bundle is as it was packed, and the last command says what would run, and runs "
              "nothing."],
             [*install, f"tar -xzf ../{bundle} -C <an empty folder>",
              "(cd <that folder>/* && sha256sum --check SHA256SUMS)", f"{rerun} DRY_RUN=1"]),
        AppendixPart("artcomp", "Artifact execution", took, [rerun]),
        AppendixPart("artout", "Artifact analysis", TOLERANCE, [], expected_table(comparison)),
    ]  # fmt: skip
    return found


def contributions_of(comparison: Comparison) -> tuple[list[int], list[str]]:
    """Return what the campaign shows: the numbers of groups, and a sentence for each verdict.

    What is open is no contribution; a last sentence counts it.
    """
    numbers: set[int] = set()
    shown: list[str] = []
    open_ = 0
    number_of = numbered(comparison)
    for group in comparison.groups_of_pairs:
        number = number_of[group.key]
        told = [one.is_different or one.is_equivalent for one in group.verdicts.values()]
        sentences = zip(sentences_of(group), told, strict=True)
        shown += [f"C{number}: {words}" for words, is_told in sentences if is_told]
        numbers |= {number} if any(told) else set()
        open_ += told.count(False)
    if open_:
        shown.append(
            "The campaign shows neither a difference nor equivalence in "
            f"{open_} more comparison{'' if open_ == 1 else 's'}."
        )
    return sorted(numbers), shown


def in_markdown(appendix: Appendix) -> str:
    """Return the appendix in Markdown."""
    lines: list[str] = []
    for title, _, parts in headed(appendix):
        lines += [f"# {title}", ""]
        for part in parts:
            lines += [f"{'#' * part.depth} {markdown_cell(part.title)}", ""]
            marks = "- " if len(part.sentences) > 1 else ""
            lines += [f"{marks}{markdown_cell(sentence)}" for sentence in part.sentences]
            if part.commands:
                lines += [""] if part.sentences else []
                lines += ["```", *(" ".join(one.split()) for one in part.commands), "```"]
            if part.table:
                lines += ["", *markdown_table(part.table)]
            if part.sentences or part.commands or part.table:
                lines.append("")
    return "\n".join(lines)


def in_latex(appendix: Appendix) -> str:
    """Return the appendix in LaTeX, as a part of a document."""
    lines = [
        r"% \usepackage[T1]{fontenc}, \usepackage{textcomp,array,booktabs,longtable,pdflscape}",
        MACROS,
    ]
    for _, macro, parts in headed(appendix):
        lines += [rf"\{macro}", ""]
        for part in parts:
            lines.append(f"\\{part.macro}")
            if len(part.sentences) > 1:
                lines += [r"\begin{itemize}\raggedright",
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


def headed(appendix: Appendix) -> list[tuple[str, str, list[AppendixPart]]]:
    """Return the two halves with their headings and macros."""
    return [
        ("Artifact Description", "appendixAD", appendix.description),
        ("Artifact Evaluation", "appendixAE", appendix.evaluation),
    ]
