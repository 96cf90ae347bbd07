"""What tests of this machine's MPIs share: MPIs under prefixes, builds, and small campaigns."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from containers import bill_of_materials, images, packing, sources, store
from containers.table import load_table
from records.files import write_whole
from tests.packed import records_in, text_of

PROJECT = Path(__file__).resolve().parents[2]
NAME = f"test-{os.getpid()}"


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
        f"--checks 'Preflight|PointToPoint.*=Send/Recv.*short' {' '.join(options)}"
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
