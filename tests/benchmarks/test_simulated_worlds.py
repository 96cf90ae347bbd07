"""The programs on 1,024 ranks of 64 nodes, simulated by SimGrid's SMPI on the machine at hand.

What they send is real, the network and its time are not. The proof of a barrier is left out: for
each of its 64 late ranks SMPI looks through all messages that wait, which takes minutes. One_sided
does not compile there, since SMPI's headers have a name that it uses, and needs two ranks alone.
"""

import subprocess
from pathlib import Path

import pytest

from records.communication import Communication, World
from records.program_output import ProgramOutput, program_output
from tests.benchmarks.conftest import PROJECT, Built

pytestmark = [pytest.mark.real, pytest.mark.long]
NODES, OF_NODE = 64, 16
RANKS = NODES * OF_NODE
PLATFORM = f"""<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="cluster" prefix="node" suffix="" radical="0-{NODES - 1}" speed="10Gf" bw="1.25GBps"
           lat="1us"/>
</platform>
"""
HOSTS = PROJECT / "tests/benchmarks/programs/simulated_hosts.h"
TINY = ("--iterations", "1", "--warmup", "0")


class Simulated(Built):
    """The programs compiled for SimGrid."""

    def variables(self) -> list[str]:
        """Return what make is told: memory is that of the machine at hand."""
        return [f"CPPFLAGS=-DSMPI_NO_OVERRIDE_MALLOC -include {HOSTS}"]

    def output(self, program: str, *arguments: str) -> ProgramOutput:
        """Return what a program says on all ranks."""
        done = subprocess.run(
            ["smpirun", "-np", str(RANKS), "-platform", self.build / "platform.xml",
             "-hostfile", self.build / "hosts", "--log=root.thresh:error",
             self.build / "bin" / program, *arguments],
            capture_output=True, text=True, timeout=1500, check=False, cwd=self.build,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return program_output(done.stdout, Path(program))


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Simulated:
    """Return the programs, and what is simulated for them."""
    found = Simulated("smpi", Path("/usr"), tmp_path_factory.mktemp("simulated"))
    names = ("preflight", "collective", "some_to_some")
    done = subprocess.run(
        ["make", "-j2", "-C", PROJECT / "benchmarks", "CC=smpicc", f"BUILD={found.build}",
         *found.variables(), *(f"{found.build}/bin/{name}" for name in names)],
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (found.build / "platform.xml").write_text(PLATFORM)
    (found.build / "hosts").write_text("".join(f"node{n}:{OF_NODE}\n" for n in range(NODES)))
    return found


def test_a_preflight_proves_each_of_1024_ranks(simulated: Simulated) -> None:
    output = simulated.output("preflight", "--ranks", str(RANKS), "--hosts", str(NODES), *TINY[:2])
    [world] = [one for one in output.results if isinstance(one, World)]
    assert (world.ranks, world.distinct_hosts) == (RANKS, NODES)


def test_1024_ranks_communicate_and_check_what_they_get(simulated: Simulated) -> None:
    asked = ["bcast", "allreduce-sum", "gatherv", "alltoall"]
    words = [word for name in asked for word in ("--operation", name)]
    output = simulated.output("collective", *words, *TINY)
    found = [one for one in output.results if isinstance(one, Communication)]
    assert output.header.ranks == RANKS and [one.operation for one in found] == asked


def test_1024_ranks_exchange_random_messages(simulated: Simulated) -> None:
    output = simulated.output("some_to_some", "--most-bytes", "100", *TINY)
    assert output.header.ranks == RANKS and len(set(output.header.hosts)) == NODES
    assert output.results
