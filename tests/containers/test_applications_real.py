"""Applications in the images as built: their answers, and their profiles."""

from pathlib import Path

import pytest

from containers import images
from records.npb import read_npb_output
from records.profile import Profile, impossible_time, lost_message, read_profile
from records.program_output import read_program_output
from records.su3 import Su3Result
from tests.containers.built_images import (
    INTEL,
    LAM,
    PROJECT,
    inside,
    inside_one,
    launch_of,
    started,
)

pytestmark = pytest.mark.real


def profile_of(mpi_image: Path, tmp_path: Path, *program: str, prepare: str = "true") -> Profile:
    """Run two ranks of a program, as it is, with a profile; return that."""
    options = images.labels(mpi_image)
    words = [options["org.wyeast.mpiexec"], *options["org.wyeast.mpiexec.pinned"].split(),
             "-n", "2", "profiled", "--output", "profile.jsonl", *program]  # fmt: skip
    done = inside(mpi_image, "sh", "-c", f"cd {tmp_path} && {prepare} && {' '.join(words)}")
    assert done.returncode == 0, done.stderr
    assert "wyeast_profile" not in done.stderr
    profile = read_profile(tmp_path / "profile.jsonl")
    assert profile.header.program == program[0] and profile.header.ranks == 2
    assert impossible_time(profile) is None and lost_message(profile) is None
    return profile


def functions_of(profile: Profile, rank: int) -> dict[str, int]:
    return {one.function: one.calls for one in profile.functions if one.rank == rank}


def test_foreign_programs_are_profiled_as_they_are(mpi_image: Path, tmp_path: Path) -> None:
    netpipe = ["NPmpi", "-u", "64", "-p", "0", "-n", "10", "-o", "out"]
    profile = profile_of(mpi_image, tmp_path, *netpipe)
    assert functions_of(profile, 0)["MPI_Send"] > 10 and functions_of(profile, 1)["MPI_Recv"] > 10
    prepare = "hpl_dat --p 1 --q 2 --n 500 --nb 64 > HPL.dat"
    profile = profile_of(mpi_image, tmp_path, "xhpl", prepare=prepare)
    assert "MPI_Send" in functions_of(profile, 0) and "MPI_Recv" in functions_of(profile, 1)
    # HPL sends panels of the matrix, of which a column has 500 doubles.
    assert max(max(one.at_least_bytes) for one in profile.sizes) > 64 * 8 * 64


def test_su3_is_profiled_in_every_image(mpi_image: Path, tmp_path: Path) -> None:
    profile = profile_of(mpi_image, tmp_path, *SU3)
    first, second = (functions_of(profile, rank) for rank in (0, 1))
    # Each trajectory exchanges borders a message at a time, and both ranks do the same.
    assert first["MPI_Ssend"] == first["MPI_Irecv"] == second["MPI_Ssend"] > 5
    messages = {(one.from_, one.to) for one in profile.matrix if one.kind == "message"}
    assert messages == {(0, 1), (1, 0)}


@pytest.mark.parametrize("of", ["mpich-5.0.2", INTEL])
def test_intel_s_benchmarks_are_profiled_as_they_are(of: str, _built: None, tmp_path: Path) -> None:
    command = ["IMB-MPI1", "-iter", "10", "-msgsize", "64", "pingpong", "alltoall"]
    profile = profile_of(images.verify(PROJECT, of), tmp_path, *command)
    assert {"MPI_Send", "MPI_Recv", "MPI_Alltoall"} <= set(functions_of(profile, 0))
    sizes = {one.function: one.at_least_bytes for one in profile.sizes if one.rank == 0}
    assert sizes["MPI_Send"] == [64] and sizes["MPI_Alltoall"] == [128]


def test_lam_s_own_calls_are_not_counted(lam: Path, tmp_path: Path) -> None:
    """Its collective operations call functions for messages by their public names."""
    command = ["collective", "--operation", "bcast", "--sizes", "64", "--iterations", "5"]
    profile = profile_of(lam, tmp_path, *command)
    assert profile.header.library == "LAM/MPI 7.1.4"
    assert not {"MPI_Send", "MPI_Isend", "MPI_Recv"} & set(functions_of(profile, 0))
    assert not [one for one in profile.matrix if one.kind == "message"]


def test_linpack_is_solved(mpi_image: Path, tmp_path: Path) -> None:
    options = images.labels(mpi_image)
    command = [options["org.wyeast.mpiexec"], *options["org.wyeast.mpiexec.pinned"].split()]
    run = " ".join([*command, "-n", "2", "xhpl"])
    script = f"cd {tmp_path} && hpl_dat --p 1 --q 2 --n 500 --nb 64 > HPL.dat && {run}"
    done = inside(mpi_image, "sh", "-c", script)
    assert done.returncode == 0, done.stderr
    assert "PASSED" in done.stdout and "1 tests completed and passed" in done.stdout


RATES = ["dgemm --n 100", "stream --array-bytes 80000", "linpack --n 50", "linpack --n 10"]


def test_rates_of_a_node(mpi_image: Path, tmp_path: Path) -> None:
    """Small blocks too: LAM has a malloc of its own, which must get back what it gave."""
    commands = [launch_of(mpi_image, 2, *program.split(), "--iterations", "2") for program in RATES]
    for done in inside_one(mpi_image, tmp_path, commands):
        assert done.returncode == 0 and '"record":"end"' in done.stdout, (done.args, done.stderr)


SU3 = ["su3", *(word for side in "xyzt" for word in (f"--n{side}", "4")), "--trajectories", "5"]


def test_su3_finds_the_same_field_in_every_image(mpi_image: Path, tmp_path: Path) -> None:
    """By two ranks and by one: random numbers belong to sites, whatever the MPI."""
    found = []
    for done in (started(mpi_image, *SU3), started(mpi_image, *SU3, ranks=1)):
        assert done.returncode == 0, done.stderr
        (tmp_path / "out").write_text(done.stdout)
        [result] = read_program_output(tmp_path / "out").results
        assert isinstance(result, Su3Result)
        found.append(result)
    both, one = found
    assert (both.ranks, one.ranks) == (2, 1)
    assert both.moved_bytes == both.verified_bytes > 0 == one.moved_bytes
    assert both.plaquettes == pytest.approx(one.plaquettes, rel=0, abs=1e-12)
    assert both.unitarity_deviation < 1e-13


def test_su3_by_the_neighbourhood_s_calls_is_a_sentence_where_they_lack(
    mpi: str, mpi_image: Path
) -> None:
    command = [*SU3, "--exchange", "neighbourhood"]
    if mpi != LAM:
        done = started(mpi_image, *command)
        assert done.returncode == 0 and '"record":"end"' in done.stdout, done.stderr
        return
    # Of each rank, not only what the launcher passes on.
    done = started(mpi_image, "sh", "-c", f"{' '.join(command)}; echo exit code $?")
    assert done.stdout.splitlines() == ["exit code 2"] * 2
    said = [line for line in done.stderr.splitlines() if line.startswith("su3: ")]
    assert said == ["su3: --exchange neighbourhood: this MPI has no such calls"], done.stderr


#: (benchmark, ranks): the last two need a square.
BENCHMARKS = {"EP": 2, "IS": 2, "CG": 2, "MG": 2, "FT": 2, "LU": 2, "SP": 1, "BT": 1}


def test_nas_benchmarks_verify_in_every_image(mpi_image: Path, tmp_path: Path) -> None:
    commands = [
        launch_of(mpi_image, ranks, f"nas_{name.lower()}", "--class", "S")
        for name, ranks in BENCHMARKS.items()
    ]
    for name, done in zip(BENCHMARKS, inside_one(mpi_image, tmp_path, commands), strict=True):
        assert done.returncode == 0, done.stderr
        (tmp_path / "out").write_text(done.stdout)
        run = read_npb_output(tmp_path / "out")
        assert (run.benchmark, run.problem_class, run.processes) == (name, "S", BENCHMARKS[name])
        assert run.verified and not run.wrong
