"""What cannot be measured is refused before images are built; a kept command repeats a campaign."""

import argparse
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from campaign import __main__ as campaigns
from campaign import beginning, choice, nightly, request, resuming
from campaign.patterns import refuse_pattern
from cluster import box
from containers import images, selection
from containers.table import TableError
from records import files
from records.base import CampaignError
from records.manifest import NO_COMMAND
from tests.other_user import give, needs_root
from tests.whole_records import manifest, put_manifest

PROJECT = Path(__file__).resolve().parents[2]
IMAGES = {"mpich-5.0.2": {"sha256": "1" * 64}}
REFUSED = [
    ("--rounds=0", "ROUNDS=0: a campaign has 1 to 999999 rounds"),
    ("--rounds=-1", "ROUNDS=-1: a campaign has 1 to 999999 rounds"),
    ("--rounds=abc", "ROUNDS=abc: a campaign has 1 to 999999 rounds"),
    ("--rounds=1.5", "ROUNDS=1.5: a campaign has 1 to 999999 rounds"),
    ("--tier=huge", "TIER=huge is unknown; choose one of: quick, paper, site"),
    ("--site=nowhere", "site nowhere is unknown; site_configs/ has box-mpirun, box-sge, local, "),
    ("--site=virtual", "SITE=virtual: the cluster is not up; start it with: make cluster-up"),
    ("--checks=(", "CHECKS='(' is not a valid regular expression: missing )"),
    ("--images=mpich-5.0.3", "no implementation `mpich-5.0.3`; did you mean `mpich-5.0.2`?"),
    ("--images= ,", "IMAGES=' ,' names no implementation; containers/implementations.yaml has"),
    ("--images=mpich-5.0.2-abi+host", "mpich-5.0.2-abi+host has an MPI of this machine bound in"),
    ("--host-mpi=/nowhere", "/nowhere is not a folder; give the one that contains the MPI's bin/"),
    ("--images=mpich-5.0.2,lam-7.1.4+lam", "lam-7.1.4 has no variant `lam`"),
    ("--resume=nobody", "nobody is not a campaign: it has no readable manifest.json"),
    (
        "--resume=begun",
        "begun belongs to site virtual; resume it: make run SITE=virtual RESUME=begun",
    ),
    ("--study=nobody1999", "no study of nobody1999; literature/ has: "),
]


@pytest.mark.parametrize(
    ("site", "found", "make"), [("virtual", "sge", "slurm"), ("box-sge", "slurm", "sge")]
)
def test_a_cluster_with_another_scheduler_is_no_site_s(site: str, found: str, make: str) -> None:
    request.refuse_another_scheduler(PROJECT, site, make)
    request.refuse_another_scheduler(PROJECT, "box-mpirun", "slurm")
    with pytest.raises(CampaignError) as refused:
        request.refuse_another_scheduler(PROJECT, site, found)
    assert f"make cluster-down && make cluster-up SCHEDULER={make}" in str(refused.value)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a checkout with a begun campaign, in which nothing is built or up."""
    for part in ("site_configs", "containers", "literature", "reframe_checks", "campaign"):
        (tmp_path / part).symlink_to(PROJECT / part)
    put_manifest(tmp_path / "runs" / "begun", site="virtual", finished_utc=None, checks="Nas",
                 images=IMAGES)  # fmt: skip
    monkeypatch.setattr(images, "available", lambda root: [])
    for module in (beginning, choice, nightly):
        monkeypatch.setattr(module, "ROOT", tmp_path)
    return tmp_path


@pytest.mark.parametrize(("word", "sentence"), REFUSED)
def test_what_cannot_be_is_one_sentence(
    word: str, sentence: str, project: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setattr(sys, "argv", ["campaign", "--look", word])
    assert campaigns.main() == 1
    said = capsys.readouterr()
    assert sentence in said.err and len(said.err.splitlines()) == 1 and said.out == ""
    assert [path.name for path in (project / "runs").iterdir()] == ["begun"]


@needs_root
def test_root_may_have_the_job_users_campaign_gone_on_with(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is looked at by root, outside of the cluster, and measured by its owner inside."""
    give(project / "runs" / "begun")
    became: list[int] = []
    # Pytest's folder is closed to others.
    monkeypatch.setattr(files, "text_of", Path.read_text)
    monkeypatch.setattr(resuming, "become", lambda uid, root: became.append(uid))
    monkeypatch.setattr(files, "belongs_to_us", lambda path: [path.stat().st_uid] == became)
    monkeypatch.setattr(box, "running", lambda state: (1, {}))
    monkeypatch.setattr(sys, "argv", ["campaign", "--look", "--site=virtual", "--resume=begun"])
    assert campaigns.main() == 0 and capsys.readouterr().err == ""


@pytest.mark.parametrize(("word", "sentence"), [REFUSED[1], REFUSED[4], REFUSED[5], REFUSED[7]])
def test_a_night_refuses_them_too(
    word: str, sentence: str, project: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setattr(sys, "argv", ["nightly", word])
    assert nightly.main() == 1 and sentence in capsys.readouterr().err


def test_a_night_refuses_checks_that_fit_nothing(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(nightly, "usable", lambda *_: (["mpich-5.0.2"], {}))
    monkeypatch.setattr(request, "matching", lambda *_: 0)
    monkeypatch.setattr(sys, "argv", ["nightly", "--checks=x"])
    assert nightly.main() == 1
    assert "CHECKS=x matches no check of mpich-5.0.2" in capsys.readouterr().err
    assert [path.name for path in (project / "runs").iterdir()] == ["begun"]


def test_names_of_images_are_known_before_they_are_built(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for words in (
        "mpich-5.0.2, lam-7.1.4+lamd",
        "mpich-5.0.2-abi+host",
        "mpich-5.0.2+host-x-1",
        "default",
        "all",
        "",
    ):
        assert request.known(project, "local", words)
    assert request.known(project, "local", "") == selection.wanted(project, "local")
    with pytest.raises(TableError):
        request.known(project, "local", "brought-1.0")
    # One that came in a bundle or was pulled is in no table.
    monkeypatch.setattr(images, "available", lambda root: ["brought-1.0"])
    lock: dict[str, Any] = {"images": {"brought-1.0": {"labels": {}}}}
    monkeypatch.setattr(images, "load_lock", lambda root: lock)
    assert request.known(project, "local", "brought-1.0") == ["brought-1.0"]
    with pytest.raises(images.ImageError, match="has no variants"):
        request.known(project, "local", "brought-1.0+x")


def test_checks_that_fit_nothing_are_refused_without_an_image() -> None:
    """ReFrame itself says what a pattern fits."""
    options = campaigns.arguments(["--checks=Nothing of this name"])
    names = ["mpich-5.0.2", "mpich-5.0.2-abi+host"]
    assert request.matching(PROJECT, options, names) == 0
    with pytest.raises(CampaignError, match="CHECKS='Nothing of this name' matches no check of "):
        request.refuse_before_building(PROJECT, options)
    options.checks = "^EchoTest|Linpack.*%grid=1x1"
    assert request.matching(PROJECT, options, names) > 2


ASKED = [
    [], ["--site=virtual", "--tier=paper", "--rounds=7"], ["--budget=0.5h", "--checks=^Nas"],
    ["--tier=paper"], ["--ranks=2,4,8", "--ranks-per-node=1,2", "--checks=Collectives"],
    ["--images=mpich-5.0.2,lam-7.1.4+lamd"], ["--images=all", "--raw-by-rank"], ["--all-pairs"],
    ["--checks=PointToPoint %pair=Send/Recv|a'b\"c$d$$ $(touch x)`e`\\ f=g;h"],
    ["--host-mpi=/opt/an mpi", "--images=mpich-5.0.2-abi+host"], ["--study=iit"],
    ["--study=iit", "--images=mpich-5.0.2", "--checks=Linpack$", "--raw-by-rank"],
    ["--study=iit", "--all-pairs"],
    ["--seed=5", "--checks=-a 'b' $c", "--rounds=2"], ["--name=mine", "--time-limit=30m"],
    ["--study=iit", "--name=mine", "--images=a,b"],
]  # fmt: skip


def asked_by(command: str) -> dict[str, Any]:
    """Return the options that a kept command gives a campaign, through a shell and make."""
    first, *rest = shlex.split(command)
    if first == "python":
        return vars(campaigns.arguments(rest[2:]))
    line = command.replace("make", f"make -n PYTHON={sys.executable} -o .wyeast/venv/.for-run", 1)
    done = subprocess.run(
        line, shell=True, cwd=PROJECT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    [words] = [
        words
        for words in map(shlex.split, done.stdout.replace("\\\n", " ").splitlines())
        if "campaign" in words and "--look" not in words
    ]
    return vars(campaigns.arguments(words[words.index("campaign") + 1 :]))


@pytest.mark.parametrize("words", ASKED, ids=" ".join)
def test_the_kept_command_repeats_the_campaign(words: list[str]) -> None:
    """Pasted into a shell it gives the campaign the same options, to the letter."""
    options = campaigns.arguments(words)
    beginning.as_study(options)
    request.with_design(PROJECT, options)
    command = request.command_of(options)
    again = argparse.Namespace(**asked_by(command))
    beginning.as_study(again)
    # So it is shown, too.
    assert manifest(commands=[command]).commands_to_paste() == [command]
    # It names what was the site's, or usual.
    assert (again.rounds, again.budget) == (options.rounds, options.budget)
    request.with_design(PROJECT, again)
    assert vars(again) == vars(options)


@pytest.mark.parametrize(
    "command",
    [
        "make run; touch owned", "make run SITE=$(touch owned)", "make run SITE='a' `touch owned`",
        "make run PYTHON='sh -c id'", "make run SITE=a\ntouch owned", "make clean", "sh -c id",
        "python -m campaign --site=a && id", "python -m campaign '--site=a'$(id)", "make run 'a",
    ],
)  # fmt: skip
def test_a_command_of_others_is_not_shown_to_be_pasted(command: str) -> None:
    assert manifest(commands=[command]).commands_to_paste() == [NO_COMMAND]


def test_the_kept_command_names_the_implementations(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which are the site's, or all, may be others when it is pasted."""
    monkeypatch.setattr(images, "available", lambda root: ["openmpi-5.0.11", "mpich-5.0.2"])
    named = ["--images=mpich-5.0.2, openmpi-5.0.11", "--images=all", "--images=default", ""]
    for word in named:
        options = campaigns.arguments([word] if word else [])
        request.with_design(PROJECT, options)
        again = asked_by(request.command_of(beginning.with_names(options)))
        known = selection.implementations(project, "local", options.images)
        assert len(known) > 1 and again["images"] == ",".join(known)
        assert {**again, "images": ""} == {**vars(options), "images": ""}


def test_the_kept_command_goes_on_with_the_campaign() -> None:
    options = campaigns.arguments(["--site=virtual", "--resume=20260101T000000Z-virtual-a"])
    again = asked_by(request.command_of(options))
    assert (again["site"], again["resume"]) == (options.site, options.resume)


@pytest.mark.parametrize("pattern", [r"^(\S+)+!$", r"^(.*)*[^\w\W]$", r"(%|%\w+|\w+|\S)*~$"])
def test_a_pattern_that_may_never_end_is_refused(pattern: str) -> None:
    """It would be matched while the campaign holds the machine."""
    with pytest.raises(CampaignError, match="may never end"):
        refuse_pattern(pattern)


@pytest.mark.parametrize(
    "pattern",
    ["PointToPoint.*(Send/Recv|Isend).*range=(short|long)", r"^(Su3|Nas) %.*ranks=\d+", ".*", None],
)
def test_a_pattern_that_ends_is_not_refused(pattern: str | None) -> None:
    refuse_pattern(pattern)


def test_a_pattern_is_tried_where_processor_time_is_limited() -> None:
    """As by `ulimit -t` on a login node; nobody may raise it."""
    script = (
        "import resource; from campaign import patterns; patterns.MOST_S = 1000; "
        "resource.setrlimit(resource.RLIMIT_CPU, (900, 900)); patterns.refuse_pattern('EchoTest')"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
