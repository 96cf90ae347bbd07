"""A ReFrame that is forked behaves as one that was started."""

import json
import os
import re
import subprocess
import sys
from typing import Any

import pytest

from tests.lanes import REALLY
from tests.processes import MARK
from tests.reframe_checks import forked
from tests.reframe_checks.conftest import StandIn

#: Times, numbers of processes and names of temporary files differ from run to run.
OF_ONE_RUN = re.compile(r"\d+|rfm[-_]\w+")


def told(stand_in: StandIn) -> tuple[int, list[str], dict[str, Any]]:
    """Return exit code, text and launch of a run without what differs from run to run."""
    outcome = stand_in.run()
    [launch] = outcome.launches
    lines = [OF_ONE_RUN.sub("", line) for line in outcome.text.splitlines()]
    kept = ("outcome", "sentence", "command", "cell", "oversubscribed", "implementation")
    return outcome.code, lines, {name: launch.get(name) for name in kept}


@pytest.mark.parametrize("code", [0, 3])
def test_it_says_and_keeps_the_same(
    code: int, stand_in: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    (stand_in.root / "code").write_text(str(code))
    forked_ones = told(stand_in)
    monkeypatch.setenv(REALLY, "1")
    monkeypatch.setattr(forked, "server", lambda: pytest.fail("a real start needs no server"))
    for folder in ("runs", "reframe"):
        subprocess.run(["rm", "-r", stand_in.root / folder], check=True)
    assert forked_ones == told(stand_in)
    assert (forked_ones[0] == 0) == (code == 0)


def test_it_has_the_environment_processors_and_descriptors_of_who_asks(stand_in: StandIn) -> None:
    """What the process says of itself, in the settings that ReFrame loads first."""
    said = stand_in.root / "said.json"
    (stand_in.root / "settings.py").write_text(
        "import json, os, pathlib, sys\nsite_configuration = {}\n"
        f"pathlib.Path({str(said)!r}).write_text(json.dumps([dict(os.environ),\n"
        "    sorted(os.sched_getaffinity(0)), sys.path[0], os.umask(0o22), sys.argv[1:],\n"
        f"    os.read(int(os.environ['READ']), 9).decode(), len(os.listdir('/proc/self/task'))]))\n"
        "raise SystemExit(7)\n"
    )
    processor = min(os.sched_getaffinity(0))
    before, umask = os.sched_getaffinity(0), os.umask(0o27)
    read, write = os.pipe()
    os.write(write, b"told")
    os.close(write)
    environment = {
        **forked.asked_at_begin(os.environ), "PATH": os.environ["PATH"], "READ": str(read),
        "PYTHONPATH": str(forked.PROJECT), "WYEAST_ROOT": str(stand_in.root),
    }  # fmt: skip
    arguments = ["-C", str(stand_in.root / "settings.py"), "-l"]
    try:
        os.sched_setaffinity(0, {processor})
        done = forked.reframe(arguments, environment, descriptors=[read])
    finally:
        os.sched_setaffinity(0, before)
        os.umask(umask)
        os.close(read)
    assert said.exists(), done.stderr + done.stdout
    found, processors, path, mask, words, message, threads = json.loads(said.read_text())
    assert environment.items() <= found.items() and MARK not in found
    assert (processors, path) == ([processor], str(forked.PROJECT))
    assert (mask, words, message, threads) == (0o27, arguments, "told", 1)


def test_nothing_that_asks_for_its_checkout_is_loaded_beforehand() -> None:
    load = (
        "from tests.reframe_checks import forked; "
        "forked.LOADED['asking'] = ('containers.apptainer',); forked.load('asking')"
    )
    done = subprocess.run(
        [sys.executable, "-c", load], cwd=forked.PROJECT, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 1 and "asked for was ['WYEAST_ROOT']" in done.stderr, done.stderr
