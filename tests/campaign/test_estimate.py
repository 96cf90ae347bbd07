"""What a campaign will take is told by the last campaign like it, or not at all."""

from pathlib import Path
from typing import Any

from campaign.estimate import Work, expectation, last_round_like
from tests.whole_records import manifest, put_manifest

IMAGES = {name: {"sha256": "1" * 64} for name in ("mpich-5.0.2", "openmpi-5.0.11")}
INPUTS = {"reframe_checks/linpack.py": "0" * 64, "benchmarks/Makefile": "1" * 64}


def write(root: Path, name: str, seconds: list[float], **other: Any) -> None:
    rounds = [
        {"round": n, "wall_s": wall, "reframe_exit_code": 0} for n, wall in enumerate(seconds, 1)
    ]
    facts = {"images": IMAGES, "inputs": INPUTS, "rounds_done": rounds, **other}
    put_manifest(root / "runs" / name, **facts)


def wanted() -> Work:
    return Work.of(manifest(images=IMAGES, inputs=INPUTS))


def test_the_last_campaign_alike_tells(tmp_path: Path) -> None:
    write(tmp_path, "20260101T000000Z-local-quick", [50.0])
    write(tmp_path, "20260102T000000Z-local-quick", [100.0, 140.0])
    write(tmp_path, "20260103T000000Z-local-quick", [9.0], tier="paper")
    write(tmp_path, "20260104T000000Z-local-quick", [9.0], checks="Linpack")
    write(
        tmp_path,
        "20260105T000000Z-local-quick",
        [9.0],
        images={"mpich-5.0.2": {"sha256": "1" * 64}},
    )
    write(tmp_path, "20260106T000000Z-local-quick", [])
    write(tmp_path, "20260106T000001Z-local-quick", [0.0])
    more = {name: "0" * 64 for name in ("reframe_checks/linpack.py", "reframe_checks/pairs.py")}
    write(tmp_path, "20260106T120000Z-local-quick", [9.0], inputs=more)
    (tmp_path / "runs" / "20260107T000000Z-local-quick").mkdir()
    (tmp_path / "runs" / "20260107T000000Z-local-quick" / "manifest.json").write_text("{")
    assert last_round_like(tmp_path, wanted()) == (120.0, "20260102T000000Z-local-quick")
    assert expectation(tmp_path, wanted(), 3) == (
        "3 rounds will take about 6 min: one took 2 min in runs/20260102T000000Z-local-quick"
    )


def test_a_campaign_is_not_judged_by_itself(tmp_path: Path) -> None:
    write(tmp_path, "20260101T000000Z-local-quick", [50.0])
    assert last_round_like(tmp_path, wanted(), "20260101T000000Z-local-quick") is None


def test_nothing_is_guessed(tmp_path: Path) -> None:
    assert last_round_like(tmp_path, wanted()) is None
    said = expectation(tmp_path, wanted(), 2)
    assert said == "2 rounds; an estimate follows after the first"
