"""`make test` runs what is alike with two MPIs with one of them; `make test-long`, with each."""

import argparse
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.benchmarks.conftest import built
from tests.lanes import LANES, PROJECT
from tests.one_library import LIBRARIES, chosen

NAMES = st.lists(st.text(min_size=1), unique=True, max_size=30)


@given(NAMES)
def test_each_test_of_a_file_has_one_library_and_two_tests_have_both(names: list[str]) -> None:
    found = chosen(names)
    assert [*found] == names and {*found.values()} <= {*LIBRARIES}
    assert len(names) < 2 or {*found.values()} == {*LIBRARIES}
    assert chosen(names[::-1]) == found


@given(NAMES)
def test_a_new_test_leaves_all_others_where_they_are_but_the_one_that_was_moved(
    names: list[str],
) -> None:
    before, after = chosen(names[1:]), chosen(names)
    assert sum(before[name] != after[name] for name in before) <= 1


def test_about_half_have_each_and_today_s_choice_is_tomorrow_s() -> None:
    found = chosen([f"tests/benchmarks/test_some.py::test_{number}" for number in range(1000)])
    counts = Counter(found.values())
    assert all(450 < counts[library] < 550 for library in LIBRARIES)
    # A digest is not Python's hash, which each process has its own of.
    assert [found[f"tests/benchmarks/test_some.py::test_{number}"] for number in range(4)] == [
        LIBRARIES[place] for place in TODAY
    ]


#: Of the first four.
TODAY = (1, 0, 1, 1)


def test_the_libraries_are_those_of_the_fixture() -> None:
    assert tuple(built._fixture_function_marker.params or ()) == LIBRARIES


def test_only_make_test_of_everything_chooses(tmp_path: Path) -> None:
    for lane in LANES:
        for is_long, tests in ((False, []), (True, []), (False, ["tests/test_lanes.py"])):
            options = argparse.Namespace(long=is_long, tests=tests)
            assert ("tests.one_library" in lane.command(options, tmp_path, tmp_path)) == (
                not is_long and not tests
            )


#: A file in which the first two tests are alike with both, and others are not.
TESTS = """
import pytest
@pytest.fixture(params={libraries})
def built(request): return request.param
@pytest.fixture
def watched(built): return built
def test_one(built): pass
@pytest.mark.parametrize("size", [1, 2, 3])
def test_sizes(size, watched): pass
@pytest.mark.each_library
def test_what_differs(built): pass
@pytest.mark.long
def test_at_length(built): pass
@pytest.mark.measures
def test_of_another_lane(built): pass
@pytest.mark.parametrize("built", ["{libraries[0]}"], indirect=True)
def test_with_a_single_one(built): pass
def test_of_none(): pass
"""


@pytest.mark.parametrize("how", [[], ["-n2"]], ids=["by itself", "by workers"])
def test_nothing_is_lost_and_nothing_is_run_twice(tmp_path: Path, how: list[str]) -> None:
    for name in ("a", "b"):
        (tmp_path / f"test_{name}.py").write_text(TESTS.format(libraries=LIBRARIES))

    def ran(*words: str) -> tuple[Counter[str], str]:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", "-c", "/dev/null",
             f"--rootdir={tmp_path}", "-W", "ignore", *how, *words, str(tmp_path)],
            capture_output=True, text=True, cwd=PROJECT,
            env={**os.environ, "PYTHONPATH": str(PROJECT)},
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        lines = [line.split() for line in done.stdout.splitlines() if " PASSED" in f" {line}"]
        names = [word for words in lines for word in words if "::" in word]
        assert f"{len(names)} passed" in done.stdout
        return Counter(names), done.stdout

    one, two = ["-p", "tests.one_library"], ["-m", "not long and not measures"]
    chosen_ones, said = ran(*one, *two)
    each, said_of_each = ran()
    assert "left to make test-long, with the other MPI: 8 tests" in said
    assert "left to make" not in said_of_each
    # Of each file two tests that differ by the library: with one; with each; with one of one.
    assert len(each) == 2 * 16 and len(chosen_ones) == 2 * (4 + 2 + 1 + 1)
    assert {*each.values(), *chosen_ones.values()} == {1} and {*chosen_ones} <= {*each}
    # What another lane runs is chosen with the same rule, among all tests of the file.
    of_other, said_of_other = ran(*one, "-m", "measures")
    assert len(of_other) == 2 and "with the other MPI: 2 tests" in said_of_other
    of_all = [*chosen_ones, *of_other]
    assert {*map(without, of_all)} == {without(test) for test in each if "at_length" not in test}
    for name in ("a", "b"):
        of_file = [test for test in of_all if f"test_{name}.py" in test]
        for library in LIBRARIES:
            ones = [test for test in of_file if library in test and "single" not in test]
            differ = ["differs" in test for test in ones]
            assert differ.count(True) == 1 and False in differ


def without(test: str) -> str:
    """Return a test's name without its library."""
    for library in LIBRARIES:
        test = test.replace(library, "*")
    return test
