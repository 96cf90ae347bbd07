"""The ready file of a repository that only consumes signed images."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

PROJECT = Path(__file__).resolve().parents[2]
FILE = PROJECT / "site_configs" / "templates" / "signed-images" / "github-actions.yml"


def steps() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = yaml.safe_load(FILE.read_text())["jobs"]["measure"]["steps"]
    return found


def test_it_is_a_workflow_with_no_more_rights_than_it_needs() -> None:
    flow = yaml.safe_load(FILE.read_text())
    assert flow["permissions"] == {"contents": "read"} and set(flow["on"]) == {
        "workflow_dispatch", "schedule"
    }  # fmt: skip
    assert flow["concurrency"]["cancel-in-progress"] is False
    assert all(one["with"]["persist-credentials"] is False for one in steps()[:2])
    assert "secrets." not in FILE.read_text() and "password:" not in FILE.read_text()


def test_what_others_wrote_is_pinned_to_commits() -> None:
    """The actions, and Wyeast itself, which a person fills in."""
    used = [one["uses"] for one in steps() if "uses" in one]
    assert len(used) == 3 and all(re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", one) for one in used)
    nightly = (PROJECT / "site_configs/templates/nightly/github-actions.yml").read_text()
    assert set(used) == set(re.findall(r"uses: *(\S+)", nightly))
    wyeast = steps()[1]["with"]
    assert wyeast["ref"] == "${{ env.WYEAST_COMMIT }}" and wyeast["clean"] is False


def test_images_are_pulled_by_a_lock_and_verified_before_anything_is_measured() -> None:
    lines = [one["run"] for one in steps() if "run" in one]
    made = [re.findall(r"\bmake -C wyeast ([a-z-]+)((?: [A-Z_]+=\S+)*)", line) for line in lines]
    made = [found for one in made for found in one]
    assert [target for target, _ in made] == ["pull", "verify"]
    assert "LOCK=" in made[0][1] and "ALLOW_UNSIGNED" not in FILE.read_text()
    for target, given in made:
        given_names = " ".join(re.findall(r"([A-Z_]+)=", given))
        done = subprocess.run(
            ["awk", "-f", "campaign/bin/request.awk", "Makefile"], cwd=PROJECT, text=True,
            env={**os.environ, "goals": target, "given": given_names},
            capture_output=True, check=True,
        )  # fmt: skip
        assert done.stdout == "", "make refuses it"


def test_it_measures_what_was_verified_and_builds_nothing() -> None:
    """`make run` would build an image that is of other inputs than the commit's."""
    lines = [one["run"] for one in steps() if "run" in one]
    verified = lines.index("make -C wyeast verify")
    [measured] = [at for at, line in enumerate(lines) if "-m campaign" in line]
    assert measured > verified and not any(
        re.search(r"\bmake\b.* (run|images)\b", x) for x in lines
    )
    words = lines[measured].partition("-m campaign ")[2].split()
    done = subprocess.run(
        [sys.executable, "-m", "campaign", *words, "--help"], cwd=PROJECT, text=True,
        capture_output=True, check=True,
    )  # fmt: skip
    assert all(word in done.stdout for word in words if word.startswith("--"))


def test_only_this_runs_report_is_shown(tmp_path: Path) -> None:
    last = steps()[-2]
    assert last["if"] == "always()" == steps()[-1]["if"]
    old, new = (tmp_path / "wyeast" / "runs" / name / "report.html" for name in ("a", "b"))

    def shell() -> list[str]:
        subprocess.run(
            ["bash", "-e", "-c", last["run"]], cwd=tmp_path, check=True,
            env={**os.environ, "GITHUB_STEP_SUMMARY": str(tmp_path / "summary")},
        )  # fmt: skip
        return [path.read_text() for path in (tmp_path / "measured").iterdir()]

    old.parent.mkdir(parents=True)
    old.write_text("old")
    (tmp_path / "begun").touch()
    times = (tmp_path / "begun").stat()
    os.utime(old, (times.st_atime - 10, times.st_mtime - 10))
    assert shell() == [] and (tmp_path / "summary").read_text() == "no report\n"
    new.parent.mkdir(parents=True)
    new.write_text("new")
    os.utime(new, (times.st_atime + 10, times.st_mtime + 10))
    assert shell() == ["new"]


def test_the_keys_that_count_are_this_repositorys_alone(tmp_path: Path) -> None:
    [line] = [one["run"] for one in steps() if "containers/trust" in one.get("run", "")]
    for name in ("wyeast/containers/trust/theirs.asc", "ours/wyeast/keys/ours.asc"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(name)
    subprocess.run(["bash", "-e", "-c", line], cwd=tmp_path, check=True)
    found = [path.name for path in (tmp_path / "wyeast/containers/trust").iterdir()]
    assert found == ["ours.asc"]
