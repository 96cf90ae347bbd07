"""What a session keeps of launches is a tar a round, whole at any moment, and read to the byte."""

import errno
import io
import os
import subprocess
import tarfile
from collections import Counter
from pathlib import Path

import pytest

from records import packs, schedule
from records.base import CampaignError, NotKept, RecordError
from records.campaign import read_campaign
from records.events import PlannedLaunch
from records.kept import PackedLaunch, kept_launches, read_records
from records.launch import RECORD, record_in
from records.packs import (
    MOST_BYTES,
    TAR_RECORD,
    PackSegment,
    content_of,
    segment_of,
    segments_of,
    whole,
)
from records.schedule import Schedule
from tests.packed import all_in, change, take_out
from tests.whole_records import launch, put_manifest

LONG = 300 * b"0.123456 seconds of a launch that printed much\n"
FILES: dict[str, Path | bytes] = {"stdout": LONG, "stderr": b"", "job.sh": b"#!/bin/sh\n"}
NAMES = [f"round001_{letter}" for letter in "abc"]


def keep(book: Schedule, name: str, files: dict[str, Path | bytes] | None = None) -> None:
    book.intend(name)
    book.submitted(name, "job 1")
    number = int(name[5:8])
    record = launch(
        name, round=number, position=book.state.next_position(number), cell=name,
        outcome="failed", sentence="it is made up",
    )  # fmt: skip
    book.keep(record, FILES if files is None else files)


@pytest.fixture
def campaign(tmp_path: Path) -> Path:
    """Return a campaign with three launches in one pack."""
    folder = tmp_path / "c"
    put_manifest(folder, rounds=1, finished_utc=None)
    schedule.begin(folder)
    planned = [PlannedLaunch(launch=one, cell="x", implementation="alpha-1.0") for one in NAMES]
    with schedule.held(folder) as book:
        book.plan(1, planned)
        for name in NAMES:
            keep(book, name)
    return folder


def test_later_rounds_share_a_pack_so_that_a_long_campaign_has_few_files(campaign: Path) -> None:
    assert len({packs.pack_name(number) for number in range(1, 301)}) == 34
    names = [f"round{number:03d}_a" for number in (20, 21, 40, 41)]
    with schedule.held(campaign) as book:
        for name in names:
            planned = PlannedLaunch(launch=name, cell="x", implementation="alpha-1.0")
            book.plan(int(name[5:8]), [planned])
            keep(book, name)
    shared = campaign / "packs" / "rounds021-040.tar"
    assert sorted(path.name for path in shared.parent.iterdir()) == [
        "round001.tar", "round020.tar", shared.name, "rounds041-060.tar",
    ]  # fmt: skip
    assert all_in(shared) == names[1:3]
    # A kill in a launch of one of them, which was not whole yet, costs no other.
    with schedule.held(campaign) as book:
        again = PlannedLaunch(launch="round040_b", cell="x", implementation="alpha-1.0")
        book.plan(40, [again])
        book.intend(again.launch)
    with shared.open("ab") as pack:
        pack.write(b"torn")
    with schedule.held(campaign) as book:
        book.settle()
        keep(book, again.launch)
    assert all_in(shared) == [*names[1:3], again.launch]
    assert {one.name for one in kept_launches(campaign)} == {*NAMES, *names, again.launch}
    # What is gone with the pack alone is measured again.
    shared.unlink()
    with schedule.held(campaign) as book:
        assert book.resume() == [*names[1:3], again.launch]


def test_who_goes_on_with_a_pack_does_not_go_through_all_of_its_launches_for_each(
    campaign: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    places = Schedule._places

    def counted(book: Schedule, number: int) -> list[packs.PackPlace]:
        asked.append(number)
        return places(book, number)

    monkeypatch.setattr(Schedule, "_places", counted)
    names = [f"round{number:03d}_{letter}" for number in (21, 22, 41) for letter in "ab"]
    with schedule.held(campaign) as book:
        for number in (21, 22, 41):
            wanted = [one for one in names if int(one[5:8]) == number]
            book.plan(number, [
                PlannedLaunch(launch=one, cell="x", implementation="alpha-1.0") for one in wanted
            ])  # fmt: skip
            for name in wanted:
                keep(book, name)
    assert asked == [21, 41]
    assert {one.name for one in kept_launches(campaign)} == {*NAMES, *names}


def told(campaign: Path) -> dict[str, str]:
    """Return what is said of what a campaign lacks, but for that its launches failed."""
    return {one.where: one.sentence for one in read_campaign(campaign).problems
            if "it is made up" not in one.sentence}  # fmt: skip


def test_tar_reads_a_pack_and_has_of_a_launch_what_it_left(campaign: Path, tmp_path: Path) -> None:
    pack = campaign / "packs" / "round001.tar"
    subprocess.run(["tar", "-xf", pack, "-C", tmp_path, NAMES[1]], check=True)
    found = tmp_path / NAMES[1]
    subprocess.run(["gunzip", *found.glob("*.gz")], check=True)
    (found / RECORD).unlink()
    assert {path.name: path.read_bytes() for path in found.iterdir()} == FILES
    listed = subprocess.run(["tar", "-tf", pack], capture_output=True, check=True, text=True)
    assert listed.stdout.split()[:2] == [f"{NAMES[0]}/{RECORD}", f"{NAMES[0]}/stdout.gz"]
    assert listed.stderr == "" and sorted(path.name for path in campaign.iterdir()) == [
        ".journal.lock", "journal.jsonl", "manifest.json", "packs",
    ]  # fmt: skip


def test_what_is_read_is_what_was_kept(campaign: Path) -> None:
    found = kept_launches(campaign)
    assert [one.name for one in found] == NAMES
    for number, one in enumerate(found, 1):
        record = record_in(one)
        assert (record.position, set(record.sha256)) == (number, set(FILES))
        assert {name: one.read(name) for name in record.sha256} == FILES
        assert one.names() == sorted([RECORD, *FILES])
        with pytest.raises(FileNotFoundError):
            one.read("metrics.json")
        one.refuse_changed(record.sha256)
    assert [one.launch for one in read_records(campaign)] == NAMES


@pytest.mark.parametrize(
    ("file", "old", "new", "sentence"),
    [
        ("job.sh", b"/bin", b"/bun", "job.sh: was changed after the launch: its sha256 is"),
        (RECORD, b'"position": 2', b'"position": 3', "do not have the sha256 of the journal"),
        ("stdout.gz", b"\x1f\x8b", b"\x1f\x8c", "stdout: it cannot be unpacked"),
        (f"{'job.sh'}", b"job.sh", b"JOB.sh", "job.sh: was removed after the launch"),
    ],
)
def test_a_changed_byte_costs_its_launch_alone(
    campaign: Path, file: str, old: bytes, new: bytes, sentence: str
) -> None:
    change(campaign, NAMES[1], file, old, new)
    assert [one.record.launch for one in read_campaign(campaign).launches] == [NAMES[0], NAMES[2]]
    [(where, said)] = told(campaign).items()
    assert where == NAMES[1] and sentence in said
    with schedule.held(campaign) as book:
        assert book.resume() == [NAMES[1]], "a RESUME measures it again"
        keep(book, NAMES[1])
    assert len(read_campaign(campaign).launches) == 3 and not told(campaign)


def test_what_is_taken_out_of_a_pack_is_gone_and_the_rest_is_found(campaign: Path) -> None:
    take_out(campaign, NAMES[0])
    assert len(read_campaign(campaign).launches) == 2
    assert told(campaign)[NAMES[0]].endswith("it is no longer in round001.tar")
    with schedule.held(campaign) as book:
        assert book.resume() == [NAMES[0]]
        keep(book, NAMES[0])
    assert all_in(campaign / "packs" / "round001.tar") == [NAMES[1], NAMES[2], NAMES[0]]
    assert len(read_campaign(campaign).launches) == 3 and not told(campaign)


def test_what_was_judged_is_not_lost_where_an_earlier_one_was_taken_out(campaign: Path) -> None:
    more = [f"round002_{letter}" for letter in "abc"]
    planned = [PlannedLaunch(launch=one, cell="x", implementation="alpha-1.0") for one in more]
    with schedule.held(campaign) as book:
        book.plan(2, planned)
        keep(book, more[0])
        book.intend(more[1])
        # Killed here: the journal is not told.
        place = book.pack(launch(more[1], round=2, position=2, cell="x"), FILES)
    take_out(campaign, more[0])
    with schedule.held(campaign) as book:
        book.settle()
        one = book.state.launches[more[1]]
        assert (one.status, one.losses) == ("recorded", 0)
        assert one.place and (one.place.offset, one.place.sha256) == (0, place.sha256)
        assert book.find_gone() == [more[0]]
        keep(book, more[0])
        keep(book, more[2])
    assert all_in(campaign / "packs" / "round002.tar") == [more[1], more[0], more[2]]
    assert [one.name for one in kept_launches(campaign)] == [*NAMES, *more]


def test_what_is_gone_of_one_round_is_looked_for_in_its_pack_alone(campaign: Path) -> None:
    with schedule.held(campaign) as book:
        book.plan(2, [PlannedLaunch(launch="round002_a", cell="x", implementation="alpha-1.0")])
        (campaign / "packs" / "round001.tar").unlink()
        # Else each round would cost as much as all before it.
        assert book.find_gone(2) == []
        assert book.find_gone() == NAMES


def test_what_comes_behind_damage_is_neither_lost_nor_written_over(campaign: Path) -> None:
    # The header of the second launch's record, so that no tar reads on from there.
    change(campaign, NAMES[1], RECORD, f"{NAMES[1]}/{RECORD}".encode(), b"?" * 22)
    pack = campaign / "packs" / "round001.tar"
    with pack.open("ab") as file:
        file.write(b"what a kill has left")
    with schedule.held(campaign) as book:
        assert book.resume() == [NAMES[1]]
        keep(book, NAMES[1])
    assert len(read_campaign(campaign).launches) == 3 and not told(campaign)


def test_a_whole_launch_that_nobody_recorded_is_not_written_over(campaign: Path) -> None:
    more = ["round001_d", "round001_e"]
    planned = [PlannedLaunch(launch=one, cell="x", implementation="alpha-1.0") for one in more]
    with schedule.held(campaign) as book:
        book.plan(1, planned)
        book.intend(more[0])
        book.pack(launch(more[0]), {"stdout": b"judged\n"})
        keep(book, more[1])
        book.lost(more[0], "the journal's disk was full")
        assert book.state.launches[more[0]].status == "recorded"
    assert all_in(campaign / "packs" / "round001.tar") == [*NAMES, *more]
    assert {one.name: one.read("stdout") for one in kept_launches(campaign)}[more[0]] == b"judged\n"


def test_a_launch_without_its_journal_is_what_stands_last(campaign: Path) -> None:
    with schedule.held(campaign) as book:
        (campaign / "packs" / "round001.tar").rename(campaign / "away")
        book.find_gone()
        (campaign / "away").rename(campaign / "packs" / "round001.tar")
        keep(book, NAMES[0], {"stdout": b"again\n"})
    (campaign / "journal.jsonl").unlink()
    assert {one.name: one.read("stdout") for one in kept_launches(campaign)} == {
        NAMES[0]: b"again\n", NAMES[1]: LONG, NAMES[2]: LONG,
    }  # fmt: skip


@pytest.mark.parametrize("is_known", [0, 1])
def test_short_launches_that_no_journal_has_are_found(campaign: Path, is_known: int) -> None:
    more = ["round002_a", "round002_b"]
    with schedule.held(campaign) as book:
        for number, name in enumerate(more):
            if number == is_known:
                # From here on nothing comes into the journal that is put back.
                before = (campaign / "journal.jsonl").read_bytes()
            book.plan(2, [PlannedLaunch(launch=name, cell="x", implementation="alpha-1.0")])
            keep(book, name, {"stdout": b""})
    pack = campaign / "packs" / "round002.tar"
    assert pack.stat().st_size == TAR_RECORD, "the mark of its end alone would be as long"
    (campaign / "journal.jsonl").write_bytes(before)
    assert [one.name for one in kept_launches(campaign)] == [*NAMES, *more]
    (campaign / "journal.jsonl").unlink()
    assert [one.name for one in kept_launches(campaign)] == [*NAMES, *more]


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO])
@pytest.mark.parametrize("when", ["write", "fsync"])
def test_a_disk_that_takes_half_a_launch_has_nothing_of_it(
    campaign: Path, monkeypatch: pytest.MonkeyPatch, error: int, when: str
) -> None:
    pack = campaign / "packs" / "round001.tar"
    before = pack.read_bytes()
    with schedule.held(campaign) as book:
        book.plan(1, [PlannedLaunch(launch="round001_d", cell="d", implementation="alpha-1.0")])
        book.intend("round001_d")
        with monkeypatch.context() as patched:

            class Half(io.FileIO):
                def write(self, data: object) -> int:
                    super().write(bytes(data)[:700])  # type: ignore[call-overload]
                    raise OSError(error, os.strerror(error))

            def fail(descriptor: int) -> None:
                raise OSError(error, os.strerror(error))

            if when == "fsync":
                patched.setattr(os, "fsync", fail)
            else:
                patched.setattr(packs, "open", lambda number, *_, **__: Half(number, "r+"), False)
            with pytest.raises(NotKept, match=f"{os.strerror(error)}; make room and resume"):
                book.pack(launch("round001_d"), FILES)
        assert pack.read_bytes().rstrip(b"\0") == before.rstrip(b"\0")
        assert all_in(pack) == NAMES
        book.lost("round001_d", "the disk")
        assert book.state.launches["round001_d"].losses == 1
        keep(book, "round001_d")
    assert all_in(pack) == [*NAMES, "round001_d"]


def test_files_of_any_name_and_length_are_kept(tmp_path: Path) -> None:
    name = "round001_" + 150 * "x"
    files: dict[str, Path | bytes] = {"a": LONG, "a.gz": LONG, "b": bytes(512), "c": b"1"}
    data = segment_of(launch(name), files, "wy-0123456789ab")
    pack = io.BytesIO(data + data)
    first, second = segments_of(pack)
    assert (first.offset, first.end, second.offset, second.end) == (
        0, len(data), len(data), 2 * len(data),
    )  # fmt: skip
    assert {name: content_of(pack, second, name) for name in files} == files
    for size in range(0, len(data), 512):
        cut = io.BytesIO(data[:size])
        assert not any(whole(cut, one) for one in segments_of(cut)), size
    with pytest.raises(CampaignError, match="cannot be recorded"):
        segment_of(launch(), {"../x": b""}, "wy-0123456789ab")


def test_what_unpacks_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    pack = io.BytesIO(segment_of(launch(), {"stdout": LONG}, "wy-0123456789ab"))
    [segment] = segments_of(pack)
    monkeypatch.setattr(packs, "MOST_BYTES", 1000)
    with pytest.raises(RecordError, match="too large"):
        content_of(pack, segment, "stdout")
    assert MOST_BYTES > 1000 and isinstance(segment, PackSegment)
    again = io.BytesIO(segment_of(launch(), {"stdout": LONG}, "wy-0123456789ab"))
    with tarfile.open(fileobj=again) as archive:
        assert archive.getnames()[1] == "round001_cell/stdout", "so large a file stays as it is"


def test_a_launch_costs_two_syncs_and_no_file(
    campaign: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: Counter[str] = Counter()
    for name in ("fsync", "fdatasync", "rename", "replace", "mkdir"):
        real = getattr(os, name)

        def counted(*args: object, name: str = name, real: object = real, **more: object) -> object:
            calls[name] += 1
            return real(*args, **more)

        monkeypatch.setattr(os, name, counted)
    more = [f"round001_{number}" for number in range(20)]
    planned = [PlannedLaunch(launch=one, cell="x", implementation="alpha-1.0") for one in more]
    with schedule.held(campaign) as book:
        book.plan(1, planned)
        before, files = Counter(calls), sorted(campaign.rglob("*"))
        for name in more:
            keep(book, name)
    assert calls - before == Counter(fsync=2 * len(more))
    assert sorted(campaign.rglob("*")) == files
    found = kept_launches(campaign)
    assert len(found) == 23 and all(isinstance(one, PackedLaunch) for one in found)
