"""An end, after some time of a processor, for what others wrote and may never come to one."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class TakesTooLong(Exception):
    """Something has taken more than its time of a processor."""


@contextmanager
def ended_after(most_s: float) -> Iterator[None]:
    """Have a block end in TakesTooLong once it has taken so many seconds of a processor.

    A regular expression that tries every way to divide a text does not return to Python, but lets
    signals through. Only in a process' first thread, where Python handles them.
    """

    def stop(_: int, __: FrameType | None) -> None:
        raise TakesTooLong(f"more than {most_s:g} s of a processor")

    before = signal.signal(signal.SIGVTALRM, stop)
    began = time.process_time()
    # 0 would be no limit at all.
    outer, _ = signal.setitimer(signal.ITIMER_VIRTUAL, max(most_s, 1e-3))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
        if outer:
            left = outer - (time.process_time() - began)
            signal.setitimer(signal.ITIMER_VIRTUAL, max(left, 1e-3))
