"""Each planned launch is recorded once, missing, or failed with its reason, whatever is killed."""

import errno
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from records import schedule
from records.base import CampaignError, NotKept
from records.events import (
    Begun,
    Event,
    Intended,
    Lost,
    NotStarted,
    Planned,
    PlannedLaunch,
    Recorded,
    Repeated,
    Resumed,
    Submitted,
)
from records.fold import MOST_ALIKE, MOST_LOSSES, LaunchState, State, fold
from records.journal import FILE, JournalError, open_journal, read_journal
from records.kept import kept_launches, pack_files
from records.launch import LAUNCH_SCHEMA, RECORD, LaunchRecord, record_in
from records.packs import PackPlace
from records.schedule import Schedule
from tests.folders import write_launch
from tests.packed import all_in, pack_of, take_out
from tests.whole_records import launch as whole_launch

ROUNDS = (1, 2)
PRINTED = 200 * b"what a program prints takes less room when it is compressed\n"


def planned(number: int, count: int = 3) -> list[PlannedLaunch]:
    """Return the launches of a round: two implementations of each cell."""
    return [
        PlannedLaunch(
            launch=f"round{number:03d}_{cell}_{name}", cell=f"Dgemm n={cell}", implementation=name
        )
        for cell in range(count)
        for name in ("alpha-1.0", "beta-1.0")
    ]


def pack(
    book: Schedule, name: str, position: int, outcome: str = "sound"
) -> tuple[LaunchRecord, PackPlace]:
    """Put a launch into its pack, as a check does; return what is recorded of it."""
    number = int(name[5:8])
    record = whole_launch(name, round=number, position=position, outcome=outcome)
    return record, book.pack(record, {"stdout": PRINTED, "stderr": b""})


@contextmanager
def no_disk() -> Iterator[None]:
    """Have nothing more get to the disk."""

    def fail(descriptor: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    real = os.fsync
    os.fsync = fail  # type: ignore[assignment]
    try:
        yield
    finally:
        os.fsync = real


@contextmanager
def no_room() -> Iterator[None]:
    """Have the journal take half a line, and then nothing."""
    real, half = os.write, [True]

    def full(descriptor: int, data: memoryview) -> int:
        if half.pop() if half else False:
            return real(descriptor, data[: len(data) // 2])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    os.write = full  # type: ignore[assignment]
    try:
        yield
    finally:
        os.write = real


class Campaigns(RuleBasedStateMachine):
    """Sessions that measure a campaign of two rounds, and all that may end them at any instant."""

    def __init__(self) -> None:
        super().__init__()
        self.campaign = Path(tempfile.mkdtemp()) / "c"
        (self.campaign / "packs").mkdir(parents=True)
        self.holder: object = None
        self.book: Schedule | None = None
        #: The launch that was judged, and its place in the order, while nobody was told.
        self.untold: tuple[str, int] | None = None
        self.is_torn = False
        self.in_flight: str | None = None
        self.number = 1

    def teardown(self) -> None:
        """Remove the campaign."""
        self.kill()
        shutil.rmtree(self.campaign.parent)

    @initialize()
    def begin(self) -> None:
        """Make the campaign."""
        schedule.begin(self.campaign)

    @precondition(lambda self: self.book is None)
    @rule(number=st.sampled_from(ROUNDS), resumed=st.booleans())
    def open(self, number: int, resumed: bool) -> None:
        """Start a session, after a RESUME or as the campaign does by itself."""
        holder = schedule.held(self.campaign)
        self.book, self.holder, self.number = holder.__enter__(), holder, number
        if resumed:
            self.book.resume()
        else:
            self.book.settle()
            self.book.find_gone(number)
        assert not any(one.in_flight for one in self.book.state.launches.values())
        if self.untold:
            name, position = self.untold
            one = self.book.state.launches[name]
            assert (one.status, one.position) == ("recorded", position), "nothing judged is lost"
        self.untold, self.is_torn = None, False
        self.book.plan(number, planned(number))
        self.book.begin_session(number)

    @precondition(lambda self: self.book is not None)
    @rule()
    def kill(self) -> None:
        """End the session as a kill does: nothing more of it is written."""
        if self.holder:
            self.holder.__exit__(None, None, None)  # type: ignore[attr-defined]
        self.book = self.holder = self.in_flight = None

    @precondition(lambda self: self.book is None)
    @rule(part=st.floats(0, 1, exclude_max=True))
    def lose_power(self, part: float) -> None:
        """Cut what was not synced: any part of the last line."""
        file = self.campaign / FILE
        data = file.read_bytes()
        content = read_journal(self.campaign)
        assert content
        # A record is taken to the disk by the next intention; all else is there when it is said.
        if isinstance(content.events[-1], Recorded | Submitted):
            start = data[:-1].rindex(b"\n") + 1
            file.write_bytes(data[: start + int(part * (len(data) - start))])

    @precondition(lambda self: self.book is not None and self.in_flight is None)
    @rule(pick=st.integers(0, 5))
    def intend(self, pick: int) -> None:
        """Begin an attempt at a launch that is left."""
        assert self.book
        if left := self.book.state.open(self.number):
            name = left[pick % len(left)].name
            self.book.intend(name)
            self.in_flight = name

    @precondition(lambda self: self.in_flight is not None)
    @rule()
    def answer(self) -> None:
        """Have the scheduler answer; a second answer is none."""
        assert self.book and self.in_flight
        one = self.book.state.launches[self.in_flight]
        if one.status == "intended":
            self.book.submitted(self.in_flight, "job 1")
        else:
            before = len(self.book.journal.entries)
            with pytest.raises(JournalError, match="which is submitted"):
                self.book.submitted(self.in_flight, "job 2")
            assert len(self.book.journal.entries) == before

    @precondition(lambda self: self.in_flight is not None)
    @rule(outcome=st.sampled_from(["sound", "suspect", "failed"]), told=st.booleans())
    def judge(self, outcome: str, told: bool) -> None:
        """Keep the launch; a session may be killed between that and the journal."""
        assert self.book and self.in_flight
        name = self.in_flight
        position = self.book.state.next_position(self.number)
        record, place = pack(self.book, name, position, outcome)
        if not told:
            self.kill()
            self.untold = name, position
            return
        self.book.recorded(record, place)
        with pytest.raises(JournalError, match="which is recorded"):
            self.book.recorded(record, place)
        self.in_flight = None

    @precondition(lambda self: self.in_flight is not None)
    @rule(part=st.floats(0, 1, exclude_max=True))
    def tear(self, part: float) -> None:
        """Kill the session while it writes the launch: any part of it is there."""
        assert self.book and self.in_flight
        place = pack(self.book, self.in_flight, 1)[1]
        self.kill()
        file = self.campaign / "packs" / place.pack
        os.truncate(file, place.offset + int(part * place.length))
        self.is_torn = True

    @precondition(lambda self: self.in_flight is not None)
    @rule()
    def fill_the_disk_for_a_launch(self) -> None:
        """Have no room for what a launch gave: it is lost, and nothing of it is there."""
        assert self.book and self.in_flight
        file = pack_of(self.campaign, self.in_flight)
        before = all_in(file) if file.exists() else []
        with no_disk(), pytest.raises(NotKept, match=r"could not be kept in .*: Input/output"):
            pack(self.book, self.in_flight, 1)
        assert all_in(file) == before
        self.lose()

    @precondition(lambda self: self.in_flight is not None)
    @rule()
    def lose(self) -> None:
        """Lose the attempt, and end the session as ReFrame's does."""
        assert self.book and self.in_flight
        self.book.lost(self.in_flight, "No space left on device")
        self.kill()

    @precondition(lambda self: self.book is not None and self.in_flight is None)
    @rule(pick=st.integers(0, 5), why=st.sampled_from(["skipped", "failed", "missing"]))
    def pass_over(self, pick: int, why: str) -> None:
        """Make no attempt at a launch."""
        assert self.book
        if left := self.book.state.open(self.number):
            name = left[pick % len(left)].name
            event = {"launch": name, "why": why, "cause": "its preflight failed"}
            self.book.add(NotStarted.model_validate(event))

    @precondition(lambda self: self.book is not None)
    @rule()
    def fill_the_disk(self) -> None:
        """Have no room for the next line: nothing is said, and it can be said later."""
        assert self.book
        before = self.book.journal.path.read_bytes()
        state = self.book.state
        left = self.book.state.open(self.number)
        with no_room(), pytest.raises(OSError, match="No space left"):
            if self.in_flight or not left:
                self.book.begin_session(self.number)
            else:
                self.book.intend(left[0].name)
        assert self.book.journal.path.read_bytes() == before
        assert self.book.state.sessions == state.sessions - bool(self.in_flight or not left)

    @precondition(lambda self: self.book is None and not self.is_torn)
    @rule(pick=st.integers(0, 20), whole=st.booleans())
    def delete(self, pick: int, whole: bool) -> None:
        """Delete a pack, or take a launch out of it, so that what stands behind it moves."""
        found = sorted({name for file in pack_files(self.campaign) for name in all_in(file)})
        if found:
            name = found[pick % len(found)]
            if whole:
                pack_of(self.campaign, name).unlink()
            else:
                take_out(self.campaign, name)
            untold = self.untold[0] if self.untold else ""
            if untold == name or (whole and untold[:8] == name[:8]):
                self.untold = None

    @invariant()
    def replay_agrees(self) -> None:
        """Whoever reads the file has the states that the holder has, and each prefix has some."""
        content = read_journal(self.campaign)
        if content is None:
            return
        state = fold(content.events)
        if self.book:
            assert state == self.book.state
        assert fold(content.events[: len(content.events) // 2]) is not None

    @invariant()
    def nothing_is_lost_or_twice(self) -> None:
        """What is recorded is there, what is there is recorded or about to be, and once."""
        content = read_journal(self.campaign)
        if content is None or self.book is None:
            return
        kept = {one.name: one for one in kept_launches(self.campaign)}
        for one in self.book.state.launches.values():
            assert check(one)
            # No job of an attempt that was lost without an answer starts anything any more.
            assert all(self.book.mark_of(one.name, number).is_file() for number in one.unanswered)
            assert not any(
                self.book.mark_of(one.name, number).exists()
                for number in range(1, one.attempts + 1)
                if number not in one.unanswered
            )
            if one.round == self.number and one.status == "recorded":
                # As whoever reads it does, to the byte, by what is on the disk.
                assert record_in(kept[one.name]).position == one.position
                kept[one.name].refuse_changed({})
                assert kept[one.name].read("stdout") == PRINTED
        for number in ROUNDS:
            positions = [one.position for one in self.book.state.of(number) if one.position]
            assert len(set(positions)) == len(positions)

    @invariant()
    def rounds_are_done_where_all_is_settled(self) -> None:
        """No round is done that has an open launch, and what a RESUME would do is what is left."""
        if self.book is None:
            return
        for number in self.book.state.rounds:
            names = {one.launch for one in planned(number)}
            of = {one.name: one for one in self.book.state.of(number)}
            assert set(of) == names
            settled = all(
                one.status in ("recorded", "skipped", "failed", "missing") for one in of.values()
            )
            assert self.book.state.is_settled(number) == settled


def check(one: LaunchState) -> bool:
    """Return whether a launch is in a state that can be, with what belongs to it."""
    if one.status == "recorded":
        return one.outcome is not None and one.attempts > 0
    if one.status in ("skipped", "failed", "missing"):
        return bool(one.cause) and one.outcome is None
    return one.outcome is None and one.position is None and one.losses < MOST_LOSSES


TestCampaigns = Campaigns.TestCase
TestCampaigns.settings = settings(
    max_examples=40, stateful_step_count=40, deadline=None,
    suppress_health_check=list(HealthCheck),
)  # fmt: skip


class ManyCampaigns(Campaigns):
    """The same, with its steps counted: some end early, where no rule can be applied."""

    steps = 0

    @invariant()
    def count(self) -> None:
        """Count a step."""
        type(self).steps += 1


@pytest.mark.long
def test_ten_thousand_steps_hold() -> None:
    run_state_machine_as_test(
        ManyCampaigns, settings=settings(TestCampaigns.settings, max_examples=400)
    )
    print(f"{ManyCampaigns.steps} steps")
    assert ManyCampaigns.steps >= 10_000


@pytest.fixture
def campaign(tmp_path: Path) -> Path:
    """Return a campaign that has just begun."""
    (tmp_path / "c").mkdir()
    schedule.begin(tmp_path / "c")
    return tmp_path / "c"


def measured_with_a_loss(campaign: Path) -> State:
    """Measure a campaign with a loss, a deletion and a RESUME; return its state."""
    for name in ("first", "second"):
        with schedule.held(campaign) as book:
            if name == "second":
                book.resume()
            book.plan(1, planned(1))
            book.begin_session(1)
            for number, one in enumerate(list(book.state.open(1))):
                book.intend(one.name)
                if name == "first" and number == 2:
                    book.lost(one.name, "Input/output error")
                    break
                book.recorded(*pack(book, one.name, book.state.next_position(1)))
        if name == "first":
            take_out(campaign, planned(1)[0].launch)
    state = schedule.state_of(campaign)
    assert state
    return state


def test_a_resume_measures_what_is_missing_and_goes_on_counting(campaign: Path) -> None:
    state = measured_with_a_loss(campaign)
    assert state.is_done(1) and state.recorded() == 6 and not state.left()
    positions = {one.name: one.position for one in state.of(1)}
    # The first one was deleted after it had been measured, so that its place is taken again.
    assert sorted(positions.values()) == [2, 3, 4, 5, 6, 7], positions  # type: ignore[type-var]


def test_every_part_of_a_journal_can_be_replayed_and_gone_on_with(campaign: Path) -> None:
    whole = measured_with_a_loss(campaign)
    data = (campaign / FILE).read_bytes()
    for line in [place for place, byte in enumerate(data) if byte == 10]:
        for end in (line + 1, line - 7):
            (campaign / FILE).write_bytes(data[:end])
            if end <= data.index(b"\n"):
                continue
            with schedule.held(campaign) as book:
                book.resume()
                book.plan(1, planned(1))
                # All folders are there, so that whatever was in flight is recorded again.
                for one in list(book.state.open(1)):
                    assert one.status == "planned"
            again = schedule.state_of(campaign)
            assert again and set(again.launches) == set(whole.launches)


def test_what_cannot_have_happened_is_refused(campaign: Path) -> None:
    [one, *_] = planned(1)
    name = one.launch
    begun: list[Event] = [Begun(campaign="c"), Planned(round=1, launches=(one,))]
    impossible: list[list[Event]] = [
        [Resumed()], [*begun, Begun(campaign="c")], [*begun, begun[1]],
        [*begun, Intended(launch="round001_other", attempt=1)],
        [*begun, Intended(launch=name, attempt=2)],
        [*begun, Submitted(launch=name, attempt=1, job="1")],
        [*begun, Recorded(launch=name, attempt=1, position=1, outcome="sound")],
        [*begun, Recorded(launch=name, attempt=0, position=1, outcome="sound")],
        [*begun, Intended(launch=name, attempt=1), Lost(launch=name, attempt=2, cause="x")],
        [*begun, Intended(launch=name, attempt=1), Intended(launch=name, attempt=2)],
    ]  # fmt: skip
    for events in impossible:
        with pytest.raises(JournalError, match="the journal"):
            fold(events)
    with schedule.held(campaign) as book:
        before = len(book.journal.entries)
        with pytest.raises(JournalError):
            book.add(Intended(launch=name, attempt=1))
        assert len(book.journal.entries) == before


def test_two_losses_give_a_launch_up_until_a_resume(campaign: Path) -> None:
    name = planned(1)[0].launch
    for session in range(MOST_LOSSES):
        with schedule.held(campaign) as book:
            book.settle()
            book.plan(1, planned(1, 1))
            book.intend(name)
            assert book.state.launches[name].attempts == session + 1
    with schedule.held(campaign) as book:
        book.settle("ReFrame was killed")
        one = book.state.launches[name]
        assert (one.status, one.cause) == ("missing", "ReFrame was killed")
        assert [left.name for left in book.state.left()] == [p.launch for p in planned(1, 1)]
        book.resume()
        assert book.state.launches[name].status == "planned"
        book.intend(name)


def test_launches_from_before_there_was_a_journal_are_taken_in(tmp_path: Path) -> None:
    old = tmp_path / "old"
    (old / "launches").mkdir(parents=True)
    write_launch(old, whole_launch(planned(1)[1].launch, position=4), {})
    schedule.begin(old, is_converted=True)
    with schedule.held(old) as book:
        book.resume()
        book.plan(1, planned(1))
        assert book.state.is_converted and len(book.state.open(1)) == 5
        assert book.state.launches[planned(1)[1].launch].status == "recorded"
        assert book.state.next_position(1) == 5


def test_what_is_recorded_cannot_be_lost_and_stays_where_it_is(campaign: Path) -> None:
    measured_with_a_loss(campaign)
    name = planned(1)[0].launch
    before = (campaign / FILE).read_bytes()
    with schedule.held(campaign) as book:
        with pytest.raises(
            JournalError, match="is recorded, so no attempt at it can have been lost"
        ):
            book.lost(name, "No space left on device")
        assert book.state.launches[name].outcome == "sound"
    assert name in {one.name for one in kept_launches(campaign)}
    assert (campaign / FILE).read_bytes() == before


def fail(book: Schedule, name: str, cause: str | None, is_lost: bool = False) -> None:
    """Have an attempt at a launch end for a cause, or well."""
    book.intend(name)
    attempt = book.state.launches[name].attempts
    if is_lost:
        book.add(Lost(launch=name, attempt=attempt, cause=str(cause)))
    else:
        outcome = "failed" if cause else "sound"
        event = {"launch": name, "attempt": attempt, "position": None, "outcome": outcome}
        book.add(Recorded.model_validate({**event, "cause": cause}))


def test_equal_causes_in_a_row_are_counted_across_implementations_and_sessions(
    campaign: Path,
) -> None:
    launches_ = [one.launch for one in planned(1, 20)]
    # As of a campaign from before there were packs.
    (campaign / "launches").mkdir()
    with schedule.held(campaign) as book:
        book.plan(1, planned(1, 20))
        fail(book, launches_[0], "exit code 1")
        for number, name in enumerate(launches_[1:MOST_ALIKE]):
            fail(book, name, f"{name}: no port after {number}.5 s", is_lost=number == 4)
        assert book.state.circuit() is None, "one of them ended otherwise"
    with schedule.held(campaign) as book:
        fail(book, launches_[MOST_ALIKE], "round001_x: no port after 3 s")
        assert book.state.circuit() is None, "the name is another's"
        for name in launches_[MOST_ALIKE + 1 : 2 * MOST_ALIKE]:
            fail(book, name, "round001_x: no port after 4 s")
        sentence = f"{MOST_ALIKE} launches in a row ended alike: round#_x: no port after # s"
        assert book.state.circuit() == sentence
    with schedule.held(campaign) as book:
        assert book.state.circuit() == sentence
        book.resume()
        assert book.state.circuit() is None
        for name in launches_[2 * MOST_ALIKE + 1 :: 2]:
            fail(book, name, "exit code 1")
        assert book.state.circuit() is None, "all of these are of one implementation"
        fail(book, launches_[2 * MOST_ALIKE], "exit code 1")
        assert book.state.circuit()
        fail(book, launches_[2 * MOST_ALIKE + 2], None)
        assert book.state.circuit() is None


STOPPED = {"looked_s": 1.0, "others_s": 0.0, "stopped": 1}


def test_a_disturbed_block_is_measured_again_once_whole_and_what_it_gave_is_kept(
    campaign: Path,
) -> None:
    again = {}
    for turn in (1, 2):
        with schedule.held(campaign) as book:
            book.plan(1, planned(1))
            book.begin_session(1)
            for one in book.state.open(1):
                book.intend(one.name)
                more = {"disturbance": STOPPED} if "_1_alpha" in one.name else {}
                record = whole_launch(one.name, position=book.state.next_position(1), **more)
                book.keep(record, {})
            again[turn] = book.repeat_blocks(1, {"stopped": 0})
            left = [one.name for one in book.state.left()]
        if turn == 1:
            assert left == ["round001_1_alpha-1.0", "round001_1_beta-1.0"]
            there = {one.name for one in kept_launches(campaign)}
            assert not there & set(left), "what the block gave no longer counts"
    assert len(again[1]) == 1 and "was stopped and continued during" in again[1][0]
    assert again[2] == [] and not left, "once, whatever comes then"
    state = schedule.state_of(campaign)
    assert state and not state.split(), "it was measured again as a whole"
    assert {one.attempts for one in state.blocks(1)[1, "Dgemm n=1"]} == {2}
    kept = all_in(campaign / "packs" / "round001.tar")
    assert len(kept) == 8 and kept[-2:] == ["round001_1_alpha-1.0", "round001_1_beta-1.0"]


def test_what_was_not_declared_beforehand_is_not_measured_again(campaign: Path) -> None:
    with schedule.held(campaign) as book:
        book.plan(1, planned(1))
        name = book.state.open(1)[0].name
        book.intend(name)
        record = whole_launch(name, disturbance=STOPPED)
        book.keep(record, {})
        assert book.repeat_blocks(1, {}) == []
        assert book.repeat_blocks(1, {"stopped": 0}) == [], "the rest of its block is not measured"


def test_a_kill_while_a_block_is_put_aside_loses_nothing(campaign: Path) -> None:
    with schedule.held(campaign) as book:
        book.plan(1, planned(1, 1))
        for one in book.state.open(1):
            book.intend(one.name)
            record = whole_launch(one.name, disturbance=STOPPED)
            book.keep(record, {})
        names = tuple(one.name for one in book.state.of(1))
        book.add(Repeated(round=1, cell="Dgemm n=0", launches=names, cause="stopped"))
    with schedule.held(campaign) as book:
        for name in names:
            book.intend(name)
            record = whole_launch(name)
            book.keep(record, {})
        assert not book.state.left()
    assert all_in(campaign / "packs" / "round001.tar") == [*names, *names]
    records = {one.name: record_in(one).disturbance for one in kept_launches(campaign)}
    assert records == dict.fromkeys(names)


def test_a_block_that_a_kill_has_cut_is_marked(campaign: Path) -> None:
    for count in (3, 6):
        with schedule.held(campaign) as book:
            book.plan(1, planned(1))
            book.begin_session(1)
            for one in book.state.open(1)[: count - book.state.recorded()]:
                book.intend(one.name)
                record = whole_launch(one.name)
                book.keep(record, {})
    state = schedule.state_of(campaign)
    assert state and state.split() == {(1, "Dgemm n=1")}


def test_checks_that_no_longer_have_what_is_left_are_refused(campaign: Path) -> None:
    with schedule.held(campaign) as book:
        book.plan(1, planned(1))
        sentence = r"round 1 should have round001_2_alpha-1\.0 \(and 1 more\), which the checks no "
        with pytest.raises(CampaignError, match=sentence):
            book.plan(1, planned(1, 2))
        book.plan(1, planned(1, 4))
        assert len(book.state.open(1)) == 8


def test_a_damaged_launch_is_put_aside_and_measured_again(campaign: Path) -> None:
    name = planned(1)[0].launch
    folder = campaign / "launches" / name
    with schedule.held(campaign) as book:
        book.plan(1, planned(1))
        book.intend(name)
    folder.mkdir(parents=True)
    (folder / RECORD).write_text(json.dumps({"schema": LAUNCH_SCHEMA}))
    with schedule.held(campaign) as book:
        book.settle()
        assert not folder.exists() and (folder.parent / f".{name}.attempt1").is_dir()
        assert book.state.launches[name].is_open
    with open_journal(campaign) as journal:
        assert isinstance(journal.entries[-1].event, Lost)


def test_a_whole_launch_that_the_journal_did_not_take_is_recorded_and_not_lost(
    campaign: Path,
) -> None:
    name = planned(1)[0].launch
    with schedule.held(campaign) as book:
        book.plan(1, planned(1))
        book.intend(name)
        pack(book, name, 1)
        with no_room(), pytest.raises(OSError, match="No space"):
            book.lost(name, "No space left on device")
        assert book.state.launches[name].in_flight
        book.lost(name, "No space left on device")
        assert book.state.launches[name].outcome == "sound"
        assert [one.name for one in kept_launches(campaign)] == [name]


def test_a_campaign_that_was_renamed_is_not_made_again(campaign: Path) -> None:
    with schedule.held(campaign) as book:
        book.plan(1, planned(1))
        book.intend(planned(1)[0].launch)
        away = campaign.rename(campaign.with_name("elsewhere"))
        with pytest.raises(NotKept, match="could not be kept"):
            pack(book, planned(1)[0].launch, 1)
    sentence = "is no longer there: renamed or removed; nothing is written"
    with pytest.raises(JournalError, match=sentence), open_journal(campaign):
        pass
    assert not campaign.exists() and (away / FILE).is_file()
    # Whoever has made such a folder, it is not this campaign.
    campaign.mkdir()
    for lacks in ("is no longer there", "is empty"):
        with pytest.raises(JournalError, match=lacks), schedule.held(campaign):
            pass
        assert (campaign / FILE).exists() == (lacks == "is empty")
        (campaign / FILE).touch()
