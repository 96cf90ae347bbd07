"""Nothing leaves in a bundle that nobody meant to give away: it is found, refused or replaced."""

import gzip
import hashlib
import io
import json
import pwd
import re
from pathlib import Path

import polars
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.tables.csv import downloads_of
from analysis.tables.table import Column, Row, Table
from campaign.bundle import leaks, make, rerun
from campaign.bundle.redaction import LIST, redacted
from records.archive import BundleError, Member, unpack
from records.campaign import read_campaign
from records.events import Begun, Lost
from records.journal import FILE as JOURNAL
from records.journal import content_of, open_journal
from records.manifest import FILE as MANIFEST
from records.manifest import read_manifest
from tests.campaign.bundle.conftest import NAME, Checkout
from tests.packed import in_packs

#: None of them was ever given out.
TOKENS = [
    "github_pat_" + "11ABCDEFG0abcdefghijkl_" + "A" * 59, "ghp_" + "a" * 36, "ghs_" + "b" * 36,
    "glpat-" + "c" * 20, "glrt-" + "d" * 20, "hf_" + "E" * 34,
    "pypi-" + "AgEIcHlwaS5vcmc" + "f" * 40,
    "AKIA" + "0123456789ABCDEF", "ASIA" + "0123456789ABCDEF",
    "aws_secret_access_key = " + "g" * 40,
    "eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxMjM0NTY3ODkwIn0." + "dozjgNryP4J3jVmNHl0w5N",
    "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXk\n-----END OPENSSH PRIVATE KEY-----",
    "-----BEGIN PGP PRIVATE KEY BLOCK-----\nxyz\n-----END PGP PRIVATE KEY BLOCK-----",
]  # fmt: skip
PRIVATE = [
    "/home/alice/wyeast", "#SBATCH --account=proj42", "#SBATCH -A proj42", "#PBS -A proj42",
    "10.11.12.13", "192.168.7.9", "172.20.0.1", "fe80::1ff:fe23:4567:890a", "52:54:00:12:34:56",
    '"user": "alice"', "password=correct-horse", "https://me:secret@example.org/x",
    '"kernel_command_line": "quiet ro rd.luks.uuid=luks-1234 ip=10.1.1.1"',
]  # fmt: skip


@pytest.mark.parametrize("what", leaks.NEEDS)
@given(data=st.data())
def test_whatever_is_looked_for_has_a_text_without_which_nobody_looks(
    what: str, data: st.DataObject
) -> None:
    pattern = re.compile((leaks.SECRETS | leaks.HINTS)[what])
    text = data.draw(st.from_regex(pattern))
    assert any(need in text.lower() for need in leaks.NEEDS[what])
    assert next(leaks.matches(text, [(what, pattern, True)], whole=False))[0] == what


@pytest.mark.parametrize("token", TOKENS, ids=[one[:11] for one in TOKENS])
def test_a_token_is_found_and_replaced_whole(token: str, tmp_path: Path) -> None:
    text = f"line\nexport X={token} end\n".encode()
    [found] = [one for one in leaks.scan({"campaign/a": Member(text)}, tmp_path) if one.is_secret]
    assert found.places == ["campaign/a:2"]
    # No pattern says that a secret may be seen.
    assert leaks.scan({"campaign/a": Member(text)}, tmp_path, re.compile("(?s).*"))
    changed = leaks.replaced("campaign/a", text, leaks.stand_ins([found]))
    assert token.encode() not in changed and changed.startswith(b"line\nexport ")
    assert changed.endswith(b" end\n") and not leaks.scan({"campaign/a": Member(changed)}, tmp_path)


@pytest.mark.parametrize("text", PRIVATE)
def test_what_tells_of_people_and_places_is_found(text: str, tmp_path: Path) -> None:
    members = {"campaign/a.json": Member(f"x\n{text}\n".encode())}
    found = leaks.scan(members, tmp_path)
    assert found and not any(one.is_secret for one in found)
    changed = leaks.replaced("a.json", f"x\n{text}\n".encode(), leaks.stand_ins(found))
    assert leaks.scan({"campaign/a.json": Member(changed)}, tmp_path) == []


@pytest.mark.parametrize(
    ("before", "private", "after"),
    [
        ('curl "https://x/?', "token=abcdefghijkl", '"'), ("", 'token="abcdefgh\\', '" end'),
        ("a\n", "password=hunter2222", ", b"), ("a\n", "https://me:secret@", "example.org/x"),
        ("a\t", "token=abcdefghijkl", ""), ("a\n", TOKENS[1], " b"),
    ],
)  # fmt: skip
def test_what_is_replaced_in_json_leaves_it_json(
    before: str, private: str, after: str, tmp_path: Path
) -> None:
    """In it a quote, a backslash and the end of a line are two characters."""
    name, content = "campaign/a.json", json.dumps({"said": before + private + after}).encode()
    found = leaks.scan({name: Member(content)}, tmp_path)
    assert found
    changed = leaks.replaced(name, content, leaks.stand_ins(found))
    said = json.loads(changed)["said"]
    assert said.startswith(f"{before}redacted-") and said.endswith(after)
    assert leaks.scan({name: Member(changed)}, tmp_path) == []


@pytest.mark.parametrize(
    "text", ["1.10.0.3 and 10.0.3 and 110.1.2.3.4", "12:34:56", "127.0.0.1", "8.8.8.8",
             "the user x", "hf_short", "std::vector",
             '"kernel_command_line": "quiet mitigations=auto"'],
)  # fmt: skip
def test_what_tells_of_nobody_is_none(text: str, tmp_path: Path) -> None:
    assert leaks.scan({"campaign/a": Member(text.encode())}, tmp_path) == []


WHO = b"/home/alice/wyeast"


def private(here: Checkout) -> Path:
    """Have a campaign say who measured it: in a record's file, a journal, a table and a page."""
    folder = here.root / "runs" / NAME
    launch = next((folder / "launches").glob("*Linpack*"))
    (launch / "stderr").write_bytes(b"in " + WHO + b"\n")
    record = json.loads((launch / "launch.json").read_text())
    record["sha256"] = {
        name: hashlib.sha256((launch / name).read_bytes()).hexdigest()
        for name in ("stdout", "stderr")
    }
    (launch / "launch.json").write_text(json.dumps(record))
    with open_journal(folder) as journal:
        journal.append(Begun(campaign=NAME))
        for attempt in (1, 2):
            journal.append(
                Lost(launch=launch.name, attempt=attempt, cause=f"no {WHO.decode()}/stage")
            )
    (folder / "tables").mkdir()
    polars.DataFrame({"said": ["x", f"in {WHO.decode()}"], "n": [1, 2]}).write_parquet(
        folder / "tables" / "launches.parquet"
    )
    table = Table("t", "t", (Column("a"),), [Row((f"in {WHO.decode()}",))])
    href = downloads_of([table])["t"].href
    (folder / "report.html").write_text(f'<a href="{href}">t</a>')
    return folder


def test_a_bundle_is_refused_until_somebody_says_what_becomes_of_it(
    here: Checkout, capsys: pytest.CaptureFixture[str]
) -> None:
    private(here)
    bundle = here.root / ".wyeast" / "bundles" / f"{NAME}.tar.gz"
    for more in ([], ["--dry-run"], ["--keep", "/home/bob"]):
        assert make.main([NAME, *more]) == 1
        said = capsys.readouterr().err
        assert "private? a home folder is in campaign/" in said and "/home/alice" in said
        assert "REDACT=1 replaces it, and KEEP='<pattern>' says" in said
        assert not bundle.exists()
    assert make.main([NAME, "--keep", "("]) == 1
    assert "is not a valid pattern" in capsys.readouterr().err
    assert make.main([NAME, "--keep", "/home/alice"]) == 0 and bundle.exists()


def test_a_redacted_campaign_is_whole_and_says_that_it_is_redacted(
    here: Checkout, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = private(here)
    # What another version has written stays in it.
    manifest = json.loads((folder / MANIFEST).read_text()) | {"of_another_version": [1.5, "x"]}
    (folder / MANIFEST).write_text(json.dumps(manifest))
    before = read_campaign(folder)
    assert make.main([NAME, "--redact"]) == 0
    bundle = here.root / ".wyeast" / "bundles" / f"{NAME}.tar.gz"
    name, sums = unpack(bundle, tmp_path)
    campaign = tmp_path / name / "campaign"
    every = {
        path: leaks.texts_of(path.name, path.read_bytes())
        for path in campaign.rglob("*")
        if path.is_file()
    }
    assert len(every) > 30 and not [path for path, text in every.items() if b"alice" in text]
    assert b"redacted-home-1" in every[campaign / "report.html"]
    table = polars.read_parquet(campaign / "tables" / "launches.parquet")
    assert table["n"].to_list() == [1, 2] and "redacted-home" in table["said"][1]
    # Its digests hold, and so does the chain of its journal.
    after = read_campaign(campaign)
    assert [one.record.launch for one in after.sound()] == [
        one.record.launch for one in before.sound()
    ]
    entries = content_of((campaign / JOURNAL).read_bytes(), "journal").events
    assert len(entries) == 3
    assert "a home folder" in str(read_manifest(campaign).redacted)
    sent = json.loads((campaign / MANIFEST).read_text())
    assert sent["of_another_version"] == [1.5, "x"] and {*sent} - {*manifest} == {"redacted"}
    listed = json.loads((campaign / LIST).read_text())["files"]
    for file, digests in listed.items():
        was = here.root / "runs" / NAME / file
        assert digests["was"] == hashlib.sha256(was.read_bytes()).hexdigest()
        assert digests["is"] == sums[f"campaign/{file}"] != digests["was"]
    assert {"journal.jsonl", "manifest.json"} < set(listed)
    # Whoever gets it is told.
    capsys.readouterr()
    (here.root / "runs" / NAME).rename(here.root / "runs" / "away")
    assert rerun.main([str(bundle), "--dry-run"]) == 0
    assert f"{len(listed)} of its files were redacted before it was sent" in capsys.readouterr().out


def test_what_was_replaced_is_not_named(
    here: Checkout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name and the home of whoever packs it are looked for by themselves."""
    root = pwd.getpwuid(0)
    account = pwd.struct_passwd(("alice", *root[1:5], "/home/alice", *root[6:]))
    monkeypatch.setattr(pwd, "getpwuid", lambda uid: account)
    private(here)
    assert make.main([NAME, "--redact"]) == 0
    name, _ = unpack(here.root / ".wyeast" / "bundles" / f"{NAME}.tar.gz", tmp_path)
    said = str(read_manifest(tmp_path / name / "campaign").redacted)
    assert "the user name redacted-user" in said and "the home folder /redacted-home" in said
    assert "alice" not in said


def test_a_redacted_campaign_with_packs_lists_what_its_journal_was(
    here: Checkout, tmp_path: Path
) -> None:
    folder = private(here)
    in_packs(folder.rename(tmp_path / "away"), folder)
    journal = (folder / JOURNAL).read_bytes()
    assert b"alice" not in journal and make.main([NAME, "--redact"]) == 0
    name, sums = unpack(here.root / ".wyeast" / "bundles" / f"{NAME}.tar.gz", tmp_path)
    campaign = tmp_path / name / "campaign"
    assert len(read_campaign(campaign).sound()) == len(read_campaign(folder).sound()) > 0
    listed = json.loads((campaign / LIST).read_text())["files"]
    # What it said of packs is changed, though nothing of it tells of people.
    assert listed["journal.jsonl"] == {
        "was": hashlib.sha256(journal).hexdigest(), "is": sums["campaign/journal.jsonl"],
    }  # fmt: skip


def test_a_list_of_other_files_is_refused(here: Checkout, tmp_path: Path) -> None:
    folder = private(here)
    (folder / LIST).write_text(json.dumps({"files": {"manifest.json": {"is": "0" * 64}}}))
    out = tmp_path / "b.tar.gz"
    assert make.main([NAME, "--keep", "/home/alice", "--out", str(out)]) == 0
    assert rerun.main([str(out), "--dry-run"]) == 1


def test_a_secret_in_a_definition_cannot_be_replaced(tmp_path: Path) -> None:
    """It would not be the definition any more that was measured by."""
    members = {"definitions/site_configs/a": Member(TOKENS[1].encode())}
    with pytest.raises(BundleError, match="a secret is in definitions/site_configs/a:1"):
        redacted(members, leaks.scan(members, tmp_path), members)


TOKEN = TOKENS[1]
#: Columns of a table in which nobody looks for a text.
ODD = {
    "categories": polars.Series("a", [TOKEN, "b"], dtype=polars.Categorical),
    "an enumeration": polars.Series("a", [TOKEN, "b"], dtype=polars.Enum([TOKEN, "b"])),
    "bytes": polars.Series("a", [f"x {TOKEN} y".encode(), None]),
    "lists": polars.Series("a", [["b", TOKEN], None]),
    "records": polars.Series("a", [{"b": TOKEN}, {"b": None}]),
    "names": polars.Series(TOKEN, [1, 2]),
}


@pytest.mark.parametrize("kind", ODD)
def test_a_token_is_found_in_any_column_of_a_table(kind: str, tmp_path: Path) -> None:
    out = io.BytesIO()
    polars.DataFrame([ODD[kind], polars.Series("n", [1.5, 2.5])]).write_parquet(out)
    name = "campaign/tables/t.parquet"
    found = leaks.scan({name: Member(out.getvalue())}, tmp_path)
    assert [one.what for one in found if one.is_secret] == ["a token of GitHub"]
    after = leaks.replaced(name, out.getvalue(), leaks.stand_ins(found))
    assert not leaks.scan({name: Member(after)}, tmp_path)
    assert polars.read_parquet(io.BytesIO(after))["n"].to_list() == [1.5, 2.5]


def test_a_token_is_found_in_what_gzip_has_packed(tmp_path: Path) -> None:
    name = "campaign/reframe/old.log.gz"
    content = gzip.compress(f"said {TOKEN} to it".encode())
    [found] = leaks.scan({name: Member(content)}, tmp_path)
    after = leaks.replaced(name, content, leaks.stand_ins([found]))
    assert re.fullmatch(rb"said redacted-\S+ to it", gzip.decompress(after))
    assert leaks.replaced(name, b"no gzip", {b"gzip": b"x"}) == b"no gzip"
