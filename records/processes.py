"""Identify a process of this machine: a number alone is reused in time."""

from __future__ import annotations

from pathlib import Path

#: Of a machine's boot: process numbers and start times begin again with it.
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
PROC = Path("/proc")


def boot_id() -> str:
    """Return what distinguishes this boot of this machine from every other."""
    try:
        return BOOT_ID.read_text().strip()
    except OSError:
        return "0"


def stat_of(pid: int) -> list[str]:
    """Return the kernel's fields for a process after its name, its state first (proc(5)).

    Raises OSError if there is none.
    """
    # The name stands in parentheses and may have any letters.
    return (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()


def started(stat: list[str]) -> int:
    """Return when a process started, in the kernel's ticks since boot (proc(5), 22)."""
    return int(stat[19])


def named(pid: int) -> str:
    """Return what distinguishes a process from any other with its number: `pid:start:boot`.

    Only the number if it has ended: then it cannot be distinguished from another one.
    """
    try:
        return f"{pid}:{started(stat_of(pid))}:{boot_id()}"
    except (OSError, ValueError, IndexError):
        return str(pid)


def known(names: list[str]) -> dict[int, int]:
    """Return the processes of `named` that may still be here: when each started, by its number.

    Those of an earlier boot are not, and a number alone identifies none.
    """
    parts = [name.split(":") for name in names]
    return {
        int(one[0]): int(one[1])
        for one in parts
        if len(one) == 3 and one[0].isdigit() and one[1].isdigit() and one[2] == boot_id()
    }
