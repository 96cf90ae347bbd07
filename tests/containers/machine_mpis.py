"""What tests of this machine's MPIs share: MPIs under prefixes, builds, and small campaigns."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from containers import bill_of_materials, images, packing, programs, sources, store
from containers.apptainer import apptainer_command
from containers.table import load_table
from records.files import write_whole
from tests.lanes import BUILDS, SOUND
from tests.packed import records_in, text_of

PROJECT = Path(__file__).resolve().parents[2]
NAME = f"test-{os.getpid()}"
#: What decides, besides the inputs that an image names, what a build makes of them.
BUILT_BY = ("containers", "records", "site_configs")


def unpacked(wheel: str, prefix: Path) -> Path:
    """Return a prefix with the MPI of a wheel that sources.lock pins."""
    pinned = sources.load_sources(PROJECT).wheel(wheel, wheel)
    sources.unpack_wheel(sources.fetch_wheel(pinned, PROJECT / ".wyeast"), prefix, [])
    return prefix


def build(*options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "containers.build", *options], cwd=PROJECT,
        env={**os.environ, "WYEAST_ROOT": str(PROJECT), "PYTHONPATH": str(PROJECT)},
        capture_output=True, text=True,
    )  # fmt: skip


def built_by() -> str:
    """Return a digest of what builds images: our code, the bases as they are, and the programs."""
    digest = hashlib.sha256()
    for path in sorted(path for part in BUILT_BY for path in (PROJECT / part).rglob("*")):
        if path.is_file() and path != PROJECT / images.LOCK and path.parent.name != "__pycache__":
            digest.update(f"{path.relative_to(PROJECT)}\0".encode() + path.read_bytes())
    for path in sorted((PROJECT / ".wyeast" / "bases").iterdir()):
        digest.update(f"{path.name} {path.stat().st_size} {path.stat().st_mtime_ns}\n".encode())
    squash = programs.find("mksquashfs", PROJECT / ".wyeast") or "mksquashfs"
    for program, word in ((apptainer_command(), "--version"), (squash, "-version")):
        done = subprocess.run([str(program), word], capture_output=True, check=False)
        digest.update(done.stdout)
    return digest.hexdigest()


@contextmanager
def packed(prefix: Path, name: str) -> Iterator[subprocess.CompletedProcess[str]]:
    """Pack the MPI under a prefix as `make image` does; give how that ended, and remove the image.

    An image that an earlier run has packed is there before: where it is of the same inputs, it is
    up to date, as any other image. It is put there only if what builds images is the same, too.
    """
    kept = Path(os.environ[BUILDS]) / f"packed-{name}" if BUILDS in os.environ else None
    by = built_by()
    if kept and (kept / SOUND).is_file() and (kept / "by").read_text() == by:
        put_back(kept, name)
    try:
        done = build("--prefix", str(prefix), "--name", name)
        if kept and done.returncode == 0:
            keep(kept, name, by)
        load_table.cache_clear()
        yield done
    finally:
        remove(name)


def keep(kept: Path, name: str, by: str) -> None:
    """Keep an image for the next run, with what the checkout says of it."""
    entry = images.entry_of(PROJECT, name)
    told = json.dumps(entry)
    if (kept / SOUND).is_file() and (kept / "entry").read_text() == told:
        return
    shutil.rmtree(kept, ignore_errors=True)
    kept.mkdir()
    shutil.copy(store.path_of(PROJECT, entry), kept / "image")
    shutil.copy(bill_of_materials.path_of(PROJECT, name), kept / "bill")
    (kept / "entry").write_text(told)
    (kept / "by").write_text(by)
    (kept / SOUND).touch()


def put_back(kept: Path, name: str) -> None:
    """Have a kept image in the checkout again, as its build left it; drop one that is damaged."""
    entry = json.loads((kept / "entry").read_text())
    if sources.sha256_of(kept / "image") != entry["sha256"]:
        shutil.rmtree(kept)
        return
    aside = store.folder(PROJECT) / f".new-{name}.sif"
    shutil.copy(kept / "image", aside)
    store.keep(PROJECT, aside, entry["sha256"])
    images.write_entry(PROJECT, name, entry)
    store.name_in_folder(PROJECT, entry)
    shutil.copy(kept / "bill", bill_of_materials.path_of(PROJECT, name))


def remove(name: str) -> None:
    """Remove an image, and the entry that `make image` has written, if it has."""
    packing.entry_path(PROJECT, name).unlink(missing_ok=True)
    link = store.folder(PROJECT) / f"{name}.sif"
    for path in (link, bill_of_materials.path_of(PROJECT, name)):
        path.unlink(missing_ok=True)
    lock = images.load_lock(PROJECT)
    if entry := lock["images"].pop(name, None):
        store.place_of(PROJECT, entry["sha256"]).unlink(missing_ok=True)
        # Other tests read it meanwhile.
        write_whole(PROJECT / images.LOCK, json.dumps(lock, indent=2) + "\n", 0o644)
    load_table.cache_clear()


def measure(*options: str) -> list[dict[str, Any]]:
    """Return what a campaign has kept of its launches, which are all sound.

    Each with what the library that ran says, and what the manifest says of a bound MPI.
    """
    command = (
        f". ./activate && exec python -m campaign --rounds 1 --name {NAME} "
        f"--checks 'Preflight|PointToPoint.*=Send/Recv.*long' {' '.join(options)}"
    )
    try:
        done = subprocess.run(["bash", "-c", command], cwd=PROJECT, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        [campaign] = (PROJECT / "runs").glob(f"*-local-{NAME}")
        bound = json.loads((campaign / "manifest.json").read_text()).get("host_mpi")
        kept = []
        for name, launch in records_in(campaign).items():
            header = json.loads(text_of(campaign, name).splitlines()[0])
            kept.append({**launch, "library": header["library"], "bound": bound})
        return kept
    finally:
        for path in (PROJECT / "runs").glob(f"*-local-{NAME}"):
            shutil.rmtree(path)
