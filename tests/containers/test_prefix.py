"""MPIs of this machine: packed into images, and bound into those of others."""

import argparse
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from campaign.beginning import chosen
from containers import bases, host_mpi, images, installed, packing, sources, trust
from containers.apptainer import apptainer_command, exec_options
from containers.build import pack
from containers.table import Packed, TableError, load_table, with_entry
from records.base import CampaignError
from tests.containers import machine_mpis
from tests.containers.machine_mpis import PROJECT, build, measure, unpacked

MPICH = "mpich-5.0.2"
LIBRARY = "libwyeast-test.so.1"


@pytest.fixture(scope="module")
def older(place: Path) -> Path:
    """MPICH 3.4.3 under a prefix, with a module that needs a library of the machine."""
    prefix = unpacked("mpich-3.4.3", place / "mpich")
    compiled(place / LIBRARY, f"-Wl,-soname,{LIBRARY}")
    compiled(prefix / "lib" / "module.so", str(place / LIBRARY), f"-Wl,-rpath,{place}")
    (prefix / "lib" / "outside.conf").symlink_to("/etc/hostname")
    return prefix


def compiled(target: Path, *options: str, text: str = "int answer(void) { return 42; }") -> None:
    command = ["gcc", "-shared", "-fPIC", "-x", "c", "-", "-x", "none", "-o", str(target)]
    subprocess.run([*command, "-Wl,--no-as-needed", *options], input=text, text=True, check=True)


def refusal(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 1 and "Traceback" not in done.stderr, done.stderr
    return done.stderr


@pytest.fixture(scope="module")
def packed(older: Path) -> Iterator[str]:
    """The name of an image of the older MPICH, which is removed afterwards."""
    name = "test-mpich"
    with machine_mpis.packed(older, name) as done:
        assert done.returncode == 0, done.stderr
        assert f"{name} is mpich 3.4.3, speaks pmi2 (configured --with-pm=hydra" in done.stdout
        yield name


@pytest.mark.real
@pytest.mark.serial
def test_a_packed_mpi_is_an_implementation_like_any_other(packed: str, older: Path) -> None:
    image = images.verify(PROJECT, packed)
    labels = {key.removeprefix("org.wyeast."): v for key, v in images.labels(image).items()}
    assert [labels[key] for key in ("implementation", "family", "version", "builder", "pmi")] == [
        packed, "mpich", "3.4.3", "prefix", "pmi2",
    ]  # fmt: skip

    def inside(*command: str) -> str:
        options = [str(apptainer_command()), "exec", *exec_options(), str(image)]
        return subprocess.run([*options, *command], capture_output=True, text=True).stdout

    said = json.loads(inside("cat", "/opt/wyeast/manifest.json"))["packed"]
    library = older / "lib" / "libmpi.so.12"
    assert said["files"][str(library)] == sources.sha256_of(library)
    assert list(said["libraries"]) == [str(older.parent / LIBRARY)]
    linked = inside("sh", "-c", f"ldd /opt/wyeast/bin/pingpong {older}/lib/module.so")
    assert f"libmpi.so.12 => {library} " in linked
    assert f"{LIBRARY} => /opt/wyeast/lib/{LIBRARY} " in linked
    assert inside("cat", str(older / "lib" / "outside.conf")) == Path("/etc/hostname").read_text()
    left = inside("sh", "-c", f"ls -d {older}/bin/mpicc {older}/include {older}/lib/*.a; true")
    assert left == ""
    launches = measure("--images", packed)
    assert [launch["implementation"] for launch in launches] == [packed] * 2
    assert {launch["library"] for launch in launches} == {"MPICH Version:\t3.4.3"}


@pytest.mark.real
@pytest.mark.serial
def test_what_was_packed_may_go_but_not_change(packed: str, older: Path) -> None:
    again = build("--images", packed)
    assert again.returncode == 0 and "up to date" in again.stdout
    (older / "lib" / "more").touch()
    sentence = refusal(build("--images", packed))
    assert f"is no longer the one that {packed} was packed from; pack it again: make" in sentence
    (older / "lib" / "more").unlink()
    away = older.rename(older.with_name("away"))
    try:
        assert build("--images", packed).returncode == 0
        assert "is gone, and its image has to be rebuilt" in refusal(
            build("--images", packed, "--force")
        )
    finally:
        away.rename(older)


@pytest.mark.real
@pytest.mark.serial
def test_a_newer_c_library_is_refused(packed: str, older: Path, tmp_path: Path) -> None:
    versions, module = tmp_path / "versions", older / "lib" / "newer.so"
    versions.write_text("GLIBC_2.99 { global: of_tomorrow; };\n")
    own = tmp_path / "libc.so.6"
    options = ["-nostdlib", f"-Wl,-soname,{own.name}", f"-Wl,--version-script={versions}"]
    compiled(own, *options, text="int of_tomorrow(void) { return 1; }")
    text = "int of_tomorrow(void); int call(void) { return of_tomorrow(); }"
    compiled(module, "-nostdlib", str(own), text=text)
    table = load_table(PROJECT)
    base = bases.bases_of(
        PROJECT, table, table.resolve(packed), sources.load_sources(PROJECT), "mmdebstrap"
    )[1]
    found = installed.find(str(older), table, ("mpicc",))
    with pytest.raises(installed.PrefixError, match=r"newer\.so needs GLIBC_2\.99 of libc\.so\.6"):
        packing.survey(found, [], bases.admit(base, PROJECT / ".wyeast"))
    module.unlink()


@pytest.mark.real
@pytest.mark.serial
def test_packing_refuses_in_a_sentence(tmp_path: Path) -> None:
    prefix = unpacked("mpich-3.4.3", tmp_path / "mpich")
    for name, sentence in (
        ("mpich-4.0", "says that it is mpich 3.4.3; call it mpich-3.4.3"),
        ("openmpi-site", "says that it is mpich 3.4.3; call it mpich-3.4.3"),
        (MPICH, "already has an implementation of that name; choose another"),
        ("a+b", "a name consists of lower-case letters"),
        ("mpich-3.4", "containers take /tmp from the machine"),
    ):
        with pytest.raises(installed.PrefixError, match=re.escape(sentence)):
            pack(PROJECT, str(prefix), name, "mmdebstrap")
    (prefix / "bin" / "mpicc").unlink()
    assert "there is no program bin/mpicc under" in refusal(
        build("--prefix", str(prefix), "--name", "x")
    )
    for program in ("mpicc", "mpiexec"):
        (tmp_path / "bin").mkdir(exist_ok=True)
        (tmp_path / "bin" / program).touch(mode=0o755)
    for place, sentence in (
        (tmp_path, "no shared library of MPI"),
        (tmp_path / "none", "is not a folder"),
    ):
        with pytest.raises(installed.PrefixError, match=sentence):
            pack(PROJECT, str(place), "x", "mmdebstrap")
    assert not packing.entry_path(PROJECT, "x").exists()


@pytest.mark.real
@pytest.mark.serial
def test_the_machine_s_own_mpi_is_used_and_proven(older: Path) -> None:
    launches = measure("--images", MPICH, "--host-mpi", str(older))
    assert [launch["implementation"] for launch in launches] == [f"{MPICH}+host-mpich-3.4.3"] * 2
    assert {launch["library"] for launch in launches} == {"MPICH Version:\t3.4.3"}


@pytest.mark.real
@pytest.mark.serial
def test_another_interface_is_refused(
    place: Path,
    older: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(images.HOST_MPI, "")
    foreign = unpacked("openmpi-4.1.8", place / "openmpi")
    with pytest.raises(installed.PrefixError, match=r"need libmpi\.so\.12, and openmpi 4\.1\.8"):
        host_mpi.bind(PROJECT, str(foreign), [MPICH])
    with pytest.raises(installed.PrefixError, match=r"lam\+tcp is a variant already"):
        host_mpi.bind(PROJECT, str(older), ["lam+tcp"])
    # What only some programs call is said, not refused; an image without `+host` keeps its own.
    facts, names = host_mpi.bind(PROJECT, str(older), [f"{MPICH}+host", MPICH])
    assert names == [f"{MPICH}+{facts['variant']}", MPICH]
    assert "pairs (MPI_Precv_init)" in capsys.readouterr().err
    host_mpi.bind_again(PROJECT, facts, names, "local")
    with pytest.raises(installed.PrefixError, match="not the one that the campaign began"):
        host_mpi.bind_again(PROJECT, {**facts, "library_sha256": "0"}, names, "local")


def test_an_mpi_is_bound_into_no_image_that_the_site_refuses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of the image has been run by then."""
    for name in ("containers/implementations.yaml", "site_configs/local/site.yaml"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(PROJECT / name, tmp_path / name)
    with (tmp_path / "site_configs/local/site.yaml").open("a") as file:
        file.write("image_policy: signed\n")
    library = tmp_path / "mpi" / "lib" / "libmpi.so.12"
    library.parent.mkdir(parents=True)
    library.write_bytes(b"")
    found = installed.Installed(
        tmp_path / "mpi", library, "MPICH Version: 5.0.2", "mpich", "5.0.2", "pmi2", "its words"
    )
    monkeypatch.setattr(installed, "find", lambda *_: found)
    monkeypatch.setattr(images, "verified", lambda root, name: (library, (), {}))
    monkeypatch.setattr(trust, "_named_signers", lambda path: set())
    monkeypatch.setattr(host_mpi, "_ldd", lambda *_: pytest.fail("the image was run"))
    with pytest.raises(trust.TrustError, match="is not signed"):
        host_mpi.bind(tmp_path, str(found.prefix), [MPICH])


def test_a_bound_mpi_has_to_be_named() -> None:
    options = argparse.Namespace(site="local", images=f"{MPICH}+host", host_mpi=None)
    with pytest.raises(CampaignError, match=r"mpich-5\.0\.2\+host .* say which: HOST_MPI="):
        chosen(options)


ENTRY = """
family: mvapich2
version: 2.3.7
builder: prefix
packed: {prefix: /opt/x, library: MVAPICH2, files: {}, libraries: {}}
"""


def test_a_local_entry_is_of_the_table_and_no_other_may_be_packed() -> None:
    table = load_table(PROJECT)
    found = with_entry(table, "own", ENTRY, "own.yaml").resolve("own+host")
    assert (found.prefix, found.pmi) == ("/opt/x", "pmi2")
    with pytest.raises(TableError, match=r"own\.yaml: implementations\.own: unknown key `pmy`"):
        with_entry(table, "own", f"{ENTRY}pmy: pmi2\n", "own.yaml")
    with pytest.raises(TableError, match=f"also has {MPICH}"):
        with_entry(table, MPICH, ENTRY, "own.yaml")
    with pytest.raises(TableError, match="make image PREFIX="):
        with_entry(table, "own", re.sub("packed.*", "", ENTRY), "own.yaml")


@pytest.mark.parametrize(
    ("said", "family", "version"),
    [
        ("Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4", "openmpi", "4.1.4"),
        ("MPICH Version:\t4.0.2\nMPICH Release date:", "mpich", "4.0.2"),
        ("MVAPICH2 Version      :\t2.3.7\nMVAPICH2 Release", "mvapich2", "2.3.7"),
        ("MVAPICH Version:\t4.0\nMVAPICH Release", "mvapich", "4.0"),
        ("Intel(R) MPI Library 2021.19 for Linux* OS", "intel-mpi", "2021.19"),
    ],
)
def test_families_are_known_by_what_they_say(said: str, family: str, version: str) -> None:
    matches = {
        name: found[1]
        for name, common in load_table(PROJECT).families.items()
        if common.says and (found := re.match(common.says, said))
    }
    assert matches == {family: version}


def test_environment_is_the_prefix_s_and_that_of_its_kind(tmp_path: Path) -> None:
    table = load_table(PROJECT)
    nothing = Packed(prefix="/opt/x", library="", files={}, libraries={})
    for family, version, variable, value in (
        ("openmpi", "4.1.9", "OMPI_MCA_plm_rsh_agent", "false"),
        ("intel-mpi", "2018.1", "I_MPI_ROOT", "/opt/x"),
        ("mvapich2", "2.3.7", "MV2_ENABLE_AFFINITY", "0"),
    ):
        found = installed.Installed(Path("/opt/x"), tmp_path, "", family, version, "pmi2", "")
        entry = packing.entry_of(found, table, nothing)
        assert entry.environment is not None and entry.environment[variable] == value
