"""Violations of guidelines are listed where they were put, and not where there is noise only."""

import json
import math
from pathlib import Path
from typing import Any

import numpy
import pytest
from typer.testing import CliRunner

from analysis.__main__ import app
from analysis.models.guidelines.declared import declared
from analysis.models.guidelines.tables import guideline_tables, trial_table
from analysis.models.guidelines.trials import (
    Setting,
    Times,
    Trial,
    cells_in,
    times_in,
    trials_by,
    trials_of,
)
from inference.intervals import holm
from records.campaign import read_campaign
from records.communication import OPERATIONS
from tests.analysis.support.synthetic import TWICE, Synthetic

Seconds = dict[tuple[str, int], float]
SIZES = [64, 256, 1024, 4096]
SETTING = Setting("alpha-1.0", 4, 1, "world", 0)


def consistent(size: int) -> float:
    """Return the time of an operation that keeps every guideline with room to spare, in seconds."""
    return 5e-6 + size * 1e-9


def fair_times() -> Seconds:
    """Return times of four ranks that keep all guidelines: each operation by its work."""
    of = {"bcast": 1.2, "scatter": 1.0, "gather": 1.0, "allgather": 1.5, "alltoall": 2.0,
          "reduce-sum": 1.2, "reduce-min": 1.2, "allreduce-sum": 1.8,
          "allreduce-min": 1.8}  # fmt: skip
    return {(name, size): of[name] * consistent(size) for name in of for size in SIZES}


def noisy(truth: Seconds, rounds: int, seed: int, scale: float = 0.03) -> Times:
    """Return rounds of times whose noise multiplies, of launches and single operations."""
    random = numpy.random.default_rng(seed)
    drift = {number: random.standard_t(4) for number in range(1, rounds + 1)}
    return {
        key: {
            number: seconds * math.exp(scale * (drift[number] + random.standard_t(4)))
            for number in drift
        }
        for key, seconds in truth.items()
    }


def collective(synthetic: Synthetic, number: int, name: str, seconds: Seconds, ranks: int = 4,
               scrub: int = 0, **more: Any) -> None:  # fmt: skip
    """Add a launch of `collective` to a campaign: operations of known times."""
    records: list[dict[str, Any]] = [{
        "record": "header", "format": "wyeast-records-1", "program": "collective",
        "program_version": "1.0.0", "library": name, "mpi_standard": "4.1", "ranks": ranks,
        "hosts": ["a"] * ranks, "processors": [[place] for place in range(ranks)],
        "clock": "MPI_Wtime", "clock_tick_s": 1e-9, "clock_resolution_s": 2e-8,
        "started_utc": "2026", "parameters": {"scrub_bytes": scrub},
    }]  # fmt: skip
    for (operation, size), time in seconds.items():
        summary = dict.fromkeys(("min", "quartile1", "median", "mean", "quartile3", "max"), time)
        records.append({
            "record": "result", "operation": operation, "method": "", "group": "world",
            "message_bytes": size, "ranks": ranks, "iterations": 1, "warmup": 1,
            "synchronisation": "barrier", "discarded": 0, "clock_error_s": 0.0, "time_s": summary,
            "median_by_rank_s": [time] * ranks, "moved_bytes": size, "verified_bytes": size,
        })  # fmt: skip
    records.append({"record": "end", "results": len(seconds)})
    text = "".join(json.dumps(record) + "\n" for record in records)
    parameters = {"suite": f"s{scrub}-{len(seconds)}", "ranks": ranks}
    synthetic.launch(number, name, "Collectives", parameters, text, program="collective",
                     ranks=ranks, **more)  # fmt: skip


def shown(times: Times) -> list[Trial]:
    """Return the violations that a setting's times show, corrected over all its tests."""
    found = list(trials_of(SETTING, times))
    adjusted = holm([one.p_value if one.p_value is not None else 1.0 for one in found])
    return [one for one, p in zip(found, adjusted, strict=True) if p < 0.05]


def test_the_guidelines_name_operations_of_the_program() -> None:
    every = declared()
    named = {term.operation for one in every.guidelines for term in one.at_most}
    named |= {one.operation for one in every.guidelines} | set(every.every_operation)
    assert named <= set(OPERATIONS)
    assert len({one.name for one in every.guidelines}) == len(every.guidelines)


def test_a_fair_library_is_tested_and_nothing_is_shown() -> None:
    found = list(trials_of(SETTING, noisy(fair_times(), 8, 1)))
    assert {one.guideline for one in found} >= {one.name for one in declared().guidelines}
    assert shown(noisy(fair_times(), 8, 1)) == []


def test_a_setting_is_words_for_people_and_numbers_for_programs() -> None:
    scrubbed = Setting("alpha-1.0", 4, 2, "world", 4096)
    table = trial_table(list(trials_of(scrubbed, noisy(fair_times(), 8, 1))))
    assert table.words(table.rows[0])[2] == "4 ranks on 2 node(s), world, caches scrubbed"
    record = dict(zip(table.heads, table.record(table.rows[0]), strict=True))
    numbers = ("ranks (1)", "nodes (1)", "group", "scrub_bytes (B)")
    assert [record[head] for head in numbers] == [4, 2, "world", 4096]


BROKEN = {
    "allreduce-sum(n) <= reduce-sum(n) + bcast(n)": ("allreduce-sum", 256, 3.0, 256),
    "reduce-sum(n) <= allreduce-sum(n)": ("reduce-sum", 1024, 2.5, 1024),
    "bcast(n) <= scatter(n / ranks) + allgather(n / ranks)": ("bcast", 4096, 4.0, 4096),
    "gather(n) <= allgather(n)": ("gather", 64, 3.0, 64),
    "scatter(n) <= bcast(n * ranks)": ("scatter", 256, 3.0, 256),
    "allgather(n) <= gather(n) + bcast(n * ranks)": ("allgather", 1024, 4.0, 1024),
    "alltoall is monotone in size": ("alltoall", 256, 2.0, 256),
    "alltoall of k n bytes <= k x n bytes": ("alltoall", 4096, 8.0, 4096),
}


@pytest.mark.parametrize("guideline", BROKEN)
def test_a_violation_is_found_where_it_was_put(guideline: str) -> None:
    operation, size, factor, at = BROKEN[guideline]
    truth = fair_times()
    truth[operation, size] *= factor
    found = {(one.guideline, one.message_bytes): one for one in shown(noisy(truth, 8, 2))}
    assert (guideline, at) in found
    violation = found[guideline, at]
    assert violation.ratio.interval is not None and violation.ratio.interval.low > 1
    # Nothing is said of operations that have no part in it.
    assert all(operation in one for one, _ in found)


def test_the_factors_interval_covers_the_one_that_was_put() -> None:
    truth = {("gather", 64): 2e-6, ("allgather", 64): 1e-6}
    hits, trials = 0, 400
    for seed in range(trials):
        [one] = trials_of(SETTING, noisy(truth, 8, seed))
        assert one.ratio.interval is not None
        hits += one.ratio.interval.low < 2 < one.ratio.interval.high
    # Four standard errors of a true 95% are 4.4%.
    assert 0.906 <= hits / trials <= 0.994


def test_false_alarms_are_as_rare_as_stated() -> None:
    """All guidelines at their very edge: any violation is a false one, in 5% of libraries."""
    # Every operation equal and the same at every size: gather = allgather, each size = the next.
    edge = {key: 5e-6 for key in fair_times()}
    trials = 120
    alarms = sum(bool(shown(noisy(edge, 5, seed))) for seed in range(trials))
    # Of a true 5% four standard errors are 8%.
    assert alarms / trials <= 0.05 + 0.08


def test_the_same_factor_in_every_round_is_no_certainty() -> None:
    """A coarse clock has no noise; three equal rounds show nothing, as by a test of signs."""
    times: Times = {
        ("gather", 64): dict.fromkeys((1, 2, 3), 2e-6),
        ("allgather", 64): dict.fromkeys((1, 2, 3), 1e-6),
    }
    [one] = trials_of(SETTING, times)
    assert one.p_value == 0.125


def test_only_what_ran_alike_is_compared(tmp_path: Path) -> None:
    synthetic = Synthetic(tmp_path / "c", TWICE, rounds=1, pairs=[])
    folder = synthetic.write()
    for number in (1, 2, 3):
        collective(synthetic, number, "alpha-1.0", {("gather", 64): 9e-6}, scrub=1 << 26)
        collective(synthetic, number, "alpha-1.0", {("allgather", 64): 1e-6, ("barrier", 0): 1e-6})
    campaign = read_campaign(folder)
    assert trials_by(times_in(campaign), cells_in(campaign)) == []
    rows = {row.values[1]: row.values[2] for row in guideline_tables(read_campaign(folder))[1].rows}
    sizes = "not measured at sizes of equal work in one setting"
    assert rows["gather(n) <= allgather(n)"] == sizes
    assert rows["allgather(n) <= gather(n) + bcast(n * ranks)"] == "not measured: bcast"


def test_oversubscribed_launches_are_in_no_test(tmp_path: Path) -> None:
    synthetic = Synthetic(tmp_path / "c", TWICE, rounds=1, pairs=[])
    folder = synthetic.write()
    truth = {("gather", 64): 9e-6, ("allgather", 64): 1e-6}
    collective(synthetic, 1, "alpha-1.0", truth, oversubscribed=True)
    done = CliRunner().invoke(app, ["guidelines", str(folder)])
    assert done.exit_code == 1 and "make run CHECKS=Collectives" in done.output


def test_command_lists_the_violation(tmp_path: Path) -> None:
    synthetic = Synthetic(tmp_path / "c", TWICE, rounds=1, pairs=[])
    folder = synthetic.write()
    truth = fair_times()
    truth["gather", 64] *= 4
    for name, of in (("alpha-1.0", truth), ("beta-2.0", fair_times())):
        times = noisy(of, 8, 4)
        for number in range(1, 9):
            collective(synthetic, number, name, {key: of[number] for key, of in times.items()})
    campaign = read_campaign(folder)
    assert campaign.problems == []
    trials = trials_by(times_in(campaign), cells_in(campaign))
    violated = {(t.setting.implementation, t.guideline) for t in trials if t.violated}
    assert ("alpha-1.0", "gather(n) <= allgather(n)") in violated
    assert all(name == "alpha-1.0" and "gather" in guideline for name, guideline in violated)
    done = CliRunner().invoke(app, ["guidelines", str(folder)])
    assert done.exit_code == 0 and "violated" in done.output
    # What is tested once, at the campaign's end, shows nothing before.
    campaign.awaits_test = True
    violations, summary, every = guideline_tables(campaign)
    assert violations.rows == [] and len(every.rows) == len(trials)
    assert {summary.value(row, "outcome") for row in summary.rows} <= {
        "inconclusive", *(lacking for row in summary.rows
                          if "not measured" in (lacking := summary.value(row, "outcome"))),
    }  # fmt: skip
