"""A real night: a broken implementation is said, and does not stop the others."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

pytestmark = [pytest.mark.real, pytest.mark.serial]
PROJECT = Path(__file__).resolve().parents[2]


def test_a_missing_image_does_not_stop_the_others() -> None:
    name = f"test-{os.getpid()}-night"
    command = ["make", "nightly", "ROUNDS=1", "IMAGES=no-such-1.0,mpich-5.0.2",
               "CHECKS=PointToPoint.*=Send/Recv.*=long", f"NAME={name}"]  # fmt: skip
    try:
        done = subprocess.run(
            command, cwd=PROJECT, capture_output=True, text=True, timeout=1500, check=False
        )
        assert done.returncode == 2 and "Error 4" in done.stderr, done.stdout + done.stderr
        [night] = (PROJECT / "runs").glob(f"*-local-{name}")
        told = json.loads((night / "night.json").read_text())
        assert told["verdict"] == "incomplete" and told["untold"] == 1
        assert list(told["broken"]) == ["no-such-1.0"] and told["failed"] == {}
        assert "no-such-1.0 is not in containers/images.lock" in (night / "night.md").read_text()
        manifest = json.loads((night / "manifest.json").read_text())
        assert list(manifest["images"]) == ["mpich-5.0.2"] and manifest["finished_utc"]
        assert "make nightly" in manifest["commands"][0]
    finally:
        for path in (PROJECT / "runs").glob(f"*-local-{name}*"):
            shutil.rmtree(path)
