"""Progress of a round, read from what ReFrame prints."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from typing import TextIO

from records.causes import one_line
from reframe_checks.bin.telling import INSTEAD, LEFT, WAITS

FINISHED = re.compile(r"^\[\s*(OK|FAIL|SKIP)\s*\] \(\s*(\d+)/(\d+)\) (.+?)(?: /[0-9a-f]{8})? @")
REASON = re.compile(r"^==> test failed during '(\w+)'")
SECONDS_BETWEEN_LINES = 10.0
#: How ReFrame's lines begin that say what a job waits for, what one left running, or which image
#: measures instead of another.
TOLD = (WAITS, LEFT, INSTEAD)


class CampaignProgress:
    """Prints one line in place on a terminal, and a line now and then elsewhere."""

    def __init__(self, rounds: int, out: TextIO | None = None) -> None:
        self.rounds = rounds
        self.out = out or sys.stdout
        self.began = time.monotonic()
        self.last_line = 0.0
        #: The last thing that ReFrame said about each check of a round.
        self.results: dict[tuple[int, str], str] = {}

    def has_failures(self, round_number: int) -> bool:
        """Return whether a check of a round failed and did not succeed in a later session."""
        return any(
            number == round_number and result == "FAIL"
            for (number, _), result in self.results.items()
        )

    def say(self, text: str) -> None:
        """Print a whole line with the elapsed time."""
        clear = "\r\033[K" if self.out.isatty() else ""
        self._print(f"{clear}[{time.monotonic() - self.began:5.0f} s] {text}\n")

    def _print(self, text: str) -> None:
        """Print, for as long as somebody takes it: who reads no more ends no campaign."""
        try:
            self.out.write(text)
            self.out.flush()
        except OSError as error:
            with suppress(OSError):
                print(
                    f"campaign: its output cannot be written ({error.strerror}), so nothing more "
                    "is printed; it goes on, and its report will have the answer",
                    file=sys.stderr,
                )
            # What it starts prints there, too.
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.out.fileno())
            os.close(nowhere)

    def follow(
        self, round_number: int, lines: Iterable[str], log: TextIO, over: str | None = None
    ) -> bool:
        """Copy ReFrame's lines to the log and show how far the round is.

        Returns whether the line that ends the round came; if not, there are no more lines.
        """
        for line in lines:
            log.write(line)
            if line == over:
                return True
            if line.startswith(TOLD):
                self.say(f"round {round_number}/{self.rounds}  {one_line(line[len(WAITS) :])}")
            match = FINISHED.match(line)
            if not match:
                continue
            result, done, total, name = match.groups()
            self.results[round_number, name] = result
            text = f"round {round_number}/{self.rounds}  {done}/{total}  {name}"
            if result == "FAIL":
                self.say(f"{text}  FAILED")
            elif self.out.isatty():
                elapsed = time.monotonic() - self.began
                self._print(f"\r\033[K[{elapsed:5.0f} s] {text}")
            elif time.monotonic() - self.last_line > SECONDS_BETWEEN_LINES or done == total:
                self.last_line = time.monotonic()
                self.say(text)
        return False
