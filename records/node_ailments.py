"""What ails a node, seen before anything fails: by files of the kernel's that one shell reads.

`make doctor` looks where it is typed, and each preflight's ranks on their nodes (COMMAND). What is
looked at there is what a process of a job may have: limits and control groups of daemons and
schedulers differ from those of a login.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from records import nodes

CPU = "/sys/devices/system/cpu"
FILES = (
    "/proc/sys/kernel/hostname", "/proc/self/limits", "/proc/self/status", "/proc/loadavg",
    "/proc/meminfo", "/proc/sys/kernel/yama/ptrace_scope", "/proc/sys/user/max_user_namespaces",
    "/proc/sys/kernel/numa_balancing", "/sys/devices/system/node/has_cpu", nodes.HUGE_PAGES,
    f"{nodes.PROCESSOR}/scaling_governor", f"{CPU}/cpu[0-9]*/topology/thread_siblings_list",
)  # fmt: skip
#: Files of a control group (version 2); those of the groups that it is in bind it, too.
QUOTA, MEMORY, PROCESSORS = "cpu.max", "memory.max", "cpuset.cpus.effective"
#: Prints these files, and under names of ours the time, file systems, and devices of RDMA.
COMMAND = (
    f"{{ head -v -n 80 {' '.join(FILES)}; "
    "group=$(sed -n 's/^0:://p' /proc/self/cgroup); while :; do "
    f"for file in {QUOTA} {MEMORY} {PROCESSORS}; do "
    'echo; head -v -n 1 "/sys/fs/cgroup${group%/}/$file"; done; '
    '[ -n "${group%/}" ] || break; group=${group%/*}; done; '
    "echo; echo '==> /time <=='; date +%s; "
    "echo '==> /room/dev/shm <=='; df -P -k /dev/shm; echo '==> /room/tmp <=='; df -P -k /tmp; "
    "echo '==> /ports <=='; ls /sys/class/infiniband; "
    "echo '==> /verbs <=='; ls /dev/infiniband; } 2>/dev/null"
)
MIB = 2**20
#: As a container of Docker has it; UCX and Open MPI need some megabytes for each rank.
LEAST_SHM = 128 * MIB
LEAST_TMP = 100 * MIB
LEAST_STACK = 8 * MIB
LEAST_PROCESSES, LEAST_FILES = 1024, 1024
#: By how much clocks may differ, in seconds, where only whole ones are known.
CLOCKS_S = 2
#: The share of a node's memory that must be free, and of its swap that may be taken.
FREE, SWAPPED = 0.5, 0.01
#: How much others may be running, on average over a minute.
MOST_LOAD = 1.0


@dataclass(frozen=True)
class NodeFacts:
    """What COMMAND printed on a node; None is not known there."""

    parts: Mapping[str, list[str]]

    @property
    def name(self) -> str:
        """Return the node's name."""
        return self.word("/proc/sys/kernel/hostname") or "this machine"

    def word(self, path: str) -> str | None:
        """Return the first line of a file."""
        return next(iter(self.parts.get(path, [])), "").strip() or None

    def number(self, path: str) -> int | None:
        """Return the number in a file."""
        word = self.word(path) or ""
        return int(word) if re.fullmatch(r"\d{1,18}", word) else None

    def limit(self, name: str) -> float | None:
        """Return a soft limit of a process, infinite if there is none."""
        for line in self.parts.get("/proc/self/limits", []):
            if found := re.match(rf"{name}\s+(unlimited|\d+)\s", line):
                return float("inf") if found[1] == "unlimited" else float(found[1])
        return None

    def memory(self, name: str) -> int | None:
        """Return an amount of /proc/meminfo in bytes."""
        said = nodes.field_of(self.parts.get("/proc/meminfo", []), name)
        return nodes.in_bytes(said) if said and re.match(r"\d+ kB", said) else None

    def room(self, place: str) -> tuple[int, int] | None:
        """Return a file system's size and what is free of it, in bytes."""
        words = "".join(self.parts.get(f"/room{place}", [])[-1:]).split()
        if len(words) >= 6 and words[1].isdigit() and words[3].isdigit():
            return int(words[1]) * 1024, int(words[3]) * 1024
        return None

    def of_groups(self, file: str) -> list[str]:
        """Return what a file has in the process' control group and in those that this is in."""
        paths = [path for path in self.parts if path.endswith(f"/{file}")]
        return [word for path in paths if (word := self.word(path))]

    def siblings(self) -> set[frozenset[int]]:
        """Return the processors of each core: its hyper-threads."""
        paths = [path for path in self.parts if path.endswith("/thread_siblings_list")]
        return {frozenset(listed(self.word(path))) for path in paths}

    def granted(self) -> set[int]:
        """Return the processors that the control group has; all that are known if it is in none.

        A rank that looks is bound by its launcher already, so its own do not count.
        """
        known = {number for core in self.siblings() for number in core}
        groups = [listed(word) for word in self.of_groups(PROCESSORS)]
        return min((one for one in groups if one), key=len, default=known)

    def cores(self) -> int | None:
        """Return how many cores these processors are; hyper-threads of one are one."""
        return sum(bool(one & self.granted()) for one in self.siblings()) or None


def listed(text: str | None) -> set[int]:
    """Return the numbers of a kernel's list, such as `0-3,8`."""
    if not text or not re.fullmatch(r"\d{1,5}(-\d{1,5})?(,\d{1,5}(-\d{1,5})?)*", text):
        return set()
    ends = [[int(end) for end in part.split("-")] for part in text.split(",")]
    return {number for end in ends for number in range(end[0], end[-1] + 1)}


def node_facts(text: str) -> NodeFacts:
    """Return what COMMAND printed."""
    return NodeFacts(nodes.parts_of(text))


@dataclass(frozen=True)
class NodeAilment:
    """What may ail a node: how it shows, as words of what is wrong, what helps, and the source."""

    name: str
    shows: Callable[[NodeFacts, Mapping[str, Any]], str | None]
    helps: str
    source: str


@dataclass(frozen=True)
class Ailing:
    """An ailment that was found on a node."""

    node: str
    ailment: NodeAilment
    what: str

    @property
    def sentence(self) -> str:
        """Return what is wrong, where, and what helps."""
        return f"{self.node}: {self.what}; {self.ailment.helps}"


def _below(value: float | None, least: float, words: str) -> str | None:
    """Return words with a value that is below the least."""
    return words.format(value=value) if value is not None and value < least else None


def _in_mib(value: float | None) -> float | None:
    return None if value is None else round(value / MIB, 1)


def _shm(node: NodeFacts, _: Mapping[str, Any]) -> str | None:
    room = node.room("/dev/shm")
    if room and room[1] < LEAST_SHM:
        return f"/dev/shm has {_in_mib(room[0])} MiB, of which {_in_mib(room[1])} are free"
    return None


def _tmp(node: NodeFacts, _: Mapping[str, Any]) -> str | None:
    room = node.room("/tmp")
    return _below(_in_mib(room[1]) if room else None, LEAST_TMP / MIB, "/tmp has {value} MiB free")


def _memlock(node: NodeFacts, _: Mapping[str, Any]) -> str | None:
    limit = node.limit("Max locked memory")
    if node.parts.get("/ports") and limit is not None and limit != float("inf"):
        ports = ", ".join(node.parts["/ports"][:4])
        return f"a process may lock {_in_mib(limit)} MiB of memory, and the node has {ports}"
    return None


def _verbs(node: NodeFacts, _: Mapping[str, Any]) -> str | None:
    if node.parts.get("/ports") and not node.parts.get("/verbs"):
        return f"the node has {', '.join(node.parts['/ports'][:4])}, and no /dev/infiniband is seen"
    return None


def _processors(node: NodeFacts, site: Mapping[str, Any]) -> str | None:
    found, wanted = len(node.granted()), site.get("cores_per_node")
    if found and wanted and found < wanted:
        of = "1 processor" if found == 1 else f"{found} processors"
        return f"a job has {of}, and `cores_per_node` is {wanted}"
    return None


def _threads(node: NodeFacts, site: Mapping[str, Any]) -> str | None:
    cores, wanted = node.cores(), site.get("cores_per_node")
    if cores and wanted and cores < wanted <= len(node.granted()):
        return f"`cores_per_node` is {wanted}, and these are hyper-threads of {cores} cores"
    return None


def _quota(node: NodeFacts, site: Mapping[str, Any]) -> str | None:
    found, wanted = [one.split() for one in node.of_groups(QUOTA)], site.get("cores_per_node")
    quotas = [
        int(one[0]) / int(one[1])
        for one in found
        if len(one) == 2 and all(re.fullmatch(r"[1-9]\d{0,17}", word) for word in one)
    ]
    if quotas and wanted and min(quotas) < wanted:
        return f"its control group gives a job {min(quotas):.1f} processors' time, not {wanted}"
    return None


def _memory_limit(node: NodeFacts, site: Mapping[str, Any]) -> str | None:
    wanted = site.get("memory_bytes_per_node")
    limits = [int(one) for one in node.of_groups(MEMORY) if re.fullmatch(r"\d{1,18}", one)]
    if limits and wanted and min(limits) < wanted:
        return (
            f"its control group gives a job {min(limits)} bytes, and `memory_bytes_per_node` is "
            f"{wanted}"
        )
    return None


def _little_memory(node: NodeFacts, site: Mapping[str, Any]) -> str | None:
    free, wanted = node.memory("MemAvailable"), site.get("memory_bytes_per_node")
    if free is not None and wanted and free < FREE * wanted:
        return f"{free / 1e9:.1f} GB of memory are free, and `memory_bytes_per_node` is {wanted}"
    return None


def _swapped(node: NodeFacts, _: Mapping[str, Any]) -> str | None:
    total, free = node.memory("SwapTotal"), node.memory("SwapFree")
    if total and free is not None and total - free > SWAPPED * (node.memory("MemTotal") or total):
        return f"{(total - free) / 1e9:.1f} GB are swapped out"
    return None


def _governor(node: NodeFacts, _: Mapping[str, Any]) -> str | None:
    found = node.word(f"{nodes.PROCESSOR}/scaling_governor")
    return f"the processors' governor is {found}" if found in (
        "powersave", "ondemand", "conservative", "userspace"
    ) else None  # fmt: skip


def _huge_pages(node: NodeFacts, _: Mapping[str, Any]) -> str | None:
    found = node.word(nodes.HUGE_PAGES) or ""
    return "transparent huge pages are off" if "[never]" in found else None


def _balancing(node: NodeFacts, _: Mapping[str, Any]) -> str | None:
    memories = listed(node.word("/sys/devices/system/node/has_cpu"))
    moves = node.number("/proc/sys/kernel/numa_balancing")
    return "the kernel moves pages between NUMA nodes" if moves and len(memories) > 1 else None


def _ptrace(node: NodeFacts, _: Mapping[str, Any]) -> str | None:
    scope = node.number("/proc/sys/kernel/yama/ptrace_scope")
    # At 1 libraries allow each other's ranks to do it by prctl(2), as UCX does.
    return f"kernel.yama.ptrace_scope is {scope}" if scope and scope > 1 else None


def _namespaces(node: NodeFacts, _: Mapping[str, Any]) -> str | None:
    most = node.number("/proc/sys/user/max_user_namespaces")
    return "user.max_user_namespaces is 0" if most == 0 else None


def _load(node: NodeFacts, _: Mapping[str, Any]) -> str | None:
    said = (node.word("/proc/loadavg") or "").split()
    load = float(said[0]) if said and re.fullmatch(r"\d+\.\d+", said[0]) else 0.0
    return f"others kept {load} processors busy on average" if load > MOST_LOAD else None


def _limit(name: str, least: float, words: str) -> Callable[..., str | None]:
    return lambda node, _: _below(node.limit(name), least, words)


RLIMIT = "https://man7.org/linux/man-pages/man2/getrlimit.2.html"
CGROUP = "https://docs.kernel.org/admin-guide/cgroup-v2.html"
KERNEL = "https://docs.kernel.org/admin-guide/sysctl/kernel.html"
AILMENTS = (
    NodeAilment(
        "little shared memory", _shm, "without room there libraries crash with a bus error or use "
        "other paths: remove what dead processes have left, have it mounted larger, and start a "
        "Docker "
        "container with --shm-size", "https://github.com/openucx/ucx/pull/8508"),
    NodeAilment(
        "full /tmp", _tmp, "launchers and libraries put files there: free some space",
        "https://docs.open-mpi.org/en/v5.0.x/man-openmpi/man1/mpirun.1.html"),
    NodeAilment(
        "little locked memory", _memlock, "its adapter must be able to lock as much as it needs: "
        "ask for `memlock unlimited`, also for the scheduler's daemons (Slurm: "
        "LimitMEMLOCK=infinity)",
        "https://github.com/openucx/ucx/issues/8229"),
    NodeAilment(
        "no verbs in the container", _verbs, "messages would go through TCP: have "
        "/dev/infiniband, which containers take from the node, opened to all users",
        "https://github.com/ai-dynamo/dynamo/issues/1209"),
    NodeAilment(
        "fewer processors than said", _processors, "have jobs request all of them, as whole "
        "nodes (Slurm: --exclusive), or correct the site's file", CGROUP),
    NodeAilment(
        "hyper-threads for cores", _threads, "two ranks would share a core: set it to the "
        "number of cores", "https://docs.kernel.org/admin-guide/cputopology.html"),
    NodeAilment(
        "a quota of processors' time", _quota, "ranks would be stopped again and again: have the "
        "quota removed, or set `cores_per_node` to it", CGROUP),
    NodeAilment(
        "a limit of memory", _memory_limit, "the kernel would kill ranks beyond it: request more "
        "memory in `access`, or correct the site's file", CGROUP),
    NodeAilment(
        "little free memory", _little_memory, "somebody else uses it: have jobs request whole "
        "nodes, and look for what dead jobs have left in /dev/shm and /tmp", CGROUP),
    NodeAilment(
        "swapped out", _swapped, "reading it back disturbs launches: find out who uses the memory, "
        "or turn swap off on compute nodes", "https://docs.kernel.org/admin-guide/sysctl/vm.html"),
    NodeAilment(
        "clock that changes", _governor, "times then depend on what ran before: have it set to "
        "performance (cpupower frequency-set -g performance)",
        "https://docs.kernel.org/admin-guide/pm/cpufreq.html"),
    NodeAilment(
        "no huge pages", _huge_pages, "programs with much memory miss the TLB more often than "
        "elsewhere: have them set to madvise or always",
        "https://docs.kernel.org/admin-guide/mm/transhuge.html"),
    NodeAilment(
        "pages that move", _balancing, "ranks are bound, so this only costs them time: have "
        "kernel.numa_balancing set to 0", KERNEL),
    NodeAilment(
        "no reading of others' memory", _ptrace, "ranks may not copy from each other's memory "
        "(CMA), so they copy twice: have it set to 1 or 0 where nobody else works on the nodes",
        "https://docs.kernel.org/admin-guide/LSM/Yama.html"),
    NodeAilment(
        "no user namespaces", _namespaces, "an Apptainer without its setuid part cannot start "
        "anything: have it raised", "https://apptainer.org/docs/admin/latest/user_namespace.html"),
    NodeAilment(
        "another's load", _load, "launches would share processors with it: have jobs "
        "request whole nodes, and end what others have left running",
        "https://man7.org/linux/man-pages/man5/proc.5.html"),
    NodeAilment(
        "a small stack", _limit("Max stack size", LEAST_STACK,
                                "the stack may have {value:.0f} bytes"),
        "programs with arrays on it crash with a segmentation fault: raise it (ulimit -s) in "
        "`prepare`",
        RLIMIT),
    NodeAilment(
        "few processes", _limit("Max processes", LEAST_PROCESSES,
                                "a user may have {value:.0f} processes"),
        "launchers and libraries start threads: have it raised (ulimit -u)", RLIMIT),
    NodeAilment(
        "few open files", _limit("Max open files", LEAST_FILES,
                                 "a process may have {value:.0f} files open"),
        "a rank needs about one for each rank that it talks to: raise it (ulimit -n) in `prepare`",
        RLIMIT),
    NodeAilment(
        "a limit of files' size", _limit("Max file size", float("inf"),
                                         "a file may have {value:.0f} bytes"),
        "images and outputs may be larger: have it raised (ulimit -f)", RLIMIT),
    NodeAilment(
        "a limit of memory for a process", _limit("Max address space", float("inf"),
                                                  "a process may use {value:.0f} bytes"),
        "Apptainer alone reserves more than 1 GB, and programs what they need: have it raised "
        "(ulimit -v)", RLIMIT),
)  # fmt: skip

CLOCKS = NodeAilment(
    "clocks that differ", lambda _node, _site: None, "munge refuses messages that are off by five "
    "minutes, and start-up times are off by as much as the clocks: have chrony or ntpd run there",
    "https://github.com/dun/munge/wiki/Man-7-munge")  # fmt: skip
UNLIKE = NodeAilment(
    "nodes that differ", lambda _node, _site: None, "a launch is as slow as its slowest node: have "
    "them made alike, or name nodes that are alike in `access`; make run CHECKS=NodeRates says how "
    "much they differ",
    "https://docs.kernel.org/admin-guide/pm/cpufreq.html")  # fmt: skip


def ailing(node: NodeFacts, site: Mapping[str, Any]) -> Iterator[Ailing]:
    """Yield what ails a node of a site, by what it shows of itself."""
    for one in AILMENTS:
        if what := one.shows(node, site):
            yield Ailing(node.name, one, what)


def ailing_together(found: Iterable[NodeFacts], began_s: float, ended_s: float) -> Iterator[Ailing]:
    """Yield what ails nodes beside each other, which were looked at between two times here."""
    governors: dict[str, str] = {}
    for node in found:
        now = node.number("/time")
        if now is not None and not began_s - CLOCKS_S <= now <= ended_s + CLOCKS_S:
            by = now - (began_s if now < began_s else ended_s)
            yield Ailing(node.name, CLOCKS, f"its clock is off by {by:+.0f} s from here")
        for path in (f"{nodes.PROCESSOR}/scaling_governor", nodes.HUGE_PAGES):
            governors.setdefault(path, said := node.word(path) or "not known")
            if governors[path] != said:
                what = f"{path.rpartition('/')[2]} is {said}, and {governors[path]} on others"
                yield Ailing(node.name, UNLIKE, what)
