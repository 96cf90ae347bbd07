"""What all tests share."""

import pytest
from hypothesis import settings

# No time limit for an example: on a busy machine it would fail what is right.
settings.register_profile("wyeast", deadline=None)
settings.load_profile("wyeast")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Have one worker run a file's real tests: its fixtures make what they share only once.

    Those of programs built by hand are apart: what is built for them all workers share.
    """
    for item in items:
        together = item.get_closest_marker("real") or item.get_closest_marker("browser")
        if together and item.path.parent.name != "benchmarks":
            item.add_marker(pytest.mark.xdist_group(item.path.name))
