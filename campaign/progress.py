"""Progress of a round, read from what ReFrame prints."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterable
from typing import TextIO

FINISHED = re.compile(r"^\[\s*(OK|FAIL|SKIP)\s*\] \(\s*(\d+)/(\d+)\) (.+?)(?: /[0-9a-f]{8})? @")
REASON = re.compile(r"^==> test failed during '(\w+)'")
SECONDS_BETWEEN_LINES = 10.0


class Progress:
    """Prints one line in place on a terminal, and a line now and then elsewhere."""

    def __init__(self, rounds: int, out: TextIO = sys.stdout) -> None:
        self.rounds = rounds
        self.out = out
        self.began = time.monotonic()
        self.last_line = 0.0

    def say(self, text: str) -> None:
        """Print a whole line with the elapsed time."""
        clear = "\r\033[K" if self.out.isatty() else ""
        print(f"{clear}[{time.monotonic() - self.began:5.0f} s] {text}", file=self.out, flush=True)

    def follow(self, round_number: int, lines: Iterable[str], log: TextIO) -> None:
        """Copy ReFrame's lines to the log and show how far the round is."""
        for line in lines:
            log.write(line)
            match = FINISHED.match(line)
            if not match:
                continue
            result, done, total, name = match.groups()
            text = f"round {round_number}/{self.rounds}  {done}/{total}  {name}"
            if result == "FAIL":
                self.say(f"{text}  FAILED")
            elif self.out.isatty():
                elapsed = time.monotonic() - self.began
                print(f"\r\033[K[{elapsed:5.0f} s] {text}", end="", file=self.out, flush=True)
            elif time.monotonic() - self.last_line > SECONDS_BETWEEN_LINES or done == total:
                self.last_line = time.monotonic()
                self.say(text)
