"""ReFrame's command line in processes forked from one that has loaded ReFrame already.

Loading it takes half of the processor time of a start, and tests start it hundreds of times. What
is loaded beforehand asks nothing of its environment, and starts no thread; our own checks and
what they import do ask, and are loaded by each process for itself. Everything else is as in a
process of its own: environment, folder, files, umask, processors, exit code. `make test-long`
starts each really.
"""

from __future__ import annotations

import atexit
import fcntl
import gc
import importlib
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from tests.lanes import REALLY
from tests.processes import MARK
from tests.unmeasured import unmeasured

PROJECT = Path(__file__).resolve().parents[2]
PROGRAM = PROJECT / "reframe_checks" / "bin" / "reframe"
#: What that runs, and what is loaded before it is forked.
MODULE = "reframe_checks.bin.guards"
LOADED = (
    "reframe.core.schedulers.local", "reframe.frontend.cli", "records.disturbance",
    "records.program_output", "records.proof", "records.schedule",
)  # fmt: skip
#: Rooms that ask their environment, when they are loaded, for what checkout and campaign to use.
ASKING = ("campaign", "containers", "reframe_checks", "site_configs")
#: What Python and C libraries ask when they begin.
ASKED_AT_BEGIN = ("PYTHON", "LC_", "LANG", "MALLOC_", "LD_")
#: The most bytes of an answer, and how many descriptors a request has at most.
ANSWER, MOST_DESCRIPTORS = 32, 16
#: How long it may take to end once nobody can ask, in s.
END_S = 20.0


def asked_at_begin(environment: Mapping[str, str]) -> dict[str, str]:
    """Return what of an environment counts when a process begins, and never again."""
    return {name: value for name, value in environment.items() if name.startswith(ASKED_AT_BEGIN)}


class Server:
    """The process that has loaded ReFrame, and what is said to it."""

    def __init__(self) -> None:
        self.environment = {**unmeasured(), "PYTHONPATH": str(PROJECT)}
        # It outlives the test that is the first to need it.
        own, _, _ = self.environment.get(MARK, "").rpartition("|")
        self.environment[MARK] = f"{own}|"
        self.channel, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with its:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.reframe_checks.forked", str(its.fileno())],
                cwd=PROJECT, env=self.environment, pass_fds=[its.fileno()],
                stdout=subprocess.DEVNULL,
            )  # fmt: skip
        atexit.register(self.end)

    def end(self) -> None:
        """End it, which it does by itself once nobody can ask."""
        self.channel.close()
        try:
            self.process.wait(END_S)
        except subprocess.TimeoutExpired:
            # It still waits for one that was asked for, by what was interrupted.
            self.process.kill()
            self.process.wait()

    def answer(self) -> int:
        """Return the number that it says next; raise RuntimeError where it has ended."""
        said = self.channel.recv(ANSWER)
        if not said:
            raise RuntimeError("what has loaded ReFrame has ended; its own message is above")
        return int(said)

    def run(
        self, request: dict[str, Any], files: Sequence[IO[str]], descriptors: Sequence[int],
        timeout: float,
    ) -> int:  # fmt: skip
        """Have it fork a process with these files; return the exit code."""
        with tempfile.TemporaryFile("w+") as asked:
            json.dump(request, asked)
            asked.seek(0)
            numbers = [asked.fileno(), *(file.fileno() for file in files), *descriptors]
            socket.send_fds(self.channel, [b"run"], numbers)
            self.channel.settimeout(None)
            pid = self.answer()
            self.channel.settimeout(timeout)
            try:
                return self.answer()
            except TimeoutError:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                self.channel.settimeout(None)
                self.answer()
                raise subprocess.TimeoutExpired(request["arguments"], timeout) from None


#: This process' own, once one was needed.
SERVERS: list[Server] = []


def server() -> Server:
    """Return this process' server; a new one where it was ended with a test's leftovers."""
    if SERVERS and SERVERS[0].process.poll() is not None:
        atexit.unregister(SERVERS[0].end)
        SERVERS.pop().end()
    if not SERVERS:
        SERVERS.append(Server())
    return SERVERS[0]


def reframe(
    arguments: Sequence[str], environment: Mapping[str, str], *, descriptors: Sequence[int] = (),
    timeout: float = 600,
) -> subprocess.CompletedProcess[str]:  # fmt: skip
    """Run this checkout's ReFrame in the checkout, with an environment and open descriptors.

    It is started really where Python or its libraries were to begin with other variables.
    """
    if REALLY in os.environ or (
        asked_at_begin(environment) != asked_at_begin(server().environment)
    ):
        return subprocess.run(
            [PROGRAM, *arguments], env=environment, cwd=PROJECT, capture_output=True, text=True,
            timeout=timeout, check=False, pass_fds=descriptors,
        )  # fmt: skip
    umask = os.umask(0)
    os.umask(umask)
    request = {
        "arguments": list(arguments),
        "environment": dict(environment),
        "umask": umask,
        "processors": sorted(os.sched_getaffinity(0)),
        "descriptors": list(descriptors),
    }
    with tempfile.TemporaryFile("w+") as stdout, tempfile.TemporaryFile("w+") as stderr:
        code = server().run(request, (stdout, stderr), descriptors, timeout)
        said = []
        for file in (stdout, stderr):
            file.seek(0)
            said.append(file.read())
    return subprocess.CompletedProcess([str(PROGRAM), *arguments], code, *said)


def begin(descriptors: list[int]) -> None:
    """Be the process that was asked for, with these descriptors: request, stdout, stderr, more."""
    with os.fdopen(descriptors[0]) as file:
        request = json.load(file)
    numbers = [1, 2, *request["descriptors"]]
    # Out of the way of the numbers that they are to have.
    above = [fcntl.fcntl(one, fcntl.F_DUPFD_CLOEXEC, max(numbers) + 1) for one in descriptors[1:]]
    for one in descriptors[1:]:
        os.close(one)
    for one, number in zip(above, numbers, strict=True):
        os.dup2(one, number)
        os.close(one)
    os.umask(request["umask"])
    os.sched_setaffinity(0, request["processors"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.argv = [MODULE, *request["arguments"]]


def serve(channel: socket.socket) -> list[int] | None:
    """Fork for each request and say how it ended; return its descriptors in what was forked."""
    while True:
        _, descriptors, _, _ = socket.recv_fds(channel, ANSWER, MOST_DESCRIPTORS)
        if not descriptors:
            return None
        if not (pid := os.fork()):
            channel.close()
            return descriptors
        for one in descriptors:
            os.close(one)
        channel.send(str(pid).encode())
        _, status = os.waitpid(pid, 0)
        channel.send(str(os.waitstatus_to_exitcode(status)).encode())


def load() -> None:
    """Load what needs no environment; raise RuntimeError where that is not all, or has threads."""
    for name in LOADED:
        importlib.import_module(name)
    asking = [name for name in sys.modules if name.partition(".")[0] in ASKING]
    threads = len(os.listdir("/proc/self/task"))
    if asking or threads > 1:
        raise RuntimeError(f"not to be forked: {threads} threads, and loaded were {asking}")
    # What is there stays: looking through it would only copy its pages.
    gc.collect()
    gc.freeze()


def main() -> None:
    """Serve until nobody asks any more, and in what is forked, run ReFrame."""
    load()
    try:
        descriptors = serve(socket.socket(fileno=int(sys.argv[1])))
    except (KeyboardInterrupt, ConnectionError):
        return
    if descriptors is not None:
        begin(descriptors)
        runpy.run_module(MODULE, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
