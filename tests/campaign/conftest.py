"""What the tests of campaigns share: a machine of their own, on which nobody else measures."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from campaign import beginning, provenance, reframe_session, resuming
from containers import images, origin
from records import locks
from tests.campaign.played_reframe import NAMES
from tests.lanes import REALLY
from tests.reframe_checks.forked import Forked

PROJECT = Path(__file__).resolve().parents[2]
PLAYED = "tests.campaign.played_reframe"


@pytest.fixture
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder in which all users may make files."""
    folder = tmp_path_factory.mktemp("shared")
    folder.chmod(0o1777)
    return folder


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a checkout without campaigns, with the site `local`, of which all images are whole."""
    site = tmp_path / "site_configs" / "local"
    site.mkdir(parents=True)
    known = (PROJECT / "site_configs" / "local" / "site.yaml").read_text()
    (site / "site.yaml").write_text(f"{known}\nimplementations: [alpha-1.0]\n")
    (tmp_path / "runs").mkdir()
    built = {"origin": origin.BUILT}
    monkeypatch.setattr(images, "verified", lambda root, name: (root, (), built))
    return tmp_path


@pytest.fixture(autouse=True)
def _own_machine(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither tests beside this one nor a campaign on this machine hold what it locks."""
    monkeypatch.setattr(locks, "SHARED", (shared,))


def begun(command: list[str], **how: Any) -> Forked | subprocess.Popen[str]:
    """Begin a played ReFrame: it is forked, but where it is to be started really."""
    if REALLY in os.environ:
        return subprocess.Popen(command, **how)
    return Forked(PLAYED, command, how["cwd"], how["env"], how["pass_fds"])


@pytest.fixture
def played(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a checkout whose ReFrame is played, with two images that are whole."""
    script = checkout / "reframe_checks" / "bin" / "reframe"
    script.parent.mkdir(parents=True)
    script.write_text(
        f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(PROJECT)!r})\n"
        "from pathlib import Path\nfrom tests.campaign.played_reframe import main\n"
        f"sys.exit(main(Path({str(checkout)!r})))\n"
    )
    script.chmod(0o755)
    playing = SimpleNamespace(Popen=begun, PIPE=subprocess.PIPE, STDOUT=subprocess.STDOUT)
    monkeypatch.setattr(reframe_session, "subprocess", playing)
    monkeypatch.setattr(beginning, "ROOT", checkout)
    monkeypatch.setattr(beginning, "chosen", lambda options: (list(NAMES), {}))
    for module in (beginning, resuming):
        monkeypatch.setattr(module, "load_site", lambda site: {"scheduler": "local"})
    monkeypatch.setattr(
        provenance, "describe_images",
        lambda root, names, site, **_: {name: {"sha256": "1" * 64} for name in names},
    )  # fmt: skip
    for fact in ("input_digests", "software"):
        monkeypatch.setattr(provenance, fact, lambda *_: {})
    monkeypatch.setattr(provenance, "machine", lambda: {"cpu_model": None})
    return checkout
