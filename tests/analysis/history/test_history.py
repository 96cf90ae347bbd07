"""Campaigns in time: steps are found where they are, and what is broken costs a sentence."""

import json
import math
import os
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy
import polars
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from analysis.history import campaign_rows
from analysis.history.campaign_rows import KEPT, KEPT_EVERY, keep_rows, stamp_of, summarise
from analysis.history.index import FILE, history_rows
from analysis.history.series import against_history, history, predicted_ratio, what_changed
from analysis.simulation import history as history_performance
from inference.change_points import (
    SHORTEST,
    chance_of,
    change_points,
    least_chance,
    level_of_each,
    split_scores,
)
from records.campaign import Campaign, read_campaign
from records.files import aside_of
from tests.analysis.support.in_process import analysis
from tests.analysis.support.synthetic import Synthetic, Truth, timed_anew

DAYS = 14
STEP_AT = 8


def campaign(runs: Path, day: int, factor: float, rounds: int = 2, kernel: str = "6.1") -> Path:
    """Write a small campaign of a day; `factor` is how fast alpha is at everything."""
    created = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=day)
    synthetic = Synthetic(
        runs / f"{created:%Y%m%dT%H%M%SZ}-local-nightly",
        {"alpha-1.0": Truth(1e-6 / factor, 4e9 * factor, 30e9 * factor)},
        rounds=rounds, noise=0.01, seed=day, pairs=["Send/Recv"],
        created_utc=created.isoformat().replace("+00:00", "Z"),
        facts={"machine": {"kernel": kernel, "cpu_model": "one", "cores": 2}},
    )  # fmt: skip
    return synthetic.write()


@pytest.fixture(scope="module")
def nightly(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return campaigns of two weeks; a new kernel on the ninth day makes all slower."""
    runs = tmp_path_factory.mktemp("nightly") / "runs"
    for day in range(DAYS):
        campaign(runs, day, *((1.0, 2, "6.1") if day < STEP_AT else (1 / 1.1, 2, "6.2")))
    return runs


@pytest.fixture
def runs(nightly: Path, tmp_path: Path) -> Path:
    """Return a copy of them, to break."""
    ignored = shutil.ignore_patterns(FILE, Path(KEPT).parts[0])
    return Path(shutil.copytree(nightly, tmp_path / "runs", ignore=ignored))


def rows_of(runs: Path, rebuild: bool = False) -> tuple[polars.DataFrame, list[str]]:
    said: list[str] = []
    return history_rows(runs, said.append, rebuild), said


def test_step_is_found_with_what_else_changed(nightly: Path) -> None:
    rows, said = rows_of(nightly)
    assert said == [] and rows.height == DAYS * 5
    series = history(rows)
    assert len(series) == 5
    for one in series:
        [change] = one.changes
        assert change.place == STEP_AT and change.ratio == pytest.approx(1 / 1.1, rel=0.03)
        assert change.since == one.campaigns[STEP_AT]
        assert what_changed(nightly, change, "alpha-1.0") == ["kernel"]
    shown = analysis("history", "--runs", str(nightly), "--experiment", "Linpack").stdout
    assert "worse by" in shown and "changed: kernel" in shown and "PointToPoint" not in shown
    assert "2 of 2 series" in shown


def test_a_cell_that_another_clock_times_begins_a_new_series(runs: Path) -> None:
    """Eight days by MPI_Wtime and six by the clock since then are two series, without a change."""
    folders = sorted(path for path in runs.iterdir() if path.is_dir())
    for folder in folders[STEP_AT:]:
        timed_anew(folder)
    rows, said = rows_of(runs, rebuild=True)
    assert said == []
    series = history(rows)
    assert sorted((one.experiment, len(one.campaigns), len(one.changes)) for one in series) == [
        *[("Linpack", DAYS, 1)] * 2,
        *[("PointToPoint", DAYS - STEP_AT, 0)] * 3, *[("PointToPoint", STEP_AT, 0)] * 3,
    ]  # fmt: skip
    last = against_history(read_campaign(folders[STEP_AT]), rows)
    assert {row.verdict.ratio.pairs for row in last if row.experiment == "PointToPoint"} == {0}


def test_rows_kept_without_a_clock_are_of_mpi_wtime(runs: Path) -> None:
    """Retention left nothing else of an older campaign; its series are those of its time."""
    rows, _ = rows_of(runs)
    folder = sorted(path for path in runs.iterdir() if path.is_dir())[0]
    kept = polars.read_parquet(folder / KEPT)
    older = kept["stamp"].str.replace(r"^\d+", "3")
    kept.drop("clock").with_columns(older).write_parquet(folder / KEPT)
    shutil.rmtree(folder / "launches")
    manifest = json.loads((folder / "manifest.json").read_text())
    removed = {**manifest, "raw_removed_utc": "2026-03-01T00:00:00.000Z"}
    (folder / "manifest.json").write_text(json.dumps(removed))
    (runs / FILE).unlink()
    found, said = rows_of(runs)
    assert said == [] and found.equals(rows)


def test_index_is_used_brought_up_to_date_and_rebuilt(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, _ = rows_of(runs)
    read: list[str] = []

    def counted(folder: Path, *stamp: Any) -> Any:
        read.append(folder.name)
        return summarise(folder, *stamp)

    monkeypatch.setattr("analysis.history.index.summarise", counted)
    assert rows_of(runs)[0].equals(first) and read == []
    added = campaign(runs, DAYS, 1.0)
    gone = sorted(path for path in runs.iterdir() if path.is_dir())[0]
    shutil.rmtree(gone)
    lost = sorted(path for path in runs.iterdir() if path.is_dir())[3]
    shutil.rmtree(next((lost / "launches").iterdir()))
    rows, _ = rows_of(runs)
    assert sorted(read) == [lost.name, added.name]
    assert gone.name not in rows["folder"] and added.name in rows["folder"]
    read.clear()
    assert rows_of(runs, rebuild=True)[0].equals(rows) and len(read) == DAYS


def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list into which the names of campaigns go whose launches are read."""
    read: list[str] = []

    def read_and_count(path: Path) -> Campaign:
        read.append(path.name)
        return read_campaign(path)

    monkeypatch.setattr(campaign_rows, "read_campaign", read_and_count)
    return read


def test_nothing_is_written_into_a_campaign_that_is_not_finished(runs: Path) -> None:
    """It may be measuring: its list of launches, its tables and their owner are its own."""
    folder = sorted(runs.iterdir())[0]
    file = folder / "manifest.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"finished_utc": None}))
    before = sorted(path.relative_to(folder) for path in folder.rglob("*"))
    rows, _ = rows_of(runs)
    assert rows.filter(polars.col("folder") == folder.name).height == 5
    done = analysis("report", str(folder))
    assert done.returncode == 1 and f"make run RESUME={folder.name}" in done.stderr
    assert sorted(path.relative_to(folder) for path in folder.rglob("*")) == before
    done = analysis("report", str(folder), "--output", str(runs.parent / "report.html"))
    assert done.returncode == 0 and (runs.parent / "report.html").is_file(), done.stderr


def test_nothing_is_written_into_another_users_campaign(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs, *others = sorted(runs.iterdir())
    monkeypatch.setattr(
        "analysis.history.campaign_rows.belongs_to_us", lambda folder: folder.name != theirs.name
    )

    def files_of(folder: Path) -> list[Path]:
        return sorted(path.relative_to(folder) for path in folder.rglob("*"))

    before = {folder: files_of(folder) for folder in (theirs, *others)}
    rows_of(runs)
    assert files_of(theirs) == before[theirs]
    assert all(files_of(folder) != before[folder] for folder in others)


def test_without_an_index_rows_are_those_that_campaigns_ends_kept(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = sorted(path for path in runs.iterdir())
    for folder in folders:
        assert not (folder / KEPT).exists()
        done = analysis("ingest", str(folder))
        assert done.returncode == 0 and (folder / KEPT).is_file()
    read = counted(monkeypatch)
    rows, said = rows_of(runs)
    assert read == [] and said == [] and rows.height == DAYS * 5
    (runs / FILE).unlink()
    for folder in folders:
        (folder / KEPT).unlink()
    # What was not kept is read of launches, the same to the bit, and is kept then.
    assert rows_of(runs)[0].equals(rows) and len(read) == DAYS
    (runs / FILE).unlink()
    read.clear()
    assert rows_of(runs)[0].equals(rows) and read == []
    assert rows_of(runs, rebuild=True)[0].equals(rows) and len(read) == DAYS


def test_kept_rows_that_do_not_fit_are_not_taken(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, _ = rows_of(runs)
    folders = sorted(path for path in runs.iterdir() if path.is_dir())
    (runs / FILE).unlink()
    bad = folders[:6]
    content = (bad[0] / KEPT).read_bytes()
    (bad[0] / KEPT).write_bytes(content[: len(content) // 2])
    (bad[1] / KEPT).write_bytes(b"")
    polars.DataFrame({"stamp": ["2"]}).write_parquet(bad[2] / KEPT)
    # Another campaign's, as of a folder that was copied over; and one that was gone on with.
    shutil.copyfile(folders[9] / KEPT, bad[3] / KEPT)
    os.utime(bad[4] / "manifest.json")
    frame = polars.read_parquet(bad[5] / KEPT)
    other = frame["stamp"].str.replace(r"^\d+", "1")
    frame.with_columns(other, level=0.0).write_parquet(bad[5] / KEPT)
    # Another machine's, and what a night measured again, are in no history.
    (folders[6] / "imported.json").write_text("{}")
    manifest = json.loads((folders[7] / "manifest.json").read_text())
    again = {**manifest, "night": {"again_of": folders[8].name}}
    (folders[7] / "manifest.json").write_text(json.dumps(again))
    assert analysis("ingest", str(folders[7])).returncode == 0
    read = counted(monkeypatch)
    found, said = rows_of(runs)
    assert sorted(read) == [folder.name for folder in bad] and said == []
    expected = rows.filter(~polars.col("folder").is_in([folders[6].name, folders[7].name]))
    assert found.equals(expected)
    (runs / FILE).unlink()
    read.clear()
    assert rows_of(runs)[0].equals(found) and read == []


def test_what_retention_left_is_never_written_over(runs: Path) -> None:
    folder = sorted(path for path in runs.iterdir() if path.is_dir())[0]
    assert analysis("ingest", str(folder)).returncode == 0
    kept = {path.name: path.read_bytes() for path in (folder / "tables").iterdir()}
    assert len(kept) == 6
    shutil.rmtree(folder / "launches")
    manifest = json.loads((folder / "manifest.json").read_text())
    removed = {**manifest, "raw_removed_utc": "2026-03-01T00:00:00.000Z"}
    (folder / "manifest.json").write_text(json.dumps(removed))
    done = analysis("ingest", str(folder))
    assert done.returncode == 1 and "only its tables are left" in done.stderr
    keep_rows(read_campaign(folder), stamp_of(folder))
    assert {path.name: path.read_bytes() for path in (folder / "tables").iterdir()} == kept
    assert rows_of(runs, rebuild=True)[0].filter(folder=folder.name).height == 5


def test_history_of_many_campaigns_is_timed(capsys: pytest.CaptureFixture[str]) -> None:
    history_performance.main(5)
    lines = capsys.readouterr().out.splitlines()
    assert lines[2].startswith("| 5 campaigns of 30 launches made |")
    assert [line.split("|")[1].strip() for line in lines[3:7]] == [
        "history of launches alone", "history of rows kept by campaigns' ends, no index",
        "history again, with the index", "history with a campaign more",
    ]  # fmt: skip


@pytest.mark.parametrize("damage", ["half", "flipped", "empty", "foreign"])
def test_a_damaged_index_is_rebuilt(runs: Path, damage: str) -> None:
    rows, _ = rows_of(runs)
    path = runs / FILE
    content = path.read_bytes()
    flipped = bytearray(content)
    flipped[len(content) // 2] ^= 0x10
    path.write_bytes({"half": content[: len(content) // 2], "flipped": bytes(flipped),
                      "empty": b"", "foreign": b"PAR1"}[damage])  # fmt: skip
    again, said = rows_of(runs)
    assert again.equals(rows) and said == [f"{path} is damaged and is rebuilt"]
    assert rows_of(runs)[1] == [] and path.read_bytes() == content


def test_index_that_cannot_be_written_is_no_error(runs: Path) -> None:
    aside_of(runs / FILE).mkdir()
    rows, [said] = rows_of(runs)
    assert rows.height == DAYS * 5 and "cannot be written" in said


def broken(runs: Path) -> dict[str, str]:
    """Break campaigns in every way; return what must be said of each."""
    names = sorted(path.name for path in runs.iterdir() if path.is_dir())

    def manifest(name: str, text: str) -> None:
        (runs / name / "manifest.json").write_text(text)

    whole = (runs / names[0] / "manifest.json").read_text()
    manifest(names[0], whole[: len(whole) // 2])
    manifest(names[1], "[1, 2]")
    manifest(names[2], json.dumps(json.loads(whole) | {"schema": "wyeast-campaign-9"}))
    manifest(names[3], json.dumps(json.loads(whole) | {"images": None}))
    manifest(names[4], json.dumps(json.loads(whole) | {"created_utc": "yesterday"}))
    (runs / names[5] / "manifest.json").unlink()
    (runs / names[6] / "manifest.json").write_bytes(b"\xff\xfe\x00")
    shutil.rmtree(runs / names[7] / "launches")
    for file in (runs / names[8] / "launches").glob("*/stdout"):
        file.write_bytes(file.read_bytes()[:100] + b"\xff")
    shutil.copytree(runs / names[9], runs / "zz-copy")
    (runs / "aa-empty").mkdir()
    (runs / "README.md").write_text("not a campaign")
    (runs / ".hidden").mkdir()
    return {
        names[0]: "manifest.json cannot be read", names[1]: "is not a JSON object",
        names[2]: "has the schema 'wyeast-campaign-9'", names[3]: "lacks 'images'",
        names[4]: "created_utc is not a time: 'yesterday'", names[5]: "has no manifest.json",
        names[6]: "cannot be read", names[7]: "has no readable launch",
        names[8]: "has no readable launch", "zz-copy": f"a copy of {names[9]}",
        "aa-empty": "has no manifest.json",
    }  # fmt: skip


def test_broken_campaigns_cost_a_sentence_each(runs: Path) -> None:
    expected = broken(runs)
    for _ in range(2):  # The second time from the index.
        rows, said = rows_of(runs)
        assert rows["folder"].n_unique() == DAYS - 9
        assert len(said) == len(expected)
        for name, words in expected.items():
            [sentence] = [one for one in said if one.startswith(f"left out: {name}:")]
            assert words in sentence and "\n" not in sentence
    done = analysis("history", "--runs", str(runs))
    assert done.returncode == 0 and "Traceback" not in done.stderr
    assert done.stderr.count("left out: ") == len(expected)


@settings(max_examples=60)
@given(cut=st.integers(0, 5000), noise=st.binary(max_size=8))
def test_any_damage_to_a_manifest_is_a_sentence(
    nightly: Path, tmp_path_factory: pytest.TempPathFactory, cut: int, noise: bytes
) -> None:
    folder = tmp_path_factory.mktemp("runs") / "20260101T000000Z-local-x"
    folder.mkdir()
    whole = next(nightly.glob("*/manifest.json")).read_bytes()
    place = cut % len(whole)
    (folder / "manifest.json").write_bytes(whole[:place] + noise + whole[place + 3 :])
    rows, said = rows_of(folder.parent)
    assert rows.is_empty() and all(sentence.startswith("left out: ") for sentence in said)
    assert len(said) <= 1


@pytest.mark.parametrize("name", [b"\xff", b"a\nb", b"\x1b[2J"])
def test_a_folder_whose_name_is_not_text_is_left_out(runs: Path, name: bytes) -> None:
    """Where several users have campaigns, anybody's name may stand there."""
    found, before = rows_of(runs, rebuild=True)
    os.mkdir(os.fsencode(runs) + b"/" + name)
    rows, sentences = rows_of(runs, rebuild=True)
    assert rows.equals(found)
    [sentence] = [one for one in sentences if one not in before]
    assert sentence.endswith("its name is not plain text") and sentence.isprintable()


def test_nothing_there_is_one_sentence(tmp_path: Path) -> None:
    for arguments, words in (
        (["--runs", str(tmp_path)], "holds no campaign with a sound launch yet"),
        (["--runs", str(tmp_path / "no-such")], "cannot be read"),
    ):
        done = analysis("history", *arguments)
        assert done.returncode == 1 and words in done.stderr
        assert len(done.stderr.splitlines()) == 1


def test_stamp_tells_a_new_launch(runs: Path) -> None:
    folder = next(path for path in runs.iterdir() if path.is_dir())
    before = stamp_of(folder)
    (folder / "launches" / "round009_new").mkdir()
    assert stamp_of(folder) != before and KEPT_EVERY > 1


# Change points.


def test_split_scores_by_hand() -> None:
    # Mann and Whitney of {1,2,3} before {4,5,6}: U = 9, mean 4.5, variance 3 * 3 * 7 / 12.
    assert split_scores(numpy.arange(1.0, 7.0)) == pytest.approx([4.5 / math.sqrt(5.25)])
    assert split_scores(numpy.ones(8)).tolist() == [0.0] * 3


def test_split_scores_are_mann_and_whitneys() -> None:
    values = numpy.random.default_rng(1).standard_normal(15)
    scores = split_scores(stats.rankdata(values))
    for place, score in enumerate(scores, SHORTEST):
        first, second = values[:place], values[place:]
        u = stats.mannwhitneyu(first, second).statistic
        size = len(first) * len(second)
        assert score == pytest.approx(abs(u - size / 2) / math.sqrt(size * 16 / 12))


def test_short_series_have_the_exact_chance() -> None:
    """Of six values the one split is 3 by 3; 2 of 20 choices are as far apart as can be."""
    assert least_chance(6) == pytest.approx(0.1, abs=0.01)
    assert least_chance(5) == 1.0 and change_points([1, 2, 3, 4, 5], 0.99) == []


def test_chance_beyond_the_orders_drawn_still_falls() -> None:
    chances = [chance_of(score, 200) for score in (2.0, 3.0, 4.0, 6.0, 8.0)]
    assert chances == sorted(chances, reverse=True) and chances[-1] < 1e-10 < chances[2]
    assert chance_of(0.0, 200) == 1.0


@given(st.lists(st.floats(-1e6, 1e6), min_size=6, max_size=40))
def test_changes_do_not_depend_on_units_and_direction(values: list[float]) -> None:
    places = [change.place for change in change_points(values, 0.05)]
    scaled = [change.place for change in change_points([-v for v in values], 0.05)]
    assert places == scaled and all(3 <= place <= len(values) - 3 for place in places)


def test_two_steps_and_an_outlier() -> None:
    random = numpy.random.default_rng(3)
    values = 0.01 * random.standard_normal(60)
    values[20:] += 0.2
    values[40:] -= 0.1
    values[50] += 5.0
    assert [change.place for change in change_points(values, 0.01)] == [20, 40]


def test_series_too_short_to_tell_do_not_weigh() -> None:
    assert level_of_each([3] * 500 + [50] * 4, 0.05) == pytest.approx(0.05 / 4)
    assert level_of_each([50] * 4, 0.05) == pytest.approx(0.05 / 4)
    assert level_of_each([3] * 10, 0.05) == 0.05 and level_of_each([], 0.05) == 0.05


# A campaign against its history.


def test_predicted_ratio_covers_and_is_rarely_wrong() -> None:
    data = 0.03 * numpy.random.default_rng(4).standard_normal((4000, 6))
    found = [predicted_ratio(row[5], row[:5], 0.02) for row in data]
    inside = [r.interval.low <= 1 <= r.interval.high for r in found if r.interval]
    assert len(inside) == 4000 and 0.94 <= numpy.mean([r.p_value > 0.05 for r in found]) <= 0.96


def test_two_earlier_campaigns_tell_nothing() -> None:
    ratio = predicted_ratio(0.1, numpy.array([0.0, 0.0]), 0.02)
    assert ratio.interval is None and ratio.counted == "2 earlier campaigns"


def test_history_since_the_last_change_counts(runs: Path) -> None:
    new = campaign(runs, DAYS, 1 / 1.1)
    rows, _ = rows_of(runs)
    for row in against_history(read_campaign(new), rows):
        assert row.verdict.ratio.pairs == DAYS - STEP_AT
        assert 0.94 < row.verdict.ratio.value < 1.06
        assert not row.verdict.is_different


def test_a_folder_with_campaigns_of_others_alone_says_so(nightly: Path, tmp_path: Path) -> None:
    campaign = sorted(one for one in nightly.iterdir() if one.is_dir())[0]
    shutil.copytree(campaign, tmp_path / campaign.name)
    (tmp_path / campaign.name / "imported.json").write_text("{}")
    done = analysis("history", "--runs", str(tmp_path))
    assert done.returncode == 1 and "of this machine: 1 came from others" in done.stderr
