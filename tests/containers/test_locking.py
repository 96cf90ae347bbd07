"""Locks in folders where somebody has put something in their place."""

import os
import shutil
import signal
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from subprocess import PIPE, Popen, run

import pytest

from campaign.site_lock import SiteIsBusy, only_campaign
from containers.locking import BuildError, only_build
from records import locks
from records.base import CampaignError
from records.locks import LockHeld, exclusive
from tests.network_locks import lustre
from tests.other_user import OTHER, SECRET, needs_root, open_folder, secret

__all__ = ["lustre", "open_folder", "secret"]

PROJECT = Path(__file__).resolve().parents[2]


def plant(trap: str, lock: Path, target: Path) -> None:
    lock.parent.mkdir(parents=True)
    match trap:
        case "link":
            lock.symlink_to(target)
        case "dangling":
            lock.symlink_to(target.with_name("nowhere"))
        case "second name":
            lock.hardlink_to(target)
        case "pipe":
            os.mkfifo(lock)


@pytest.mark.parametrize("trap", ["link", "dangling", "second name", "pipe"])
def test_a_trap_in_the_place_of_the_build_lock_is_refused(
    trap: str, tmp_path: Path, secret: Path
) -> None:
    lock = tmp_path / ".wyeast" / "locks" / "build"
    plant(trap, lock, secret)
    with pytest.raises(OSError, match=r"build|own"), only_build(tmp_path):
        pass
    assert secret.read_text() == SECRET and not secret.with_name("nowhere").exists()


def test_a_link_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (tmp_path / "locks").symlink_to(other)
    with pytest.raises(OSError, match="locks"), exclusive(tmp_path / "locks" / "build", "me"):
        pass
    assert not list(other.iterdir())


@needs_root
@pytest.mark.parametrize("trap", ["link", "second name"])
def test_root_writes_no_file_of_its_own_for_who_owns_the_locks(
    trap: str, open_folder: Path, secret: Path
) -> None:
    lock = open_folder / ".wyeast" / "locks" / "build"
    # What is linked lies on the same file system as the folder of the locks.
    target = secret if trap == "link" else open_folder / "of root"
    target.write_text(SECRET)
    plant(trap, lock, target)
    os.chown(lock.parent, OTHER, OTHER)
    with pytest.raises(OSError, match="build"), only_build(open_folder):
        pass
    assert target.read_text() == SECRET and target.stat().st_uid == 0
    lock.unlink()
    with only_build(open_folder):
        assert lock.stat().st_uid == OTHER, "it was opened with the rights of the folder's owner"
        with pytest.raises(LockHeld, match=str(os.getpid())), exclusive(lock, "another"):
            pass


@needs_root
def test_a_folder_of_another_user_is_no_place_for_an_ordinary_users_lock(open_folder: Path) -> None:
    (open_folder / "locks").mkdir(mode=0o777)
    (open_folder / "locks").chmod(0o777)
    child = os.fork()
    if not child:
        os.setresuid(OTHER, OTHER, OTHER)
        try:
            with exclusive(open_folder / "locks" / "build", "me"):
                os._exit(1)
        except PermissionError:
            os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_folder_of_locks_is_closed_to_others(tmp_path: Path) -> None:
    (tmp_path / "locks").mkdir()
    (tmp_path / "locks").chmod(0o777)
    with exclusive(tmp_path / "locks" / "build", "me"):
        assert (tmp_path / "locks").stat().st_mode & 0o777 == 0o755


def local_checkout(root: Path) -> Path:
    site = root / "site_configs" / "local"
    site.mkdir(parents=True)
    (site / "site.yaml").write_text((PROJECT / "site_configs" / "local" / "site.yaml").read_text())
    return root


def test_nothing_is_built_beside_a_campaign_of_any_checkout(tmp_path: Path) -> None:
    measured, other = (local_checkout(tmp_path / name) for name in ("measured", "other"))
    said = r"campaign is measuring on this machine \(process \d+ of "
    with (
        only_campaign(measured, "local"),
        pytest.raises(BuildError, match=said),
        only_build(other),
    ):
        pass
    # Builds may go on side by side; none of their ends lets a campaign begin beside the others.
    with only_build(other):
        with only_build(measured):
            pass
        said = r"a build is under way on this machine \(build, process \d+ of "
        with (
            pytest.raises(SiteIsBusy, match=said),
            only_campaign(measured, "local"),
        ):
            pass
    with only_campaign(measured, "local"):
        pass


def test_who_holds_a_lock_is_told_by_the_kernel_and_not_by_its_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Anybody may write into the machine's lock, also what changes a terminal."""
    lock = tmp_path / "locks" / "machine"
    with exclusive(lock, "process 1 of root\x1b[2J"):
        lock.write_text("process 1 of root\x1b[2J\n")
        with pytest.raises(LockHeld) as caught, exclusive(lock, "another"):
            pass
        said = str(caught.value)
        assert said.isprintable() and said.startswith("process 1 of root")
        assert f"by the kernel it is process {os.getpid()} of user {os.getuid()}" in said
        assert "ALARM" not in said
        monkeypatch.setattr(locks, "LONG_S", -1.0)
        with pytest.raises(LockHeld, match=rf"ALARM: .* look at it \(ps -fp {os.getpid()}\)"):
            locks.exclusive(lock, "another").__enter__()
        # A kernel that does not tell, as of another namespace's process, is no obstacle.
        monkeypatch.setattr(locks, "LISTED", tmp_path / "none")
        with pytest.raises(LockHeld) as caught, exclusive(lock, "another"):
            pass
        assert str(caught.value) == "process 1 of root"


#: Takes a lock and dies while a child of it has yet to begin its own program.
DIES_STARTING = """
import os, sys, time
from pathlib import Path
from records.locks import exclusive
with exclusive(Path(sys.argv[1]), "the one that dies"):
    holder = os.getpid()
    if os.fork():
        os.kill(holder, 9)
    while os.getppid() == holder:
        time.sleep(0.01)
    print(flush=True)
    sys.stdin.read(1)
    os.execlp("sleep", "sleep", "600")
"""


def test_a_lock_is_had_when_what_a_dead_holder_has_started_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = tmp_path / "locks" / "of a campaign"
    command = [sys.executable, "-c", DIES_STARTING, str(lock)]
    with Popen(command, stdin=PIPE, stdout=PIPE, cwd=PROJECT, start_new_session=True) as one:
        try:
            assert one.stdout and one.stdout.readline() and one.wait() == -signal.SIGKILL
            monkeypatch.setattr(locks, "LEFT_S", 0.0)
            with pytest.raises(LockHeld, match="the one that dies"), exclusive(lock, "another"):
                pass
            monkeypatch.setattr(locks, "LEFT_S", 600.0)
            tried: list[float] = []

            def let_go(pause: float) -> None:
                """Let the child begin its program at the third try."""
                tried.append(pause)
                if len(tried) == 3:
                    assert one.stdin
                    one.stdin.write(b"x")
                    one.stdin.flush()
                sleep(pause)

            sleep = time.sleep
            monkeypatch.setattr(time, "sleep", let_go)
            with exclusive(lock, "another"):
                assert len(tried) >= 3 and locks.note_in(lock) == "another"
        finally:
            os.killpg(one.pid, signal.SIGKILL)


#: Tries to have a lock that is held, and would wait for longer than a test has.
TRIES = """
import sys
from pathlib import Path
from records import locks
locks.LEFT_S = 3600.0
try:
    locks.exclusive(Path(sys.argv[1]), "another").__enter__()
except locks.LockHeld as error:
    print(error)
"""


@needs_root
def test_who_is_in_another_namespace_is_not_taken_for_dead(tmp_path: Path) -> None:
    """The kernel lists neither: not who has died, nor who cannot be seen from where it is asked."""
    lock = tmp_path / "locks" / "machine"
    with exclusive(lock, "one outside"):
        done = run(
            ["unshare", "--pid", "--kill-child", "--mount-proc", sys.executable, "-c", TRIES,
             str(lock)],
            cwd=PROJECT, capture_output=True, text=True, timeout=60,
        )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "one outside\n", "")


def test_all_who_share_a_lock_are_told(tmp_path: Path) -> None:
    """The note is of whoever came last, who may have ended before the others."""
    lock = tmp_path / "machine"
    lock.write_text("build, process 1 of another")
    share = (
        "import fcntl, sys; held = open(sys.argv[1]); fcntl.flock(held, fcntl.LOCK_SH);"
        "print(flush=True); input()"
    )
    with ExitStack() as running:
        pids = []
        for _ in range(2):
            one = running.enter_context(
                Popen([sys.executable, "-c", share, lock], stdin=PIPE, stdout=PIPE)
            )
            running.callback(one.kill)
            assert one.stdout and one.stdout.readline()
            pids.append(one.pid)
        with pytest.raises(LockHeld) as caught, exclusive(lock, "another"):
            pass
        first, second = sorted(pids)
        assert str(caught.value) == (
            f"build, process 1 of another; by the kernel 2 processes share it: {first}, {second}"
        )


def test_the_cluster_in_a_box_and_the_rest_of_the_machine_keep_each_other_out(
    tmp_path: Path,
) -> None:
    root = local_checkout(tmp_path)
    box, known = root / "site_configs" / "virtual", PROJECT / "site_configs" / "virtual"
    box.mkdir()
    for name in ("site.yaml", "cluster.yaml"):
        (box / name).write_bytes((known / name).read_bytes())
    for one, other in (("local", "virtual"), ("virtual", "local")):
        with (
            only_campaign(root, one),
            pytest.raises(SiteIsBusy, match="another campaign is measuring on this machine"),
            only_campaign(root, other),
        ):
            pass
        # Whoever holds one site may end what was left on the other.
        with only_campaign(root, one), only_campaign(root, other, has_machine=True):
            pass
    with (
        only_campaign(root, "virtual"),
        pytest.raises(BuildError, match="a campaign is measuring on this machine"),
        only_build(root),
    ):
        pass
    with (
        only_build(root),
        pytest.raises(SiteIsBusy, match="a build is under way on this machine"),
        only_campaign(root, "virtual"),
    ):
        pass
    with only_campaign(root, "virtual"):
        pass


def test_a_file_system_without_locks_is_named(tmp_path: Path, lustre: None) -> None:
    site = tmp_path / "site_configs" / "virtual"
    shutil.copytree(PROJECT / "site_configs" / "virtual", site)
    said = r"virtual.lock: its file system has no locks \(Function not implem.* Lustre .*HOME="
    with pytest.raises(CampaignError, match=said), only_campaign(tmp_path, "virtual"):
        pass
    with pytest.raises(OSError, match="has no locks") as error, only_build(tmp_path):
        pass
    assert error.value.filename == str(tmp_path / ".wyeast" / "locks" / "build")
