"""What a machine has is not what one process of it may use."""

import os
import subprocess
import sys

import pytest

from site_configs.processor import detected_processors

WORDS = "from site_configs.processor import detected_processors; print(detected_processors())"


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="this machine has one processor")
def test_a_process_on_one_processor_sees_the_machine() -> None:
    one = min(os.sched_getaffinity(0))
    done = subprocess.run(
        ["taskset", "--cpu-list", str(one), sys.executable, "-c", WORDS],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert int(done.stdout) == detected_processors() > 1
