"""What the kernel says of a process, whatever that calls itself."""

import subprocess
import sys

import pytest

from cluster.box import status_of

#: Calls itself so, and waits.
CALLED = """
import ctypes, os, sys
assert ctypes.CDLL(None).prctl(15, os.fsencode(sys.argv[1])) == 0
print(flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("name", [b"\xff\xfe", b"a\rPid:\t1", b"a\x1cPid:\t1", b"a b"])
def test_a_process_may_have_any_name(name: bytes) -> None:
    command = [sys.executable.encode(), b"-c", CALLED.encode(), name]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin and process.stdout and process.stdout.readline()
        found = status_of(process.pid, "Pid")
        process.stdin.close()
    assert found == [process.pid]
