"""Claims about every cell, some, or a share of them, on noisy campaigns whose truth is known.

Of each such claim of the reports: no verdict against the truth more often than stated, where
every cell lies close to its limit, and the right one where the truth is clear.
"""

from functools import cache
from pathlib import Path

import numpy
import polars as pl
import pytest

from analysis.studies import relations
from analysis.studies.declaration import Claim, Step
from analysis.studies.many_cells import found_in_cells
from analysis.studies.one_number import FAILS, HOLDS, IN_PART, UNTOLD
from analysis.studies.reading import Paper, read_paper
from analysis.studies.relations import OneRound, Report, TodaysTables
from analysis.studies.verdicts import one_here, together
from records.campaign import Campaign
from records.manifest import Manifest
from tests.analysis.support.study_samples import PROJECT
from tests.analysis.support.study_truths import (
    Truths,
    all_to_all,
    bandwidth,
    beyond_peak,
    bisection,
    cells_only,
    hpl,
    lam,
    one_range,
    one_size,
    overhead,
    passes,
    slowest,
    speedup,
    strided,
    su3,
    su3_cpu,
    su3_ratio,
)

ROUNDS, TRIALS, FEW_TRIALS = 6, 40, 10
#: Of forty with an error of 2.5% each, five or more are wrong in three of a thousand cases.
MOST_WRONG = 4

# A claim, a truth close to the limit in all cells, the noise, and whether the claim is then true.
CLOSE: list[tuple[str, str, Truths, float, bool]] = [
    ("kearns2003", "kearns-bw-1", bandwidth(1.002), 0.01, True),
    ("kearns2003", "kearns-bw-1", bandwidth(1.01, 0.998, one_range), 0.01, False),
    ("kearns2003", "kearns-bw-2", bandwidth(1.02), 0.01, True),
    ("kearns2003", "kearns-bw-2", bandwidth(1.05, 0.998, one_size), 0.01, False),
    ("kearns2003", "kearns-bw-3", bandwidth(1.02), 0.01, True),
    ("kearns2003", "kearns-bw-3", bandwidth(1.05, 0.998, one_size), 0.01, False),
    ("kearns2003", "kearns-hpl-3", {"hpl": {"gflops": lam(1.01)}}, 0.01, True),
    ("kearns2003", "kearns-hpl-3",
     {"hpl": {"gflops": lam(1.03, 0.998, lambda row: row["procs"] in (8, 16))}}, 0.01, False),
    ("kearns2003", "kearns-hpl-4", hpl(1.02, 0.99), 0.02, True),
    ("kearns2003", "kearns-hpl-4", hpl(1.5, 1.02), 0.03, False),
    ("kearns2003", "kearns-hpl-4", hpl(0.998, 0.5), 0.03, False),
    ("kearns2003", "kearns-hpl-6", speedup(0.98, 0.98), 0.02, True),
    ("kearns2003", "kearns-hpl-6", speedup(0.8, 1.002), 0.01, False),
    ("kearns2003", "kearns-su3-4", su3_ratio(1.08, 1.08), 0.03, True),
    ("kearns2003", "kearns-su3-4", su3_ratio(1.0, 1.102), 0.02, False),
    ("kearns2003", "kearns-su3-5", su3(0.5, 0.98), 0.03, False),
    ("kearns2003", "kearns-su3-5", su3(0.98, 2.0), 0.03, True),
    ("kearns2003", "kearns-su3-7", su3_cpu(1.01, 1.01, few=False), 0.03, True),
    ("kearns2003", "kearns-su3-7", su3_cpu(1.01, 1.01, few=True), 0.03, False),
    ("ntnu2008", "ntnu-pp-3", slowest("MPICH", ["min_us"], 1.01, 1.01), 0.02, True),
    ("ntnu2008", "ntnu-pp-3", slowest("MPICH", ["min_us"], 1.1, 0.998), 0.01, False),
    ("ntnu2008", "ntnu-pp-4", slowest("MVAPICH", ["avg_us"], 0.99, 0.99), 0.02, True),
    ("ntnu2008", "ntnu-pp-4", slowest("MVAPICH", ["avg_us"], 0.9, 1.002), 0.01, False),
    ("ntnu2008", "ntnu-a2a-3", all_to_all(0.995, 0.995), 0.02, True),
    ("ntnu2008", "ntnu-a2a-3", all_to_all(1.002, 0.8), 0.01, False),
    ("ntnu2008", "ntnu-a2a-4", all_to_all(0.995, 0.995), 0.02, True),
    ("ntnu2008", "ntnu-a2a-4", all_to_all(0.8, 1.002), 0.01, False),
    ("nas2003", "nas-latency-2", overhead(4.9, 4.9), 0.03, True),
    ("nas2003", "nas-latency-2", overhead(4.0, 5.01), 0.01, False),
    ("nas2003", "nas-sts-2", passes(9.8, 9.8), 0.03, True),
    ("nas2003", "nas-sts-2", passes(8.0, 10.02), 0.01, False),
    ("nas2003", "nas-lbw-1", beyond_peak(0.998), 0.01, True),
    ("nas2003", "nas-lbw-1", beyond_peak(1.002), 0.01, False),
    ("iit", "iit-results-4", strided(0.998), 0.01, True),
    ("iit", "iit-results-4", strided(1.002), 0.01, False),
    ("iit", "iit-results-5", bisection(1.04, 1.05), 0.02, True),
    ("iit", "iit-results-5", bisection(1.06, 2.0), 0.005, False),
    ("iit", "iit-results-5", bisection(1.0, 0.999), 0.01, False),
]  # fmt: skip

# The same with a clear truth, in which the right verdict has to be found.
CLEAR: list[tuple[str, str, Truths, float, bool]] = [
    ("kearns2003", "kearns-bw-1", bandwidth(1.1), 0.01, True),
    ("kearns2003", "kearns-bw-1", bandwidth(1.1, 0.8, one_range), 0.01, False),
    ("kearns2003", "kearns-bw-2", bandwidth(1.1), 0.01, True),
    ("kearns2003", "kearns-bw-2", bandwidth(1.1, 0.8, one_size), 0.01, False),
    ("kearns2003", "kearns-bw-3", bandwidth(1.1), 0.01, True),
    ("kearns2003", "kearns-bw-3", bandwidth(1.1, 0.8, one_size), 0.01, False),
    ("kearns2003", "kearns-hpl-3", {"hpl": {"gflops": lam(1.1)}}, 0.01, True),
    ("kearns2003", "kearns-hpl-3",
     {"hpl": {"gflops": lam(1.1, 0.8, lambda row: row["procs"] in (8, 16))}}, 0.01, False),
    ("kearns2003", "kearns-hpl-4", hpl(1.5, 0.8), 0.01, True),
    ("kearns2003", "kearns-hpl-4", hpl(1.5, 1.3), 0.01, False),
    ("kearns2003", "kearns-hpl-4", hpl(0.8, 0.8), 0.01, False),
    ("kearns2003", "kearns-hpl-6", speedup(0.8, 0.8), 0.01, True),
    ("kearns2003", "kearns-hpl-6", speedup(0.8, 1.2), 0.01, False),
    ("kearns2003", "kearns-su3-4", su3_ratio(1.02, 1.02), 0.01, True),
    ("kearns2003", "kearns-su3-4", su3_ratio(1.02, 1.4), 0.01, False),
    ("kearns2003", "kearns-su3-5", su3(0.6, 1.3), 0.01, True),
    ("kearns2003", "kearns-su3-5", su3(0.6, 0.6), 0.01, False),
    ("kearns2003", "kearns-su3-7", su3_cpu(1.2, 1.2, few=False), 0.01, True),
    ("kearns2003", "kearns-su3-7", su3_cpu(1.2, 1.2, few=True), 0.01, False),
    ("ntnu2008", "ntnu-pp-3", slowest("MPICH", ["min_us"], 1.5, 1.5), 0.02, True),
    ("ntnu2008", "ntnu-pp-3", slowest("MPICH", ["min_us"], 1.5, 0.8), 0.02, False),
    ("ntnu2008", "ntnu-pp-4", slowest("MVAPICH", ["avg_us"], 0.7, 0.7), 0.02, True),
    ("ntnu2008", "ntnu-pp-4", slowest("MVAPICH", ["avg_us"], 0.7, 1.3), 0.02, False),
    ("ntnu2008", "ntnu-a2a-3", all_to_all(0.8, 0.8), 0.02, True),
    ("ntnu2008", "ntnu-a2a-3", all_to_all(1.2, 0.8), 0.02, False),
    ("ntnu2008", "ntnu-a2a-4", all_to_all(0.8, 0.8), 0.02, True),
    ("ntnu2008", "ntnu-a2a-4", all_to_all(0.8, 1.2), 0.02, False),
    ("nas2003", "nas-latency-2", overhead(4.0, 4.0), 0.02, True),
    ("nas2003", "nas-latency-2", overhead(4.0, 8.0), 0.02, False),
    ("nas2003", "nas-sts-2", passes(8.0, 8.0), 0.02, True),
    ("nas2003", "nas-sts-2", passes(8.0, 14.0), 0.02, False),
    ("nas2003", "nas-lbw-1", beyond_peak(0.7), 0.02, True),
    ("nas2003", "nas-lbw-1", beyond_peak(1.2), 0.02, False),
    ("iit", "iit-results-4", strided(0.9), 0.02, True),
    ("iit", "iit-results-4", strided(1.2), 0.02, False),
    ("iit", "iit-results-5", bisection(1.0, 1.2), 0.01, True),
    ("iit", "iit-results-5", bisection(1.3, 2.0), 0.01, False),
    ("iit", "iit-results-5", bisection(1.0, 0.8), 0.01, False),
]  # fmt: skip


@cache
def known_paper(name: str) -> Paper:
    """Return a paper, which many cases are of."""
    return read_paper(PROJECT, name)


def verdicts_of(
    case: tuple[str, str, Truths, float, bool], monkeypatch: pytest.MonkeyPatch, trials: int
) -> list[str]:
    """Return a claim's verdict in each of many campaigns that have a truth with noise."""
    name, claim_id, truths, noise, _ = case
    paper = known_paper(name)
    claim = next(one for one in paper.claims if one.id == claim_id)
    assert isinstance(claim.here, list)
    report = Report(paper)
    cells = {table: cells_only(report, table) for table in truths}
    exact = {
        (table, column): numpy.array([truth(row) for row in cells[table].iter_rows(named=True)])
        for table, columns in truths.items()
        for column, truth in columns.items()
    }
    random = numpy.random.default_rng(11)
    by_round: dict[int, dict[str, pl.DataFrame]] = {}
    monkeypatch.setattr(OneRound, "base", lambda one, key, _: by_round[one.number][key])
    rounds = list(range(1, ROUNDS + 1))
    monkeypatch.setattr("analysis.studies.verdicts.complete_rounds", lambda *_: rounds)
    monkeypatch.setattr("analysis.studies.verdicts.families_lacking", lambda *_: [])
    measured = TodaysTables(paper, Campaign(Path("none"), Manifest.model_construct()))
    found = []
    for _ in range(trials):
        # Each trial measures other rounds; of a campaign without a launch the rest stays the same.
        measured.rounds.clear()
        for number in rounds:
            frames = dict(cells)
            for (table, column), truth in exact.items():
                noisy = truth * numpy.exp(noise * random.standard_normal(len(truth)))
                frames[table] = frames[table].with_columns(pl.Series(column, noisy))
            by_round[number] = frames
        findings = [
            one_here(measured, claim, statement, among=len(claim.here)) for statement in claim.here
        ]
        found.append(together(findings).verdict)
    return found


#: By whether a claim is true: the verdicts that say otherwise.
AGAINST = {True: (FAILS, IN_PART), False: (HOLDS,)}


def named(case: tuple[str, str, Truths, float, bool]) -> str:
    return f"{case[1]}-{case[4]}"


@pytest.mark.parametrize("case", CLOSE, ids=named)
def test_noise_alone_seldom_tells_against_the_truth(
    case: tuple[str, str, Truths, float, bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = verdicts_of(case, monkeypatch, TRIALS)
    assert sum(one in AGAINST[case[4]] for one in found) <= MOST_WRONG


@pytest.mark.parametrize("case", CLEAR, ids=named)
def test_a_clear_truth_is_told(
    case: tuple[str, str, Truths, float, bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = verdicts_of(case, monkeypatch, FEW_TRIALS)
    assert sum(one in AGAINST[not case[4]] for one in found) >= FEW_TRIALS - 2


def test_a_table_is_derived_once_in_a_round_for_all_statements_of_a_claim(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    derived: list[tuple[int, str]] = []
    after = relations.after

    def counted(
        source: relations.TableSource, frame: pl.DataFrame, steps: list[Step], where: str
    ) -> pl.DataFrame:
        if where.startswith("study.yaml: tables."):
            assert isinstance(source, OneRound)
            derived.append((source.number, where))
        return after(source, frame, steps, where)

    monkeypatch.setattr(relations, "after", counted)
    [case, _] = [one for one in CLOSE if one[1] == "ntnu-a2a-4"]
    verdicts_of(case, monkeypatch, 1)
    assert sorted(derived) == sorted(set(derived))
    assert {number for number, _ in derived} == set(range(1, ROUNDS + 1))


def claim_of(cells: object, parts: int = 1) -> Claim:
    ratios = [f"r{number}" for number in range(parts)]
    quantity = {"of": "t", "each": ["n"], "value": ratios if parts > 1 else "r0", "scale": "ratio"}
    statement = {"that": "ratio", "cells": cells, "above": 1}
    return Claim.model_validate({
        "id": "x", "kind": "claim", "source": "x", "claim": "x", "status": "reproduced",
        "quantities": {"ratio": quantity}, "report": [statement], "here": [statement],
    })  # fmt: skip


def rounds_of(*cells: tuple[float, ...]) -> list[dict[str, tuple[float, ...]]]:
    """Return rounds with a thousandth of noise."""
    return [
        {f"n {number}": tuple(value * (1 + 0.001 * (-1) ** at) for value in cell)
         for number, cell in enumerate(cells)}
        for at in range(ROUNDS)
    ]  # fmt: skip


UP, DOWN, EDGE = (1.1,), (0.9,), (1.0001,)


@pytest.mark.parametrize(("cells", "numbers", "verdict"), [
    ("every", [UP, UP, UP, UP], HOLDS),
    ("every", [UP, UP, UP, DOWN], FAILS),
    ("every", [UP, UP, UP, EDGE], UNTOLD),
    ("some", [DOWN, DOWN, DOWN, UP], HOLDS),
    ("some", [DOWN, DOWN, DOWN, DOWN], FAILS),
    ("some", [DOWN, DOWN, DOWN, EDGE], UNTOLD),
    (0.75, [UP, UP, UP, DOWN], HOLDS),
    (0.75, [UP, UP, DOWN, DOWN], FAILS),
    (0.75, [UP, UP, EDGE, DOWN], UNTOLD),
    (0.7, [UP, UP, DOWN, EDGE], UNTOLD),
])  # fmt: skip
def test_how_many_cells_decide(
    cells: object, numbers: list[tuple[float, ...]], verdict: str
) -> None:
    claim = claim_of(cells)
    assert found_in_cells(claim, claim.report[0], rounds_of(*numbers)).verdict == verdict


@pytest.mark.parametrize(("numbers", "verdict"), [
    ([(1.1, 1.1), (1.2, 1.1)], HOLDS),
    ([(1.1, 1.1), (1.2, 0.9)], FAILS),
    ([(1.1, 1.1), (1.2, 1.0001)], UNTOLD),
])  # fmt: skip
def test_a_cell_of_several_numbers_is_so_if_all_are(
    numbers: list[tuple[float, ...]], verdict: str
) -> None:
    claim = claim_of("every", parts=2)
    assert found_in_cells(claim, claim.report[0], rounds_of(*numbers)).verdict == verdict


@pytest.mark.parametrize(
    ("cells", "one", "others", "verdict"),
    [("every", (0.9985,), UP, FAILS), ("some", (1.0015,), DOWN, HOLDS)],
)
def test_one_cell_of_many_decides_only_beyond_chance(
    cells: str, one: tuple[float, ...], others: tuple[float, ...], verdict: str
) -> None:
    """What the 95% interval of a cell by itself tells, it no longer tells as one of fifty."""
    claim = claim_of(cells)
    alone = found_in_cells(claim, claim.report[0], rounds_of(one))
    assert alone.verdict == verdict
    many = found_in_cells(claim, claim.report[0], rounds_of(one, *49 * [others]))
    assert many.verdict == UNTOLD
    assert "49 " in many.sentence and "1 inconclusive (6 rounds)" in many.sentence
    assert ("n 0: " in many.sentence and "99.9% interval" in many.sentence) or cells == "some"


def test_one_of_several_statements_about_cells_is_stricter() -> None:
    claim = claim_of("every")
    assert found_in_cells(claim, claim.report[0], rounds_of((0.9985,))).verdict == FAILS
    among = found_in_cells(claim, claim.report[0], rounds_of((0.9985,)), among=20)
    assert among.verdict == UNTOLD


def test_one_round_tells_nothing_of_cells() -> None:
    claim = claim_of("every")
    found = found_in_cells(claim, claim.report[0], rounds_of(DOWN, UP)[:1])
    assert found.verdict == UNTOLD and "one round has no interval" in found.sentence
