"""What this machine has: its cores, an upper limit of their rate, memory, fabrics."""

import os
import re
from contextlib import suppress
from pathlib import Path

from site_configs.quota import quota

# Double-precision operations per cycle and core: two fused multiply-add units of that width; on Arm
# the most that a core has of it: SVE of 512 bit in two units (A64FX), or four units of 128 bit.
VECTOR_OPERATIONS = (("avx512f", 32), ("avx2", 16), ("avx", 8), ("sve", 32), ("asimd", 16))
TURBO_ALLOWANCE = 2.0  # highest turbo over the base clock that a virtual machine may hide


# In kHz, where the kernel governs the clock; /proc/cpuinfo has that of the moment then.
HIGHEST_CLOCKS = "sys/devices/system/cpu/cpu*/cpufreq/cpuinfo_max_freq"


def highest_clocks(root: Path) -> list[float]:
    """Return the processors' highest clocks in Hz from the kernel's governor, if it has one."""
    found = []
    for path in root.glob(HIGHEST_CLOCKS):
        with suppress(OSError, ValueError):
            found.append(float(path.read_text()) * 1e3)
    return found


def detected_processor(root: Path = Path("/")) -> tuple[int, float]:
    """Return (cores, peak FLOP/s upper limit) of this machine, whose files are under a root.

    The clock is the highest that /proc/cpuinfo and the kernel's frequency governor report.
    """
    text = (root / "proc/cpuinfo").read_text()
    cores = len(os.sched_getaffinity(0))
    if (allowed := quota(root).cores) is not None:
        cores = max(1, min(cores, int(allowed)))
    clocks = [float(mhz) * 1e6 for mhz in re.findall(r"^cpu MHz\s*:\s*([\d.]+)", text, re.M)]
    flags = set(" ".join(re.findall(r"^(?:flags|Features)\s*:\s*(.*)$", text, re.M)).split())
    operations = next((count for flag, count in VECTOR_OPERATIONS if flag in flags), 8)
    clock = max([*(clocks or [3e9]), *highest_clocks(root)])
    return cores, cores * operations * clock * TURBO_ALLOWANCE


def detected_memory(root: Path = Path("/")) -> int:
    """Return this machine's memory in bytes, or what this process may have of it."""
    there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    allowed = quota(root).memory_bytes
    return there if allowed is None else min(there, allowed)


def fabrics(root: Path = Path("/")) -> list[str]:
    """Return the devices of this machine that libfabric may reach memory of other nodes by.

    InfiniBand, RoCE, Omni-Path and EFA are among the kernel's `infiniband`, Slingshot is `cxi`.
    """
    kinds = ("infiniband", "cxi")
    return sorted(path.name for kind in kinds for path in (root / "sys/class" / kind).glob("*"))
