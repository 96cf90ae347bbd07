"""A small checkout with a campaign that nobody measured, its commit, and an image of bytes."""

import hashlib
import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from campaign.bundle import make, rerun
from containers import images, store
from tests.analysis.support.synthetic import TWICE, Synthetic

NAME = "20260101T000000Z-local-synthetic"
LABELS = {"org.wyeast.family": "mpich"}
DEFINITIONS = {
    "reframe_checks/check.py": "print('a check')\n",
    "site_configs/local/site.yaml": "scheduler: local\n",
    "containers/image.def": "Bootstrap: none\n",
    "requirements.lock": "nothing==1.0\n",
    "README.md": "no definition\n",
}


def git(root: Path, *words: str) -> str:
    identity = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
    done = subprocess.run(
        ["git", "-C", str(root), *identity, *words], check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


@dataclass
class Checkout:
    """A checkout; commands run as if it were the project's."""

    root: Path
    monkeypatch: pytest.MonkeyPatch

    def activate(self) -> None:
        self.monkeypatch.setattr(make, "ROOT", self.root)
        self.monkeypatch.setattr(rerun, "ROOT", self.root)

    def put_image(self, content: bytes, name: str = "alpha-1.0") -> str:
        """Put an image into its place and the lock; return its digest."""
        digest = hashlib.sha256(content).hexdigest()
        folder = store.folder(self.root)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.sif").write_bytes(content)
        lock = self.root / "containers" / "images.lock"
        entry = {
            "file": f"{name}.sif", "sha256": digest, "labels": LABELS, "origin": {"how": "built"},
        }  # fmt: skip
        known = json.loads(lock.read_text())["images"] if lock.exists() else {}
        lock.write_text(json.dumps({"schema": "wyeast-images-1", "images": {**known, name: entry}}))
        return digest

    def facts(self, digests: dict[str, str]) -> dict[str, Any]:
        """Return what a manifest says of images of these digests, measured by the commit."""
        inputs = {
            name: hashlib.sha256((self.root / name).read_bytes()).hexdigest()
            for name in DEFINITIONS
            if name != "README.md"
        }
        return {
            "images": {
                name: {"sha256": digest, "labels": {}, "manifest": None}
                for name, digest in digests.items()
            },
            "inputs": inputs,
            "software": {"wyeast_commit": git(self.root, "rev-parse", "HEAD"),
                         "wyeast_changes": False, "reframe": "4", "slurm": None},
        }  # fmt: skip

    def measure(self, digests: dict[str, str]) -> Path:
        """Write a campaign that was measured with images of these digests, by the commit."""
        truths = {name: TWICE["alpha-1.0"] for name in digests}
        folder = Synthetic(
            self.root / "runs" / NAME,
            truths,
            rounds=3,
            pairs=["Send/Recv"],
            facts=self.facts(digests),
        ).write()
        for file in (folder / "launches").glob("*/launch.json"):
            record = json.loads(file.read_text())
            record["image_sha256"] = digests[record["implementation"]]
            file.write_text(json.dumps(record))
        (folder / "reframe").mkdir()
        (folder / "reframe" / "rounds.log").write_text("ran\n")
        return folder


def checkout_at(root: Path, monkeypatch: pytest.MonkeyPatch) -> Checkout:
    for name, text in DEFINITIONS.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    git(root, "init", "-q")
    git(root, "add", ".")
    git(root, "commit", "-q", "-m", "first")
    (root / "runs").mkdir()
    # What stands for an image is no file that Apptainer could read.
    monkeypatch.setattr(images, "labels_inside", lambda path: LABELS)
    checkout = Checkout(root, monkeypatch)
    checkout.activate()
    return checkout


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Checkout:
    """Return a checkout in which alpha-1.0 was measured."""
    checkout = checkout_at(tmp_path / "here", monkeypatch)
    checkout.measure({"alpha-1.0": checkout.put_image(b"an image")})
    return checkout
