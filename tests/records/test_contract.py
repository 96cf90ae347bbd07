"""What is written to a manifest or a launch's record is read the same; all else is a sentence."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from records import files, nodes
from records.base import CampaignError, RecordError
from records.campaign import read_campaign
from records.causes import harmless_strings, one_line
from records.files import write_json
from records.launch import (
    AskedLaunch,
    LaunchRecord,
    asked_launch,
    finished_launch,
)
from records.manifest import Manifest, manifest_of, read_manifest, write_manifest
from records.sample import sample_folder
from tests.folders import write_launch
from tests.whole_records import asked_facts, launch_facts, manifest_facts, read_record

PROJECT = Path(__file__).resolve().parents[2]
FINITE = st.floats(allow_nan=False, allow_infinity=False)
PARAMETER = st.integers(0, 2**53) | st.floats(0, 1e18)
NOT_NEGATIVE = st.floats(min_value=0, max_value=1e300)
#: What is harmless to show, as readers make of everything else.
TEXT = st.text(st.characters(codec="utf-8"), max_size=8).map(harmless_strings)
DIGEST = st.text("0123456789abcdef", min_size=64, max_size=64)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | FINITE | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
#: As `settings` of what a test does a hundred times in one folder.
OFTEN = settings(
    max_examples=150, deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)  # fmt: skip


def round_done(number: int, wall_s: float = 1.0, exit_code: int = 0) -> dict[str, Any]:
    return {"round": number, "wall_s": wall_s, "reframe_exit_code": exit_code}


@st.composite
def manifests(draw: st.DrawFn) -> dict[str, Any]:
    rounds = draw(st.integers(1, 9))
    done = draw(st.lists(st.integers(1, rounds), unique=True))
    optional = {
        "checks": TEXT | st.none(), "study": st.sampled_from([None, "kearns2003"]), "like": TEXT,
        "raw_by_rank": st.booleans(), "sample": TEXT, "site_data": st.dictionaries(TEXT, JSON),
        "host_mpi": st.dictionaries(TEXT, JSON), "raw_removed_utc": st.just("2026-02-01T00:00:00Z"),
        "night": st.fixed_dictionaries({"broken": st.dictionaries(TEXT, TEXT)}),
    }  # fmt: skip
    return manifest_facts(
        rounds=rounds,
        order_seed=draw(st.integers(1 - 2**63, 2**63 - 1)),
        machine={"cpu_model": draw(TEXT | st.none()), **draw(st.dictionaries(st.just("x"), JSON))},
        inputs=draw(st.dictionaries(TEXT, DIGEST)),
        images={
            name: {"sha256": draw(DIGEST), "labels": draw(st.dictionaries(TEXT, TEXT))}
            for name in draw(st.sets(st.sampled_from(["alpha-1.0", "beta-2.0+x"])))
        },
        rounds_done=[
            round_done(number, draw(st.floats(0, 1e9)), draw(st.integers(-255, 255)))
            for number in done
        ],
        **{key: draw(optional[key]) for key in draw(st.sets(st.sampled_from(sorted(optional))))},
    )


def is_free(name: str) -> bool:
    """Say whether any value can stand under a name of a node's facts."""
    return name not in nodes.BOUNDS and name not in nodes.WORDS


@st.composite
def launches(draw: st.DrawFn) -> dict[str, Any]:
    return launch_facts(
        round=draw(st.integers(1, 999)), position=draw(st.integers(1, 10**8) | st.none()),
        parameters=draw(st.dictionaries(st.sampled_from("ab"), TEXT | PARAMETER)),
        cell=draw(TEXT), image_sha256=draw(DIGEST), ranks=draw(st.integers(9, 10**8)),
        nodes=draw(st.integers(1, 9)), wall_s=draw(st.floats(0, 1e9) | st.none()),
        command=draw(TEXT), times_s=draw(st.dictionaries(TEXT, st.floats(-1e9, 1e9))),
        exit_code=draw(st.integers(-255, 255) | st.none()),
        node=draw(st.dictionaries(
            TEXT.filter(is_free), st.none() | NOT_NEGATIVE | st.integers(0) | TEXT
        )),
        sentence=draw(TEXT.map(one_line) | st.none()),
        outcome=draw(st.sampled_from(["sound", "failed"])),
    )  # fmt: skip


@OFTEN
@given(facts=manifests())
def test_a_manifest_is_read_as_it_was_written(tmp_path: Path, facts: dict[str, Any]) -> None:
    manifest = manifest_of(facts, "here")
    write_manifest(tmp_path, manifest)
    assert json.loads((tmp_path / "manifest.json").read_text()) == facts
    again = read_manifest(tmp_path)
    assert again == manifest and again.facts == facts and again.changed() == manifest


@OFTEN
@given(facts=launches())
def test_a_record_is_read_as_it_was_written(
    tmp_path_factory: pytest.TempPathFactory, facts: dict[str, Any]
) -> None:
    asked = asked_launch(**{key: facts[key] for key in asked_facts() if key != "schema"})
    others = {key: facts[key] for key in facts if key not in asked_facts()}
    record = finished_launch(asked, **others)
    campaign = tmp_path_factory.mktemp("c")
    file = write_launch(campaign, record, {}) / "launch.json"
    assert json.loads(file.read_text()) == facts | {"sha256": {}}
    assert read_record(file, LaunchRecord) == finished_launch(record, sha256={})
    write_json(campaign / "asked.json", asked.facts)
    assert read_record(campaign / "asked.json", AskedLaunch) == asked


def read(kind: str, file: Path) -> BaseModel | None:
    """Return what a file says, or None where one sentence with its name says why not."""
    try:
        return read_manifest(file.parent) if kind == "manifest" else read_record(file, LaunchRecord)
    except (CampaignError, RecordError) as error:
        assert isinstance(error, CampaignError if kind == "manifest" else RecordError)
        said = str(error)
        assert str(file) in said and "\n" not in said and said.isprintable() and len(said) < 1000
        return None


def whole(kind: str) -> dict[str, Any]:
    return manifest_facts() if kind == "manifest" else launch_facts()


KINDS = pytest.mark.parametrize("kind", ["manifest", "launch"])


def test_what_this_python_has_no_name_for_is_not_printed(tmp_path: Path) -> None:
    """A character of a later Unicode, in the name of what a node has."""
    facts = launch_facts()
    facts["node"]["new \U0001342f"] = -1
    file = tmp_path / "launch.json"
    file.write_text(json.dumps(facts))
    assert read("launch", file) is None


@KINDS
@OFTEN
@given(data=st.data())
def test_any_value_in_any_place_is_read_or_refused(
    tmp_path: Path, kind: str, data: st.DataObject
) -> None:
    facts = whole(kind)
    place: Any = facts
    while True:
        keys = sorted(place) if isinstance(place, dict) else list(range(len(place)))
        key = data.draw(st.sampled_from(keys))
        if not (isinstance(place[key], dict | list) and place[key] and data.draw(st.booleans())):
            break
        place = place[key]
    change = data.draw(st.sampled_from(["other", "gone", "more"]))
    if change == "other":
        place[key] = data.draw(JSON)
    elif change == "gone":
        del place[key]
    elif isinstance(place, dict):
        place[data.draw(TEXT)] = data.draw(JSON)
    file = tmp_path / f"{kind}.json"
    file.write_text(json.dumps(facts))
    found = read(kind, file)
    if found is not None:
        # It can be written again, unless there is something that this version does not know.
        again = found.model_dump_json(by_alias=True, exclude_unset=True)
        assert type(found).model_validate_json(again) == found


@KINDS
@OFTEN
@given(cut=st.integers(0), more=st.binary(max_size=6), length=st.integers(0, 6))
def test_any_damage_is_read_or_refused(
    tmp_path: Path, kind: str, cut: int, more: bytes, length: int
) -> None:
    text = json.dumps(whole(kind)).encode()
    place = cut % len(text)
    file = tmp_path / f"{kind}.json"
    file.write_bytes(text[:place] + more + text[place + length :])
    read(kind, file)
    file.write_bytes(text[:place])
    assert read(kind, file) is None


DAMAGES: dict[str, bytes] = {
    "empty": b"", "no object": b"[]", "nothing in it": b"{}", "null": b"null", "text": b'"{}"',
    "not UTF-8": b'{"schema": "\xff"}', "deep": b"[" * 100_000, "deep objects": b'{"a":' * 100_000,
    "NUL": b"\x00" * 64,
}  # fmt: skip
WORDS: dict[str, str] = {
    "NaN": "NaN", "infinity": "-Infinity", "too large": "1e999", "many digits": "9" * 5000,
    "half a character": '"\\ud800"', "whole floats for counts": "1.5", "yes": "true",
    "nested": "[" * 70 + "]" * 70,
}  # fmt: skip


@KINDS
@pytest.mark.parametrize("damage", DAMAGES)
def test_what_is_not_a_record_is_a_sentence(tmp_path: Path, kind: str, damage: str) -> None:
    file = tmp_path / f"{kind}.json"
    file.write_bytes(DAMAGES[damage])
    assert read(kind, file) is None
    file.unlink()
    assert read(kind, file) is None
    file.mkdir()
    assert read(kind, file) is None


@KINDS
@pytest.mark.parametrize("word", WORDS)
def test_no_number_and_no_text_that_cannot_be(tmp_path: Path, kind: str, word: str) -> None:
    file = tmp_path / f"{kind}.json"
    keys = {"manifest": ("rounds", "name"), "launch": ("ranks", "cell")}[kind]
    for key in keys:
        file.write_text(json.dumps({**whole(kind), key: "HERE"}).replace('"HERE"', WORDS[word]))
        assert read(kind, file) is None, key
    inner = {"manifest": "machine", "launch": "node"}[kind]
    if word not in ("whole floats for counts", "yes"):
        facts = whole(kind)
        facts[inner]["cores"] = "HERE"
        file.write_text(json.dumps(facts).replace('"HERE"', WORDS[word]))
        if word != "many digits":
            assert read(kind, file) is None
        read(kind, file)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"rounds": 0}, "lacks 'rounds', or it is not what"),
        ({"campaign": "../x"}, "lacks 'campaign', or it"),
        ({"site": "a/b"}, "lacks 'site', or it"),
        ({"study": "../x"}, "lacks 'study', or it"),
        ({"created_utc": "yesterday"}, "created_utc is not a time: 'yesterday'"),
        ({"images": {"a/b": {"sha256": "1" * 64}}}, "'a/b'"),
        ({"images": {"a": {"sha256": "1" * 63}}}, "has no 'sha256' of 64 hexadecimal digits"),
        ({"inputs": {"a": "A" * 64}}, "an entry of 'inputs' is not a digest: 'a'"),
        ({"software": {"wyeast_commit": "--output=x"}}, "'wyeast_commit' that is not a commit"),
        ({"rounds_done": [round_done(4)]}, "rounds of 1 to 3"),
        ({"rounds_done": [round_done(1), round_done(1)]}, "each once"),
        ({"rounds_done": [round_done(1, -1.0)]}, "'wall_s' in '0'"),
        ({"schema": "wyeast-campaign-2"}, f"that wrote it, commit {'2' * 40}"),
    ],
    ids=lambda value: str(value)[:30],
)  # fmt: skip
def test_bounds_of_a_manifest(change: dict[str, Any], words: str) -> None:
    with pytest.raises(CampaignError) as caught:
        manifest_of(manifest_facts() | change, "m.json")
    assert words in str(caught.value) and "m.json" in str(caught.value)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"round": 0}, "round"), ({"ranks": 0}, "ranks"), ({"nodes": 0}, "nodes"),
        ({"position": 0}, "position"), ({"launch": "../x"}, "launch"), ({"launch": ".x"}, "launch"),
        ({"implementation": "a/b"}, "implementation"), ({"experiment": "a b"}, "experiment"),
        ({"image_sha256": "1"}, "image_sha256"), ({"started_utc": "now"}, "not a time: 'now'"),
        ({"node": {"memory_available_bytes": -1}}, "memory_available_bytes is -1"),
        ({"schema": "wyeast-launch-2"}, "has the schema 'wyeast-launch-2'; this version reads"),
        ({"seen": 1}, "has 'seen', which this version does not know: use the version"),
    ],
    ids=lambda value: str(value)[:30],
)  # fmt: skip
def test_bounds_of_a_launch(tmp_path: Path, change: dict[str, Any], words: str) -> None:
    file = tmp_path / "launch.json"
    file.write_text(json.dumps(launch_facts() | change))
    with pytest.raises(RecordError) as caught:
        read_record(file, LaunchRecord)
    assert words in str(caught.value) and str(file) in str(caught.value)


def test_what_another_version_wrote_is_read_and_not_written(tmp_path: Path) -> None:
    facts = manifest_facts()
    facts |= {"looks": 3, "night": {"broken": {}, "mood": "dark"}}
    facts["images"]["alpha-1.0"]["layers"] = []
    (tmp_path / "manifest.json").write_text(json.dumps(facts))
    manifest = read_manifest(tmp_path)
    assert manifest.rounds == 3 and manifest["looks"] == 3 and "looks" in manifest
    for write in (
        lambda: write_manifest(tmp_path, manifest),
        lambda: write_manifest(tmp_path, manifest.changed(finished_utc=None)),
    ):
        with pytest.raises(CampaignError, match=r"'layers', 'looks', 'mood', which this version"):
            write()
    assert json.loads((tmp_path / "manifest.json").read_text()) == facts


def test_what_cannot_be_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(CampaignError, match="cannot be recorded: round001_cell: ranks"):
        asked_launch(**{**asked_facts(), "ranks": 0})
    asked = asked_launch(**{key: value for key, value in asked_facts().items() if key != "schema"})
    others = {key: value for key, value in launch_facts().items() if key not in asked_facts()}
    with pytest.raises(CampaignError, match="cannot be recorded: round001_cell: wall_s"):
        finished_launch(asked, **{**others, "wall_s": float("nan")})
    with pytest.raises(CampaignError, match="lacks 'rounds'"):
        manifest_of(manifest_facts(), "m").changed(rounds=0)
    with pytest.raises(ValueError, match="not JSON compliant"):
        files.write_json(tmp_path / "x.json", {"a": float("nan")})
    assert list(tmp_path.iterdir()) == []


def test_the_sample_is_read_as_its_files_are() -> None:
    campaign = read_campaign(sample_folder(PROJECT))
    assert isinstance(campaign.manifest, Manifest) and not campaign.problems
    assert campaign.manifest.facts == files.read_json(campaign.path / "manifest.json")
    for launch in campaign.launches:
        file = campaign.path / "launches" / launch.record.launch / "launch.json"
        assert json.loads(json.dumps(launch.record.facts)) == files.read_json(file)


def damaged(text: str) -> dict[str, Callable[[Path], object]]:
    return {
        "cut": lambda file: file.write_text(text[:100]),
        "nothing in it": lambda file: file.write_text("{}"),
        "another round": lambda file: file.write_text(text.replace('"round": 1', '"round": 9')),
        "not UTF-8": lambda file: file.write_bytes(text.encode().replace(b"alpha", b"\xff")),
        "deep": lambda file: file.write_text("[" * 100_000),
    }


@pytest.mark.parametrize("damage", damaged(""))
def test_a_damaged_launch_costs_itself_alone(tmp_path: Path, damage: str) -> None:
    (tmp_path / "manifest.json").write_text(json.dumps(manifest_facts()))
    for name in ("round001_a", "round001_b"):
        facts = launch_facts(name, cell=name, outcome="failed", sentence="it hung")
        write_launch(tmp_path, LaunchRecord.model_validate(facts), {})
    file = tmp_path / "launches" / "round001_a" / "launch.json"
    damaged(file.read_text())[damage](file)
    campaign = read_campaign(tmp_path)
    assert [launch.record.launch for launch in campaign.launches] == ["round001_b"]
    [said] = [one.sentence for one in campaign.problems if one.where == "round001_a"]
    assert "round001_a" in said and "\n" not in said
