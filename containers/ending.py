"""How a command ends: by its exit code, or by one sentence on why its work could not be done."""

import errno
import os
import select
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import TextIO

from records.ailments.of_machines import ADDRESS_SPACE, FULL_DISK
from records.causes import harmless
from records.files import only_owner_writes
from records.terminal_encoding import open_streams, suit_terminal

INTERRUPTED = 130
#: As shells say it of a program that nobody reads any more (SIGPIPE): its work is not done.
UNREAD = 141


def exit_code(
    name: str, work: Callable[[], int], errors: tuple[type[Exception], ...], state: str
) -> int:
    """Do a command's work and return its exit code; print an error as a sentence of the command.

    `errors` are those whose text is a sentence; `state` says how things are if the work was
    interrupted. A file that cannot be read or written is named. Only the owner may change what the
    command writes, whatever the umask: some clusters set it to 0.
    """
    open_streams()
    only_owner_writes()
    suit_terminal()
    try:
        code = work()
        _print_the_rest()
        return code
    except errors as error:
        sentence = str(error)
    except MemoryError as error:
        sentence = f"{ADDRESS_SPACE.sentence} (MemoryError{f': {error}' if str(error) else ''})"
    except OSError as error:
        if isinstance(error, BrokenPipeError) and _is_unread():
            _leave(sys.stdout)
            return UNREAD
        file = f"{error.filename}: " if error.filename else ""
        is_full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        sentence = f"{file}{FULL_DISK.sentence if is_full else error.strerror or error}"
    except KeyboardInterrupt:
        _say(f"{name}: interrupted; {state}")
        return INTERRUPTED
    _say(f"{name}: {harmless(sentence)}")
    return 1


def _say(sentence: str) -> None:
    """Print a sentence on standard error, after what was printed before."""
    # What cannot be printed is not said: the exit code is.
    with suppress(OSError):
        _print_the_rest()
    try:
        print(sentence, file=sys.stderr, flush=True)
    except OSError:
        _leave(sys.stderr)


def _print_the_rest() -> None:
    """Print what is still in standard output's buffer; raises OSError, as for a full disk."""
    try:
        sys.stdout.flush()
    except OSError as error:
        _leave(sys.stdout)
        # Whoever has closed a pipe has read enough.
        if not isinstance(error, BrokenPipeError):
            raise


def _leave(stream: TextIO) -> None:
    """Have what is left in a stream's buffer go nowhere.

    Python would try it once more at its end, say so in its own words, and end with 120.
    """
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def _is_unread() -> bool:
    """Return whether standard output is a pipe that nobody reads any more."""
    asked = select.poll()
    try:
        asked.register(sys.stdout.fileno(), 0)
    except (OSError, ValueError):
        return False
    return any(events & (select.POLLERR | select.POLLHUP) for _, events in asked.poll(0))
