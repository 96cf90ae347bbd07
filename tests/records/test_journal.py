"""The journal's file: one writer, lines that hang together, a torn end that costs nothing."""

import errno
import json
import multiprocessing
import os
import shutil
import signal
from pathlib import Path

import pytest

from records import journal
from records.causes import LONGEST, one_line
from records.events import Begun, Event, Planned, PlannedLaunch, Resumed, Stopped
from records.journal import JournalError
from records.processes import boot_id


def written(campaign: Path, count: int = 3) -> Path:
    campaign.mkdir(exist_ok=True)
    with journal.open_journal(campaign) as book:
        book.append(Begun(campaign="c"))
        for number in range(count - 1):
            book.append(Stopped(cause=f"cause {number}"))
    return campaign / journal.FILE


def events(campaign: Path) -> list[Event]:
    content = journal.read_journal(campaign)
    assert content is not None
    return content.events


def test_what_was_written_is_read_in_order(tmp_path: Path) -> None:
    file = written(tmp_path)
    with journal.open_journal(tmp_path) as book:
        assert len(book.entries) == 3
        book.append(Resumed())
    found = journal.read_journal(tmp_path)
    assert found is not None and [entry.seq for entry in found.entries] == [1, 2, 3, 4]
    assert found.events[1] == Stopped(cause="cause 0") and found.events[-1] == Resumed()
    times = [entry.monotonic_s for entry in found.entries]
    assert times == sorted(times) and {entry.boot for entry in found.entries} == {boot_id()}
    assert found.size == file.stat().st_size


def test_a_campaign_from_before_there_was_one_has_none(tmp_path: Path) -> None:
    assert journal.read_journal(tmp_path) is None and not list(tmp_path.iterdir())


def test_every_torn_end_is_passed_over_and_cut_by_the_next_writer(tmp_path: Path) -> None:
    file = written(tmp_path)
    whole = file.read_bytes()
    start = whole[:-1].rindex(b"\n") + 1
    for end in range(start, len(whole), 7):
        file.write_bytes(whole[:end])
        assert len(events(tmp_path)) == 2
        assert file.stat().st_size == end, "who reads writes nothing"
        with journal.open_journal(tmp_path) as book:
            book.append(Stopped(cause="cause 1"))
        assert len(events(tmp_path)) == 3
    file.write_bytes(whole + 100 * b"\0")
    assert len(events(tmp_path)) == 3


def test_every_other_damage_is_refused_with_its_place(tmp_path: Path) -> None:
    file = written(tmp_path)
    whole = file.read_bytes()
    lines = whole.splitlines(keepends=True)
    damages = {
        "no JSON": [lines[0], b"{\n", lines[2]], "left out": [lines[0], lines[2]],
        "twice": [*lines, lines[2]], "swapped": [lines[0], lines[2], lines[1]],
        "empty line": [lines[0], b"\n", *lines[1:]],
        "no list": [lines[0], b"[]\n", lines[2]], "not UTF-8": [b"\xff\n", *lines[1:]],
        "another cause": [lines[0], lines[1].replace(b"cause 0", b"cause 7"), lines[2]],
        "unknown event": [lines[0], lines[1], lines[2].replace(b"stopped", b"started")],
        "unknown key": [lines[0].replace(b'"seq"', b'"sqe"'), *lines[1:]],
        "torn in the middle": [lines[0], lines[1][:-9], lines[2]],
    }  # fmt: skip
    for name, damage in damages.items():
        file.write_bytes(b"".join(damage))
        before = file.read_bytes()
        with pytest.raises(JournalError, match=r"journal\.jsonl:\d: the journal is damaged"):
            journal.read_journal(tmp_path)
        with (
            pytest.raises(JournalError, match="the journal is damaged"),
            journal.open_journal(tmp_path),
        ):
            pytest.fail(name)
        assert file.read_bytes() == before, "what is damaged is left as it is"


def test_every_changed_byte_before_the_last_line_is_noticed(tmp_path: Path) -> None:
    file = written(tmp_path)
    whole = file.read_bytes()
    for place in range(whole[:-1].rindex(b"\n")):
        changed = bytearray(whole)
        changed[place] ^= 1
        file.write_bytes(changed)
        with pytest.raises(JournalError, match="the journal is damaged"):
            journal.read_journal(tmp_path)


def test_a_copy_knows_what_it_was_copied_from_as_long_as_that_is_there(tmp_path: Path) -> None:
    first, copy = tmp_path / "first of all", tmp_path / "copy"
    first.mkdir()
    written(first)
    assert journal.copied_from(first) is None
    (tmp_path / "link").symlink_to(first)
    assert journal.copied_from(tmp_path / "link") is None, "it is the same under another name"
    shutil.copytree(first, copy)
    assert journal.copied_from(copy) == first and journal.copied_from(first) is None
    moved = first.rename(tmp_path / "moved")
    assert journal.copied_from(copy) is None and journal.copied_from(moved) is None
    # Another campaign in its place.
    first.mkdir()
    written(first)
    assert journal.copied_from(copy) is None
    for note in ("", "x" * 10_000, "process 1 of \0 since now"):
        (copy / journal.LOCK).write_text(note)
        assert journal.copied_from(copy) is None
    (copy / journal.LOCK).unlink()
    os.mkfifo(copy / journal.LOCK)
    assert journal.copied_from(copy) is None


def test_there_is_one_writer(tmp_path: Path) -> None:
    written(tmp_path)
    with (
        journal.open_journal(tmp_path),
        pytest.raises(
            JournalError, match=rf"is measuring {tmp_path.name} \(process {os.getpid()} "
        ),
        journal.open_journal(tmp_path),
    ):
        pass
    assert len(events(tmp_path)) == 3


@pytest.mark.parametrize("trap", ["link", "second name", "pipe", "folder"])
def test_a_trap_in_its_place_is_neither_read_nor_written(tmp_path: Path, trap: str) -> None:
    campaign, mine = tmp_path / "c", tmp_path / "mine"
    campaign.mkdir()
    mine.write_text("not to be written to")
    place = campaign / journal.FILE
    match trap:
        case "link":
            place.symlink_to(mine)
        case "second name":
            place.hardlink_to(mine)
        case "pipe":
            os.mkfifo(place)
        case "folder":
            place.mkdir()
    with pytest.raises(JournalError):
        journal.read_journal(campaign)
    with pytest.raises((JournalError, OSError)), journal.open_journal(campaign) as book:
        book.append(Begun(campaign="c"))
    assert mine.read_text() == "not to be written to"


def test_a_full_disk_leaves_the_journal_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = written(tmp_path)
    before = file.read_bytes()
    real = os.write

    def full(descriptor: int, data: memoryview) -> int:
        if len(data) < 40:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(descriptor, data[:40])

    with journal.open_journal(tmp_path) as book:
        monkeypatch.setattr(os, "write", full)
        with pytest.raises(OSError, match="No space left"):
            book.append(Resumed())
        assert file.read_bytes() == before
        monkeypatch.setattr(os, "write", real)
        book.append(Resumed())
    assert len(events(tmp_path)) == 4


def test_after_a_disk_that_lost_what_it_had_taken_nothing_more_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path)

    def broken(descriptor: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with journal.open_journal(tmp_path) as book:
        with monkeypatch.context() as patched:
            patched.setattr(os, "fsync", broken)
            with pytest.raises(OSError, match="Input/output error"):
                book.append(Resumed())
        with pytest.raises(JournalError, match="start again"):
            book.append(Resumed())


def add_for_ever(campaign: Path) -> None:
    with journal.open_journal(campaign) as book:
        while True:
            launches = (PlannedLaunch(launch="round001_x", cell="x" * 999, implementation="a"),)
            book.append(Planned(round=1, launches=launches))


def test_a_killed_writer_leaves_what_can_be_read_and_gone_on_with(tmp_path: Path) -> None:
    written(tmp_path)
    for _ in range(2):
        before = len(events(tmp_path))
        writer = multiprocessing.get_context("spawn").Process(target=add_for_ever, args=(tmp_path,))
        writer.start()
        while len(events(tmp_path)) < before + 3:
            assert writer.is_alive()
        assert writer.pid
        os.kill(writer.pid, signal.SIGKILL)
        writer.join()
        kept = events(tmp_path)
        with journal.open_journal(tmp_path) as book:
            assert [entry.event for entry in book.entries] == kept


def test_causes_are_one_printable_line_of_some_length() -> None:
    said = one_line("\x1b[31m" + 10_000 * "a\nb " + "\ud800")
    assert said.isprintable() and len(said) == LONGEST
    assert json.loads(json.dumps(said)) == said
