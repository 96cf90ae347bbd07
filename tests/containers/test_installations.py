"""What a site has installed: when it is refused, how it is known, and that a new one is noticed."""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from campaign import provenance, request
from containers import images, installations, selection
from containers.installations import InstallationError
from records.manifest import OUTSIDE, ImageFacts

PROJECT = Path(__file__).resolve().parents[2]
NAME = "openmpi-5.0.11+site"


def program(path: Path) -> Path:
    """Put a program there, which the loader knows."""
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy("/bin/true", path)
    return path


def site_with(tmp_path: Path, **more: Any) -> dict[str, Any]:
    """Return a site's data with an installation of one program and a launcher."""
    program(tmp_path / "prefix" / "bin" / "preflight")
    launcher = program(tmp_path / "mpi" / "bin" / "mpiexec")
    entry = {"prefix": str(tmp_path / "prefix"), "family": "openmpi", "version": "5.0.11",
             "mpiexec": str(launcher), **more}  # fmt: skip
    return {"launch": "mpiexec", "installations": {"openmpi-5.0.11": entry}}


def of(site: Mapping[str, Any]) -> installations.Installation:
    return installations.of_site(PROJECT, site, NAME)


def test_the_site_s_file_says_what_an_image_s_labels_would(tmp_path: Path) -> None:
    found = of(site_with(tmp_path, environment={"UCX_TLS": "self,sm"}))
    labels = found.labels
    assert (labels.implementation, labels.family, labels.version, labels.pmi) == (
        "openmpi-5.0.11", "openmpi", "5.0.11", "pmix"
    )  # fmt: skip
    # By the same rule as in images.
    assert labels.mpiexec == str(tmp_path / "mpi/bin/mpiexec")
    assert labels.pinned == ("--map-by", "core", "--bind-to", "core")
    assert labels.builder is None
    # Here root would be the machine's, so only the site may let an MPI start as root.
    assert dict(found.variables) == {"UCX_TLS": "self,sm"}
    mvapich = site_with(tmp_path, family="mvapich2", version="2.3.7")
    assert dict(of(mvapich).variables) == {"MV2_ENABLE_AFFINITY": "0"}


def test_what_is_not_there_is_refused_in_a_sentence(tmp_path: Path) -> None:
    site = site_with(tmp_path)
    with pytest.raises(InstallationError, match=r"it names openmpi-5\.0\.11\+site"):
        installations.of_site(PROJECT, site, "mpich-5.0.2+site")
    with pytest.raises(InstallationError, match="it names none"):
        installations.of_site(PROJECT, {"launch": "mpiexec"}, NAME)
    (tmp_path / "mpi/bin/mpiexec").chmod(0o644)
    with pytest.raises(InstallationError, match="is not a program that can be started here"):
        of(site)
    (tmp_path / "prefix/bin/preflight").unlink()
    with pytest.raises(InstallationError, match="has no program preflight: give the prefix under"):
        of(site)
    shutil.rmtree(tmp_path / "prefix")
    with pytest.raises(InstallationError, match=r"there is no folder .*/prefix on this machine"):
        of(site)


def test_one_that_is_unusable_is_refused_before_anything_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = site_with(tmp_path)
    monkeypatch.setattr(selection, "site_data", lambda root, name: site)
    assert request.known(PROJECT, "local", NAME) == [NAME]
    assert request.known(PROJECT, "local", f"{NAME}, {NAME}") == [NAME]
    assert selection.implementations(PROJECT, "local", f"{NAME},{NAME},") == [NAME]
    request.refuse_installations(PROJECT, "local", [NAME, "mpich-5.0.2"])
    with pytest.raises(
        images.ImageError, match="is not an installation that `installations` of the"
    ):
        request.refuse_installations(PROJECT, "local", ["mpich-5.0.2+site"])
    # Nor is it taken for the image with that name.
    with pytest.raises(images.ImageError, match="is an installation of a site and no image"):
        images.chosen(PROJECT, NAME)


def test_it_is_known_by_what_its_programs_load(tmp_path: Path) -> None:
    found = of(site_with(tmp_path))
    before = installations.contents(found)
    assert any(Path(path).name == "libc.so.6" for path in before.libraries["sha256"])
    assert installations.contents(found) is before
    # Bytes of the same number, and the same times.
    path = tmp_path / "prefix/bin/preflight"
    status = path.stat()
    path.write_bytes(path.read_bytes()[:-1] + b"!")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    after = installations.contents(found)
    assert after.sha256 != before.sha256
    # Another program is another installation, and so is another launcher.
    program(path)
    assert installations.contents(found).sha256 == before.sha256
    with (tmp_path / "mpi/bin/mpiexec").open("ab") as file:
        file.write(b"!")
    assert installations.contents(found).sha256 != before.sha256
    program(tmp_path / "mpi/bin/mpiexec")
    program(tmp_path / "prefix/bin/echo")
    with_echo = installations.contents(found)
    assert with_echo.is_still_there()
    (tmp_path / "prefix/bin/echo").unlink()
    assert not with_echo.is_still_there()


def test_what_an_mpi_loads_by_itself_is_part_of_it(tmp_path: Path) -> None:
    component = tmp_path / "lib" / "openmpi" / "mca_btl_sm.so"
    component.parent.mkdir(parents=True)
    component.touch()
    (component.parent / "help.txt").touch()
    assert installations._components([str(tmp_path / "lib/libmpi.so.40")]) == [component]
    # A distribution has links to it elsewhere, and a folder of another name beside it.
    (tmp_path / "all").mkdir()
    (tmp_path / "all/libmpi.so.40").symlink_to(tmp_path / "lib/libmpi.so.40")
    component.parent.rename(tmp_path / "lib" / "openmpi3")
    found = installations._components([str(tmp_path / "all/libmpi.so.40"), "/lib/libc.so.6"])
    assert found == [tmp_path / "lib/openmpi3/mca_btl_sm.so"]


def test_the_loader_is_asked_after_what_a_job_prepares(tmp_path: Path) -> None:
    site = site_with(tmp_path)
    (tmp_path / "given.c").write_text("int given(void) { return 0; }\n")
    (tmp_path / "main.c").write_text("int given(void); int main(void) { return given(); }\n")
    (tmp_path / "loaded").mkdir()
    for words in (
        ["-shared", "-fPIC", "given.c", "-o", "loaded/libgiven.so"],
        ["main.c", "-Lloaded", "-lgiven", "-o", "prefix/bin/preflight"],
    ):
        subprocess.run(["gcc", *words], cwd=tmp_path, check=True, timeout=60)
    with pytest.raises(InstallationError, match=r"does not find libgiven\.so, which programs in"):
        installations.contents(of(site))
    # As a module does it.
    loads = f"export LD_LIBRARY_PATH={tmp_path}/loaded"
    site["installations"]["openmpi-5.0.11"]["prepare"] = [loads]
    known = installations.contents(of(site))
    assert f"{tmp_path}/loaded/libgiven.so" in known.libraries["sha256"]


def library(folder: Path, program: Path, *words: str, name: str = "libmpi.so.40") -> None:
    """Compile a library into a folder, and a program that needs it."""
    folder.mkdir(parents=True, exist_ok=True)
    path = str(folder / name)
    options = [word for word in words if word != "direct"]
    named = [] if "direct" in words else [f"-Wl,-soname,{name}"]
    for text, more in (
        ("int given(void) { return 0; }", ["-shared", "-fPIC", *named, "-o", path]),
        (
            "int given(void); int main(void) { return given(); }",
            [path, "-o", str(program), "-Wl,--enable-new-dtags", *options],
        ),
    ):
        subprocess.run(
            ["gcc", "-x", "c", "-", "-x", "none", *more], input=text, text=True, check=True,
            timeout=60,
        )  # fmt: skip


def test_a_library_is_known_wherever_it_is(tmp_path: Path) -> None:
    site = site_with(tmp_path)
    program = tmp_path / "prefix/bin/preflight"
    # In a folder with spaces, and one without a name of its own, which is needed by its path.
    for folder, words in (("my mpi", ()), ("other", ("direct",))):
        library(tmp_path / folder, program, f"-Wl,-rpath,{tmp_path / folder}", *words)
        known = installations.contents(of(site))
        path = f"{tmp_path / folder}/libmpi.so.40"
        assert known.mpi == [path] and path in known.libraries["sha256"]
        before = known.sha256
        with Path(path).open("ab") as file:
            file.write(b"!")
        assert installations.contents(of(site)).sha256 != before


def test_the_loader_is_asked_with_what_ranks_have(tmp_path: Path) -> None:
    program = tmp_path / "prefix/bin/preflight"
    site = site_with(tmp_path)
    for folder in ("a", "b", "c"):
        library(tmp_path / folder, program, f"-Wl,-rpath,{tmp_path}/a")
    assert of(site).preparation == []
    # What the site has all jobs do comes first, then the installation's, then ranks' variables.
    site["prepare"] = [f"export LD_LIBRARY_PATH={tmp_path}/b"]
    assert installations.contents(of(site)).mpi == [f"{tmp_path}/b/libmpi.so.40"]
    entry = site["installations"]["openmpi-5.0.11"]
    entry["prepare"] = [f"LD_LIBRARY_PATH={tmp_path}/c:$LD_LIBRARY_PATH; echo '= told'"]
    assert installations.contents(of(site)).mpi == [f"{tmp_path}/c/libmpi.so.40"]
    entry["environment"] = {
        "LD_LIBRARY_PATH": f"{tmp_path}/b",
        "OTHER": "two\nlines 'and' \"more\"",
    }
    known = installations.contents(of(site))
    assert known.mpi == [f"{tmp_path}/b/libmpi.so.40"]
    assert [name for one in known.libraries["loaded"] for name in one["by"]] == [
        "preflight", f"{tmp_path}/b/libmpi.so.40"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("no-such-module load openmpi/5.0.99", "command 1 of `prepare` fails: no-such-module load"),
        ("exit 0", "it ends the shell"),
        ("a\0", "embedded null byte"),
    ],
)
def test_without_what_it_prepares_nothing_is_measured(
    tmp_path: Path, command: str, why: str
) -> None:
    # Another MPI may be found then.
    with pytest.raises(InstallationError, match=re.escape(why)):
        installations.contents(of(site_with(tmp_path, prepare=[command])))
    # Of a remark nothing fails, whatever was before it.
    assert installations.contents(of(site_with(tmp_path, prepare=["false || :", "# loaded"])))


def test_what_is_gone_or_no_program_of_this_machine_is_told(tmp_path: Path) -> None:
    site = site_with(tmp_path)
    found, first = of(site), tmp_path / "prefix/bin/preflight"
    assert installations.contents(found)
    shutil.rmtree(first.parent)
    with pytest.raises(InstallationError, match="No such file or directory"):
        installations.contents(found)
    whole = Path("/bin/true").read_bytes()
    # Of another architecture, by the number that says so; a script, whose programs nobody knows.
    for content in (whole[:18] + bytes([whole[18] ^ 1]) + whole[19:], b"#!/bin/sh\n", b""):
        program(first).write_bytes(content)
        with pytest.raises(
            InstallationError, match=r"preflight is not a program of this machine \("
        ):
            of(site)
    first.unlink()
    os.mkfifo(first, 0o755)
    with pytest.raises(InstallationError, match="is not a program of this machine"):
        of(site)
    site["installations"]["openmpi-5.0.11"]["prefix"] = "/" + "a" * 300
    with pytest.raises(InstallationError, match="File name too long"):
        of(site)


def test_what_components_and_the_launcher_load_is_part_of_it(tmp_path: Path) -> None:
    site = site_with(tmp_path)
    mpi, launcher = tmp_path / "mpi" / "lib", tmp_path / "mpi/bin/mpiexec"
    library(mpi, tmp_path / "prefix/bin/preflight", f"-Wl,-rpath,{mpi}")
    # As pml/ucx is loaded by itself, and loads UCX, which has modules of its own.
    (mpi / "openmpi").mkdir()
    library(tmp_path / "ucx", mpi / "openmpi/mca_pml_ucx.so", f"-Wl,-rpath,{tmp_path}/ucx",
            name="libucp.so.0")  # fmt: skip
    program(tmp_path / "ucx/ucx/libuct_ib.so")
    library(tmp_path / "run", launcher, f"-Wl,-rpath,{tmp_path}/run", name="librun.so.1")
    # One of these loads what it is beside, by another name each time.
    library(tmp_path / "ucx", tmp_path / "ucx/ucx/libuct_tcp.so", "-Wl,-rpath,$ORIGIN/..",
            name="libucp.so.0")  # fmt: skip
    before = installations.contents(of(site))
    for path in (
        mpi / "openmpi/mca_pml_ucx.so", tmp_path / "ucx/libucp.so.0",
        tmp_path / "ucx/ucx/libuct_ib.so", launcher, tmp_path / "run/librun.so.1",
    ):  # fmt: skip
        with path.open("ab") as file:
            file.write(b"!")
        after = installations.contents(of(site))
        assert after.sha256 != before.sha256, path
        before = after


def test_a_manifest_says_that_it_runs_outside(tmp_path: Path) -> None:
    [(name, facts)] = provenance.describe_images(PROJECT, [NAME], site_with(tmp_path)).items()
    assert name == NAME
    image = ImageFacts.model_validate(facts)
    assert image.runs == OUTSIDE and image.signature == "not verified: installed by the site"
    assert image.libraries and image.libraries.sha256
    # An older one, or an image's, says nothing of it.
    assert ImageFacts.model_validate({"sha256": "0" * 64}).runs is None
