"""A night's summary for people and programs: Markdown, JUnit's XML, JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from analysis.comparison.caveats.comparability import differences
from analysis.comparison.caveats.stolen_time import stolen_time
from analysis.comparison.tables import INTERVAL_OF_VERDICT, of_verdict
from analysis.comparison.verdict import ALPHA, SLOWDOWN
from analysis.history.regressions import tested
from analysis.history.tables import better_or_worse
from analysis.history.two_campaigns import (
    CampaignComparison,
    ComparedCell,
    IncomparableError,
    compare_campaigns,
)
from analysis.nights.judging import AGAIN, NIGHTS, Finding, NightJudgement, power
from analysis.references.missed import MetricWithReference, power_sentences
from analysis.tables import table as tables
from analysis.tables.junit import Case
from analysis.tables.markdown import markdown_cell, markdown_table
from analysis.tables.table import RATIO, Column, Kind, Table, interval
from analysis.tables.units import percent
from records.campaign import Campaign

SCHEMA = "wyeast-night-1"
#: How many rows a table of the summary has at most.
MOST_ROWS = 40
VERDICTS = {
    "regression": "Something became slower, and three measurements confirm it.",
    "measure again": "Something tripped and has not been measured again yet.",
    "incomplete": "No regression is shown, but not everything could be measured and judged.",
    "noise": "No regression: what tripped was not confirmed when it was measured again.",
    "not judged": "Nothing was judged: no cell has enough comparable earlier nights.",
    "blind": "No regression is shown, but most comparisons would not have confirmed a slowdown of "
    f"{percent(SLOWDOWN)}.",
    "nothing": "No regression is shown.",
}


def facts(
    night: Campaign, judgement: NightJudgement, again: Sequence[Campaign], previous: Campaign | None
) -> dict[str, Any]:
    """Return the night for JSON."""
    return {
        "schema": SCHEMA,
        "campaign": night.path.name,
        "verdict": judgement.verdict,
        "previous": previous.path.name if previous else None,
        "measured_again": [one.path.name for one in again],
        "findings": [asdict(one) for one in judgement.findings],
        "broken": judgement.broken,
        "failed": judgement.failed,
        "unjudged": judgement.unjudged,
        "told": len(judgement.rows) - judgement.untold,
        "untold": judgement.untold,
        "power": power(judgement.rows),
        "power_of_references": power_sentences(judgement.references),
        "stolen_time": stolen_by_campaign((night, *again)),
    }


def stolen_by_campaign(campaigns: Sequence[Campaign]) -> dict[str, str]:
    """Return by campaign the sentences on time that a hypervisor took, if it matters."""
    return {one.path.name: " ".join(said) for one in campaigns if (said := stolen_time(one))}


def cases(judgement: NightJudgement) -> list[Case]:
    """Return the night for JUnit: a confirmed regression fails, what broke is an error."""
    tags = {"regression": "failure", "noise": "system-out"}
    found = [
        Case(one.cell, f"{one.experiment}.{one.implementation}",
             tags.get(one.outcome, "error"), f"against {one.against}: " f"{one.words}")  # type: ignore[arg-type]
        for one in judgement.findings
    ]  # fmt: skip
    known = {(one.cell, one.implementation) for one in judgement.findings}
    for one in tested(judgement.rows, None, ALPHA / NIGHTS):
        verdict = one.row.verdict
        if (one.row.cell, verdict.implementation) not in known:
            tag = "skipped" if one.outcome == "inconclusive" else "system-out"
            group = f"{one.row.experiment}.{verdict.implementation}"
            words = one.sentence
            if one.outcome == "regression":
                words = words.replace("; regression;", "; not confirmed: it did not trip;")
            found.append(Case(one.row.cell, group, tag, words))  # type: ignore[arg-type]
    found += [case_of(one) for one in judgement.references if not one.missed]
    found += [Case(name, "implementation", "error", said)
              for name, said in judgement.broken.items()]  # fmt: skip
    found += [Case(name, "no longer judged", "skipped", said)
              for name, said in judgement.unjudged.items()]  # fmt: skip
    return found + [Case(name, "launch", "error", said) for name, said in judgement.failed.items()]


def case_of(held: MetricWithReference) -> Case:
    """Return a reference that no round missed: skipped where that says little."""
    said = power_sentences([held])
    return Case(f"{held.check} {held.metric}", "reference",
                "skipped" if held.is_blind else "system-out", "; ".join(said))  # fmt: skip


def findings_table(findings: Sequence[Finding]) -> list[str]:
    """Return a table of findings."""
    ratios = Kind(lambda of, _: ", ".join(f"{ratio:.3f}" for ratio in of))
    columns = (
        Column("cell", "cell"), Column("implementation", "implementation"),
        Column("against", "against"),
        Column("ratios", "ratio of the night, and again", ratios, "1"),
        Column("words", "in words"),
    )  # fmt: skip
    rows = [
        tables.Row((one.cell, one.implementation, one.against, one.ratios, one.words))
        for one in findings
    ]
    return markdown_table(Table("findings", "Findings", columns, rows))


def compared(previous: Campaign, night: Campaign) -> CampaignComparison | str:
    """Return a night compared with the one before it, or the sentence why it cannot be."""
    try:
        return compare_campaigns(previous, night)
    except IncomparableError as error:
        return str(error)


def changes_table(rows: Sequence[ComparedCell]) -> list[str]:
    """Return what differs from the night before, the largest first."""
    different = [row for row in rows if row.verdict.is_different]
    told = sum(row.verdict.adjusted_p is not None for row in rows)
    lines = [
        f"{len(different)} of {told} cells and implementations with a conclusive comparison differ."
    ]
    if told < len(rows):
        lines.append(
            f"{len(rows) - told} more are inconclusive: a night of one round does not show its "
            "own spread. Use ROUNDS=2 or more."
        )
    ordered = sorted(different, key=lambda row: -abs(1 - row.verdict.ratio.value))[:MOST_ROWS]
    if not ordered:
        return lines
    if len(ordered) < len(different):
        lines.append(f"The largest {len(ordered)} of them:")
    columns = (
        Column("cell", "cell"), Column("implementation", "implementation"),
        Column("change", "change"), Column("ratio", "ratio", RATIO, "1"),
        interval("ratio", INTERVAL_OF_VERDICT, "1"),
    )  # fmt: skip
    shown = [
        tables.Row((
            row.cell, row.verdict.implementation, better_or_worse(row.verdict.ratio.value),
            *of_verdict(row.verdict)[:2],
        ))
        for row in ordered
    ]  # fmt: skip
    return [*lines, "", *markdown_table(Table("changes", "Changes", columns, shown))]


def machine_changes(previous: Campaign, night: Campaign) -> list[str]:
    """Return which images' digests and what else of the manifest differ, a line each."""
    before, after = previous.manifest, night.manifest
    lines = []
    for name in sorted(before.images.keys() | after.images.keys()):
        digests = [of.images[name].sha256 if name in of.images else None for of in (before, after)]
        if digests[0] != digests[1]:
            words = [str(one)[:12] if one else "none" for one in digests]
            lines.append(f"- image {markdown_cell(name)}: sha256 {words[0]} became {words[1]}")
    both = [name for name in after.images if name in before.images]
    found = differences(before.facts, after.facts, [(name, name) for name in both])
    lines += sorted({
        f"- {markdown_cell(one.sentence)}" for one in found if one.rule.at != ["sha256"]
    })  # fmt: skip
    return lines or ["Nothing that the manifests record."]


def markdown(
    night: Campaign, judgement: NightJudgement, again: Sequence[Campaign], previous: Campaign | None
) -> str:
    """Return the summary of a night: what changed since the one before, and what is certain."""
    manifest = night.manifest
    lines = [
        f"# Night of {markdown_cell(manifest.created_utc[:10])} on {markdown_cell(manifest.site)}",
        "",
        VERDICTS[judgement.verdict],
        "",
        f"{len(judgement.rows) - judgement.untold} cells and implementations were compared "
        f"with earlier nights; {judgement.untold} have too few of them.",
        *(f"- {line}" for line in power(judgement.rows)),
        *(f"- {markdown_cell(line)}" for line in power_sentences(judgement.references)),
    ]
    for title, outcomes in (
        ("Confirmed regressions", ("regression",)),
        ("Tripped, and not confirmed", ("noise",)),
        ("Tripped, and not decided", ("tripped", "undecided")),
    ):
        if found := judgement.having(*outcomes):
            lines += ["", f"## {title}", "", *findings_table(found)]
    if again:
        names = ", ".join(markdown_cell(one.path.name) for one in again)
        lines += ["", f"Measured again ({AGAIN} times are needed), and kept: {names}."]
    for title, sentences in (
        ("Time taken by other guests", stolen_by_campaign((night, *again))),
        ("Broken implementations", judgement.broken),
        ("Failed launches", judgement.failed),
        ("No longer judged", judgement.unjudged),
    ):
        if sentences:
            rows = list(sentences.items())[:MOST_ROWS]
            lines += [
                "",
                f"## {title}",
                "",
                *(f"- {markdown_cell(name)}: {markdown_cell(said)}" for name, said in rows),
            ]
            if len(rows) < len(sentences):
                lines.append(f"- and {len(sentences) - len(rows)} more")
    lines += ["", "## Since the night before", ""]
    if previous is None:
        lines.append("There is no earlier night.")
    else:
        found_changes = compared(previous, night)
        lines += [f"Compared with {markdown_cell(previous.path.name)}; above 1 this night is "
                  "better.", ""]  # fmt: skip
        if isinstance(found_changes, str):
            lines.append(markdown_cell(found_changes))
        else:
            lines += changes_table(found_changes.rows)
            lines += [f"- not compared: {markdown_cell(one)}" for one in found_changes.refused]
        lines += ["", "## Images and machine since then", "", *machine_changes(previous, night)]
    return "\n".join(lines) + "\n"
