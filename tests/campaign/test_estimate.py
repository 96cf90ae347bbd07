"""What a campaign will take is told by the last campaign like it, or not at all."""

import json
from pathlib import Path
from typing import Any

from campaign.estimate import expectation, last_round_like

LIKE: dict[str, Any] = {
    "site": "local", "tier": "quick", "checks": None, "time_limit": None,
    "images": {"mpich-5.0.2": {}, "openmpi-5.0.11": {}},
    "inputs": {"reframe_checks/linpack.py": "0", "benchmarks/Makefile": "1"},
}  # fmt: skip


def write(root: Path, name: str, seconds: list[float], **other: Any) -> None:
    folder = root / "runs" / name
    folder.mkdir(parents=True)
    rounds = [{"round": n, "wall_s": wall} for n, wall in enumerate(seconds, 1)]
    manifest = {**LIKE, "campaign": name, "rounds_done": rounds, **other}
    (folder / "manifest.json").write_text(json.dumps(manifest))


def test_the_last_campaign_alike_tells(tmp_path: Path) -> None:
    write(tmp_path, "20260101T000000Z-local-quick", [50.0])
    write(tmp_path, "20260102T000000Z-local-quick", [100.0, 140.0])
    write(tmp_path, "20260103T000000Z-local-quick", [9.0], tier="paper")
    write(tmp_path, "20260104T000000Z-local-quick", [9.0], checks="Linpack")
    write(tmp_path, "20260105T000000Z-local-quick", [9.0], images={"mpich-5.0.2": {}})
    write(tmp_path, "20260106T000000Z-local-quick", [])
    more = {"reframe_checks/linpack.py": "0", "reframe_checks/pairs.py": "0"}
    write(tmp_path, "20260106T120000Z-local-quick", [9.0], inputs=more)
    (tmp_path / "runs" / "20260107T000000Z-local-quick").mkdir()
    (tmp_path / "runs" / "20260107T000000Z-local-quick" / "manifest.json").write_text("{")
    wanted = {**LIKE, "campaign": "new"}
    assert last_round_like(tmp_path, wanted) == (120.0, "20260102T000000Z-local-quick")
    assert expectation(tmp_path, wanted, 3) == (
        "3 round(s) take about 6 min: one took 2 min in runs/20260102T000000Z-local-quick"
    )


def test_nothing_is_guessed(tmp_path: Path) -> None:
    assert last_round_like(tmp_path, {**LIKE, "campaign": "new"}) is None
    said = expectation(tmp_path, {**LIKE, "campaign": "new"}, 2)
    assert said == "2 round(s); how long they take is said after the first"
