"""Commands of `containers` that a campaign on this machine does not refuse."""

import os
import subprocess
import sys
from pathlib import Path

from records import locks

PROJECT = Path(__file__).resolve().parents[2]
#: Runs a module with the folders for the machine's lock that it is given.
RUN = """
import runpy, sys
from pathlib import Path
from records import locks
locks.SHARED = tuple(map(Path, sys.argv.pop(1).split(":")))
runpy.run_module(sys.argv.pop(1), run_name="__main__", alter_sys=True)
"""


def run(root: Path, module: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a module in a checkout, on the machine of the test that starts it."""
    return subprocess.run(
        [sys.executable, "-c", RUN, ":".join(map(str, locks.SHARED)), module, *words],
        env={**os.environ, "WYEAST_ROOT": str(root), "PYTHONPATH": str(PROJECT)},
        capture_output=True, text=True,
    )  # fmt: skip
