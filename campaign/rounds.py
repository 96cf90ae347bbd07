"""A campaign's rounds: each cell and implementation once per round, in random order."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from campaign import choice, folder
from campaign.folder import CampaignError
from campaign.progress import Progress
from containers.locking import Held, NotShared, exclusive, exclusive_on_machine
from reframe_checks.mixins.tiers import VALIDATION

PR_SET_PDEATHSIG = 1


class SiteIsBusy(CampaignError):
    """Another campaign has the site; the text is a sentence."""


@contextmanager
def only_campaign(root: Path, site: str) -> Iterator[None]:
    """Hold the site for one campaign: two at once would measure each other.

    Where no scheduler keeps jobs apart, the whole machine is held: checkouts share its processors.
    Raises SiteIsBusy where another campaign is measuring, and CampaignError for an unknown site.
    """
    note = f"process {os.getpid()} of {root} since {folder.utc_now()}"
    lock = root / ".wyeast" / "locks" / f"campaign-{site}.lock"
    with ExitStack() as held:
        try:
            place = f"site {site}"
            held.enter_context(exclusive(lock, note))
            if choice.site_data(root, site)["scheduler"] == "local":
                place = "this machine"
                held.enter_context(exclusive_on_machine("wyeast-campaign.lock", note))
        except Held as holder:
            raise SiteIsBusy(
                f"another campaign is measuring on {place} ({holder}), and two at once would "
                "measure each other; wait until it has ended"
            ) from None
        except OSError as error:
            raise CampaignError(
                f"{lock} cannot be opened: {error.strerror}; if this checkout is another user's, "
                "measure in one of your own"
            ) from None
        except NotShared as error:
            print(
                f"campaigns of other checkouts on this machine would not be noticed: {error}",
                file=sys.stderr,
            )
        yield


def end_with_parent() -> None:
    """Have the kernel end this process when its parent dies, so that no launch is left behind."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def run_round(
    root: Path, campaign: Path, manifest: dict[str, Any], number: int, progress: Progress
) -> dict[str, Any]:
    """Measure one round with ReFrame; return what became of it.

    Launches that the campaign already has are not measured again.
    """
    logs = campaign / "reframe"
    logs.mkdir(exist_ok=True)
    report = logs / f"round{number:03d}.json"
    command = [
        str(root / "campaign" / "bin" / "reframe"),
        "-c", str(root / "reframe_checks"),
        "-r",
        "--exec-policy=serial",
        "--exec-order=random",
        f"--report-file={report}",
    ]  # fmt: skip
    environment = {
        **os.environ,
        "RFM_SYSTEM": manifest["site"],
        "RFM_COLORIZE": "no",
        "WYEAST_TIER": manifest["tier"],
        "WYEAST_IMAGES": ",".join(manifest["images"]),
        "WYEAST_CAMPAIGN": str(campaign),
        "WYEAST_ROUND": str(number),
        "WYEAST_ORDER_SEED": str(manifest["order_seed"] + number),
    }
    # What proves the programs and compares no implementations is run when it is asked for by name.
    command += ["-n", manifest["checks"]] if manifest["checks"] else ["-T", VALIDATION]
    if manifest.get("time_limit"):
        command += ["-S", f"time_limit={manifest['time_limit']}"]
    if manifest.get("raw_by_rank"):
        command += ["-S", "raw_by_rank=yes"]
    before = folder.finished_launches(campaign)
    if any(name.startswith(folder.round_prefix(number)) for name in before):
        environment["WYEAST_RESUMING"] = "1"
    began, began_utc = time.monotonic(), folder.utc_now()
    with (logs / f"round{number:03d}.log").open("a") as log:
        reframe = subprocess.Popen(
            command,
            cwd=root,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            preexec_fn=end_with_parent,
        )
        assert reframe.stdout is not None
        progress.follow(number, reframe.stdout, log)
        exit_code = reframe.wait()
    keep_lost_launches(campaign, report)
    finished = folder.finished_launches(campaign)
    if not finished:
        raise CampaignError(
            f"round {number} measured nothing; ReFrame's own words are in {log.name}"
        )
    return {
        "round": number,
        "started_utc": began_utc,
        "wall_s": time.monotonic() - began,
        "launches": len(finished - before),
        "load_average": os.getloadavg()[0],
        "reframe_exit_code": exit_code,
    }


def keep_lost_launches(campaign: Path, report: Path) -> None:
    """Keep what is left of launches that ended before they could be judged.

    A launch that hit its time limit or whose job vanished never reaches ReFrame's sanity stage.
    What was asked of it is in its stage folder, written before it started.
    """
    if not report.is_file():
        return
    known = folder.finished_launches(campaign)
    for run in json.loads(report.read_text())["runs"]:
        for case in run["testcases"]:
            asked = Path(case.get("stagedir") or "/nonexistent") / "launch_asked.json"
            if case["result"] != "fail" or not asked.is_file():
                continue
            record = json.loads(asked.read_text())
            if record["launch"] in known:
                continue
            reason = (case.get("fail_reason") or "the launch was lost").splitlines()[0]
            stage = asked.parent
            files = {
                "stdout": stage / str(case.get("job_stdout") or "rfm_job.out"),
                "stderr": stage / str(case.get("job_stderr") or "rfm_job.err"),
                "job.sh": stage / "rfm_job.sh",
            }
            sentence = f"{case.get('fail_phase', 'run')}: {reason}"
            lost = {
                "position": None,
                "ended_utc": folder.utc_now(),
                "wall_s": None,
                "exit_code": None,
                "outcome": "failed",
                "sentence": sentence,
            }
            folder.write_launch(campaign, {**record, **lost}, files)
