"""What each command that measures does first, and how each ends where something is in its way."""

import errno
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from campaign import __main__ as campaign
from campaign import beginning, measuring, nightly, provenance
from campaign.bundle import rerun
from campaign.site import check as check_site
from campaign.site_lock import only_campaign
from containers import images, trust
from costs import inside_and_outside, network, profiling
from records import files, layout
from records.base import CampaignError
from records.manifest import RoundDone
from tests.site_configs.fake_machine import SLURM, commands

#: Each ends soon by these words, since there is no such site or bundle.
MAINS: dict[str, tuple[Callable[[], int], list[str]]] = {
    "campaign": (campaign.main, ["--site", "nowhere"]),
    "nightly": (nightly.main, ["--site", "nowhere"]),
    "check-site": (check_site.main, ["--site", "nowhere"]),
    "rerun": (rerun.main, ["nothing.tar.gz"]),
}


#: What takes longer to be loaded than all else that a command begins with.
HEAVY = {"numpy", "polars", "scipy", "reframe", "jinja2"}


# check-site ends with a table, which only the analysis draws.
@pytest.mark.parametrize("name", [name for name in MAINS if name != "check-site"])
def test_a_command_begins_without_what_few_of_its_steps_need(name: str) -> None:
    module = MAINS[name][0].__module__
    loaded = f"import sys, {module}; print(*{HEAVY} & set(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", loaded], cwd=layout.CODE, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == []


@pytest.fixture(autouse=True)
def root(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a checkout with one site, in which commands measure."""
    for module in (beginning, nightly, check_site, rerun):
        monkeypatch.setattr(module, "ROOT", checkout)
    monkeypatch.setattr(check_site, "look_around", lambda *_, **__: [])
    return checkout


@pytest.fixture
def careless() -> Iterator[None]:
    """Have others write whatever is made, and undo what a command changes of that."""
    before = os.umask(0)
    yield
    os.umask(before)


def run(monkeypatch: pytest.MonkeyPatch, name: str, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", [name, *words])
    return MAINS[name][0]()


@pytest.mark.usefixtures("careless")
@pytest.mark.parametrize("name", MAINS)
def test_what_a_command_makes_only_its_owner_writes(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, name, *MAINS[name][1]) == 1
    assert os.umask(0) == 0o022
    said = capsys.readouterr().err
    assert said.startswith(f"{name}: ") and said.count("\n") == 1


@pytest.mark.parametrize("name", ["campaign", "nightly", "check-site"])
def test_a_lock_that_cannot_be_opened_is_a_sentence(
    name: str, root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As another user's cannot be; root is refused nothing but a folder."""
    (root / ".wyeast/reframe/local/campaign-local.lock").mkdir(parents=True)
    assert run(monkeypatch, name) == 1
    said = capsys.readouterr().err
    assert "campaign-local.lock cannot be opened: Is a directory; if this" in said
    assert said.count("\n") == 1
    with pytest.raises(CampaignError, match="cannot be opened"), only_campaign(root, "local"):
        pass


@pytest.mark.parametrize("name", ["campaign", "nightly", "check-site"])
def test_wrong_references_are_a_sentence(
    name: str, root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (root / "site_configs/local/references.yaml").write_text("Linpak: {}\n")
    monkeypatch.setattr("site_configs.settings.SITES", root / "site_configs")
    monkeypatch.setattr("site_configs.settings.PROJECT", root)
    assert run(monkeypatch, name) == 1
    said = capsys.readouterr().err
    assert "references.yaml:1: no check is called `Linpak`; did you mean `Linpack`?" in said
    assert said.count("\n") == 1 and list((root / "runs").iterdir()) == []


@pytest.mark.parametrize(
    "module", [inside_and_outside, profiling, network], ids=lambda one: one.__name__
)
def test_what_the_platform_costs_is_measured_with_admitted_images_alone(
    module: ModuleType, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def admit(root: Path, name: str, site: dict[str, Any]) -> Path:
        assert site["image_policy"] == "signed"
        raise trust.TrustError(f"{name} is not signed")

    monkeypatch.setattr(trust, "admit", admit)
    monkeypatch.setattr(images, "default_implementations", lambda root: ["alpha-1.0"])
    monkeypatch.setattr(images, "interface_of", lambda root, name: "mpi")
    monkeypatch.setattr(module, "ROOT", root)
    monkeypatch.setattr(module, "load_site", lambda name: {"image_policy": "signed"})
    monkeypatch.setattr(sys, "argv", [module.__name__])
    if module is network:
        monkeypatch.setattr(sys, "argv", [module.__name__, "--site", "local"])
    with pytest.raises(trust.TrustError, match=r"alpha-1\.0 is not signed"):
        module.main()


def test_the_pmi_of_the_host_is_recorded_where_it_is_used(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = commands(root / "bin", {**SLURM, "apptainer": "echo 1"})
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    assert provenance.software(root, {"launch": "srun"})["pmi"] == "pmi2 pmix"
    assert provenance.software(root, {"launch": "mpiexec"})["pmi"] is None
    (folder / "srun").write_text("#!/bin/sh\nexit 1\n")
    assert provenance.software(root, {"launch": "srun"})["pmi"] is None


def full_disk(*_: object) -> Any:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("name", ["campaign", "nightly"])
@pytest.mark.parametrize("what", ["log", "manifest"])
def test_a_full_disk_is_a_sentence_and_can_be_gone_on_with(
    name: str, what: str, root: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    entry = RoundDone(round=1, wall_s=1.0, reframe_exit_code=0)
    monkeypatch.setattr(beginning, "chosen", lambda options: (["alpha-1.0"], {}))
    for fact in ("describe_images", "input_digests", "software"):
        monkeypatch.setattr(provenance, fact, lambda *_, **__: {})
    monkeypatch.setattr(provenance, "machine", lambda: {"cpu_model": None})

    def run_round(*_: object) -> RoundDone:
        if what == "log":
            full_disk()
        # The manifest is there by now, and cannot be written again.
        monkeypatch.setattr(files, "write_whole", full_disk)
        return entry

    monkeypatch.setattr(measuring, "run_round", run_round)
    assert run(monkeypatch, name, "--rounds", "1") == 1
    [folder] = (root / "runs").iterdir()
    said = capsys.readouterr().err
    assert said == (
        f"{name}: {folder} cannot be written: No space left on device; fix that and resume: "
        f"make {'run' if name == 'campaign' else name} RESUME={folder.name}\n"
    )
    assert json.loads((folder / "manifest.json").read_text())["finished_utc"] is None
