"""Campaigns of two checkouts at once that take turns: a launch of one, then one of the other.

Two campaigns in a row are as far apart as each of them is long, and the rate of a shared machine
changes in that time by more than that of two launches in a row. Here a launch of one campaign
begins when one of the other has ended, and what both measure is compared launch by launch.

Whose turn it is goes back and forth by two named pipes, on which the one that waits is asleep. It
waits at the end of its launch's container: what its loop does between two launches, and while one
runs, it does in its own turn, before and beside its own launch, as it would alone.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from records.base import CampaignError
from records.causes import one_line

#: What starts in a turn: the launchers of images, and not what asks an image or an Apptainer.
LAUNCHERS = ("mpiexec", "mpirun", "lam_ranks", "pvm_ranks")
WRAPPER = """#!/bin/sh
# A launch waits for its turn, and hands it on when it has ended.
case " $* " in {launchers}) ;; *) exec {apptainer} "$@" ;; esac
[ -e {begun} ] || {{ read -r _ <{mine}; : >{begun}; }}
{apptainer} "$@"
code=$?
echo >{other}
read -r _ <{mine}
exit $code
"""
#: Turns for whoever is left when the other campaign has ended: fewer than a pipe holds.
LEFT = b"\n" * 50_000
POLL_S, ASK_S = 0.5, 60.0


def apart() -> list[str]:
    """Return what runs a command with processes and locks of its own, which end with this one.

    Campaigns exclude each other by a lock of the machine, and mark a launch beside which others
    used the processors, as the other's did while it waited. Whoever is ended in any way leaves
    none behind, that nobody would see measuring.
    """
    rights = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    return ["setpriv", "--pdeathsig", "KILL", "unshare", *rights, "--mount", "--pid", "--fork",
            "--kill-child", "--mount-proc",
            "sh", "-c", 'mount -t tmpfs none /run/lock && exec "$@"', "sh"]  # fmt: skip


def in_turns(
    checkouts: Sequence[Path], words: Sequence[str], environment: Mapping[str, str]
) -> None:
    """Run a command in each of two checkouts at once, activated, with launches in turns.

    `environment` is that of both. Raises CampaignError where one fails; both have ended then.
    """
    with tempfile.TemporaryDirectory(prefix="wyeast-turns-") as folder:
        if ":" in folder:
            raise CampaignError(f"{folder} has a colon, which PATH cannot: set another TMPDIR")
        pipes = [_pipe(Path(folder) / f"turn{side}") for side in (0, 1)]
        running: list[subprocess.Popen[str]] = []
        try:
            for side, checkout in enumerate(checkouts):
                own = _wrapper(Path(folder), side, _apptainer(checkout, environment))
                first = shlex.quote(str(own))
                script = f'. ./activate && PATH={first}:"$PATH" && exec {shlex.join(words)}'
                with (Path(folder) / f"log{side}").open("w") as log:
                    running.append(
                        subprocess.Popen(
                            [*apart(), "bash", "-c", script], cwd=checkout, env=dict(environment),
                            stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                            text=True,
                        )
                    )  # fmt: skip
            os.write(pipes[0], b"\n")
            _wait(running, pipes, [Path(folder) / f"log{side}" for side in (0, 1)], checkouts)
            for side, checkout in enumerate(checkouts):
                if not (Path(folder) / f"side{side}" / "begun").exists():
                    raise CampaignError(
                        f"no launch of {checkout} waited for a turn, so that what it measured may "
                        "have run beside the other's"
                    )
        finally:
            _end(running)
            for pipe in pipes:
                os.close(pipe)


def _pipe(path: Path) -> int:
    """Make a named pipe, held open so that a turn stays in it until it is taken."""
    os.mkfifo(path, 0o600)
    return os.open(path, os.O_RDWR | os.O_NONBLOCK)


def not_measured(checkout: Path, said: str) -> CampaignError:
    """Return that a checkout did not measure, with the last that it said."""
    last = one_line(" ".join(said.splitlines()[-3:])) or "it said nothing"
    return CampaignError(f"{checkout} did not measure: {last}")


def _apptainer(checkout: Path, environment: Mapping[str, str]) -> str:
    """Return the Apptainer that a checkout would start; raises CampaignError without one."""
    asked = subprocess.run(
        ["bash", "-c", ". ./activate && command -v apptainer"], cwd=checkout, env=dict(environment),
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=ASK_S, check=False,
    )  # fmt: skip
    if asked.returncode or not asked.stdout.strip():
        raise CampaignError(
            f"{checkout} has no apptainer: {one_line(asked.stderr) or 'make setup'}"
        )
    return asked.stdout.splitlines()[-1]


def _wrapper(folder: Path, side: int, apptainer: str) -> Path:
    """Make what stands before a checkout's Apptainer; return its folder."""
    own = folder / f"side{side}"
    own.mkdir()
    path = own / "apptainer"
    path.write_text(
        WRAPPER.format(
            # By name, or by its path in the image.
            launchers="|".join(f'*[\\ /]"{one} "*' for one in LAUNCHERS),
            apptainer=shlex.quote(apptainer),
            begun=shlex.quote(str(own / "begun")),
            mine=shlex.quote(str(folder / f"turn{side}")),
            other=shlex.quote(str(folder / f"turn{1 - side}")),
        )
    )
    path.chmod(0o755)
    return own


def _wait(
    running: Sequence[subprocess.Popen[str]],
    pipes: Sequence[int],
    logs: Sequence[Path],
    checkouts: Sequence[Path],
) -> None:
    """Wait until both have ended; whoever is left then has all the turns."""
    left = {0, 1}
    while left:
        for side in tuple(left):
            code = running[side].poll()
            if code is None:
                continue
            if code:
                raise not_measured(checkouts[side], logs[side].read_text(errors="replace"))
            left.remove(side)
            os.write(pipes[1 - side], LEFT)
        time.sleep(POLL_S)


def _end(running: Sequence[subprocess.Popen[str]]) -> None:
    """End what still runs: the first of a namespace's processes ends when all others have."""
    for one in running:
        if one.poll() is not None:
            continue
        with suppress(ProcessLookupError):
            children = Path(f"/proc/{one.pid}/task/{one.pid}/children").read_text().split()
            for child in map(int, children):
                os.kill(child, signal.SIGKILL)
            if not children:
                one.kill()
        one.wait()
