"""The ready files for nights: each can be read by what it is for, and calls what there is."""

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

PROJECT = Path(__file__).resolve().parents[2]
TEMPLATES = PROJECT / "site_configs" / "templates" / "nightly"
#: Minute, hour, day of month, month, day of week: the least and the largest of each.
RANGES = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))


def entries(name: str) -> list[tuple[list[str], str]]:
    """Return the five fields and the command of each line of a crontab that is an entry."""
    found = []
    for line in (TEMPLATES / name).read_text().splitlines():
        if line and not line.startswith("#") and not re.match(r"\w+\s*=", line):
            *fields, command = line.split(maxsplit=5)
            found.append((fields, command))
    return found


def commands() -> dict[str, str]:
    """Return what each file has the night started by."""
    gitlab = yaml.safe_load((TEMPLATES / "gitlab-ci.yml").read_text())
    github = yaml.safe_load((TEMPLATES / "github-actions.yml").read_text())
    steps = [step["run"] for step in github["jobs"]["nightly"]["steps"] if "run" in step]
    [cron], [scron] = entries("crontab"), entries("scrontab")
    return {
        "gitlab-ci.yml": gitlab["nightly"]["script"][0], "github-actions.yml": steps[1],
        "crontab": cron[1], "scrontab": scron[1],
    }  # fmt: skip


def test_there_is_a_command_for_every_file() -> None:
    assert set(commands()) == {path.name for path in TEMPLATES.iterdir()}


@pytest.mark.parametrize("name", ["crontab", "scrontab", "gitlab-ci.yml", "github-actions.yml"])
def test_what_is_called_exists(name: str) -> None:
    [words] = re.findall(r"\bmake ([a-z-]+)((?: [A-Z_]+=\S+)+)", commands()[name])
    variables = re.findall(r"([A-Z_]+)=", words[1])
    assert {"SITE", "ROUNDS"} <= set(variables)
    done = subprocess.run(
        ["awk", "-f", "campaign/bin/request.awk", "Makefile"],
        cwd=PROJECT, env={**os.environ, "goals": words[0], "given": " ".join(variables)},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == "", "make refuses it"


@pytest.mark.parametrize("name", ["crontab", "scrontab"])
def test_crontabs_are_well_formed(name: str) -> None:
    [(fields, command)] = entries(name)
    assert len(fields) == 5 and "%" not in command
    for field, (low, high) in zip(fields, RANGES, strict=True):
        assert field == "*" or low <= int(field) <= high


@pytest.mark.parametrize("name", ["crontab", "scrontab", "gitlab-ci.yml", "github-actions.yml"])
def test_commands_are_shell(name: str) -> None:
    done = subprocess.run(["sh", "-n"], input=commands()[name], text=True, check=False)
    assert done.returncode == 0


def test_scrontabs_options_are_sbatchs_and_belong_to_the_entry() -> None:
    lines = (TEMPLATES / "scrontab").read_text().splitlines()
    options = [line for line in lines if line.startswith("#SCRON ")]
    assert lines[-1 - len(options) : -1] == options, "options count for the next line alone"
    words = " ".join(options).replace("#SCRON", "").split()
    names = {word.partition("=")[0] for word in words}
    assert {"--open-mode", "--output", "--chdir", "--time", "--partition"} <= names


@pytest.mark.parametrize("name", ["gitlab-ci.yml", "github-actions.yml"])
def test_only_this_night_is_published(name: str, tmp_path: Path) -> None:
    """Not an older one, one of a site of a longer name, or one that was not judged."""
    text = yaml.safe_load((TEMPLATES / name).read_text())
    if name == "gitlab-ci.yml":
        before, after = (text["nightly"][key] for key in ("before_script", "after_script"))
    else:
        steps = [step["run"] for step in text["jobs"]["nightly"]["steps"] if "run" in step]
        before, after = steps[:1], steps[-1:]
    environment = {**os.environ, "SITE": "local", "GITHUB_STEP_SUMMARY": str(tmp_path / "summary")}

    def shell(lines: list[str]) -> None:
        subprocess.run(
            ["bash", "-e", "-c", "\n".join(lines)], cwd=tmp_path, env=environment, check=True
        )

    def night(folder: str, *files: str) -> None:
        (tmp_path / "runs" / folder).mkdir(parents=True)
        for file in files:
            (tmp_path / "runs" / folder / file).write_text(folder)

    whole = ("night.md", "night.xml", "night.json", "report.html")
    night("20260101T000000Z-local-nightly", *whole)
    shell(before)
    night("20260102T000000Z-local-nightly", "report.html")
    night("20260102T000000Z-not-local-nightly", *whole)
    shell(after)
    assert list((tmp_path / "nightly").iterdir()) == []
    night("20260103T000000Z-local-nightly", *whole)
    shell(after)
    assert {path.name for path in (tmp_path / "nightly").iterdir()} == set(whole)
    assert (tmp_path / "nightly/night.md").read_text() == "20260103T000000Z-local-nightly"


def test_a_runner_cleans_nothing_away() -> None:
    gitlab = yaml.safe_load((TEMPLATES / "gitlab-ci.yml").read_text())
    assert gitlab["variables"]["GIT_CLEAN_FLAGS"] == "none"


def test_results_are_kept_whatever_became_of_the_night() -> None:
    gitlab: dict[str, Any] = yaml.safe_load((TEMPLATES / "gitlab-ci.yml").read_text())["nightly"]
    assert gitlab["artifacts"]["when"] == "always"
    assert gitlab["artifacts"]["reports"]["junit"] == "nightly/night.xml"
    assert "resource_group" in gitlab
    github = yaml.safe_load((TEMPLATES / "github-actions.yml").read_text())
    assert github["concurrency"]["cancel-in-progress"] is False
    steps = github["jobs"]["nightly"]["steps"]
    assert steps[0]["with"]["clean"] is False
    assert [step.get("if") for step in steps[3:]] == ["always()"] * 2


def test_actions_of_others_are_pinned_to_commits() -> None:
    """A tag can be moved to another commit, which would then run with the runner's rights."""
    text = (TEMPLATES / "github-actions.yml").read_text()
    used = re.findall(r"uses: *(\S+)", text)
    assert used and all(re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", one) for one in used), used
