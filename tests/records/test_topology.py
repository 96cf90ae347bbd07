"""What two ranks have in common, by hand."""

import pytest

from records.base import Header
from records.communication import Topology
from records.topology import Nearness

#: Two packages of two cores of two threads; each core has its caches, each package an L3 cache.
TWO_PACKAGES = Topology.model_validate({
    "record": "result", "operation": "topology", "host": "a", "objects": [
        {"kind": "core", "processors": ["0,4", "1,5", "2,6", "3,7"]},
        {"kind": "L2 cache", "processors": ["0,4", "1,5", "2,6", "3,7"]},
        {"kind": "L3 cache", "processors": ["0-1,4-5", "2-3,6-7"]},
        {"kind": "package", "processors": ["0-1,4-5", "2-3,6-7"]},
    ],
})  # fmt: skip


def header(hosts: list[str], processors: list[list[int]]) -> Header:
    return Header.model_validate({
        "record": "header", "format": "wyeast-records-2", "program": "pairs",
        "program_version": "1.0.0", "library": "one", "mpi_standard": "4.0", "ranks": len(hosts),
        "hosts": hosts, "processors": processors, "clock": "CLOCK_MONOTONIC", "clock_tick_s": 1e-9,
        "clock_resolution_s": 1e-8, "started_utc": "2026-01-01T00:00:00Z", "parameters": {},
        "mpi_wtime": None,
    })  # fmt: skip


@pytest.mark.parametrize(
    ("processors", "common"),
    [
        ([[0], [4]], "core"), ([[0], [1]], "L3 cache"), ([[0], [2]], "host"),
        # One that may run anywhere is nowhere in particular.
        ([[0], [0, 1, 2, 3]], "host"), ([[0, 4], [1]], "L3 cache"), ([[], [1]], None),
    ],
)  # fmt: skip
def test_the_smallest_thing_that_has_both(processors: list[list[int]], common: str | None) -> None:
    near = Nearness([TWO_PACKAGES], ["a", "a", "b"])
    assert near.to_the_first(header(["a", "a"], processors)) == [common]
    # A host like the one that is listed is not listed again.
    assert near.to_the_first(header(["b", "b"], processors)) == [common]
    assert near.to_the_first(header(["a", "b"], processors)) == ["network"]


def test_a_host_is_like_the_one_before_and_an_unknown_one_like_none() -> None:
    flat = TWO_PACKAGES.model_copy(update={"host": "c", "objects": []})
    near = Nearness([TWO_PACKAGES, flat], ["a", "b", "c", "d"])
    for host, common in (("a", "core"), ("b", "core"), ("c", "host"), ("d", "host"), ("e", None)):
        assert near.to_the_first(header([host, host], [[0], [4]])) == [common]
    assert near.nearest_and_farthest(header(["e", "e"], [[0], [4]])) is None
    assert Nearness([], ["a"]).to_the_first(header(["a", "a"], [[0], [4]])) == [None]


def test_the_nearest_and_the_farthest() -> None:
    near = Nearness([TWO_PACKAGES], ["a", "b"])
    four = header(["a", "a", "a", "b"], [[0], [1], [4], [0]])
    assert near.nearest_and_farthest(four) == ("core", "network")
    assert near.nearest_and_farthest(header(["a"], [[0]])) is None
    assert near.nearest_and_farthest(header(["a", "a"], [[0], []])) is None
