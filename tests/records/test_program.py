"""Where the program is to be had: an address that others can use, and never a secret in it."""

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from records.program import (
    Program,
    looks_public,
    program_of,
    public_address,
    repository_of,
    version_at,
)


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("https://host.org/a/b", "https://host.org/a/b"),
        ("https://user:password@host.org/a/b.git", "https://host.org/a/b.git"),
        ("https://oauth2:glpat-x@host.org:8443/a?private_token=y#z", "https://host.org:8443/a"),
        ("git@host.org:a/b.git", "https://host.org/a/b.git"),
        ("host.org:a/b", "https://host.org/a/b"),
        ("ssh://git@host.org:2222/a/b", "https://host.org/a/b"),
        ("git://host.org/a\n", "https://host.org/a"),
        ("/home/me/a", None), ("file:///home/me/a", None), ("../a", None), ("", None),
        ("https://host.org", None), ("https:///a", None), ("https://host.org:x/a", None),
        ("https://host.org/a\x1b[2J", None), ("https://[host.org/a", None),
        ("https://h.org/" + "a" * 600, None),
    ],
)  # fmt: skip
def test_an_address_is_as_others_can_use_it(address: str, public: str | None) -> None:
    assert public_address(address) == public


@given(st.text(min_size=1).filter(lambda one: "/" not in one), st.text(max_size=9))
def test_no_user_and_no_query_is_ever_in_it(user: str, query: str) -> None:
    found = public_address(f"https://{user}@host.org/a/b?{query}")
    assert found is None or (found.endswith("/a/b") and "@" not in found)


@pytest.mark.parametrize(
    "address",
    ["https://host.org/a/b", "https://host.org/a/b.git\n", "https://git.cs.example.edu/~x/a"],
)
def test_what_may_be_published_without_asking(address: str) -> None:
    assert looks_public(address)


@pytest.mark.parametrize(
    "address",
    ["https://alice@host.org/a", "https://alice:pw@host.org/a", "https://host.org/a?private_token=x",
     "https://@host.org/a", "https://host.org/a#x", "git@host.org:a/b.git", "ssh://git@host.org/a",
     "http://host.org/a", "git://host.org/a", "https://host.org:8443/a", "https://gitserver/a",
     "https://10.1.2.3/a", "https://[fe80::1]/a", "https://git.local/a", "https://git.corp.x.com/a",
     "https://git.intranet/a", "https://host.org", "/home/alice/a", "file:///srv/a", "",
     "https://host.org:x/a", "https://host..org/a"],
)  # fmt: skip
def test_what_is_published_only_by_who_says_so(address: str) -> None:
    assert not looks_public(address)


def repository(root: Path) -> str:
    """Make a repository with a version; return its commit."""
    (root / "pyproject.toml").write_text('[project]\nversion = "1.2.3"\n')
    git = ["git", "-C", str(root), "-c", "user.name=A", "-c", "user.email=a@example.org"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "first"]):
        subprocess.run([*git, *words], check=True)
    head = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True)
    return head.stdout.strip()


def test_the_setting_comes_before_gits_remote(tmp_path: Path) -> None:
    commit = repository(tmp_path)
    assert repository_of(tmp_path) is None
    origin = ["git", "-C", str(tmp_path), "remote", "add", "origin", "git@host.org:fork.git"]
    subprocess.run(origin, check=True)
    assert repository_of(tmp_path) is None
    subprocess.run(["git", "-C", str(tmp_path), "remote", "set-url", "origin",
                    "https://host.org/fork.git"], check=True)  # fmt: skip
    assert repository_of(tmp_path) == "https://host.org/fork.git"
    (tmp_path / "CITATION.cff").write_text("repository-code: https://host.org/wyeast\n")
    assert program_of(tmp_path, commit) == Program("1.2.3", commit, "https://host.org/wyeast")
    assert program_of(tmp_path, commit, "https://other.org/x").repository == "https://other.org/x"
    (tmp_path / "CITATION.cff").write_text("- no\n- mapping\n")
    assert repository_of(tmp_path) == "https://host.org/fork.git"


def test_a_version_is_that_of_the_commit(tmp_path: Path) -> None:
    commit = repository(tmp_path)
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "9"\n')
    assert version_at(tmp_path, commit) == "1.2.3"
    assert version_at(tmp_path, "0" * 40) is None and version_at(tmp_path, None) is None
    assert Program(None, None, None).name == "Wyeast of an unknown version"
