"""Medians for Prometheus and Bencher: every one, with its interval, and no text that runs on."""

import json
import re

import pytest

from analysis.comparison.compare import compare
from analysis.comparison.result import Comparison
from analysis.report.watchers import bencher, estimates, openmetrics
from records.campaign import read_campaign
from tests.analysis.support.synthetic import TWICE, Synthetic

SAMPLE = re.compile(r'(\w+)\{((?:\w+="(?:[^"\\\n]|\\.)*",?)+)\} (\S+)')


@pytest.fixture(scope="module")
def comparison(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    folder = Synthetic(tmp_path_factory.mktemp("watched") / "c", TWICE, rounds=3).write()
    return compare(read_campaign(folder), None)


def test_openmetrics(comparison: Comparison) -> None:
    lines = openmetrics(comparison).splitlines()
    assert lines[-1] == "# EOF"
    samples = [SAMPLE.fullmatch(line) for line in lines if not line.startswith("#")]
    assert all(samples)
    found = {(one[1], one[2]): float(one[3]) for one in samples if one}
    # No sample is there twice, and each family is declared once, before its samples.
    assert len(found) == len(samples)
    declared = [line.split()[2] for line in lines if line.startswith("# TYPE")]
    assert len(set(declared)) == len(declared) and {name for name, _ in found} == set(declared)
    medians = [value for (_, labels), value in found.items() if 'statistic="median"' in labels]
    assert sorted(medians) == sorted(one.median for *_, one in estimates(comparison))


def test_bencher(comparison: Comparison) -> None:
    found = json.loads(bencher(comparison))
    assert len(found) == sum(1 for _ in estimates(comparison))
    for measures in found.values():
        for name, value in measures.items():
            assert len(name) <= 64
            assert value["lower_value"] <= value["value"] <= value["upper_value"]
