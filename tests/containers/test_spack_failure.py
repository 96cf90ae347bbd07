"""A failed build by Spack is said with the package, its first error, and how to go on."""

from pathlib import Path

import pytest

from containers import build
from containers.apptainer import Admitted
from containers.commands import BuildProgress, StepError
from containers.spack import environment as spack_environment
from containers.spack import externals, failure
from containers.spack import tool as spack
from containers.spack.recipes import SpackError
from records.ailments.of_machines import FULL_DISK
from tests.containers import travelling
from tests.containers.test_spack import NAMES, PROJECT

HASH = "sinfnj77mf5luw6ll4umdxus33ek5x5h"
#: What Spack 1.1 wrote where a patch was not to be had.
NOT_FETCHED = f"""\
==> gcc-runtime: Successfully installed gcc-runtime-12.2.0-h3w3g62qgld4xciajl2uhwaewzx6jmwx
==> No binary for openmpi-4.1.4-debian-{HASH} found: installing from source
==> Error: FetchError: All fetchers failed for spack-stage--sinfnj7-patch-12f3
==> Warning: Skipping build of netpipe-3.7.2-{HASH} since openmpi-4.1.4-debian-{HASH} failed
==> Error: Terminating after first install failure: FetchError: All fetchers failed for
==> Error: 'spack install' created no log.
FATAL:   While performing build: while running engine: while running %post section: exit status 1
"""
#: And where a linker found no library.
NOT_LINKED = f"""\
==> mpich: Executing phase: 'build'
==> Error: ProcessError: Command exited with status 2:
    '/usr/bin/make' '-j2' 'V=1'

1 error found in build log:
     9121    libtool: link: gcc -shared
  >> 9122    /usr/bin/ld: cannot find -lrdmacm: No such file or directory
     9123    collect2: error: ld returned 1 exit status

See build log for details:
  /mnt/stage/user/spack-stage-mpich-4.0.2-debian-{HASH}/spack-build-out.txt
==> Error: Terminating after first install failure: ProcessError: Command exited with status 2:
checking for error: no
FATAL:   While performing build: while running engine: while running %post section: exit status 1
"""
#: And where it broke the line of an error in two, whose last word tells what is missing.
BROKEN = f"""\
==> wyeast-benchmarks: Executing phase: 'install'
1 error found in build log:
  >> 6    files/a_source_with_a_name_that_is_long.c:31:22: fatal error: \

             numa.h: No such file or directory

See build log for details:
  /mnt/stage/user/spack-stage-wyeast-benchmarks-develop-{HASH}/spack-build-out.txt
files/a_source_with_a_name_that_is_long.c:31:22: fatal error: numa.h: No such file or directory
FATAL:   While performing build: while running engine: while running %post section: exit status 1
"""
NOT_FOUND = """\
missing library: /opt/x/bin/mpiexec does not find libnuma.so.1, which libnuma1 has
missing library: add the package to packages.run of x in containers/implementations.yaml
FATAL:   While performing build: while running engine: while running %post section: exit status 1
"""


@pytest.mark.parametrize(
    ("text", "package", "error", "known"),
    [
        (NOT_FETCHED, "openmpi-4.1.4-debian", "FetchError: All fetchers failed",
         "make spack-sources SOURCES="),
        (NOT_LINKED, "mpich-4.0.2-debian", "/usr/bin/ld: cannot find -lrdmacm",
         "the linker has no librdmacm: a library of the base may need it privately"),
        ("==> hpl: Executing phase: 'build'\nx.c:1:10: fatal error: numa.h: No such file or dir\n",
         "hpl", "x.c:1:10: fatal error: numa.h", "numa.h is in no package of the base"),
        ("==> npb: Executing phase: 'build'\nError: Type mismatch between actual argument at (1)\n",
         "npb", "Error: Type mismatch", "-fallow-argument-mismatch"),
        ("==> npb: Executing phase: 'build'\nclang: error: unknown argument: '-fno-x'\n",
         "npb", "clang: error: unknown argument", "the compiler does not know -fno-x, which is"),
        ("==> npb: Executing phase: 'build'\n"
         "gcc: error: unrecognized command-line option \u2018-Mx\u2019\n",
         "npb", "gcc: error: unrecognized", "the compiler does not know -Mx, which is another"),
        ("==> npb: Executing phase: 'build'\nx.c:1:1: error: call to undeclared function 'f'; ISO "
         "C99 and later do not support it [-Wimplicit-function-declaration]\n",
         "npb", "x.c:1:1: error: call to undeclared", "the compiler is newer than the source"),
        ("==> npb: Executing phase: 'build'\n/tmp/cc.s: No space left on device\n",
         "npb", "/tmp/cc.s: No space left on device", FULL_DISK.sentence),
        (BROKEN, "wyeast-benchmarks-develop", "long.c:31:22: fatal error: numa.h: No such file",
         "numa.h is in no package of the base"),
        ("==> npb: Executing phase: 'edit'\nend\n", "npb", "    end", "npb is kept"),
    ],
)  # fmt: skip
def test_a_failure_in_words(
    tmp_path: Path, text: str, package: str, error: str, known: str
) -> None:
    (tmp_path / "log").write_text(text)
    said = failure.explained("some-spack", tmp_path / "log")
    assert said.startswith(f"some-spack: Spack could not build {package}\n")
    assert error in said and known in said
    assert "make images BUILDER=spack IMPLEMENTATIONS=some-spack" in said
    assert said.endswith(f"log: {tmp_path / 'log'}")


def test_what_an_image_lacks_is_the_failure(tmp_path: Path) -> None:
    (tmp_path / "log").write_text(NOT_LINKED + NOT_FOUND)
    said = failure.explained("x", tmp_path / "log").splitlines()
    assert said[0].startswith("x: programs or libraries of the new image do not find")
    assert said[1].strip() == "/opt/x/bin/mpiexec does not find libnuma.so.1, which libnuma1 has"
    assert said[2].startswith("add the package to packages.run of x") and len(said) == 4


def test_without_a_log_there_is_still_a_sentence(tmp_path: Path) -> None:
    assert failure.explained("x", tmp_path / "log").startswith("x: Spack could not build it")


def test_a_build_by_spack_fails_with_these_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = travelling.new_checkout(tmp_path / "root")
    for name in ("spack.yaml", "spack_locks", "spack_repo", "site_configs"):
        (root / name).symlink_to(PROJECT / name)
    monkeypatch.setattr(spack, "of_the_machine", lambda: None)
    found = spack.Spack(Path("/nowhere"), Path("/nowhere"), "1.1.0")
    monkeypatch.setattr(spack, "provide", lambda root: found)
    monkeypatch.setattr(build, "ensure_bases", lambda *_: None)
    monkeypatch.setattr("containers.sources.fetch_archive", lambda *_: tmp_path)
    admitted = Admitted(tmp_path, ())
    monkeypatch.setattr("containers.bases.admit", lambda *_: admitted)
    monkeypatch.setattr("containers.build.command", lambda *words: list(map(str, words)))
    monkeypatch.setattr("containers.spack.mirror.fill", lambda *_: None)
    proven: list[str] = []
    monkeypatch.setattr(externals, "prove", lambda root, base, name: proven.append(name))

    def run_logged(words: list[str], what: str, log: Path, scratch: Path, **_: str) -> None:
        assert proven == [NAMES[0]]
        # What it leaves unfinished goes with the build, and not into the machine's /tmp.
        assert f"--bind={scratch}/stage:/mnt/stage" in words and (scratch / "stage").is_dir()
        assert spack_environment.SCOPE["config.yaml"]["config"]["build_stage"] == ["/mnt/stage"]
        log.write_text(NOT_LINKED)
        raise StepError("the build failed", log)

    monkeypatch.setattr(build, "run_logged", run_logged)
    recipe = build.recipe_of(root, NAMES[0], "mmdebstrap")
    with pytest.raises(failure.SpackFailure, match=f"{NAMES[0]}: Spack could not build mpich"):
        build.make_image(recipe, tmp_path / "x.sif", tmp_path / "scratch",
                         "2026-01-01T00:00:00Z", BuildProgress())  # fmt: skip

    def unusable(*_: object) -> None:
        raise SpackError("openblas lacks a header")

    # An external that cannot be built with is known before anything is built.
    monkeypatch.setattr(externals, "prove", unusable)
    monkeypatch.setattr(build, "run_logged", lambda *_: pytest.fail("something is built"))
    with pytest.raises(SpackError, match="openblas lacks a header"):
        build.make_image(recipe, tmp_path / "x.sif", tmp_path / "scratch",
                         "2026-01-01T00:00:00Z", BuildProgress())  # fmt: skip
