"""What all tests share."""

import gc
import resource
from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests import processes
from tests.lanes import BUSY

# No time limit for an example: on a busy machine it would fail what is right.
settings.register_profile("wyeast", deadline=None)
settings.load_profile("wyeast")


# What is left of a pytest that was killed is known by it: `make test` ends that (tests/lanes.py).
processes.mark()

# What is loaded with the tests stays to the end: looked through again and again it would be garbage
# in vain.
gc.disable()


def pytest_collection_finish() -> None:
    """Have what garbage there will be looked for among what the tests make."""
    gc.collect()
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Have one worker run a file's real tests: its fixtures make what they share only once.

    Those of programs built by hand are apart: what is built for them all workers share. Those that
    look at reports do so at the same ones. The cluster is started after what measures on this
    machine.
    """
    items.sort(key=lambda item: item.get_closest_marker("cluster") is not None)
    for item in items:
        together = item.get_closest_marker("real") or item.get_closest_marker("browser")
        folder = item.path.parent.name
        if together and folder != "benchmarks":
            shared = folder if folder == "report" else item.path.name
            item.add_marker(pytest.mark.xdist_group(shared))


#: How many seconds of the processors this process had had before a test.
HAD_BEFORE = pytest.StashKey[float]()


def busy_s() -> float:
    """Return this process' seconds of the processors, with all that was waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used) + processes.taken_apart_s


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    """Begin to count, also what is made for a test."""
    item.stash[HAD_BEFORE] = busy_s()
    yield


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    """Put into the record of a test what it took of the processors: the lanes list it."""
    try:
        yield
    finally:
        item.user_properties.append((BUSY, f"{busy_s() - item.stash[HAD_BEFORE]:.2f}"))


@pytest.fixture(autouse=True)
def ends_with_its_test(request: pytest.FixtureRequest) -> Iterator[None]:
    """End what a real test has started and left, as one does that fails: it would starve the next.

    Orphans too, as the launch of a campaign that it has killed, which may wait busily for ever.
    What fixtures of a wider scope have started is there before it, and stays. Orphans are not
    waited for here but by the lanes: LAM's launches would wait in vain for daemons that are
    zombies.
    """
    if not any(request.node.get_closest_marker(name) for name in ("real", "cluster")):
        yield
        return
    before = processes.children()
    own = processes.mark(request.node.nodeid)
    yield
    processes.mark()
    processes.end_with_descendants(processes.children() - before)
    processes.end_marked(own.__eq__)
