"""What the tests of campaigns share: a machine of their own, on which nobody else measures."""

from pathlib import Path

import pytest

from containers import locking


@pytest.fixture
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder in which all users may make files."""
    folder = tmp_path_factory.mktemp("shared")
    folder.chmod(0o1777)
    return folder


@pytest.fixture(autouse=True)
def _own_machine(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither tests beside this one nor a campaign on this machine hold what it locks."""
    monkeypatch.setattr(locking, "SHARED", (shared,))
