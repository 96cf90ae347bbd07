"""A campaign with a budget measures where answers are open; its ReFrame is played."""

import itertools
import json
import sys
import time
from argparse import Namespace
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from analysis.comparison.compare import compare
from analysis.comparison.result import Comparison
from analysis.history.lost_cells import lost_cells
from analysis.precision import waves
from analysis.report.campaign_end import ending
from analysis.report.first_screen import warnings
from analysis.report.headline import headlines
from campaign import __main__ as campaigns
from campaign import (
    beginning,
    estimate,
    measuring,
    nightly,
    provenance,
    reframe_session,
    request,
    resuming,
)
from campaign.decisions import say_decision, why_ended
from campaign.request import command_of
from inference.looks import AnytimeRatio
from records import campaign as records_campaign
from records import schedule
from records.base import CampaignError
from records.budget import BEYOND, is_beyond, left_out, spent_s
from records.campaign import read_campaign, unmeasured
from records.digests import LaunchFiles
from records.events import (
    Begun,
    Ended,
    Entry,
    Event,
    Gone,
    Intended,
    NotStarted,
    Planned,
    PlannedLaunch,
    Recorded,
    Reported,
    Resumed,
    SessionBegan,
    Wave,
    WaveRound,
)
from records.fold import State, fold
from records.journal import read_journal
from records.launch import Launch, read_launch
from records.manifest import Design, Manifest, RoundDone, read_manifest, write_manifest
from tests.campaign.played_reframe import DIFFERENCE

CLEAR, OPEN = DIFFERENCE
#: So that the open cell does not take long.
LOOKS = {3: 0.4, 5: 0.25, 8: 0.15}
LAST = max(LOOKS)
#: As it is; the checkout that is played has no inputs otherwise.
INPUT_DIGESTS = provenance.input_digests


@pytest.fixture(autouse=True)
def _few_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    declared = waves.declared

    def few(budget_s: float, seed: int) -> Design:
        looks = {"looks": list(LOOKS), "shares": list(LOOKS.values())}
        return declared(budget_s, seed).model_copy(update=looks)

    monkeypatch.setattr(waves, "declared", few)


def asked(*words: str) -> Namespace:
    return campaigns.arguments(list(words))


def new(root: Path, budget: str, *plays: dict[str, Any]) -> Path:
    (root / "plays.json").write_text(json.dumps(plays))
    return beginning.new_campaign(asked("--budget", budget, "--seed", "3"))[0]


def measure(path: Path) -> bool:
    return measuring.measure(path, read_manifest(path))


def state_of(path: Path) -> State:
    state = schedule.state_of(path)
    assert state is not None
    return state


def entries_of(path: Path) -> list[Entry]:
    content = read_journal(path)
    assert content is not None
    return content.entries


def replays(path: Path) -> list[waves.Replayed]:
    return list(waves.replayed(read_campaign(path), entries_of(path)))


def blocks(state: State) -> dict[str, int]:
    cells = [one.planned.cell for one in state.of(None) if one.outcome == "sound"]
    return {cell: cells.count(cell) // 2 for cell in DIFFERENCE}


def test_a_block_that_was_disturbed_is_measured_again_within_its_wave(played: Path) -> None:
    # The session that measures more rounds is told of the same one once more.
    path = new(played, "1000s", {"stopped": 1})
    assert measure(path)
    state = state_of(path)
    again = [one for one in state.of(None) if one.is_repeat]
    assert [one.attempts for one in again] == [2, 2] and {one.round for one in again} == {1}
    assert blocks(state) == {CLEAR: 3, OPEN: LAST}
    assert [one.agrees for one in replays(path)] == [True] * (len(state.waves) + 1)
    assert read_campaign(path).repeated == {(1, again[0].planned.cell)}


def test_inputs_that_change_between_two_waves_are_refused_by_the_next(
    played: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though the process that would measure it has loaded its own long ago."""
    monkeypatch.setattr(provenance, "input_digests", INPUT_DIGESTS)
    path, new_one = new(played, "1000s"), played / "records" / "another.py"

    decided: list[object] = []

    def edit(*words: Any) -> None:
        say_decision(*words)
        decided.append(words[0])
        # The first round is measured as it should be.
        if len(decided) == 2:
            new_one.parent.mkdir(exist_ok=True)
            new_one.touch()

    with monkeypatch.context() as patched:
        patched.setattr("campaign.measuring.say_decision", edit)
        with pytest.raises(CampaignError, match=r"records/another\.py is new; put that back"):
            measure(path)
    assert len(decided) == 2 and state_of(path).is_done(1)
    new_one.unlink()
    assert measuring.measure(*resuming.old_campaign(asked("--resume", path.name)))


def test_time_goes_where_an_answer_is_open_until_none_can_be_had(
    played: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = new(played, "1000s")
    assert measure(path)
    state, manifest = state_of(path), read_manifest(path)
    assert blocks(state) == {CLEAR: 3, OPEN: LAST}
    assert state.ended and (state.ended.why, state.ended.open_series) == ("hopeless", 1)
    assert manifest.finished_utc and manifest.rounds == LAST and not manifest.tested_once
    assert "the time left would not decide any of them" in capsys.readouterr().out
    campaign = read_campaign(path)
    assert not unmeasured(path, manifest, state_of(path), set(campaign.kept))
    comparison = compare(campaign)
    verdicts = {cell.name: cell.verdicts["beta-1.0"] for cell in comparison.cells}
    over = [group.verdicts["beta-1.0"] for group in comparison.groups]
    assert over and all(isinstance(one.ratio, AnytimeRatio) for one in (*verdicts.values(), *over))
    # Over both cells as many looks have come as the cell with the fewest blocks has.
    assert [len(one.ratio.looks) for one in over if isinstance(one.ratio, AnytimeRatio)] == [1]
    assert verdicts[CLEAR].words == "faster" and verdicts[OPEN].words == "no difference shown"
    assert [one.agrees for one in replays(path)] == [True] * (len(state.waves) + 1)
    # Each decision is on the disk before what it decided is planned.
    kinds = [entry.event.kind for entry in entries_of(path)]
    assert all(
        kinds[: place + 1].count("wave") >= 1
        for place, kind in enumerate(kinds)
        if kind == "planned"
    )
    with pytest.raises(CampaignError, match="finished; there is nothing left"):
        reported = schedule.held(path)
        with reported as held:
            held.add(Reported())
        resuming.old_campaign(asked("--resume", path.name))


def test_a_launch_is_read_once_however_many_waves_are_decided_by_it(
    played: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: Counter[str] = Counter()
    real = read_launch

    def counted(launch: LaunchFiles, anew: bool) -> Launch:
        read[launch.name] += 1
        return real(launch, anew)

    monkeypatch.setattr(records_campaign, "read_launch", counted)
    path = new(played, "1000s")
    measure(path)
    state = state_of(path)
    chosen = [wave for wave in state.waves if wave.why == "chosen"]
    assert len(chosen) > 1 and set(read) == set(state.launches)
    assert set(read.values()) == {1}


def die_with_reframe(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Measure until ReFrame is killed, and the campaign with it."""

    def died(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("campaign.rounds.end_leftovers", died)
        with pytest.raises(KeyboardInterrupt):
            measure(path)


@pytest.mark.parametrize("start", [0, 2, 4])
def test_a_campaign_that_dies_in_a_wave_goes_on_with_it(
    played: Path, start: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ReFrame is killed in a launch, and the campaign with it; somebody resumes it."""
    path = new(played, "1000s", *[{}] * start, {"killed after": 1})

    die_with_reframe(path, monkeypatch)
    cut = state_of(path)
    assert cut.ended and cut.ended.why == "interrupted"
    [left_out] = [one for one in read_campaign(path).problems if "budget" in one.sentence]
    assert "RESUME measures what is still open" in left_out.sentence
    assert any(one.in_flight for one in cut.of(None))
    assert all(one.agrees for one in replays(path))
    # Before anything was chosen nobody knows whether all will be tested once.
    assert read_campaign(path).awaits_test == (start < 3)
    with monkeypatch.context() as patch:
        # Nobody goes on with it for a long time, which is none of its budget.
        late = time.monotonic() + 1e5
        patch.setattr("records.journal.time", SimpleNamespace(monotonic=lambda: late))
        campaign, manifest = resuming.old_campaign(asked("--resume", path.name))
    assert any(entry.monotonic_s == late for entry in entries_of(path))
    assert spent_s(entries_of(path)) < 1000
    assert measuring.measure(campaign, manifest)
    state = state_of(path)
    assert state.waves[: len(cut.waves)] == cut.waves, "what was decided stays decided"
    assert blocks(state) == {CLEAR: 3, OPEN: LAST} and not state.left()
    assert all(one.agrees for one in replays(path))


@pytest.mark.parametrize(("most", "processes"), [(200, 1), (3, 3)])
def test_one_process_measures_many_rounds_but_not_any_number(
    played: Path, most: int, processes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reframe_session, "MOST_ROUNDS", most)
    path = new(played, "1000s")
    assert measure(path)
    began = [entry.event.process for entry in entries_of(path)
             if isinstance(entry.event, SessionBegan)]  # fmt: skip
    assert (len(began), len(set(began))) == (LAST, processes)
    assert all(one.agrees for one in replays(path))


def test_a_reframe_that_dies_in_a_wave_is_started_again_for_it(played: Path) -> None:
    path = new(played, "1000s", {}, {"killed after": 0}, {}, {}, {"killed after": 1})
    assert measure(path)
    assert blocks(state_of(path)) == {CLEAR: 3, OPEN: LAST}
    assert all(one.agrees for one in replays(path))


def test_a_cell_that_fails_from_some_block_on_does_not_take_the_budget(played: Path) -> None:
    path = new(played, "1000s", {}, {}, {}, *[{"outcome": "failed"}] * 20)
    assert not measure(path)
    state = state_of(path)
    assert state.ended and (state.ended.why, state.ended.open_series) == ("hopeless", 1)
    assert [wave.why for wave in state.waves] == ["begin", "begin", "begin", "chosen"]
    assert all(one.agrees for one in replays(path))


def test_what_failed_in_a_round_counts_though_a_kill_left_it_without_entry(
    played: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = new(played, "1000s", {"outcome": "failed"})
    written = write_manifest

    def died(campaign: Path, manifest: Manifest) -> None:
        if manifest.rounds_done:
            raise KeyboardInterrupt
        written(campaign, manifest)

    with monkeypatch.context() as patch:
        patch.setattr(measuring, "write_manifest", died)
        with pytest.raises(KeyboardInterrupt):
            measure(path)
    assert state_of(path).is_settled(1) and not read_manifest(path).rounds_done
    assert not measuring.measure(*resuming.old_campaign(asked("--resume", path.name)))
    [first] = [one for one in read_manifest(path).rounds_done if one.round == 1]
    assert first.reframe_exit_code and first.wall_s > 0


def test_what_passed_before_a_resume_is_no_time_of_a_launch(played: Path) -> None:
    path = new(played, "1000s")
    measure(path)
    entries, state = entries_of(path), state_of(path)
    before = waves.block_seconds(entries, state)
    place = next(i for i, entry in enumerate(entries) if isinstance(entry.event, Recorded))
    late = [one.model_copy(update={"monotonic_s": one.monotonic_s + 1e5})
            for one in entries[place:]]  # fmt: skip
    resumed = late[0].model_copy(update={"event": Resumed()})
    after = waves.block_seconds([*entries[:place], resumed, *late], state)
    assert before.keys() == after.keys() and max(after.values()) < 1e3
    # Of a cell of which no duration is known, it is that of the others.
    known = [one for one in entries if not (isinstance(one.event, Recorded | Intended)
             and state.launches[one.event.launch].planned.cell == OPEN)]  # fmt: skip
    some = waves.block_seconds(known, state)
    assert some[OPEN] == some[CLEAR] > 0


def test_a_decision_by_a_launch_that_was_measured_again_is_not_called_wrong(played: Path) -> None:
    path = new(played, "1000s")
    measure(path)
    entries, campaign = entries_of(path), read_campaign(path)
    [first, *_] = [one.record.launch for one in campaign.launches if one.record.cell == OPEN]
    gone = entries[-1].model_copy(update={"event": Gone(launch=first, cause="it was deleted")})
    found = list(waves.replayed(campaign, [*entries, gone]))
    assert [one.replaced for one in found] == [None, *[first] * (len(found) - 1)]


def test_what_the_launches_do_not_say_is_found_by_replay(played: Path) -> None:
    path = new(played, "1000s")
    measure(path)
    campaign, entries = read_campaign(path), entries_of(path)
    place = next(
        place for place, entry in enumerate(entries)
        if isinstance(entry.event, Wave) and entry.event.why == "chosen"
    )  # fmt: skip
    wave = entries[place].event
    assert isinstance(wave, Wave)
    chosen = tuple(one.model_copy(update={"cells": (CLEAR, OPEN)}) for one in wave.rounds)
    for change in ({"rounds": chosen}, {"spent_s": wave.spent_s + 1}, {"scores": ()}):
        changed = entries[place].model_copy(update={"event": wave.model_copy(update=change)})
        told = [one.agrees for one in waves.replayed(campaign, [*entries[:place], changed])]
        assert told == [True, True, True, False]
    # So is a launch that says another value than it did when it was decided by.
    of_open = [launch for launch in campaign.launches if launch.record.cell == OPEN]
    others = [launch for launch in campaign.launches if launch.record.cell != OPEN]
    swapped = [
        replace(launch, record=launch.record.model_copy(update={"implementation": name}))
        if launch.record.round == 1 else launch
        for launch, name in zip(of_open, itertools.cycle(("beta-1.0", "alpha-1.0")), strict=False)
    ]  # fmt: skip
    other = replace(campaign, launches=[*others, *swapped])
    assert not all(one.agrees for one in waves.replayed(other, entries))
    declared = campaign.manifest.changed(tested_once=True)
    with pytest.raises(CampaignError, match="declares a different design than its journal"):
        list(waves.replayed(replace(campaign, manifest=declared), entries))


@pytest.fixture
def _four_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tell the clock that a round takes a quarter of a budget of 1000 s."""
    monkeypatch.setattr(waves, "spent_s", lambda entries: 250.0 * sum(
        isinstance(entry.event, Wave) for entry in entries))  # fmt: skip
    monkeypatch.setattr(waves, "block_seconds", lambda *_: {CLEAR: 120.0, OPEN: 130.0})


@pytest.mark.usefixtures("_four_rounds")
@pytest.mark.parametrize("start", [2, 3])
def test_what_is_tested_once_at_the_end_is_not_judged_before(
    played: Path, start: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = new(played, "1000s", *[{}] * start, {"killed after": 3})

    die_with_reframe(path, monkeypatch)
    assert state_of(path).waves[-1].why == ("begin" if start == 2 else "uniform")
    comparison = compare(read_campaign(path))
    verdicts = [one for cell in comparison.cells for one in cell.verdicts.values()]
    verdicts += [one for group in comparison.groups for one in group.verdicts.values()]
    assert len(verdicts) > 2 and all(one.ratio.pairs >= start for one in verdicts)
    assert {one.words for one in verdicts} == {"not judged (not finished)"}
    assert all(one.interval is None for one in verdicts)
    [one] = headlines(comparison)
    assert one.unfinished == 2 and not one.unjudged and not one.open
    assert one.sentence == (
        "Nothing is known about beta-1.0 against alpha-1.0; 2 not judged (not finished: everything "
        "is tested once, at the end)."
    )
    said = ending(comparison)
    assert " ".join(" ".join(said).split()).startswith(one.sentence)
    assert "No difference is shown." not in said
    [first, *_] = warnings(comparison)
    assert first.sentence.endswith(
        "Nothing is judged yet, since everything is tested once, at the end."
    )
    assert measuring.measure(*resuming.old_campaign(asked("--resume", path.name)))
    assert read_manifest(path).tested_once
    after = compare(read_campaign(path))
    [clear] = [cell.verdicts["beta-1.0"] for cell in after.cells if cell.name == CLEAR]
    assert clear.words == "faster"


@pytest.mark.usefixtures("_four_rounds")
def test_a_budget_too_small_for_looks_has_uniform_rounds_and_one_test(
    played: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = new(played, "1000s")
    assert measure(path)
    state, manifest = state_of(path), read_manifest(path)
    assert [wave.why for wave in state.waves] == [*["begin"] * 3, "uniform"]
    assert isinstance(state.ended, Ended) and state.ended.why == "budget"
    assert blocks(state) == {CLEAR: 4, OPEN: 4} and manifest.tested_once
    said = "too small to choose cells, so everything is tested once, at the end"
    assert said in capsys.readouterr().out
    verdict = next(cell for cell in compare(read_campaign(path)).cells if cell.name == CLEAR)
    assert verdict.verdicts["beta-1.0"].ratio.interval_at(0.05) is not None
    assert type(verdict.verdicts["beta-1.0"].ratio).__name__ == "Ratio"
    assert all(one.agrees for one in replays(path))


def test_time_between_sessions_is_not_spent(played: Path) -> None:
    path = new(played, "1000s")
    measure(path)
    entries = entries_of(path)
    whole = entries[-1].monotonic_s - entries[0].monotonic_s
    assert spent_s(entries) == pytest.approx(whole)
    with schedule.held(path) as held:
        held.resume()
    resumed = entries_of(path)
    late = resumed[-1].model_copy(update={"monotonic_s": resumed[-1].monotonic_s + 1e4})
    assert spent_s([*resumed[:-1], late]) == pytest.approx(whole, abs=1.0)
    booted = entries[-1].model_copy(update={"boot": "0", "monotonic_s": 1e9})
    assert spent_s([*entries[:-1], booted]) <= whole


@pytest.mark.parametrize(
    "words", ["", "15", "m", "0s", "-5m", "1e3s", "15 m", "15min", "nan", "999999h"]
)
def test_what_is_not_a_time_is_refused(words: str) -> None:
    with pytest.raises(CampaignError, match=f"^BUDGET={words}: a budget is a time"):
        asked(f"--budget={words}")


@pytest.mark.parametrize(
    "other", ["--rounds=3", "--study=kearns2003", "--like=a", "--resume=a"]
)  # fmt: skip
def test_what_has_its_own_rounds_takes_no_budget(other: str) -> None:
    with pytest.raises(CampaignError, match="BUDGET cannot be given with"):
        asked("--budget=15m", other)


def test_times_and_the_command_that_repeats_them() -> None:
    assert [asked(f"--budget={words}").budget for words in ("900s", "15m", "0.25h")] == [900.0] * 3
    assert command_of(asked("--budget=15m")) == "make run SITE=local TIER=quick BUDGET=900s"
    for words in ("300h", "277.9h", "0.001s", "1234567.891s"):
        given = command_of(asked(f"--budget={words}")).split("BUDGET=")[1]
        assert asked(f"--budget={given}").budget == pytest.approx(asked(f"--budget={words}").budget)


def settled(root: Path, *words: str) -> tuple[int, float | None]:
    """Return the rounds and the budget of a request."""
    options = asked(*words)
    request.with_design(root, options)
    return options.rounds, options.budget


def test_who_names_neither_rounds_nor_a_budget_has_the_site_s_or_the_usual_one(
    checkout: Path,
) -> None:
    assert settled(checkout) == (1, request.BUDGET_S)
    with (checkout / "site_configs" / "local" / "site.yaml").open("a") as site:
        site.write("budget: 20m\n")
    assert settled(checkout) == (1, 1200.0)
    assert settled(checkout, "--budget=90s") == (1, 90.0)
    assert settled(checkout, "--rounds=7") == (7, None)
    for fixed in ("--tier=paper", "--tier=site", "--study=iit", "--like=a", "--resume=a"):
        assert settled(checkout, fixed) == (request.ROUNDS, None)
    for wrong in ("--site=nowhere", "--tier=huge"):
        with pytest.raises(CampaignError, match="unknown"):
            settled(checkout, wrong)


def test_a_night_has_rounds_whatever_the_site_s_budget_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "argv", ["nightly"])
    night = nightly.as_campaign(nightly.arguments())
    assert night.budget is None and night.rounds >= 1


@pytest.mark.parametrize("budget", ["1000s", "0.001s"])
def test_a_campaign_with_a_budget_is_repeated_as_it_was_decided(
    played: Path, budget: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = new(played, budget)
    measure(path)
    options = asked("--like", path.name, "--name", "again")
    beginning.as_before(options)
    request.with_design(played, options)
    monkeypatch.setattr(waves, "decide", nothing)
    again, manifest = beginning.new_campaign(options)
    # Also by somebody who goes on with it.
    assert measuring.measure(again, read_manifest(again))

    def measured(campaign: Path) -> set[tuple[int, str, str]]:
        every = state_of(campaign).of(None)
        return {(one.round, one.planned.cell, one.planned.implementation) for one in every
                if one.outcome}  # fmt: skip

    assert measured(again) == measured(path) and manifest.order_seed == 3
    before, after = read_manifest(path), read_manifest(again)
    assert after.design and after.design.repeats == path.name and after.finished_utc
    assert (after.rounds, after.tested_once) == (before.rounds, before.tested_once)
    ended = state_of(again).ended
    assert ended and ended.why == "repeated"
    assert not [one for one in read_campaign(again).problems if "no room" in one.sentence]
    with pytest.raises(CampaignError, match=f"repeats the decisions of {path.name}"):
        replays(again)
    # A round of some cells says nothing about a round of all; and the rounds are their own.
    work = estimate.Work.of(after)
    is_part = budget == "0.001s"
    assert (estimate.last_round_like(played, work, besides=path.name) is None) is is_part
    took = estimate.duration(sum(one.wall_s for one in before.rounds_done))
    assert beginning.expected(options).endswith(f"of {path.name}, which took {took}")
    # What was refused or not by the manifest's number of rounds has no more of them.
    write_manifest(path, before.changed(rounds=before.rounds + 1))
    assert beginning.waves_to_repeat(path.name)
    with schedule.held(path) as held:
        held.add(Resumed())
        held.add(Wave(number=len(held.state.waves) + 1, why="uniform", scores=(), predicted_s=None,
                      spent_s=0.0, rounds=tuple(WaveRound(round=before.rounds + more, cells=None)
                                                for more in (1, 2))))  # fmt: skip
    with pytest.raises(CampaignError, match="more rounds in its journal than in its manifest"):
        beginning.new_campaign(options)
    (path / "journal.jsonl").unlink()
    with pytest.raises(CampaignError, match="has no journal of its decisions"):
        beginning.new_campaign(options)


def test_what_repeats_another_campaign_is_tested_as_that_one_was(
    played: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one looked, and had nothing left to choose after what it began with."""
    monkeypatch.setattr(waves, "open_series", lambda comparison: [])
    path = new(played, "1000s")
    assert measure(path)
    assert [wave.why for wave in state_of(path).waves] == ["begin"] * 3
    # Also what repeats that one.
    for name in ("second", "third"):
        options = asked("--like", path.name, "--name", name)
        beginning.as_before(options)
        request.with_design(played, options)
        path, manifest = beginning.new_campaign(options)
        assert manifest.design and manifest.design.once is False
        assert measure(path)
        ended = state_of(path).ended
        assert ended and ended.why == "repeated" and not read_manifest(path).tested_once
        for cell in compare(read_campaign(path)).cells:
            assert isinstance(cell.verdicts["beta-1.0"].ratio, AnytimeRatio)


def test_where_no_launch_says_how_long_it_takes_that_is_said(
    played: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(waves, "block_seconds", lambda *_: {})
    path = new(played, "1000s")
    assert measure(path)
    ended = state_of(path).ended
    assert ended and (ended.why, ended.open_series) == ("unknown", 1)
    said = capsys.readouterr().out
    assert "1 series still open, and it is unknown what would decide any" in said
    assert "the time left" not in said and "about 0 s" not in said
    assert all(one.agrees for one in replays(path))


@pytest.mark.parametrize("place", ["begin", "first wave", "last wave"])
def test_a_campaign_whose_beginning_was_cut_by_a_kill_does_not_count(
    played: Path, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = new(played, "1000s")
    measure(path)
    options = asked("--like", path.name, "--name", "again")
    beginning.as_before(options)
    request.with_design(played, options)
    planned = beginning.waves_to_repeat(path.name)
    assert len(planned) > 1
    begin, add = schedule.begin, schedule.Schedule.add

    def killed_at_begin(campaign: Path, is_converted: bool = False, **more: Any) -> None:
        if place == "begin":
            raise KeyboardInterrupt
        begin(campaign, is_converted, **more)

    def killed_at_wave(self: schedule.Schedule, event: Any, sync: bool = True) -> None:
        if event == {"first wave": planned[0], "last wave": planned[-1]}.get(place):
            raise KeyboardInterrupt
        add(self, event, sync)

    with monkeypatch.context() as patched:
        patched.setattr(schedule, "begin", killed_at_begin)
        patched.setattr(schedule.Schedule, "add", killed_at_wave)
        with pytest.raises(KeyboardInterrupt):
            beginning.new_campaign(options)
    [cut] = [one for one in (played / "runs").iterdir() if one != path]
    # Else a RESUME would have measured a part of the other's waves, and called it repeated.
    with pytest.raises(CampaignError, match="is not a campaign"):
        resuming.old_campaign(asked("--resume", cut.name))
    with pytest.raises(CampaignError):
        read_manifest(cut)


def test_what_a_budget_is_enough_for_is_said_and_nothing_is_refused(played: Path) -> None:
    path = new(played, "1000s")
    options = asked("--budget", "100s")
    assert "known after the first round" in beginning.expected(options)
    done = [RoundDone(round=number, wall_s=took, reframe_exit_code=0)
            for number, took in ((1, 40.0), (2, 40.0), (3, 40.0), (4, 1.0))]  # fmt: skip
    manifest = read_manifest(path)
    write_manifest(path, manifest.changed(rounds=4, rounds_done=[one.facts for one in done]))
    said = beginning.expected(options)
    assert "the most important cells are measured, as many as fit; everything takes 2 min" in said
    wanted = estimate.Work.of(manifest)
    assert "3 rounds of everything with one test" in estimate.enough_for(played, wanted, 131.0)
    said = "then, unless one cell takes most of a round, for what is still open"
    assert said in estimate.enough_for(played, wanted, 133.0)
    alone = manifest.changed(images={name: dict(one.facts) for name, one in
                                     [*manifest.images.items()][:1]})  # fmt: skip
    write_manifest(path, alone.changed(
        rounds=4, rounds_done=[one.facts for one in done]))  # fmt: skip
    said = estimate.enough_for(played, estimate.Work.of(alone), 200.0)
    assert "enough for 3 rounds of everything, and with one implementation nothing more is" in said
    write_manifest(path, manifest.changed(
        rounds=4, rounds_done=[one.facts for one in done]))  # fmt: skip
    assert "known after the first" in estimate.enough_for(played, wanted, 200.0, besides=path.name)


def test_what_the_first_round_has_no_room_for_is_left_out_and_said(
    played: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = new(played, "0.001s")
    assert measure(path)
    state, manifest = state_of(path), read_manifest(path)
    assert blocks(state) == {CLEAR: 1, OPEN: 0} and left_out(state) == [OPEN]
    assert state.ended and state.ended.why == "budget" and manifest.finished_utc
    assert all(one.agrees for one in replays(path))
    missing = unmeasured(path, manifest, state_of(path), set(read_campaign(path).kept))
    [sentence] = [one.sentence for one in missing]
    assert sentence == f"the budget had no room for 1 cell: {OPEN}"
    assert "left out, as the least important: 1 cell\n" in capsys.readouterr().out
    # The answer is of a part, and says so where it is read; who misses a cell learns why.
    comparison = compare(read_campaign(path))
    said = "The budget had no room for 1 cell, the least important ones: nothing here covers them."
    assert said in " ".join(ending(comparison)).replace("     ", " ")
    assert said in [one.sentence for one in warnings(comparison)]
    had = [(f"{cell} of a series", cell, cell.split()[0], "alpha-1.0") for cell in (CLEAR, OPEN)]
    lost = [one.sentence for one in lost_cells(had, set(), manifest, comparison.campaign)]
    assert ["(its budget had no room for it)" in one for one in lost] == [False, True]
    # A part of a round tells nothing of a whole one.
    assert estimate.last_round_like(played, estimate.Work.of(manifest)) is None


def entries_from(*happened: tuple[float, Event]) -> list[Entry]:
    """Return a journal's entries, of what happened when."""
    return [
        Entry(seq=place, before="0" * 64, monotonic_s=second, utc="2026-01-01T00:00:00Z", boot="0",
              event=event)
        for place, (second, event) in enumerate(happened, 1)
    ]  # fmt: skip


def first_round(budget_s: float, took: list[tuple[str, float]], others: tuple[str, ...] = ()) -> (
    list[Entry]
):  # fmt: skip
    """Return a journal after a first round: the launches that it made, and cells left out."""
    design = waves.declared(budget_s, 1)
    every = WaveRound(round=1, cells=None)
    wave = Wave(number=1, why="begin", rounds=(every,), scores=(), predicted_s=None, spent_s=0.0)
    names = [(f"r_{place}", cell) for place, (cell, _) in enumerate(took)]
    names += [(f"r_{cell}".replace(" ", "_").replace("=", "-"), cell) for cell in others]
    planned = tuple(
        PlannedLaunch(launch=name, cell=cell, implementation=f"a-{place % 2}")
        for place, (name, cell) in enumerate(names)
    )
    happened: list[tuple[float, Event]] = [
        (0.0, Begun(campaign="c", converted=False, design=design)), (0.0, wave),
        (0.0, Planned(round=1, launches=planned)),
    ]  # fmt: skip
    now = 0.0
    for (name, _), (_, seconds) in zip(names, took, strict=False):
        happened.append((now, Intended(launch=name, attempt=1)))
        now += seconds
        happened.append((now, Recorded(launch=name, attempt=1, position=None, outcome="sound")))
    for name, _ in names[len(took) :]:
        happened.append((now, NotStarted(launch=name, why="skipped", cause=BEYOND)))
    return entries_from(*happened)


def nothing(*_: object) -> Comparison:
    raise AssertionError("nothing is to be compared, nor decided")


def decided(design: Design, entries: list[Entry]) -> Wave | Ended:
    """Return what is decided by time alone."""
    return waves.decide(design, entries, fold(entry.event for entry in entries), nothing)


def test_later_rounds_have_what_is_compared_and_are_as_long_as_that() -> None:
    took = [("Nas size=S", 10.0), ("Nas size=S", 10.0), ("Dgemm n=1", 30.0), ("Preflight", 30.0)]
    entries = first_round(165.0, took)
    design = waves.declared(165.0, 1)
    wave = decided(design, entries)
    assert isinstance(wave, Wave)
    assert [one.cells for one in wave.rounds] == [("Nas size=S",)]
    # 80 s of the first, and 20 s.
    assert (wave.why, wave.predicted_s) == ("begin", 20.0)
    small = decided(waves.declared(99.0, 1), first_round(99.0, took))
    assert isinstance(small, Ended) and (small.why, small.open_series) == ("budget", None)
    alone = decided(design, first_round(165.0, took[2:]))
    assert isinstance(alone, Ended) and alone.why == "decided"


@pytest.mark.parametrize(
    ("cells", "block_s", "needed_s"),
    [
        # A single one needs two blocks more for its next look; of many, 0.3 of a round pays.
        (1, 20.0, 40.0), (3, 20.0, 40.0), (50, 2.0, 30.0)
    ],
)  # fmt: skip
def test_looks_are_worth_their_price_where_time_is_left_for_one(
    cells: int, block_s: float, needed_s: float
) -> None:
    design = waves.declared(1000.0, 1)
    assert waves.has_room(design, needed_s + 1e-6, cells * block_s, block_s)
    assert not waves.has_room(design, needed_s - 1e-6, cells * block_s, block_s)


def test_what_was_left_out_is_not_begun_later() -> None:
    took = [("EchoTest ranks=2", 5.0), ("EchoTest ranks=2", 5.0)]
    others = ("Nas size=S", "Nas size=W", "Dgemm n=1")
    entries = first_round(60.0, took, others)
    assert left_out(fold(entry.event for entry in entries)) == ["Nas size=S", "Nas size=W"]
    wave = decided(waves.declared(60.0, 1), entries)
    assert isinstance(wave, Wave) and wave.why == "uniform"
    assert [one.cells for one in wave.rounds] == [("EchoTest ranks=2",)]


def test_a_first_round_takes_a_third_of_the_budget_but_whole_blocks() -> None:
    cells = ["Preflight image=a", "Nas size=S", "Nas size=S", "Nas size=W", "Nas size=W"]
    entries = first_round(60.0, [(cell, 12.0) for cell in cells])

    def beyond(count: int) -> bool:
        """Whether the launch after so many is left out; each has three entries before it."""
        before = entries[: 3 + 2 * count]
        return is_beyond(fold(entry.event for entry in before), before, f"r_{count}")

    # The last one's block has begun.
    assert [beyond(count) for count in range(5)] == [False, False, False, True, False]
    # However small the budget is, a proof and the block of some cell are measured.
    entries = first_round(1.0, [(cell, 12.0) for cell in cells])
    assert [beyond(count) for count in range(5)] == [False, False, False, True, False]


def test_why_it_ended_is_said_of_what_compares_nothing() -> None:
    ended = Ended(why="decided", spent_s=1.0, open_series=0)
    compared = fold(entry.event for entry in first_round(60.0, [("Nas size=S", 1.0)]))
    alone = fold(entry.event for entry in first_round(60.0, [("Dgemm n=1", 1.0)]))
    assert why_ended(ended, compared, 2) == "no series is open"
    assert "there is only one implementation to measure" in why_ended(ended, compared, 1)
    assert "nothing that was measured is compared" in why_ended(ended, alone, 2)
