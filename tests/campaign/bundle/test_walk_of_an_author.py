"""An author's way: a study, the appendix, a bundle; then a reviewer does what the appendix says."""

import json
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from campaign.bundle import make, rerun
from tests.analysis.support.in_process import analysis
from tests.analysis.support.synthetic import TWICE, Synthetic
from tests.campaign.bundle.conftest import NAME, Checkout, checkout_at, git

ADDRESS = "https://example.org/wyeast"


@pytest.fixture
def author(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Checkout:
    """Return a checkout with a campaign that compares two implementations."""
    checkout = checkout_at(tmp_path / "author", monkeypatch)
    git(checkout.root, "remote", "add", "origin", ADDRESS)
    digests = {name: checkout.put_image(name.encode(), name) for name in TWICE}
    facts = checkout.facts(digests) | {"commands": ["make run ROUNDS=6"]}
    folder = Synthetic(checkout.root / "runs" / NAME, TWICE, rounds=6, facts=facts).write()
    for file in (folder / "launches").glob("*/launch.json"):
        record = json.loads(file.read_text())
        file.write_text(json.dumps(record | {"image_sha256": digests[record["implementation"]]}))
    (folder / "reframe").mkdir()
    for module in ("campaigns", "export"):
        monkeypatch.setattr(f"analysis.commands.{module}.ROOT", checkout.root)
    return checkout


def blocks(text: str) -> list[list[str]]:
    """Return the commands of each block of a page."""
    return [one.strip().splitlines() for one in text.split("```")[1::2]]


def test_a_reviewer_does_what_the_appendix_says(
    author: Checkout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    campaign = author.root / "runs" / NAME
    study = analysis("study", "kearns2003", str(campaign), "--no-tables", "--page")
    assert study.returncode == 0 and (campaign / "study.html").is_file(), study.stderr
    done = analysis("export", str(campaign), "-f", "appendix", "-o", str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert make.main([NAME, "--with-images", "--redact"]) == 0
    bundle = author.root / ".wyeast" / "bundles" / f"{NAME}.tar.gz"
    appendix = (tmp_path / "appendix.md").read_text()
    evaluation = appendix[appendix.index("# Artifact Evaluation") :]

    # Where the reviewer is, with the archive and nothing else of the author's.
    desk = tmp_path / "desk"
    desk.mkdir()
    (desk / bundle.name).write_bytes(bundle.read_bytes())
    setup, run = blocks(evaluation)[:2]
    assert setup[:3] == [f"git clone {ADDRESS} wyeast", "cd wyeast",
                         f"git checkout {git(author.root, 'rev-parse', 'HEAD')}"]  # fmt: skip
    folder, clone = desk / "unpacked", desk / "wyeast"
    clone.mkdir()
    folder.mkdir()
    verified = 0
    for command in setup:
        if command.startswith(("tar ", "(cd ")):
            typed = re.sub(r"<an empty folder>|<that folder>", str(folder), command)
            subprocess.run(["bash", "-ec", typed], cwd=clone, check=True, stdout=subprocess.DEVNULL)
            verified += 1
    assert verified == 2

    # The commands that repeat it name this archive, and are taken as they are.
    reviewer = checkout_at(tmp_path / "reviewer", monkeypatch)
    for command in (setup[-1], *run):
        words = shlex.split(command.replace("<your site>", "local"))
        assert words[:2] == ["make", "rerun"]
        given = dict(word.split("=", 1) for word in words[2:])
        assert (clone / given.pop("BUNDLE")).resolve() == desk / bundle.name and given.pop(
            "SITE"
        ) == "local"
        assert given in ({"DRY_RUN": "1"}, {})
    assert rerun.main([str(desk / bundle.name), "--dry-run", "--allow-unsigned"]) == 0
    assert "would measure it again on local, 6 rounds, and compare" in capsys.readouterr().out
    assert not (reviewer.root / "runs" / NAME).exists()

    # What is expected is what the campaign says, in the bundle's README and in the appendix alike.
    readme = next(folder.glob("*/README.md")).read_text()
    assert ADDRESS in readme and "faster" in readme.partition("## What to expect")[2]
    assert "faster" in appendix.partition("## Paper's main contributions")[2].partition("## ")[0]
