"""What control groups leave a process of its machine, in both versions of them."""

from pathlib import Path

import pytest

from site_configs.processor import detected_memory
from site_configs.quota import Quota, quota


def machine(root: Path, groups: str, files: dict[str, str]) -> Path:
    """A machine's files: which groups a process is in, and what stands in theirs."""
    for name, text in {"proc/self/cgroup": groups, **files}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"{text}\n")
    return root


@pytest.mark.parametrize(
    ("groups", "files", "expected"),
    [
        ("0::/", {}, Quota()),
        ("0::/user/job", {"user/job/cpu.max": "max 100000", "user/job/memory.max": "max"}, Quota()),
        ("0::/user/job", {"user/job/cpu.max": "50000 100000"}, Quota(0.5)),
        # What is above holds, too.
        ("0::/user/job", {"user/job/cpu.max": "400000 100000", "user/cpu.max": "150000 100000",
                          "user/memory.max": "4000000000"}, Quota(1.5, 4_000_000_000)),
        # Of a container that sees its own group as the first one.
        ("0::/../elsewhere", {"cpu.max": "200000 100000"}, Quota(2.0)),
        ("4:memory:/job\n3:cpu,cpuacct:/job\n0::/", {
            "memory/job/memory.limit_in_bytes": "1000000000",
            "cpu,cpuacct/job/cpu.cfs_quota_us": "25000",
            "cpu,cpuacct/job/cpu.cfs_period_us": "100000",
        }, Quota(0.25, 1_000_000_000)),
        ("1:cpu:/", {"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, Quota()),
        ("1:cpu:/", {"cpu/cpu.cfs_quota_us": "1", "cpu/cpu.cfs_period_us": "0"}, Quota()),
        ("", {}, Quota()),
    ],
)  # fmt: skip
def test_the_least_of_all_groups_holds(
    groups: str, files: dict[str, str], expected: Quota, tmp_path: Path
) -> None:
    files = {f"sys/fs/cgroup/{name}": text for name, text in files.items()}
    assert quota(machine(tmp_path, groups, files)) == expected


def test_what_is_less_than_the_machine_is_said() -> None:
    assert Quota().sentences(2, 10**9) == []
    assert Quota(2.0, 10**9).sentences(2, 10**9) == []
    half, memory = Quota(0.5, 10**9).sentences(2, 4 * 10**9)
    assert "the time of 0.5 of 2 cores" in half and "1 of 4 GB of memory" in memory


def test_the_memory_that_is_detected_is_what_there_may_be(tmp_path: Path) -> None:
    files = {"sys/fs/cgroup/memory.max": "1048576"}
    assert detected_memory(machine(tmp_path, "0::/", files)) == 1048576
