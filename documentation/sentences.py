"""The pages to look up an error in: known causes with what helps, and refusals by their words."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from documentation.targets import cell
from records.ailments.table import KNOWN
from records.causes import SIGNALS, USUAL

#: Where the refusals of the first seconds are.
FIRST = ("campaign/obstacles.py", "campaign/room.py", "containers/ability.py",
         "campaign/request.py")  # fmt: skip
#: The rooms whose sentences people meet, in the order of the page.
ROOMS = ("campaign", "site_configs", "containers", "cluster", "reframe_checks", "records",
         "analysis", "costs")  # fmt: skip
#: What ends a command, or goes into its findings, with a sentence.
SAYS = re.compile(r".*(?:Error|Held|Finding|NotKept|OtherFormat)$|fail$")
#: What stands in a sentence for what is known only when it is said.
OPEN = "…"
#: Shorter ones are parts of sentences.
SHORTEST = 20


@dataclass(frozen=True)
class Refusal:
    """A sentence of the code, and the file that it is in."""

    file: str
    words: str


def troubleshooting(root: Path) -> str:
    """Return the page of known causes and of what is refused before anything long begins."""
    lines = [
        "# Troubleshooting by error text", "",
        "Search for a part of what you see. Every command ends a failure with one sentence that "
        "says what to do next; this page has the usual ones, and "
        "[all refusals](refusals.md) has every one, with … in the place of names and numbers. "
        "What happens with faults during a campaign: [faults](method/faults.md).", "",
        "## What a launch, a build or Apptainer says",
    ]  # fmt: skip
    for one in KNOWN:
        heads = ", ".join(f"“{example}”" for example in one.examples[:2])
        lines += ["", f"### {cell(heads)}", ""]
        lines += [f"    {example}" for example in one.examples]
        lines += [
            "",
            f"{cell(one.sentence[:1].upper() + one.sentence[1:])}. [Source]({one.source})",
        ]
    lines += ["", "## A launch that the kernel ended", "",
              "| exit code | what it was | usual cause |", "|---|---|---|"]  # fmt: skip
    for signal in SIGNALS:
        usual = USUAL.get(signal.number, "").lstrip(",: ")
        lines.append(f"| {128 + signal.number} | {signal.cause} | {cell(usual)} |")
    lines += ["", "## Refused before anything is built or measured"]
    for file in FIRST:
        module = ast.parse((root / file).read_text())
        lines += ["", f"### {cell(title_of(module))}", ""]
        lines += [f"- {cell(one.words)}" for one in found_in(file, module)]
    return "\n".join(lines) + "\n"


def refusals(root: Path) -> str:
    """Return the page of all refusals, by the part of the program that says them."""
    lines = [
        "# All refusals", "",
        "Every sentence with which a command or a check of this version refuses something, with "
        f"{OPEN} in the place of names and numbers. [The usual ones](troubleshooting.md).",
    ]  # fmt: skip
    for room in ROOMS:
        lines += ["", f"## {room}"]
        for path in sorted((root / room).rglob("*.py")):
            module = ast.parse(path.read_text())
            said = found_in(str(path.relative_to(root)), module)
            if said:
                lines += ["", f"### {cell(title_of(module))}", ""]
                lines += [f"- {cell(one.words)}" for one in said]
    return "\n".join(lines) + "\n"


def title_of(module: ast.Module) -> str:
    """Return the first sentence of what a module says of itself, in a heading's form."""
    said = " ".join((ast.get_docstring(module) or "Others").split("\n\n")[0].split())
    return re.split(r"(?<=[^.])\. |\.$", said)[0]


def found_in(file: str, module: ast.Module) -> list[Refusal]:
    """Return the sentences of a file's code, each once."""
    found = dict.fromkeys(
        words
        for node in ast.walk(module)
        if isinstance(node, ast.Call) and SAYS.match(name_of(node.func))
        for words in map(sentence_of, node.args[:1])
        if len(words.replace(OPEN, "")) >= SHORTEST
    )
    return [Refusal(file, words) for words in found]


def name_of(node: ast.expr) -> str:
    """Return the last part of the name that is called."""
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def sentence_of(node: ast.expr) -> str:
    """Return the words of a text in the code, with a sign for what is put in when it is said."""
    words = "".join(parts_of(node))
    return re.sub(rf"{OPEN}(?:\s*{OPEN})+", OPEN, " ".join(words.split()))


def parts_of(node: ast.expr) -> Iterator[str]:
    """Yield the parts of a text in the code."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.JoinedStr):
        for value in node.values:
            yield from parts_of(value)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        yield from parts_of(node.left)
        yield from parts_of(node.right)
    elif isinstance(node, ast.IfExp):
        yield from parts_of(node.body)
    else:
        yield OPEN
