"""Order, progress and the lock of a campaign."""

import io
import json
import random
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from campaign import folder, rounds
from campaign.folder import CampaignError
from campaign.guarded_reframe import SeededOrder
from campaign.progress import Progress


def cases(names: list[str]) -> list[SimpleNamespace]:
    return [
        SimpleNamespace(check=SimpleNamespace(display_name=name), partition="local:default")
        for name in names
    ]


@given(st.lists(st.text(min_size=1), unique=True, max_size=20), st.integers(0, 10**9))
def test_same_seed_gives_the_same_order_however_checks_were_found(
    names: list[str], seed: int
) -> None:
    found = cases(names)
    found_elsewhere = cases(random.sample(names, len(names)))
    SeededOrder(seed).shuffle(found)
    SeededOrder(seed).shuffle(found_elsewhere)
    order = [case.check.display_name for case in found]
    assert order == [case.check.display_name for case in found_elsewhere]
    assert sorted(order) == sorted(names)


def test_seeds_give_different_orders() -> None:
    orders = set()
    for seed in range(20):
        found = cases([f"check{number}" for number in range(10)])
        SeededOrder(seed).shuffle(found)
        orders.add(tuple(case.check.display_name for case in found))
    assert len(orders) == 20


def test_two_campaigns_at_once_are_refused(tmp_path: Path) -> None:
    with (
        rounds.only_campaign(tmp_path, "local"),
        pytest.raises(CampaignError, match=r"another campaign .* \(process \d+ since"),
        rounds.only_campaign(tmp_path, "local"),
    ):
        pass
    with rounds.only_campaign(tmp_path, "local"), rounds.only_campaign(tmp_path, "virtual"):
        pass


def test_dead_campaign_does_not_hold_the_site(tmp_path: Path) -> None:
    code = (
        "import os, sys; from pathlib import Path; from campaign.rounds import only_campaign\n"
        "with only_campaign(Path(sys.argv[1]), 'local'): os.kill(os.getpid(), 9)"
    )
    killed = subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
    assert killed.returncode == -9
    with rounds.only_campaign(tmp_path, "local"):
        pass


def test_progress_counts_and_names_failures() -> None:
    lines = [
        "[ RUN      ] PointToPoint %pair=Send/Recv /0123abcd @local:default+container\n",
        "[       OK ] ( 1/58) PointToPoint %pair=Send/Recv /0123abcd @local:default+container\n",
        "[     FAIL ] ( 2/58) Linpack %grid=1x2 %n=4000 /0123abce @local:default+container\n",
    ]
    out, log = io.StringIO(), io.StringIO()
    progress = Progress(3, out)
    progress.last_line = -1e9
    progress.follow(2, lines, log)
    assert log.getvalue() == "".join(lines)
    assert "round 2/3  1/58  PointToPoint %pair=Send/Recv\n" in out.getvalue()
    assert "round 2/3  2/58  Linpack %grid=1x2 %n=4000  FAILED" in out.getvalue()


def test_launch_that_was_never_judged_is_kept_as_failed(tmp_path: Path) -> None:
    campaign, stage = tmp_path / "campaign", tmp_path / "stage"
    (campaign / "launches").mkdir(parents=True)
    stage.mkdir()
    asked = {"launch": "round001_cell", "cell": "cell", "implementation": "openmpi-5.0.11"}
    (stage / "launch_asked.json").write_text(json.dumps(asked))
    (stage / "rfm_job.out").write_text('{"record":"header"')
    report = tmp_path / "round001.json"
    case = {
        "result": "fail",
        "stagedir": str(stage),
        "fail_phase": "run_wait",
        "fail_reason": "job error: [jobid=1] timeout\nmore",
        "job_stdout": "rfm_job.out",
        "job_stderr": "rfm_job.err",
    }
    passed = {"result": "pass", "stagedir": None}
    report.write_text(json.dumps({"runs": [{"testcases": [case, passed]}]}))
    for _ in range(2):  # the second time finds it kept already
        rounds.keep_lost_launches(campaign, report)
    kept = campaign / "launches" / "round001_cell"
    record = json.loads((kept / "launch.json").read_text())
    assert record["outcome"] == "failed"
    assert record["sentence"] == "run_wait: job error: [jobid=1] timeout"
    assert (kept / "stdout").read_text() == '{"record":"header"'
    assert folder.finished_launches(campaign) == {"round001_cell"}
