"""A start-up is timed from clocks and files that may be missing, wrong or of another machine."""

import errno
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from records.start_up import of_the_thesis
from reframe_checks.mixins import page_cache
from tests.reframe_checks.conftest import PROJECT, StandIn, header, lines

HERE = platform.node()
MEMORY = Path("/dev/shm")


def startup(ranks: int = 2, times: int = 2, hosts: str = HERE, **more: object) -> str:
    result: dict[str, object] = {
        "record": "result", "operation": "startup", "clock": "CLOCK_REALTIME", "ranks": ranks,
        "main_s": ["NOW"] * times, "initialised_s": ["NOW"] * times, "last_integer_s": "NOW",
        **more,
    }  # fmt: skip
    records = [header("startup", ranks, hosts=[hosts] * ranks), result]
    return lines(*records, {"record": "end", "results": 1})


def only(ranks: int = 2, cache: str = "warm") -> str:
    return f"StartUp.*ranks={ranks}.*cache={cache}"


@pytest.fixture
def on_disk(tmp_path: Path) -> Iterator[Path]:
    """Return a folder on a disk: where temporary files are memory, the kernel never drops them."""
    for place in (tmp_path, PROJECT / ".wyeast"):
        with tempfile.TemporaryDirectory(dir=place) as folder:
            probe = Path(folder) / "probe"
            probe.write_bytes(b"x")
            if page_cache.cold(probe) is None:
                yield Path(folder)
                return
    pytest.fail(f"neither {tmp_path} nor {PROJECT} is on a disk; set TMPDIR to a folder that is")


def move_image(stand_in: StandIn, folder: Path) -> None:
    """Move the image to another folder, with a link to it in its place."""
    image = next((stand_in.root / ".wyeast" / "images").iterdir())
    (folder / "image").write_bytes(image.read_bytes())
    image.unlink()
    image.symlink_to(folder / "image")


def measured(stand_in: StandIn) -> dict[str, float]:
    """Return the performance variables of the one start-up in ReFrame's report."""
    [run] = json.loads((stand_in.root / "report.json").read_text())["runs"]
    [case] = [case for case in run["testcases"] if case["name"].startswith("StartUp")]
    return {key.split(":")[-1]: value[0] for key, value in case["perfvalues"].items()}


@pytest.mark.parametrize("cache", ["warm", "cold"])
def test_sound_start_up(stand_in: StandIn, on_disk: Path, cache: str) -> None:
    move_image(stand_in, on_disk)
    stand_in.write(startup())
    report = f"--report-file={stand_in.root / 'report.json'}"
    outcome = stand_in.run(report, only=only(cache=cache))
    assert outcome.code == 0, outcome.text
    [launch] = outcome.launches
    assert launch["cell"] == f"StartUp ranks=2 cache={cache}" and launch["outcome"] == "sound"
    values = measured(stand_in)
    assert set(values) == {"start_up", "to_main", "initialisation", "container"}
    assert launch["times_s"] == {"container": values["container"]}
    # Nobody stands between: main, MPI_Init and the last integer are the moment of printing.
    assert values["start_up"] == values["to_main"] and values["initialisation"] == 0
    assert values["container"] > 0 and 0 < values["start_up"] < launch["wall_s"]


def test_daemons_are_told_apart(stand_in: StandIn) -> None:
    stand_in.write(startup())
    (stand_in.root / "boots_daemons").touch()
    report = f"--report-file={stand_in.root / 'report.json'}"
    outcome = stand_in.run(report, only=only())
    assert outcome.code == 0, outcome.text
    values = measured(stand_in)
    [launch] = outcome.launches
    assert 0 < values["daemons"] <= values["start_up"]
    assert launch["times_s"] == {"container": values["container"], "daemons": values["daemons"]}


WHOLE = startup()


#: What is played, and the outcome and sentence that it must get.
WRONG = [
    ("", "failed", "empty"),
    (WHOLE[: WHOLE.rindex("{")], "failed", "truncated"),
    (WHOLE[: len(WHOLE) // 2], "failed", "rfm_job.out:"),
    (startup(times=1), "failed", "do not have one time for each rank"),
    (startup(ranks=3, times=3), "failed", "3 ranks formed the world, not the 2 requested"),
    (lines(header("startup", hosts=[HERE] * 2), {"record": "end", "results": 0}), "failed",
     "0 start-ups; a launch has one"),
    (startup(hosts="elsewhere"), "failed", "rank 0 ran on elsewhere: a duration cannot"),
    (startup(ranks=2, times=3).replace('"ranks": 2, "main', '"ranks": 3, "main'), "failed",
     "of 3 ranks, the world has 2"),
    (startup(main_s=["NOW", 1e9]), "suspect", "rank 1 entered main"),
    (startup(main_s=["NOW", 4e9]), "suspect", "rank 1 returned from MPI_Init"),
    (startup(last_integer_s=1e9), "suspect", "rank 0 received the last integer"),
    (startup(last_integer_s=4e9), "suspect", "the launch ended"),
]  # fmt: skip


def test_start_up_that_is_not_right(stand_in: StandIn) -> None:
    stand_in.refuse(WRONG, only=only())


def test_wrong_integer_is_quoted(stand_in: StandIn) -> None:
    said = "startup: rank 0 received 17 from rank 1, which should have sent its own number"
    stand_in.write("", stderr=f"{said}\n", code=1)
    outcome = stand_in.run(only=only())
    [launch] = outcome.launches
    assert outcome.code != 0 and launch["sentence"] == f"startup ended with exit code 1: {said}"


def test_container_that_does_not_start(stand_in: StandIn) -> None:
    stand_in.write(startup())
    (stand_in.root / "container_code").write_text("255")
    outcome = stand_in.run(only=only())
    [launch] = outcome.launches
    assert outcome.code != 0 and "ended with exit code 255" in str(launch["sentence"])
    assert launch["times_s"] == {}


@pytest.fixture
def in_memory() -> Iterator[Path]:
    """Return a folder whose files are memory, which no cache can drop."""
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        yield Path(folder)


def test_image_that_cannot_be_cold(stand_in: StandIn, in_memory: Path) -> None:
    move_image(stand_in, in_memory)
    stand_in.write(startup())
    outcome = stand_in.run(only=only(cache="cold"))
    assert not outcome.launches
    assert "so no launch is cold" in outcome.text
    assert stand_in.run(only=only(cache="warm")).code == 0


def run_alone(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, page_cache.__file__, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd="/", check=False)


def test_page_cache_is_set(on_disk: Path) -> None:
    path = on_disk / "file"
    path.write_bytes(os.urandom(10_000_001))
    for state, fraction in (("cold", 0.0), ("warm", 1.0), ("cold", 0.0)):
        done = run_alone(state, path)
        assert done.returncode == 0 and done.stdout == done.stderr == ""
        assert page_cache.resident_fraction(path) == fraction
    with path.open("rb") as file:
        file.seek(5_000_000)
        file.read(1)
    assert 0 < page_cache.resident_fraction(path) < 1


def test_page_cache_of_another_user(on_disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a file that one may only read, the kernel would say that all of it is there."""
    path = on_disk / "file"
    path.write_bytes(os.urandom(10_000_001))
    monkeypatch.setattr(os, "geteuid", lambda: path.stat().st_uid + 1)
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    for state, fraction in (("cold", 0.0), ("warm", 1.0), ("cold", 0.0)):
        assert page_cache.put(state, path) is None
        # The pages that were tried may be there afterwards, a percent of so small a file each time.
        found = page_cache._share_by_mincore(path, path.stat().st_size)
        assert found == pytest.approx(fraction, abs=0.15)
    small = on_disk / "small"
    small.write_bytes(b"x")
    assert page_cache.put("cold", small) is None

    def refuse(*arguments: object) -> int:
        raise OSError(errno.EOPNOTSUPP, "Operation not supported")

    monkeypatch.setattr(os, "preadv", refuse)
    sentence = page_cache.put("cold", path)
    assert sentence and "cannot be determined: Operation not supported" in sentence
    assert page_cache.put("warm", path) is None, "it has just been read"


def test_what_is_tried_may_be_read_before_the_kernel_answers(
    on_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a virtual machine whose disk is served by the processor that asks, while it is busy."""
    path = on_disk / "file"
    path.write_bytes(os.urandom(1_000_001))
    monkeypatch.setattr(os, "geteuid", lambda: path.stat().st_uid + 1)
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    paused: list[float] = []
    monkeypatch.setattr(time, "sleep", paused.append)
    preadv, busy = os.preadv, 7

    def served(descriptor: int, into: list[bytearray], offset: int, flags: int) -> int:
        is_busy = len(paused) <= busy
        return preadv(descriptor, into, offset, 0 if is_busy else flags)

    monkeypatch.setattr(os, "preadv", served)
    assert page_cache.put("cold", path) is None
    assert len(paused) > busy and sum(paused) > 0

    # One that stays so, as a file in memory, is told from it.
    busy = 1000
    sentence = page_cache.put("cold", path)
    assert sentence and "100% of" in sentence and "so no launch is cold" in sentence


def test_page_cache_that_cannot_be_set(tmp_path: Path, in_memory: Path) -> None:
    path = in_memory / "file"
    path.write_bytes(b"x" * 100_000)
    done = run_alone("cold", path)
    assert done.returncode == 1 and "100% of" in done.stderr and done.stdout == ""
    assert run_alone("warm", path).returncode == 0
    done = run_alone("cold", tmp_path / "absent")
    assert done.returncode == 1 and "cannot be determined: No such file" in done.stderr
    done = run_alone("tepid", path)
    assert done.returncode == 2 and "usage: " in done.stderr


def test_counts_are_those_of_the_thesis() -> None:
    table = of_the_thesis(PROJECT)
    assert sorted(table) == [2, 4, 8, 12, 16, 20, 24]
    assert table[24] == {"LAM": 0.60, "MPICH": 4.79}
