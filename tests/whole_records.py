"""Manifests and launch records that lack nothing, for tests that change something of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from records.files import read_text
from records.launch import AskedKind, LaunchRecord, parsed_record
from records.manifest import Manifest, manifest_of


def manifest_facts(campaign: str = "20260101T000000Z-local-quick", **more: Any) -> dict[str, Any]:
    """Return what the file of a manifest has."""
    return {
        "schema": "wyeast-campaign-1", "campaign": campaign, "name": "quick", "site": "local",
        "tier": "quick", "created_utc": "2026-01-01T00:00:00.000Z",
        "finished_utc": "2026-01-01T01:00:00.000Z", "rounds": 3, "checks": None, "study": None,
        "time_limit": None, "raw_by_rank": False, "order_seed": 7,
        "images": {"alpha-1.0": {"sha256": "1" * 64, "labels": {}, "manifest": None}},
        "site_data": {"launch": "mpiexec"}, "inputs": {"containers/sources.lock": "0" * 64},
        "machine": {"hostname": "node1", "cpu_model": "a synthetic CPU", "cores": 2},
        "software": {"reframe": "4", "wyeast_commit": "2" * 40, "wyeast_changes": False},
        "commands": ["make run"], "rounds_done": [], **more,
    }  # fmt: skip


def manifest(**more: Any) -> Manifest:
    """Return a manifest."""
    return manifest_of(manifest_facts(**more), "manifest.json")


def put_manifest(folder: Path, **more: Any) -> None:
    """Write a manifest as it is given, whatever it is, into a folder that is named after it."""
    folder.mkdir(parents=True, exist_ok=True)
    facts = manifest_facts(folder.name, **more)
    (folder / "manifest.json").write_text(json.dumps(facts))


def asked_facts(launch: str = "round001_cell", **more: Any) -> dict[str, Any]:
    """Return what a launch leaves in its stage folder before it starts."""
    return {
        "schema": "wyeast-launch-1", "launch": launch, "round": 1, "experiment": "Dgemm",
        "parameters": {"ranks": 2}, "cell": "Dgemm ranks=2", "implementation": "alpha-1.0",
        "image_sha256": "1" * 64, "image_signature": "not verified", "program": "dgemm",
        "output_format": "wyeast-records-1", "ranks": 2, "nodes": 1, "oversubscribed": False,
        "site": "local", "partition": "local:default", "tier": "quick", "command": "dgemm",
        "reframe": {"name": "Dgemm", "hash": "0123abcd"}, "started_utc": "2026-01-01T00:00:00Z",
        **more,
    }  # fmt: skip


def launch_facts(launch: str = "round001_cell", **more: Any) -> dict[str, Any]:
    """Return what the file of a launch's record has."""
    return {
        **asked_facts(launch), "position": 1, "ended_utc": "2026-01-01T00:00:01Z", "wall_s": 1.0,
        "times_s": {}, "processors_s": {"busy": 1.5, "idle": 0.5, "stolen": 0.0},
        "node": {"facts": "nodes/node1-0.json", "load_average": 0.5, "running": 1,
                 "memory_available_bytes": 1024, "clock_hz": None},
        "image_file": {
            "device": 1, "inode": 2, "bytes": 3, "changed_utc_s": 4.0, "modified_utc_s": 4.0,
        },
        "exit_code": 0, "outcome": "sound", "sentence": None, **more,
    }  # fmt: skip


def launch(launch: str = "round001_cell", **more: Any) -> LaunchRecord:
    """Return the record of a launch."""
    return LaunchRecord.model_validate(launch_facts(launch, **more))


def read_record(file: Path, kind: type[AskedKind]) -> AskedKind:
    """Return the record of a launch that a file by itself has."""
    return parsed_record(lambda: read_text(file), file, kind)
