"""Values kept with launches are those that their outputs give, and tables have the same of both."""

import hashlib
import io
import json
from collections import Counter
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO

import pytest
from typer.testing import CliRunner

from analysis.__main__ import app
from analysis.commands.export import Format, exported
from analysis.comparison.compare import compare
from analysis.history.campaign_rows import rows_of
from analysis.tables.parquet import write_tables
from campaign import measuring
from campaign.progress import CampaignProgress
from records import acting_user, packs, schedule, values
from records import kept as kept_module
from records import launch as launches
from records.base import RecordError
from records.campaign import Campaign, KnownLaunches, read_campaign
from records.kept import Kept, kept_launches, pack_files
from records.launch import Launch, read_launch
from records.manifest import read_manifest
from records.packs import pack_name
from records.proof import proof_in
from records.values import FILE, LaunchValues, values_in
from tests.analysis.support.large import write_large
from tests.analysis.support.synthetic import TWICE, Synthetic
from tests.busy_campaign import busy_campaign
from tests.packed import in_packs, take_out

PROJECT = Path(__file__).resolve().parents[2]
SAMPLE = busy_campaign()


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the sample's launches in packs, as a session of today keeps them."""
    return in_packs(SAMPLE, tmp_path_factory.mktemp("runs") / "20260101T000000Z-local-packed")


def kept(launch: Kept) -> LaunchValues:
    return values_in(launch.read(FILE), launch.name)


def refused(*_: object) -> None:
    raise AssertionError("no output is to be read for this")


def test_each_sound_launch_is_kept_with_the_values_of_its_output(packed: Path) -> None:
    found = {one.record.launch: one for one in read_campaign(packed, anew=True).launches}
    assert sum(one.is_sound for one in found.values()) > 50
    for one in kept_launches(packed):
        assert (FILE in one.names()) == found[one.name].is_sound
        if FILE in one.names():
            assert kept(one) == found[one.name].values


def test_tables_and_histories_of_values_read_no_output_and_are_those_of_outputs(
    packed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def numbers(campaign: Campaign) -> tuple[object, ...]:
        cells = {cell.name: cell for cell in compare(campaign).cells}
        rows = [{**row, "campaign": None, "doubts": None} for row in rows_of(campaign)]
        return {name: (one.values, one.verdicts) for name, one in cells.items()}, rows

    of_outputs = numbers(read_campaign(SAMPLE))
    assert numbers(read_campaign(packed, anew=True)) == of_outputs
    monkeypatch.setattr(launches, "output_in", refused)
    assert numbers(read_campaign(packed)) == of_outputs


def test_every_table_is_the_same_as_csv(packed: Path) -> None:
    campaigns = read_campaign(SAMPLE), read_campaign(packed)
    before, after = (exported(one, Format.CSV, None) for one in campaigns)
    assert len(after) > 10 and {name: text.replace(packed.name, SAMPLE.name) for name, text in
                                after.items()} == before  # fmt: skip


def test_commands_print_the_same_of_values_and_of_outputs(packed: Path) -> None:
    for command in (["table", "--no-pager"], ["answer"], ["compare", "--no-pager"]):
        said = []
        for campaign in (SAMPLE, packed):
            done = CliRunner().invoke(app, [command[0], str(campaign), *command[1:]])
            assert done.exit_code == 0, done.output
            said.append(done.stdout.replace(campaign.name, "campaign"))
        assert said[0] == said[1]


def with_other_values(path: Path) -> tuple[Path, str]:
    """Return a campaign and a launch of it, kept with values that its output does not give."""
    source = Synthetic(path / "plain", TWICE, rounds=1).write()
    real = launches.values_of_text

    def wrong(record: launches.LaunchRecord, text: bytes) -> LaunchValues:
        found = real(record, text)
        if not record.launch.endswith("1x2_n=4000_nb=192_beta-2.0"):
            return found
        return found.model_copy(update={"series": {"": {0: 2 * found.series[""][0]}}})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(schedule, "values_of_text", wrong)
        campaign = in_packs(source, path / "packed")
    [name] = [one.name for one in kept_launches(campaign) if one.name.endswith("192_beta-2.0")
              and "1x2" in one.name]  # fmt: skip
    return campaign, name


def test_who_proves_or_replays_finds_values_that_an_output_does_not_give(tmp_path: Path) -> None:
    campaign, name = with_other_values(tmp_path)
    assert not read_campaign(campaign).problems
    [problem] = read_campaign(campaign, anew=True).problems
    assert problem.where == name and "not the values that stdout gives" in problem.sentence
    [damage] = [one for one in proof_in(campaign).doubts if one.is_damage]
    assert damage.word == "launches damaged" and name in damage.sentence
    done = CliRunner().invoke(app, ["replay", str(campaign)])
    assert name in done.output


def test_values_of_another_version_are_recomputed(
    packed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {one.record.launch: one.values.series for one in read_campaign(packed).sound()}
    monkeypatch.setattr(values, "VERSION", values.VERSION + 1)
    real, read = launches.output_in, []

    def counted(launch: Kept, record: launches.LaunchRecord) -> object:
        read.append(record.launch)
        return real(launch, record)

    monkeypatch.setattr(launches, "output_in", counted)
    after = {one.record.launch: one.values.series for one in read_campaign(packed).sound()}
    assert after == before and sorted(read) == sorted(before)


def test_damaged_values_cost_their_launch_alone(tmp_path: Path) -> None:
    class Damaged:
        """A launch whose values are no JSON, which its record has the digest of."""

        def __init__(self, of: Kept) -> None:
            self.of, self.name, self.where = of, of.name, of.where

        def read(self, name: str) -> bytes:
            return b'{"read_as": ' if name == FILE else self.of.read(name)

        def refuse_changed(self, known: object) -> None:
            pass

    packed = in_packs(Synthetic(tmp_path / "p", TWICE, rounds=1).write(), tmp_path / "packed")
    with pytest.raises(RecordError, match=r"values\.json: "):
        read_launch(Damaged(kept_launches(packed)[0]))


def test_an_output_that_a_later_version_refuses_costs_its_launch_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = Synthetic(tmp_path / "plain", TWICE, rounds=2, pairs=["Send/Recv"]).write()
    campaign = in_packs(source, tmp_path / "packed")
    whole, known = write_tables(read_campaign(campaign)), launches.output_in
    bad = next(one.name for one in kept_launches(campaign) if "range=short" in one.name)

    def stricter(launch: Kept, record: launches.LaunchRecord) -> object:
        if launch.name == bad:
            raise RecordError(f"{bad}/stdout:2: it is refused now")
        return known(launch, record)

    monkeypatch.setattr(launches, "output_in", stricter)
    found = read_campaign(campaign)
    assert write_tables(found)["launches"] == whole["launches"] - 1
    assert [one.where for one in found.problems] == [bad]
    for command in ("ingest", "report", "conclude", "models", "linpack", "spread", "export"):
        more = ["--no-pager"] if command in ("models", "linpack", "spread") else []
        done = CliRunner().invoke(app, [command, str(campaign), *more])
        assert done.exit_code == 0, (command, done.output)
    assert "it is refused now" in (campaign / "report.html").read_text()


def test_a_launch_that_is_not_sound_has_no_values() -> None:
    record = launches.LaunchRecord.model_construct(launch="round001_x")
    with pytest.raises(RecordError, match="is not sound"):
        assert Launch(record, None).values


def test_whoever_changes_what_values_are_gives_them_another_version(packed: Path) -> None:
    """If this fails, raise records.values.VERSION: values that were kept are then not used."""
    told = {one.name: json.loads(one.read(FILE)) for one in kept_launches(packed)
            if FILE in one.names()}  # fmt: skip
    found = hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()
    assert (values.VERSION, found[:16]) == (1, "d76ec44ea3fd5976")


def read_by_this_process() -> int:
    """Return how many bytes this process has read of files so far."""
    return int(Path("/proc/self/io").read_text().split()[1])


def test_a_campaign_is_read_in_proportion_to_its_rounds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By counts: twice each pack is opened, and its bytes are read so often, however many."""
    real, opened = acting_user.opened, list[Path]()

    def counted(path: Path) -> AbstractContextManager[IO[bytes]]:
        opened.append(path)
        return real(path)

    monkeypatch.setattr(kept_module, "opened", counted)
    shares = []
    for rounds in (3, 24):
        source = Synthetic(tmp_path / f"of-{rounds}", TWICE, rounds=rounds, pairs=[]).write()
        campaign = in_packs(source, tmp_path / f"packed-{rounds}")
        size = sum(path.stat().st_size for path in campaign.rglob("*") if path.is_file())
        opened.clear()
        before = read_by_this_process()
        assert len(read_campaign(campaign).sound()) == 4 * rounds
        shares.append((read_by_this_process() - before) / size)
        packs = {pack_name(number) for number in range(1, rounds + 1)}
        assert len(opened) == 2 * len(packs) == 2 * len(set(opened))
    assert shares[1] < 1.2 * shares[0]


def test_who_reads_a_campaign_again_looks_only_into_packs_that_were_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = Synthetic(tmp_path / "plain", TWICE, rounds=4, pairs=[]).write()
    campaign, known = in_packs(source, tmp_path / "packed"), KnownLaunches()
    first = [one.record.launch for one in read_campaign(campaign, known).launches]
    real, opened = acting_user.opened, list[str]()

    def counted(path: Path) -> AbstractContextManager[IO[bytes]]:
        opened.append(path.name)
        return real(path)

    monkeypatch.setattr(kept_module, "opened", counted)
    assert [one.record.launch for one in read_campaign(campaign, known).launches] == first
    assert not opened
    take_out(campaign, first[0])
    again = read_campaign(campaign, known)
    assert [one.record.launch for one in again.launches] == first[1:]
    assert set(opened) == {"round001.tar"} and again.problems[0].where == first[0]


def test_a_campaign_s_end_computes_nothing_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By counts: how often each launch's files are read, by who measured and by who reports."""
    campaign = write_large(tmp_path / "20260101T000000Z-local-made-up", 2, 4, 3)
    launches_of_it, size = 2 * 4 * 3, sum(path.stat().st_size for path in pack_files(campaign))
    read, parsed, content = Counter[str](), Counter[str](), packs.content_of

    def counted(pack: IO[bytes], segment: packs.PackSegment, name: str) -> bytes:
        found = content(pack, segment, name)
        read[name] += 1
        return found

    output = launches.output_of

    def counted_output(record: launches.LaunchRecord, text: str, where: Path) -> values.Output:
        parsed[record.launch] += 1
        return output(record, text, where)

    monkeypatch.setattr(packs, "content_of", counted)
    monkeypatch.setattr(launches, "output_of", counted_output)
    said, before = io.StringIO(), read_by_this_process()
    assert measuring.whole(campaign, read_manifest(campaign), CampaignProgress(3, said))
    assert "24 launches took 24 s" in said.getvalue()
    assert read == {"launch.json": launches_of_it} and not parsed
    # What stands where, then the records, each with what a buffer has beside it.
    assert read_by_this_process() - before < 2.5 * size
    read.clear()
    assert CliRunner().invoke(app, ["conclude", str(campaign)]).exit_code == 0
    assert read == dict.fromkeys(("launch.json", FILE, "stdout"), launches_of_it)
    assert set(parsed.values()) == {1} and len(parsed) == launches_of_it
