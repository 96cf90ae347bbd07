"""What a process has read of a journal is not read again, and what was changed in it is noticed."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from records import journal, schedule
from records.events import Begun, Entry, Intended, Planned, PlannedLaunch, Recorded, Stopped
from records.fold import fold
from records.following import following
from records.journal import Content, JournalError, open_journal, read_journal

LAUNCHES = 5


@dataclass
class Counted:
    """What was read of journals: lines and bytes."""

    lines: int = 0
    bytes: int = 0


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counted:
    found = Counted()
    parse, pread = Entry.model_validate_json, os.pread

    def parsed(line: bytes) -> Entry:
        found.lines += 1
        return parse(line)

    def read(descriptor: int, count: int, offset: int) -> bytes:
        data = pread(descriptor, count, offset)
        found.bytes += len(data)
        return data

    monkeypatch.setattr(Entry, "model_validate_json", parsed)
    monkeypatch.setattr(os, "pread", read)
    return found


def measured(campaign: Path, number: int, known: Content | None) -> Content:
    """Have another process than this one measure a round; return what it knows of the journal."""
    with open_journal(campaign, known) as book:
        names = [f"round{number:03d}_cell{one}_a" for one in range(LAUNCHES)]
        planned = [PlannedLaunch(launch=name, cell="cell", implementation="a") for name in names]
        book.append(Planned(round=number, launches=tuple(planned)))
        for place, name in enumerate(names, 1):
            book.append(Intended(launch=name, attempt=1))
            book.append(Recorded(launch=name, attempt=1, position=place, outcome="sound"))
        return book.content


def run(campaign: Path, rounds: int) -> None:
    """Do of a campaign what concerns its journal, as who drives it and who measures it do."""
    campaign.mkdir()
    schedule.begin(campaign)
    known: Content | None = None
    for number in range(1, rounds + 1):
        known = measured(campaign, number, known)
        with schedule.held(campaign) as held:
            held.settle()
            assert held.state.is_settled(number)
        for _ in range(3):
            state = schedule.state_of(campaign)
            assert state and not state.left()
    content = read_journal(campaign)
    assert content and state == fold(content.events)


def test_a_campaign_reads_each_line_of_its_journal_once_a_process(
    tmp_path: Path, counted: Counted
) -> None:
    seen = {}
    for rounds in (10, 40):
        counted.lines = counted.bytes = 0
        run(tmp_path / f"of-{rounds}", rounds)
        seen[rounds] = counted.lines, counted.bytes
    entries = 1 + 40 * (1 + 2 * LAUNCHES)
    # Of who drives it and, but for its own, of who measures it; and the comparison at the end.
    assert seen[40][0] <= 2 * entries + 10
    assert seen[40][1] < 4.5 * seen[10][1], "so many times as many rounds"


def followed(campaign: Path) -> Path:
    """Return the journal of a campaign that this process knows."""
    run(campaign, 2)
    return campaign / journal.FILE


def test_a_torn_end_is_read_once_it_is_whole(tmp_path: Path) -> None:
    file = followed(tmp_path / "c")
    with open_journal(tmp_path / "c") as book:
        book.append(Stopped(cause="a cause"))
    whole = file.read_bytes()
    file.write_bytes(whole[:-9])
    state = schedule.state_of(tmp_path / "c")
    assert state and state.stopped is None
    with file.open("ab") as more:
        more.write(whole[-9:])
    state = schedule.state_of(tmp_path / "c")
    assert state and state.stopped == "a cause"


def in_the_midst(file: Path) -> None:
    data = file.read_bytes()
    file.write_bytes(data.replace(b'"cell1"', b'"cell9"', 1).replace(b"cell1_a", b"cell9_a", 1))
    # As if some time had passed: the clock by which files are changed is a coarse one.
    os.utime(file, ns=(1, 1))


def cut_short(file: Path) -> None:
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:-3]))


def without_a_line(file: Path) -> None:
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:3] + lines[4:]))


def of_another(file: Path) -> None:
    run(file.parent.parent / "other", 3)
    file.write_bytes((file.parent.parent / "other" / journal.FILE).read_bytes())


@pytest.mark.parametrize("change", [in_the_midst, without_a_line, of_another])
def test_what_was_rewritten_is_refused(tmp_path: Path, change: Callable[[Path], None]) -> None:
    file = followed(tmp_path / "c")
    before = file.read_bytes()
    change(file)
    for _ in range(2):
        with (
            pytest.raises(JournalError, match=r"is damaged|is the journal of other"),
            schedule.held(tmp_path / "c"),
        ):
            pass
    file.write_bytes(before)
    state = schedule.state_of(tmp_path / "c")
    assert state and state.recorded() == 2 * LAUNCHES, "put back, it is read again"


def test_what_was_cut_off_is_no_longer_believed(tmp_path: Path) -> None:
    file = followed(tmp_path / "c")
    cut_short(file)
    state = schedule.state_of(tmp_path / "c")
    assert state and state.recorded() == 2 * LAUNCHES - 2 and state.left()


def test_a_journal_that_is_gone_is_none(tmp_path: Path) -> None:
    followed(tmp_path / "c").unlink()
    assert schedule.state_of(tmp_path / "c") is None


def test_what_could_not_be_written_did_not_happen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    followed(tmp_path / "c")
    with schedule.held(tmp_path / "c") as held:
        with pytest.raises(JournalError, match="begins twice"):
            held.add(Begun(campaign="c"))
        with monkeypatch.context() as patched:
            patched.setattr(os, "write", failing)
            with pytest.raises(OSError, match="full"):
                held.add(Stopped(cause="a cause"))
        assert held.state.stopped is None
        held.add(Stopped(cause="another"))
        assert held.state.stopped == "another"


def failing(descriptor: int, data: bytes) -> int:
    raise OSError("full")


def test_of_many_campaigns_only_the_last_is_kept(tmp_path: Path, counted: Counted) -> None:
    one, other = followed(tmp_path / "one").parent, followed(tmp_path / "other").parent
    known = following(other)
    schedule.state_of(one)
    assert following(other) is not known
