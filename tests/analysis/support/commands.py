"""What the commands that people use cost on campaigns, each in a process of its own."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np

from tests.analysis.support.costs import Cost, cost_of
from tests.analysis.support.foreign import FIELDS

#: How many things each run of a history of another program has measured.
MEASURED = 40
FIRST_RUN = datetime.fromisoformat("1990-01-01T00:00:00+00:00")
#: A regression of a made-up or a short campaign, or one that could not be seen, is no error here.
REGRESS_MAY_END_WITH = (0, 1, 3, 5)


def costs_of_pair(first: Path, second: Path, folder: Path) -> dict[str, Cost]:
    """Return what it costs to read a campaign, and to compare it with a later one.

    Both stand in one folder of campaigns; what is written elsewhere goes into `folder`.
    """
    bundle = folder / "bundle.tar.gz"
    bundle.unlink(missing_ok=True)
    runs = ("--runs", str(first.parent))
    one, two = str(first), str(second)
    analysis = ("-m", "analysis")
    return {
        "table": cost_of(*analysis, "table", one, "--no-pager"),
        "winners": cost_of(*analysis, "winners", one, "--no-pager"),
        "ingest": cost_of(*analysis, "ingest", one),
        "report": cost_of(*analysis, "report", one),
        "conclude": cost_of(*analysis, "conclude", one),
        "export": cost_of(*analysis, "export", one, "--output", str(folder / "export")),
        "compare": cost_of(*analysis, "compare", one, two, "--no-pager"),
        "why": cost_of(*analysis, "why", one, two),
        "history": cost_of(*analysis, "history", *runs, "--rebuild", "--no-pager"),
        "regress": cost_of(
            *analysis, "regress", two, "--against", one, *runs, allowed=REGRESS_MAY_END_WITH
        ),
        "bundle": cost_of(
            "-m", "campaign.bundle.make", one, "--out", str(bundle), "--keep", ".*"
        ),
    }  # fmt: skip


def perflogs_of(folder: Path, runs: int) -> None:
    """Write what ReFrame logs of so many runs, a day each, of `MEASURED` tests; one has changed."""
    random = np.random.default_rng(runs)
    folder.mkdir(parents=True)
    for test in range(MEASURED):
        levels = 100 * np.exp(0.01 * random.standard_normal(runs))
        if test == 0:
            levels[runs // 2 :] *= 0.8
        (folder / f"Stream{test}.log").write_text("".join(lines_of(f"Stream{test}", levels)))


def lines_of(test: str, levels: np.ndarray) -> Iterator[str]:
    """Yield the lines of a test's log."""
    yield "|".join(FIELDS) + "\n"
    for day, level in enumerate(levels):
        ended = (FIRST_RUN + timedelta(days=day)).isoformat()
        yield (f"pass|{ended}|gnu|nid[01-02]|{test}|cpu|{level:.3f}|MB/s|100|-0.1|null|cluster\n")


def costs_of_foreign(folder: Path) -> dict[str, Cost]:
    """Return what it costs to judge the newest of another program's runs."""
    words = ("-m", "analysis", "judge", str(folder / "perflogs"), "--no-pager")
    return {"judge": cost_of(*words, allowed=(0, 3, 5))}
