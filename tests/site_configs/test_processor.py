"""The peak of a detected processor is an upper limit, however slow its clock is at the moment."""

import os
from pathlib import Path

import pytest

from site_configs.processor import TURBO_ALLOWANCE, detected_processor, fabrics

IDLE, HIGHEST = 800.012, 3_500_000  # MHz, kHz
CORE = "processor\t: {0}\ncpu MHz\t\t: {1}\nflags\t\t: fpu sse2 avx avx2\n\n"


def processor(root: Path, *clocks: float) -> Path:
    """Write what the kernel says of processors with these clocks in MHz; return the root."""
    (root / "proc").mkdir()
    text = "".join(CORE.format(core, clock) for core, clock in enumerate(clocks))
    (root / "proc/cpuinfo").write_text(text)
    return root


def governed(root: Path, core: int, text: str) -> None:
    """Say the highest clock of a processor."""
    folder = root / f"sys/devices/system/cpu/cpu{core}/cpufreq"
    folder.mkdir(parents=True)
    (folder / "cpuinfo_max_freq").write_text(text)


def peak(clock_hz: float) -> object:
    """Return the limit of this machine's cores at a clock, 16 operations a cycle with AVX2."""
    cores = len(os.sched_getaffinity(0))
    return (cores, pytest.approx(cores * 16 * clock_hz * TURBO_ALLOWANCE))


def test_an_idle_processor_has_the_peak_of_its_highest_clock(tmp_path: Path) -> None:
    root = processor(tmp_path, IDLE, IDLE)
    assert detected_processor(root) == peak(IDLE * 1e6)
    governed(root, 0, f"{HIGHEST - 100_000}\n")
    governed(root, 1, f"{HIGHEST}\n")
    assert detected_processor(root) == peak(HIGHEST * 1e3)


def test_a_virtual_machine_has_only_the_clock_of_its_processors(tmp_path: Path) -> None:
    assert detected_processor(processor(tmp_path, 2500.0, 2499.0)) == peak(2.5e9)


def test_a_clock_above_the_highest_one_counts(tmp_path: Path) -> None:
    """What some governors give as the highest one leaves out turbo."""
    root = processor(tmp_path, 3900.0)
    governed(root, 0, f"{HIGHEST}\n")
    governed(root, 1, "<unknown>\n")
    assert detected_processor(root) == peak(3.9e9)


@pytest.mark.parametrize(("features", "operations"), [
    ("fp asimd evtstrm aes atomics", 16), ("fp asimd sve sve2 bf16", 32), ("fp", 8),
])  # fmt: skip
def test_an_arm_processor_has_a_limit_that_is_not_below_what_it_does(
    tmp_path: Path, features: str, operations: int
) -> None:
    """Its kernel names no clock; Grace has 3.4 GHz and 16 operations a cycle, A64FX 2.2 and 32."""
    (tmp_path / "proc").mkdir()
    text = f"processor\t: 0\nBogoMIPS\t: 2000.00\nFeatures\t: {features}\nCPU part\t: 0xd4f\n"
    (tmp_path / "proc/cpuinfo").write_text(text)
    cores, limit = detected_processor(tmp_path)
    assert limit == pytest.approx(cores * operations * 3e9 * TURBO_ALLOWANCE)


def test_fabrics_are_what_the_kernel_calls_so(tmp_path: Path) -> None:
    assert fabrics(tmp_path) == []
    for device in ("infiniband/mlx5_0", "cxi/cxi0", "net/eth0"):
        (tmp_path / "sys/class" / device).mkdir(parents=True)
    assert fabrics(tmp_path) == ["cxi0", "mlx5_0"]


def test_a_quota_leaves_no_more_cores_than_it_pays_for(tmp_path: Path) -> None:
    root = processor(tmp_path, 2500.0, 2499.0)
    (root / "proc/self").mkdir()
    (root / "proc/self/cgroup").write_text("0::/\n")
    group = root / "sys/fs/cgroup"
    group.mkdir(parents=True)
    there = len(os.sched_getaffinity(0))
    for most, cores in (("50000", 1), ("100000", 1), ("max", there), ("9" * 12, there)):
        (group / "cpu.max").write_text(f"{most} 100000\n")
        assert detected_processor(root)[0] == cores
