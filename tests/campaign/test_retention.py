"""What the retention of nights removes, and what it never touches."""

import json
from pathlib import Path
from typing import Any

import pytest

from campaign.retention import (
    KEPT_ROWS,
    RAW,
    RemovalPlan,
    checked,
    plan,
    remains,
    remove,
    sentences,
)
from records.base import CampaignError
from records.campaign import IMPORTED
from tests.whole_records import put_manifest

RAW_FILE = "launches/round001_x/stdout"


def campaign(
    root: Path, day: int, name: str = "nightly", verdict: str | None = "nothing",
    night: dict[str, Any] | None = None, site: str = "local", **more: Any,
) -> Path:  # fmt: skip
    """Write a campaign with raw output, tables and a report."""
    path = root / "runs" / f"202601{day:02d}T010000Z-{site}-{name}"
    for file in (RAW_FILE, "reframe/rounds.log", KEPT_ROWS, "report.html"):
        (path / file).parent.mkdir(parents=True, exist_ok=True)
        (path / file).write_text("1234567890")
    if name != "quick":
        more["night"] = night or {"broken": {}}
    put_manifest(path, site=site, **more)
    if verdict:
        (path / "night.json").write_text(json.dumps({"verdict": verdict}))
    return path


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "site_configs" / "local").mkdir(parents=True)
    return tmp_path


def removed(found: RemovalPlan) -> list[Path]:
    return [one.campaign for one in found.removals]


def test_old_nights_go_and_what_they_measured_again_with_them(root: Path) -> None:
    old = campaign(root, 1, verdict="noise")
    again = campaign(root, 1, "nightly-again1", None, {"again_of": old.name})
    others = [campaign(root, day) for day in (2, 3)]
    found = plan(root, "local", 2)
    assert removed(found) == [old, again] and found.removals[0].bytes == 20 and not found.kept
    assert (
        "removing the raw output of 20260101T010000Z-local-nightly, 0.0 MB"
        in (sentences(found, False)[0])
    )
    assert sentences(found, True)[0].startswith("would remove")
    assert (old / RAW_FILE).is_file(), "a plan changes nothing"
    for one in found.removals:
        remove(one)
    for path in (old, again):
        assert (
            not remains(path)
            and json.loads((path / "manifest.json").read_text())["raw_removed_utc"]
        )
        assert (path / KEPT_ROWS).is_file() and (path / "report.html").is_file()
    assert all((path / RAW_FILE).is_file() for path in others)
    assert plan(root, "local", 2) == RemovalPlan([], []), "what is done is not done again"


def test_what_is_never_touched(root: Path) -> None:
    by_day = campaign(root, 1, "quick")
    elsewhere = campaign(root, 1, site="virtual")
    imported = campaign(root, 1, "came-in-a-bundle")
    (imported / IMPORTED).write_text("{}")
    regression = campaign(root, 1, verdict="regression")
    undecided = campaign(root, 2, verdict="measure again")
    unfinished = campaign(root, 3, verdict=None, finished_utc=None)
    missing = campaign(root, 3, "missing", finished_utc=None)
    referenced = campaign(root, 4)
    without_rows = campaign(root, 5)
    (without_rows / KEPT_ROWS).unlink()
    by_its_second = campaign(root, 6)
    again = campaign(root, 6, "nightly-again1", None, {"again_of": by_its_second.name})
    (root / "site_configs" / "local" / "references.yaml").write_text(
        f"# from {referenced.name}\nx: {again.name}\n"
    )
    plain = campaign(root, 7)
    for day in (8, 9):
        campaign(root, day)
    found = plan(root, "local", 2)
    assert removed(found) == [plain]
    said = "\n".join(found.kept)
    for path, words in (
        (regression, "it has a confirmed regression"), (undecided, "it is undecided"),
        (unfinished, f"make nightly RESUME={unfinished.name}"),
        (
            missing,
            f"some of its launches are missing; measure them: make nightly RESUME={missing.name}",
        ),
        (referenced, "site_configs/local/references.yaml names"),
        (without_rows, "lost to the history"), (by_its_second, f"names {again.name}"),
    ):  # fmt: skip
        assert any(one.startswith(path.name) and words in one for one in found.kept), said
    assert not any(one.name in said for one in (by_day, elsewhere, imported))


def test_a_removal_that_was_cut_short_is_finished(root: Path) -> None:
    old = campaign(root, 1)
    for day in (2, 3):
        campaign(root, day)
    (old / "launches").rename(old / ".removed-launches")
    [removal] = plan(root, "local", 2).removals
    remove(removal)
    assert not remains(old) and not any((old / name).exists() for name in RAW)


def test_damage_costs_a_sentence_at_most(root: Path) -> None:
    old = campaign(root, 1)
    for day in (2, 3):
        campaign(root, day)
    (root / "runs" / "x").mkdir()
    (root / "runs" / "x" / "manifest.json").write_text("{")
    (root / "runs" / "20260101T000000Z-local-link").symlink_to(old)
    [removal] = plan(root, "local", 2).removals
    (old / "manifest.json").unlink()
    with pytest.raises(CampaignError, match="could not be removed"):
        remove(removal)
    assert (old / RAW_FILE).is_file()


def test_too_few_are_refused() -> None:
    assert checked(2) == 2
    with pytest.raises(CampaignError, match="KEEP_NIGHTS=1"):
        checked(1)
