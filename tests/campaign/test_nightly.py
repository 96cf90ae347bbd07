"""The course of a night: what is measured again, what happens when something is missing."""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import campaign.__main__
from campaign import beginning, measuring, nightly, provenance, request, resuming
from campaign.nightly import Wanted, command_of, course, usable, wanted_again
from campaign.site_lock import SiteIsBusy, only_campaign
from containers import images, origin, trust
from records.base import CampaignError
from records.manifest import Manifest, RoundDone
from site_configs.entries import SiteError
from tests.whole_records import put_manifest

PROJECT = Path(__file__).resolve().parents[2]
WANTED = Wanted("nightly", "Linpack|PointToPoint", ("alpha-1.0", "beta-2.0"), {"broken": {}})
CHECK = "PointToPoint %pair=Send/Recv %message_range=long %image.implementation=alpha-1.0+x"


def found(check: str = CHECK, outcome: str = "tripped") -> dict[str, Any]:
    return {"check": check, "implementation": "alpha-1.0+x", "outcome": outcome}


class Site:
    """Measures nothing; `broken` names campaigns that cannot be measured."""

    def __init__(
        self, *verdicts: str, broken: str = "", error: type[Exception] = CampaignError
    ) -> None:
        self.verdicts, self.broken, self.error = list(verdicts), broken, error
        self.asked: list[Wanted] = []
        self.judged: list[tuple[list[str], bool]] = []

    def measure(self, wanted: Wanted) -> Path:
        self.asked.append(wanted)
        if self.broken and self.broken in wanted.name:
            raise self.error(f"{wanted.name} measured nothing")
        return Path("runs") / f"20260101T000000Z-local-{wanted.name}"

    def judge(self, night: Path, again: Sequence[Path], decide: bool) -> dict[str, Any]:
        self.judged.append(([path.name.partition("local-")[2] for path in again], decide))
        return {"verdict": self.verdicts.pop(0), "findings": [found()], "exit_code": 0}

    def run(self) -> dict[str, Any]:
        return course(self.measure, self.judge, WANTED)[1]


def test_nothing_is_measured_again_without_need() -> None:
    site = Site("nothing")
    assert site.run()["verdict"] == "nothing"
    assert [wanted.name for wanted in site.asked] == ["nightly"] and len(site.judged) == 1


def test_what_trips_is_measured_twice_and_decided() -> None:
    site = Site("measure again", "regression")
    assert site.run()["verdict"] == "regression"
    assert [wanted.name for wanted in site.asked] == ["nightly", "nightly-again1", "nightly-again2"]
    assert site.judged == [([], False), (["nightly-again1", "nightly-again2"], True)]
    assert {wanted.images for wanted in site.asked[1:]} == {("alpha-1.0+x",)}


@pytest.mark.parametrize("error", [CampaignError, images.ImageError, SiteError, OSError])
def test_what_cannot_be_measured_again_is_decided_all_the_same(
    error: type[Exception], capsys: pytest.CaptureFixture[str]
) -> None:
    site = Site("measure again", "incomplete", broken="again1", error=error)
    assert site.run()["verdict"] == "incomplete"
    assert site.judged[1] == (["nightly-again2"], True)
    assert "nightly-again1 measured nothing" in capsys.readouterr().err


def test_a_night_that_measures_nothing_is_an_error() -> None:
    with pytest.raises(CampaignError, match="measured nothing"):
        Site("nothing", broken="nightly").run()


def test_the_expression_selects_what_tripped_and_nothing_else() -> None:
    from reframe.frontend.filters import have_any_name

    told = {"findings": [found(), found("Linpack %grid=1x1", "noise")]}
    wanted = wanted_again(Path("runs/night"), WANTED, told, 2)
    assert wanted.facts == {"again_of": "night", "number": 2}

    def selected(name: str) -> bool:
        check = argparse.Namespace(display_name=name, hashcode="0")
        return bool(have_any_name([wanted.checks])(argparse.Namespace(check=check)))

    assert selected(CHECK)
    for other in (CHECK.replace("long", "short"), CHECK.replace("+x", ""), f"Other{CHECK}",
                  f"{CHECK}1", "Linpack %grid=1x1"):  # fmt: skip
        assert not selected(other)


def test_too_much_to_name_is_measured_whole() -> None:
    told = {"findings": [found(f"{CHECK} %n={n}") for n in range(2000)]}
    assert wanted_again(Path("runs/night"), WANTED, told, 1).checks == WANTED.checks


def test_broken_images_do_not_stop_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def verified(root: Path, name: str) -> tuple[Path, tuple[int, ...], dict[str, Any]]:
        if name != "mpich-5.0.2":
            raise images.ImageError(f"{name} is missing; build it")
        return root, (), {"origin": origin.BUILT}

    monkeypatch.setattr(images, "verified", verified)
    whole, broken = usable(PROJECT, "virtual", "")
    assert whole == ["mpich-5.0.2"] and "lam-7.1.4" in broken
    assert usable(PROJECT, "local", "a-1,mpich-5.0.2")[1] == {"a-1": "a-1 is missing; build it"}
    with pytest.raises(CampaignError, match="no image can be measured: a-1 is missing"):
        usable(PROJECT, "local", "a-1")


def test_an_image_that_the_site_refuses_does_not_stop_the_others(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "containers").mkdir()
    for name in ("alpha-1.0", "beta-2.0"):
        (root / f"{name}.sif").touch(0o644)
    site = root / "site_configs" / "local" / "site.yaml"
    built = {"origin": origin.BUILT}
    monkeypatch.setattr(images, "verified", lambda root, name: (root / f"{name}.sif", (), built))

    def signers(root: Path, path: Path) -> list[trust.PublicKey]:
        if path.name == "alpha-1.0.sif":
            raise trust.TrustError(f"{path.name} is not signed; sign it: make sign")
        return []

    monkeypatch.setattr(trust, "_signers_of", signers)
    both = "alpha-1.0,beta-2.0"
    assert usable(root, "local", both) == (["alpha-1.0", "beta-2.0"], {})
    site.write_text(f"{site.read_text()}image_policy: signed\n")
    sentence = "alpha-1.0.sif is not signed; sign it: make sign"
    assert usable(root, "local", both) == (["beta-2.0"], {"alpha-1.0": sentence})


def run(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["nightly", *words])
    return nightly.main()


@pytest.fixture
def root(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a checkout without campaigns, in which a night would be measured."""
    monkeypatch.setattr(nightly, "ROOT", checkout)
    monkeypatch.setattr(beginning, "ROOT", checkout)
    return checkout


def test_a_night_that_finds_another_ends_and_changes_nothing(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with only_campaign(root, "local"):
        assert run(monkeypatch) == nightly.ANOTHER_AT_WORK
    said = capsys.readouterr().err
    assert "another campaign is measuring on site local" in said and said.count("\n") == 1
    assert list((root / "runs").iterdir()) == []
    with pytest.raises(SiteIsBusy), only_campaign(root, "local"), only_campaign(root, "local"):
        pass


def test_the_verdict_is_the_exit_code_and_jobs_do_not_inherit_a_job(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    night = root / "runs" / "20260101T000000Z-local-nightly"

    def fake(measure: object, judge: object, wanted: Wanted) -> tuple[Path, dict[str, Any]]:
        assert wanted.images == ("alpha-1.0",) and "SLURM_JOB_ID" not in os.environ
        assert os.environ["SLURM_CONF"] == "/etc/slurm.conf"
        return night, {"exit_code": 3}

    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setenv("SLURM_CONF", "/etc/slurm.conf")
    monkeypatch.setattr(nightly, "course", fake)
    assert run(monkeypatch) == 3


def test_a_wrong_site_file_is_a_sentence(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (root / "site_configs" / "local" / "site.yaml").write_text("nodes: many\n")
    assert run(monkeypatch) == 1
    said = capsys.readouterr().err
    assert "site_configs/local/site.yaml" in said and "Traceback" not in said


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--keep-nights", "1"], "KEEP_NIGHTS=1: keep at least 2"),
        (["--site", "nowhere"], "site nowhere is unknown"),
        (["--resume", "nothing"], "is not a campaign"),
    ],
)
def test_mistakes_are_one_sentence(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    words: list[str], sentence: str,
) -> None:  # fmt: skip
    assert run(monkeypatch, *words) == 1
    said = capsys.readouterr().err
    assert sentence in said and said.count("\n") == 1


def test_reframe_is_asked_for_a_night_s_checks_with_all_that_a_campaign_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[argparse.Namespace] = []

    def matching(_: Path, options: argparse.Namespace, names: Sequence[str]) -> int:
        asked.append(options)
        return len(names)

    monkeypatch.setattr(sys, "argv", ["nightly", "--checks", "PointToPoint"])
    monkeypatch.setattr(nightly, "usable", lambda *_: (["mpich-5.0.2"], {}))
    monkeypatch.setattr(request, "matching", matching)
    assert nightly.wanted_of(nightly.arguments()).images == ("mpich-5.0.2",)
    [options] = asked
    assert vars(campaign.__main__.arguments([])).keys() <= vars(options).keys()


def test_only_a_night_is_gone_on_with(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = root / "runs" / "20260101T000000Z-local-quick"
    folder.mkdir()
    put_manifest(folder)
    assert run(monkeypatch, "--resume", folder.name) == 1
    assert "is not a night" in capsys.readouterr().err


def test_a_resumed_night_uses_what_was_measured_again(root: Path) -> None:
    options = argparse.Namespace(site="local", resume="20260102T000000Z-local-nightly")
    for day, of in ((1, "another"), (2, options.resume)):
        again = root / "runs" / f"2026010{day}T010000Z-local-nightly-again1"
        again.mkdir()
        put_manifest(again, night={"again_of": of})
    wanted = Wanted("nightly-again1", None, (), {"again_of": options.resume, "number": 1})
    assert nightly.begun(options, wanted) == again
    assert nightly.begun(options, WANTED) == root / "runs" / options.resume
    assert nightly.begun(argparse.Namespace(resume=None), wanted) is None


def test_the_command_that_is_kept_repeats_it() -> None:
    options = argparse.Namespace(
        site="virtual", tier="quick", rounds=2, checks=None, images="a-1,b-2", resume=None,
        name="nightly",
    )  # fmt: skip
    assert command_of(options) == "make nightly SITE=virtual TIER=quick ROUNDS=2 IMAGES=a-1,b-2"
    options.checks, options.name = "^Nas|a b$", "of-nas"
    assert command_of(options) == (
        "make nightly SITE=virtual TIER=quick ROUNDS=2 CHECKS='^Nas|a b$' IMAGES=a-1,b-2 "
        "NAME=of-nas"
    )
    options.resume = "x"
    assert command_of(options) == "make nightly SITE=virtual RESUME=x"


def made(*words: str, **variables: str) -> str:
    """Return what `make -n nightly` would run, in one line."""
    done = subprocess.run(
        ["make", "-n", "nightly", *words], cwd=PROJECT, env={**os.environ, **variables},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return " ".join(done.stdout.replace("\\\n", " ").split())


def test_make_nightly_builds_nothing_and_passes_all_on() -> None:
    line = made("SITE=local", "ROUNDS=2", "CHECKS=Linpack", "KEEP_NIGHTS=9", "DRY_RUN=1")
    assert (
        "--site='local' --tier='quick' --rounds='2' --checks='Linpack' --keep-nights='9' --dry-run"
        in line
    )
    assert "pip" not in line and "containers.build" not in line
    assert "cluster exec" in made("SITE=virtual")
    assert "cluster exec" not in made("SITE=virtual", SLURM_JOB_ID="7")


def test_an_interrupted_night_is_gone_on_with(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The campaigns' own machinery measures; only ReFrame, images and analysis are played."""
    rounds: list[str] = []
    interrupted = ["nightly-again1"]

    def run_round(root: Path, path: Path, manifest: Manifest, *_: object) -> RoundDone:
        assert manifest.name
        rounds.append(manifest.name)
        if manifest.name in interrupted:
            interrupted.clear()
            raise KeyboardInterrupt
        return RoundDone(round=1, wall_s=1.0, reframe_exit_code=1)

    def say_analysis(command: str, path: str, *words: str) -> int:
        if command == "night":
            again = [word for word in words if word.endswith(("again1", "again2"))]
            verdict = "regression" if len(again) == 2 else "measure again"
            told = {"verdict": verdict, "findings": [found()], "exit_code": 3}
            (Path(path) / "night.json").write_text(json.dumps(told))
        return 6 if command == "night" else 0

    def describe(root: Path, names: list[str], site: dict[str, Any], **_: bool) -> dict[str, Any]:
        return {name: {"sha256": "0" * 64} for name in names}

    monkeypatch.setattr(measuring, "run_round", run_round)
    monkeypatch.setattr(provenance, "describe_images", describe)
    for name in ("input_digests", "software"):
        monkeypatch.setattr(provenance, name, lambda *_: {})
    monkeypatch.setattr(provenance, "machine", lambda: {"cpu_model": None})
    for module in (beginning, resuming):
        monkeypatch.setattr(module, "load_site", lambda site: {"scheduler": "local"})
    monkeypatch.setattr(nightly, "say_analysis", say_analysis)

    assert run(monkeypatch, "--rounds", "1") == 130
    assert "make nightly RESUME=" in capsys.readouterr().err
    [night] = (root / "runs").glob("*-local-nightly")
    assert run(monkeypatch, "--resume", night.name) == 3
    assert rounds == ["nightly", "nightly-again1", "nightly-again1", "nightly-again2"]
    manifest = json.loads((night / "manifest.json").read_text())
    assert manifest["night"] == {"broken": {}} and manifest["finished_utc"]
    assert manifest["commands"] == ["make nightly SITE=local TIER=quick ROUNDS=1"]
    [again] = (root / "runs").glob("*-again1")
    manifest = json.loads((again / "manifest.json").read_text())
    assert manifest["night"] == {"again_of": night.name, "number": 1}
    assert list(manifest["images"]) == ["alpha-1.0+x"] and manifest["checks"].startswith("^(")
    assert len(list((root / "runs").iterdir())) == 3
