"""What the job user of the cluster gets of root's, and what it can do to it."""

import fcntl
import grp
import os
import pty
import pwd
import select
import struct
import subprocess
import termios
import time

import pytest

from cluster import accounts
from tests.cluster.conftest import CLUSTER, PROJECT, Cluster, control
from tests.unmeasured import unmeasured

pytestmark = pytest.mark.cluster
SECRET = "a secret of root's"
SECRETS = ("AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "SSH_AUTH_SOCK", "ANYTHING_ELSE")


class Terminal:
    """A terminal as a person has one, with a command of the cluster's in its foreground."""

    def __init__(self, *words: str) -> None:
        self.seen = ""
        self.master, self.slave = pty.openpty()
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 77, 0, 0))
        self.process = subprocess.Popen(
            ["setsid", "--ctty", *CLUSTER, "exec", "--", *words],
            cwd=PROJECT, env={**unmeasured(), "PYTHONPATH": str(PROJECT)},
            stdin=self.slave, stdout=self.slave, stderr=self.slave,
        )  # fmt: skip

    def read_until(self, words: str, seconds: float = 300) -> None:
        deadline = time.monotonic() + seconds
        while words not in self.seen:
            assert time.monotonic() < deadline, self.seen
            if select.select([self.master], [], [], 0.2)[0]:
                self.seen += os.read(self.master, 4096).decode(errors="replace")

    def type(self, words: str) -> None:
        os.write(self.master, words.encode())

    def waiting(self) -> bytes:
        """Return what the shell that started the command would read next, as if typed."""
        os.set_blocking(self.slave, False)
        mode = termios.tcgetattr(self.slave)
        mode[3] &= ~termios.ICANON
        termios.tcsetattr(self.slave, termios.TCSANOW, mode)
        try:
            return os.read(self.slave, 4096)
        except BlockingIOError:
            return b""

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.master)
        os.close(self.slave)


def test_no_secret_of_roots_shell_reaches_a_job(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in SECRETS:
        monkeypatch.setenv(name, SECRET)
    monkeypatch.setenv("WYEAST_TIER", "paper")
    # What a job gets, srun passes on.
    said = cluster.execute("env; srun env")
    assert SECRET not in said and said.count("WYEAST_TIER=paper\n") == 2
    assert said.count("USER=wyeast\n") >= 2 or PROJECT.stat().st_uid


INJECTION = """
import fcntl, os, termios
for place in (0, 1, 2, "/dev/tty"):
    try:
        terminal = os.open(place, os.O_RDWR) if isinstance(place, str) else place
        for letter in b"touch injected\\n":
            fcntl.ioctl(terminal, termios.TIOCSTI, bytes([letter]))
    except OSError:
        pass
print("on", os.ttyname(0), "in", os.getsid(0) == os.getpid(), flush=True)
"""


def test_the_job_user_types_nothing_into_roots_terminal(cluster: Cluster) -> None:
    terminal = Terminal("python3", "-c", INJECTION)
    try:
        terminal.read_until("in True")
        assert terminal.process.wait(300) == 0
        assert terminal.waiting() == b""
        assert f"on {os.ttyname(terminal.slave)} " not in terminal.seen
    finally:
        terminal.close()
    without = control("exec", "--", "sh", "-c", ": </dev/tty")
    assert without.returncode and "/dev/tty" in without.stderr


def test_the_clusters_shell_is_one_to_work_in(cluster: Cluster) -> None:
    terminal = Terminal("sh")
    try:
        terminal.type("stty size; echo $((6 * 7)) of $USER\n")
        terminal.read_until("42 of ")
        assert "33 77" in terminal.seen
        # What prints is the command itself: a shell that has printed may not yet have given the
        # terminal to what it starts next, and Ctrl-C would be for the shell alone.
        terminal.type("sh -c 'echo began; exec sleep 1000'\n")
        # It may stand behind the prompt, which comes late where the line was typed early.
        terminal.read_until("began\r\n")
        terminal.type("\x03")
        terminal.read_until("^C")
        terminal.type("echo $((6 * 9)) goes on\n")
        terminal.read_until("54 goes on")
        terminal.type("exit 3\n")
        assert terminal.process.wait(300) == 3
    finally:
        terminal.close()


def test_a_command_ends_with_the_one_that_started_it(cluster: Cluster) -> None:
    process = subprocess.Popen(
        [*CLUSTER, "exec", "--", "sh", "-c", "echo ready; exec sleep 1234"],
        cwd=PROJECT, env={**unmeasured(), "PYTHONPATH": str(PROJECT)},
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None and process.stdout.readline() == b"ready\n"
    process.kill()
    process.wait()
    # Its end comes when nobody holds the pipe any more.
    ended, _, _ = select.select([process.stdout], [], [], 300)
    left = cluster.execute("pkill -KILL -f '^sleep 1234$' && echo left", user="root", check=False)
    assert ended and process.stdout.read() == b"" and "left" not in left


def test_the_users_are_nobody_on_the_machine(cluster: Cluster) -> None:
    for user in ("", accounts.GUEST_USER):
        number = int(cluster.execute("id -u", user=user))
        assert number in accounts.users(PROJECT).values()
        if number == PROJECT.stat().st_uid:
            continue
        with pytest.raises(KeyError):
            pwd.getpwuid(number)
        with pytest.raises(KeyError):
            grp.getgrgid(number)


@pytest.mark.skipif(PROJECT.stat().st_uid != 0, reason="the checkout is the job user's own")
def test_what_the_job_user_may_write_is_not_what_root_writes(cluster: Cluster) -> None:
    mine = "runs/20260101T000000Z-virtual-test-mine"
    attacks = (
        "ln -s ../x .wyeast/locks/trap", "rm -f .wyeast/locks/cluster", "touch .wyeast/x",
        "mv runs/sample.tar.gz runs/other", "touch .wyeast/cluster/x", "touch Makefile",
        "mv .wyeast/cluster/home/wyeast .wyeast/cluster/home/other",
    )  # fmt: skip
    for attack in attacks:
        said = cluster.execute(f"{attack} && echo managed", check=False)
        assert "denied" in said or "not permitted" in said, (attack, said)
        assert "managed" not in said, attack
    assert "fine" in cluster.execute(f"mkdir {mine} && mv {mine} {mine}2 && echo fine")
    refused = cluster.execute("mkdir runs/20260101T000000Z-guest", user="guest", check=False)
    assert "denied" in refused
