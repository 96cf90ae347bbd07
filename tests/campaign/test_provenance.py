"""What a manifest says of where a campaign ran, and what it keeps to itself."""

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from campaign.provenance import (
    MOST_SAID_BYTES,
    inner_manifest,
    input_digests,
    said_by,
    variables,
    without_accounts,
)
from containers.apptainer import ImageError

PROJECT = Path(__file__).resolve().parents[2]
#: What is loaded where a campaign is measured and can change no measurement.
DECIDES_NOTHING = {
    # They provide programs, whose versions are compared.
    "containers/apt.py", "containers/programs.py",
    # They look at the file of an image, and its digest is compared.
    "containers/origin.py", "containers/passphrases.py", "containers/sif_header.py",
    "containers/sif_objects.py", "containers/sources.py", "containers/trusted_keys.py",
    # They say who may begin, and how a program ends.
    "containers/ending.py", "containers/locking.py",
    # Words for units.
    "analysis/tables/units.py",
}  # fmt: skip


def imported(path: Path) -> Iterator[Path]:
    """Yield the files of this checkout that a module imports, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.Import):
            names = [one.name for one in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{one.name}" for one in node.names)]
        for name in names:
            file = PROJECT.joinpath(*name.split(".")).with_suffix(".py")
            if file.is_file():
                yield file


def loaded_by(files: Iterable[Path]) -> set[str]:
    """Return the files that are loaded with these."""
    found: set[Path] = set()
    left = list(files)
    while left:
        if (file := left.pop()) not in found:
            found.add(file)
            left += imported(file)
    return {str(file.relative_to(PROJECT)) for file in found}


def test_all_that_is_loaded_to_measure_is_an_input_or_decides_nothing() -> None:
    checks = (PROJECT / "reframe_checks").rglob("*.py")
    of_round = loaded_by([*checks, *(PROJECT / "site_configs").glob("*.py")])
    assert "records/packs.py" in of_round
    assert of_round - DECIDES_NOTHING - set(input_digests(PROJECT, "local", False)) == set()
    of_choice = loaded_by([PROJECT / "analysis/precision/waves.py"])
    inputs = set(input_digests(PROJECT, "local", True))
    assert of_choice - DECIDES_NOTHING - inputs == set()
    assert not DECIDES_NOTHING & inputs and of_round | of_choice >= DECIDES_NOTHING


def test_variables_are_recorded_by_name_and_only_those_that_measure_by_value() -> None:
    given = {
        "OMPI_MCA_btl": "tcp,self", "UCX_TLS": "rc", "OMP_NUM_THREADS": "1", "LD_PRELOAD": "/x.so",
        "FI_PROVIDER": "tcp", "I_MPI_FABRICS": "shm", "APPTAINERENV_OMPI_MCA_pml": "ob1",
        "GLIBC_TUNABLES": "x=1", "AWS_SECRET_ACCESS_KEY": "s3", "GITHUB_TOKEN": "t",
        "HOME": "/home/alice", "SLURM_JOB_ACCOUNT": "proj42", "OLD_LD_PATH": "no", "FIRST": "x",
    }  # fmt: skip
    found = variables({"variables": ["UCX_TLS"]}, given)["environment"]
    assert list(found) == sorted(given)
    assert {name for name, value in found.items() if value is None} == {
        "AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "HOME", "SLURM_JOB_ACCOUNT", "OLD_LD_PATH",
        "FIRST",
    }  # fmt: skip
    assert found["OMPI_MCA_btl"] == "tcp,self" and found["APPTAINERENV_OMPI_MCA_pml"] == "ob1"


@pytest.mark.parametrize(
    ("option", "kept"),
    [
        ("--account=proj42", "--account=…"), ("-A proj42", "-A …"), ("-Aproj42", "-A…"),
        ("--mail-user alice@x.org", "--mail-user …"), ("--partition=big", "--partition=big"),
        ("--qos=high", "--qos=high"),
    ],
)  # fmt: skip
def test_who_pays_is_not_recorded(option: str, kept: str) -> None:
    assert without_accounts({"access": [option], "launch": "srun"}) == {
        "access": [kept], "launch": "srun",
    }  # fmt: skip
    assert without_accounts({"launch": "srun"}) == {"launch": "srun"}


@pytest.mark.parametrize(
    ("told", "said"),
    [("{", "cannot be read"), ("[" * 3000, "nested too deeply"), ('{"a": NaN}', "not a number"),
     ("[1]", "is not a JSON object"), ('{"a": 1e999}', "not a number")],
    ids=["cut", "deep", "no number", "a list", "too large"],
)  # fmt: skip
def test_a_manifest_inside_an_image_that_is_none_is_a_sentence(told: str, said: str) -> None:
    with pytest.raises(ImageError, match=f"inside the image mpich-5.0.2 .*{said}"):
        inner_manifest("mpich-5.0.2", told)


def test_a_manifest_inside_an_image_moves_no_cursor() -> None:
    assert inner_manifest("x", '{"a": "\\u001b[2J\\u202eb"}') == {"a": " \ufffdb"}


def test_a_program_that_says_too_much_has_said_nothing() -> None:
    assert said_by("head", "-c", str(2 * MOST_SAID_BYTES), "/dev/zero") is None
    assert said_by("echo", "4.2") == "4.2"
