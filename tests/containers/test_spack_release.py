"""Releases of our programs: archives that are the same whoever makes them, known by digest."""

import json
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from containers.sources import sha256_of
from containers.spack import mirror, release
from containers.spack.recipes import SpackError

PROJECT = Path(__file__).resolve().parents[2]
RECIPE = (PROJECT / release.RECIPE).read_text()


def git(root: Path, *words: str) -> str:
    named = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    return subprocess.run(
        ["git", "-C", str(root), *named, *words],
        capture_output=True, text=True, check=True, timeout=60,
    ).stdout.strip()  # fmt: skip


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository with programs, the recipe and its one release, which is the first commit."""
    root = tmp_path / "checkout"
    (root / "benchmarks").mkdir(parents=True)
    (root / "benchmarks" / "Makefile").write_text("all:\n")
    git(tmp_path, "init", "-q", str(root))
    git(root, "add", ".")
    git(root, "commit", "-q", "-m", "one")
    first = git(root, "rev-parse", "HEAD")
    packed = mirror.archive_of(root, first, "wyeast-benchmarks-0.1.1", tmp_path, "benchmarks")
    (root / release.RECIPE).parent.mkdir(parents=True)
    known = release.pinned(PROJECT)["0.1.1"]
    (root / release.RECIPE).write_text(RECIPE.replace(known, sha256_of(packed)))
    (root / mirror.RELEASES).write_text(json.dumps({"0.1.1": first}))
    (root / ".gitignore").write_text(".wyeast\n")
    git(root, "add", ".")
    git(root, "commit", "-q", "-m", "two")
    return root


def test_releases_are_held_against_the_recipe(checkout: Path) -> None:
    (line,) = release.check(checkout)
    path, digest = line.split("  sha256 ")
    assert digest == f"{release.pinned(checkout)['0.1.1']}, as the recipe asks"
    assert sha256_of(Path(path)) == release.pinned(checkout)["0.1.1"]
    recipe = checkout / release.RECIPE
    recipe.write_text(recipe.read_text().replace(release.pinned(checkout)["0.1.1"], "0" * 64))
    with pytest.raises(SpackError, match=f"asks for {'0' * 64}: the history was rewritten"):
        release.check(checkout)


def test_a_new_release_is_made_with_the_lines_that_name_it(checkout: Path) -> None:
    lines = release.make(checkout, "0.2.0")
    path, digest = lines[0].split("  sha256 ")
    # As the recipe's own address asks for it.
    assert Path(path).relative_to(checkout).as_posix() == (
        ".wyeast/spack/releases/wyeast-benchmarks-0.2.0.tar.gz"
    )
    assert sha256_of(Path(path)) == digest
    with tarfile.open(path) as archive:
        assert archive.getnames()[-1] == "wyeast-benchmarks-0.2.0/benchmarks/Makefile"
    # These lines are all that it needs to be one of the releases.
    recipe = checkout / release.RECIPE
    recipe.write_text(recipe.read_text().replace(
        '    version("0.1.1"', f'{lines[2]}\n    version("0.1.1"'
    ))  # fmt: skip
    known = json.loads((checkout / mirror.RELEASES).read_text())
    (checkout / mirror.RELEASES).write_text(json.dumps({**known, **json.loads(f"{{{lines[4]}}}")}))
    assert [line.partition("  ")[2] for line in release.check(checkout)] == [
        f"sha256 {digest}, as the recipe asks"
        for digest in (release.pinned(checkout)["0.1.1"], digest)
    ]
    # Made again elsewhere, it is the same.
    again = mirror.archive_of(checkout, git(checkout, "rev-parse", "HEAD"),
                              "wyeast-benchmarks-0.2.0", checkout.parent, "benchmarks")  # fmt: skip
    assert sha256_of(again) == digest


def test_what_is_no_release_is_refused(checkout: Path, tmp_path: Path) -> None:
    with pytest.raises(SpackError, match="is not a version"):
        release.make(checkout, "new")
    with pytest.raises(SpackError, match=r"has 0\.1\.1 already"):
        release.make(checkout, "0.1.1")
    (checkout / "benchmarks" / "new.c").write_text("")
    with pytest.raises(SpackError, match="has changes that are in no commit"):
        release.make(checkout, "0.2.0")
    bare = tmp_path / "bare"
    (bare / release.RECIPE).parent.mkdir(parents=True)
    (bare / release.RECIPE).write_text(RECIPE)
    with pytest.raises(SpackError, match="has no history"):
        release.make(bare, "0.2.0")
    assert not list(checkout.glob(".wyeast/spack/releases/*"))


def test_the_command_says_it(checkout: Path) -> None:
    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "containers.spack.release", *words], cwd=PROJECT,
            env={"WYEAST_ROOT": str(checkout), "PATH": "/usr/bin:/bin", "PYTHONPATH": str(PROJECT)},
            capture_output=True, text=True, check=False, timeout=120,
        )  # fmt: skip

    done = run()
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(
        r"\S+0\.1\.1\.tar\.gz  sha256 [0-9a-f]{64}, as the recipe asks\n", done.stdout
    )
    assert run("--version=0.2.0").stdout.count("\n") == 5
    failed = run("--version=x")
    assert failed.returncode == 1 and failed.stderr.startswith("spack-release: VERSION=x is no")
