"""The page for developers of a library, walked: its commands on two builds, one of them slower."""

import re
import shlex
from pathlib import Path

import pytest

from analysis.comparison.caveats.comparability import rules
from tests.analysis.support.foreign import osu_set
from tests.analysis.support.in_process import analysis
from tests.analysis.support.synthetic import Synthetic, Truth

PAGE = Path(__file__).resolve().parents[3] / "docs" / "how-to" / "compare-your-builds.md"
#: What the bound library of a build is called by a campaign's images.
BOUND = "mpich-5.0.2+host-mpich-5.1.0"
BUILDS = {
    "yesterday": Truth(1e-6, 4e9, 30e9),
    "today": Truth(1.5e-6, 4e9, 30e9),
}


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Return two campaigns as the page names them, and OSU's output of the two builds."""
    for day, (name, truth) in enumerate(BUILDS.items(), 1):
        facts = {"host_mpi": {"prefix": f"/opt/mpich-{name}", "library_sha256": f"{day}" * 64}}
        Synthetic(
            tmp_path / "runs" / f"2026010{day}T000000Z-local-quick", {BOUND: truth}, rounds=5,
            seed=day, created_utc=f"2026-01-0{day}T00:00:00.000Z", facts=facts,
        ).write()  # fmt: skip
        osu_set(tmp_path / name, 10.0 * day, 5, day)
    return tmp_path / "runs"


def commands() -> list[list[str]]:
    """Return the page's commands of the analysis, as somebody would type them."""
    found = re.findall(r"(?m)^python -m analysis (.*)$", PAGE.read_text())
    return [shlex.split(one) for one in found]


def test_a_slower_build_is_found_out_by_each_command(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(runs.parent)
    monkeypatch.setattr("analysis.commands.campaigns.ROOT", runs.parent)
    done = {" ".join(words): analysis(*words) for words in commands()}
    assert len(done) == 4
    for words, one in done.items():
        told = " ".join((one.stdout + one.stderr).split())
        # Comparing tells, and judging is for a job: its exit code is an alarm.
        assert one.returncode == (0 if words.startswith("compare") else 3), (words, told)
    [compared] = [" ".join(one.stdout.split()) for words, one in done.items() if "--why" in words]
    assert "PointToPoint" in compared and "slower" in compared
    assert f"bound MPI: {'1' * 16}… and {'2' * 16}…" in compared
    assert "OSU MPI Latency" in (runs.parent / "today.html").read_text()


def test_a_campaign_without_a_bound_library_is_told_apart_from_one_with(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("analysis.commands.campaigns.ROOT", runs.parent)
    Synthetic(
        tmp_path / "runs" / "20260103T000000Z-local-quick", {BOUND: BUILDS["today"]}, rounds=5
    ).write()
    names = ["20260102T000000Z-local-quick", "20260103T000000Z-local-quick"]
    told = " ".join(analysis("why", *names).stdout.split())
    assert f"bound MPI: {'2' * 16}… and none" in told
    assert any(rule.name == "bound MPI" for rule in rules())
