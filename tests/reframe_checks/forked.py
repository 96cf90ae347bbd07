"""Programs of Python in processes forked from one that has loaded what they import already.

ReFrame's command line is one: loading it takes half of the processor time of a start, and tests
start it hundreds of times. What is loaded beforehand asks its environment for nothing of ours, and
starts no thread; our own checks ask for their checkout and their campaign, and are loaded by each
process for itself.
Everything else is as in a process of its own: environment, folder, files, umask, processors, exit
code. `make test-long` starts each really.
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
from dataclasses import asdict, dataclass, field
from pathlib import Path
from unittest import mock

from tests import processes
from tests.lanes import REALLY
from tests.processes import MARK
from tests.unmeasured import unmeasured

PROJECT = Path(__file__).resolve().parents[2]
PROGRAM = PROJECT / "reframe_checks" / "bin" / "reframe"
#: What that runs.
MODULE = "reframe_checks.bin.guards"
#: What is loaded before a module is forked, by that.
LOADED = {
    MODULE: (
        "reframe.core.schedulers.flux", "reframe.core.schedulers.local",
        "reframe.core.schedulers.lsf", "reframe.core.schedulers.oar",
        "reframe.core.schedulers.pbs", "reframe.core.schedulers.sge",
        "reframe.core.schedulers.slurm", "reframe.frontend.cli", "containers.sif_objects",
        "containers.table", "records.disturbance", "records.node_ailments",
        "records.program_output", "records.proof", "records.references", "records.schedule",
        "records.start_up", "site_configs.processor", "site_configs.references_file",
        "site_configs.site_file",
    ),
    "tests.campaign.played_reframe": (
        "records.budget", "records.schedule", "tests.whole_records",
    ),
}  # fmt: skip
#: What variables of ours begin with, of which nothing that is loaded beforehand may depend.
OURS = ("WYEAST_", "RFM_", "SITE", "TIER")
#: What Python and C libraries ask when they begin.
ASKED_AT_BEGIN = ("PYTHON", "LC_", "LANG", "MALLOC_", "LD_")
#: The most bytes of an answer, and how many descriptors a request has at most.
ANSWER, MOST_DESCRIPTORS = 32, 16
#: How long it may take to end once nobody can ask, in s.
END_S = 20.0


def asked_at_begin(environment: Mapping[str, str]) -> dict[str, str]:
    """Return what of an environment counts when a process begins, and never again."""
    return {name: value for name, value in environment.items() if name.startswith(ASKED_AT_BEGIN)}


def umask() -> int:
    """Return which permissions this process' files lack."""
    found = os.umask(0)
    os.umask(found)
    return found


@dataclass(frozen=True)
class Request:
    """What a process that is to be forked has, besides its files."""

    arguments: list[str]
    folder: str
    environment: dict[str, str]
    descriptors: list[int]
    umask: int = field(default_factory=umask)
    processors: list[int] = field(default_factory=lambda: sorted(os.sched_getaffinity(0)))


class Server:
    """The process that has loaded what a module imports, and what is said to it."""

    def __init__(self, module: str) -> None:
        self.environment = {**unmeasured(), "PYTHONPATH": str(PROJECT)}
        # It outlives the test that is the first to need it.
        own, _, _ = self.environment.get(MARK, "").rpartition("|")
        self.environment[MARK] = f"{own}|"
        self.channel, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with its:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.reframe_checks.forked", module, str(its.fileno())],
                cwd=PROJECT, env=self.environment, pass_fds=[its.fileno()],
                stdout=subprocess.DEVNULL,
            )  # fmt: skip
        #: What was forked last, until somebody was told how it ended.
        self.running: int | None = None
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
        """Return the number that it says next; raise RuntimeError where it has ended.

        With an exit code it says what its process took of the processors, which is no child of us.
        """
        said = self.channel.recv(ANSWER)
        if not said:
            raise RuntimeError("what is to be forked has ended; its own message is above")
        number, _, busy = said.partition(b" ")
        processes.taken_apart_s += float(busy or 0)
        return int(number)

    def begin(self, request: Request, files: Sequence[int], descriptors: Sequence[int]) -> int:
        """Have it fork a process with these files for its output; return which.

        One that nobody waited for, as one whose campaign could not go on, ends before.
        """
        if self.running is not None:
            with suppress(subprocess.TimeoutExpired):
                self.ended(self.running, request.arguments, END_S)
        with tempfile.TemporaryFile("w+") as asked:
            json.dump(asdict(request), asked)
            asked.seek(0)
            socket.send_fds(self.channel, [b"run"], [asked.fileno(), *files, *descriptors])
        self.channel.settimeout(None)
        self.running = self.answer()
        return self.running

    def ended(self, pid: int, arguments: Sequence[str], timeout: float | None) -> int:
        """Wait for what was forked last; return its exit code, negative for a signal."""
        self.channel.settimeout(timeout)
        try:
            code = self.answer()
        except TimeoutError:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            self.channel.settimeout(None)
            self.answer()
            raise subprocess.TimeoutExpired(list(arguments), timeout or 0.0) from None
        finally:
            self.running = None
        return code


#: This process' own, once one was needed, by what it has loaded.
SERVERS: dict[str, Server] = {}


def server(module: str = MODULE) -> Server:
    """Return this process' server; a new one where it was ended with a test's leftovers."""
    if module in SERVERS and SERVERS[module].process.poll() is not None:
        atexit.unregister(SERVERS[module].end)
        SERVERS.pop(module).end()
    if module not in SERVERS:
        SERVERS[module] = Server(module)
    return SERVERS[module]


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
    request = Request(list(arguments), str(PROJECT), dict(environment), list(descriptors))
    with tempfile.TemporaryFile("w+") as stdout, tempfile.TemporaryFile("w+") as stderr:
        files = (stdout.fileno(), stderr.fileno())
        code = server().ended(server().begin(request, files, descriptors), arguments, timeout)
        said = []
        for file in (stdout, stderr):
            file.seek(0)
            said.append(file.read())
    return subprocess.CompletedProcess([str(PROGRAM), *arguments], code, *said)


class Forked:
    """A module that was forked, to a caller of subprocess.Popen as if it had been started.

    It may be asked for what campaigns ask of ReFrame, and no more.
    """

    def __init__(
        self, module: str, command: Sequence[str], folder: Path, environment: Mapping[str, str],
        descriptors: Sequence[int],
    ) -> None:  # fmt: skip
        self.args, self.server = list(command), server(module)
        self.returncode: int | None = None
        read, write = os.pipe()
        request = Request(self.args[1:], str(folder), dict(environment), list(descriptors))
        try:
            self.pid = self.server.begin(request, (write, write), descriptors)
        finally:
            os.close(write)
        self.stdout = open(read, errors="replace")  # noqa: SIM115 (as Popen has it)

    def wait(self, timeout: float | None = None) -> int:
        """Wait until it has ended; return its exit code, negative for a signal."""
        if self.returncode is None:
            self.returncode = self.server.ended(self.pid, self.args, timeout)
        return self.returncode

    def terminate(self) -> None:
        """Ask it to end."""
        if self.returncode is None:
            os.kill(self.pid, signal.SIGTERM)


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
    os.chdir(request["folder"])
    os.umask(request["umask"])
    os.sched_setaffinity(0, request["processors"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.argv = [sys.argv[0], *request["arguments"]]


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
        _, status, usage = os.wait4(pid, 0)
        busy = usage.ru_utime + usage.ru_stime
        channel.send(f"{os.waitstatus_to_exitcode(status)} {busy:.6f}".encode())


def load(module: str) -> None:
    """Load what needs no environment; raise RuntimeError where that is not all, or has threads."""
    asked = set[str]()
    kept = type(os.environ).__getitem__

    def noted(environment: os._Environ[str], name: str) -> str:
        asked.add(name)
        return kept(environment, name)

    with mock.patch.object(type(os.environ), "__getitem__", noted):
        for name in LOADED[module]:
            importlib.import_module(name)
    ours = sorted(name for name in asked if name.startswith(OURS))
    threads = len(os.listdir("/proc/self/task"))
    if ours or threads > 1:
        raise RuntimeError(f"not to be forked: {threads} threads, and asked for was {ours}")
    # What is there stays: looking through it would only copy its pages.
    gc.collect()
    gc.freeze()


def main() -> None:
    """Serve until nobody asks any more, and in what is forked, run the module."""
    module, number = sys.argv[1:]
    load(module)
    try:
        descriptors = serve(socket.socket(fileno=int(number)))
    except (KeyboardInterrupt, ConnectionError):
        return
    if descriptors is not None:
        begin(descriptors)
        runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
