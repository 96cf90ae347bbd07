"""What ReFrame itself reports of its sessions: `reframe/reports.jsonl`, a line for each of them.

Older campaigns have a file for each round.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from records.acting_user import text_of

FOLDER = "reframe"
#: That of the session which ended last, until it is added to the others.
LAST = "report.json"
FILE = "reports.jsonl"


def keep_last(campaign: Path) -> None:
    """Add the report of the session that ended last to the others; raises OSError.

    One that a kill has cut tells nothing and is left out.
    """
    last = campaign / FOLDER / LAST
    try:
        line = json.dumps(json.loads(last.read_text(errors="replace")))
    except FileNotFoundError:
        return
    except ValueError:
        last.unlink()
        return
    added = f"\n{line}\n"
    with (campaign / FOLDER / FILE).open("a+b") as reports:
        reports.seek(max(0, reports.seek(0, os.SEEK_END) - len(added)))
        # In case a kill came before its own file was removed.
        if reports.read() != added.encode():
            # On its own line, in case a kill cut the one before.
            reports.write(added.encode())
    last.unlink()


def cases_in(campaign: Path) -> Iterator[dict[str, Any]]:
    """Yield ReFrame's entry for every check of every session that it reported."""
    folder = campaign / FOLDER
    for path in (*sorted(folder.glob("round*.json")), folder / FILE):
        try:
            text = text_of(path)
        except (OSError, ValueError):
            continue
        for line in [text] if path.suffix == ".json" else text.splitlines():
            try:
                # ReFrame writes NaN for a metric that has no value.
                report = json.loads(line, parse_constant=lambda _: None)
                cases = [case for run in report["runs"] for case in run["testcases"]]
            except (ValueError, KeyError, TypeError):
                # Of a session that was killed; its launches are read by themselves.
                continue
            yield from cases
