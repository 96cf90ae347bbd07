"""A mixin for checks of a site's own ReFrame suite: their values are judged by their history.

It needs nothing of a campaign, neither images nor sites: only this package on Python's path.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import reframe as rfm
import reframe.utility.typecheck as typ
from reframe.core.builtins import run_after, variable
from reframe.core.exceptions import PerformanceError
from reframe.core.logging import getlogger

from analysis.foreign.judging import Judgement
from analysis.foreign.samples import LAYOUT, Directions
from analysis.foreign.tables import answer
from analysis.foreign.within_suite import history_of, judged_in_suite
from records.causes import harmless
from records.foreign.reframe_values import Undirected, performance
from records.foreign.run import ForeignError, Measured, Run, of_number

#: The file with what was found, in the test's stage folder and its output.
FILE = "judged.txt"


class JudgedByHistory(rfm.RegressionTestPlugin):
    """Fail a check in `performance` if one of its values is shown to be worse than before.

    The values are those of the check's own performance functions. Fewer than three earlier
    sessions, or a value of which nothing says whether less is better, give no verdict and a
    sentence; the check fails for that only if `judged_strictly`.
    """

    # None is logged: logs keep the columns that they had, and with them their lines.
    #: ReFrame's performance logs (a file or a folder), or its database `results.db`.
    judged_history = variable(str, loggable=False)
    #: What counts as equal, and the slowdown that is to be seen, as fractions.
    judged_margin = variable(float, value=0.02, loggable=False)
    judged_slowdown = variable(float, value=0.25, loggable=False)
    #: How many values the whole suite judges, which share a chance of 5% for a false verdict; 0 for
    #: as many as the history has.
    judged_together = variable(int, value=0, loggable=False)
    #: Patterns of names (test and variable) of which less, or more, is better.
    judged_lower_is_better = variable(typ.List[str], value=[], loggable=False)
    judged_higher_is_better = variable(typ.List[str], value=[], loggable=False)
    #: Whether a value that could not be judged, or too coarsely, fails the check.
    judged_strictly = variable(bool, value=False, loggable=False)

    @run_after("performance")
    def judge_by_history(self) -> None:
        """Judge all values; raise PerformanceError with what is worse."""
        if self.is_dry_run():
            return
        for name, least, most in (("judged_margin", 0, 10), ("judged_slowdown", 0, 1000)):
            if not least < getattr(self, name) < most:
                raise PerformanceError(f"{name} must be a fraction above 0, such as 0.05 for 5%")
        measured, unjudged = self._measured()
        run = Run(self.name, measured, time.time(), labels=self._place())
        directions = Directions(self.judged_lower_is_better, self.judged_higher_is_better)
        try:
            history = history_of(Path(self.judged_history).absolute())
            found = judged_in_suite(
                history, run, self.judged_margin, directions, self.judged_together
            )
        except ForeignError as error:
            raise PerformanceError(f"it cannot be judged: {error}") from None
        found.unjudged += unjudged
        said = [harmless(one) for one in answer(found, self.judged_slowdown)]
        Path(self.stagedir, FILE).write_text("\n".join(said) + "\n")
        check: Any = self
        check.keep_files = [*check.keep_files, FILE]
        for sentence in said:
            getlogger().info(f"{self.name}: {sentence}")
        if self._fails(found):
            raise PerformanceError("judged by its history: " + "; ".join(said))

    def _fails(self, found: Judgement) -> bool:
        needed = self.judged_slowdown
        if found.having(needed, "worse"):
            return True
        unseen = found.having(needed, "inconclusive", "could not be seen")
        return bool(self.judged_strictly and (unseen or found.unjudged or not found.rows))

    def _measured(self) -> tuple[tuple[Measured, ...], list[str]]:
        """Return the check's values, and why some are none."""
        measured, unjudged = [], []
        for key, (value, reference, lower, upper, unit, *_) in self.perfvalues.items():
            variable_name = key.rpartition(":")[2]
            try:
                told = (reference, lower, upper)
                measured.append(performance(self.name, variable_name, of_number(value), unit, told))
            except (Undirected, ValueError) as error:
                unjudged.append(f"{self.name} {variable_name}: {error}")
        return tuple(measured), unjudged

    def _place(self) -> dict[str, str]:
        """Return where it runs and on how much, as ReFrame logs it."""
        found = {
            "system": self.current_system.name,
            "partition": self.current_partition.name,
            "environ": self.current_environ.name,
        }
        return found | {
            name: str(value) for name in LAYOUT if (value := getattr(self, name, None)) is not None
        }
