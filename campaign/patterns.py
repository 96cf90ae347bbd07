"""A pattern of checks is tried before any lock is taken: some take forever to match."""

from __future__ import annotations

import re
import resource
import shlex
import subprocess
import sys

from records.base import CampaignError
from records.causes import harmless_strings
from records.experiments import experiments

#: Processor time in whole seconds; an ordinary pattern takes a thousandth of one.
MOST_S = 1
#: How long a busy machine may take to grant that.
PATIENCE_S = 120.0
LONGEST = 10_000
#: Matches the first word against each line that comes in, as ReFrame does with names of checks.
TRY = "import re, sys; p = re.compile(sys.argv[1]); [p.search(line) for line in sys.stdin]"


def names() -> list[str]:
    """Return what names of checks look like, with and without spaces, which ReFrame removes."""
    spaced = [
        f"{entry.name} " + " ".join(f"%{key}=Isend/Irecv_1x16_1048576" for key in entry.order)
        + " %image.implementation=openmpi-5.0.11-spack+host /0123abcd @virtual:compute+container"
        for entry in experiments().values()
    ]  # fmt: skip
    return [*spaced, *(name.replace(" ", "") for name in spaced)]


def _limit_processor_time() -> None:
    _, most = resource.getrlimit(resource.RLIMIT_CPU)
    # Nobody may raise what the machine allows.
    least = MOST_S if most == resource.RLIM_INFINITY else min(MOST_S, most)
    resource.setrlimit(resource.RLIMIT_CPU, (least, least))


def refuse_pattern(pattern: str | None) -> None:
    r"""Raise CampaignError for what is no regular expression, and for one that may not end.

    One such as `^(\\S+)+!$` tries every way to divide a name, while a campaign holds the machine.
    """
    if not pattern:
        return
    shown = f"CHECKS={shlex.quote(pattern[:200])}"
    if harmless_strings(pattern) != pattern:
        raise CampaignError("CHECKS has a control character in it, which no check's name has")
    if len(pattern) > LONGEST:
        raise CampaignError(f"{shown}… has {len(pattern)} characters; give at most {LONGEST}")
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise CampaignError(f"{shown} is not a valid regular expression: {error}") from None
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", TRY, pattern],
            input="\n".join(names()), text=True, capture_output=True, timeout=PATIENCE_S,
            preexec_fn=_limit_processor_time,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise CampaignError(
            f"{shown} could not be tried within {PATIENCE_S:g} s: the machine is too busy; "
            "try again when it is not"
        ) from None
    if done.returncode:
        raise CampaignError(
            f"{shown} takes more than {MOST_S} s of processor time for the names of the checks, so "
            "it may never end; write it without a repetition inside another"
        )
