"""What makes an image out of date, and what a build leaves when it is kept out or fails."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from containers import build, images, sources
from containers.commands import StepError
from containers.table import load_table

PROJECT = Path(__file__).resolve().parents[2]
NAME = "mpich-5.0.2"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout whose images seem to be built."""
    shutil.copytree(PROJECT / "containers", tmp_path / "containers",
                    ignore=shutil.ignore_patterns("*.pyc", "images.lock"))  # fmt: skip
    shutil.copytree(PROJECT / "benchmarks", tmp_path / "benchmarks",
                    ignore=shutil.ignore_patterns("build"))  # fmt: skip
    for name in load_table(tmp_path).defaults():
        recipe = build.recipe_of(tmp_path, name, "mmdebstrap")
        path = images.folder(tmp_path) / f"{name}.sif"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"an image")
        images.write_entry(tmp_path, name, {
            "file": path.name, "sha256": sources.sha256_of(path), "bytes": 8,
            "inputs_sha256": recipe.inputs_sha256(), "built_utc": "", "labels": {},
        })  # fmt: skip
    return tmp_path


def is_current(root: Path, name: str = NAME) -> bool:
    load_table.cache_clear()
    recipe = build.recipe_of(root, name, "mmdebstrap")
    return build.up_to_date(recipe, images.load_lock(root))


def run(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "containers.build", *arguments],
        env={**os.environ, "WYEAST_ROOT": str(root), "PYTHONPATH": str(PROJECT)},
        capture_output=True, text=True,
    )  # fmt: skip


def test_nothing_to_do_is_quick_and_touches_nothing(checkout: Path) -> None:
    before = (checkout / images.LOCK).stat().st_mtime_ns
    start = time.monotonic()
    done = run(checkout)
    assert done.returncode == 0 and "up to date" in done.stdout
    # Half a second is the aim; a busy machine is given more.
    assert time.monotonic() - start < 2
    assert (checkout / images.LOCK).stat().st_mtime_ns == before
    assert not (checkout / ".wyeast" / "locks").exists()


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        ("containers/wheel.def", "strip --strip-unneeded", "strip -s"),
        ("containers/implementations.yaml", "pinned: -bind-to core", "pinned: -bind-to socket"),
        ("containers/implementations.yaml", "[libopenblas0-serial]", "[libopenblas0-pthread]"),
        ("containers/sources.lock", "8fed465e", "00000000"),
        ("containers/sources.lock", "0a6fef7a", "00000000"),
        ("benchmarks/Makefile", "install", "install "),
    ],
)
def test_every_input_counts(checkout: Path, path: str, old: str, new: str) -> None:
    assert is_current(checkout)
    text = (checkout / path).read_text()
    assert old in text
    (checkout / path).write_text(text.replace(old, new))
    assert not is_current(checkout)


def test_what_is_no_input_does_not_count(checkout: Path) -> None:
    (checkout / "benchmarks" / "NOTES.md").write_text("words")
    (checkout / "benchmarks" / "build").mkdir()
    (checkout / "benchmarks" / "build" / "left.c").write_text("int x;")
    assert is_current(checkout)


def test_another_s_entry_does_not_count(checkout: Path) -> None:
    table = checkout / "containers" / "implementations.yaml"
    text = table.read_text().replace("    version: 5.0.11", "    version: 5.0.12")
    table.write_text(text)
    assert is_current(checkout) and not is_current(checkout, "openmpi-5.0.11")


def test_a_cut_or_missing_image_is_out_of_date(checkout: Path) -> None:
    path = images.folder(checkout) / f"{NAME}.sif"
    path.write_bytes(b"cut")
    assert not is_current(checkout)
    path.unlink()
    assert not is_current(checkout)


def test_a_second_build_is_kept_out(checkout: Path) -> None:
    with build.only_build(checkout):
        done = run(checkout, "--force")
    assert done.returncode == 1
    assert f"another build is under way (process {os.getpid()})" in done.stderr


def test_a_name_that_is_not_in_the_table(checkout: Path) -> None:
    done = run(checkout, "--images", "mpich-5.0.1")
    assert done.returncode == 1 and "did you mean `mpich-5.0.2`?" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_failed_build_leaves_the_old_image_and_no_litter(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    downloads = PROJECT / ".wyeast" / "downloads"
    recipe = build.recipe_of(checkout, NAME, "mmdebstrap")
    if not (downloads / recipe.wheel.file).exists():
        pytest.skip("the sources are not downloaded yet")
    shutil.copytree(downloads, checkout / ".wyeast" / "downloads")
    for base in recipe.bases:
        base.path(checkout / ".wyeast").parent.mkdir(parents=True, exist_ok=True)
        base.path(checkout / ".wyeast").write_bytes(b"a base")
    before = (checkout / images.LOCK).read_bytes()

    def fail(command: list[str], what: str, log: Path, scratch: Path) -> None:
        assert (scratch / "staging" / "mpi" / "bin" / "mpiexec").stat().st_mode & 0o111
        assert (scratch / "staging" / "sources" / "hpcc-1.5.0" / "hpl").is_dir()
        log.write_text("write failed: No space left on device\n")
        raise StepError("the build failed", log)

    monkeypatch.setattr(build, "run_logged", fail)
    monkeypatch.setattr(build, "apptainer_command", lambda: Path("apptainer"))
    with pytest.raises(StepError, match="the disk is full, make room") as caught:
        build.build_image(recipe, build.Progress())
    assert str(checkout / ".wyeast" / "logs" / f"build-{NAME}.log") in str(caught.value)
    assert (checkout / images.LOCK).read_bytes() == before
    assert [path.name for path in (checkout / ".wyeast" / "build").iterdir()] == []
    assert sorted(path.name for path in images.folder(checkout).iterdir()) == [
        "mpich-5.0.2.sif",
        "openmpi-5.0.11.sif",
    ]


def test_the_manifest_says_what_went_in(checkout: Path) -> None:
    from containers import staging

    recipe = build.recipe_of(checkout, NAME, "docker")
    said = json.loads(json.dumps(staging.manifest(recipe, "2026-01-01T00:00:00Z")))
    assert said["base"]["image"].startswith("debian:")
    assert said["inputs_sha256"] == recipe.inputs_sha256()
    assert said["sources"][recipe.wheel.file]["sha256"] == recipe.wheel.sha256
