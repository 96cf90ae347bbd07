"""The environment of processes that coverage leaves alone."""

import os


def unmeasured() -> dict[str, str]:
    """Return the environment without what has coverage measured in a process.

    ReFrame's start takes nearly twice as long with it, and hundreds of tests start it; campaigns on
    this machine measure it.
    """
    return {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
