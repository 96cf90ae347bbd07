"""A campaign in packs says what the same launches say in the folders of older campaigns."""

import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from analysis.__main__ import app
from analysis.history.campaign_rows import stamp_of
from analysis.models.profile import profiled_cells
from analysis.references.calibration import measured
from analysis.tables.parquet import write_tables
from campaign.bundle import contents, leaks, sample
from campaign.bundle.redaction import in_folders, redacted
from campaign.reference_findings import findings
from records.archive import Member
from records.campaign import Campaign, find_campaign, has_measured, read_campaign
from records.kept import kept_launches, pack_files
from records.schedule import state_of
from tests.busy_campaign import busy_campaign
from tests.packed import in_packs, take_out

PROJECT = Path(__file__).resolve().parents[2]
SAMPLE = busy_campaign()


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the sample's launches in packs."""
    return in_packs(SAMPLE, tmp_path_factory.mktemp("runs") / "20260101T000000Z-local-packed")


@pytest.fixture(scope="module")
def both(packed: Path) -> tuple[Campaign, Campaign]:
    return read_campaign(SAMPLE), read_campaign(packed)


def test_every_launch_is_the_same_by_its_record_and_output(both: tuple[Campaign, Campaign]) -> None:
    folders, packs = both
    assert len(packs.launches) == len(folders.launches) > 50
    for old, new in zip(folders.launches, packs.launches, strict=True):
        told = {**new.record.facts, "job": None, "sha256": None}
        assert told == {**old.record.facts, "job": None, "sha256": None}
        assert new.output == old.output
    rounds = {one.record.round for one in packs.launches}
    assert len(pack_files(packs.path)) == len(rounds) and not (packs.path / "launches").exists()


def test_what_stands_beside_the_output_is_the_same(both: tuple[Campaign, Campaign]) -> None:
    folders, packs = both
    profiles, problems = profiled_cells(packs)
    assert profiles and not problems and profiles == profiled_cells(folders)[0]
    for old, new in zip(measured(folders), measured(packs), strict=True):
        assert new.metrics == old.metrics
    of_packs, of_folders = (
        findings(one.path, kept_launches(one.path), "local") for one in (packs, folders)
    )
    assert of_packs == of_folders


def test_the_tables_are_the_same_to_the_row(
    both: tuple[Campaign, Campaign], tmp_path: Path
) -> None:
    rows = []
    for number, campaign in enumerate(both):
        campaign.path = tmp_path / str(number)
        campaign.path.mkdir()
        rows.append(write_tables(campaign))
    assert rows[0] == rows[1] and rows[0]["launches"] > 50


def test_a_raw_file_is_printed_of_packs_and_folders(packed: Path) -> None:
    name = kept_launches(packed)[3].name
    for file in ([], ["launch.json"]):
        said = []
        for campaign in (SAMPLE, packed):
            done = CliRunner().invoke(app, ["raw", str(campaign), name, *file])
            assert done.exit_code == 0
            said.append(done.stdout)
        assert said[0].startswith("{") and (file or said[0] == said[1])
    for words, sentence in (
        ([name, "x"], f"{name} has no file 'x'; it has job.sh, launch.json"),
        (["y"], "has no launch 'y'; see: python -m analysis show "),
    ):
        done = CliRunner().invoke(app, ["raw", str(packed), *words])
        assert done.exit_code == 1 and sentence in done.stderr


def test_compressed_members_of_a_pack_are_searched_before_it_is_given_away(
    packed: Path, tmp_path: Path
) -> None:
    from records import packs as records_packs
    from tests.whole_records import launch

    members = contents.of_campaign(packed)
    assert sum(name.startswith("campaign/packs/") for name in members) == len(pack_files(packed))
    assert not [one for one in leaks.scan(members, packed) if one.is_secret]
    printed = 500 * b"fine\n" + b"-----BEGIN OPENSSH PRIVATE KEY-----\n" + 500 * b"fine\n"
    segment = records_packs.segment_of(launch(), {"stdout": printed}, "wy-0123456789ab")
    assert b"PRIVATE KEY" not in segment
    # Also of an attempt that does not count, and of what a kill has cut.
    for data, place in ((segment, "/round001_cell/stdout:501"), (printed, ":501")):
        [found] = leaks.scan({"campaign/packs/round001.tar": Member(data)}, packed)
        assert found.is_secret and found.places == [f"campaign/packs/round001.tar{place}"]


def test_a_redacted_campaign_is_whole_and_has_its_launches_in_folders(
    packed: Path, tmp_path: Path
) -> None:
    members = contents.of_campaign(packed)
    known = leaks.Leak("a made-up word", False, {b"/checkout"}, ["campaign/x:1"])
    for name, member in redacted(in_folders(members, packed), [known], members).items():
        target = tmp_path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        with member.open() as file:
            target.write_bytes(file.read())
    assert not (tmp_path / "campaign" / "packs").exists()
    campaign, before = read_campaign(tmp_path / "campaign"), read_campaign(packed)
    assert state_of(campaign.path) is not None
    assert [one.output for one in campaign.launches] == [one.output for one in before.launches]
    assert not [one for one in campaign.problems if "changed after" in one.sentence]
    commands = "".join(kept.read("job.sh").decode() for kept in kept_launches(campaign.path))
    assert "/redacted-" in commands and "/checkout" not in commands


def test_a_sample_is_taken_of_packs_as_of_folders(packed: Path) -> None:
    cells = "Linpack .*"
    texts, kept, _ = sample.chosen(in_folders(contents.of_campaign(packed), packed), cells)
    older, _, _ = sample.chosen(contents.of_campaign(SAMPLE), cells)
    assert kept and {name for name in texts if "/stdout" in name} == {
        name for name in older if "/stdout" in name
    }
    made = ("launch.json", "values.json")
    assert all(texts[name] == older[name] for name in texts if not name.endswith(made))


def test_histories_see_that_a_pack_has_changed(packed: Path, tmp_path: Path) -> None:
    copy = in_packs(packed, tmp_path / packed.name)
    assert has_measured(copy) and find_campaign(tmp_path, str(copy)) == copy
    before = stamp_of(copy)
    assert before == stamp_of(copy)
    take_out(copy, kept_launches(copy)[0].name)
    assert stamp_of(copy) != before
    for path in pack_files(copy):
        os.truncate(path, 0)
    assert not has_measured(copy)
