"""What a node is and how busy it is: read at once, kept once per node, and never lost."""

import json
import os
import platform
from pathlib import Path

import pytest

from records import nodes
from records.base import CampaignError
from records.base import CampaignError as Unwritable
from records.campaign import measured_on
from tests import whole_records

SEEN = """\
==> /proc/sys/kernel/hostname <==
node1

==> /proc/sys/kernel/osrelease <==
6.1.0-13-amd64

==> /proc/loadavg <==
1.50 0.80 0.40 4/321 4711

==> /proc/cpuinfo <==
processor\t: 0
model name\t: A CPU: at 2 GHz
microcode\t: 0x2f
flags\t\t: fpu vme avx2

==> /proc/meminfo <==
MemTotal:       1000 kB
MemAvailable:    600 kB

==> /proc/self/status <==
Cpus_allowed_list:\t0-3,8

==> /sys/devices/system/node/has_cpu <==
0-1

==> /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor <==
powersave

==> /sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq <==
2100000

==> /sys/class/net/eth0/operstate <==
up

==> /sys/class/net/eth0/speed <==
10000

==> /sys/class/net/veth12/operstate <==
up
"""


def test_facts_and_conditions_of_a_node() -> None:
    facts = nodes.facts(SEEN)
    assert facts == {
        "hostname": "node1", "kernel": "6.1.0-13-amd64", "kernel_command_line": None,
        "cpu_model": "A CPU: at 2 GHz", "cpu_flags": "fpu vme avx2", "microcode": "0x2f",
        "cores": 5, "numa_nodes": 2, "memory_bytes": 1_024_000, "governor": "powersave",
        "transparent_huge_pages": None,
        "network": {"eth0": {"state": "up", "speed_mbit_per_s": "10000"}},
    }  # fmt: skip
    assert nodes.conditions(SEEN) == {
        "load_average": 1.5, "running": 3, "memory_available_bytes": 614_400, "clock_hz": 2.1e9,
    }  # fmt: skip


def test_a_processor_of_arm_is_told_by_its_numbers() -> None:
    seen = SEEN.replace("model name\t: A CPU: at 2 GHz\nmicrocode\t: 0x2f\nflags\t\t: fpu vme avx2",
                        "Features\t: fp asimd sve\nCPU implementer\t: 0x41\nCPU variant\t: 0x0\n"
                        "CPU part\t: 0xd4f\nCPU revision\t: 0")  # fmt: skip
    facts = nodes.facts(seen)
    assert facts["cpu_model"] == "Arm implementer 0x41, variant 0x0, part 0xd4f, revision 0"
    assert facts["cpu_flags"] == "fp asimd sve" and facts["microcode"] is None
    other = nodes.facts(seen.replace("0xd4f", "0xd40"))
    assert other["cpu_model"] != facts["cpu_model"]
    assert nodes.facts(seen.replace("CPU part\t: 0xd4f\n", ""))["cpu_model"] is None


@pytest.mark.parametrize(
    ("told", "kept"),
    [
        ("BOOT_IMAGE=/vmlinuz root=UUID=1-2 ro quiet mitigations=off isolcpus=managed_irq,1-3",
         "quiet mitigations=off isolcpus=managed_irq,1-3"),
        ("hugepagesz=1G hugepages=4 intel_idle.max_cstate=1 rd.luks.key=/k ip=10.0.0.2::10.0.0.1",
         "hugepagesz=1G hugepages=4 intel_idle.max_cstate=1"),
        ("quiet -- --token=x nohz=off", "quiet"), ("mem=$(id)", ""), ("a\x1b[2Jquiet", ""),
        ("quiet --", "quiet"), ("", ""), (None, None),
    ],
)  # fmt: skip
def test_only_kernel_options_that_affect_measurements_are_kept(
    told: str | None, kept: str | None
) -> None:
    assert nodes.of_kernel(told) == kept
    if told:
        seen = nodes.facts(f"==> /proc/cmdline <==\n{told}\n")
        assert seen["kernel_command_line"] == kept


def test_this_machine_is_what_python_says_of_it() -> None:
    seen = nodes.of_this_machine()
    facts = nodes.facts(seen)
    assert facts["hostname"] == platform.node() and facts["kernel"] == platform.release()
    assert facts["cores"] == len(os.sched_getaffinity(0))
    assert facts["memory_bytes"] == os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert facts["cpu_flags"]
    assert nodes.conditions(seen)["running"] is not None


def test_nothing_is_known_where_nothing_was_noted(tmp_path: Path) -> None:
    assert nodes.keep(tmp_path, "") == {} and not list(tmp_path.iterdir())
    facts = nodes.facts("")
    assert facts.pop("network") == {} and set(facts.values()) == {None}
    assert nodes.conditions("==> /proc/loadavg <==\n")["load_average"] is None


def test_a_node_is_kept_once_and_again_when_it_has_changed(tmp_path: Path) -> None:
    first = nodes.keep(tmp_path, SEEN)
    assert nodes.keep(tmp_path, SEEN.replace("1.50", "7.50")) == {**first, "load_average": 7.5}
    kept = tmp_path / first["facts"]
    assert json.loads(kept.read_text())["kernel"] == "6.1.0-13-amd64"
    assert [path.name for path in (tmp_path / "nodes").iterdir()] == [kept.name]
    other = nodes.keep(tmp_path, SEEN.replace("6.1.0-13", "6.1.0-14"))
    assert other["facts"] != first["facts"] and kept.exists()


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "nodes").write_text("a file in the way")
    with pytest.raises(Unwritable, match="cannot be written"):
        nodes.keep(tmp_path, SEEN)


def test_analysis_takes_the_nodes_that_measured_for_the_machine(tmp_path: Path) -> None:
    manifest = whole_records.manifest(
        machine={"hostname": "login", "kernel": "other", "cpu_model": None}
    )
    assert measured_on(tmp_path, manifest) is manifest
    nodes.keep(tmp_path, SEEN)
    nodes.keep(tmp_path, SEEN.replace("node1", "node2"))
    machine = measured_on(tmp_path, manifest).machine
    assert machine["hostname"] == "node1, node2" and machine["kernel"] == "6.1.0-13-amd64"
    assert machine["memory_bytes"] == 1_024_000
    (tmp_path / "nodes" / "node3-0.json").write_text("{")
    with pytest.raises(CampaignError, match=r"node3-0\.json cannot be read"):
        measured_on(tmp_path, manifest)
