"""Each command that reads a campaign says in a sentence what is wrong with a damaged one."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from campaign import __main__ as campaign
from campaign import beginning, nightly
from campaign.bundle import make, sample
from tests.analysis.support.in_process import analysis
from tests.whole_records import manifest_facts

NAME = "20260101T000000Z-local-quick"
DAMAGES: dict[str, bytes] = {
    "nothing in it": b"{}", "empty": b"", "cut": json.dumps(manifest_facts()).encode()[:200],
    "not UTF-8": b"\xff\xfe{}", "no object": b"[1]", "deep": b"[" * 100_000,
    "NaN": json.dumps(manifest_facts(order_seed=float("nan"))).encode(),
    "wrong types": json.dumps(manifest_facts(images=[], rounds="3")).encode(),
    "another version's": json.dumps(manifest_facts(schema="wyeast-campaign-7")).encode(),
}  # fmt: skip


def by_main(main: Callable[[], int], *words: str) -> Callable[[pytest.MonkeyPatch], int]:
    def run(monkeypatch: pytest.MonkeyPatch) -> int:
        monkeypatch.setattr(sys, "argv", ["command", *words])
        return main()

    return run


def by_analysis(*words: str) -> Callable[[pytest.MonkeyPatch], int]:
    def run(_: pytest.MonkeyPatch) -> int:
        done = analysis(*words)
        print(done.stderr, file=sys.stderr, end="")
        return done.returncode

    return run


COMMANDS: dict[str, Callable[[pytest.MonkeyPatch], int]] = {
    "resume": by_main(campaign.main, "--resume", NAME),
    "like": by_main(campaign.main, "--like", NAME),
    "nightly": by_main(nightly.main, "--resume", NAME),
    "bundle": by_main(lambda: make.main([f"runs/{NAME}"])),
    "sample": by_main(lambda: sample.main([f"runs/{NAME}"])),
    **{
        name: by_analysis(name, f"runs/{NAME}")
        for name in ("ingest", "report", "table", "export", "night")
    },
    "compare": by_analysis("compare", f"runs/{NAME}", f"runs/{NAME}"),
}


@pytest.fixture
def folder(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a campaign in a checkout, where commands are started."""
    for module in (beginning, nightly, make, sample):
        monkeypatch.setattr(module, "ROOT", checkout)
    monkeypatch.chdir(checkout)
    path = checkout / "runs" / NAME
    (path / "launches").mkdir(parents=True)
    return path


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", COMMANDS)
def test_a_damaged_manifest_is_a_sentence_with_its_name(
    name: str, damage: str, folder: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    (folder / "manifest.json").write_bytes(DAMAGES[damage])
    assert COMMANDS[name](monkeypatch) == 1
    said = capsys.readouterr().err
    assert f"{NAME}/manifest.json" in said and said.count("\n") == 1, said
    assert (folder / "manifest.json").read_bytes() == DAMAGES[damage]


@pytest.mark.parametrize("name", ["resume", "like", "nightly"])
def test_what_another_version_began_is_not_gone_on_with(
    name: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = json.dumps(manifest_facts(NAME, looks=3, night={"broken": {}}, finished_utc=None))
    (folder / "manifest.json").write_text(text)
    assert COMMANDS[name](monkeypatch) == 1
    said = capsys.readouterr().err
    assert f"the manifest of {NAME} has 'looks', which this version does not know" in said
    assert said.count("\n") == 1 and (folder / "manifest.json").read_text() == text
