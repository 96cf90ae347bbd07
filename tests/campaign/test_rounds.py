"""Order, progress and the lock of a campaign."""

import io
import os
import random
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from campaign import site_lock
from campaign.progress import CampaignProgress
from records.base import CampaignError
from reframe_checks.bin.guards import SeededOrder

PROJECT = Path(__file__).resolve().parents[2]
LOCK = "wyeast-campaign.lock"


def cases(names: list[str]) -> list[SimpleNamespace]:
    return [
        SimpleNamespace(check=SimpleNamespace(display_name=name), partition="local:default")
        for name in names
    ]


@given(st.lists(st.text(min_size=1), unique=True, max_size=20), st.integers(0, 10**9))
def test_same_seed_gives_the_same_order_however_checks_were_found(
    names: list[str], seed: int
) -> None:
    found = cases(names)
    found_elsewhere = cases(random.sample(names, len(names)))
    SeededOrder(seed).shuffle(found)
    SeededOrder(seed).shuffle(found_elsewhere)
    order = [case.check.display_name for case in found]
    assert order == [case.check.display_name for case in found_elsewhere]
    assert sorted(order) == sorted(names)


def test_seeds_give_different_orders() -> None:
    orders = set()
    for seed in range(20):
        found = cases([f"check{number}" for number in range(10)])
        SeededOrder(seed).shuffle(found)
        orders.add(tuple(case.check.display_name for case in found))
    assert len(orders) == 20


def checkout(root: Path) -> Path:
    """Return a checkout with two sites: this machine, and one whose scheduler keeps jobs apart."""
    known = (PROJECT / "site_configs" / "local" / "site.yaml").read_text()
    assert "scheduler: local\n" in known
    for site, scheduler in (("local", "local"), ("cluster", "slurm")):
        path = root / "site_configs" / site / "site.yaml"
        path.parent.mkdir(parents=True)
        path.write_text(known.replace("scheduler: local\n", f"scheduler: {scheduler}\n"))
    return root


def test_two_campaigns_at_once_are_refused(tmp_path: Path) -> None:
    root = checkout(tmp_path)
    for site in ("local", "cluster"):
        with (
            site_lock.only_campaign(root, site),
            pytest.raises(CampaignError, match=rf"site {site} \(process \d+ of .* since"),
            site_lock.only_campaign(root, site),
        ):
            pass
    with site_lock.only_campaign(root, "local"), site_lock.only_campaign(root, "cluster"):
        pass


@pytest.mark.parametrize("site", ["../local", "./local", "-x", "", "a/../local"])
def test_a_path_is_not_a_site_and_makes_no_folder(tmp_path: Path, site: str) -> None:
    root = checkout(tmp_path / "checkout")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(CampaignError, match="is unknown; site_configs/ has "), \
            site_lock.only_campaign(root, site):  # fmt: skip
        pass
    assert sorted(tmp_path.rglob("*")) == before


def test_checkouts_share_a_machine_but_not_a_scheduler(tmp_path: Path) -> None:
    one, other = checkout(tmp_path / "one"), checkout(tmp_path / "other")
    with (
        site_lock.only_campaign(one, "local"),
        pytest.raises(site_lock.SiteIsBusy, match=rf"on this machine \(process \d+ of {one} since"),
        site_lock.only_campaign(other, "local"),
    ):
        pass
    # What was refused holds nothing, and the lock of another checkout is free again.
    with site_lock.only_campaign(other, "local"):
        pass
    with site_lock.only_campaign(one, "cluster"), site_lock.only_campaign(other, "cluster"):
        pass


def test_every_user_may_hold_the_lock_of_the_machine(tmp_path: Path, shared: Path) -> None:
    before = os.umask(0o077)
    try:
        with site_lock.only_campaign(checkout(tmp_path), "local"):
            pass
    finally:
        os.umask(before)
    assert (shared / LOCK).stat().st_mode & 0o777 == 0o666
    assert f"of {tmp_path} since" in (shared / LOCK).read_text()


LINKED = "not to be written to"


@pytest.mark.parametrize("trap", ["link", "dangling", "second name", "pipe", "folder", "private"])
def test_a_trap_in_the_place_of_the_lock_is_said_and_not_used(
    trap: str, tmp_path: Path, shared: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = shared / "mine"
    mine.write_text(LINKED)
    match trap:
        case "link":
            (shared / LOCK).symlink_to(mine)
        case "dangling":
            (shared / LOCK).symlink_to(shared / "nowhere")
        case "second name":
            (shared / LOCK).hardlink_to(mine)
        case "pipe":
            os.mkfifo(shared / LOCK)
        case "folder":
            (shared / LOCK).mkdir()
        case "private":
            # What a checkout of this user alone would have is no folder for all users.
            shared.chmod(0o755)
    root = checkout(tmp_path)
    with (
        site_lock.only_campaign(root, "local"),
        pytest.raises(site_lock.SiteIsBusy, match="on site local"),
        site_lock.only_campaign(root, "local"),
    ):
        pass
    said = capsys.readouterr().err
    assert said.startswith("campaigns of other checkouts on this machine would not be noticed: ")
    assert str(shared) in said and said.count("\n") == 1
    assert mine.read_text() == LINKED and not (shared / "nowhere").exists()


def test_what_another_user_wrote_into_the_lock_cannot_change_the_terminal(
    tmp_path: Path, shared: Path
) -> None:
    with site_lock.only_campaign(checkout(tmp_path / "one"), "local"):
        (shared / LOCK).write_bytes(b"\x1b[31m\xff" + 5000 * b"x\n")
        with (
            pytest.raises(site_lock.SiteIsBusy) as caught,
            site_lock.only_campaign(checkout(tmp_path / "other"), "local"),
        ):
            pass
    assert str(caught.value).isprintable() and len(str(caught.value)) < 500


def test_dead_campaign_does_not_hold_the_site(tmp_path: Path, shared: Path) -> None:
    code = (
        "import os, sys; from pathlib import Path; from campaign.site_lock import only_campaign\n"
        "from records import locks; locks.SHARED = (Path(sys.argv[2]),)\n"
        "with only_campaign(Path(sys.argv[1]), 'local'): os.kill(os.getpid(), 9)"
    )
    root = checkout(tmp_path)
    words = [sys.executable, "-c", code, str(root), str(shared)]
    killed = subprocess.run(words, check=False)
    assert killed.returncode == -9 and (shared / LOCK).read_text()
    with site_lock.only_campaign(root, "local"):
        pass


def test_progress_counts_and_names_failures() -> None:
    lines = [
        "[ RUN      ] PointToPoint %pair=Send/Recv /0123abcd @local:default+container\n",
        "[       OK ] ( 1/58) PointToPoint %pair=Send/Recv /0123abcd @local:default+container\n",
        "[     FAIL ] ( 2/58) Linpack %grid=1x2 %n=4000 /0123abce @local:default+container\n",
    ]
    out, log = io.StringIO(), io.StringIO()
    progress = CampaignProgress(3, out)
    progress.last_line = -1e9
    progress.follow(2, lines, log)
    assert log.getvalue() == "".join(lines)
    assert "round 2/3  1/58  PointToPoint %pair=Send/Recv\n" in out.getvalue()
    assert "round 2/3  2/58  Linpack %grid=1x2 %n=4000  FAILED" in out.getvalue()


@pytest.mark.parametrize("place", ["a pipe that nobody reads", "a full disk"])
def test_what_cannot_be_printed_ends_no_campaign(
    place: str, capfd: pytest.CaptureFixture[str]
) -> None:
    if place == "a full disk":
        write = os.open("/dev/full", os.O_WRONLY)
    else:
        read, write = os.pipe()
        os.close(read)
    with os.fdopen(write, "w") as out:
        progress = CampaignProgress(1, out)
        progress.say("first")
        progress.say("second")
        # What is started then has somewhere to print to.
        subprocess.run(["sh", "-c", "echo third"], stdout=out, check=True)
    said = capfd.readouterr().err
    assert said.count("nothing more is printed; it goes on") == 1, said
