"""The ReFrame process that measures the rounds of a campaign."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

from campaign import provenance
from campaign.progress import CampaignProgress
from campaign.quiet import looked_ms
from records import files as folder
from records import processes, reframe_reports
from records.environment import for_reframe
from records.manifest import Manifest
from reframe_checks.bin.telling import ONCE, OVER, TOLD
from reframe_checks.mixins.tiers import VALIDATION

PR_SET_PDEATHSIG = 1
#: The most rounds that one process measures: what ReFrame keeps of each launch adds up.
MOST_ROUNDS = 200


def end_with_parent() -> None:
    """Make the kernel end this process when its parent dies, so that no launch is left behind."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def worlds(manifest: Manifest) -> dict[str, list[int]]:
    """Return the variables that have the numbers of ranks which a campaign has chosen."""
    chosen = {"WYEAST_RANKS": manifest.ranks, "WYEAST_RANKS_PER_NODE": manifest.ranks_per_node}
    return {name: numbers for name, numbers in chosen.items() if numbers}


def measures_once(manifest: Manifest) -> bool:
    """Return whether a campaign has what is compared with nothing measured but once.

    Somebody who names checks wants them as often as the rounds say.
    """
    return manifest.design is not None or not manifest.checks


def log_of(campaign: Path) -> Path:
    """Return the log of ReFrame's messages: all rounds' in one file, one after the other."""
    return campaign / reframe_reports.FOLDER / "rounds.log"


class ReframeSession:
    """A ReFrame process that measures one round, or each round that the campaign names.

    The latter loads the checks once, and measures a cell's implementations one
    after the other. Between two rounds it waits, and the journal is the campaign's.
    """

    def __init__(
        self, root: Path, campaign: Path, manifest: Manifest, progress: CampaignProgress,
        is_told: bool = False,
    ) -> None:  # fmt: skip
        self.root, self.campaign, self.manifest = root, campaign, manifest
        self.progress = progress
        self.is_told = is_told
        self.process: subprocess.Popen[str] | None = None
        #: How many rounds the process has measured.
        self.rounds = 0
        self.tell: int | None = None
        self.log = log_of(campaign)

    def __enter__(self) -> ReframeSession:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind and self.process:
            self.process.terminate()
        self.end()

    @property
    def is_running(self) -> bool:
        """Return whether the process waits for another round."""
        return self.process is not None

    def measure(self, number: int) -> int:
        """Measure what is left of a round; return the exit code, negative for a signal.

        It is 0 where the process waits for another round.
        """
        self.log.parent.mkdir(exist_ok=True)
        if self.rounds >= MOST_ROUNDS:
            self.end()
        if self.process is None:
            self.start(number)
        else:
            provenance.refuse_changes(self.root, self.manifest, is_loaded=True)
            assert self.tell is not None
            with suppress(BrokenPipeError):
                os.write(self.tell, f"{number}\n".encode())
        self.rounds += 1
        assert self.process is not None and self.process.stdout is not None
        over = f"{OVER.format(number)}\n" if self.is_told else None
        with self.log.open("a") as messages:
            messages.write(f"\n{reframe_reports.BEGINNING}{number}, {folder.utc_now()}\n")
            if self.progress.follow(number, self.process.stdout, messages, over):
                return 0
        return self.end()

    def end(self) -> int:
        """End the process; return its exit code, 0 if there is none.

        Raises OSError where its last messages cannot be kept, once it has ended.
        """
        if self.tell is not None:
            os.close(self.tell)
            self.tell = None
        if self.process is None:
            return 0
        process, self.process, self.rounds = self.process, None, 0
        assert process.stdout is not None
        try:
            with self.log.open("a") as messages:
                messages.writelines(process.stdout)
        except BaseException:
            # It would measure on without anybody to take its messages: Python's logging does.
            process.terminate()
            raise
        finally:
            process.stdout.close()
            code = process.wait()
        reframe_reports.keep_last(self.campaign)
        return code

    def start(self, number: int) -> None:
        """Start ReFrame with a round; raise CampaignError where the campaign's inputs changed."""
        manifest = self.manifest
        provenance.refuse_changes(self.root, manifest)
        # Left by one that outlived the campaign's process.
        reframe_reports.keep_last(self.campaign)
        command = [
            str(self.root / "reframe_checks" / "bin" / "reframe"),
            "-c", str(self.root / "reframe_checks"),
            "-r",
            "--exec-policy=serial",
            "--exec-order=random",
            f"--report-file={self.log.with_name(reframe_reports.LAST)}",
        ]  # fmt: skip
        environment = {
            **for_reframe(
                os.environ,
                manifest.site_data or {},
                RFM_CONFIG_PATH=str(self.root / "site_configs"),
                RFM_SYSTEM=manifest.site,
                RFM_COLORIZE="no",
            ),
            "WYEAST_TIER": manifest.tier,
            "WYEAST_IMAGES": ",".join(manifest.images),
            "WYEAST_CAMPAIGN": str(self.campaign),
            "WYEAST_NOISE_MS": str(looked_ms(manifest)),
            processes.MARK: str(self.campaign),
            "WYEAST_ROUND": str(number),
            "WYEAST_ORDER_SEED": str(manifest.order_seed + (0 if self.is_told else number)),
        }
        # What proves the programs and compares no implementations is run when asked for by name.
        command += ["-n", manifest.checks] if manifest.checks else ["-T", VALIDATION]
        if measures_once(manifest):
            environment[ONCE] = "1"
        for name, numbers in worlds(manifest).items():
            environment[name] = ",".join(map(str, numbers))
        if manifest.time_limit:
            command += ["-S", f"time_limit={manifest.time_limit}"]
        if manifest.raw_by_rank:
            command += ["-S", "raw_by_rank=yes"]
        told: tuple[int, ...] = ()
        if self.is_told:
            read, self.tell = os.pipe()
            told = (read,)
            environment[TOLD] = str(read)
        try:
            self.process = subprocess.Popen(
                command,
                cwd=self.root,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                preexec_fn=end_with_parent,
                pass_fds=told,
            )
        finally:
            for descriptor in told:
                os.close(descriptor)
