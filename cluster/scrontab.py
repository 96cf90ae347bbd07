"""Slurm's `scrontab`, which Debian's packages lack although their daemons support it.

It is compiled from Debian's own source package of the same version, against the library of the
unpacked one: four files, without Slurm's own build, which takes minutes. Needs gcc and ld.
"""

import re
import shutil
import subprocess
import tarfile
from pathlib import Path

from cluster import programs
from cluster.box import state_folder
from cluster.description import ClusterError
from containers import apt
from records.causes import sentence_in
from records.files import put_in_place

#: Where the library is in the box.
LIBRARY = "usr/lib/x86_64-linux-gnu/slurm-wlm"
FILES = ("env.c", "opt.c", "parse.c", "scrontab.c")
#: What Slurm's configure would find out, as far as these files ask for it.
CONFIGURED = """\
#define _GNU_SOURCE 1
#define SLURM_PREFIX "/usr"
#define PACKAGE "slurm"
"""


def unpacked_version(project: Path) -> str:
    """Return the version of the source package of the cluster's Slurm, as Debian writes it."""
    version = programs.versions(state_folder(project)).get("slurm-client")
    if version is None:
        raise ClusterError("the cluster's Slurm is not unpacked yet; first: make cluster-up")
    # A package that was built again from the same source has a number more.
    return re.sub(r"\+b\d+$", "", version)


def version_number(version: str) -> str:
    """Return Slurm's number for a version: 0x160508 for 22.05.8-4+deb12u3."""
    major, minor, micro = (int(word) for word in version.partition("-")[0].split(".")[:3])
    return f"0x{major << 16 | minor << 8 | micro:06x}"


def unpacked(version: str, folder: Path, state: Path) -> Path:
    """Fetch the source package of a version and unpack it; return the folder of the sources."""
    try:
        source = apt.of_suite(state, apt.machine_codename(), "deb-src")
        source.update()
        source.run("source", "--download-only", f"slurm-wlm={version}", where=folder)
    except apt.AptError as error:
        raise ClusterError(f"the source of scrontab cannot be fetched: {error}") from None
    [archive] = folder.glob("slurm-wlm_*.orig.tar.*")
    with tarfile.open(archive) as packed:
        # apt has verified it by the distribution's signature. Debian 12's Python has no filters.
        packed.extractall(folder / "source")
    [top] = (folder / "source").iterdir()
    return top


def compile_in(source: Path, version: str, folder: Path, root: Path) -> Path:
    """Compile scrontab in a folder, with the library below a root; return the program."""
    headers = folder / "include" / "slurm"
    shutil.copytree(source / "slurm", headers)
    (headers.parent / "config.h").write_text(CONFIGURED)
    template = (headers / "slurm_version.h.in").read_text()
    (headers / "slurm_version.h").write_text(
        template.replace(
            "#undef SLURM_VERSION_NUMBER", f"#define SLURM_VERSION_NUMBER {version_number(version)}"
        )
    )
    own = source / "src" / "scrontab"
    texts = []
    try:
        # Its texts are linked in under names that follow from those of the files.
        for text in ("default_crontab.txt", "usage.txt"):
            texts.append(folder / f"{text}.o")
            subprocess.run(
                ["ld", "-r", "-z", "noexecstack", "--format=binary", "-o", texts[-1], text],
                cwd=own, check=True, capture_output=True, text=True,
            )  # fmt: skip
        program = folder / "scrontab"
        subprocess.run(
            ["gcc", "-O1", "-w", "-DHAVE_CONFIG_H", "-include", "config.h", f"-I{headers.parent}",
             f"-I{source}", *(str(own / name) for name in FILES), *map(str, texts), "-rdynamic",
             f"-L{root / LIBRARY}", f"-Wl,-rpath,/{LIBRARY}", "-lslurmfull", "-o", str(program)],
            check=True, capture_output=True, text=True,
        )  # fmt: skip
    except FileNotFoundError as error:
        raise ClusterError(
            f"scrontab needs {error.filename} to be compiled; install the packages gcc, libc6-dev"
        ) from None
    except subprocess.CalledProcessError as error:
        raise ClusterError(
            f"scrontab cannot be compiled: {sentence_in(error.stderr or '') or '?'}"
        ) from None
    return program


def build(project: Path) -> Path:
    """Return scrontab in the project's programs, built if it is missing for this version."""
    version = unpacked_version(project)
    target = project / ".wyeast" / "bin" / "scrontab"
    note = project / ".wyeast" / "scrontab" / "version"
    if target.exists() and note.is_file() and note.read_text() == version:
        return target
    folder = note.parent
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    source = unpacked(version, folder, project / ".wyeast")
    program = compile_in(source, version, folder, programs.folder_of(state_folder(project)))
    target.parent.mkdir(parents=True, exist_ok=True)
    put_in_place(program, target)
    shutil.rmtree(folder)
    folder.mkdir()
    note.write_text(version)
    return target
