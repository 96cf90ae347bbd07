"""A campaign like another one takes all from its manifest; nobody changes another user's."""

import argparse
import json
import os
from pathlib import Path

import pytest

from campaign import beginning, request, resuming
from containers import selection
from records import files
from records.base import CampaignError
from records.manifest import COMMAND
from tests.folders import write_launch
from tests.whole_records import launch as whole_launch
from tests.whole_records import manifest_facts

MANIFEST = manifest_facts(
    "first", tier="paper", rounds=7, checks="^Nas", order_seed=41, time_limit="9m", name="nightly",
    images={"mpich-5.0.2": {"sha256": "1" * 64}, "lam-7.1.4+lamd": {"sha256": "2" * 64}},
    finished_utc=None, commands=[],
)  # fmt: skip


def options(**given: object) -> argparse.Namespace:
    defaults = {
        "site": "virtual", "tier": "quick", "rounds": 3, "images": "", "checks": None, "seed": None,
        "study": None, "resume": None, "host_mpi": None, "like": None, "name": None,
        "time_limit": None, "raw_by_rank": False, "budget": None, "all_pairs": False,
        "ranks": None, "ranks_per_node": None,
    }  # fmt: skip
    return argparse.Namespace(**{**defaults, **given})


@pytest.fixture
def first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(beginning, "ROOT", tmp_path)
    path = tmp_path / "runs" / "first"
    path.mkdir(parents=True)
    (path / "manifest.json").write_text(json.dumps(MANIFEST))
    return path


def change(path: Path, **facts: object) -> None:
    (path / "manifest.json").write_text(json.dumps(MANIFEST | facts))


def test_all_but_the_site_is_the_other_ones(first: Path) -> None:
    chosen = options(like="runs/first")
    beginning.as_before(chosen)
    assert vars(chosen) == vars(options(
        like="first", tier="paper", rounds=7, checks="^Nas", seed=41, time_limit="9m",
        name="nightly", images="mpich-5.0.2,lam-7.1.4+lamd",
    ))  # fmt: skip
    assert request.command_of(chosen) == "python -m campaign --site=virtual --like=first"


def test_what_each_rank_took_is_kept_again(first: Path) -> None:
    change(first, raw_by_rank=True, all_pairs=True)
    chosen = options(like="first")
    beginning.as_before(chosen)
    assert chosen.raw_by_rank is True and chosen.all_pairs is True
    assert "RAW_BY_RANK=1" in request.command_of(options(raw_by_rank=True))
    command = request.command_of(options(all_pairs=True))
    assert "ALL_PAIRS=1" in command and COMMAND.fullmatch(command)
    assert " --all-pairs" in request.command_of(options(all_pairs=True, seed=3))


def test_numbers_of_ranks_are_those_of_what_is_repeated(first: Path) -> None:
    change(first, ranks=[2, 4], ranks_per_node=[1])
    chosen = options(like="first")
    beginning.as_before(chosen)
    assert (chosen.ranks, chosen.ranks_per_node) == ([2, 4], [1])
    for name, given in (("RESUME", "resume"), ("--like", "like"), ("STUDY", "study")):
        with pytest.raises(CampaignError, match=f"cannot be given with {name}=first, which has"):
            request.refuse_ranks(options(ranks=[2], **{given: "first"}))
    with pytest.raises(CampaignError, match="RANKS=1: a single rank has no partner"):
        request.refuse_ranks(options(ranks=[2, 1]))
    assert request.numbers("8,2,8") == [8, 2]
    for wrong in ("", "0", "2,", "two", "2;4", "1,2,3" * 100):
        with pytest.raises(CampaignError, match="are no numbers of ranks"):
            request.numbers(wrong)


def test_what_is_compared_is_declared_before_anything_is_measured(first: Path) -> None:
    with pytest.raises(CampaignError, match="ALL_PAIRS cannot be given with --like=first"):
        beginning.as_before(options(like="first", all_pairs=True))
    with pytest.raises(CampaignError, match="ALL_PAIRS cannot be given with RESUME=first"):
        request.refuse_all_pairs(options(resume="first", all_pairs=True))


def test_a_bound_mpi_has_to_be_named(first: Path) -> None:
    bound = "mpich-5.0.2+host-intel-mpi-2021"
    change(
        first, images={name: MANIFEST["images"]["mpich-5.0.2"] for name in (bound, "mpich-5.0.2")}
    )
    with pytest.raises(CampaignError, match="say which one to use here instead"):
        beginning.as_before(options(like="first"))
    chosen = options(like="first", host_mpi="/opt/mpi")
    beginning.as_before(chosen)
    assert chosen.images == "mpich-5.0.2+host,mpich-5.0.2"


def test_mistakes_are_sentences(first: Path) -> None:
    with pytest.raises(CampaignError, match="is not a campaign"):
        beginning.as_before(options(like="second"))
    (first / "manifest.json").write_text(
        json.dumps({key: MANIFEST[key] for key in MANIFEST if key != "tier"})
    )
    with pytest.raises(CampaignError, match="lacks 'tier', or it"):
        beginning.as_before(options(like="first"))


@pytest.mark.parametrize(
    "facts",
    [
        {"rounds": "7"},
        {"tier": ["quick"]},
        {"images": []},
        {"name": {}},
        {"checks": 1},
        {"study": 1},
    ],
)
def test_a_manifest_of_anybody_is_not_believed(first: Path, facts: dict[str, object]) -> None:
    change(first, **facts)
    with pytest.raises(CampaignError, match=f"lacks '{next(iter(facts))}', or it is not what"):
        beginning.as_before(options(like="first"))


@pytest.mark.parametrize("name", ["../../escaped", "a/b", "/tmp/x", ".hidden", "-option", "a b"])
def test_no_name_leads_out_of_the_folder_of_campaigns(
    first: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Neither one of the command line nor one of a bundle's manifest."""
    change(first, name=name)
    monkeypatch.setattr(selection, "site_file", lambda root, site: root)
    monkeypatch.setattr(beginning, "load_site", lambda site: {"scheduler": "local"})
    monkeypatch.setattr(beginning, "chosen", lambda chosen: ([], {}))
    chosen = options(like="first")
    beginning.as_before(chosen)
    before = sorted(first.parents[1].rglob("*"))
    for given in (chosen, options(name=name)):
        with pytest.raises(CampaignError, match="cannot be part of a folder's name"):
            beginning.new_campaign(given)
    assert sorted(first.parents[1].rglob("*")) == before


def test_nobody_goes_on_with_what_is_not_theirs(
    first: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (first / "imported.json").write_text("{}")
    with pytest.raises(CampaignError, match="came in a bundle"):
        resuming.old_campaign(options(resume="first"))
    monkeypatch.setattr(os, "geteuid", lambda: first.stat().st_uid + 1)
    with pytest.raises(CampaignError, match="is another user's"):
        resuming.old_campaign(options(resume="first"))


def test_only_the_owner_writes_whatever_the_users_habit(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        files.only_owner_writes()
        place = tmp_path / "runs" / "c"
        (place / "launches").mkdir(parents=True)
        (tmp_path / "out").write_text("x")
        write_launch(place, whole_launch("round001_a"), {"stdout": tmp_path / "out"})
        for path in (place, *place.rglob("*")):
            assert path.stat().st_mode & 0o022 == 0, path
        os.umask(0o077)
        files.only_owner_writes()
        assert os.umask(0) == 0o077, "what a user keeps private stays so"
    finally:
        os.umask(before)


@pytest.mark.parametrize(
    ("rounds", "sentence"),
    [(0, "lacks 'rounds', or it"), (-1, "lacks 'rounds', or it"), (10**9, "lacks 'rounds', or it")],
)
def test_rounds_that_nobody_could_ask_for_are_refused(
    first: Path, rounds: int, sentence: str
) -> None:
    """The manifest may be of a bundle, and so anybody's."""
    change(first, rounds=rounds)
    with pytest.raises(CampaignError, match=sentence):
        beginning.as_before(options(like="first"))
