"""What the machine that asks has: its cores, an upper limit of their rate, its memory."""

import os
import re
from pathlib import Path

# Double-precision operations per cycle and core: two fused multiply-add units of that width.
VECTOR_OPERATIONS = (("avx512f", 32), ("avx2", 16), ("avx", 8))
TURBO_ALLOWANCE = 2.0  # highest turbo over the base clock that a virtual machine may hide


def detected_processor() -> tuple[int, float]:
    """Return (cores, peak FLOP/s upper limit) of this machine from /proc/cpuinfo."""
    text = Path("/proc/cpuinfo").read_text()
    cores = len(os.sched_getaffinity(0))
    clocks = [float(mhz) * 1e6 for mhz in re.findall(r"^cpu MHz\s*:\s*([\d.]+)", text, re.M)]
    flags = set(re.findall(r"^flags\s*:\s*(.*)$", text, re.M)[0].split()) if clocks else set()
    operations = next((count for flag, count in VECTOR_OPERATIONS if flag in flags), 8)
    clock = max(clocks, default=3e9)
    return cores, cores * operations * clock * TURBO_ALLOWANCE


def detected_memory() -> int:
    """Return this machine's memory in bytes."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
