"""A pytest plugin, `-p tests.one_library`: what is asserted alike with two MPIs runs with one.

`make test` has it; `make test-long`, and tests that are asked for by name, run with each. Tests
that are about what libraries differ in have the marker `each_library`, and always do.
"""

from collections.abc import Iterator, Sequence
from hashlib import sha256

import pytest

#: The parameters of the fixture `built` (tests/benchmarks/conftest.py).
LIBRARIES = ("openmpi-5.0.11", "mpich-5.0.2")
#: How many tests an xdist worker has left out, among what it tells the process that started it.
LEFT = "left_to_test_long"


def chosen(tests: Sequence[str]) -> dict[str, str]:
    """Return the library of each of a file's tests, by their names without it.

    By a digest of the name, so that a new test leaves the others where they are; where all had the
    same library, the test with the largest digest gets the other one.
    """
    digests = {name: sha256(name.encode()).digest() for name in tests}
    found = {name: LIBRARIES[digest[0] % 2] for name, digest in digests.items()}
    if len(found) > 1 and len(set(found.values())) == 1:
        last = max(digests, key=lambda name: digests[name])
        found[last] = LIBRARIES[1 - LIBRARIES.index(found[last])]
    return found


def library_of(item: pytest.Item) -> str | None:
    """Return the library that an item would run with, if it is one of those that differ by it."""
    call = getattr(item, "callspec", None)
    library = call.params.get("built") if call else None
    if library is None or any(map(item.get_closest_marker, ("each_library", "long"))):
        return None
    assert library in LIBRARIES, library
    return str(library)


def left_out(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Return those of a collection's items that run with the library that was not chosen."""
    of_files: dict[str, dict[str, dict[str, pytest.Item]]] = {}
    for item in items:
        if library := library_of(item):
            tests = of_files.setdefault(item.nodeid.partition("::")[0], {})
            tests.setdefault(item.nodeid.replace(library, "*"), {})[library] = item
    out = []
    for tests in of_files.values():
        # One that has been collected with a single library has no other to be run with.
        both = [name for name, items_of in tests.items() if len(items_of) == len(LIBRARIES)]
        for name, library in chosen(both).items():
            out += [item for of, item in tests[name].items() if of != library]
    return out


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> Iterator[None]:
    """Choose among all that was collected, so that every lane does alike, and count a lane's own.

    The others do their part in between: what a lane's markers leave out is not ours to count.
    """
    out = {*left_out(items)}
    yield
    ours = [item for item in items if item in out]
    items[:] = [item for item in items if item not in out]
    config.hook.pytest_deselected(items=ours)
    config.stash[COUNTED] = len(ours)
    if hasattr(config, "workeroutput"):
        config.workeroutput[LEFT] = len(ours)


COUNTED = pytest.StashKey[int]()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: object) -> None:
    """Keep what a worker has counted; each has collected the same."""
    config, told = node.config, getattr(node, "workeroutput", {})  # type: ignore[attr-defined]
    config.stash[COUNTED] = max(config.stash.get(COUNTED, 0), told.get(LEFT, 0))


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Say how many were left out, in lanes that have such tests."""
    if number := config.stash.get(COUNTED, 0):
        terminalreporter.write_line(f"left to make test-long, with the other MPI: {number} tests")
