"""A command with all that it starts: what it leaves ends with it.

`python -m tests.processes COMMAND …`; each lane of the tests is one.
"""

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path

from records import processes

PROJECT = Path(__file__).resolve().parents[1]
#: Linux's prctl: what we get when our parent dies; and orphans of our children become ours, and not
#: init's.
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
#: The variable by which what tests have started is known, also once its parents have died: of which
#: checkout, by which pytest, in which test.
MARK = "WYEAST_TESTED_BY"
#: How often what is left is looked for until nothing is: one that is killed may be starting more.
MOST_LOOKS = 200
#: Seconds of the processors that are a test's own, of processes for which another one waited
#: (tests/reframe_checks/forked.py).
taken_apart_s = 0.0


def become_subreaper() -> None:
    """Have orphans of this process' children become its own children, and not init's."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)


def end_with_parent(number: int) -> None:
    """Have this process get a signal when the one that has started it dies."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, number)


def be_interruptible() -> None:
    """Have a command end at an interrupt, whatever shell in the background it is started from."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def run(command: list[str]) -> int:
    """Run a command; return its exit code.

    Orphans that end meanwhile are waited for, as init would: else they were still to be seen. What
    tells us to end interrupts the command, which then ends what it has begun.
    """
    process = subprocess.Popen(command, preexec_fn=be_interruptible)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: os.killpg(0, signal.SIGINT))
    while True:
        pid, status = os.wait()
        if pid == process.pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            return process.returncode


def children(process: int | str = "self") -> set[int]:
    """Return a process' children, of all its threads; none of one that is gone."""
    found = set()
    for path in Path(f"/proc/{process}/task").glob("*/children"):
        # A thread may end while we look; its children go to another one.
        with suppress(OSError):
            found |= {int(child) for child in path.read_text().split()}
    return found


def end_with_descendants(roots: Collection[int]) -> None:
    """End children of this process with what they have started, but for what is an orphan."""
    for process in roots:
        tree, held = {process}, set[int]()
        # Held first, so that nothing is started that was not seen.
        while new := tree - held:
            for one in new:
                with suppress(OSError):
                    os.kill(one, signal.SIGSTOP)
            held |= new
            tree |= {child for one in new for child in children(one)}
        for one in tree:
            with suppress(OSError):
                os.kill(one, signal.SIGKILL)
        with suppress(OSError):
            os.waitpid(process, 0)


def mark(test: str = "") -> str:
    """Mark what is started from now on as of these tests, or of one of them; return the mark."""
    os.environ[MARK] = f"{PROJECT}|{processes.named(os.getpid())}|{test}"
    return os.environ[MARK]


def marked(fits: Callable[[str], bool]) -> set[int]:
    """Return the processes that have a mark that fits, and all in their sessions or below them.

    These may have no variables of ours, as ranks in containers. Neither this process is among them
    nor what has started it.
    """
    parents, sessions, found = {}, {}, set[int]()
    for place in processes.PROC.glob("[0-9]*"):
        # Another user's, or one that ended while we looked.
        with suppress(OSError, ValueError, IndexError):
            pid = int(place.name)
            state, parent, _, session = processes.stat_of(pid)[:4]
            if state in "ZX":
                continue
            parents[pid], sessions[pid] = int(parent), int(session)
            words = (place / "environ").read_bytes().split(b"\0")
            told = [word for word in words if word.startswith(f"{MARK}=".encode())]
            if told and fits(os.fsdecode(told[0]).partition("=")[2]):
                found.add(pid)
    own = {os.getpid()}
    while above := {parents[pid] for pid in own if pid in parents} - own:
        own |= above
    led = {session for pid, session in sessions.items() if pid in found}
    # One that something else leads, as a shell, is not all ours.
    led = {one for one in led if one in found or one not in parents} - {os.getsid(0)}
    found |= {pid for pid, session in sessions.items() if session in led}
    while below := {pid for pid, parent in parents.items() if parent in found} - found - own:
        found |= below
    return found - own


def end_marked(fits: Callable[[str], bool]) -> list[str]:
    """End the processes that have a mark that fits, and all that is theirs; return their names."""
    names = dict[int, str]()
    for _ in range(MOST_LOOKS):
        left = marked(fits)
        if not left:
            break
        names |= {pid: processes.name_of(pid) for pid in left - names.keys()}
        processes.end(left)
        time.sleep(0.02)
    return sorted(names.values())


def is_abandoned(mark: str) -> bool:
    """Return whether a mark is of this checkout's tests, and of a pytest that is no more."""
    project, _, rest = mark.partition("|")
    owner = rest.partition("|")[0]
    if project != str(PROJECT):
        return False
    for pid, began in processes.known([owner]).items():
        with suppress(OSError, ValueError, IndexError):
            return processes.started(processes.stat_of(pid)) != began
    return True


def end_what_is_left(stay: Collection[int] = ()) -> list[str]:
    """End the processes that a lane has left, and those that these leave; return their names.

    A rank that looks for messages without rest would take a processor from the lanes that come.
    Those that are to stay do, and those that we may not end.
    """
    names, stays = [], set(stay)
    while left := children() - stays:
        for child in left:
            with suppress(OSError):
                state = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[0]
                if state != "Z":
                    name = Path(f"/proc/{child}/comm").read_text().strip()
                    try:
                        os.kill(child, signal.SIGKILL)
                    except PermissionError:
                        names.append(f"{name} (process {child} may not be ended, and stays)")
                        stays.add(child)
                        continue
                    names.append(name)
                os.waitpid(child, 0)
    return names


def main() -> int:
    """Run the command, end what it has left, and say what that was; return its exit code.

    An interrupt is the command's to answer: whoever has the terminal sends it to both.
    """
    end_with_parent(signal.SIGTERM)
    become_subreaper()
    code = run(sys.argv[1:])
    if left := end_what_is_left():
        print(f"processes that were left, ended: {', '.join(left)}", flush=True)
    # As a shell says it where a signal has ended the command.
    return 128 - code if code < 0 else code


if __name__ == "__main__":
    sys.exit(main())
