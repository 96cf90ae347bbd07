"""The machine that a report shows is the one that measured, not the one it was started on."""

import json
from pathlib import Path

import pytest

from analysis.comparison.caveats.comparability import in_words, shown
from analysis.report.report import write_report
from analysis.studies.page import write_pages
from tests.analysis.support.study_samples import demo, measured
from tests.analysis.support.synthetic import TWICE, Synthetic


def nodes_of(folder: Path, *texts: str) -> None:
    (folder / "nodes").mkdir()
    for number, text in enumerate(texts):
        (folder / "nodes" / f"node{number}.json").write_text(text)


def node(model: str, kernel: str) -> str:
    return json.dumps({"hostname": "inside", "cpu_model": model, "kernel": kernel, "cores": 64})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Synthetic(tmp_path / "c", TWICE, rounds=2, pairs=["Send/Recv"]).write()


def test_report_shows_the_nodes(folder: Path) -> None:
    nodes_of(folder, node("a measuring CPU", "6.1"), node("a measuring CPU", "6.2"))
    page = write_report(folder, None, None).read_text()
    assert "a measuring CPU" in page and "6.1, 6.2" in page
    assert "a synthetic CPU" not in page


def test_objects_that_differ_are_words(folder: Path) -> None:
    def with_network(speed: str | None) -> str:
        network = {"eth0": {"state": "up", "speed_mbit_per_s": speed}}
        return json.dumps({**json.loads(node("a CPU", "6.1")), "network": network})

    nodes_of(folder, with_network("10000"), with_network("1000"), with_network(None))
    page = write_report(folder, None, None).read_text()
    assert (
        "eth0 (state up, speed mbit per s 1000); eth0 (state up, speed mbit per s 10000); "
        "eth0 (state up, speed mbit per s not known)"
    ) in page
    one, other = json.loads(with_network("1000"))["network"], "eth0 (state up, ...)"
    for said in (in_words(one, other), in_words(other, one), shown(one)):
        assert "{" not in said and "eth0 (state" in said


def test_report_says_that_a_node_cannot_be_read(folder: Path) -> None:
    nodes_of(folder, "{")
    page = write_report(folder, None, None).read_text()
    assert "a synthetic CPU" in page
    assert "node0.json cannot be read" in page and "the one that started the campaign" in page


def test_study_shows_the_nodes(tmp_path: Path) -> None:
    found = measured(demo(tmp_path), tmp_path, 1.5)
    nodes_of(found.campaign.path, node("a measuring CPU", "6.1"))
    html = tmp_path / "study.html"
    write_pages(found.paper, found, [], {html: "study.html"})
    assert "a measuring CPU" in html.read_text() and "a synthetic CPU" not in html.read_text()
