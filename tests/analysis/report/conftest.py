"""The reports that tests in a browser look at, made once for all of them: none changes one."""

import shutil
from pathlib import Path

import pytest

from analysis.report.report import write_report
from tests.analysis.support.synthetic import TWICE, Synthetic
from tests.busy_campaign import busy_campaign

INJECTION = "<script>document.title = 'injected'</script><img src=x onerror=alert(1)>"


@pytest.fixture(scope="session")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the report of a campaign, one launch of which says something hostile."""
    synthetic = Synthetic(tmp_path_factory.mktemp("report") / "campaign", TWICE, rounds=3)
    folder = synthetic.write()
    synthetic.launch(
        4, "alpha-1.0", "PointToPoint", {"pair": "Send/Recv", "message_range": "short"}, "",
        outcome="failed", sentence=f"it said {INJECTION}",
    )  # fmt: skip
    return write_report(folder, None, None)


@pytest.fixture(scope="session")
def sample_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the report of the measured sample that is under version control."""
    folder = tmp_path_factory.mktemp("sample") / "sample"
    shutil.copytree(busy_campaign(), folder, ignore=shutil.ignore_patterns("*.html", "tables"))
    return write_report(folder, None, None)


@pytest.fixture(params=["report", "sample_report"])
def any_report(request: pytest.FixtureRequest) -> Path:
    """Return the one report, then the other."""
    path: Path = request.getfixturevalue(request.param)
    return path
