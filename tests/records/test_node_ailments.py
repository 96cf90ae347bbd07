"""What ails a node, by what it shows: each ailment is provoked, and a sound node has none."""

import subprocess
from collections.abc import Mapping
from typing import Any

import pytest

from records.node_ailments import (
    AILMENTS,
    CLOCKS,
    COMMAND,
    UNLIKE,
    ailing,
    ailing_together,
    node_facts,
)

SITE = {"cores_per_node": 4, "memory_bytes_per_node": 16 * 10**9}
GOVERNOR = "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"
PAGES = "/sys/kernel/mm/transparent_hugepage/enabled"
THREADS = "/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"
LIMITS = """\
Limit                     Soft Limit           Hard Limit           Units
Max address space         {space} unlimited            bytes
Max file size             {size} unlimited            bytes
Max stack size            {stack} unlimited            bytes
Max processes             {processes} 62867                processes
Max open files            {files} 1048576              files
Max locked memory         {locked} unlimited            bytes"""
#: What a sound node shows: four cores of two threads each.
SOUND: dict[str, str] = {
    "/proc/sys/kernel/hostname": "n1",
    # A rank is bound to a processor of its own when it looks.
    "/proc/self/status": "Name:\tsh\nCpus_allowed_list:\t0",
    "/proc/loadavg": "0.20 0.10 0.05 1/200 4000",
    "/proc/meminfo": "MemTotal: 16000000 kB\nMemAvailable: 15000000 kB\nSwapTotal: 1000000 kB\n"
    "SwapFree: 1000000 kB",
    "/proc/sys/kernel/yama/ptrace_scope": "0",
    "/proc/sys/user/max_user_namespaces": "60000",
    "/proc/sys/kernel/numa_balancing": "1",
    "/sys/devices/system/node/has_cpu": "0",
    PAGES: "always [madvise] never",
    GOVERNOR: "performance",
    **{THREADS.format(cpu): f"{cpu % 4},{cpu % 4 + 4}" for cpu in range(8)},
    "/sys/fs/cgroup/slurm/job_1/cpu.max": "max 100000",
    "/sys/fs/cgroup/slurm/job_1/memory.max": "max",
    "/sys/fs/cgroup/slurm/job_1/cpuset.cpus.effective": "0-7",
    "/sys/fs/cgroup/slurm/cpu.max": "max 100000",
    "/time": "1000000",
    "/room/dev/shm": "Filesystem 1024-blocks Used Available Capacity Mounted on\n"
    "tmpfs 8000000 0 8000000 0% /dev/shm",
    "/room/tmp": "/dev/sda1 90000000 0 80000000 1% /",
    "/ports": "mlx5_0",
    "/verbs": "uverbs0",
}
SOUND_LIMITS = {"size": "unlimited", "stack": "8388608", "processes": "62867", "files": "1024",
                "locked": "unlimited", "space": "unlimited"}  # fmt: skip


def told(changes: Mapping[str, str] = SOUND, limits: Mapping[str, str] = SOUND_LIMITS) -> str:
    of_process = {"/proc/self/limits": LIMITS.format(**{**SOUND_LIMITS, **limits})}
    parts = {**SOUND, **of_process, **changes}
    return "\n".join(f"==> {name} <==\n{text}\n" for name, text in parts.items())


def found(text: str, site: dict[str, Any] = SITE) -> dict[str, str]:
    return {one.ailment.name: one.sentence for one in ailing(node_facts(text), site)}


def test_a_sound_node_has_no_ailment() -> None:
    assert found(told()) == {}
    # What cannot be read is nobody's fault.
    assert found("") == {} and found("==> /proc/loadavg <==\nnonsense\n") == {}


#: For each ailment, what shows it, and words of its sentence.
PROVOKED: dict[str, tuple[dict[str, str], str]] = {
    "little shared memory": ({"/room/dev/shm": "tmpfs 65536 60000 5536 92% /dev/shm"},
                             "/dev/shm has 64.0 MiB, of which 5.4 are free"),
    "full /tmp": ({"/room/tmp": "/dev/sda1 90000000 1 50000 1% /"}, "/tmp has 48.8 MiB free"),
    "no verbs in the container": ({"/verbs": ""}, "has mlx5_0, and no /dev/infiniband is seen"),
    "fewer processors than said": ({"/sys/fs/cgroup/slurm/job_1/cpuset.cpus.effective": "0"},
                                   "a job has 1 processor, and `cores_per_node` is 4"),
    "hyper-threads for cores": (
        {"/sys/fs/cgroup/slurm/job_1/cpuset.cpus.effective": "0-1,4-5"}, "hyper-threads of 2 cores"
    ),
    "a quota of processors' time": ({"/sys/fs/cgroup/slurm/cpu.max": "150000 100000"},
                                    "gives a job 1.5 processors' time, not 4"),
    "a limit of memory": (
        {"/sys/fs/cgroup/slurm/job_1/memory.max": "1000000000"}, "a job 1000000000 bytes"
    ),
    "little free memory": (
        {"/proc/meminfo": "MemTotal: 16000000 kB\nMemAvailable: 1000000 kB"}, "1.0 GB of memory"),
    "swapped out": ({"/proc/meminfo": "MemTotal: 16000000 kB\nMemAvailable: 15000000 kB\n"
                     "SwapTotal: 1000000 kB\nSwapFree: 500000 kB"}, "0.5 GB are swapped out"),
    "clock that changes": ({GOVERNOR: "powersave"}, "governor is powersave"),
    "no huge pages": ({PAGES: "always madvise [never]"}, "transparent huge pages are off"),
    "pages that move": ({"/sys/devices/system/node/has_cpu": "0-1"}, "between NUMA nodes"),
    "no reading of others' memory": ({"/proc/sys/kernel/yama/ptrace_scope": "2"}, "scope is 2"),
    "no user namespaces": ({"/proc/sys/user/max_user_namespaces": "0"}, "namespaces is 0"),
    "another's load": ({"/proc/loadavg": "3.50 2.00 1.00 5/200 4000"}, "kept 3.5 processors busy"),
}  # fmt: skip
OF_LIMITS: dict[str, tuple[dict[str, str], str]] = {
    "little locked memory": ({"locked": "8388608"}, "may lock 8.0 MiB of memory, and the node has"),
    "a small stack": ({"stack": "1000000"}, "the stack may have 1000000 bytes"),
    "few processes": ({"processes": "100"}, "a user may have 100 processes"),
    "few open files": ({"files": "256"}, "may have 256 files open"),
    "a limit of memory for a process": ({"space": "4000000000"}, "may use 4000000000 bytes"),
    "a limit of files' size": ({"size": "1000000"}, "a file may have 1000000 bytes"),
}


@pytest.mark.parametrize("name", [*PROVOKED, *OF_LIMITS])
def test_each_ailment_alone_is_seen_when_it_is_provoked(name: str) -> None:
    changes, words = PROVOKED.get(name) or ({}, "")
    limits, of_limit = OF_LIMITS.get(name) or ({}, "")
    said = found(told(changes, limits))
    assert list(said) == [name]
    assert said[name].startswith("n1: ") and (words or of_limit) in said[name]


def test_every_ailment_is_provoked_above_and_has_its_source() -> None:
    assert {one.name for one in AILMENTS} == {*PROVOKED, *OF_LIMITS}
    for one in (*AILMENTS, CLOCKS, UNLIKE):
        assert one.helps and one.source.startswith("https://")


def test_a_clock_is_off_where_it_shows_a_time_outside_of_the_look() -> None:
    nodes = [node_facts(told({"/proc/sys/kernel/hostname": name, "/time": str(time)}))
             for name, time in (("n1", 1000), ("n2", 1010), ("n3", 1042), ("n4", 900))]  # fmt: skip
    said = {one.node: one.what for one in ailing_together(nodes, 1000.5, 1012.0)}
    assert set(said) == {"n3", "n4"}
    assert "off by +30 s" in said["n3"] and "off by -100 s" in said["n4"]


def test_nodes_that_differ_are_named() -> None:
    nodes = [node_facts(told({"/proc/sys/kernel/hostname": name, GOVERNOR: governor}))
             for name, governor in (("n1", "performance"), ("n2", "schedutil"))]  # fmt: skip
    [one] = ailing_together(nodes, 1e6, 1e6)
    assert one.node == "n2" and one.ailment is UNLIKE
    assert one.what == "scaling_governor is schedutil, and performance on others"


def test_this_machine_tells_what_is_looked_for() -> None:
    """For real: the shell's words work, and what they print is understood."""
    done = subprocess.run(["sh", "-c", COMMAND], capture_output=True, text=True)
    assert done.stderr == ""
    node = node_facts(done.stdout)
    assert node.word("/proc/sys/kernel/hostname") and node.granted() and node.number("/time")
    assert node.limit("Max open files") and node.memory("MemTotal") and node.room("/tmp")


def test_a_limit_of_a_process_is_seen_for_real() -> None:
    script = f"ulimit -Sn 256; ulimit -Ss 4096; {COMMAND}"
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True)
    assert {"few open files", "a small stack"} <= set(found(done.stdout))
