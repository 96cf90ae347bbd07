"""The lattice gauge code: its dynamics, exactness, and errors by the sentence."""

import json
import math
import subprocess
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from records.program_output import read_program_output
from records.su3 import Su3Proof, Su3Result
from tests.benchmarks.conftest import PROJECT, Built, Sanitized
from tests.benchmarks.test_programs import SCHEMA

pytestmark = pytest.mark.real
FEW = ["--trajectories", "2", "--steps", "4"]
#: Divided by 1, 2, 3, 4 and 6 ranks.
SIDES = (4, 4, 6, 12)
ROUNDING = 1e-12


def lattice(*sides: int) -> list[str]:
    return [word for name, n in zip("xyzt", sides, strict=True) for word in (f"--n{name}", str(n))]


def records(built: Built, *arguments: str, ranks: int = 1, folder: Path | None = None) -> Any:
    """Run su3 and return its one result, checked against schema and reader."""
    done = built.run("su3", *arguments, ranks=ranks, folder=folder)
    assert done.returncode == 0, done.stderr
    for line in done.stdout.splitlines():
        SCHEMA.validate(json.loads(line))
    # Not in the folder of the build, which another test may be copying.
    with tempfile.TemporaryDirectory() as own:
        path = Path(own) / "out"
        path.write_text(done.stdout)
        [result] = read_program_output(path).results
    return result


def su3(built: Built, *arguments: str, ranks: int = 1, folder: Path | None = None) -> Su3Result:
    result = records(built, *arguments, ranks=ranks, folder=folder)
    assert isinstance(result, Su3Result)
    return result


def proof(built: Built, *arguments: str, ranks: int = 1) -> float:
    result = records(built, *arguments, ranks=ranks)
    assert isinstance(result, Su3Proof)
    return result.deviation


@pytest.fixture(scope="module", autouse=True)
def ordinary_code(one: Built) -> None:
    """Build the ordinary code too, which is no part of what is installed."""
    done = one.make("su3_naive")
    assert done.returncode == 0 and "warning" not in done.stderr, done.stderr


def violations(built: Built, integrator: str, steps: tuple[int, ...]) -> list[float]:
    """Return the energy violations from a cold start over half a unit of time."""
    return [
        su3(
            built, *lattice(4, 4, 4, 4), "--trajectories", "1", "--integrator", integrator,
            "--steps", str(n), "--step-size", str(0.5 / n),
        ).delta_h[0]
        for n in steps
    ]  # fmt: skip


def test_energy_violation_falls_as_the_step_squared(one: Built) -> None:
    found = violations(one, "leapfrog", (5, 10, 20, 40, 80))
    # Another program's, from other random numbers (4^4, beta 5.6): the size agrees.
    assert [abs(v) for v in found] == pytest.approx([72.23, 17.99, 4.493, 1.1230, 0.28073], rel=0.1)
    ratios = [coarse / fine for coarse, fine in pairwise(found)]
    assert ratios == pytest.approx([4.016, 4.004, 4.001, 4.0002], rel=3e-3)


@pytest.mark.parametrize(("integrator", "order"), [("omelyan", 2), ("omelyan4", 4)])
def test_order_of_omelyan(one: Built, integrator: str, order: int) -> None:
    *_, coarse, fine = violations(one, integrator, (5, 10, 20, 40))
    assert coarse / fine == pytest.approx(2**order, rel=0.03)


def test_numbers_belong_to_sites_and_not_to_ranks(built: Built) -> None:
    arguments = [*lattice(*SIDES), *FEW, "--start", "hot"]
    alone = su3(built, *arguments)
    assert alone.moved_bytes == 0
    for ranks, grids in {
        2: ["", "2x1x1x1", "1x2x1x1", "1x1x2x1"],
        3: [""],
        4: ["2x2x1x1", "1x2x2x1", "1x1x1x4", "2x1x1x2", "4x1x1x1"],
        6: ["1x1x3x2"],
    }.items():
        for grid in grids:
            options = ["--grid", grid] if grid else []
            found = su3(built, *arguments, *options, ranks=ranks)
            assert math.prod(found.grid) == ranks and found.moved_bytes > 0
            assert found.plaquettes == pytest.approx(alone.plaquettes, rel=0, abs=ROUNDING)
            assert found.delta_h == pytest.approx(alone.delta_h, rel=0, abs=1e-8)


@pytest.mark.parametrize("exchange", ["ssend-irecv", "isend-irecv", "persistent", "neighbourhood"])
def test_every_exchange_brings_the_same(built: Built, exchange: str) -> None:
    arguments = [*lattice(*SIDES), *FEW, "--grid", "1x2x1x2", "--start", "hot"]
    found = su3(built, *arguments, "--exchange", exchange, ranks=4)
    assert found.exchange == exchange and min(found.exchange_by_rank_s) > 0
    # 288 own sites; ahead y and t: 144 and 48 of 4 links. Behind: 3 links, and one of each edge, of
    # which x and z have 36 and (where there are borders) those between y and t 24 sites.
    sites = SIDES[0] * 2 * SIDES[2] * 6
    layers = sites // 2 + sites // 6
    edges = 2 * sites // 12 + sites // 2 // 4 + sites // 6 // 4
    assert found.moved_bytes == 4 * (7 * layers + edges) * 18 * 8
    alone = su3(built, *arguments[:-4], "--start", "hot")
    assert found.plaquettes == pytest.approx(alone.plaquettes, rel=0, abs=ROUNDING)


def test_grid_of_least_surface(one: Built) -> None:
    assert su3(one, *lattice(4, 4, 4, 16), *FEW, ranks=4).grid == [1, 1, 1, 4]
    assert su3(one, *lattice(8, 8, 4, 4), *FEW, ranks=4).grid in ([2, 2, 1, 1], [1, 4, 1, 1])
    # x, along which vectors lie, is divided last.
    assert su3(one, *lattice(4, 4, 4, 4), *FEW, ranks=2).grid == [1, 1, 1, 2]


def test_borders_that_are_copied_before_their_links_move_are_refused(
    one: Built, tmp_path: Path
) -> None:
    """They are the rank's own, so that no exchange mends them."""
    move = "                NAME(move_chunk)(f, one, mu, step);\n"
    copied = "b->from.extent[1], b->from.extent[0]);\n            }\n"
    late = f"{copied}            for (const chunk *one = c; one < end; one++)\n{move}"
    changed = one.with_another(tmp_path, "su3/kernels_template.h", (move, ""), (copied, late))
    made = changed.make("-j2", f"{changed.build}/bin/su3")
    assert made.returncode == 0 and "warning" not in made.stderr, made.stderr
    for ranks, precision in ((1, "double"), (2, "single")):
        options = [*lattice(4, 4, 4, 4), *FEW, "--precision", precision]
        done = changed.run("su3", *options, ranks=ranks)
        assert done.returncode == 1 and '"end"' not in done.stdout
        assert "has a border that did not move with its links" in done.stderr


@pytest.mark.parametrize("precision", ["double", "single"])
@pytest.mark.parametrize(("name", "ranks"), [("reversibility", 2), ("gauge", 2), ("gauge", 1)])
def test_proofs(one: Built, precision: str, name: str, ranks: int) -> None:
    deviation = proof(
        one, *lattice(*SIDES), "--check", name, "--warm-ups", "3", "--precision", precision,
        "--start", "hot", "--integrator", "omelyan4", ranks=ranks,
    )  # fmt: skip
    # Sums may agree to the last digit; the program sees to it that links were transformed.
    assert 0 <= deviation < (1e-13 if precision == "double" else 2e-5)
    assert deviation > 0 or name == "gauge"


def test_links_that_do_not_move_prove_no_reversibility(one: Built) -> None:
    """Whatever the code does, they come back: the deviation is that of a proof that failed."""
    still = ["--step-size", "1e-300", "--check", "reversibility", "--start", "hot"]
    assert proof(one, *lattice(4, 4, 4, 4), *still) == 1.0


def test_single_precision_follows_double(one: Built) -> None:
    arguments = [*lattice(*SIDES), *FEW, "--start", "hot"]
    double = su3(one, *arguments)
    single = su3(one, *arguments, "--precision", "single", ranks=2)
    assert single.plaquettes == pytest.approx(double.plaquettes, rel=0, abs=1e-6)
    assert single.plaquettes != double.plaquettes
    assert 1e-9 < single.unitarity_deviation < 1e-5


def test_every_vector_unit_calculates_the_same(one: Built) -> None:
    arguments = [*lattice(*SIDES), *FEW, "--start", "hot"]
    portable = su3(one, *arguments, "--instructions", "portable")
    assert portable.instructions == "portable"
    for unit in ("avx2", "avx512"):
        done = one.run("su3", *arguments, "--instructions", unit, ranks=1)
        if "this processor lacks them" in done.stderr:
            continue
        found = su3(one, *arguments, "--instructions", unit)
        assert found.plaquettes == pytest.approx(portable.plaquettes, rel=0, abs=ROUNDING)


def test_an_ordinary_code_finds_the_same(one: Built) -> None:
    """A second program, without vectors and ranks, agrees to rounding."""
    sides = lattice(2, 4, 6, 4)
    options = ["--trajectories", "3", "--steps", "10", "--step-size", "0.01", "--seed", "7"]
    done = subprocess.run(
        [one.build / "bin/su3_naive", *sides, *options],
        capture_output=True, text=True, timeout=600, check=True,
    )  # fmt: skip
    naive = json.loads(done.stdout)
    found = su3(one, *sides, *options, ranks=2)
    assert found.plaquettes == pytest.approx(naive["plaquettes"], rel=0, abs=ROUNDING)
    assert found.site_updates == naive["site_updates"]


def test_seed_decides(one: Built) -> None:
    arguments = [*lattice(4, 4, 4, 4), *FEW]
    first, again = su3(one, *arguments), su3(one, *arguments)
    assert first.plaquettes == again.plaquettes
    # The upper half of the seed counts as well.
    seeds = ("1", "2", str(1 + 2**32))
    assert len({su3(one, *arguments, "--seed", seed).plaquettes[0] for seed in seeds}) == 3


@pytest.mark.parametrize("precision", ["double", "single"])
def test_restart_goes_on_bit_for_bit(one: Built, tmp_path: Path, precision: str) -> None:
    arguments = [*lattice(*SIDES), "--steps", "4", "--accept", "--precision", precision]
    whole = su3(one, *arguments, "--trajectories", "5", "--warm-ups", "1", ranks=2)
    first = su3(
        one, *arguments, "--trajectories", "2", "--warm-ups", "1", "--checkpoint", "field",
        ranks=2, folder=tmp_path,
    )  # fmt: skip
    rest = su3(
        one, *arguments, "--trajectories", "3", "--restart", "field", ranks=2, folder=tmp_path
    )
    assert first.plaquettes + rest.plaquettes == whole.plaquettes
    assert first.delta_h + rest.delta_h == whole.delta_h
    assert rest.first_trajectory == 3
    # Other ranks may go on: the same to rounding.
    alone = su3(
        one, *arguments, "--trajectories", "3", "--restart", "field", ranks=1, folder=tmp_path
    )
    assert alone.plaquettes == pytest.approx(rest.plaquettes, rel=0, abs=ROUNDING)
    assert [path.name for path in tmp_path.iterdir()] == ["field"], "nothing is left aside"


def test_messages_of_a_checkpoint_have_bytes_that_an_int_counts(one: Built, tmp_path: Path) -> None:
    """Each is of one row, of 4096 sites at most; a plane of such sides has too many."""
    (tmp_path / "longest.c").write_text(
        "#include <mpi.h>\n#include <stdio.h>\nstatic int longest;\n"
        "int MPI_Send(const void *b, int n, MPI_Datatype t, int to, int tag, MPI_Comm c)\n"
        "{ longest = t == MPI_BYTE && n > longest ? n : longest;\n"
        "  return PMPI_Send(b, n, t, to, tag, c); }\n"
        'int MPI_Finalize(void) { fprintf(stderr, "longest %d\\n", longest);\n'
        "  return PMPI_Finalize(); }\n"
    )
    library = tmp_path / "longest.so"
    compiler = [str(one.prefix / "bin/mpicc"), "-shared", "-fPIC", "-o", str(library)]
    subprocess.run([*compiler, tmp_path / "longest.c"], check=True)
    few = [*lattice(4, 6, 4, 4), "--trajectories", "1", "--steps", "1"]
    for option in ("--checkpoint", "--restart"):
        done = one.run("su3", *few, option, "field", folder=tmp_path, LD_PRELOAD=str(library))
        assert done.returncode == 0, done.stderr
        words = done.stderr.split()
        longest = max(int(n) for word, n in pairwise(words) if word == "longest")
        assert 0 < longest <= 4 * 4 * 18 * 8, "a row of 4 sites with 4 matrices of 18 doubles"
    assert 4096 * 4 * 18 * 8 < 2**31 < 4096 * 4096 * 4 * 18 * 8


#: What the checkpoint is of that is damaged, or that others do not fit.
OF_THE_CHECKPOINT = [*lattice(4, 4, 4, 4), "--trajectories", "1", "--steps", "1"]


@pytest.fixture(scope="module")
def checkpoint(one: Built, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Return a sound checkpoint."""
    folder = tmp_path_factory.mktemp("checkpoint")
    su3(one, *OF_THE_CHECKPOINT, "--checkpoint", "field", folder=folder)
    return (folder / "field").read_bytes()


@pytest.mark.parametrize(
    ("damage", "options", "sentence"),
    [
        (lambda b: b[:-1], [], "it is truncated or damaged"),
        (lambda b: b[:100], [], "not a checkpoint of su3"),
        (lambda b: b"", [], "not a checkpoint of su3"),
        (lambda b: b"something else\n" * 1000, [], "not a checkpoint of su3"),
        (lambda b: b[:5000] + bytes([b[5000] ^ 1]) + b[5001:], [], "its checksum is wrong"),
        (lambda b: b.replace(b"checkpoint 1", b"checkpoint 2"), [], "not a checkpoint of su3"),
        (lambda b: b.replace(b"little", b"big   "), [], "its header is damaged"),
        (lambda b: b, ["--nx", "8"], "its lattice is 4x4x4x4"),
        (lambda b: b, ["--beta", "5.5"], "its beta is 5.6"),
        (lambda b: b, ["--seed", "4294967297"], "its seed is 1"),
        (lambda b: b, ["--precision", "single"], "its precision is double"),
    ],
)
def test_bad_checkpoint_is_refused(  # type: ignore[no-untyped-def]
    one: Built, checkpoint: bytes, tmp_path: Path, damage, options: list[str], sentence: str
) -> None:
    (tmp_path / "field").write_bytes(damage(checkpoint))
    words = [*OF_THE_CHECKPOINT, *options, "--restart", "field"]
    done = one.run("su3", *words, ranks=2, folder=tmp_path)
    assert done.returncode == 1
    lines = [line for line in done.stderr.splitlines() if line.startswith("su3: ")]
    assert len(lines) == 1 and sentence in lines[0], done.stderr
    assert '"end"' not in done.stdout


def test_checkpoint_that_cannot_be_written(one: Built, tmp_path: Path) -> None:
    arguments = [*lattice(4, 4, 4, 4), "--trajectories", "1", "--steps", "1"]
    done = one.run("su3", *arguments, "--checkpoint", "no/such", ranks=2, folder=tmp_path)
    assert done.returncode == 1
    assert "su3: --checkpoint no/such: cannot be written: No such file" in done.stderr
    done = one.run("su3", *arguments, "--restart", "nothing", ranks=2, folder=tmp_path)
    assert "su3: --restart nothing: No such file" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "ranks", "sentence"),
    [
        (["--nx", "1"], 1, "--nx"),
        (["--beta", "x"], 1, "--beta"),
        (["--integrator", "euler"], 1, "--integrator euler: must be one of: leapfrog"),
        (["--exchange", "telepathy"], 1, "--exchange telepathy: must be one of: ssend-irecv"),
        (["--grid", "1x1x2"], 2, "must be four numbers, such as 1x1x2x4"),
        (["--grid", "1x1x2x1"], 1, "does not have 1 ranks"),
        (["--grid", "1x1x1x1"], 2, "has 1 ranks, and there are 2"),
        (["--grid", "3x1x1x1"], 3, "3 ranks do not divide 8 sites in x"),
        ([], 3, "3 ranks do not divide a lattice of 8x8x8x8 sites"),
        (["--trajectories", "0"], 1, "--trajectories"),
        (["--seed", "-1"], 1, "--seed"),
        (["more"], 1, "unexpected argument"),
    ],
)
def test_bad_arguments(one: Built, arguments: list[str], ranks: int, sentence: str) -> None:
    assert one.refuse("su3", arguments, ranks, sentence).stdout == ""


def test_a_step_that_is_too_long_is_not_a_result(one: Built) -> None:
    done = one.run(
        "su3", *lattice(2, 2, 2, 2), "--step-size", "1", "--beta", "1000", "--steps", "50", ranks=2
    )
    assert done.returncode == 1 and "the step is too long" in done.stderr


def test_sanitizers(sanitized_one: Sanitized, tmp_path: Path) -> None:
    arguments = [*lattice(2, 4, 6, 4), "--trajectories", "1", "--steps", "1", "--accept"]
    for options, ranks in (
        (["--checkpoint", "field", "--raw"], 2),
        (["--restart", "field", "--exchange", "persistent", "--grid", "1x2x1x2"], 4),
        (["--precision", "single", "--exchange", "neighbourhood"], 2),
        (["--precision", "single", "--instructions", "portable", "--start", "hot"], 1),
        (["--check", "gauge"], 2),
    ):
        sanitized_one.check("su3", *arguments, *options, ranks=ranks, folder=tmp_path)


def test_valgrind(one: Built, tmp_path: Path) -> None:
    # Valgrind knows no AVX-512.
    program = [
        str(one.build / "bin/su3"), *lattice(2, 4, 2, 4), "--trajectories", "1", "--steps", "1",
        "--instructions", "portable", "--checkpoint", "field",
    ]  # fmt: skip
    suppressions = PROJECT / "tests/benchmarks/valgrind.supp"
    done = one.run_command(
        ["valgrind", "-q", "--error-exitcode=9", "--undef-value-errors=no",
         f"--suppressions={suppressions}", *program],
        ranks=2, folder=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
