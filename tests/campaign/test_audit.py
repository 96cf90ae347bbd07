"""A campaign is proven only by what it recorded; what rests on any other is said."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
import yaml

from analysis.history.audit import audited
from analysis.history.campaign_rows import KEPT, keep_rows, stamp_of
from campaign import __main__ as campaigns
from campaign import beginning, measuring, retention
from records import schedule
from records.campaign import read_campaign
from records.events import Entry, Resumed
from records.journal import FILE, NOTHING
from records.kept import kept_launches
from records.proof import ROWS_CHANGED, clock_steps, proof_in
from records.references import ACCEPTED
from tests.analysis.support.in_process import analysis
from tests.analysis.support.synthetic import Synthetic, Truth
from tests.folders import as_older
from tests.packed import change as change_bytes
from tests.packed import take_out


def said(*words: object) -> tuple[int, str, str]:
    """Return how a command of the analysis ended, and what it printed."""
    done = analysis(*map(str, words))
    return done.returncode, " ".join(done.stdout.split()), done.stderr


def change(file: Path, **facts: object) -> None:
    file.write_text(json.dumps({**json.loads(file.read_text()), **facts}))


def remove_journal(path: Path) -> None:
    (path / FILE).unlink()


def convert(path: Path) -> None:
    remove_journal(path)
    change(path / "manifest.json", campaign=path.name)
    schedule.begin(path, is_converted=True)


def damage_journal(path: Path) -> None:
    data = (path / FILE).read_bytes()
    (path / FILE).write_bytes(data.replace(b'"position": 1', b'"position": 2', 1))


def take_back_journal(path: Path) -> None:
    """Put the journal back as it was before its second round."""
    lines = (path / FILE).read_text().splitlines(keepends=True)
    second = next(at for at, line in enumerate(lines) if '"round002_' in line)
    (path / FILE).write_text("".join(lines[:second]))


def a_launch(path: Path) -> str:
    return kept_launches(path)[0].name


def delete_a_launch(path: Path) -> None:
    take_out(path, a_launch(path))


def change_a_digit(path: Path) -> None:
    change_bytes(path, a_launch(path), "stdout", b"0.01", b"0.02")


def forget_digests(path: Path) -> None:
    as_older(path)
    file = path / "launches" / a_launch(path) / "launch.json"
    facts = json.loads(file.read_text())
    del facts["sha256"]
    file.write_text(json.dumps(facts))


def overlap(path: Path) -> None:
    as_older(path)
    for folder in (path / "launches").glob("round001_*"):
        file = folder / "launch.json"
        position = json.loads(file.read_text())["position"]
        began = f"2026-01-01T00:00:{10 * position:02}Z"
        ended = f"2026-01-01T00:00:{10 * position + (15 if position == 1 else 5):02}Z"
        change(file, started_utc=began, ended_utc=ended)


def unfinish(path: Path) -> None:
    change(path / "manifest.json", finished_utc=None)


def come_in_a_bundle(path: Path) -> None:
    (path / "imported.json").write_text("{}")


def break_the_manifest(path: Path) -> None:
    (path / "manifest.json").write_text("{")


def remove_raw_output(path: Path) -> None:
    retention.remove(retention.Removal(path, 0))


FAULTS: dict[str, list[Callable[[Path], None]]] = {
    "": [],
    "unproven: no journal": [remove_journal],
    "unproven: begun without a journal": [convert],
    "damaged: journal damaged": [damage_journal],
    "damaged: launches unknown": [take_back_journal],
    "damaged: launches gone": [delete_a_launch],
    "damaged: launches damaged": [change_a_digit],
    "unproven: no journal, no digests": [remove_journal, forget_digests],
    "damaged: no journal, launches damaged": [remove_journal, change_a_digit],
    "unproven: overlapping": [overlap],
    "unproven: interrupted": [unfinish],
    "unproven: imported": [come_in_a_bundle],
    "damaged: manifest damaged": [break_the_manifest],
    "unproven: raw output removed": [
        remove_raw_output,
        lambda path: change(path / "manifest.json", doubts=None),
    ],
    "unproven: no journal, interrupted": [remove_journal, unfinish],
    # What spoke against it when its raw output was removed still does, and nothing else.
    "unproven: no digests": [forget_digests, remove_raw_output],
}


def test_each_way_to_lose_or_mix_launches_is_told(
    played: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = campaigns.arguments(["--rounds", "2"])
    campaign, manifest = beginning.new_campaign(options)
    assert measuring.measure(campaign, manifest)
    (campaign / "tables").mkdir()
    found, told = {}, {}
    for number, (words, faults) in enumerate(FAULTS.items()):
        copy = shutil.copytree(campaign, campaign.with_name(f"{campaign.name}-{number:02}"))
        for fault in faults:
            fault(copy)
        found[words] = proof_in(copy).words or ""
        told[copy.name] = words
    assert {words: got for words, got in found.items() if words != got} == {}
    # Nothing of the removed one's raw output is missed, and the journal still speaks.
    capsys.readouterr()
    one = ("audit", "--runs", campaign.parent, "--sites", played / "site_configs", "--campaign")
    code, out, _ = said(*one[:-1])
    assert code == 1
    for name, words in told.items():
        assert f"- {name} is {words.partition(':')[0] or 'proven'}" in out
    # All that was asked for is proven.
    assert said(*one, campaign.name)[0] == 0
    broken = next(name for name, words in told.items() if "manifest" in words)
    assert said(*one, broken)[0] == 1
    assert said(*one, "20200101T000000Z-local-none")[0] == 2


def test_a_launch_that_does_not_say_which_file_its_image_was_is_unproven(played: Path) -> None:
    (played / "plays.json").write_text(json.dumps([{"image not noted": True}]))
    campaign, manifest = beginning.new_campaign(campaigns.arguments(["--rounds", "1"]))
    measuring.measure(campaign, manifest)
    assert proof_in(campaign).words == "unproven: image not noted"


def test_a_clock_that_was_set_is_reported_and_another_machine_is_not() -> None:
    def entry(monotonic_s: float, utc: str, boot: str = "a") -> Entry:
        return Entry(seq=1, before=NOTHING, monotonic_s=monotonic_s, utc=utc, boot=boot,
                     event=Resumed())  # fmt: skip

    entries = [
        entry(1.0, "2026-01-01T00:00:01Z"), entry(2.5, "2026-01-01T00:00:02Z"),
        entry(3.0, "2025-12-31T00:00:02.500Z"), entry(9e5, "2026-01-01T00:00:04Z", "b"),
        entry(9e5 + 1, "2026-01-01T00:00:05Z", "b"),
    ]  # fmt: skip
    assert list(clock_steps(entries)) == [pytest.approx(-86400.0)]


def test_jobs_that_nobody_could_ask_about_are_a_doubt(played: Path) -> None:
    (played / "plays.json").write_text(json.dumps([{"lost after": 1}]))
    campaign, manifest = beginning.new_campaign(campaigns.arguments(["--rounds", "1"]))
    measuring.measure(campaign, manifest)
    assert "jobs beside" not in str(proof_in(campaign).words)
    change(campaign / "manifest.json", site_data={"scheduler": "pbs"})
    assert "the scheduler pbs was not asked" in proof_in(campaign).sentence


@pytest.fixture
def unproven(tmp_path: Path) -> Path:
    """Return runs/ with three unproven campaigns, beside the sites' data."""
    for day in (1, 2, 3):
        folder = tmp_path / "runs" / f"2026010{day}T000000Z-local-quick"
        Synthetic(
            folder, {"alpha-1.0": Truth(1e-5, 1e9, 1e10)}, rounds=3, seed=day, pairs=["Send/Recv"],
            created_utc=f"2026-01-0{day}T00:00:00.000Z",
        ).write()  # fmt: skip
    return tmp_path / "runs"


def test_references_and_histories_that_rest_on_unproven_campaigns_are_told(
    unproven: Path,
) -> None:
    names = sorted(path.name for path in unproven.iterdir())
    site = unproven.parent / "site_configs" / "local"
    site.mkdir(parents=True)
    (site / "site.yaml").touch()
    (site / "references.yaml").write_text(
        f"# From {names[0]} and 20250101T000000Z-local-old.\n{{}}"
    )
    where = ("--runs", unproven, "--sites", site.parent)
    code, out, err = said("calibrate", "local", *where, "--campaigns", names[2])
    assert code == 0, err
    assert f"caveat: {names[2]} is unproven: no journal, " in err
    assert said("accept-references", "local", "--sites", site.parent)[0] == 0
    entries = yaml.safe_load((site / ACCEPTED).read_text())["references"]
    code, out, _ = said("audit", *where)
    assert code == 1
    for words in (
        f"{len(entries)} of {len(entries)}", "named in it", 
        "20250101T000000Z-local-old is unproven: it is not in runs/",
        "Histories based on unproven campaigns",
    ):  # fmt: skip
        assert words in out, out
    # A site of which nothing is known, and one campaign alone.
    assert said("audit", *where, "--site", "elsewhere")[0] == 2
    _, out, _ = said("audit", *where, "--campaign", names[1])
    assert names[0] not in out and "References that rest" not in out
    # The sample is nobody's campaign here.
    shutil.copytree(unproven / names[1], unproven / "sample")
    assert "sample is" not in said("audit", *where)[1]


def test_rows_of_a_history_that_its_launches_do_not_give_are_damage(unproven: Path) -> None:
    folder = sorted(unproven.iterdir())[0]
    before = audited(folder).words
    keep_rows(read_campaign(folder), stamp_of(folder))
    assert audited(folder).words == before
    rows = pl.read_parquet(folder / KEPT)
    rows.with_columns(pl.col("level") + 1e-6).write_parquet(folder / KEPT)
    assert audited(folder).words == f"{str(before).replace('unproven', 'damaged')}, {ROWS_CHANGED}"
    code, out, _ = said("audit", "--runs", unproven, "--campaign", folder.name)
    assert code == 1 and "is not what its launches give; remove that file" in out
    # Nobody takes rows of an earlier state.
    rows.with_columns(pl.col("level") + 1, pl.lit("earlier").alias("stamp")).write_parquet(
        folder / KEPT
    )
    assert audited(folder).words == before


def test_history_and_regress_show_what_is_unproven(unproven: Path) -> None:
    assert "make audit says which these are, and why" in said("history", "--runs", unproven)[1]
    last = sorted(unproven.iterdir())[-1]
    _, _, err = said("regress", last, "--against", "history", "--runs", unproven)
    assert f"caveat: {last.name} is unproven: " in err
    assert "caveat: 2 of 2 earlier campaigns are unproven or damaged" in err
    _, _, err = said("compare", sorted(unproven.glob("2*"))[0], last)
    assert err.count(" is unproven: no journal, ") == 2
