"""A ReFrame that a campaign has started ends with it, whatever becomes of its messages."""

import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from campaign.reframe_session import ReframeSession


def test_it_is_waited_for_where_its_messages_cannot_be_kept(tmp_path: Path) -> None:
    gone: Any = tmp_path / "gone"
    nothing: Any = SimpleNamespace()
    session = ReframeSession(tmp_path, gone, nothing, nothing)
    process = subprocess.Popen(["yes"], stdout=subprocess.PIPE, text=True)
    session.process = process
    with pytest.raises(FileNotFoundError):
        session.end()
    assert process.returncode is not None
