"""Every variable that names a path: from where it was typed, with any letter, or a sentence."""

import contextlib
import io
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from analysis.__main__ import app
from campaign import beginning
from campaign.__main__ import arguments
from campaign.bundle import make, rerun
from campaign.site import doctor
from containers import installed, passphrases
from containers.installed import PrefixError
from containers.registry_connection import Registry, RegistryError
from containers.sharing import registry
from containers.spack import given, standalone
from containers.spack.recipes import SpackError
from containers.spack.source_folder import SourceFolder
from containers.table import load_table
from containers.trusted_keys import TrustError
from documentation import __main__ as documentation
from records import layout
from records.base import CampaignError
from records.campaign import find_campaign
from tests.campaign.bundle.conftest import NAME, Checkout
from tests.containers.test_spack_given import wanted
from tests.other_user import OTHER, in_child, needs_root

PROJECT = Path(__file__).resolve().parents[3]
ERRORS = (CampaignError, PrefixError, TrustError, RegistryError, SpackError)
#: What else targets of the Makefile take.
NO_PATHS = {
    "AGAIN", "ALLOW_UNSIGNED", "ALL_PAIRS", "AXES", "BOOTSTRAP", "BUDGET", "BUILDER", "CHECKS",
    "CREATOR", "DRIVER", "DRY_RUN", "EMAIL", "ESTIMATE", "FROM", "IMAGES", "IMAGES_FROM",
    "IMPLEMENTATIONS", "INSECURE", "KEEP", "KEEP_IMAGES", "KEEP_NIGHTS", "KEY", "LINK", "LOOK",
    "MOST_BYTES", "MOST_ROUNDS", "NAME", "NODES", "PAPER", "RANKS", "RANKS_PER_NODE",
    "RAW_BY_RANK", "REDACT", "REGISTRY", "REPEAT", "REPOSITORY", "ROUNDS", "SCHEDULER", "SITE",
    "STUDY", "TIER", "TRIALS", "VERSION", "WITH_IMAGES",
}  # fmt: skip
#: Of somebody who develops Wyeast, in the checkout: a test's file, a folder for pictures of costs.
OF_DEVELOPERS = {"CURVES", "TESTS"}
#: In place of a folder's name in the campaigns' folder; a path before it does not count.
NAMES = {"RESUME", "CAMPAIGNS"}
#: Any file may be one.
TEXTS = {"OUTPUT"}


def of_analysis(*words: str) -> int:
    """Return how a command of the analysis ends."""
    done = CliRunner().invoke(app, words, catch_exceptions=False)
    print(done.output, file=sys.stderr)
    return done.exit_code


def prefix(here: Checkout, value: str) -> object:
    return installed.find(value, load_table(PROJECT), ())


def host_mpi(here: Checkout, value: str) -> object:
    # Whoever goes on with it is elsewhere.
    typed = arguments([f"--host-mpi={value}"]).host_mpi
    assert Path(typed).is_absolute()
    return installed.find(typed, load_table(PROJECT), ())


def lock(here: Checkout, value: str) -> object:
    source = Registry("oras://localhost:1/a", insecure=True)
    return registry.wanted(here.root, source, "", value)


def spack_sources(here: Checkout, value: str) -> None:
    folder = given.meant(value)
    given.refuse_missing(given.look([[wanted("0" * 64)]], SourceFolder(folder), None),
                         folder)  # fmt: skip


#: Stands in for mkdocs: it makes the folder that its settings name.
PLAYED_MKDOCS = """#!/bin/sh
while [ "$1" != --config-file ]; do shift; done
mkdir "$(sed -n 's/^site_dir: //p' "$2")"
"""


def docs(here: Checkout, value: str) -> int:
    program = here.root / documentation.MKDOCS
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(PLAYED_MKDOCS)
    program.chmod(0o755)
    place = documentation.arguments([f"--out={value}"]).out
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(documentation, "gather", lambda root, pages: None)
        said = documentation.build(here.root, place)
    print(said, file=sys.stderr)
    return int(said is not None)


WRITTEN: dict[str, Callable[[Checkout, str], Any]] = {
    "OUT of bundle": lambda here, value: make.main([NAME, f"--out={value}"]),
    "OUT of appendix": lambda here, value: of_analysis(
        "export", "--format=junit", "--output", value, str(here.root / "runs" / NAME)
    ),
    "OUT of history": lambda here, value: of_analysis(
        "history", "--html", value, f"--runs={here.root}/runs"
    ),
    "OUT of docs": docs,
    "OUT of spack-environment": lambda here, value: standalone.main(
        ["--implementations=mpich-4.0.2-spack", f"--out={value}"]
    ),
}
READ: dict[str, Callable[[Checkout, str], Any]] = {
    "PREFIX": prefix, "HOST_MPI": host_mpi, "LOCK": lock,
    "PASSPHRASE_FILE": lambda here, value: passphrases.passphrase_of("", value),
    "CAMPAIGN": lambda here, value: find_campaign(here.root, value),
    "BUNDLE": lambda here, value: rerun.main([value, "--dry-run"]), "SOURCES": spack_sources,
}  # fmt: skip


@pytest.fixture
def caller(here: Checkout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which the user is, while make is in the checkout."""
    place = tmp_path / "where I am"
    (place / "größe & more").mkdir(parents=True)
    (place / "file").write_text("no JSON")
    (place / "file").chmod(0o644)
    monkeypatch.chdir(here.root)
    monkeypatch.setenv(layout.CALLER, str(place))
    monkeypatch.setenv("HOME", str(place))
    monkeypatch.setenv("WYEAST_ROOT", str(here.root))
    return place


def refused(
    work: Callable[[Checkout, str], Any], here: Checkout, value: str,
    capsys: pytest.CaptureFixture[str],
) -> str:  # fmt: skip
    """Return the sentence by which something is refused."""
    capsys.readouterr()
    try:
        code = work(here, value)
    except ERRORS as error:
        return str(error)
    said = capsys.readouterr().err
    assert code != 0, said
    return said


def test_every_variable_of_the_makefile_is_a_path_or_none() -> None:
    names = set()
    for line in (PROJECT / "Makefile").read_text().splitlines():
        if found := re.match(r"[a-z-]+:.*## .*\((.*)\)$", line):
            names |= set(re.findall(r"\b[A-Z][A-Z_]+\b", found[1]))
    tested = {name.partition(" ")[0] for name in (*WRITTEN, *READ)}
    assert names - {"BUNDLE"} >= tested - {"BUNDLE"}
    assert names - NO_PATHS - OF_DEVELOPERS - NAMES - TEXTS == tested
    assert {re.findall(r" of (.*)", name)[0] for name in WRITTEN} == {
        line.partition(":")[0] for line in (PROJECT / "Makefile").read_text().splitlines()
        if re.match(r"[a-z-]+:.*## .*\bOUT\b", line)
    }  # fmt: skip


@pytest.mark.parametrize("name", WRITTEN)
def test_what_is_written_is_where_it_was_meant(
    name: str, here: Checkout, caller: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write = WRITTEN[name]
    before = set(here.root.glob("*"))
    for value in ("größe & more/new folder/page x", "~/at home", str(caller / "whole path")):
        assert write(here, value) == 0, capsys.readouterr().err
        place = caller / value.removeprefix("~/")
        assert place.exists(), value
    assert set(here.root.glob("*")) - {here.root / ".wyeast"} <= before
    for value in ("file/page", "/sys/nobody writes/here"):
        said = refused(write, here, value, capsys)
        named = str(caller / value)
        assert (named in said or str(Path(named).parent) in said) and "Traceback" not in said
        assert "annot be" in said or "is not" in said or "is a file" in said, said
    assert (caller / "file").read_text() == "no JSON"


@pytest.mark.parametrize("name", READ)
def test_what_is_read_is_refused_by_its_path(
    name: str, here: Checkout, caller: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    read = READ[name]
    for value in ("größe & more/nothing", "größe & more", "file", "file/more", "~/nothing"):
        said = refused(read, here, value, capsys)
        typed = value.removeprefix("~/")
        assert typed in said and "Traceback" not in said, said
    # What it is called by in the checkout is not meant.
    (here.root / "only there").mkdir()
    said = refused(read, here, "only there", capsys)
    assert str(caller / "only there") in said or name == "CAMPAIGN"


@needs_root
@pytest.mark.parametrize("name", READ)
def test_what_a_user_may_not_read_is_refused_in_a_sentence(
    name: str, here: Checkout, caller: Path
) -> None:
    """As what is below a home that is closed to others."""
    shut = caller / "shut"
    shut.mkdir(mode=0o700)
    (shut / "there").mkdir()
    # They are other tests' as well.
    modes = {folder: folder.stat().st_mode for folder in (caller, *caller.parents[:-2])}

    def asked() -> str:
        os.setresuid(OTHER, OTHER, OTHER)
        said = io.StringIO()
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
            try:
                code = READ[name](here, "shut/there")
            except ERRORS as error:
                return str(error)
        return said.getvalue() if code else "it was taken"

    try:
        for folder, mode in modes.items():
            folder.chmod(mode | 0o755)
        said = in_child(asked)
    finally:
        for folder, mode in modes.items():
            folder.chmod(mode)
    assert "shut/there" in said, said
    assert "PermissionError" not in said and "Traceback" not in said


def test_an_output_is_read_from_where_the_user_is(
    here: Checkout, caller: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert doctor.of_output("file") == 0 and "no JSON" in capsys.readouterr().out
    (here.root / "only there").write_text("FATAL: something")
    for value in ("only there", "größe & more", "file/more", "~/nothing"):
        with pytest.raises(CampaignError, match=re.escape(str(caller / value.removeprefix("~/")))):
            doctor.of_output(value)


def test_a_campaign_is_found_from_where_the_user_is(here: Checkout, caller: Path) -> None:
    """Before one of that name in the checkout; and by its name alone it is resumed."""
    for place in (here.root, caller / "größe & more", caller):
        (place / "own").mkdir()
        (place / "own" / "manifest.json").write_text("{}")
    assert find_campaign(here.root, "own") == caller / "own"
    assert find_campaign(here.root, "größe & more/own") == caller / "größe & more" / "own"
    assert find_campaign(here.root, "~/own") == caller / "own"
    with pytest.raises(CampaignError, match="is not a campaign"):
        beginning.read_manifest("größe & more/nothing")
