"""Which node and which link is slow: in made-up clusters whose truth is known, and in reports."""

import json
import math
from collections.abc import Mapping
from itertools import combinations
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from analysis.__main__ import app
from analysis.models.nodes.pairs import (
    Measure,
    PairTimes,
    in_order,
    judge,
    node_pairs_in,
    switches_of,
)
from analysis.models.nodes.tables import rates_by_node, tables_of_nodes
from analysis.report.drawings.pair_map import pair_maps
from records.base import RecordError
from records.campaign import read_campaign
from records.program_output import program_output
from tests.analysis.support.synthetic import Synthetic, Truth

Fault = Literal["", "node", "link", "busy", "two nodes"]
#: What a fault is of.
NODE, LINK, BOTH = 1, (1, 3), (1, 3)
#: 20% less bandwidth.
SLOWER = math.log(1 / 0.8)
SWEEPS = 8


def made_up(
    nodes: int, seed: int, fault: Fault, noise: float = 0.02, disturbed: float = 0.03
) -> dict[Measure, PairTimes]:
    """Return times of a cluster: noise that only adds, some of all disturbed, nodes differ."""
    drawn = np.random.default_rng(seed)
    times: dict[Measure, PairTimes] = {}
    base: dict[Measure, float] = {"latency": 2e-5, "bandwidth": 0.04}
    for measure, typical in base.items():
        of_node = drawn.normal(0, 0.003, nodes)
        seconds = {}
        for a, b in combinations(range(nodes), 2):
            common = drawn.normal(0, 0.005) + of_node[a] + of_node[b]
            if measure == "bandwidth" and (
                (fault == "node" and NODE in (a, b)) or (fault == "link" and (a, b) == LINK)
            ):
                common += SLOWER
            if measure == "bandwidth" and fault == "two nodes":
                common += SLOWER * len({*BOTH} & {a, b})
            for way in ((a, b), (b, a)):
                logs = common + noise * np.abs(drawn.standard_t(3, SWEEPS))
                logs += (drawn.random(SWEEPS) < disturbed) * drawn.exponential(0.5, SWEEPS)
                if fault == "busy" and NODE in (a, b):
                    logs += (drawn.random(SWEEPS) < 0.6) * drawn.exponential(0.6, SWEEPS)
                seconds[way] = list(typical * np.exp(logs))
        times[measure] = PairTimes(seconds, seconds, 8)
    return times


def named(nodes: int, seed: int, fault: Fault, **noise: float) -> list[tuple[str, ...]]:
    names = [str(number) for number in range(nodes)]
    both = judge(names, [""] * nodes, made_up(nodes, seed, fault, **noise))
    return [one.names for of in both for one in of if one.verdict in ("slow", "unstable")]


#: By size: few trials of what is large, so that all are done in seconds.
TRIALS = {4: 60, 5: 40, 8: 40, 16: 20, 64: 2}


@pytest.mark.parametrize("nodes", TRIALS)
def test_the_fault_is_named_in_19_of_20_and_nothing_else(nodes: int) -> None:
    trials = TRIALS[nodes]
    faults: dict[Fault, tuple[str, ...]] = {"node": ("1",), "busy": ("1",), "link": ("1", "3")}
    for fault, whose in faults.items():
        found = [named(nodes, seed, fault) for seed in range(trials)]
        assert sum(whose in one for one in found) >= math.floor(0.95 * trials), fault
        others = sum(any(name != whose for name in one) for one in found)
        assert others <= trials // 20, fault


#: Of a quiet cluster; of a noisy one; of one whose machines others use, too.
NOISES = [(0.02, 0.03), (0.05, 0.1), (0.02, 0.2)]


@pytest.mark.parametrize(("noise", "disturbed"), NOISES)
@pytest.mark.parametrize("nodes", TRIALS)
def test_where_nothing_is_wrong_at_most_1_of_20_names_anything(
    nodes: int, noise: float, disturbed: float
) -> None:
    trials = TRIALS[nodes]
    found = [named(nodes, seed, "", noise=noise, disturbed=disturbed) for seed in range(trials)]
    assert sum(map(bool, found)) <= trials // 20


@pytest.mark.parametrize("nodes", [4, 5, 8])
def test_two_slow_nodes_are_named_or_nothing_but_not_the_link_between_them(nodes: int) -> None:
    found = [named(nodes, seed, "two nodes") for seed in range(40)]
    assert sum({("1",), ("3",)} == {*one} for one in found) >= 24
    assert sum(bool({*one} - {("1",), ("3",)}) for one in found) <= 2


@pytest.mark.parametrize("nodes", [2, 3])
def test_of_two_or_three_nodes_nobody_can_say_which_it_is(nodes: int) -> None:
    for fault in ("node", "busy"):
        assert not any(named(nodes, seed, fault) for seed in range(20)), fault


def test_a_core_that_is_taken_in_some_transfers_of_all_sweeps_is_slow() -> None:
    """Each sweep's mean tells, and none of its medians."""
    found = []
    for seed in range(20):
        times = made_up(4, seed, "", disturbed=0.0)
        bandwidth = times["bandwidth"]
        drawn = np.random.default_rng(seed)
        means = {
            way: [one * (1 + (NODE in way) * drawn.uniform(0.2, 0.24)) for one in seconds]
            for way, seconds in bandwidth.seconds.items()
        }
        times["bandwidth"] = PairTimes(bandwidth.seconds, means, 8)
        of_nodes, of_links = judge([*"0123"], [""] * 4, times)
        found.append([one.name for one in of_nodes + of_links if one.verdict == "slow"])
    assert found.count(["1"]) >= 19


def test_links_are_unstable_by_others_under_as_many_switches() -> None:
    """Pairs under one switch are disturbed now and then, as where they share a core."""
    drawn = np.random.default_rng(3)
    times: dict[Measure, PairTimes] = {}
    for measure in ("latency", "bandwidth"):
        seconds = {}
        for a, b in combinations(range(4), 2):
            disturbed = drawn.permutation([0.0] * 8 + [0.2 * (a % 2 == b % 2)] * 8)
            for way in ((a, b), (b, a)):
                seconds[way] = list(np.exp(disturbed + 0.005 * drawn.random(16)))
        times[measure] = PairTimes(seconds, seconds, 8)
    named_by = []
    for switches in (["a", "b", "a", "b"], [""] * 4):
        of_nodes, of_links = judge([*"0123"], switches, times)
        named_by.append([one.name for one in of_nodes + of_links if one.verdict == "unstable"])
    assert named_by[0] == [] and named_by[1]


def test_thousands_of_nodes_of_which_each_met_a_few() -> None:
    nodes, drawn = 3000, np.random.default_rng(5)
    times: dict[Measure, PairTimes] = {}
    for measure in ("latency", "bandwidth"):
        seconds = {}
        for a, b in {(a, (a + step) % nodes) for a in range(nodes) for step in (1, 7, 100)}:
            slow = SLOWER * (measure == "bandwidth" and 42 in (a, b))
            for way in ((a, b), (b, a)):
                logs = slow + 0.02 * np.abs(drawn.standard_normal(SWEEPS))
                seconds[way] = list(np.exp(logs))
        times[measure] = PairTimes(seconds, seconds, 8)
    names = [str(number) for number in range(nodes)]
    of_nodes, of_links = judge(names, [""] * nodes, times)
    assert [one.name for one in of_nodes + of_links if one.verdict in ("slow", "unstable")] == [
        "42"
    ]


def test_what_is_not_slow_is_fine_where_it_is_known_well_enough() -> None:
    names = [str(number) for number in range(8)]
    of_nodes, _ = judge(names, [""] * 8, made_up(8, 1, ""))
    assert {one.verdict for one in of_nodes} == {"fine"}
    of_two, of_link = judge(names[:2], [""] * 2, made_up(2, 1, ""))
    assert {one.verdict for one in of_two + of_link} == {"not determined"}


def test_nodes_in_the_order_of_switches_and_numbers() -> None:
    topology = {"far": ["^n1[01]$"], "near": ["^n[0-9]$"]}
    assert in_order(["n10", "n2", "x", "n1", "n11"], topology) == ["n10", "n11", "n1", "n2", "x"]
    assert in_order(["n10", "n2", "n1"], {}) == ["n1", "n2", "n10"]
    assert in_order(["n007b", "n7a", "n" + "9" * 9000, "n8"], {})[2:] == ["n8", "n" + "9" * 9000]


@pytest.mark.parametrize("pattern", [r"^(\S+)+!$", "(", "a{1,9999999999}"])
def test_patterns_of_others_that_never_end_or_are_none_name_no_switch(pattern: str) -> None:
    nodes = ["n" * 60, "n1"]
    assert switches_of(nodes, {"near": ["n1"], "far": [pattern]}, most_s=0.2) == {
        nodes[0]: "", "n1": "",
    }  # fmt: skip
    assert switches_of(nodes, {"near": ["n1"]}, most_s=0.2) == {nodes[0]: "", "n1": "near"}


def header(program: str, hosts: list[str]) -> dict[str, Any]:
    return {
        "record": "header", "format": "wyeast-records-1", "program": program,
        "program_version": "1.0.0", "library": "one", "mpi_standard": "4.1", "ranks": len(hosts),
        "hosts": hosts, "processors": [[0]] * len(hosts), "clock": "CLOCK_MONOTONIC",
        "clock_tick_s": 1e-9, "clock_resolution_s": 2e-8, "started_utc": "2026", "parameters": {},
    }  # fmt: skip


def text_of(records: list[dict[str, Any]]) -> str:
    end = {"record": "end", "results": len(records) - 1}
    return "".join(json.dumps(record) + "\n" for record in [*records, end])


def output_of(times: Mapping[Measure, PairTimes], hosts: list[str], at_once: int) -> str:
    """Return the output of a program that measured times; of four nodes."""
    records = [header("node_pairs", hosts)]
    for sweep in range(SWEEPS):
        for number, pairs in enumerate(([(0, 1), (2, 3)], [(0, 2), (1, 3)], [(0, 3), (1, 2)])):
            ways = [way for a, b in pairs for way in ((a, b), (b, a))]
            for measure, one in times.items():
                seconds = [one.seconds[way][sweep] for way in ways]
                records.append({
                    "record": "result", "operation": "node_pairs", "measure": measure,
                    "sweep": sweep, "round": number, "rounds": 3, "at_once": at_once,
                    "message_bytes": 8, "messages": 1, "iterations": 1,
                    "from": [a for a, _ in ways], "to": [b for _, b in ways], "median_s": seconds,
                    "min_s": seconds, "max_s": seconds, "moved_bytes": 32, "verified_bytes": 32,
                })  # fmt: skip
    return text_of(records)


def dgemm_of(hosts: list[str], seconds: list[float]) -> str:
    summary = dict.fromkeys(("min", "quartile1", "median", "mean", "quartile3", "max"),
                            max(seconds))  # fmt: skip
    result = {
        "record": "result", "operation": "dgemm", "n": 100, "flop": 2_000_000,
        "checked_entries": 1, "error": 0.1, "ranks": len(hosts), "iterations": 1, "warmup": 1,
        "time_s": summary, "median_by_rank_s": seconds, "clock_hz_by_rank": [2e9] * len(hosts),
    }  # fmt: skip
    return text_of([header("dgemm", hosts), result])


def test_a_campaign_s_tables_report_and_command(tmp_path: Path) -> None:
    hosts = ["n3", "n1", "n2", "n4"]
    synthetic = Synthetic(
        tmp_path / "campaign", {"one": Truth(1e-6, 1e9, 1e9)}, rounds=0,
        facts={"site_data": {"topology": {"leaf": ["n[34]"], "spine": ["n[12]"]}}},
    )  # fmt: skip
    path = synthetic.write()
    more: dict[str, Any] = {"ranks": 4, "nodes": 4}
    for pairs, at_once in (("together", 2), ("alone", 1)):
        synthetic.launch(
            1, "one", "NodePairs", {"pairs": pairs, "ranks": 4},
            output_of(made_up(4, 2, "node"), hosts, at_once), program="node_pairs", **more,
        )  # fmt: skip
    two = [host for host in hosts for _ in range(2)]
    synthetic.launch(
        1, "one", "NodeRates", {"rate": "dgemm", "ranks": 8},
        dgemm_of(two, [0.001, 0.002, *[0.001] * 6]), program="dgemm", ranks=8, nodes=4,
    )  # fmt: skip
    campaign = read_campaign(path)
    assert campaign.problems == []
    assert rates_by_node(campaign)["n3"] == {"dgemm": 3e9, "clock": 2e9}
    found = node_pairs_in(campaign)
    assert [one.together for one in found] == [True, False]
    assert found[0].nodes == ("n3", "n4", "n1", "n2")
    # The rank of the node that is slow, whatever its place.
    assert [one.names for one in found[0].named] == [("n1",)]
    tables = tables_of_nodes(campaign, found)
    assert [len(table.rows) for table in tables] == [4, 6, 6]
    row = tables[0].rows[2]
    assert row.values[:2] == ("n1", "slow (bandwidth)")
    assert tables[0].value(row, "bandwidth_slower") == pytest.approx(0.25, abs=0.05)
    assert tables[0].value(row, "dgemm") == 4e9
    assert len(pair_maps(found)) == 4
    done = CliRunner().invoke(app, ["nodes", str(path), "--no-pager"])
    assert done.exit_code == 0 and "slow (bandwidth)" in done.output
    done = CliRunner().invoke(app, ["ingest", str(path)])
    assert done.exit_code == 0, done.output
    ways = pl.read_parquet(path / "tables" / "results.parquet").filter(operation="node_pairs")
    assert len(ways) == 2 * 2 * SWEEPS * 12
    done = CliRunner().invoke(app, ["report", str(path)])
    assert done.exit_code == 0, done.output
    page = (path / "report.html").read_text()
    assert "Nodes side by side" in page and "Bandwidth between nodes, pairs alone" in page


def test_a_campaign_of_one_node_has_nothing_to_compare(tmp_path: Path) -> None:
    path = Synthetic(tmp_path / "campaign", {"one": Truth(1e-6, 1e9, 1e9)}, rounds=1).write()
    done = CliRunner().invoke(app, ["nodes", str(path)])
    assert done.exit_code != 0 and "CHECKS='NodePairs|NodeRates'" in done.output


def test_a_sweep_in_which_nothing_was_measured_says_nothing_of_others() -> None:
    times = made_up(5, 3, "node")
    bandwidth = {
        way: [math.nan if sweep == 2 else one for sweep, one in enumerate(seconds)]
        for way, seconds in times["bandwidth"].seconds.items()
    }
    times["bandwidth"] = PairTimes(bandwidth, bandwidth, 8)
    of_nodes, of_links = judge([*"01234"], [""] * 5, times)
    assert [one.name for one in of_nodes + of_links if one.verdict == "slow"] == ["1"]


def test_of_nodes_of_one_name_no_pair_is_made(tmp_path: Path) -> None:
    """By a bundle that somebody has changed; a check refuses such a launch."""
    path = Synthetic(tmp_path / "campaign", {"one": Truth(1e-6, 1e9, 1e9)}, rounds=0)
    folder = path.write()
    hosts = ["n1", "n1", "<b>n2</b>", "n3"]
    text = output_of(made_up(4, 2, "node"), hosts, 2)
    more: dict[str, Any] = {"program": "node_pairs", "ranks": 4, "nodes": 3}
    path.launch(1, "one", "NodePairs", {"pairs": "together", "ranks": 4}, text, **more)
    path.launch(
        2, "one", "NodePairs", {"pairs": "together", "ranks": 4},
        output_of(made_up(4, 2, "node"), ["n1"] * 4, 2), **more,
    )  # fmt: skip
    campaign = read_campaign(folder)
    [found] = node_pairs_in(campaign)
    assert found.nodes == ("<b>n2</b>", "n1", "n3")
    assert {one.name for one in found.of_links} == {
        "n1 – n3", "<b>n2</b> – n1", "<b>n2</b> – n3"
    }  # fmt: skip
    done = CliRunner().invoke(app, ["report", str(folder)])
    assert done.exit_code == 0, done.output
    assert "<b>n2" not in (folder / "report.html").read_text()
    one_node = read_campaign(folder)
    one_node.launches[:] = [one for one in one_node.launches if one.record.round == 2]
    [found] = node_pairs_in(one_node)
    assert (found.times, found.of_links) == ({}, [])


def test_a_round_of_ranks_that_the_world_does_not_have_is_no_output() -> None:
    text = output_of(made_up(4, 2, "node"), ["n1", "n2", "n3", "n4"], 2)
    whole = text.replace('"to": [1, 0, 3, 2]', '"to": [1, 0, 7, 2]').replace(
        '"from": [0, 1, 2, 3]', '"from": [0, 1, 2, 7]'
    )
    assert whole != text
    with pytest.raises(RecordError, match="node_pairs: rank 7 of a world of 4 ranks"):
        program_output(whole, Path("output"))
