"""No single bad file costs more than its own launch, whatever is in it."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from analysis.comparison.answer import answer
from analysis.comparison.compare import compare
from analysis.report.all_tables import tables_of
from analysis.report.report import write_report
from records.base import CampaignError
from records.campaign import read_campaign
from records.manifest import read_manifest
from tests.analysis.support.synthetic import HPL, TWICE, Synthetic
from tests.reframe_checks.conftest import pingpong

DEEP = "[" * 100_000
NO_RATE = HPL.format(n=2000, q=1, time=1.0, gflops=0.0)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 10**30) | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=3,
)


def launch_of(folder: Path, experiment: str) -> Path:
    return min(
        path
        for path in (folder / "launches").iterdir()
        if json.loads((path / "launch.json").read_text())["experiment"] == experiment
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Synthetic(tmp_path / "c", TWICE, rounds=2, pairs=["Send/Recv"]).write()


@pytest.mark.parametrize(
    ("experiment", "file", "text", "sentence"),
    [
        ("Linpack", "launch.json", "[]", "launch.json:1: not a JSON object"),
        ("Linpack", "launch.json", "null", "launch.json:1: not a JSON object"),
        ("Linpack", "launch.json", DEEP, "launch.json: cannot be read"),
        ("PointToPoint", "stdout", DEEP, "stdout:1: nested too deep for a record"),
        ("PointToPoint", "stdout", pingpong(seconds=0.0), "stdout:2: time_s: the median is 0"),
        ("Linpack", "stdout", NO_RATE, "stdout:2: 0.000e+00 GFLOPS is not a valid rate"),
    ],
)
def test_a_bad_file_costs_its_launch(
    folder: Path, experiment: str, file: str, text: str, sentence: str
) -> None:
    bad = launch_of(folder, experiment)
    (bad / file).write_text(text)
    campaign = read_campaign(folder)
    [problem] = campaign.problems
    assert problem.where == bad.name and sentence in problem.sentence
    assert "\n" not in problem.sentence
    assert answer(compare(campaign)) and write_report(folder, None, None).is_file()


@pytest.mark.parametrize(
    ("experiment", "change", "sentence"),
    [
        ("PointToPoint", {"parameters": {"message_range": "long"}}, "lacks 'pair'"),
        ("PointToPoint", {"parameters": {"pair": "Bsend/Recv", "message_range": "long"}},
         "pair is 'Bsend/Recv'"),
        ("Linpack", {"parameters": {"grid": "1x1x1", "n": 5}}, "grid is '1x1x1'"),
        ("Linpack", {"parameters": {"grid": "1x1"}}, "lacks 'n'"),
        ("Linpack", {"experiment": "StartUp"}, "StartUp lacks 'cache'"),
        ("Linpack", {"wall_s": float("nan")}, "launch.json: cannot be read: NaN is not a number"),
    ],
)  # fmt: skip
def test_a_launch_that_no_table_can_place_is_left_out(
    folder: Path, experiment: str, change: dict[str, Any], sentence: str
) -> None:
    path = launch_of(folder, experiment) / "launch.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    campaign = read_campaign(folder)
    [problem] = campaign.problems
    assert sentence in problem.sentence and str(path) in problem.sentence
    assert compare(campaign).cells


def written(folder: Path, file: Path, text: str) -> None:
    """Analyse a campaign with a file of that text, put back afterwards."""
    before = file.read_text()
    file.write_text(text)
    try:
        campaign = read_campaign(folder)
        found = compare(campaign)
        answer(found)
        tables_of(found, Path(__file__).resolve().parents[3])
        assert all(problem.sentence for problem in campaign.problems)
        assert len(campaign.launches) >= 15
    finally:
        file.write_text(before)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("damaged") / "c"
    return Synthetic(root, TWICE, rounds=2, pairs=["Send/Recv", "Isend/Irecv"]).write()


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data(), experiment=st.sampled_from(["PointToPoint", "Linpack"]))
def test_any_value_of_a_launch_is_read_or_refused(
    shared: Path, data: st.DataObject, experiment: str
) -> None:
    file = launch_of(shared, experiment) / "launch.json"
    launch = json.loads(file.read_text())
    place = launch
    if data.draw(st.booleans()):
        place = launch["parameters"]
    place[data.draw(st.sampled_from(sorted(place)))] = data.draw(JSON)
    written(shared, file, json.dumps(launch))


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data(), experiment=st.sampled_from(["PointToPoint", "Linpack"]))
def test_any_damage_to_an_output_is_read_or_refused(
    shared: Path, data: st.DataObject, experiment: str
) -> None:
    file = launch_of(shared, experiment) / "stdout"
    lines = file.read_text().splitlines()
    number = data.draw(st.integers(0, len(lines) - 1))
    words = lines[number].split(" ")
    lines[number] = data.draw(
        st.sampled_from([" ".join("0" if word[:1].isdigit() else word for word in words)])
        | st.text(max_size=8)
        | st.integers(0, len(lines[number])).map(lambda cut: lines[number][:cut])
    )
    written(shared, file, "\n".join(lines))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"commands": None}, "lacks 'commands'"),
        ({"order_seed": "seven"}, "lacks 'order_seed'"),
        ({"inputs": []}, "lacks 'inputs'"),
        ({"machine": {}}, "'machine' lacks 'cpu_model'"),
        ({"site_data": {"topology": ["n1"]}}, "'site_data' has a 'topology' that is not lists"),
        ({"site_data": {"topology": {"leaf": "n1"}}}, "has a 'topology' that is not lists"),
        ({"site_data": {"scheduler": ["local"]}}, "has a 'scheduler' that is not a name"),
        ({"images": {"alpha-1.0": {}}}, "the entry 'alpha-1.0' of 'images' has no 'sha256'"),
    ],
)
def test_a_manifest_without_what_the_report_needs_is_refused(
    folder: Path, change: dict[str, Any], sentence: str
) -> None:
    path = folder / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(CampaignError, match=sentence):
        read_manifest(folder)
