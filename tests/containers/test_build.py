"""What makes an image out of date, and what a build leaves when it is kept out or fails."""

import json
import os
import shutil
import subprocess
import time
import zipfile
from pathlib import Path

import pytest

from containers import bases, build, commands, images, origin, sources, staging, store
from containers.apptainer import Admitted, state_of
from containers.commands import StepError
from containers.locking import only_build
from containers.table import load_table
from records.sample import sample_folder
from tests.containers import own_machine
from tests.sif_files import said, write_sif

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
        path = store.folder(tmp_path) / f"{name}.sif"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"an image")
        images.write_entry(tmp_path, name, {
            "file": path.name, "sha256": sources.sha256_of(path), "bytes": 8,
            "inputs_sha256": recipe.inputs_sha256(), "built_utc": "", "labels": {},
            "origin": origin.BUILT,
        })  # fmt: skip
    return tmp_path


def is_current(root: Path, name: str = NAME) -> bool:
    load_table.cache_clear()
    recipe = build.recipe_of(root, name, "mmdebstrap")
    return build.up_to_date(recipe, images.load_lock(root))


def run(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return own_machine.run(root, "containers.build", *arguments)


def test_nothing_to_do_touches_nothing(checkout: Path) -> None:
    before = (checkout / images.LOCK).stat().st_mtime_ns
    done = run(checkout)
    assert done.returncode == 0 and "up to date" in done.stdout
    assert (checkout / images.LOCK).stat().st_mtime_ns == before
    assert not (checkout / ".wyeast" / "locks").exists()


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        ("containers/image.def", "strip --strip-unneeded", "strip -s"),
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


def test_a_base_from_elsewhere_makes_an_image_no_older(
    checkout: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pulled where Debian's bootstrap is not to be had, an image of one is not built again."""
    for here in ("docker", "mmdebstrap"):
        monkeypatch.setattr(build, "chosen", lambda word, kind=here: (word or kind, None))
        build.build(checkout, [NAME], None, force=False)
        assert f"up to date: {NAME}" in capsys.readouterr().out
    # Who names one gets that one.
    monkeypatch.setattr(build, "provide", lambda **_: pytest.fail("it is built"))
    with pytest.raises(pytest.fail.Exception, match="it is built"):
        build.build(checkout, [NAME], "docker", force=False)


def test_what_is_not_an_input_does_not_count(checkout: Path) -> None:
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
    path = store.folder(checkout) / f"{NAME}.sif"
    path.write_bytes(b"cut")
    assert not is_current(checkout)
    path.unlink()
    assert not is_current(checkout)


def test_a_second_build_is_kept_out(checkout: Path) -> None:
    with only_build(checkout):
        done = run(checkout, "--force")
    assert done.returncode == 1
    assert f"another build is under way (process {os.getpid()};" in done.stderr


def test_a_name_that_is_not_in_the_table(checkout: Path) -> None:
    done = run(checkout, "--images", "mpich-5.0.1")
    assert done.returncode == 1 and "did you mean `mpich-5.0.2`?" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_pulled_image_is_taken_or_said_to_be_built_anew(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    entry = {
        **images.entry_of(checkout, NAME),
        "origin": {"how": "pulled", "from": "oras://somewhere"},
        "admitted": origin.word("make admit"),
    }
    built: list[str] = []
    monkeypatch.setattr(build, "provide", lambda **_: None)
    monkeypatch.setattr(
        build, "build_image", lambda recipe, progress: built.append(recipe.implementation.name)
    )
    images.write_entry(checkout, NAME, entry)
    build.build(checkout, [NAME], "mmdebstrap", force=False)
    assert built == [] and "up to date" in capsys.readouterr().out
    images.write_entry(checkout, NAME, {**entry, "inputs_sha256": "0" * 64})
    build.build(checkout, [NAME], "mmdebstrap", force=False)
    assert built == [NAME] and "pulled from oras://somewhere" in capsys.readouterr().out


@pytest.mark.real
def test_a_failed_build_leaves_the_old_image_and_no_litter(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    downloads = PROJECT / ".wyeast" / "downloads"
    downloads.mkdir(parents=True, exist_ok=True)
    (checkout / ".wyeast" / "downloads").symlink_to(downloads)
    recipe = build.recipe_of(checkout, NAME, "mmdebstrap")
    for base in recipe.bases:
        base.path(checkout / ".wyeast").parent.mkdir(parents=True, exist_ok=True)
        base.path(checkout / ".wyeast").write_bytes(b"a base")
    before = (checkout / images.LOCK).read_bytes()

    def fail(command: list[str], what: str, log: Path, scratch: Path, **variables: str) -> None:
        assert (scratch / "staging" / "mpi" / "bin" / "mpiexec").stat().st_mode & 0o111
        assert (scratch / "staging" / "sources" / "hpcc-1.5.0" / "hpl").is_dir()
        assert "org.label-schema.build-date 20" in Path(command[-1]).read_text()
        assert int(variables["SOURCE_DATE_EPOCH"]) <= time.time()
        log.write_text("write failed: No space left on device\n")
        raise StepError("the build failed", log)

    monkeypatch.setattr(build, "run_logged", fail)
    monkeypatch.setattr("containers.apptainer.apptainer_command", lambda: Path("apptainer"))
    with pytest.raises(StepError, match="the disk is full; free some space") as caught:
        build.build_image(recipe, commands.BuildProgress())
    assert str(checkout / ".wyeast" / "logs" / f"build-{NAME}.log") in str(caught.value)
    assert (checkout / images.LOCK).read_bytes() == before
    assert [path.name for path in (checkout / ".wyeast" / "build").iterdir()] == []
    assert sorted(path.name for path in store.folder(checkout).iterdir()) == [
        "mpich-5.0.2.sif",
        "openmpi-5.0.11.sif",
    ]


def test_the_manifest_says_what_went_in(checkout: Path) -> None:
    recipe = build.recipe_of(checkout, NAME, "docker")
    said = json.loads(json.dumps(staging.manifest(recipe, "2026-01-01T00:00:00Z")))
    assert said["base"]["image"].startswith("debian@sha256:")
    assert said["inputs_sha256"] == recipe.inputs_sha256()
    [wheel] = recipe.wheels
    assert said["sources"][wheel.file]["sha256"] == wheel.sha256


LAM = "lam-7.1.4"


def test_own_packages_make_own_bases_and_are_pinned(checkout: Path) -> None:
    common = build.recipe_of(checkout, NAME, "mmdebstrap").bases
    build_base, run_base = build.recipe_of(checkout, LAM, "mmdebstrap").bases
    assert [base.name for base in common] == ["build", "run"]
    assert [build_base.name, run_base.name] == [f"build-{LAM}", f"run-{LAM}"]
    assert build_base.packages == (*common[0].packages, "lam4-dev=7.1.4-7+b1")
    assert set(common[1].packages) < set(run_base.packages)
    intel = build.recipe_of(checkout, "intel-mpi-2021.19", "mmdebstrap")
    assert intel.bases[0] == common[0]
    assert [wheel.name for wheel in intel.wheels] == ["impi-rt", "impi-devel"]


def test_a_package_without_a_pinned_version_is_refused(checkout: Path) -> None:
    lock = checkout / sources.LOCK
    lock.write_text(lock.read_text().replace('"liblam4"', '"liblam5"'))
    done = run(checkout, "--images", LAM)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert "pins no version of the Debian package `liblam4`; add it" in done.stderr


def test_a_wheel_that_is_not_pinned_and_a_launcher_that_is_not_there(checkout: Path) -> None:
    lock = checkout / sources.LOCK
    lock.write_text(lock.read_text().replace('"mpich-5.0.2": {', '"mpich-5.0.3": {'))
    done = run(checkout, "--images", NAME)
    assert done.returncode == 1
    assert f"pins no wheel `{NAME}`, which {NAME} is built from" in done.stderr
    (checkout / "containers" / "launchers" / "lam_ranks").unlink()
    done = run(checkout, "--images", LAM)
    assert done.returncode == 1
    assert "containers/launchers/lam_ranks, of lam-7.1.4, does not exist" in done.stderr


def test_the_launcher_is_an_input_of_its_images_alone(checkout: Path) -> None:
    before = [build.recipe_of(checkout, name, "mmdebstrap").inputs_sha256() for name in (LAM, NAME)]
    with (checkout / "containers" / "launchers" / "lam_ranks").open("a") as file:
        file.write("# more\n")
    after = [build.recipe_of(checkout, name, "mmdebstrap").inputs_sha256() for name in (LAM, NAME)]
    assert before[0] != after[0] and before[1] == after[1]


def test_a_variant_is_its_implementation_s_image(checkout: Path) -> None:
    done = run(checkout, "--images", "lam-7.1.4+lmd")
    assert done.returncode == 1 and "lam-7.1.4 has no variant `lmd`; use one of" in done.stderr
    one, other = (
        build.recipe_of(checkout, name, "mmdebstrap").inputs_sha256()
        for name in (LAM, "lam-7.1.4+lamd")
    )
    assert one == other
    path = store.folder(checkout) / f"{LAM}.sif"
    path.write_bytes(b"an image")
    images.write_entry(checkout, LAM, {
        "file": path.name, "sha256": sources.sha256_of(path), "bytes": 8,
        "inputs_sha256": one, "built_utc": "", "labels": {}, "origin": origin.BUILT,
    })  # fmt: skip
    done = run(checkout, "--images", "lam-7.1.4+lamd,lam-7.1.4+tcp,mpich-5.0.2")
    assert done.returncode == 0
    assert done.stdout == f"images are up to date: {LAM}, mpich-5.0.2\n"


@pytest.mark.parametrize(
    ("installed", "sentence"),
    [
        ({"liblam4:amd64": "7.1.4-8"}, "the new image has liblam4 7.1.4-8, but"),
        ({}, "the new image has liblam4 not at all, but"),
    ],
)
def test_another_version_in_the_image_is_refused(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, installed: dict[str, str], sentence: str
) -> None:
    recipe = build.recipe_of(checkout, LAM, "mmdebstrap")
    right = {package: version for package, version in recipe.packages.items()}
    del right["liblam4"]
    new = write_sif(checkout / "new.sif", [said(recipe.labels())])
    made = Admitted(new, state_of(new))
    manifest = {"inputs_sha256": "x", "debian_packages": {**right, **installed}}

    def answer(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        assert "inspect" not in command
        return subprocess.CompletedProcess(command, 0, json.dumps(manifest), "")

    monkeypatch.setattr("subprocess.run", answer)
    monkeypatch.setattr("containers.apptainer.apptainer_command", lambda: Path("apptainer"))
    with pytest.raises(StepError, match=sentence):
        build.check_content(made, recipe, "x", checkout / "log")
    manifest["debian_packages"] = {**right, "liblam4:amd64": recipe.packages["liblam4"]}
    assert build.check_content(made, recipe, "x", checkout / "log")


def test_what_is_left_out_of_a_wheel(tmp_path: Path) -> None:
    wheel = tmp_path / "x.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name in (
            "x.data/data/lib/libx.so",
            "x.data/data/lib/liby.so.1",
            "x.data/data/bin/z",
            "x.dist-info/LICENSE.txt",
            "x.dist-info/RECORD",
        ):
            archive.writestr(name, "content")  # fmt: skip
    sources.unpack_wheel(wheel, tmp_path / "mpi", ["lib/*.so.1", "bin/*"])
    found = {path.relative_to(tmp_path / "mpi").as_posix()
             for path in (tmp_path / "mpi").rglob("*") if path.is_file()}  # fmt: skip
    assert found == {"lib/libx.so", "share/licenses/LICENSE.txt"}


def test_a_version_that_the_mirror_lacks_is_said(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("E: Version '7.1.4-7+b1' for 'liblam4' was not found\n")
    assert (
        "the mirror does not have liblam4 7.1.4-7+b1, which containers/sources.lock"
        in bases._lacking(log)
    )
    log.write_text("E: something else\n")
    assert bases._lacking(log) == ""


def test_an_archive_padded_after_its_end_was_packed(tmp_path: Path) -> None:
    log, packed = tmp_path / "log", tmp_path / "packed"
    # More padding than a pipe holds, written once the packer has what it needs.
    archiver = f"echo archive; until [ -e {packed} ]; do sleep 0.01; done; head -c 200000 /dev/zero"
    assert bases.pack(["sh", "-c", archiver], ["sh", "-c", f"read line; : > {packed}"], log)
    assert not log.read_text()


@pytest.mark.parametrize(
    ("archiver", "packer", "said"),
    [("exit 3", "cat", "sh ended with 3"), ("exec cat /dev/zero", "exit 4", "sh ended with 4")],
)
def test_a_base_whose_archiver_or_packer_fails(
    tmp_path: Path, archiver: str, packer: str, said: str
) -> None:
    log = tmp_path / "log"
    assert not bases.pack(["sh", "-c", archiver], ["sh", "-c", packer], log)
    assert said in log.read_text()


def test_labels_say_which_hpl_there_is(checkout: Path) -> None:
    """It is the one that the archive's own program says it is."""
    launches = sample_folder(PROJECT) / "launches"
    sample = next(launches.glob("round001_Linpack_*mpich*")) / "stdout"
    said = build.recipe_of(checkout, NAME, "mmdebstrap").labels()["org.wyeast.hpl"]
    assert f"HPLinpack {said} " in sample.read_text()
    pvm = build.recipe_of(checkout, "pvm-3.4.6", "mmdebstrap").labels()
    assert "org.wyeast.hpl" not in pvm


def test_labels_say_which_pages_large_arrays_have(checkout: Path) -> None:
    """Those of the programs whose rates they change ask for what the label says."""
    assert build.recipe_of(checkout, NAME, "mmdebstrap").labels()["org.wyeast.pages"] == "huge"
    for program in ("nas/benchmark.c", "su3/field.c"):
        assert "on_huge_pages(" in (PROJECT / "benchmarks" / program).read_text()
    assert "MADV_HUGEPAGE" in (PROJECT / "benchmarks" / "common" / "buffers.c").read_text()
