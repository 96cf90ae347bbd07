"""ORNL's Figure 2.5 with a campaign's implementations among its machines."""

import csv
import re
from pathlib import Path

import numpy
import pytest

from analysis.report.drawings.latency_plane import latency_plane
from records.campaign import read_campaign
from tests.analysis.support.synthetic import TWICE, Synthetic

PROJECT = Path(__file__).resolve().parents[3]
SIZES = [0, 8, 100, 1000, 10_000, 100_000, 1_000_000]


@pytest.fixture
def campaign(tmp_path: Path) -> Synthetic:
    made = Synthetic(tmp_path / "campaign", TWICE, rounds=2, noise=0.0, pairs=[])
    made.write()
    return made


def test_without_an_echo_test_there_is_none(campaign: Synthetic) -> None:
    assert latency_plane(read_campaign(campaign.folder), list(TWICE), PROJECT) is None


def test_implementations_stand_among_the_machines(campaign: Synthetic) -> None:
    random = numpy.random.default_rng(1)
    for number in (1, 2):
        for name, truth in TWICE.items():
            text, _ = campaign.ping_pongs(random, name, truth, "Send/Recv", SIZES)
            campaign.launch(number, name, "EchoTest", {"ranks": 2}, text)
    plane = latency_plane(read_campaign(campaign.folder), list(TWICE), PROJECT)
    assert plane is not None
    assert [name for name, _ in plane.legend][:-1] == list(TWICE)
    points = dict(re.findall(r"<title>([^<:]*), ([^<:,]+: [\d.e+]+)</title>", str(plane.today)))
    with (PROJECT / "literature/ornl1996/latency_bandwidth.csv").open() as file:
        machines = [row for row in csv.DictReader(file)
                    if row["latency_us"] and row["bandwidth_mbs"]]  # fmt: skip
    assert len(points) == len(machines) + len(TWICE)
    # What has a name where it is pointed at stands in the table too.
    shown = [plane.points.words(row) for row in plane.points.rows]
    assert {row[0] for row in shown} == set(points)
    assert ("IBM SP-2 MPI", "35", "35", "–") in shown
    records = [plane.points.record(row) for row in plane.points.rows]
    assert plane.points.heads[1:3] == ("latency (s)", "bandwidth (B/s)")
    assert ("IBM SP-2 MPI", 35e-6, 35e6, None, None) in records
    # Table 2.1: 35 µs, 35 MB/s.
    assert points["IBM SP-2 MPI"] == "35: 35"
    for name, truth in TWICE.items():
        latency, bandwidth = points[name].split(": ")
        in_us = float(latency.removesuffix(" m")) * (1e-3 if latency.endswith("m") else 1)
        assert in_us == pytest.approx(truth.latency * 1e6, rel=0.1)
        one_way_s = truth.latency + 1e6 / truth.bandwidth
        assert float(bandwidth) == pytest.approx(1 / one_way_s, rel=0.1)
