"""`python -m campaign.site.doctor`: say what ails a site, and what helps.

First what needs no job: what `check-site` looks at, and on a site without a scheduler this machine;
then the preflight of one image, whose ranks look at their nodes. With `--output` it reads what a
failed launch said instead.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from campaign import beginning
from campaign.site import check
from containers import selection
from containers.ending import exit_code
from records import layout
from records.acting_user import act_for
from records.base import CampaignError, RecordError
from records.causes import harmless, known_in, one_line, sentence_in
from records.command_words import CommandWords
from records.counting import how_many
from records.files import only_owner_writes
from records.left_behind import ends_left
from records.node_ailments import (
    COMMAND,
    Ailing,
    NodeFacts,
    ailing,
    ailing_together,
    node_facts,
)
from site_configs.machine import Machine
from site_configs.settings import load_site
from site_configs.site_file import LOCAL

#: Where a node's part of what all nodes have told begins.
FIRST = "==> /proc/sys/kernel/hostname <=="
#: How many nodes are named where several have the same ailment, and how much of an output is read.
MOST_NAMED, MOST_BYTES = 3, 10**6
#: How long this machine may take to be looked at, in seconds.
LOOK_S = 60
#: What tells preflights where to leave what their ranks see of nodes (reframe_checks/preflight.py).
NODES_TOLD = "WYEAST_NODES_TOLD"


def this_machine() -> NodeFacts:
    """Return what this machine shows of itself; raises CampaignError if it hangs."""
    try:
        done = subprocess.run(
            ["sh", "-c", COMMAND],
            capture_output=True, text=True, errors="replace", timeout=LOOK_S, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise CampaignError(
            f"the kernel's files could not be read within {LOOK_S} s; see whether "
            "`df /tmp /dev/shm` returns on this machine"
        ) from None
    return node_facts(done.stdout)


def nodes_in(text: str) -> list[NodeFacts]:
    """Return what nodes have told, each node once."""
    parts = (node_facts(f"{FIRST}{part}") for part in text.split(FIRST)[1:])
    return list({node.name: node for node in parts}.values())


def by_nodes(site: dict[str, Any], names: list[str]) -> tuple[list[Ailing], str, int]:
    """Return what ails the nodes that a preflight's job was given; its outcome; how many they are.

    Raises what a campaign raises that cannot begin.
    """
    with tempfile.TemporaryDirectory() as folder:
        told = Path(folder) / "nodes"
        told.touch()
        # Jobs of another user's, as of the cluster in a box, do not write it: ReFrame does.
        os.environ[NODES_TOLD] = str(told)
        began = time.time()
        _, became = check.preflight(site["name"], names)
        found = nodes_in(told.read_text(errors="replace"))
    alone = [one for node in found for one in ailing(node, site)]
    return [*alone, *ailing_together(found, began, time.time())], became[names[0]], len(found)


def sentences(found: Iterable[Ailing]) -> Iterator[str]:
    """Yield a sentence for each ailment, with the nodes that have it, and its source."""
    having: dict[str, list[Ailing]] = defaultdict(list)
    for one in found:
        having[one.ailment.name].append(one)
    for those in having.values():
        first, names = those[0], list(dict.fromkeys(one.node for one in those))
        more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
        # Numbers differ from node to node.
        example = "" if len({one.what for one in those}) == 1 else f"on {first.node} "
        yield one_line(
            f"{', '.join(names[:MOST_NAMED])}{more}: {example}{first.what}; "
            f"{first.ailment.helps} ({first.ailment.source})",
            700,
        )


def say(found: Iterable[str]) -> int:
    """Print findings; return how many they are."""
    count = 0
    for sentence in found:
        print(f"fix: {harmless(sentence)}", flush=True)
        count += 1
    return count


def of_output(typed: str) -> int:
    """Say what a failed launch's output means; return the exit code: 1 for a cause, else 0."""
    path = layout.meant(typed)
    try:
        said = ends_left(path, MOST_BYTES)
    except OSError as error:
        raise CampaignError(f"OUTPUT={path} cannot be read: {error.strerror}") from None
    except RecordError as error:
        raise CampaignError(f"OUTPUT={path} cannot be read: {error}") from None
    if known := known_in(said):
        say([f"{sentence_in(said)} ({known.source})"])
        return 1
    sentence = sentence_in(said)
    print(f"it shows no known cause; the line that best says what failed: {sentence or 'none'}")
    return 0


def work(options: argparse.Namespace) -> int:
    """Look at a site, and say what ails it; return the exit code, 1 where something does."""
    if options.output:
        return of_output(options.output)
    selection.site_file(check.ROOT, options.site)
    site = check.with_places(check.ROOT, options.site, load_site(options.site))
    names = selection.implementations(check.ROOT, options.site, options.images)[:1]
    print(f"doctor: checking what needs no job, for site {options.site}", flush=True)
    looked = check.look_around(check.ROOT, site, names, Machine(), with_images=not options.look)
    for note in looked:
        if not note.bad:
            print(f"note: {harmless(note.sentence)}", flush=True)
    count = say(one.sentence for one in looked if one.bad)
    if site["scheduler"] == LOCAL:
        count += say(sentences(ailing(this_machine(), site)))
    elif options.look:
        print("doctor: nodes were not checked, since that takes a job")
    elif any(finding.bad for finding in looked):
        print("doctor: nodes were not checked, since a job cannot start yet: fix the above")
    else:
        print(f"doctor: checking nodes with the preflight of {names[0]}", flush=True)
        found, outcome, nodes = by_nodes(site, names)
        count += say(sentences(found))
        count += say([] if outcome == "ok" else [f"{names[0]}: {outcome}"])
        print(f"doctor: checked {how_many(nodes, 'node')}")
    problems = how_many(count, "problem") if count else "no problem"
    print(f"doctor: {problems} found on site {options.site}")
    return 1 if count else 0


def main() -> int:
    """Say what ails a site; return the exit code."""
    parser = CommandWords(
        prog="python -m campaign.site.doctor",
        description="Find what is wrong with a site's machine and nodes; say of each problem what "
        "helps and where that is explained. The exit code is 1 if there is any problem.",
    )
    parser.add_argument(
        "--site", default="local", help="a folder of site_configs/ (default: %(default)s)"
    )
    parser.add_argument(
        "--images", default="", help="the image whose preflight checks nodes (default: the first)"
    )
    parser.add_argument("--look", action="store_true", help="start no job")
    parser.add_argument(
        "--output", default="", metavar="FILE", help="explain this output of a failed launch"
    )
    options = parser.parse_args()
    if not options.output:
        act_for(check.ROOT)
        only_owner_writes()
    return exit_code("doctor", lambda: work(options), beginning.ERRORS, "it can be repeated")


if __name__ == "__main__":
    sys.exit(main())
