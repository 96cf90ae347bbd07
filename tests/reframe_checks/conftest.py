"""The real ReFrame and the real checks over an image that a script stands in for.

The script plays `apptainer`: it answers `exec` with canned output, and `sif` with the objects of an
image. The image is a SIF file that has labels and nothing else. So every way in which a launch can
go wrong is provoked without a wrong machine. "NOW" in the output becomes the time at which it is
printed.
"""

import hashlib
import json
import os
import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from reframe_checks.bin.telling import TOLD
from tests.packed import records_in
from tests.reframe_checks.forked import reframe
from tests.sif_files import said, write_sif
from tests.unmeasured import unmeasured

PROJECT = Path(__file__).resolve().parents[2]
IMPLEMENTATION = "mpich-5.0.2"
LABELS = {
    "org.wyeast.implementation": IMPLEMENTATION,
    "org.wyeast.family": "mpich",
    "org.wyeast.version": "5.0.2",
    "org.wyeast.mpiexec": "mpiexec",
    "org.wyeast.mpiexec.pinned": "-bind-to core",
    "org.wyeast.mpiexec.oversubscribed": "",
    "org.wyeast.foreign_programs": "IMB-MPI1",
}
#: What it plays is in $STAND_IN, and what one launch has for itself in a folder of that.
APPTAINER = """#!/bin/sh
play=
case "$*" in
    *--env=PLAY=*) play=${*##*--env=PLAY=}; play=plays/${play%% *}/ ;;
esac
of() {
    file=$STAND_IN/$play$1
    [ -e "$file" ] || file=$STAND_IN/$1
}
case "$1" in
    --version) cat "$STAND_IN/apptainer.version" ;;
    sif) echo "3 |1 |NONE |40960-53960704 |FS (Squashfs/*System/amd64)" ;;
    *) cd work || exit
       case "$*" in
           *hpl_dat*) exit 0 ;;
           *preflight*)
               of environment
               tee environment_of_rank.0 environment_of_rank.1 \
                   environment_of_container.0 environment_of_container.1 <"$file" >/dev/null
               of preflight.out; cat "$file"
               of preflight.err; [ ! -f "$file" ] || { cat "$file" >&2; exit 1; } ;;
           *NPmpi*) times=${*##* -o }
                    of netpipe.out; [ ! -f "$file" ] || cp "$file" "${times%% *}"
                    of netpipe.stdout; cat "$file"
                    of netpipe.code; read -r code <"$file"; exit "$code" ;;
           *IMB-MPI1*) of imb.stdout; cat "$file" ;;
           */bin/true) of container_code; read -r code <"$file"; exit "$code" ;;
           *) of profile.jsonl; [ ! -f "$file" ] || cp "$file" profile.jsonl
              [ ! -f "$STAND_IN/boots_daemons" ] || date +%s.%N >lam_booted
              of stdout; sed "s/\\"NOW\\"/$(date +%s.%6N)/g" "$file"
              of stderr; [ ! -s "$file" ] || cat "$file" >&2
              of code; read -r code <"$file"; exit "$code" ;;
       esac ;;
esac
"""


def header(program: str, ranks: int = 2, **more: object) -> dict[str, object]:
    return {
        "record": "header",
        "format": "wyeast-records-2",
        "program": program,
        "program_version": "1.0.0",
        "library": "MPICH Version: 5.0.2",
        "mpi_standard": "5.0",
        "ranks": ranks,
        "hosts": ["node"] * ranks,
        "processors": [[rank] for rank in range(ranks)],
        "clock": "CLOCK_MONOTONIC",
        "clock_tick_s": 1e-9,
        "clock_resolution_s": 2.5e-8,
        "started_utc": "2026-01-01T00:00:00Z",
        "mpi_wtime": {"tick_s": 1e-9, "resolution_s": 2.5e-8, "cost_s": 2.5e-8},
        "parameters": {},
        **more,
    }


def summary(seconds: float) -> dict[str, float]:
    return dict.fromkeys(("min", "quartile1", "median", "mean", "quartile3", "max"), seconds)


def lines(*records: dict[str, object]) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


PREFLIGHT = lines(
    header("preflight"),
    {"record": "result", "operation": "world", "ranks": 2, "distinct_hosts": 1},
    {
        "record": "result", "operation": "latency", "from": 0, "to": 1, "message_bytes": 8,
        "iterations": 100, "time_s": summary(1e-6),
    },
    {
        "record": "result", "operation": "transport", "from": 0, "to": 1,
        "transport": "shared memory", "evidence": "same host",
    },
    {"record": "end", "results": 3},
)  # fmt: skip


def pingpong(
    sizes: tuple[int, ...] = (300, 1800, 3300, 4800),
    seconds: float = 1e-5,
    memory_copy: float = 1e-7,
    iterations: int = 1000,
    is_raw: bool = True,
) -> str:
    records: list[dict[str, object]] = [header("pingpong")]
    for size in sizes:
        key = {"operation": "pingpong", "pair": "Send/Recv", "order": "modified",
               "message_bytes": size}  # fmt: skip
        records.append({
            "record": "result", **key, "iterations": iterations, "warmup": 100,
            "time_s": summary(seconds), "verified_bytes": 2 * size, "memory_copy_s": memory_copy,
        })  # fmt: skip
        if is_raw:
            records.append({"record": "iterations", **key, "time_s": [seconds] * iterations})
    return lines(*records, {"record": "end", "results": len(sizes)})


@dataclass
class Outcome:
    """What ReFrame said and what the campaign kept."""

    code: int
    text: str
    launches: list[dict[str, Any]]

    def reason(self) -> str:
        """Return the reasons that ReFrame gave for failures, as one line."""
        return " | ".join(re.findall(r"(?:Reason|ERROR): (.*)", self.text))


def check_path(only: str, project: Path = PROJECT) -> list[str]:
    """Return where the checks are: the files of those that are named, else the whole folder.

    Loading all of them takes most of a test's time.
    """
    files = {
        name: file
        for file in (project / "reframe_checks").glob("*.py")
        for name in re.findall(r"^class (\w+)\(", file.read_text(), re.M)
    }
    named = {files[name] for name in re.findall(r"[A-Z]\w+", only) if name in files}
    if not named:
        return ["-c", str(project / "reframe_checks")]
    named |= {files["Preflight"]}
    return [word for file in sorted(named) for word in ("-c", str(file))]


#: An output, or several files of a play, and the outcome and sentence that it must get.
Wrong = tuple[str | Mapping[str, str], str, str]


@dataclass
class StandIn:
    """A project root with one image that the script plays."""

    root: Path
    #: More of the environment in which ReFrame runs.
    variables: dict[str, str] = field(default_factory=dict)
    #: The checkout that the checks are of.
    project: Path = PROJECT

    def write(self, stdout: str, stderr: str = "", code: int = 0) -> None:
        (self.root / "stdout").write_text(stdout)
        (self.root / "stderr").write_text(stderr)
        (self.root / "code").write_text(str(code))

    def label(self, labels: Mapping[str, str]) -> None:
        """Have the image say other labels, and images.lock have them and the image's digest."""
        path = self.root / "containers" / "images.lock"
        lock = json.loads(path.read_text())
        image = self.root / ".wyeast" / "images" / f"{IMPLEMENTATION}.sif"
        write_sif(image, [said(dict(labels))])
        digest = hashlib.sha256(image.read_bytes()).hexdigest()
        lock["images"][IMPLEMENTATION] |= {"labels": dict(labels), "sha256": digest}
        path.write_text(json.dumps(lock))

    def labels(self) -> dict[str, str]:
        """Return what the image says."""
        lock = json.loads((self.root / "containers" / "images.lock").read_text())
        return dict(lock["images"][IMPLEMENTATION]["labels"])

    def run(
        self, *options: str, only: str = "PointToPoint.*=Send/Recv.*=short",
        then: Sequence[int] = (),
    ) -> Outcome:  # fmt: skip
        """Run the checks whose names match `only`, and then other rounds of them."""
        campaign = self.root / "runs" / "campaign"
        campaign.mkdir(parents=True, exist_ok=True)
        environment = {
            **unmeasured(),
            "PATH": f"{self.root}/bin:{os.environ['PATH']}",
            "PYTHONPATH": str(self.project),
            "RFM_CONFIG_PATH": str(self.project / "site_configs"),
            "RFM_SYSTEM": "local",
            "RFM_COLORIZE": "no",
            "RFM_PREFIX": str(self.root / "reframe"),
            "STAND_IN": str(self.root),
            "WYEAST_ROOT": str(self.root),
            "WYEAST_IMAGES": IMPLEMENTATION,
            "WYEAST_CAMPAIGN": str(campaign),
            "WYEAST_TIER": "quick",
            **self.variables,
        }
        told: tuple[int, ...] = ()
        if then:
            read, write = os.pipe()
            os.write(write, "".join(f"{number}\n" for number in then).encode())
            os.close(write)
            told = (read,)
            environment |= {TOLD: str(read), "WYEAST_ORDER_SEED": "1"}
        arguments = [*check_path(only, self.project), "-r", "-n", only, "--exec-policy=serial",
                     *options]  # fmt: skip
        if self.project == PROJECT:
            done = reframe(arguments, environment, descriptors=told)
        else:
            done = subprocess.run(
                [self.project / "reframe_checks/bin/reframe", *arguments],
                env=environment, cwd=self.project, capture_output=True, text=True, timeout=600,
                check=False, pass_fds=told,
            )  # fmt: skip
        for descriptor in told:
            os.close(descriptor)
        return Outcome(
            done.returncode,
            done.stdout + done.stderr,
            [record for record in records_in(campaign).values()
             if record["experiment"] != "Preflight"],
        )  # fmt: skip

    def play(
        self, *plays: Mapping[str, str], only: str, options: Sequence[str] = ()
    ) -> list[Outcome]:
        """Start ReFrame once, which costs seconds, and return what became of each play.

        A play has contents of files that the script plays in it instead of those that are there,
        and is a variant of the image. What ReFrame as a whole ends with is checked here: a failure
        of one check is one of the run.
        """
        names = [f"{IMPLEMENTATION}+{number}" for number in range(len(plays))]
        for number, files in enumerate(plays):
            folder = self.root / "plays" / str(number)
            folder.mkdir(parents=True)
            for name, text in files.items():
                (folder / name).write_text(text)
        variants = {f"org.wyeast.variant.{n}": f"PLAY={n}" for n in range(len(plays))}
        self.label(self.labels() | variants)
        before = dict(self.variables)
        self.variables["WYEAST_IMAGES"] = ",".join(names)
        report = self.root / "plays" / "report.json"
        try:
            whole = self.run(*options, f"--report-file={report}", only=only)
        finally:
            self.variables = before
        assert report.is_file(), whole.text
        [run] = json.loads(report.read_text())["runs"]
        outcomes = []
        for name in names:
            cases = [case for case in run["testcases"]
                     if re.search(rf"={re.escape(name)}( |$)", case["display_name"])]  # fmt: skip
            assert cases, f"{name} is in no test case\n{whole.text}"
            failed = [case for case in cases if case["result"] != "pass"]
            reasons = "\n".join(f"Reason: {case['fail_reason']}" for case in failed)
            launches = [one for one in whole.launches if one["implementation"] == name]
            outcomes.append(Outcome(int(bool(failed)), reasons, launches))
        assert (whole.code != 0) == any(one.code for one in outcomes), whole.text
        return outcomes

    def refuse(self, wrong: Sequence[Wrong], only: str) -> None:
        """Play what is not right; fail unless each launch is kept with its outcome and sentence."""
        plays = [{"stdout": play} if isinstance(play, str) else play for play, *_ in wrong]
        for (_, kind, sentence), outcome in zip(wrong, self.play(*plays, only=only), strict=True):
            assert outcome.code != 0, sentence
            [launch] = outcome.launches
            said = str(launch["sentence"])
            assert launch["outcome"] == kind and sentence in said, (sentence, said)

    def settings(self, change: Callable[[str], str]) -> str:
        """Return the path of settings for a site `local` whose file is another."""
        sites = self.root / "sites"
        (sites / "local").mkdir(parents=True)
        for name in ("settings.py", "local/references.yaml"):
            (sites / name).write_text((PROJECT / "site_configs" / name).read_text())
        data = (PROJECT / "site_configs/local/site.yaml").read_text()
        assert change(data) != data
        (sites / "local/site.yaml").write_text(change(data))
        return str(sites / "settings.py")


def stand_in_at(folder: Path) -> StandIn:
    """Return a project root with a locked image and a script in Apptainer's place."""
    for name in ("site_configs", "literature"):
        (folder / name).symlink_to(PROJECT / name)
    (folder / "containers").mkdir()
    table = PROJECT / "containers" / "implementations.yaml"
    (folder / "containers" / "implementations.yaml").symlink_to(table)
    image = folder / ".wyeast" / "images" / f"{IMPLEMENTATION}.sif"
    image.parent.mkdir(parents=True)
    write_sif(image, [said(LABELS)])
    entry = {
        "file": image.name,
        "sha256": hashlib.sha256(image.read_bytes()).hexdigest(),
        "bytes": image.stat().st_size,
        "inputs_sha256": "0" * 64,
        "built_utc": "2026-01-01T00:00:00Z",
        "labels": LABELS,
        "origin": {"how": "built"},
    }
    lock = {"schema": "wyeast-images-1", "images": {IMPLEMENTATION: entry}}
    (folder / "containers" / "images.lock").write_text(json.dumps(lock))
    (folder / "preflight.out").write_text(PREFLIGHT)
    (folder / "environment").write_text("PATH=/bin\0")
    script = folder / "bin" / "apptainer"
    script.parent.mkdir()
    script.write_text(APPTAINER)
    script.chmod(0o755)
    here = StandIn(folder)
    here.write(pingpong())
    (folder / "container_code").write_text("0")
    (folder / "apptainer.version").write_text("apptainer version 1.4.0\n")
    return here


@pytest.fixture
def stand_in(tmp_path: Path) -> StandIn:
    """Return a project root of a test's own."""
    return stand_in_at(tmp_path)


@pytest.fixture
def relock(stand_in: StandIn) -> Callable[[str], None]:
    """Return a function that writes another digest into images.lock."""

    def write(sha256: str) -> None:
        path = stand_in.root / "containers" / "images.lock"
        lock = json.loads(path.read_text())
        lock["images"][IMPLEMENTATION]["sha256"] = sha256
        path.write_text(json.dumps(lock))

    return write
