"""The users of the cluster in a box: whose numbers they have, and what is given to them."""

import json
import os
import pwd
import zlib
from pathlib import Path
from types import SimpleNamespace

import pytest

from cluster import accounts
from cluster.description import ClusterError
from tests.folders import deep
from tests.other_user import OTHER, needs_root

USERS = set(accounts.NAMES)


def first_of(project: Path) -> int:
    numbers = accounts.NUMBERS
    return numbers[zlib.crc32(str(project).encode()) % len(numbers)]


@needs_root
def test_numbers_are_nobodys_and_chosen_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = {first_of(tmp_path)}
    known = pwd.getpwuid

    def getpwuid(number: int) -> object:
        """Answer as a name service that no file names."""
        return SimpleNamespace(pw_name="alice") if number in taken else known(number)

    monkeypatch.setattr(pwd, "getpwuid", getpwuid)
    accounts.choose_numbers(tmp_path)
    chosen = accounts.kept_numbers(tmp_path)
    assert chosen.keys() == USERS and len(set(chosen.values())) == len(USERS)
    assert not taken & set(chosen.values())
    for _ in range(2):
        accounts.choose_numbers(tmp_path)
        assert accounts.kept_numbers(tmp_path) == chosen
    assert accounts.job_user(tmp_path) == (accounts.JOB_USER, chosen[accounts.JOB_USER])
    taken.add(chosen[accounts.GUEST_USER])
    with pytest.raises(ClusterError, match="now belongs to another user"):
        accounts.choose_numbers(tmp_path)


@needs_root
def test_numbers_of_before_are_kept_and_the_daemons_get_some(tmp_path: Path) -> None:
    path = accounts.file_of(tmp_path)
    path.parent.mkdir(parents=True)
    two = {accounts.JOB_USER: accounts.NUMBERS[5], accounts.GUEST_USER: accounts.NUMBERS[4]}
    path.write_text(json.dumps(two))
    accounts.choose_numbers(tmp_path)
    chosen = accounts.kept_numbers(tmp_path)
    assert chosen | two == chosen and chosen.keys() == USERS
    assert len(set(chosen.values())) == len(USERS)
    assert accounts.daemons(tmp_path).keys() == set(accounts.DAEMONS)


@needs_root
@pytest.mark.parametrize("owner", [OTHER, 0])
def test_campaigns_of_before_keep_their_owner(owner: int, tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    os.chown(tmp_path / "runs", owner, OTHER)
    accounts.choose_numbers(tmp_path)
    assert accounts.job_user(tmp_path) == (accounts.JOB_USER, OTHER)


@needs_root
@pytest.mark.parametrize("how", ["link", "another's", "writable", "root", "none"])
def test_numbers_that_root_has_not_written_are_refused(how: str, tmp_path: Path) -> None:
    path = accounts.file_of(tmp_path)
    path.parent.mkdir(parents=True)
    numbers = dict.fromkeys(USERS, 0 if how == "root" else accounts.NUMBERS[0])
    text = "{" if how == "none" else json.dumps(numbers)
    if how == "link":
        (tmp_path / "other").write_text(text)
        path.symlink_to(tmp_path / "other")
    else:
        path.write_text(text)
    if how == "another's":
        os.chown(path, OTHER, OTHER)
    if how == "writable":
        path.chmod(0o666)
    with pytest.raises(ClusterError, match=r"users\.json .*; remove it"):
        accounts.job_user(tmp_path)


@needs_root
@pytest.mark.parametrize("place", ["runs", ".wyeast/locks", ".wyeast/bundles"])
def test_nothing_is_given_away_through_a_link(place: str, tmp_path: Path) -> None:
    checkout, other = tmp_path / "checkout", tmp_path / "of root"
    (checkout / place).parent.mkdir(parents=True)
    other.mkdir()
    (checkout / place).symlink_to(other)
    before = other.stat()
    accounts.choose_numbers(checkout)
    with pytest.raises(OSError, match=place):
        accounts.give_to_job_user(checkout)
    after = other.stat()
    assert (after.st_uid, after.st_gid, after.st_mode) == (
        before.st_uid, before.st_gid, before.st_mode
    )  # fmt: skip


@needs_root
def test_a_second_name_in_the_job_users_folder_is_not_given_away(tmp_path: Path) -> None:
    own = tmp_path / ".wyeast" / "reframe" / "virtual"
    own.mkdir(parents=True)
    secret = tmp_path / "secret"
    secret.write_text("of root")
    (own / "reframe.log").hardlink_to(secret)
    accounts.choose_numbers(tmp_path)
    os.chown(own, accounts.job_user(tmp_path)[1], -1)
    accounts.give_to_job_user(tmp_path)
    assert secret.stat().st_uid == 0 and secret.read_text() == "of root"
    assert own.stat().st_uid == accounts.job_user(tmp_path)[1] and list(own.iterdir()) == []


@needs_root
@pytest.mark.parametrize("owner", [0, None])
def test_folders_that_nobody_can_walk_are_removed(owner: int | None, tmp_path: Path) -> None:
    """A program that was measured may have left them."""
    accounts.choose_numbers(tmp_path)
    own = tmp_path / ".wyeast" / "reframe" / "virtual"
    with deep(own, accounts.job_user(tmp_path)[1] if owner is None else owner):
        accounts.give_to_job_user(tmp_path)
        assert list(own.iterdir()) == []


@needs_root
def test_root_keeps_what_both_write_in(tmp_path: Path) -> None:
    locks = tmp_path / ".wyeast" / "locks"
    locks.mkdir(parents=True)
    (locks / "build").symlink_to("/nowhere")
    for path in (locks, locks / "build"):
        os.chown(path, OTHER, OTHER, follow_symlinks=False)
    accounts.choose_numbers(tmp_path)
    accounts.give_to_job_user(tmp_path)
    assert locks.stat().st_uid == 0 and list(locks.iterdir()) == []
    for place in accounts.SHARED:
        found = (tmp_path / place).stat()
        assert found.st_uid == 0 and found.st_mode & 0o7777 == 0o1775
        assert found.st_gid == accounts.job_user(tmp_path)[1]
