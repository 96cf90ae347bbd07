"""What the kernel gives this process of its machine: quotas of control groups.

A container, a batch job or a login node may have half a core and a hundredth of the memory of what
/proc shows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

#: Where groups are, below the root: of the second version, and of the first by its controllers.
UNIFIED = ("sys/fs/cgroup", "sys/fs/cgroup/unified")
CONTROLLERS = "sys/fs/cgroup"


@dataclass(frozen=True)
class Quota:
    """So many cores' time, and bytes of memory; None where there is no limit."""

    cores: float | None = None
    memory_bytes: int | None = None

    def sentences(self, cores: int, memory_bytes: int) -> list[str]:
        """Return what is to be said of a machine that has so many cores and bytes."""
        found = []
        if self.cores is not None and self.cores < cores:
            found.append(
                f"A quota limits this campaign to the time of {self.cores:.3g} of {cores} cores: "
                "beyond it the kernel stops all ranks for a part of each tenth of a second, and "
                "the times include these stops."
            )
        if self.memory_bytes is not None and self.memory_bytes < memory_bytes:
            found.append(
                f"A limit allows this campaign {self.memory_bytes / 1e9:.3g} of "
                f"{memory_bytes / 1e9:.3g} GB of memory: the kernel kills what takes more."
            )
        return found


def quota(root: Path = Path("/")) -> Quota:
    """Return the quota of this process, the least of all groups that it is in."""
    cores: list[float] = []
    memory: list[int] = []
    for controllers, folder in _groups(root):
        if not controllers:
            most, _, period = _read(folder / "cpu.max").partition(" ")
            cores += _share(most, period)
            memory += _number(_read(folder / "memory.max"))
        if "cpu" in controllers:
            cores += _share(_read(folder / "cpu.cfs_quota_us"), _read(folder / "cpu.cfs_period_us"))
        if "memory" in controllers:
            memory += _number(_read(folder / "memory.limit_in_bytes"))
    return Quota(min(cores, default=None), min(memory, default=None))


def _groups(root: Path) -> Iterator[tuple[list[str], Path]]:
    """Yield the folders of this process' groups and of those above, with their controllers."""
    for line in _read(root / "proc/self/cgroup").splitlines():
        _, _, rest = line.partition(":")
        names, _, path = rest.partition(":")
        places = [f"{CONTROLLERS}/{names}"] if names else UNIFIED
        for place in places:
            # A container may see its own group where the machine's first one is elsewhere.
            top = root / place
            below = top / path.strip("/")
            for folder in (below, *below.parents):
                if folder.is_relative_to(top):
                    yield [name for name in names.split(",") if name], folder


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except (OSError, UnicodeDecodeError):
        return ""


def _number(word: str) -> list[int]:
    return [int(word)] if word.isdigit() else []


def _share(most: str, period: str) -> list[float]:
    return [int(most) / int(period)] if most.isdigit() and period.isdigit() and int(period) else []
