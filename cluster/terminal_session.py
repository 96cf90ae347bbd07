"""A command in its own session, with its own terminal if it has one at all.

A process that shares a terminal with root's shell can put words into it as if root had typed them
(TIOCSTI). So a user of the cluster gets a pseudo-terminal, between which and root's terminal this
process relays input and output, as `script` does.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import pty
import select
import signal
import subprocess
import termios
import tty
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from types import FrameType

STANDARD = (0, 1, 2)
PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
PR_SET_PDEATHSIG = 1
PIECE = 65536


def own_session(terminal: bool) -> list[str]:
    """Return the command prefix that starts a session, on its standard terminal or on none."""
    return ["setsid", *(["--ctty"] if terminal else [])]


def has_terminal() -> bool:
    """Return whether the standard input is a terminal, which is the one that `setsid` takes."""
    return os.isatty(0)


def _end_with_parent() -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def run(
    command: Sequence[str], environment: Mapping[str, str], inner: Callable[[int], int | None]
) -> int:
    """Run a command whose terminals are replaced by its own one; return its exit code.

    `inner` returns the process to which signals are relayed, given the one that is started.
    """
    outer = [number for number in STANDARD if os.isatty(number)]
    master, slave = pty.openpty() if outer else (-1, -1)
    if outer:
        _copy_size(outer[0], slave)
    files = [slave if number in outer else number for number in STANDARD]
    child = subprocess.Popen(
        list(command), env=dict(environment), stdin=files[0], stdout=files[1], stderr=files[2],
        # Not among the processes that root's terminal signals.
        process_group=0, preexec_fn=_end_with_parent,
    )  # fmt: skip

    def hand_on(number: int, _: FrameType | None) -> None:
        # Before the command is there, what is to start it ends.
        with suppress(ProcessLookupError):
            os.kill(inner(child.pid) or child.pid, number)

    for number in PASSED_ON:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, hand_on)
    if outer:
        os.close(slave)
        _relay(master, outer, os.pidfd_open(child.pid))
    code = child.wait()
    return code if code >= 0 else 128 - code


def _copy_size(source: int, target: int) -> None:
    size = fcntl.ioctl(source, termios.TIOCGWINSZ, bytes(8))
    fcntl.ioctl(target, termios.TIOCSWINSZ, size)


def _relay(master: int, outer: list[int], child: int) -> None:
    """Relay input and output until a process has ended; `child` is its descriptor."""
    said = next((number for number in (1, 2) if number in outer), outer[0])
    typed = 0 if 0 in outer else None

    def resized(*_: object) -> None:
        _copy_size(outer[0], master)

    signal.signal(signal.SIGWINCH, resized)
    before = None
    try:
        if typed is not None and _in_foreground():
            before = termios.tcgetattr(0)
            # What was typed ahead is not thrown away.
            tty.setraw(0, termios.TCSADRAIN)
            if outer != list(STANDARD):
                # Another program of the same pipe may print here as it always did.
                mode = termios.tcgetattr(0)
                mode[1] |= termios.OPOST
                termios.tcsetattr(0, termios.TCSANOW, mode)
        else:
            typed = None
        watched = [master, child, *([typed] if typed is not None else [])]
        while True:
            ready, _, _ = select.select(watched, [], [])
            if master in ready:
                try:
                    piece = os.read(master, PIECE)
                except OSError:
                    # The last process that had it open has ended.
                    return
                _write(said, piece)
            elif child in ready:
                # With nothing more to be read; what stays in the background is not waited for.
                return
            if typed in ready:
                piece = os.read(0, PIECE)
                if not piece:
                    watched.remove(0)
                    # What a terminal says when nothing more comes.
                    piece = b"\x04"
                _write(master, piece)
    finally:
        os.close(master)
        os.close(child)
        if before is not None:
            termios.tcsetattr(0, termios.TCSADRAIN, before)


def _in_foreground() -> bool:
    """Return whether this process may set up the terminal; in the background that would stop it."""
    try:
        return os.getpgrp() == os.tcgetpgrp(0)
    except OSError:
        # The terminal of another session.
        return False


def _write(file: int, piece: bytes) -> None:
    while piece:
        piece = piece[os.write(file, piece) :]
