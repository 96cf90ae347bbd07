"""A command with all that it starts: what it leaves ends with it.

`python -m tests.processes COMMAND …`; each lane of the tests is one.
"""

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

#: Linux's prctl: orphans of our children become ours, and not init's.
PR_SET_CHILD_SUBREAPER = 36


def become_subreaper() -> None:
    """Have orphans of this process' children become its own children, and not init's."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)


def run(command: list[str]) -> int:
    """Run a command; return its exit code.

    Orphans that end meanwhile are waited for, as init would: else they were still to be seen.
    """
    process = subprocess.Popen(command)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
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


def end_with_descendants(processes: Collection[int]) -> None:
    """End children of this process with what they have started, but for what is an orphan."""
    for process in processes:
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
    become_subreaper()
    code = run(sys.argv[1:])
    if left := end_what_is_left():
        print(f"processes that were left, ended: {', '.join(left)}", flush=True)
    # As a shell says it where a signal has ended the command.
    return 128 - code if code < 0 else code


if __name__ == "__main__":
    sys.exit(main())
