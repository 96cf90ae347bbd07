"""The comparison of inside and outside runs, for real."""

import subprocess
import sys
from pathlib import Path

import pytest

from containers import trust
from costs import inside_and_outside, places, su3
from costs.hpl import filled
from costs.places import Place
from costs.su3 import SIDES, rank_counts
from reframe_checks.mixins.hpl_problem import largest_order
from site_configs.settings import load_site
from tests.campaign.played_programs import Played

# The one that starts quickest; `make performance` measures every default image.
IMAGE = "mpich-5.0.2"
PROJECT = Path(__file__).resolve().parents[2]


def measure(*words: str) -> subprocess.CompletedProcess[str]:
    """Run the command."""
    return subprocess.run(
        [sys.executable, "-m", "costs.inside_and_outside", *words],
        cwd=PROJECT, capture_output=True, text=True, timeout=3000, check=False,
    )  # fmt: skip


@pytest.mark.real
def test_no_setting_of_the_caller_is_outside_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # On a processor that it would give half its rate.
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")
    place = places.outside(trust.admit(PROJECT, IMAGE, load_site("local")), tmp_path)
    said, _ = place.run(["env"])
    assert "OPENBLAS_CORETYPE" not in said and "OPENBLAS_NUM_THREADS=1" in said


@pytest.mark.real
def test_a_missing_image_is_one_sentence() -> None:
    done = measure("--images", "mpich-0.0")
    assert done.returncode == 1
    assert done.stderr.startswith("performance: ") and done.stderr.count("\n") == 1


def assert_whole(printed: str) -> None:
    """Fail unless there is a row for each quantity, and a sentence for each lattice's roofs."""
    table, _, lattices = printed.partition("\n\n")
    rows = [line.strip("| ").split(" | ") for line in table.splitlines()[2:]]
    # Three of messages, three of HPL, two of su3, the start, and five benchmarks on 1 and 2 ranks.
    assert [row[0] for row in rows] == [IMAGE] * 19
    assert [row[1] for row in rows if row[1].startswith("su3")] == [
        "su3, 12^4, 1 rank(s) (updates/s)", "su3, 12^4, 2 rank(s) (updates/s)",
    ]  # fmt: skip
    for ranks in rank_counts():
        assert all(f"| {side}^4 | {ranks} |" in lattices for side in SIDES)
        assert f"On {ranks} rank(s), at best: triad" in lattices
    for _, _, inside, outside, ratio, _ in rows:
        assert float(inside) > 0 and float(outside) > 0 and float(ratio) > 0


def test_every_quantity_is_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """All that the command prints, of programs that are played."""
    played = {side: Played(tmp_path / side) for side in ("inside", "outside")}
    for side, place in played.items():
        place.folder.mkdir()
        monkeypatch.setattr(inside_and_outside, side, lambda image, folder, place=place: place)
    naive = tmp_path / "su3_naive"
    naive.write_text('#!/bin/sh\necho \'{"site_updates": 1000, "cpu_s": 0.1}\'\n')
    naive.chmod(0o755)
    monkeypatch.setattr(su3, "build_naive", lambda folder: naive)
    monkeypatch.setattr(trust, "admit", lambda *_: tmp_path)
    monkeypatch.setattr(inside_and_outside, "mpiexec_of", lambda image: ["mpiexec"])
    monkeypatch.setattr(
        sys,
        "argv",
        ["costs.inside_and_outside", "--rounds=2", "--nas-classes=S", "--images", IMAGE],
    )
    assert inside_and_outside.main() == 0
    assert_whole(capsys.readouterr().out)
    # The lattices are of the image alone.
    alike = [command for command in played["inside"].commands if "--precision" not in command]
    for command in played["outside"].commands:
        assert command in alike


@pytest.mark.real
@pytest.mark.parametrize(
    "kind",
    [
        pytest.param("messages", marks=pytest.mark.serial),
        pytest.param("starting", marks=pytest.mark.measures),
    ],
)
def test_a_quantity_is_measured_inside_and_outside(kind: str) -> None:
    """Starting a container costs something; again where the machine had other work meanwhile."""
    ratios: list[float] = []
    while len(ratios) < 5 and not any(ratio > 1 for ratio in ratios):
        done = measure("--rounds", "2", "--only", kind, "--images", IMAGE)
        assert done.returncode == 0, done.stderr
        rows = [line.strip("| ").split(" | ") for line in done.stdout.splitlines()[2:]]
        assert [row[0] for row in rows] == [IMAGE] * {"messages": 3, "starting": 1}[kind]
        for _, quantity, inside, outside, ratio, _ in rows:
            assert float(inside) > 0 and float(outside) > 0 and float(ratio) > 0
            assert quantity.startswith("start") == (kind == "starting")
            ratios.append(float(inside) / float(outside))
        if kind == "messages":
            return
    assert any(ratio > 1 for ratio in ratios), ratios


@pytest.mark.real
@pytest.mark.serial
@pytest.mark.long
def test_every_quantity_is_measured_inside_and_outside() -> None:
    done = measure("--rounds", "2", "--nas-classes", "S", "--images", IMAGE)
    assert done.returncode == 0, done.stderr
    assert_whole(done.stdout)


@pytest.mark.real
@pytest.mark.serial
def test_one_hpl_has_a_share_of_the_memory_and_stands_between_two_dgemms() -> None:
    done = measure("--only", "linpack", "--hpl-memory-share", "0.002", "--images", IMAGE)
    assert done.returncode == 0, done.stderr
    [row] = [line.strip("| ").split(" | ") for line in done.stdout.splitlines()[2:]]
    name, order, before, rate, after, part = row
    memory = load_site("local")["memory_bytes_per_node"]
    assert name == IMAGE and int(order) == largest_order(memory, 0.002, 192) > 0
    mean = (float(before) + float(after)) / 2
    assert float(part) == pytest.approx(float(rate) / mean, rel=1e-2)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--only", "linpack", "--hpl-memory-share", "0.9"], "0.9 is not a fraction of the memory"),
        (["--only", "linpack", "--hpl-memory-share", "0"], "0 is not a fraction of the memory"),
        (["--only", "linpack", "--hpl-memory-share", "all"], "all is not a fraction of the memory"),
        (["--hpl-memory-share", "0.3"], "needs --only linpack; add it"),
        (["--only", "su3", "--hpl-memory-share", "0.3"], "needs --only linpack; add it"),
    ],
)
def test_a_share_of_the_memory_that_cannot_be_is_a_sentence(
    words: list[str], said: str,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setattr(sys, "argv", ["costs.inside_and_outside", *words])
    with pytest.raises(SystemExit) as ended:
        inside_and_outside.main()
    assert ended.value.code == 2
    printed = capsys.readouterr()
    assert printed.out == "" and said in printed.err.splitlines()[-1]


def test_what_fails_is_said_with_its_cause_first(tmp_path: Path) -> None:
    """Its command may have thousands of letters, and what shows this may cut it."""
    place = Place(["sh", "-c", 'echo "FATAL: no such place" >&2; exit 3'], {}, tmp_path)
    with pytest.raises(SystemExit, match=r"^performance: no such place; this failed: mpiexec -n 2"):
        place.run(["mpiexec", "-n", "2"])
    silent = Place(["sh", "-c", "exit 3"], {}, tmp_path)
    with pytest.raises(SystemExit, match=r"^performance: it ended with 3 and said nothing; "):
        silent.run(["x"])


def test_a_share_without_room_for_a_block_is_a_sentence(tmp_path: Path) -> None:
    place = Place([], {}, tmp_path)
    with pytest.raises(SystemExit, match=r"no matrix of a block of 192 fits .* give a larger"):
        filled(IMAGE, place, ["mpiexec"], 1e6, 0.1)
