"""How a command ends: by its exit code, or by one sentence on why its work could not be done."""

import errno
import sys
from collections.abc import Callable

from records.ailments.of_machines import FULL_DISK
from records.causes import harmless
from records.files import only_owner_writes
from records.terminal_encoding import suit_terminal

INTERRUPTED = 130


def exit_code(
    name: str, work: Callable[[], int], errors: tuple[type[Exception], ...], state: str
) -> int:
    """Do a command's work and return its exit code; print an error as a sentence of the command.

    `errors` are those whose text is a sentence; `state` says how things are if the work was
    interrupted. A file that cannot be read or written is named. Only the owner may change what the
    command writes, whatever the umask: some clusters set it to 0.
    """
    only_owner_writes()
    suit_terminal()
    try:
        return work()
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
