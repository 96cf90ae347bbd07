"""A command on a terminal of its own, whoever has the terminal at which it was started."""

import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]
#: As by `nsenter`, it is a child of what is started.
RUN = """
import os, sys
from cluster.terminal_session import has_terminal, own_session, run
command = [*own_session(has_terminal()), "sh", "-c", "echo said; exit 3"]
sys.exit(run(["sh", "-c", '"$@"; exit $?', "sh", *command], os.environ, lambda _: None))
"""
#: Shells that a person starts it in: at the front, behind it, and in a session beside it.
SHELLS = {
    "foreground": '"$@"; echo ended $?',
    # A job that is stopped for its terminal's sake is no longer waited for, or for ever.
    "background": 'set -m; "$@" & wait $!; echo ended $?',
    "input from elsewhere": '"$@" </dev/null; echo ended $?',
    "another session": 'setsid --wait "$@"; echo ended $?',
}


@pytest.mark.parametrize("where", SHELLS)
def test_a_command_ends_wherever_it_was_started(where: str) -> None:
    master, slave = pty.openpty()
    shell = subprocess.Popen(
        ["setsid", "--ctty", "sh", "-c", SHELLS[where], "sh", sys.executable, "-c", RUN],
        cwd=PROJECT, env={**os.environ, "PYTHONPATH": str(PROJECT)},
        stdin=slave, stdout=slave, stderr=slave,
    )  # fmt: skip
    seen, deadline = "", time.monotonic() + 60
    try:
        while "ended" not in seen or not seen.endswith("\n"):
            assert time.monotonic() < deadline, seen
            if select.select([master], [], [], 0.2)[0]:
                seen += os.read(master, 4096).decode(errors="replace")
    finally:
        # Nothing of the session stays, also where it was stopped.
        shell.kill()
        shell.wait()
        os.close(slave)
        os.close(master)
    assert "said" in seen and seen.rstrip().endswith("ended 3"), seen
