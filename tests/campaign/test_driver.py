"""A campaign that is driven by jobs: each goes on where the last one was, until it is over."""

import json
import os
import shlex
import time
from pathlib import Path
from typing import Any

import pytest

from campaign import __main__ as campaigns
from campaign import concluding, driver, driver_job, leftovers, rounds
from campaign.rounds import TimeIsOver
from campaign.site_lock import SiteIsBusy, only_campaign
from records import schedule
from records.base import CampaignError
from records.fold import State
from records.manifest import read_manifest
from reframe_checks.bin.telling import UNTIL, is_over

PROJECT = Path(__file__).resolve().parents[2]
SITE = "played"


def state_of(campaign: Path) -> State:
    found = schedule.state_of(campaign)
    assert found
    return found


class PlayedSlurm:
    """A Slurm that keeps what it is asked for, and runs a job when it is told to."""

    def __init__(self, root: Path) -> None:
        self.root, self.folder = root, root / "slurm"
        (self.folder / "jobs").mkdir(parents=True)
        commands = {
            "sbatch": f"[ ! -e {self.folder}/refuse ] || "
                      "{ echo 'no such partition' >&2; exit 1; }\n"
                      f"cd {self.folder}/jobs; n=$(($(ls | wc -l) + 1)); "
                      'printf "%s\\n" "$@" >$n; echo "$n;a-cluster"',
            "squeue": f"cat {self.folder}/queue",
            "scancel": f'echo "$@" >>{self.folder}/cancelled',
        }  # fmt: skip
        (self.folder / "queue").touch()
        for name, text in commands.items():
            (self.folder / name).write_text(f"#!/bin/sh\n{text}\n")
            (self.folder / name).chmod(0o755)
        self.ran = 0

    def asked(self, number: int) -> list[str]:
        """Return the words of the command that asked for a job."""
        return (self.folder / "jobs" / str(number)).read_text().splitlines()

    @property
    def jobs(self) -> int:
        return len(list((self.folder / "jobs").iterdir()))

    @property
    def is_called_off(self) -> bool:
        file = self.folder / "cancelled"
        return file.exists() and "--state=PENDING" in file.read_text().splitlines()[-1]

    def run_next(self, monkeypatch: pytest.MonkeyPatch) -> int:
        """Run the job that waits, in this process; return its exit code."""
        self.ran += 1
        [wrapped] = [word for word in self.asked(self.ran) if word.startswith("--wrap=")]
        words = shlex.split(wrapped)
        place = words.index("campaign.driver_job") + 1
        monkeypatch.setenv("SLURM_JOB_ID", str(self.ran))
        monkeypatch.setattr("sys.argv", ["driver", *words[place:]])
        (self.root / "over").unlink(missing_ok=True)
        return driver_job.main()


@pytest.fixture
def slurm(played: Path, monkeypatch: pytest.MonkeyPatch) -> PlayedSlurm:
    """Return a Slurm whose site a played ReFrame measures, with a report that is not made."""
    text = (played / "site_configs/local/site.yaml").read_text()
    assert "scheduler: local\n" in text
    site = played / "site_configs" / SITE / "site.yaml"
    site.parent.mkdir()
    text = text.replace("scheduler: local\n", 'scheduler: squeue\naccess: ["--partition=all"]\n')
    site.write_text(f"{text}driver_time_s: 90\ndriver_options: [--partition=service]\n")
    found = PlayedSlurm(played)
    monkeypatch.setenv("PATH", f"{found.folder}:{os.environ['PATH']}")
    monkeypatch.setenv(UNTIL, "inf")
    monkeypatch.setattr(leftovers, "POLL_S", 0.02)
    monkeypatch.setattr(driver_job, "POLL_S", 0.02)
    monkeypatch.setattr(rounds, "is_over", lambda: (played / "over").exists())
    monkeypatch.setattr(concluding, "report", lambda campaign, study: True)
    return found


def options(*words: str) -> Any:
    return campaigns.arguments([f"--site={SITE}", "--rounds=2", "--driver=job", *words])


def play(root: Path, *plays: dict[str, Any]) -> None:
    (root / "plays.json").write_text(json.dumps(plays))


def begun(root: Path) -> Path:
    [campaign] = (root / "runs").iterdir()
    return campaign


def test_jobs_drive_a_campaign_until_it_is_finished(
    slurm: PlayedSlurm, played: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    play(played, {"time over after": 3}, {}, {"time over after": 1})
    assert campaigns.work(options()) == 0
    campaign = begun(played)
    name = driver.name_of(campaign)
    said = capsys.readouterr().out
    for words in (
        "driven by job 1 and", f"tail -F runs/{campaign.name}/reframe/driver.log",
        f"scancel --name={name}", f"RESUME={campaign.name} DRIVER=job",
    ):  # fmt: skip
        assert words in said
    assert "driver_options" not in said, "the site says where it is to run"
    first = slurm.asked(1)
    assert {f"--job-name={name}", "--time=00:01:30", "--ntasks=1", "--no-requeue"} <= set(first)
    assert first.index("--partition=all") < first.index("--partition=service")
    assert len(name) == 15 and not [word for word in first if "dependency" in word]
    assert not state_of(campaign).launches, "nothing is measured where it was asked for"

    assert slurm.run_next(monkeypatch) == 0
    assert state_of(campaign).recorded() == 3 and slurm.jobs == 2
    assert "--dependency=afterany:1" in slurm.asked(2) and not slurm.is_called_off
    assert "SLURM_JOB_ID" not in os.environ, "launches are jobs of their own"
    assert slurm.run_next(monkeypatch) == 0
    assert state_of(campaign).recorded() == 5
    assert slurm.run_next(monkeypatch) == 0
    assert state_of(campaign).recorded() == 8 and slurm.is_called_off
    manifest = read_manifest(campaign)
    assert manifest.finished_utc and len(manifest.commands) == 2
    assert capsys.readouterr().out.count("continues in the next job: job ") == 2


def test_a_campaign_that_stops_ends_its_jobs(
    slurm: PlayedSlurm, played: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    play(played, *[{"killed at once": True}] * 3)
    campaigns.work(options())
    assert slurm.run_next(monkeypatch) == 1 and slurm.is_called_off
    assert "3 times without measuring anything" in capsys.readouterr().err
    # Somebody puts that right, and goes on in the same way.
    assert campaigns.work(options(f"--resume={begun(played).name}")) == 0
    slurm.ran = 2
    assert slurm.run_next(monkeypatch) == 0 and state_of(begun(played)).recorded() == 8


def test_jobs_that_are_over_before_anything_is_recorded_are_not_asked_for_without_end(
    slurm: PlayedSlurm, played: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    play(played, *[{"time over after": 0}] * 9)
    campaigns.work(options())
    codes = []
    while slurm.ran < slurm.jobs and not slurm.is_called_off:
        codes.append(slurm.run_next(monkeypatch))
    assert codes == [0, 0, 0, 1]
    assert "3 jobs in a row ended before a launch was recorded" in capsys.readouterr().err


def test_a_job_waits_for_the_site_and_counts_that_as_nothing_in_vain(
    slurm: PlayedSlurm, played: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaigns.work(options())
    monkeypatch.setattr(driver_job, "BEGINS", 0.001)
    with only_campaign(played, SITE):
        for _ in range(5):
            assert slurm.run_next(monkeypatch) == 0
    busy = iter([SiteIsBusy("busy"), SiteIsBusy("busy")])

    def work() -> int:
        for error in busy:
            raise error
        return 7

    monkeypatch.setattr(driver_job, "POLL_S", 0.0)
    assert driver_job.when_free(work, time.monotonic() + 600) == 7
    with pytest.raises(TimeIsOver, match="the next job waits for it"):
        driver_job.when_free(lambda: (_ for _ in ()).throw(SiteIsBusy("busy")), 0.0)


def test_a_chain_that_is_asked_for_late_is_a_chain_all_the_same(
    slurm: PlayedSlurm, played: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    play(played, {"time over after": 2})
    campaigns.work(options())
    asked = driver.submit

    def refused_once(*words: Any) -> str:
        monkeypatch.setattr(driver, "submit", asked)
        raise CampaignError("a user may have one job")

    monkeypatch.setattr(driver, "submit", refused_once)
    assert slurm.run_next(monkeypatch) == 0 and slurm.jobs == 2
    assert (
        "a user may have one job; it will be requested again at the end" in capsys.readouterr().err
    )


def test_what_cannot_be_driven_by_jobs_is_refused(
    slurm: PlayedSlurm, played: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(CampaignError, match="DRIVER=job needs Slurm, and site local has"):
        campaigns.work(campaigns.arguments(["--site=local", "--driver=job", "--look"]))
    with pytest.raises(CampaignError, match="DRIVER=jobs is unknown"):
        campaigns.arguments(["--driver=jobs"])
    (slurm.folder / "refuse").touch()
    with pytest.raises(
        CampaignError, match=r"no such partition; nothing was measured; start it with"
    ):
        campaigns.work(options())
    campaign = begun(played)
    (slurm.folder / "queue").write_text("17\n")
    with pytest.raises(CampaignError, match="is already driven by job 17"):
        campaigns.work(options(f"--resume={campaign.name}"))
    assert slurm.jobs == 0


def test_a_driver_outside_a_job_says_how_to_submit_one(
    slurm: PlayedSlurm, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    monkeypatch.setattr("sys.argv", ["driver", "a-campaign"])
    assert driver_job.main() == 1
    assert "make run RESUME=a-campaign DRIVER=job" in capsys.readouterr().err


def test_the_time_in_which_launches_are_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    assert driver.time_limit(90_061) == "25:01:01" and driver.time_limit(0.2) == "00:00:01"
    monkeypatch.delenv(UNTIL, raising=False)
    assert not is_over()
    monkeypatch.setenv(UNTIL, str(time.monotonic() - 1))
    assert is_over()
