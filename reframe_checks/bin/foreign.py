"""What others wrote and ReFrame handles: patterns for names of checks, output, and folders.

A bundle's pattern may try every way to divide a name, while a campaign holds the machine; what a
program printed may move the cursor of whoever reads why it failed; and folders that it left may be
closed, or deeper than Python descends, so that no later launch had a folder in their place.
"""

from __future__ import annotations

import os
import re
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import reframe.core.exceptions as errors
import reframe.utility.osext as osext

from records.bounded import TakesTooLong, ended_after
from records.causes import one_line

#: Of a processor, in s, what all names of a session may take; honest patterns take thousandths.
MOST_MATCHING_S = 10.0
#: Of the end of a stream, in bytes, what its last lines are taken from.
MOST_SHOWN_BYTES = 2**16


class BoundedPattern:
    """A regular expression whose searches end after some time of a processor, all together."""

    def __init__(self, expression: str) -> None:
        try:
            self._regex = re.compile(expression)
        except (re.error, RecursionError, OverflowError):
            raise errors.ReframeError(f"invalid regex: {expression!r}") from None
        self._left_s = MOST_MATCHING_S

    def search(self, text: str) -> re.Match[str] | None:
        """Return the first match in a text, if any; raises ReframeError where it takes too long."""
        began = time.process_time()
        try:
            with ended_after(self._left_s):
                return self._regex.search(text)
        except TakesTooLong:
            raise errors.ReframeError(
                f"the pattern takes more than {MOST_MATCHING_S:g} s of a processor for the names "
                "of the checks, so it may never end; write it without a repetition inside another"
            ) from None
        finally:
            self._left_s -= time.process_time() - began


class ShownOutput:
    """Stands in for ReFrame's `osext` where it shows how a launch's output ends."""

    def __getattr__(self, name: str) -> Any:
        """Return what is left as it is."""
        return getattr(osext, name)

    @staticmethod
    def tail(filename: str | Path, num_lines: int = 10) -> list[str]:
        """Return a file's last lines, as far as they are short, without what harms a terminal."""
        with open(filename, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - MOST_SHOWN_BYTES))
            lines = file.read().decode(errors="replace").split("\n")
        ended = lines[:-1] if lines[-1] == "" else lines
        return [f"{one_line(line)}\n" for line in ended[-num_lines:]]


class RemovedWhole:
    """Stands in for ReFrame's `osext` where it removes what a launch has left."""

    def __getattr__(self, name: str) -> Any:
        """Return what is left as it is."""
        return getattr(osext, name)

    @staticmethod
    def rmtree(path: str, **how: Any) -> None:
        """Remove a folder, whatever is in it; raises OSError where it cannot be removed."""
        with suppress(OSError, RecursionError):
            osext.rmtree(path, **how)
        if os.path.lexists(path):
            subprocess.run(["chmod", "-R", "u+rwX", "--", path], capture_output=True, check=False)
            done = subprocess.run(["rm", "-rf", "--", path], capture_output=True, check=False)
            if done.returncode and not how.get("ignore_errors"):
                raise OSError(f"{path} cannot be removed: {one_line(done.stderr.decode())}")
