"""What reads files of others refuses them in a sentence: kept inputs, and some random ones."""

import random
import subprocess
import sys
from itertools import islice
from pathlib import Path

import pytest

from tests import fuzz

PROJECT = Path(__file__).resolve().parents[1]
#: Random inputs of each reader, always the same, in seconds; `make test-long` tries others.
SOME = 40


@pytest.mark.parametrize("name", fuzz.READERS)
def test_what_is_valid_is_read(name: str) -> None:
    reader = fuzz.READERS[name]
    valid = fuzz.seeds_of(reader)[0]
    with fuzz.new_folder() as folder:
        reader.read(valid, Path(folder))


@pytest.mark.parametrize("name", fuzz.READERS)
def test_kept_and_random_inputs_are_refused_in_a_sentence(name: str) -> None:
    reader = fuzz.READERS[name]
    kept = [path.read_bytes() for path in fuzz.corpus(name)]
    random_ones = islice(fuzz.inputs(reader, random.Random(f"0 {name}")), SOME)
    said = [found for data in (*kept, *random_ones) if (found := fuzz.fault(reader, data))]
    assert said == []


def test_every_kept_input_is_of_a_reader() -> None:
    assert {path.name for path in fuzz.CORPUS.iterdir()} <= fuzz.READERS.keys()


def test_a_fault_of_a_reader_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fuzzer is no check that cannot fail."""

    def careless(data: bytes, folder: Path) -> None:
        if b"schema" not in data:
            raise KeyError("schema")

    def endless(data: bytes, folder: Path) -> None:
        while True:
            pass

    def ugly(data: bytes, folder: Path) -> None:
        raise ValueError("two\nlines")

    seeds = fuzz.READERS["lock"].seeds
    found = fuzz.Reader(seeds, careless, ())
    some = islice(fuzz.inputs(found, random.Random(1)), 300)
    assert any("KeyError: 'schema'" in (fuzz.fault(found, data) or "") for data in some)
    monkeypatch.setattr(fuzz, "MOST_S", 0.05)
    assert "it took more than" in (fuzz.fault(fuzz.Reader(seeds, endless, ()), b"") or "")
    assert "no harmless sentence" in (
        fuzz.fault(fuzz.Reader(seeds, ugly, (ValueError,)), b"") or ""
    )


@pytest.mark.long
def test_random_inputs_for_a_minute_are_refused_in_a_sentence() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz", "--seconds", "60"], cwd=PROJECT, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
