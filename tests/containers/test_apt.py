"""The machine's apt configuration, in both formats, and what is made of it."""

import string
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from containers import apt

words = st.text(string.ascii_lowercase + string.digits + "-", min_size=1, max_size=12)
sources = st.builds(
    apt.AptEntry,
    uris=st.tuples(words.map(lambda word: f"http://{word}/debian")),
    suites=st.tuples(words),
    components=st.lists(words, min_size=1, max_size=3).map(tuple),
    signed_by=st.none() | words.map(lambda word: f"/usr/share/keyrings/{word}.gpg"),
    trusted=st.booleans(),
)


def one_line(source: apt.AptEntry) -> str:
    options = [f"signed-by={source.signed_by}"] if source.signed_by else []
    options += ["trusted=yes"] if source.trusted else []
    bracket = f"[{' '.join(options)}] " if options else ""
    return f"deb {bracket}{source.uris[0]} {source.suites[0]} {' '.join(source.components)}\n"


@given(st.lists(sources, max_size=4))
def test_deb822_is_read_as_it_is_written(expected: list[apt.AptEntry]) -> None:
    assert apt.parse_deb822("\n".join(source.stanza() for source in expected)) == expected


@given(st.lists(sources, max_size=4))
def test_both_formats_mean_the_same(expected: list[apt.AptEntry]) -> None:
    assert apt.parse_one_line("".join(map(one_line, expected))) == expected


@given(st.text(max_size=300))
def test_no_text_breaks_the_parsers(text: str) -> None:
    apt.parse_deb822(text)
    apt.parse_one_line(text)


def test_deb822_comments_disabled_entries_and_keys_in_place() -> None:
    found = apt.parse_deb822(
        "Types: deb deb-src\n# a comment between fields\nURIs: http://a/debian http://b/debian\n"
        "Suites: bookworm bookworm-updates\nComponents: main contrib\n"
        "Signed-By:\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n -----END PGP-----\n"
        "\nEnabled: no\nTypes: deb\nURIs: http://c\nSuites: bookworm\nComponents: main\n"
        "\nTypes: deb-src\nURIs: http://d\nSuites: bookworm\nComponents: main\n"
    )
    assert len(found) == 1
    assert found[0].uris == ("http://a/debian", "http://b/debian")
    assert found[0].suites == ("bookworm", "bookworm-updates")
    assert "BEGIN PGP" in (found[0].signed_by or "")


def test_one_line_ignores_sources_and_comments() -> None:
    assert (
        apt.parse_one_line("# deb http://a b main\ndeb-src http://a b main\ndeb broken\n\n") == []
    )


@pytest.fixture
def etc(tmp_path: Path) -> Path:
    parts = tmp_path / "sources.list.d"
    parts.mkdir()
    (tmp_path / "sources.list").write_text(
        "deb [arch=amd64] http://mirror/debian bookworm main contrib\n"
        "deb http://mirror/security bookworm-security main\n"
    )
    (parts / "third-party.list").write_text("deb https://broken.invalid/apt stable main\n")
    (parts / "other.sources").write_text(
        "Types: deb\nURIs: https://vendor.invalid\nSuites: nodistro\nComponents: main\n"
    )
    (parts / "ignored.save").write_text("deb http://saved bookworm main\n")
    return tmp_path


def test_third_parties_are_left_out(etc: Path) -> None:
    found = apt.distribution_sources(apt.machine_sources(etc), "bookworm")
    assert [source.uris for source in found] == [
        ("http://mirror/debian",),
        ("http://mirror/security",),
    ]


def test_another_suite_at_the_same_mirror(etc: Path) -> None:
    found = apt.sources_of_suite("sid", apt.machine_sources(etc), "bookworm")
    assert [(source.uris, source.suites) for source in found] == [
        (("http://mirror/debian",), ("sid",))
    ]
    found = apt.sources_of_suite("bookworm", apt.machine_sources(etc), "bookworm")
    assert [source.suites for source in found] == [("bookworm",), ("bookworm-security",)]


def test_a_machine_without_a_mirror_is_told(etc: Path) -> None:
    with pytest.raises(apt.AptError, match="names no mirror"):
        apt.sources_of_suite("sid", apt.machine_sources(etc), "trixie")


def test_private_configuration_clears_hooks(tmp_path: Path) -> None:
    source = apt.AptEntry(("http://mirror/debian",), ("sid",), ("main",))
    private = apt.PrivateApt(tmp_path / "apt", [source])
    text = private.configuration.read_text()
    assert "#clear APT::Update::Post-Invoke;" in text
    assert (tmp_path / "apt" / "private.sources").read_text() == source.stanza()
