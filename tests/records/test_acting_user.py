"""Root in other people's folders: as whom it reads and writes what lies there."""

import grp
import json
import os
import pwd
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from campaign import __main__ as campaign
from campaign import beginning, nightly, retention
from campaign.bundle import contents, make, rerun, sample
from campaign.site import check as check_site
from containers.spack import tool as spack
from records import acting_user
from records.base import CampaignError, RecordError
from records.files import write_whole
from records.kept import read_records
from records.launch import LaunchRecord
from records.manifest import read_manifest
from tests.analysis.support.synthetic import Synthetic, Truth
from tests.folders import deep
from tests.other_user import (
    OTHER,
    SECRET,
    give,
    give_list,
    in_child,
    needs_root,
    open_folder,
    secret,
)
from tests.whole_records import launch_facts, manifest_facts, put_manifest, read_record

__all__ = ["open_folder", "secret"]
PROJECT = Path(__file__).resolve().parents[2]
PASSED = {"LC_ALL": "C.UTF-8", "WYEAST_TIER": "quick", "https_proxy": "http://proxy:3128"}
#: What a shell of root's may have.
KEPT_BACK = {
    "AWS_SECRET_ACCESS_KEY": SECRET, "GITHUB_TOKEN": SECRET, "SSH_AUTH_SOCK": SECRET,
    "http_proxy": f"http://me:{SECRET}@proxy:3128", "LD_PRELOAD": "", "GIT_CONFIG_COUNT": "0",
}  # fmt: skip


def ids() -> list[object]:
    return [*os.getresuid(), *os.getresgid(), os.getgroups()]


@needs_root
def test_root_becomes_the_owner_of_a_checkout_for_good(
    open_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (PASSED | KEPT_BACK).items():
        monkeypatch.setenv(name, value)
    os.chown(open_folder, OTHER, OTHER)

    def work() -> list[object]:
        acting_user.act_for(open_folder)
        try:
            os.setuid(0)
        except PermissionError:
            return [ids(), dict(os.environ)]
        return ["a way back"]

    who, variables = in_child(work)
    assert who == [OTHER] * 6 + [[OTHER]]
    assert variables["HOME"] != os.environ["HOME"] and variables["USER"] == str(OTHER)
    assert PASSED.items() <= variables.items() and not KEPT_BACK.keys() & variables.keys()
    for place in acting_user.HANDED_OVER:
        assert (open_folder / place).stat().st_uid == OTHER


#: Each ends soon by these words.
ENTRIES: dict[str, tuple[Any, list[str]]] = {
    "campaign": (campaign, ["--site", "nowhere"]),
    "nightly": (nightly, ["--site", "nowhere"]),
    "check-site": (check_site, ["--site", "nowhere"]),
    "rerun": (rerun, ["nothing.tar.gz"]),
    "bundle": (make, ["latest"]),
    "sample": (sample, ["latest"]),
}


@needs_root
@pytest.mark.parametrize("name", ENTRIES)
def test_each_command_on_campaigns_becomes_the_owner(
    name: str, open_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, words = ENTRIES[name]
    (open_folder / "site_configs").mkdir()
    os.chown(open_folder, OTHER, OTHER)
    place = beginning if module is campaign else module
    monkeypatch.setattr(place, "ROOT", open_folder)
    monkeypatch.setattr(sys, "argv", [name, *words])
    assert in_child(lambda: [module.main(), os.getresuid()]) == [1, [OTHER] * 3]


@needs_root
def test_a_checkout_closed_to_all_but_root_is_readable_by_the_user_root_becomes(
    tmp_path: Path,
) -> None:
    """As pytest's folder is, and root's home."""
    (tmp_path / "runs").mkdir()
    os.chown(tmp_path / "runs", OTHER, OTHER)
    (tmp_path / "file").write_text("read")

    def work() -> list[object]:
        acting_user.become(OTHER, tmp_path)
        (tmp_path / "runs" / "made").touch()
        return [os.geteuid(), (tmp_path / "file").read_text()]

    assert in_child(work) == [OTHER, "read"]
    assert (tmp_path / "runs" / "made").stat().st_uid == OTHER
    assert tmp_path.parent.stat().st_mode & 0o077 == 0, "it is as closed as before"


@needs_root
@pytest.mark.parametrize("how", ["another's", "everybody's"])
def test_root_refuses_a_checkout_that_others_could_exchange(how: str, open_folder: Path) -> None:
    above, place = open_folder / "above", open_folder / "above" / "checkout"
    place.mkdir(parents=True)
    assert acting_user.untrusted(place) is None
    if how == "another's":
        os.chown(above, OTHER, OTHER)
    else:
        above.chmod(0o777)
    said = in_child(lambda: acting_user.act_for(place))
    assert said.startswith(f"SystemExit: root does not work in {place}: ") and str(above) in said
    above.chmod(0o1777)
    os.chown(above, 0, 0)
    assert acting_user.untrusted(place) is None, "as /tmp is"


@needs_root
def test_nothing_is_handed_over_through_a_link(open_folder: Path) -> None:
    checkout, disk = open_folder / "checkout", open_folder / "disk"
    for folder in (checkout, disk, disk / "locks"):
        folder.mkdir()
    (disk / "locks" / "of-root").touch()
    (checkout / ".wyeast").symlink_to(disk)
    give(checkout)
    acting_user.hand_over(checkout)
    assert {path.stat().st_uid for path in (disk, *disk.rglob("*"))} == {0}
    assert not (disk / "bundles").exists(), "the owner could not have made it"
    os.chown(disk, OTHER, OTHER)
    acting_user.hand_over(checkout)
    assert (disk / "bundles").stat().st_uid == OTHER
    assert (disk / "locks" / "of-root").stat().st_uid == 0


@needs_root
def test_folders_that_nobody_can_walk_are_handed_over_as_far_as_they_can_be(
    open_folder: Path,
) -> None:
    """A program that was measured may have left them."""
    stage = open_folder / ".wyeast" / "reframe" / "stage"
    give(open_folder)
    with deep(stage):
        acting_user.hand_over(open_folder)
        assert (stage / "deep" / "deep").stat().st_uid == OTHER


@needs_root
@pytest.mark.parametrize("named_alike", [True, False])
def test_a_group_of_many_may_not_write_above_a_checkout(
    named_alike: bool, open_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whose first group it is does not stand in its list of members."""
    above, place = open_folder / "above", open_folder / "above" / "checkout"
    place.mkdir(parents=True)
    owner = SimpleNamespace(pw_name="somebody", pw_gid=OTHER)
    group = SimpleNamespace(gr_name="somebody" if named_alike else "users", gr_mem=[])
    monkeypatch.setattr(pwd, "getpwuid", lambda uid: owner)
    monkeypatch.setattr(grp, "getgrgid", lambda gid: group)
    os.chown(above, 0, OTHER)
    above.chmod(0o775)
    assert (acting_user.untrusted(place) is None) is named_alike


@needs_root
@pytest.mark.parametrize(("rights", "refused"), [(7, True), (5, False)])
def test_a_list_of_access_may_not_let_others_write_above_a_checkout(
    rights: int, refused: bool, open_folder: Path
) -> None:
    above, place = open_folder / "above", open_folder / "above" / "checkout"
    place.mkdir(parents=True)
    give_list(above, OTHER, rights)
    assert (acting_user.untrusted(place) is not None) is refused


@needs_root
def test_what_is_not_a_file_is_not_waited_for(open_folder: Path) -> None:
    """A pipe in place of a manifest would hold up whoever looks into all of runs/."""
    os.mkfifo(open_folder / "pipe")
    (open_folder / "zero").symlink_to("/dev/zero")
    for name in ("pipe", "zero"):
        with pytest.raises(OSError, match="it is not a regular file"):
            acting_user.text_of(open_folder / name)


def planted(folder: Path, secret: Path) -> Path:
    """Return a campaign with links in it that lead to what root alone may read and write."""
    fast = Truth(2e-6, 2e9, 4e9)
    truths = {"alpha-1.0": fast, "beta-1.0": Truth(2e-6, 1e9, 4e9)}
    path = Synthetic(folder, truths, rounds=2, pairs=["Send/Recv"]).write()
    secret.write_text(json.dumps({"cpu_model": SECRET}))
    (secret.parent / "tables").mkdir()
    (path / "tables").symlink_to(secret.parent / "tables")
    (path / "nodes").mkdir()
    (path / "nodes" / "node1.json").symlink_to(secret)
    give(path)
    return path


@needs_root
def test_links_of_a_planted_campaign_lead_nowhere(open_folder: Path, secret: Path) -> None:
    path = planted(open_folder / "20260101T000000Z-local-planted", secret)
    said = ""
    for command in ("ingest", "report"):
        done = subprocess.run(
            [sys.executable, "-m", "analysis", command, str(path)],
            cwd=PROJECT, env={**os.environ, "PYTHONPATH": str(PROJECT)},
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        )  # fmt: skip
        said += done.stdout + done.stderr
    assert list((secret.parent / "tables").iterdir()) == []
    page = path / "report.html"
    assert page.is_file() and page.stat().st_uid == OTHER, said
    assert SECRET not in page.read_text() + said


@needs_root
def test_retention_follows_no_link_of_another_user(open_folder: Path, secret: Path) -> None:
    night = open_folder / "runs" / "20260101T000000Z-local-nightly"
    (night / "launches").mkdir(parents=True)
    put_manifest(night, night={"broken": {}})
    manifest = night / "manifest.json"
    (night / f".manifest.json.{os.getpid()}").symlink_to(secret)
    give(night)
    retention.remove(retention.Removal(night, 0))
    assert "raw_removed_utc" in manifest.read_text() and not (night / "launches").exists()
    assert not manifest.is_symlink() and manifest.stat().st_uid == OTHER
    manifest.unlink()
    manifest.symlink_to(secret)
    with pytest.raises(CampaignError, match=r"could not be removed: .*Permission denied"):
        retention.remove(retention.Removal(night, 0))
    assert secret.read_text() == SECRET
    assert ids()[0] == os.geteuid() == 0, "root again"


@needs_root
def test_a_manifest_or_record_is_read_with_the_rights_of_its_folders_owner(
    open_folder: Path, secret: Path
) -> None:
    campaign = open_folder / "20260101T000000Z-local-quick"
    launch = campaign / "launches" / "round001_cell"
    launch.mkdir(parents=True)
    for file, facts in (
        (campaign / "manifest.json", manifest_facts(campaign.name)),
        (launch / "launch.json", launch_facts(launch.name)),
    ):
        hidden = secret.with_name(file.name)
        hidden.write_text(json.dumps(facts))
        file.symlink_to(hidden)
    assert read_manifest(campaign) and list(read_records(campaign)), "of root, what root may read"
    give(campaign)
    with pytest.raises(CampaignError, match="Permission denied"):
        read_manifest(campaign)
    with pytest.raises(RecordError, match="Permission denied"):
        read_record(launch / "launch.json", LaunchRecord)
    assert list(read_records(campaign)) == []


def test_a_file_is_written_through_no_link(tmp_path: Path, secret: Path) -> None:
    (tmp_path / f".page.{os.getpid()}").symlink_to(secret)
    write_whole(tmp_path / "page", "a page")
    assert secret.read_text() == SECRET
    assert (tmp_path / "page").read_text() == "a page" and not (tmp_path / "page").is_symlink()


def repository(folder: Path) -> Path:
    """Return a repository whose configuration has git run a program that says who runs it."""
    traitor = folder / "traitor"
    repo = folder / "repository"
    repo.mkdir()
    said = folder / "said"
    said.mkdir()
    said.chmod(0o777)
    traitor.write_text(f"#!/bin/sh\nid -u >{said}/user\n")
    traitor.chmod(0o755)
    git = ["git", "-C", str(repo), "-c", "user.name=a", "-c", "user.email=a@b"]
    (repo / "file").write_text("content")
    for words in (["init", "-q"], ["add", "file"], ["commit", "-q", "-m", "a commit"],
                  ["config", "core.fsmonitor", str(traitor)]):  # fmt: skip
        subprocess.run([*git, *words], check=True)
    return repo


def test_git_runs_no_program_of_a_repository(open_folder: Path) -> None:
    repo = repository(open_folder)
    if os.geteuid() == 0:
        give(repo)
    assert str(spack.commit_of(repo)).isalnum()
    assert acting_user.git(repo, "status", "--porcelain") == b""
    assert list((open_folder / "said").iterdir()) == []


def test_an_archive_within_another_repository_is_of_no_commit(tmp_path: Path) -> None:
    git = ["git", "-C", str(tmp_path), "-c", "user.name=x", "-c", "user.email=x@y"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "of another"], check=True)
    (tmp_path / "archive").mkdir()
    (tmp_path / "link").symlink_to("archive")
    assert acting_user.git(tmp_path, "rev-parse", "HEAD")
    for name in ("archive", "link"):
        assert acting_user.git(tmp_path / name, "rev-parse", "HEAD") is None
    # A worktree has a file in the place of the repository.
    tree = ["worktree", "add", "-q", "--detach", str(tmp_path / "tree")]
    subprocess.run([*git, *tree], check=True)
    commit = acting_user.git(tmp_path, "rev-parse", "HEAD")
    assert acting_user.git(tmp_path / "tree", "rev-parse", "HEAD") == commit


@needs_root
def test_what_git_runs_all_the_same_is_not_of_root(open_folder: Path) -> None:
    """A filter, which no option of git's turns off."""
    repo = repository(open_folder)
    (repo / ".gitattributes").write_text("* filter=traitor\n")
    program = f"{open_folder}/traitor; cat"
    subprocess.run(["git", "-C", str(repo), "config", "filter.traitor.clean", program], check=True)
    os.utime(repo / "file", (1, 1))
    give(repo)
    spack.commit_of(repo)
    assert (open_folder / "said" / "user").read_text().strip() == str(OTHER)


def test_a_manifests_commit_is_never_an_option_of_git(tmp_path: Path) -> None:
    target = tmp_path / "written"
    assert contents.of_commit(PROJECT, f"--output={target}") == {}
    assert contents.of_commit(PROJECT, "HEAD") == {}
    assert not target.exists()
