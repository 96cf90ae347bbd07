"""What a node is and how busy it is, read by one process in a millisecond or two.

A job's script records it on the node just before a launch (COMMAND), which under a scheduler is not
the machine that started the campaign. What cannot change while a node is up is stored once per node
in the campaign's `nodes/`; what can change is in each launch's record.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from records import base, files

PROCESSOR = "/sys/devices/system/cpu/cpu0/cpufreq"
HUGE_PAGES = "/sys/kernel/mm/transparent_hugepage/enabled"
FILES = (
    "/proc/sys/kernel/hostname", "/proc/sys/kernel/osrelease", "/proc/loadavg", "/proc/cmdline",
    "/proc/cpuinfo", "/proc/meminfo", "/proc/self/status", "/sys/devices/system/node/has_cpu",
    f"{PROCESSOR}/scaling_governor", f"{PROCESSOR}/scaling_cur_freq", HUGE_PAGES,
    "/sys/class/net/*/operstate", "/sys/class/net/*/speed",
)  # fmt: skip
#: Prints the beginning of each file under its name: the first processor and this process whole.
COMMAND = f"head -v -n 80 {' '.join(FILES)} 2>/dev/null"
#: Interfaces that come and go with containers, and the machine's own.
PASSING_INTERFACES = ("lo", "veth")
FOLDER = "nodes"
#: The least and the most of each number about a node: beyond that it is damage, not a machine.
BOUNDS: dict[str, tuple[float, float]] = {
    "cores": (1, 10**6), "numa_nodes": (1, 10**6), "memory_bytes": (1, 2**60),
    "load_average": (0, 10**7), "running": (0, 10**7), "memory_available_bytes": (0, 2**60),
    "clock_hz": (0, 1e11),
}  # fmt: skip
#: What of what a kernel was told bears on measurements; the rest may be anything, also secrets.
KERNEL_PARAMETER = re.compile(
    r"(?:mitigations|no(?:pti|spectre_v[12]|spec_store_bypass_disable|smt|x2apic|hpet|watchdog)"
    r"|spectre_v2(?:_user)?|spec_(?:store_bypass_disable|rstack_overflow)|retbleed|l1tf|mds|srbds"
    r"|tsx(?:_async_abort)?|mmio_stale_data|gather_data_sampling|reg_file_data_sampling|kpti|pti"
    r"|isolcpus|nohz(?:_full)?|rcu_nocbs|rcu_nocb_poll|rcutree\.[\w.]+|rcupdate\.[\w.]+"
    r"|irqaffinity|threadirqs|skew_tick|preempt|idle|highres|clocksource|tsc|hpet|nmi_watchdog"
    r"|maxcpus|nr_cpus|possible_cpus|mem|hugepages|(?:default_)?hugepagesz|hugetlb_free_vmemmap"
    r"|transparent_hugepage|numa(?:_balancing)?|page_alloc\.shuffle|init_on_(?:alloc|free)"
    r"|(?:intel_|amd_)?iommu(?:\.[\w.]+)?|swiotlb|pcie_aspm(?:\.policy)?|pci"
    r"|(?:intel_idle|processor)\.[\w.]+|(?:intel|amd)_pstate|cpufreq\.[\w.]+|cpuidle\.[\w.]+"
    r"|audit|selinux|apparmor|lsm|psi|cgroup_(?:disable|enable|no_v1)|systemd\.unified_cgroup_hierarchy"
    r"|swapaccount|vsyscall|kvm[\w.-]*|split_lock_detect|workqueue\.[\w.]+|sched_[\w.]+|relax_domain_level"
    r"|schedstats|zswap\.[\w.]+|mce|nomodule|nomodeset|quiet)(?:=[\w.,:%+-]{0,200})?",
    re.ASCII,
)
#: What of a node is words.
WORDS = (
    "hostname", "kernel", "kernel_command_line", "cpu_model", "cpu_flags", "microcode", "governor",
    "transparent_huge_pages",
)  # fmt: skip


@lru_cache(maxsize=4)
def parts_of(text: str) -> Mapping[str, list[str]]:
    """Return the lines of each file in COMMAND's output, without files that did not exist.

    It is asked for several times after each launch, and not changed.
    """
    parts: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in text.splitlines():
        header = re.fullmatch(r"==> (/\S+) <==", line) if line.startswith("==> ") else None
        if header:
            lines = parts.setdefault(header[1], [])
        else:
            lines.append(line)
    return {name: [line for line in lines if line.strip()] for name, lines in parts.items()}


def field_of(lines: list[str], name: str) -> str | None:
    """Return the first field of a name in a file of `name: value` lines."""
    for line in lines:
        key, colon, value = line.partition(":")
        if colon and key.strip() == name:
            return value.strip() or None
    return None


def numbered(text: str | None) -> int | None:
    """Return how many numbers a kernel list names: `0-3,8` are five."""
    if text is None or not re.fullmatch(r"\d+(-\d+)?(,\d+(-\d+)?)*", text):
        return None
    ends = [[int(end) for end in part.split("-")] for part in text.split(",")]
    return sum(end[-1] - end[0] + 1 for end in ends)


def of_kernel(told: str | None) -> str | None:
    """Return what a kernel was told, without what does not bear on measurements.

    What stands behind ` -- ` is for the first process, and none of it the kernel's.
    """
    if told is None:
        return None
    words = f"{told} ".partition(" -- ")[0].split()
    return " ".join(word for word in words if KERNEL_PARAMETER.fullmatch(word))


def in_bytes(text: str | None) -> int | None:
    """Return an amount of /proc/meminfo, `12 kB`, in bytes."""
    return int(text.split()[0]) * 1024 if text else None


def arm_model(processor: list[str]) -> str | None:
    """Return what tells a processor of Arm's from others: the kernel gives numbers, and no name."""
    names = ("implementer", "variant", "part", "revision")
    found = {name: field_of(processor, f"CPU {name}") for name in names}
    if not found["implementer"] or not found["part"]:
        return None
    return "Arm " + ", ".join(f"{name} {value}" for name, value in found.items() if value)


def facts(text: str) -> dict[str, Any]:
    """Return what affects measurements and is constant while a node is up; sizes in bytes.

    What the kernel does not reveal is None.
    """
    parts = parts_of(text)

    def first(path: str) -> str | None:
        return next(iter(parts.get(path, [])), "").strip() or None

    processor = parts.get("/proc/cpuinfo", [])
    network: dict[str, dict[str, str | None]] = {}
    for path in parts:
        found = re.fullmatch(r"/sys/class/net/([^/]+)/operstate", path)
        if found and not found[1].startswith(PASSING_INTERFACES):
            network[found[1]] = {
                "state": first(path),
                "speed_mbit_per_s": first(f"/sys/class/net/{found[1]}/speed"),
            }
    return {
        "hostname": first("/proc/sys/kernel/hostname"),
        "kernel": first("/proc/sys/kernel/osrelease"),
        "kernel_command_line": of_kernel(first("/proc/cmdline")),
        "cpu_model": field_of(processor, "model name") or arm_model(processor),
        "cpu_flags": field_of(processor, "flags") or field_of(processor, "Features"),
        "microcode": field_of(processor, "microcode"),
        "cores": numbered(field_of(parts.get("/proc/self/status", []), "Cpus_allowed_list")),
        "numa_nodes": numbered(first("/sys/devices/system/node/has_cpu")),
        "memory_bytes": in_bytes(field_of(parts.get("/proc/meminfo", []), "MemTotal")),
        "governor": first(f"{PROCESSOR}/scaling_governor"),
        "transparent_huge_pages": first(HUGE_PAGES),
        "network": network,
    }


def conditions(text: str) -> dict[str, Any]:
    """Return what changes on a node from launch to launch; None where the kernel is silent.

    `running` are the processes that had or wanted a processor, except the observer;
    `load_average` is of the last minute, `memory_available_bytes` and `clock_hz` (of the first
    processor) of the moment.
    """
    parts = parts_of(text)
    load = " ".join(parts.get("/proc/loadavg", [])).split()
    clock = parts.get(f"{PROCESSOR}/scaling_cur_freq")
    memory = field_of(parts.get("/proc/meminfo", []), "MemAvailable")
    return {
        "load_average": float(load[0]) if load else None,
        "running": max(0, int(load[3].split("/")[0]) - 1) if len(load) > 3 else None,
        "memory_available_bytes": in_bytes(memory),
        "clock_hz": float(clock[0]) * 1000 if clock and clock[0].isdigit() else None,
    }


def of_this_machine() -> str:
    """Return COMMAND's output on this machine."""
    done = subprocess.run(["sh", "-c", COMMAND], capture_output=True, text=True, check=False)
    return done.stdout


def possible(told: Mapping[str, Any]) -> None:
    """Raise ValueError for facts or conditions that no node can have; None is unknown."""
    for name, value in told.items():
        if name in BOUNDS and value is not None:
            least, most = BOUNDS[name]
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            if not (is_number and least <= value <= most):
                raise ValueError(f"{name} is {str(value)[:60]}")
        if name in WORDS and not isinstance(value, str | None):
            raise ValueError(f"{name} is {str(value)[:60]}")


def keep(campaign: Path, text: str) -> dict[str, Any]:
    """Return the part of a launch's record on its node; store the node's facts in the campaign.

    A node whose facts changed (another kernel after a reboot) is kept a second time.
    Raises NotKept if the campaign cannot be written.
    """
    if not parts_of(text):
        return {}
    known = facts(text)
    digest = hashlib.sha256(json.dumps(known, sort_keys=True).encode()).hexdigest()[:12]
    name = re.sub(r"[^A-Za-z0-9.-]+", "_", str(known["hostname"]))
    path = campaign / FOLDER / f"{name}-{digest}.json"
    try:
        if not path.exists():
            path.parent.mkdir(exist_ok=True)
            files.write_json(path, known)
    except OSError as error:
        raise base.NotKept(f"{path} cannot be written: {error.strerror}") from None
    return {"facts": f"{FOLDER}/{path.name}", **conditions(text)}


def fact_text(fact: object) -> str:
    """Return a fact for people, one of several named facts too."""
    if isinstance(fact, Mapping):
        return ", ".join(
            f"{str(name).replace('_', ' ')} ({fact_text(inner)})" if isinstance(inner, Mapping)
            else f"{str(name).replace('_', ' ')} {fact_text(inner)}"
            for name, inner in fact.items()
        )  # fmt: skip
    if isinstance(fact, list | tuple):
        return ", ".join(map(fact_text, fact))
    return "not known" if fact is None else str(fact)


def differing(facts: Sequence[object]) -> str:
    """Return how nodes differ, each value once in words; long values separated by semicolons."""
    between = "; " if any(isinstance(fact, Mapping | list) for fact in facts) else ", "
    return between.join(sorted(set(map(fact_text, facts))))
