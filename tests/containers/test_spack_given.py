"""Sources from a folder: known by digest, served to Spack, and listed before anything is built."""

import hashlib
import json
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest

from containers import apt, build, sources
from containers.spack import environment as spack_environment
from containers.spack import given, recipes, release_tree, source_folder
from containers.spack import mirror as spack_mirror
from containers.spack import tool as spack
from containers.spack.recipes import Needed, SpackError
from containers.spack.source_folder import SourceFolder
from containers.table import load_table
from tests.containers import travelling
from tests.containers.test_spack import NAMES, PROJECT, core, repository_of

#: Those whose image has programs of others besides.
SUITES = [name for name in NAMES if load_table(PROJECT).resolve(name).programs]
FORGE = "https://forge.example.org/people"
FOUND = spack.Spack(Path("/nowhere/spack"), Path("/nowhere/packages"), "1.1.0")


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def wanted(sha256: str, address: str = f"{FORGE}/x-1.tar.xz", **more: Any) -> Needed:
    ending = ".tar.xz" if address.endswith("xz") else ""
    place = f"_source-cache/archive/{sha256[:2]}/{sha256}{ending}"
    said = {"package": "x", "version": "1", "recipe": "wyeast", "hash": "abc", "kind": "archive",
            "others": (), "place": place}  # fmt: skip
    return Needed(sha256=sha256, address=address, **{**said, **more})


def test_a_file_of_any_name_is_known_by_its_digest_and_lies_where_spack_looks(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "sources"
    (folder / "deeper").mkdir(parents=True)
    (folder / "deeper" / "whatever").write_bytes(b"archive")
    (folder / "x-1.tar.xz").write_bytes(b"of the right name and another content")
    one, other = wanted(digest(b"archive")), wanted(digest(b"none"), f"{FORGE}/y.tar.xz")
    mirror = tmp_path / "mirror"
    rows = given.look([[one, other]], SourceFolder(folder), mirror)
    assert [row.where for row in rows] == ["have", None]
    assert (mirror / str(one.place)).read_bytes() == b"archive"
    # What the mirror has needs to be in no folder.
    (folder / "deeper" / "whatever").unlink()
    rows = given.look([[one]], SourceFolder(folder), mirror)
    assert [row.where for row in rows] == ["have"]
    assert [row.where for row in given.look([[one]], SourceFolder(folder), None)] == [None]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder of sources with a repository of a project with a tag, in which a file changed."""
    made = tmp_path / "sources" / "project.git"
    repository_of(made, "a.c", "int a;\n", "v1.2")
    (made / "a.c").write_text("int b;\n")
    for words in (["add", "."], ["commit", "-q", "-m", "mended"]):
        subprocess.run(
            ["git", "-C", str(made), "-c", "user.name=n", "-c", "user.email=n@example.org", *words],
            check=True,
        )  # fmt: skip
    return made


@pytest.mark.parametrize(
    ("address", "what", "prefix"),
    [
        (f"{FORGE}/project/archive/refs/tags/v1.2.tar.gz", "v1.2", "project-1.2"),
        (f"{FORGE}/project/archive/v1.2.tar.gz", "v1.2", "project-1.2"),
        (f"{FORGE}/project/releases/download/v1.2/other-1.2.tar.gz", "v1.2", "other-1.2"),
    ],
)
def test_a_repository_has_the_archives_of_its_tags(
    tmp_path: Path, project: Path, address: str, what: str, prefix: str
) -> None:
    made = spack_mirror.archive_of(project, what, prefix, tmp_path).read_bytes()
    source = wanted(digest(made), address)
    found = SourceFolder(project.parent).provide(source, tmp_path)
    assert found is not None and found.read_bytes() == made
    # An archive of a digest that it does not make is not given.
    other = wanted(digest(b"other"), address)
    assert SourceFolder(project.parent).provide(other, tmp_path) is None
    nowhere = wanted(digest(made), address.replace("1.2", "1.3"))
    assert SourceFolder(project.parent).provide(nowhere, tmp_path) is None


def test_a_repository_has_its_commits_as_patches(tmp_path: Path, project: Path) -> None:
    head = spack.head_of(project)
    made = subprocess.run(
        ["git", "-C", str(project), "format-patch", "--full-index", "--no-signature", "--stdout",
         "HEAD^..HEAD"], capture_output=True, check=True,
    ).stdout  # fmt: skip
    assert b"+int b;" in made
    source = wanted(digest(made), f"{FORGE}/project/commit/{head}.patch?full_index=1", kind="patch")
    (row,) = given.look([[source]], SourceFolder(project.parent), tmp_path / "mirror")
    assert row.where == "have" and (tmp_path / "mirror" / str(source.place)).read_bytes() == made


def test_a_git_that_does_not_answer_is_a_sentence(
    tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bin" / "git"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\nexec sleep 600\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")
    monkeypatch.setattr(source_folder, "PATIENCE_S", 0.3)
    source = wanted("a" * 64, f"{FORGE}/project/commit/{'1' * 40}.patch?full_index=1", kind="patch")
    with pytest.raises(SpackError, match=r"1111 did not end within 0\.3 s in .*project\.git: put "):
        SourceFolder(project.parent).provide(source, tmp_path)


def test_the_table_says_all_that_is_needed_to_find_what_is_missing(tmp_path: Path) -> None:
    here, missing = "a" * 64, "b" * 64
    rows = [
        given.SourceRow(wanted(here, f"{FORGE}/here.tar.xz"), "have"),
        given.SourceRow(
            wanted(missing, f"{FORGE}/away.tar.xz", package="longer", version="2.0"), None
        ),
    ]
    first, one, other = given.table(rows)
    assert first.split() == ["package", "version", "sha256", "address"]
    assert one.split() == ["x", "1", "have", here[:12], f"{FORGE}/here.tar.xz"]
    assert other.split() == ["longer", "2.0", "missing", missing, f"{FORGE}/away.tar.xz"]
    with pytest.raises(SpackError, match=r"1 of 2 sources are missing, and nothing was built"):
        given.refuse_missing(rows, tmp_path)
    given.refuse_missing(rows[:1], tmp_path)


def test_an_archive_of_another_digest_is_told_with_what_to_add(tmp_path: Path) -> None:
    folder = tmp_path / "sources"
    folder.mkdir()
    (tmp_path / "x").write_text("x")
    for name in ("hpl-2.3", "other-1"):
        with tarfile.open(folder / f"{name}.tar", "w") as archive:
            archive.add(tmp_path / "x", f"{name}/x")
    rows = [given.SourceRow(wanted("a" * 64, package="hpl", version="2.3"), None)]
    (line,) = given.unknown(SourceFolder(folder), rows)
    assert "hpl-2.3.tar is hpl 2.3 by the folder in it" in line
    digest_of = sources.sha256_of(folder / "hpl-2.3.tar")
    assert f'version("2.3-given", sha256="{digest_of}"' in line
    # What is asked for by its digest needs no word.
    rows = [given.SourceRow(wanted(digest_of, package="hpl", version="2.3"), "have")]
    assert given.unknown(SourceFolder(folder), rows) == []


def test_an_unpacked_release_is_served_as_its_archive_and_told_as_one(tmp_path: Path) -> None:
    tree = tmp_path / "sources" / "below" / "hpl-2.3"
    (tree / "src").mkdir(parents=True)
    for name in ("configure", "src/a.c"):
        (tree / name).write_text(name)
    of_archive = release_tree.digest_of(tree)
    rows = [given.SourceRow(wanted("a" * 64, package="hpl", version="2.3"), None)]
    folder = SourceFolder(tmp_path / "sources")
    # Its files are no sources of their own.
    assert folder.files == {} and folder.trees == {of_archive: tree}
    (line,) = given.unknown(folder, rows)
    assert line.startswith(f"{tree} is hpl 2.3 by its name, and not what the lock has (2.3): ")
    assert f'version("2.3-given", sha256="{of_archive}", url="file:///hpl-2.3.tar")' in line
    # As what a lock has that knows this version.
    place = f"_source-cache/archive/{of_archive[:2]}/{of_archive}.tar"
    needed = wanted(of_archive, "file:///hpl-2.3.tar", package="hpl", place=place)
    rows = given.look([[needed]], folder, tmp_path / "mirror")
    assert [row.where for row in rows] == ["have"] and given.unknown(folder, rows) == []
    assert sources.sha256_of(tmp_path / "mirror" / place) == of_archive
    with tarfile.open(tmp_path / "mirror" / place) as archive:
        assert archive.getnames() == ["hpl-2.3", "hpl-2.3/configure", "hpl-2.3/src",
                                      "hpl-2.3/src/a.c"]  # fmt: skip


def test_nothing_is_built_where_a_source_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = []

    def needed(root: Path, found: spack.Spack, lock: str) -> list[Needed]:
        asked.append(lock)
        return [wanted(digest(b"archive")), wanted(digest(b"none"), f"{FORGE}/y.tar.xz")]

    root = travelling.new_checkout(tmp_path / "root")
    for name in (spack_environment.ENVIRONMENT, spack_environment.LOCKS, "spack_repo"):
        (root / name).symlink_to(PROJECT / name)
    (root / "site_configs").symlink_to(PROJECT / "site_configs")
    monkeypatch.setattr(recipes, "needed", needed)
    monkeypatch.setattr(spack, "provide", lambda root: FOUND)
    monkeypatch.setattr(spack, "of_the_machine", lambda: None)
    monkeypatch.setattr(build, "provide", lambda **_: pytest.fail("something is built"))
    (tmp_path / "sources").mkdir()
    (tmp_path / "sources" / "file").write_bytes(b"archive")
    with pytest.raises(SpackError, match="1 of 2 sources are missing"):
        build.build(root, [NAMES[0]], "mmdebstrap", force=False, given=tmp_path / "sources")
    assert len(asked) == 1
    words = capsys.readouterr().out
    assert digest(b"none") in words and f"{FORGE}/y.tar.xz" in words and " have " in words
    with pytest.raises(SpackError, match=r"SOURCES=.*/nowhere is not a folder"):
        build.build(root, [NAMES[0]], "mmdebstrap", force=False, given=tmp_path / "nowhere")


def test_the_project_s_own_archives_come_from_the_folder_too(tmp_path: Path) -> None:
    root = travelling.new_checkout(tmp_path / "root")
    pinned = sources.load_sources(root).archives["hpcc-1.5.0"]
    path = root / sources.LOCK
    path.write_text(path.read_text().replace(pinned.sha256, digest(b"hpcc")))
    (tmp_path / "sources").mkdir()
    (tmp_path / "sources" / "some-name").write_bytes(b"hpcc")
    given.own_archives(root, SourceFolder(tmp_path / "sources"))
    assert (root / ".wyeast" / "downloads" / pinned.file).read_bytes() == b"hpcc"


class _Distribution:
    """Apt that has one source package, with an archive and something else."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def update(self) -> None:
        pass

    def run(self, *words: str, where: Path) -> str:
        self.asked.append(words[-1])
        if words[-1] != "hpcc":
            raise apt.AptError(f"Unable to find a source package for {words[-1]}")
        (where / "hpcc_1.5.0.orig.tar.gz").write_bytes(b"hpcc")
        (where / "hpcc_1.5.0-3.dsc").write_text("described")
        return ""


def test_a_folder_is_filled_from_the_distribution_first_and_by_digest_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = travelling.new_checkout(tmp_path / "root")
    distribution = _Distribution()
    monkeypatch.setattr(apt, "of_suite", lambda *_: distribution)
    (tmp_path / "upstream").mkdir()
    for name, content in (("y.tar.xz", b"y"), ("z.tar.xz", b"not z")):
        (tmp_path / "upstream" / name).write_bytes(content)
    upstream = (tmp_path / "upstream").as_uri()
    needed = [
        wanted(digest(b"hpcc"), f"{upstream}/hpcc-1.5.0.tar.gz", package="hpl-hpcc"),
        wanted(digest(b"y"), f"{upstream}/nowhere.tar.xz", others=(f"{upstream}/y.tar.xz",)),
        wanted(digest(b"z"), f"{upstream}/z.tar.xz"),
    ]
    folder = tmp_path / "sources"
    folder.mkdir()
    said: list[str] = []
    rows = given.look([needed], SourceFolder(folder), None)
    given.fill(root, folder, rows, said.append)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {
        "hpcc_1.5.0.orig.tar.gz": b"hpcc", "y.tar.xz": b"y",
    }  # fmt: skip
    # Asked by the package's name, then by the archive's.
    assert distribution.asked[:2] == ["hpl-hpcc", "hpcc"]
    assert len(said) == 2 and said[0].startswith("hpl-hpcc: ")
    rows = given.look([needed], SourceFolder(folder), None)
    assert [row.where for row in rows].count(None) == 1


def test_spack_is_asked_with_our_recipes_first_and_its_words_are_passed_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = {"kind": "archive", "address": f"{FORGE}/x.tar.xz", "others": [f"{FORGE}/y.tar.xz"],
              "sha256": "a" * 64, "place": "_source-cache/x"}  # fmt: skip
    said = [{"package": "x", "version": "1", "recipe": "wyeast", "hash": "abc",
             "sources": [source]}]  # fmt: skip
    place = core(tmp_path / "core", "1.1.0")
    found = spack.Spack(place, tmp_path / "packages", "1.1.0")
    (place / "bin/spack").write_text(
        f'#!/bin/sh\n[ "$3" = python ] || exit 2\ncp "$2/repos.yaml" {tmp_path}\n'
        f"cat <<'END'\n{json.dumps(said)}\nEND\n"
    )
    (one,) = recipes.needed(tmp_path, found, "{}")
    assert one.addresses == (f"{FORGE}/x.tar.xz", f"{FORGE}/y.tar.xz")
    assert one.package == "x" and one.place == "_source-cache/x"
    text = (tmp_path / "repos.yaml").read_text()
    assert text.index("wyeast:") < text.index("builtin:")
    (place / "bin/spack").write_text("#!/bin/sh\necho 'no recipe of x' >&2\nexit 1\n")
    with pytest.raises(SpackError, match=r"Spack 1\.1\.0 cannot tell .*: no recipe of x"):
        recipes.needed(tmp_path, found, "{}")
    (place / "bin/spack").write_text("#!/bin/sh\nexec sleep 600\n")
    monkeypatch.setattr(recipes, "PATIENCE_S", 0.3)
    with pytest.raises(SpackError, match=r"Spack 1\.1\.0 did not say within 0\.3 s .*spec zlib"):
        recipes.needed(tmp_path, found, "{}")


def test_what_everybody_can_build_is_from_the_distribution_s_archives() -> None:
    names = spack_environment.from_archives_of_the_distribution(load_table(PROJECT))
    assert [name for name in names if load_table(PROJECT).resolve(name).build_of is None] == [
        "openmpi-4.1.4-source-spack", "mpich-4.0.2-source-spack",
    ]  # fmt: skip
    # So can their builds with other options, of the same archives, but not those with programs
    # whose sources the distribution does not have.
    assert "openmpi-4.1.4-source-cma-spack" in names
    assert not [name for name in names if load_table(PROJECT).resolve(name).programs]


@pytest.mark.parametrize("name", SUITES)
def test_who_lacks_a_suite_is_told_so_and_builds_without_it(tmp_path: Path, name: str) -> None:
    """By the locks: with all that an image without suites is made of, only theirs is missing."""
    of = load_table(PROJECT).resolve(name).build_of

    def needed(implementation: str) -> list[Needed]:
        text = spack_environment.lock_path(PROJECT, implementation).read_text()
        nodes = spack_environment.read_lock(text)
        return [
            wanted(source["sha256"], source["address"], package=nodes[key].name,
                   version=nodes[key].version)
            for key, sources in spack_environment.sources_in(text).items() for source in sources
        ]  # fmt: skip

    mirror = tmp_path / "mirror"
    for source in needed(str(of)):
        (mirror / str(source.place)).parent.mkdir(parents=True, exist_ok=True)
        (mirror / str(source.place)).touch()
    (tmp_path / "sources").mkdir()
    folder = SourceFolder(tmp_path / "sources")
    given.refuse_missing(given.look([needed(str(of))], folder, mirror), folder.folder)
    rows = given.look([needed(name)], folder, mirror)
    missing = [row.needed for row in rows if row.where is None]
    assert {(one.package, one.version) for one in missing} == {
        ("npb", "3.4.3"), ("intel-mpi-benchmarks", "2021.7"),
    }  # fmt: skip
    assert all(str(one.sha256) in "\n".join(given.table(rows)) for one in missing)
    with pytest.raises(SpackError, match=rf"{len(missing)} of {len(rows)} sources are missing"):
        given.refuse_missing(rows, folder.folder)
