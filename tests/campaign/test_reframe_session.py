"""A ReFrame that a campaign has started ends with it, whatever becomes of its messages."""

import signal
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from campaign.reframe_session import ReframeSession

#: Goes on whoever takes its messages, as whatever logs by Python's own means.
GOES_ON = """
import logging, sys, time
logging.basicConfig(stream=sys.stdout)
while True:
    logging.error("a message")
    time.sleep(0.01)
"""


@pytest.mark.parametrize(
    ("command", "signals"),
    [
        (["yes"], {signal.SIGTERM, signal.SIGPIPE}),
        ([sys.executable, "-c", GOES_ON], {signal.SIGTERM}),
    ],
)
def test_it_ends_where_its_messages_cannot_be_kept(
    command: list[str], signals: set[signal.Signals], tmp_path: Path
) -> None:
    gone: Any = tmp_path / "gone"
    nothing: Any = SimpleNamespace()
    session = ReframeSession(tmp_path, gone, nothing, nothing)
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )  # fmt: skip
    session.process = process
    # One that did not end would be waited for, for ever.
    late = threading.Timer(60.0, process.kill)
    late.start()
    with pytest.raises(FileNotFoundError):
        session.end()
    late.cancel()
    assert -process.returncode in signals
