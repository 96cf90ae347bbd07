"""Programs built as libraries, which ranks that are started once run one after the other.

Valgrind takes seconds for each start of an MPI, and a tenth of that for what a program does.
"""

import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.benchmarks.conftest import PROJECT, Built

STARTER = PROJECT / "tests/benchmarks/programs/one_start.c"
#: What a function calls of its own program stays there, as in a program.
AS_LIBRARY = "-shared -Wl,-Bsymbolic"


class Libraries(Built):
    """The programs of another build, compiled by its flags into libraries."""

    def __init__(self, programs: Built) -> None:
        """Keep them beside that build."""
        build = programs.build.with_name(f"libraries-{programs.build.name}")
        flags = f"{programs.flags} -fPIC"
        super().__init__(programs.implementation, programs.prefix, build, flags)
        self.build.mkdir(exist_ok=True)
        self.others = [word for word in programs.variables() if not word.startswith("CFLAGS=")]

    def variables(self) -> list[str]:
        """Return what make is told of the compiler's options."""
        return [*super().variables(), *self.others, f"LDFLAGS={AS_LIBRARY}"]

    def run_each(
        self, runs: Sequence[Sequence[str]], folder: Path, ranks: int = 2,
        before: Sequence[str] = (), **environment: str,
    ) -> subprocess.CompletedProcess[str]:  # fmt: skip
        """Start ranks once, in a folder, for several programs, each with its arguments.

        Exit code 0 has them all: each ended with that, having begun and ended MPI once. A name with
        a slash is that of a library of the test's own.
        """
        paths = {words[0]: self.build / "bin" / words[0] for words in runs}
        if own := sorted({str(path) for name, path in paths.items() if "/" not in name}):
            self.has(*own)
        starter = folder / "one_start"
        subprocess.run(
            [self.prefix / "bin/mpicc", "-std=c11", "-Wall", "-Wextra", "-Werror",
             *self.flags.split(), "-rdynamic", "-o", starter, STARTER, "-ldl"],
            check=True,
        )  # fmt: skip
        command = [str(starter)]
        for name, *arguments in runs:
            command += [*(["--"] if command[1:] else []), str(paths[name]), *arguments]
        return self.run_command([*before, *command], ranks, folder, **environment)

    def check(self, runs: Sequence[Sequence[str]], folder: Path, ranks: int = 2) -> None:
        """Run programs built for the sanitizers; fail unless all end well and these find nothing.

        What the MPI keeps until the process ends is no leak of ours.
        """
        done = self.run_each(runs, folder, ranks, ASAN_OPTIONS="detect_leaks=0")
        assert done.returncode == 0, done.stderr
        assert "runtime error" not in done.stderr and "Sanitizer" not in done.stderr
