"""A step of a build: its output goes to a log, and its failure becomes a sentence."""

import os
import subprocess
import time
from pathlib import Path

from containers import programs
from records import layout
from records.causes import known_in, one_line


class StepError(Exception):
    """A step has failed; the text is a sentence, the log's last lines, and the log's path."""

    def __init__(self, sentence: str, log: Path) -> None:
        """Return what failed, with the end of its log."""
        lines = log.read_text(errors="replace").splitlines() if log.exists() else []
        tail = [f"    {one_line(line)}" for line in [line for line in lines if line.strip()][-8:]]
        if known := known_in("\n".join(lines[-200:])):
            sentence += f": {known.sentence}"
        super().__init__("\n".join([f"{sentence}; its log ends with:", *tail, f"log: {log}"]))


class BuildProgress:
    """Lines on standard output, each with the seconds since the start."""

    def __init__(self) -> None:
        """Start the clock."""
        self.start = time.monotonic()

    def say(self, text: str) -> None:
        """Print one line."""
        print(f"[{time.monotonic() - self.start:6.1f} s] {text}", flush=True)


def log_path(root: Path, name: str) -> Path:
    """Return the path of a new log of a build."""
    folder = layout.state(root) / "logs"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"build-{name}.log"
    path.unlink(missing_ok=True)
    return path


def run_logged(command: list[str], what: str, log: Path, scratch: Path, **variables: str) -> None:
    """Run Apptainer in `scratch`, which also holds its temporary files; raises StepError.

    The variables are added to the caller's.
    """
    state = log.parent.parent
    environment = {
        **os.environ,
        "PATH": programs.search_path(state),
        "APPTAINER_QUIET": "false",
        "APPTAINER_TMPDIR": str(scratch),
        "APPTAINER_CACHEDIR": str(scratch / "cache"),
        **variables,
    }
    with log.open("ab") as output:
        output.write(f"$ {' '.join(command)}\n".encode())
        output.flush()
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment,
            cwd=scratch,
        )  # fmt: skip
    if done.returncode:
        raise StepError(f"{what}: the build failed with status {done.returncode}", log)
