"""ReFrame's command line with four guards; `reframe` in the activated shell is this.

ReFrame itself reports PASSED when it ran nothing. Here it is a failure when

- a check file of the search path cannot be loaded,
- no check was selected or every selected check was skipped (`-r` only).

It is no failure when all checks of a file leave themselves out, since not every check suits every
image; what they say stands beside the failure, should nothing else be selected.

Schedulers are asked as reframe_checks/bin/schedulers.py says: a job is complete when its scheduler
says so, and not when that does not answer.

The last guard is reproducibility: `--exec-order=random` shuffles with the seed in
`WYEAST_ORDER_SEED` from a sorted list, so the same seed gives the same order on any machine.

A pattern for names of checks is matched for a bounded time, of what a launch has printed nothing is
shown that a terminal would obey, and what it has left is removed, however deep or closed.

A job script on this machine is started by its full path, even if that contains a space, and is
noticed to have ended as soon as it has. How long a job takes, or waits, is told by a clock that
nobody sets.

Checks also load quickly: what ReFrame repeats for each check is done once. To find who
used a deprecated variable (one of its own), it reads the source of its whole call stack twice for
each check that it makes; it parses the references in Python; it puts the variables into the class
and converts their values; it tests whether all attributes can be copied; it looks up all of a
check, and writes it as JSON, for each line of its log, although the log's format uses its name
alone, also for each look at a job, beside what is measured; and it compiles a pattern for each of
its options. In campaigns it also writes four lines about each check into its log.
"""

from __future__ import annotations

import fnmatch
import logging
import os
import random
import sys
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any, NamedTuple

import reframe.core.config
import reframe.core.exceptions as errors
import reframe.core.pipeline
import reframe.core.runtime as runtime
import reframe.core.schedulers.local
import reframe.core.warnings
import reframe.utility.osext as osext
import yaml
from reframe.core.logging import CheckFieldFormatter, LoggerAdapter, null_logger
from reframe.core.variables import VarSpace
from reframe.frontend import cli, executors, filters, printer
from reframe.frontend.executors import Runner, policies
from reframe.frontend.loader import RegressionCheckLoader

from records import environment, layout
from records.acting_user import act_for, become, owner_of
from records.files import only_owner_writes
from reframe_checks.bin import schedulers, session
from reframe_checks.bin.foreign import BoundedPattern, RemovedWhole, ShownOutput
from reframe_checks.bin.waking import steady_time, until_it_ends
from reframe_checks.mixins.cores import site_here
from reframe_checks.mixins.recording import CAMPAIGN

ROOT = Path(__file__).resolve().parents[2]
NOTHING_SELECTED = (
    "no check was selected, so nothing was measured: check `reframe -c reframe_checks -l`, "
    "the tier (TIER={tier}) and the site (SITE={site})"
)
NOTHING_RAN = "every selected check was skipped, so nothing was measured; the reasons are above"


#: Why checks left themselves out when they were loaded.
LEFT_OUT: set[str] = set()
#: The content of reference files, by their paths.
PARSED: dict[str, Any] = {}
#: Whether ReFrame accepts the checks of a class.
VALID: dict[type, bool] = {}
#: The classes that already have their variables.
INJECTED: set[type] = set()
PLAIN = frozenset((str, int, float, bool, type(None)))


def left_out(module: Any) -> set[str]:
    """Return why all checks of a module exclude themselves; empty if one of them does not."""
    registry = getattr(module, "_rfm_test_registry", None)
    sentences = set()
    for test, variants in registry._tests.items() if registry else ():
        for positional, named in variants:
            try:
                test(*positional, **named)
            except errors.SkipTestError as skipped:
                sentences.add(str(skipped))
            except Exception:
                return set()
            else:
                return set()
    return sentences


class StrictLoader(RegressionCheckLoader):  # type: ignore[misc]
    """A loader for which a check file that cannot be loaded is an error, not a warning."""

    #: Why the checks of the file that is being loaded excluded themselves, if all did.
    sentences: frozenset[str] = frozenset()

    def _validate_check(self, check: Any) -> bool:
        """Test the first check of each class only: all have attributes of the same types.

        One that cannot be copied after all is an error as soon as ReFrame copies it.
        """
        if type(check) not in VALID:
            VALID[type(check)] = super()._validate_check(check)
        return VALID[type(check)]

    def load_from_module(self, module: Any) -> list[Any]:
        """Load the checks of a module; note their reasons if all exclude themselves."""
        checks: list[Any] = super().load_from_module(module)
        self.sentences = frozenset() if checks else frozenset(left_out(module))
        LEFT_OUT.update(self.sentences)
        return checks

    def load_from_file(self, filename: str, force: bool = False) -> list[Any]:
        """Load the checks of a file; raise if it declares checks and provides none."""
        self.sentences = frozenset()
        checks: list[Any] = super().load_from_file(filename, force)
        if not checks and not self.sentences and self._validate_source(os.path.abspath(filename)):
            raise errors.ReframeError(
                f"the check file {filename} provided no check: the warning above says why"
            )
        return checks


class CountingRunner(Runner):  # type: ignore[misc]
    """A runner that does not pass if nothing ran."""

    def runall(self, testcases: list[Any], restored_cases: Any = None) -> None:
        """Run the test cases; raise if there is none or all were skipped."""
        # Jobs have the environment of this process.
        for name in environment.removed(os.environ, environment.named(site_here() or {})):
            del os.environ[name]
        if not testcases:
            raise errors.ReframeError(
                NOTHING_SELECTED.format(
                    tier=os.environ.get("WYEAST_TIER", "quick"),
                    site=os.environ.get("RFM_SYSTEM", "local"),
                )
                + "".join(f"; {sentence}" for sentence in sorted(LEFT_OUT))
            )
        if not CAMPAIGN:
            super().runall(testcases, restored_cases)
            self.refuse_nothing()
            return
        rounds = session.Rounds(Path(CAMPAIGN), testcases, self.policy)
        with rounds.measured(rounds.first) as wanted:
            super().runall(wanted, restored_cases)
            self.run_instead(rounds, rounds.first)
        # The rest of a round may be what this site cannot measure.
        if len(wanted) == len(testcases):
            self.refuse_nothing()
        # Each from the loaded checks, with the dependencies that have already passed.
        for number in session.told_rounds():
            runtime.runtime().next_run()
            with rounds.measured(number) as wanted:
                self._runall(wanted)
                self.run_instead(rounds, number)

    def run_instead(self, rounds: session.Rounds, number: int) -> None:
        """Have other images measure what needs only one image, and a round's could not measure."""
        for more in rounds.instead(number):
            runtime.runtime().next_run()
            self._runall(more)

    def refuse_nothing(self) -> None:
        """Raise if everything that ran was skipped."""
        # Fixtures only prepare; a run of nothing but fixtures has measured nothing either.
        measured = [task for task in self.stats.tasks() if not task.check.is_fixture()]
        if all(task.skipped for task in measured):
            raise errors.ReframeError(NOTHING_RAN)


class SeededOrder:
    """Stands in for the `random` module in ReFrame's command line."""

    def __init__(self, seed: int | None) -> None:
        self._random = random.Random(seed)

    def shuffle(self, testcases: list[Any]) -> None:
        """Shuffle the test cases in place, independently of the order they were found in."""
        testcases.sort(key=lambda case: (case.check.display_name, str(case.partition)))
        self._random.shuffle(testcases)


class Caller(NamedTuple):
    """What ReFrame needs of an entry of the call stack."""

    frame: FrameType


class QuickInspection:
    """Stands in for the `inspect` module where ReFrame looks for who called it."""

    @staticmethod
    def stack() -> Iterator[Caller]:
        """Return the call stack, the caller first, without reading source files."""
        frame: FrameType | None = sys._getframe(1)
        while frame:
            yield Caller(frame)
            frame = frame.f_back

    @staticmethod
    def getmodule(frame: FrameType) -> ModuleType | None:
        """Return the module whose code runs in a frame."""
        return sys.modules.get(frame.f_globals.get("__name__", ""))


class WholePath:
    """Stands in for ReFrame's `osext` where it starts a job script on this machine.

    ReFrame hands over the script's path, and splits it like a command, at spaces.
    """

    @staticmethod
    def run_command_async(path: str, **options: Any) -> Any:
        """Start the program at a path, whatever characters the path contains."""
        return osext.run_command_async([path], **options)


class QuickYaml:
    """Stands in for the `yaml` module where ReFrame reads references: parses a file once."""

    @staticmethod
    def safe_load(stream: Any) -> Any:
        """Return the content of a file, as PyYAML's function of that name does, by libyaml.

        ReFrame takes what it needs of it and changes nothing.
        """
        name = stream.name
        if name not in PARSED:
            PARSED[name] = yaml.load(stream, Loader=yaml.CSafeLoader)
        return PARSED[name]


class KeptElsewhere:
    """Stands in for `jsonext` where ReFrame leaves each check that passed in its stage folder.

    Nobody restores a session of a campaign, whose journal and packs have what it measured.
    """

    @staticmethod
    def dump(*_: Any, **more: Any) -> None:
        """Write nothing."""


class FoldersThatAreThere:
    """Stands in for the `os` module where ReFrame makes the folder of its report.

    A campaign's is there, unless it was renamed or removed: then none is made under its old name.
    """

    def __getattr__(self, name: str) -> Any:
        """Return what is left as it is."""
        return getattr(os, name)

    @staticmethod
    def makedirs(path: str, *words: Any, **more: Any) -> None:
        """Make a folder as the module does, unless it is a campaign's."""
        if CAMPAIGN is None or not Path(path).is_relative_to(CAMPAIGN):
            os.makedirs(path, *words, **more)


class QuickMatching:
    """Stands in for the `fnmatch` module where ReFrame looks for an option among all that it has.

    It tries one after the other, and few have wildcards.
    """

    @staticmethod
    def fnmatchcase(name: str, pattern: str) -> bool:
        """Return whether a name matches a pattern; one without wildcards is not compiled."""
        if any(sign in pattern for sign in "*?["):
            return fnmatch.fnmatchcase(name, pattern)
        return name == pattern


def describe_check(logger: Any) -> None:
    """Have a line of the log know what our format has of a check, and nothing else."""
    if logger.check is not None:
        logger.extra["check_info"] = logger.check.info()


def inject(space: VarSpace, test: Any, of: type) -> None:
    """Give a new test the values of its class's variables.

    The class gets its variables with its first test: they stay, and so do their values, which are
    converted whenever somebody sets one.
    """
    if of not in INJECTED:
        INJECTED.add(of)
        inject_with_class(space, test, of)
        return
    for name, variable in space.items():
        if variable.is_defined():
            test.__dict__[name] = copied(variable._default_value)


def copied(value: Any) -> Any:
    """Return a copy of a value in which nothing is the original's that could be changed.

    Most are empty, or lists of a word: what copies whatever there is takes ten times as long.
    """
    if type(value) in PLAIN:
        return value
    if type(value) in (list, set) and all(type(one) in PLAIN for one in value):
        return value.copy()
    return {} if type(value) is dict and not value else deepcopy(value)


inject_with_class = VarSpace._inject


def combined(checks: list[Any], *more: Any) -> list[Any]:
    """Return the test cases of checks, without the four lines on each that the log gets otherwise.

    They say that a check of a campaign runs where the site is.
    """
    said, executors.getlogger = executors.getlogger, lambda: null_logger
    try:
        cases: list[Any] = combined_and_told(checks, *more)
        return cases
    finally:
        executors.getlogger = said


combined_and_told = executors.generate_testcases


def main() -> None:
    """Run ReFrame's command line with the guards in place."""
    act_for(ROOT)
    only_owner_writes()
    # A site's jobs may belong to another user, such as those of the cluster in a box.
    site = os.environ.get("RFM_SYSTEM", "local").partition(":")[0]
    become(owner_of(layout.state(ROOT) / "reframe" / site), ROOT)
    seed = os.environ.get("WYEAST_ORDER_SEED")
    cli.random = SeededOrder(int(seed) if seed else None)
    cli.RegressionCheckLoader = StrictLoader
    cli.Runner = CountingRunner
    filters.re_compile = BoundedPattern
    printer.osext = ShownOutput()
    runtime.osext = reframe.core.pipeline.osext = RemovedWhole()
    reframe.core.schedulers.local.osext = WholePath
    schedulers.ask_in_time()
    policies.time = until_it_ends
    executors.time = steady_time
    # A round has the same folders in a session as in a process of its own.
    if CAMPAIGN:
        runtime.RuntimeContext._format_dirs = lambda self, *folders: folders
        executors.jsonext = KeptElsewhere
        cli.os = FoldersThatAreThere()
        cli.generate_testcases = combined
    reframe.core.warnings.inspect = QuickInspection
    reframe.core.pipeline.yaml = QuickYaml
    VarSpace._inject = inject
    CheckFieldFormatter.formatMessage = logging.Formatter.formatMessage
    LoggerAdapter._update_check_extras = describe_check
    reframe.core.config.fnmatch = QuickMatching
    sys.argv[0] = "reframe"
    cli.main()


if __name__ == "__main__":
    main()
