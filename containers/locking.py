"""One at a time: a process that changes images keeps others out."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from records.acting_user import hand_over, untrusted
from records.locks import LockHeld, exclusive


class BuildError(Exception):
    """A build cannot be done; the text is a sentence with the next step."""


@contextmanager
def only_build(root: Path) -> Iterator[None]:
    """Keep a second build out; raises BuildError if one is under way."""
    remains = root / ".wyeast" / "build"
    if os.geteuid() == 0 and (sentence := untrusted(root)):
        raise BuildError(sentence)
    hand_over(root)
    try:
        with exclusive(root / ".wyeast" / "locks" / "build", str(os.getpid())):
            # Leftovers of an interrupted build; nothing else is running here.
            shutil.rmtree(remains, ignore_errors=True)
            try:
                yield
            finally:
                shutil.rmtree(remains, ignore_errors=True)
    except LockHeld as holder:
        raise BuildError(
            f"another build is under way (process {holder}); wait for it to end, then run this "
            "one again"
        ) from None
