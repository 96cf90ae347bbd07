"""A site's own suite in ReFrame itself: a check that became slower fails, and only that one."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.analysis.support.foreign import noisy
from tests.unmeasured import unmeasured

PROJECT = Path(__file__).resolve().parents[3]
#: As a site would write it: nothing in it is of a campaign.
SUITE = """
import os

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import performance_function, sanity_function

from analysis.foreign.reframe_mixin import JudgedByHistory


@rfm.simple_test
class Latency(rfm.RunOnlyRegressionTest, JudgedByHistory):
    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    executable = "echo"

    @run_after("init")
    def say(self):
        self.executable_opts = ["latency", os.environ["LATENCY"]]

    @sanity_function
    def is_there(self):
        return sn.assert_found("latency", self.stdout)

    @performance_function("us")
    def latency(self):
        return sn.extractsingle(r"latency (\\S+)", self.stdout, 1, float)
"""
CONFIG = """
site_configuration = {
    "systems": [{"name": "here", "hostnames": [".*"], "partitions": [
        {"name": "cpu", "scheduler": "local", "launcher": "local", "environs": ["builtin"]}]}],
    "environments": [{"name": "builtin"}],
}
"""


class Suite:
    """A suite with its folder, which keeps its performance logs and its database."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "suite.py").write_text(SUITE)
        (folder / "config.py").write_text(CONFIG)

    def run(self, latency_us: float, *settings: str, history: Path | None = None) -> str:
        """Run the check once; return what ReFrame printed."""
        words = [f"judged_history={history or self.log}", *settings]
        done = subprocess.run(
            [str(Path(sys.executable).with_name("reframe")), "-C", "config.py", "-c", "suite.py",
             "-r", *(word for one in words for word in ("-S", one))],
            cwd=self.folder, capture_output=True, text=True, timeout=120,
            env={**self.environment, "PYTHONPATH": str(PROJECT), "LATENCY": str(latency_us),
                 "PATH": os.environ["PATH"], "RFM_PREFIX": str(self.folder),
                 "RFM_PERFLOG_DIR": str(self.folder / "perflogs"),
                 "HOME": str(self.folder), "RFM_COLORIZE": "n"},
        )  # fmt: skip
        return " ".join((done.stdout + done.stderr).split())

    @property
    def environment(self) -> dict[str, str]:
        """Return the environment of somebody who has not activated anything of ours."""
        ours = ("RFM_", "WYEAST_", "SITE", "TIER")
        return {name: text for name, text in unmeasured().items() if not name.startswith(ours)}

    @property
    def log(self) -> Path:
        """Return the log of the check."""
        return self.folder / "perflogs" / "here" / "cpu" / "Latency.log"

    def write_nights(self, latencies_us: list[float]) -> None:
        """Write as many nights as there are values, with a line of ReFrame's own for each."""
        if not self.log.is_file():
            self.run(1.0)
        head, line = self.log.read_text().splitlines()[:2]
        fields = head.split("|")
        assert not [name for name in fields if name.startswith("judged")]
        time_at, value_at = fields.index("job_completion_time_unix"), fields.index("latency_value")
        nights = []
        for day, latency in enumerate(latencies_us, 1):
            values = line.split("|")
            values[time_at], values[value_at] = f"{1767225600 + 86400 * day}", f"{latency:.4f}"
            nights.append("|".join(values))
        self.log.write_text("\n".join([head, *nights, ""]))


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Suite:
    made = Suite(tmp_path_factory.mktemp("suite"))
    made.log.parent.mkdir(parents=True)
    made.log.write_text("")
    return made


def test_a_check_is_judged_by_its_history(suite: Suite) -> None:
    suite.log.unlink()
    said = suite.run(1.0)
    assert "is not there: name ReFrame's performance logs" in said, said
    said = suite.run(1.0)
    assert "[ PASSED ]" in said and "no run of it in this place that began over an hour" in said
    suite.write_nights(noisy(14, 1))
    lines = suite.log.read_text()
    said = suite.run(1.005)
    assert "[ PASSED ] Ran 1/1 test case" in said and "1 compared" in said, said
    suite.log.write_text(lines)
    said = suite.run(1.3)
    assert "[ FAILED ] Ran 1/1 test case" in said and "judged by its history" in said, said
    assert re.search(r"Latency latency.*worse by", said)
    # What it failed for is in its log all the same.
    assert suite.log.read_text().splitlines()[-1].startswith("fail|")
    suite.log.write_text(lines)
    # A folder as it is written where ReFrame is called; what cannot be judged is no failure.
    said = suite.run(1.3, history=Path("perflogs"))
    assert "[ FAILED ]" in said and "worse by" in said, said
    suite.log.write_text(lines)
    assert "[ PASSED ]" in suite.run(1.3, "judged_lower_is_better=", "judged_higher_is_better=*")


def test_what_cannot_be_judged_fails_only_where_it_is_asked_for(suite: Suite) -> None:
    suite.write_nights(noisy(2, 2))
    lines = suite.log.read_text()
    assert "[ PASSED ]" in suite.run(9.0)
    [told] = suite.folder.rglob("output/**/judged.txt")
    assert "could not have shown a slowdown" in told.read_text()
    suite.log.write_text(lines)
    said = suite.run(1.0, "judged_strictly=true")
    assert "[ FAILED ]" in said and "could not have shown a slowdown" in said, said
