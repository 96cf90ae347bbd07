"""`make study` measures what the report's study names, and ends with its page."""

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from analysis.studies.reading import papers, read_paper
from campaign import choice
from campaign.beginning import as_study
from campaign.concluding import conclusion
from campaign.request import command_of
from records.base import CampaignError

PROJECT = Path(__file__).resolve().parents[2]


def options(**given: object) -> argparse.Namespace:
    defaults = {
        "site": "local", "tier": "quick", "rounds": 3, "images": "", "checks": None,
        "study": None, "resume": None, "host_mpi": None, "like": None, "raw_by_rank": False,
        "all_pairs": False, "ranks": None, "ranks_per_node": None,
        "name": None, "time_limit": None, "seed": None, "budget": None,
    }  # fmt: skip
    return argparse.Namespace(**{**defaults, **given})


def test_a_study_chooses_checks_and_images() -> None:
    chosen = options(study="kearns2003")
    as_study(chosen)
    assert chosen.images == "lam-7.1.4,mpich-5.0.2"
    for name in ("Linpack%grid=4x6%n=2000", "StartUp%ranks=2%cache=warm", "PointToPoint%pair=x"):
        assert re.search(chosen.checks, name)
    for name in ("SerialLinpack%image", "ProfileLinpack%suite=x", "StartUp%ranks=2%cache=cold"):
        assert not re.search(chosen.checks, name)


def test_words_on_the_command_line_go_before() -> None:
    chosen = options(study="kearns2003", images="lam-7.1.4", checks="Linpack")
    as_study(chosen)
    assert (chosen.images, chosen.checks) == ("lam-7.1.4", "Linpack")


def test_a_campaign_without_a_study_is_left_alone() -> None:
    chosen = options()
    as_study(chosen)
    assert chosen.checks is None and chosen.images == ""


@pytest.mark.parametrize("name", papers(PROJECT))
def test_every_study_can_be_chosen(name: str) -> None:
    chosen = options(study=name)
    as_study(chosen)
    study = read_paper(PROJECT, name).study
    for experiment in study.experiments.values():
        assert re.compile(experiment.choose) and experiment.choose in chosen.checks


def test_an_unknown_report_is_refused() -> None:
    with pytest.raises(CampaignError, match="literature/ has: iit, kearns2003"):
        as_study(options(study="kearns"))
    with pytest.raises(CampaignError, match="make study PAPER="):
        choice.study_of(PROJECT, "")


def test_the_command_that_is_kept_repeats_it() -> None:
    chosen = options(study="iit", site="virtual", rounds=6)
    as_study(chosen)
    assert command_of(chosen) == (
        "make study PAPER=iit SITE=virtual TIER=quick ROUNDS=6 IMAGES=lam-7.1.4+lamd"
    )


def test_a_study_has_its_page_with_the_report() -> None:
    campaign = Path("runs/x")
    assert conclusion(campaign, None) == ["conclude", "runs/x"]
    assert conclusion(campaign, "iit") == ["conclude", "runs/x", "--study", "iit"]


def make(*words: str) -> subprocess.CompletedProcess[str]:
    # With -n make prints what it would do; only the choice of images is really asked for. The
    # interpreter of the tests stands in for the project's, which a bare checkout lacks.
    return subprocess.run(
        ["make", "-n", f"PYTHON={sys.executable}", "-o", ".wyeast/venv/.for-run", *words],
        cwd=PROJECT, env=dict(os.environ), capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_make_study_measures_with_the_reports_images() -> None:
    done = make("study", "PAPER=kearns2003", "SITE=virtual", "TIER=paper", "ROUNDS=6")
    assert done.returncode == 0, done.stderr
    line = " ".join(done.stdout.replace("\\\n", " ").split())
    assert (
        "-m campaign --site='virtual' --tier='paper' --rounds='6' --images='lam-7.1.4,mpich-5.0.2'"
        in line
    )
    assert "--study='kearns2003'" in line


def test_make_study_refuses_with_the_known_ones() -> None:
    done = make("study", "PAPER=nobody1999")
    assert done.returncode != 0
    assert "no study of nobody1999; literature/ has: iit, kearns2003" in done.stderr


def test_make_help_lists_the_reports() -> None:
    done = subprocess.run(
        ["make", "help"], cwd=PROJECT, capture_output=True, text=True, check=False
    )
    assert "make study" in done.stdout
    for name in papers(PROJECT):
        assert name in done.stdout
