"""A place in which programs are played: what they print is made up, and they take no time."""

from pathlib import Path

from costs.places import Place
from tests.reframe_checks.conftest import pingpong
from tests.reframe_checks.rates import dgemm, stream
from tests.reframe_checks.test_communicating import output, result
from tests.reframe_checks.test_nas import summary
from tests.reframe_checks.test_no_vacuous_pass import hpl
from tests.reframe_checks.test_su3 import simulation


def option(command: list[str], name: str, default: str) -> str:
    return command[command.index(name) + 1] if name in command else default


class Played(Place):
    """Keeps the commands that it is asked for, and makes a profile where it is told to."""

    def __init__(self, folder: Path) -> None:
        super().__init__([], {}, folder)
        self.commands: list[list[str]] = []

    def run(self, command: list[str]) -> tuple[str, float]:
        """Return what a program would print, and a time that grows from start to start."""
        self.commands.append(command)
        if "profiled" in command:
            (self.folder / "profile.jsonl").touch()
        return self.printed(command), 0.1 * len(self.commands)

    def printed(self, command: list[str]) -> str:
        """Return what a program would print."""
        ranks = int(option(command, "-n", "1"))
        seconds = 1e-5 * (1 + 0.01 * len(self.commands))
        if "pingpong" in command:
            sizes = [command[place + 1] for place, word in enumerate(command) if word == "--sizes"]
            return pingpong(tuple(map(int, sizes)), seconds)
        if "halo" in command:
            return output([result("halo", "isend-irecv", 8192, seconds)], "halo")
        if "collective" in command:
            times = [result("bcast", "", size, seconds) for size in (8, 1024)]
            return output(times, "collective")
        if "dgemm" in command:
            return dgemm(ranks=ranks)
        if "stream" in command:
            return stream(kernels=("triad",), ranks=ranks)
        if "xhpl" in command:
            return hpl()
        if "su3" in command:
            return simulation()
        for word in command:
            if word.startswith("nas_"):
                size = option(command, "--class", "S")
                hosts = " ".join(["node"] * ranks)
                return summary(word.removeprefix("nas_").upper(), size, ranks, hosts=hosts)
        assert command[0] in ("true", "hpl_dat"), command
        return ""
