"""Queries by Slurm's commands: each answers in time, or counts as unanswered."""

import subprocess

from records.causes import one_line

#: How long Slurm may take to answer by default, in seconds.
PATIENCE_S = 10.0


class NoAnswer(Exception):
    """Slurm does not answer a query; the text says in which way."""


def ask(command: list[str], patience_s: float | None = None) -> str:
    """Return the output of a Slurm command; raise NoAnswer if there is none."""
    patience_s = PATIENCE_S if patience_s is None else patience_s
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=patience_s,
            errors="replace", check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise NoAnswer(f"{command[0]} did not answer within {patience_s:g} s") from None
    except OSError as error:
        raise NoAnswer(f"{command[0]} cannot be started: {error.strerror}") from None
    if done.returncode:
        said = one_line(done.stderr) or f"it ended with exit code {done.returncode}"
        raise NoAnswer(f"{command[0]}: {said.removeprefix(f'{command[0]}: ')}")
    return done.stdout
