"""Campaigns with a known truth give the known answer, and what is broken is left out by name."""

import json
import math
import shutil
import subprocess
import sys
from pathlib import Path

import numpy
import polars
import pytest
from typer.main import get_command

from analysis.__main__ import app
from analysis.commands.groups import GROUPS
from analysis.comparison.answer import answer, tally
from analysis.comparison.compare import compare
from analysis.tables.parquet import write_tables
from records.base import CampaignError
from records.campaign import find_campaign, read_campaign
from records.manifest import read_manifest
from tests.analysis.support.in_process import analysis
from tests.analysis.support.synthetic import TWICE, Synthetic, Truth

PROJECT = Path(__file__).resolve().parents[2]


@pytest.fixture
def twice(tmp_path: Path) -> Path:
    """Return a campaign in which beta is twice as fast at messages and the same at Linpack."""
    return Synthetic(tmp_path / "20260101T000000Z-local-synthetic", TWICE, rounds=6).write()


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the same for tests that change nothing of it."""
    root = tmp_path_factory.mktemp("kept")
    return Synthetic(root / "20260101T000000Z-local-synthetic", TWICE, rounds=6).write()


def by_itself(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command as a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "analysis", *arguments],
        cwd=PROJECT, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_known_ratio_is_found(kept: Path) -> None:
    comparison = compare(read_campaign(kept))
    assert comparison.base == "alpha-1.0" and len(comparison.cells) == 26
    for cell in comparison.experiment("PointToPoint"):
        verdict = cell.verdicts["beta-2.0"]
        assert verdict.words == "faster" and verdict.ratio.pairs == 6
        assert verdict.ratio.interval is not None
        assert 1.9 < verdict.ratio.value < 2.1
        assert cell.ranked() == ["beta-2.0", "alpha-1.0"]
    for cell in comparison.experiment("Linpack"):
        assert not cell.verdicts["beta-2.0"].is_different


def test_base_turns_the_verdict_round(kept: Path) -> None:
    comparison = compare(read_campaign(kept), base="beta-2.0")
    words = {cell.verdicts["alpha-1.0"].words for cell in comparison.experiment("PointToPoint")}
    assert words == {"slower"}
    with pytest.raises(ValueError, match=r"gamma was not measured in .*; choose one of: alpha"):
        compare(read_campaign(kept), base="gamma")


def test_answer_in_words(kept: Path) -> None:
    comparison = compare(read_campaign(kept))
    sentences = answer(comparison)
    assert len(sentences) == 4
    for sentence, group in zip(sentences, ("Short", "Medium", "Long"), strict=False):
        assert sentence.startswith(
            f"{group} messages, all pairs: beta-2.0 is faster than alpha-1.0 by a factor of 2.0"
        ) or sentence.startswith(
            f"{group} messages, all pairs: beta-2.0 is faster than alpha-1.0 by a factor of 1.9"
        )
    assert sentences[3].startswith(
        "Linpack, all cells: beta-2.0: no difference from alpha-1.0 shown (ratio "
    )
    assert tally(comparison) == [
        "PointToPoint, cell by cell: beta-2.0 against alpha-1.0: faster in 24 of 24.",
        "Linpack, cell by cell: beta-2.0 against alpha-1.0: no difference shown in 2 of 2.",
    ]


def test_a_lost_launch_costs_its_own_check_a_round_and_no_other(twice: Path) -> None:
    [lost] = (twice / "launches").glob("round006_*=Send_Recv_message_range=short_beta*")
    shutil.rmtree(lost)
    groups = {group.name: group for group in compare(read_campaign(twice)).groups}
    short = groups["Short messages, all pairs"]
    ratio = short.verdicts["beta-2.0"].ratio
    assert ratio.pairs == 5 and ratio.counted == "5 to 6 paired rounds"
    rounds = [list(cell.log_ratios["beta-2.0"].values()) for cell in short.cells]
    assert sorted(map(len, rounds)) == [5] + 7 * [6]
    assert math.log(ratio.value) == pytest.approx(numpy.mean([numpy.mean(of) for of in rounds]))
    variances = [numpy.var(of, ddof=1) / len(of) / 64 for of in rounds]
    assert ratio.error == pytest.approx(math.sqrt(sum(variances)))
    assert ratio.freedom is not None and ratio.freedom > 10
    assert groups["Long messages, all pairs"].verdicts["beta-2.0"].ratio.pairs == 6


def test_one_round_cannot_tell(tmp_path: Path) -> None:
    campaign = Synthetic(tmp_path / "c", TWICE, rounds=1, pairs=["Send/Recv"]).write()
    verdicts = [cell.verdicts["beta-2.0"].words for cell in compare(read_campaign(campaign)).cells]
    assert set(verdicts) == {"inconclusive (1 paired round)"}


@pytest.mark.parametrize(
    ("rounds", "words", "sentence"),
    [(2, "inconclusive (2 paired rounds that agree to the last digit)", "inconclusive after 2"),
     (8, "faster", "is faster than alpha-1.0 by a factor of 1.05 (ratio 1.050, 8")],
)  # fmt: skip
def test_equal_logs_of_hpl_are_no_certainty(
    tmp_path: Path, rounds: int, words: str, sentence: str
) -> None:
    """HPL prints four digits: two rounds that agree in all of them say nothing of the spread."""
    truths = {"alpha-1.0": Truth(1e-6, 1e9, 20e9), "beta-2.0": Truth(1e-6, 1e9, 21e9)}
    synthetic = Synthetic(tmp_path / "c", truths, rounds=rounds, pairs=["Send/Recv"], noise=0.0)
    comparison = compare(read_campaign(synthetic.write()))
    logs = {path.read_text() for path in tmp_path.glob("c/launches/*Linpack_grid=1x1*/stdout")}
    assert len(logs) == 2, "each implementation's logs are equal"
    for cell in comparison.experiment("Linpack"):
        verdict = cell.verdicts["beta-2.0"]
        assert verdict.words == words and verdict.ratio.interval is None
        assert verdict.ratio.p_value == 2 * 0.5**rounds
    [said] = [one for one in answer(comparison) if one.startswith("Linpack")]
    assert f"{sentence} paired rounds that agree to the last digit" in said


def test_tables_have_declared_columns(twice: Path) -> None:
    campaign = read_campaign(twice)
    rows = write_tables(campaign)
    assert rows == {
        "launches": 312, "results": 792, "iterations": 768 * 11, "rank_iterations": 0,
        "problems": 0,
    }  # fmt: skip
    frame = polars.read_parquet(twice / "tables" / "iterations.parquet")
    assert frame.schema["time_s"] == polars.Float64 and frame["time_s"].min() > 0
    documented = (PROJECT / "docs/reference/tables.md").read_text()
    for table in rows:
        for column in polars.read_parquet_schema(twice / "tables" / f"{table}.parquet"):
            assert f"`{column}`" in documented, f"{table}.{column} is not documented"


def breakages(launches: Path) -> dict[str, str]:
    """Break launches in every way; return what must be said of each."""
    names = sorted(path.name for path in launches.iterdir() if "PointToPoint" in path.name)

    def change(name: str, key: str, value: object) -> None:
        path = launches / name / "launch.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {key: value}))

    (launches / names[0] / "stdout").write_text('{"record":"header"')
    (launches / names[1] / "launch.json").write_text('{"schema": "wyeast-')
    (launches / names[2] / "launch.json").unlink()
    change(names[3], "schema", "wyeast-launch-9")
    change(names[4], "image_sha256", "f" * 64)
    change(names[5], "outcome", "suspect")
    change(names[5], "sentence", "suspect: faster than light <script>alert(1)</script>")
    shutil.copytree(launches / names[6], launches / "round009_copy")
    (launches / names[7] / "stdout").unlink()
    (launches / ".round001_in_flight.99").mkdir()
    return {
        names[0]: "stdout:1: not a JSON object",
        names[1]: "launch.json:1: not a JSON object",
        names[2]: "cannot be read",
        names[3]: "this version reads 'wyeast-launch-1'",
        names[4]: "ran an image other than the one in the manifest",
        names[5]: "faster than light",
        "round009_copy": f"says that it is {names[6]}: copied or renamed",
        names[7]: "No such file",
    }


def test_what_is_broken_is_left_out_by_name(twice: Path) -> None:
    expected = breakages(twice / "launches")
    campaign = read_campaign(twice)
    said = {problem.where: problem.sentence for problem in campaign.problems}
    assert said.keys() == expected.keys()
    for name, sentence in expected.items():
        assert sentence in said[name]
    assert len(campaign.sound()) == 312 - 7
    done = analysis("table", str(twice))
    assert done.returncode == 0 and done.stderr.count("left out: ") == len(expected)
    assert "Errno" not in done.stderr


def test_commands(twice: Path) -> None:
    assert "312 launches" in by_itself("ingest", str(twice)).stdout
    shown = analysis("table", str(twice), "--experiment", "Linpack").stdout
    assert "no difference shown" in shown and "PointToPoint" not in shown
    assert "faster in 24 of 24" in analysis("compare", str(twice)).stdout
    made = analysis("report", str(twice), "-o", str(twice / "other.html"))
    assert made.returncode == 0 and (twice / "other.html").stat().st_size < 1_000_000


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["table", "no-such"], "no-such is not a campaign"),
        (["compare", "{}", "--base", "gamma"], "gamma was not measured"),
        (["table", "{}", "--experiment", "Nas"], "Nas was not measured"),
    ],
)
def test_mistakes_are_one_sentence(kept: Path, arguments: list[str], sentence: str) -> None:
    done = analysis(*(word.format(kept) for word in arguments))
    assert done.returncode == 1 and sentence in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_help_has_every_command_in_a_group_and_the_usual_ones_first() -> None:
    said = analysis("--help").stdout
    known = {name for group in GROUPS.values() for name in group}
    assert all(title in said for title in GROUPS)
    places = [said.index(f" {name} ") for name in GROUPS["The usual ones"]]
    assert places == sorted(places) and places[0] < said.index(" show ") < said.index(" nodes ")
    assert len(known) == sum(map(len, GROUPS.values()))
    assert known == set(get_command(app).commands)  # type: ignore[attr-defined]


def test_campaigns_by_day_and_site(tmp_path: Path) -> None:
    names = ("20260101T000000Z-local-a", "20260101T050000Z-big-cluster-b",
             "20260102T000000Z-local-c")  # fmt: skip
    for name, site in zip(names, ("local", "big-cluster", "local"), strict=True):
        facts = {"site": site}
        Synthetic(tmp_path / "runs" / name, TWICE, rounds=1, facts=facts).write()
    for asked, place in (("latest", 2), ("local", 2), ("big-cluster", 1), ("20260101", 1),
                         ("20260101T00", 0), (names[0], 0)):  # fmt: skip
        assert find_campaign(tmp_path, asked).name == names[place]
    for asked in ("loc", "big", "2026", "20260103", ""):
        with pytest.raises(CampaignError, match="is not a campaign"):
            find_campaign(tmp_path, asked)


def test_a_damaged_newest_campaign_hides_none_before_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new = (
        Synthetic(tmp_path / "runs" / f"2026010{day}T000000Z-local-a", TWICE, rounds=1).write()
        for day in (1, 2)
    )
    (new / "manifest.json").write_text('{"schema": "wyeast-campa')
    for asked in ("latest", "local"):
        assert find_campaign(tmp_path, asked) == old
        said = capsys.readouterr().err
        assert said.startswith("passed over: ") and str(new) in said and said.count("\n") == 1
    for asked in ("20260102", new.name):
        with pytest.raises(CampaignError, match=r"manifest\.json"):
            read_manifest(find_campaign(tmp_path, asked))
    assert find_campaign(tmp_path, "20260101") == old and capsys.readouterr().err == ""
    (old / "manifest.json").write_text("{}")
    with pytest.raises(CampaignError, match=f"{new.name}/manifest"):
        find_campaign(tmp_path, "latest")


def test_what_has_measured_nothing_is_found_by_its_name_alone(tmp_path: Path) -> None:
    """A launch in flight is none; a night whose launches were removed has its tables."""
    runs = tmp_path / "runs"
    empty = Synthetic(runs / "20260103T000000Z-local-c", TWICE, rounds=0).write()
    with pytest.raises(CampaignError, match="holds no campaign yet"):
        find_campaign(tmp_path, "latest")
    measured = Synthetic(runs / "20260101T000000Z-local-a", TWICE, rounds=1).write()
    (empty / "launches" / ".round001_x.7").mkdir(parents=True)
    (empty / "launches" / ".round001_x.7" / "launch.json").write_text("{}")
    assert find_campaign(tmp_path, "latest") == find_campaign(tmp_path, "local") == measured
    assert find_campaign(tmp_path, empty.name) == empty
    (empty / "tables").mkdir()
    assert find_campaign(tmp_path, "latest") == empty


def test_a_foreign_folder_is_not_a_campaign(tmp_path: Path) -> None:
    with pytest.raises(CampaignError, match="holds no campaign yet"):
        find_campaign(tmp_path, "latest")
    (tmp_path / "manifest.json").write_text('{"schema": "other"}')
    with pytest.raises(CampaignError, match="has the schema 'other'"):
        read_manifest(tmp_path)


def test_three_implementations_are_compared_with_the_base(tmp_path: Path) -> None:
    truths = {**TWICE, "gamma-3.0": Truth(2e-6, 2e9, 15e9)}
    campaign = Synthetic(tmp_path / "c", truths, rounds=6, pairs=["Send/Recv"]).write()
    comparison = compare(read_campaign(campaign))
    assert all(set(cell.verdicts) == {"beta-2.0", "gamma-3.0"} for cell in comparison.cells)
    assert {cell.verdicts["gamma-3.0"].words for cell in comparison.cells} == {"slower"}
