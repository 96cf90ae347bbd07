"""The words of a command line: what is wrong with them is one sentence.

Most commands are typed as `make` and a variable, so argparse's usage of the options behind it helps
nobody; `--help` still prints it.
"""

from __future__ import annotations

import argparse
import re
import sys
from typing import NoReturn

#: argparse's own words, and ours.
PLAINLY = (
    (re.compile(r"^argument (?:\S+/)?-*([\w-]+): "), r"\1: "),
    (re.compile(r"invalid int value: (.+)$"), r"\1 is not a whole number"),
    (re.compile(r"invalid float value: (.+)$"), r"\1 is not a number"),
    (re.compile(r"invalid choice: (.+) \(choose from (.+)\)$"), r"\1 is unknown; choose from \2"),
)


class CommandWords(argparse.ArgumentParser):
    """A parser that ends with one sentence and 2 where it cannot use the words."""

    def error(self, message: str) -> NoReturn:
        """End with what is wrong."""
        for pattern, words in PLAINLY:
            message = pattern.sub(words, message)
        name = self.prog.removeprefix("python -m ")
        print(f"{name}: {message}; all options: {self.prog} --help", file=sys.stderr)
        sys.exit(2)
