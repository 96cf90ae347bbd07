"""What it takes to load the checks grows with the checks, and no faster: by counts."""

import json
import re
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest
import reframe as rfm
import reframe.utility.typecheck as typ
from reframe.core.builtins import variable
from reframe.core.variables import VarSpace
from reframe.frontend import executors

from reframe_checks.bin import guards
from reframe_checks.bin.guards import INJECTED, copied, describe_check, inject
from tests.reframe_checks.conftest import PROJECT, StandIn
from tests.reframe_checks.loading import environment, with_images

#: ReFrame's command line with the guards; at its end it writes what it has done so often.
COUNTING = """
import json, sys
from collections import Counter
import yaml
counts = Counter()
def heard(event, arguments):
    if event == "open" and str(arguments[0]).endswith("images.lock"):
        counts["locks"] += 1
sys.addaudithook(heard)
load = yaml.load
def loaded(stream, Loader):
    counts["references"] += str(getattr(stream, "name", "")).endswith("/references.yaml")
    return load(stream, Loader)
yaml.load = loaded
from reframe.core.meta import RegressionTestMeta as Meta
info = Meta.get_variant_info
def informed(*words, **more):
    counts["variants"] += 1
    return info(*words, **more)
Meta.get_variant_info = informed
from reframe_checks.bin import guards
target = sys.argv.pop(1)
try:
    guards.main()
finally:
    with open(target, "w") as file:
        json.dump(counts, file)
"""


def counted(stand_in: StandIn, images: int) -> tuple[int, dict[str, int]]:
    """Return how many checks of messages there are of so many images, and what loading them took.

    All checks of the folder are the same in this, and take seconds.
    """
    names = with_images(stand_in, images)
    checks = PROJECT / "reframe_checks"
    target = stand_in.root / "counts.json"
    done = subprocess.run(
        [sys.executable, "-c", COUNTING, target, "-c", checks / "point_to_point.py",
         "-c", checks / "preflight.py", "-c", checks / "collectives.py", "-l"],
        env=environment(stand_in, names),
        cwd=PROJECT, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    [found] = [line for line in done.stdout.splitlines() if line.startswith("Found ")]
    return int(found.split()[1]), json.loads(target.read_text())


def test_loading_parses_references_once_and_looks_at_each_image_once(stand_in: StandIn) -> None:
    few, of_few = counted(stand_in, 2)
    many, of_many = counted(stand_in, 12)
    assert many == 6 * few > 60
    assert of_few["references"] == of_many["references"] == 1
    # Each image's labels once, however many checks it has.
    assert of_many["locks"] - of_few["locks"] == 10
    # ReFrame asks for each check itself: as often for six times the images.
    assert of_many["variants"] <= 6 * of_few["variants"]


def test_checks_of_a_class_have_variables_of_their_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Made(rfm.RunOnlyRegressionTest):
        words = variable(typ.List[str], value=["one"])
        number = variable(int, value=1)

    first, second, third = SimpleNamespace(), SimpleNamespace(), SimpleNamespace()
    space = Made._rfm_var_space
    monkeypatch.setattr(VarSpace, "_inject", inject)
    space.inject(first, Made)
    assert Made in INJECTED
    space.inject(second, Made)
    assert second.__dict__.keys() == first.__dict__.keys() and second.words == ["one"]
    second.words.append("two")
    Made.number = 2
    space.inject(third, Made)
    assert first.words == third.words == ["one"]
    assert first.number == 1 and third.number == 2


@pytest.mark.parametrize("value", [[], ["a", 1], {}, {"a": ["b"]}, set(), {1}, [["a"]], [{}]])
def test_a_copied_value_shares_nothing_that_can_be_changed(value: Any) -> None:
    found = copied(value)
    assert found == value and type(found) is type(value) and found is not value
    inner = value.values() if isinstance(value, dict) else value
    for one, other in zip(inner, found.values() if isinstance(found, dict) else found, strict=True):
        assert one is not other or not isinstance(one, list | dict)


def test_the_log_of_a_campaign_has_no_lines_on_what_each_check_may_run_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said: list[str] = []
    logger = SimpleNamespace(debug=said.append)
    monkeypatch.setattr(executors, "getlogger", lambda: logger)

    def told(checks: list[str]) -> list[str]:
        for check in checks:
            executors.getlogger().debug(check)
        return checks

    monkeypatch.setattr(guards, "combined_and_told", told)
    assert guards.combined(["one", "two"]) == ["one", "two"] and not said
    assert executors.getlogger() is logger


def test_a_line_of_the_log_asks_a_check_for_what_the_log_shows_alone() -> None:
    """Each look at a job writes one, beside what is measured."""
    asked = []

    class Check:
        def __getattr__(self, name: str) -> object:
            asked.append(name)
            return lambda: "said"

    adapter = SimpleNamespace(check=Check(), extra={})
    describe_check(adapter)
    assert (asked, adapter.extra) == (["info"], {"check_info": "said"})
    settings = (PROJECT / "site_configs" / "settings.py").read_text()
    shown = set(re.findall(r"%\((\w+)\)s", settings[settings.index('"logging"') :]))
    assert shown == {"asctime", "levelname", "check_info", "message"}
