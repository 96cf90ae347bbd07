"""How a command ends: by its exit code, or by one sentence on why its work could not be done."""

import errno
import os
import sys
from collections.abc import Callable

from records.ailments.of_machines import FULL_DISK
from records.causes import harmless
from records.files import only_owner_writes
from records.terminal_encoding import open_streams, suit_terminal

INTERRUPTED = 130


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
    except OSError as error:
        file = f"{error.filename}: " if error.filename else ""
        is_full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        sentence = f"{file}{FULL_DISK.sentence if is_full else error.strerror or error}"
    except KeyboardInterrupt:
        print(f"{name}: interrupted; {state}", file=sys.stderr)
        return INTERRUPTED
    print(f"{name}: {harmless(sentence)}", file=sys.stderr)
    return 1


def _print_the_rest() -> None:
    """Print what is still in standard output's buffer; raises OSError, as for a full disk."""
    try:
        sys.stdout.flush()
    except OSError as error:
        # Python would try it once more at its end, and say so in its own words.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        # Whoever has closed a pipe has read enough.
        if not isinstance(error, BrokenPipeError):
            raise
