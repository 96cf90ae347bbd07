"""What dooms a campaign is said in its first seconds, before anything is built."""

import os
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from campaign import __main__ as campaigns
from campaign import obstacles
from campaign.obstacles import refuse_login_node, refuse_obstacles
from campaign.site_lock import SiteIsBusy, only_campaign
from containers import ability
from containers.programs import ProvisionError
from records import acting_user
from records.base import CampaignError
from tests.other_user import OTHER, in_child, needs_root, open_folder
from tests.site_configs.fake_machine import PBS, SLURM, machine

__all__ = ["open_folder"]
PROJECT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def _able(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ability, "refuse_inability", lambda: None)


def test_a_machine_without_obstacles_is_left_as_it_is(checkout: Path) -> None:
    for words in (["--look"], ["--look", "--site-by-default"]):
        refuse_obstacles(checkout, campaigns.arguments(words))
    assert not list((checkout / "runs").iterdir())


def test_another_campaign_is_noticed_before_images_are_built(checkout: Path) -> None:
    options = campaigns.arguments(["--look"])
    with only_campaign(checkout, "local"), pytest.raises(SiteIsBusy, match="two at once"):
        refuse_obstacles(checkout, options)
    refuse_obstacles(checkout, options)


def test_without_room_or_containers_nothing_is_built(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> None:
        raise ProvisionError("no container can start here")

    options = campaigns.arguments(["--look"])
    with monkeypatch.context() as patched:
        patched.setattr(ability, "refuse_inability", refuse)
        with pytest.raises(ProvisionError, match="no container"):
            refuse_obstacles(checkout, options)
    told = SimpleNamespace(f_bavail=10, f_frsize=1, f_favail=10, f_files=10)
    monkeypatch.setattr(os, "statvfs", lambda _: told)
    with pytest.raises(CampaignError, match="room for 0 MB and 10 files, and any campaign takes"):
        refuse_obstacles(checkout, options)


def test_a_file_system_that_starts_no_program_is_named(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As some centres mount homes."""
    options, real = campaigns.arguments(["--look"]), os.statvfs(checkout)
    flags = {name: getattr(real, name) for name in dir(real) if name.startswith("f_")}
    told = SimpleNamespace(**flags | {"f_flag": real.f_flag | os.ST_NOEXEC})
    monkeypatch.setattr(os, "statvfs", lambda _: told)
    with pytest.raises(CampaignError, match=rf"^{checkout}.* is mounted noexec.*WYEAST_HOME="):
        refuse_obstacles(checkout, options)
    site = checkout / "site_configs" / "local" / "site.yaml"
    site.write_text(site.read_text().replace("scheduler: local", "scheduler: slurm"))
    monkeypatch.setattr(obstacles, "missing_commands", lambda site, machine: [])
    refuse_obstacles(checkout, options)


def test_a_scheduler_whose_commands_are_not_here_is_named(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = checkout / "site_configs" / "local" / "site.yaml"
    text = path.read_text().replace("scheduler: local", "scheduler: slurm")
    path.write_text(text.replace("launch: mpiexec", "launch: srun"))
    monkeypatch.setattr(obstacles, "Machine", lambda: machine(checkout, {"sbatch": "exit 0"}))
    # Containers start on its nodes.
    monkeypatch.setattr(ability, "refuse_inability", lambda: pytest.fail("it was looked at"))
    with pytest.raises(CampaignError, match="has no sacct, squeue, scancel, srun on PATH"):
        refuse_obstacles(checkout, campaigns.arguments(["--look"]))


@pytest.mark.parametrize("commands", [SLURM, PBS], ids=["slurm", "pbs"])
def test_a_login_node_is_measured_only_by_name(commands: dict[str, str], tmp_path: Path) -> None:
    here = machine(tmp_path, commands)
    with pytest.raises(CampaignError, match=r"make new-site NAME=<name>; .*make run SITE=local"):
        refuse_login_node(here, {})
    for name in obstacles.OF_JOBS:
        refuse_login_node(here, {name: "7"})
    refuse_login_node(machine(tmp_path / "plain", {}), {})


def test_who_names_the_site_may_measure_a_login_node(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(obstacles, "Machine", lambda: machine(checkout, SLURM))
    for name in obstacles.OF_JOBS:
        monkeypatch.delenv(name, raising=False)
    refuse_obstacles(checkout, campaigns.arguments(["--look", "--site=local"]))
    with pytest.raises(CampaignError, match="and you are not inside a job"):
        refuse_obstacles(checkout, campaigns.arguments(["--look", "--site-by-default"]))


@needs_root
def test_another_users_checkout_is_refused_by_a_sentence(open_folder: Path) -> None:
    for part in ("site_configs/local/site.yaml", "site_configs/local/references.yaml"):
        (open_folder / part).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(PROJECT / part, open_folder / part)
    (open_folder / "runs").mkdir()

    def work() -> str:
        acting_user.become(OTHER, PROJECT)
        try:
            refuse_obstacles(open_folder, campaigns.arguments(["--look"]))
        except CampaignError as error:
            return str(error)
        return "it was let begin"

    said = in_child(work)
    assert said.endswith("if this checkout belongs to another user, use one of your own")
