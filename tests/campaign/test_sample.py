"""A part of a campaign for version control: no name of a machine in it, every number as it was."""

import json
import re
import shutil
from pathlib import Path

import pytest

from analysis.campaign import (
    CampaignError,
    find_campaign,
    is_imported,
    read_campaign,
    read_manifest,
)
from analysis.history_index import history_rows
from campaign import sample
from campaign.bundle import leaks
from campaign.bundle.archive import Member
from tests.analysis.synthetic import TWICE, Synthetic

PROJECT = Path(__file__).resolve().parents[2]
COMMITTED = PROJECT / "runs" / "sample"
HOST = "rack7.example.org"
CELLS = "PointToPoint .*|Linpack grid=1x1 .*"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Return a campaign that names its host and its folders wherever a real one may."""
    machine = {"hostname": HOST, "cpu_model": "a CPU", "cores": 2, "memory_bytes": 1,
               "kernel_command_line": "quiet init=/sbin/own -- --key=1"}  # fmt: skip
    facts = {"machine": machine, "site_data": {"hostnames": ["rack.*"]}}
    runs = tmp_path / "check-out" / "runs"
    folder = Synthetic(runs / "c", TWICE, 2, pairs=["Send/Recv"], facts=facts).write()
    (folder / "nodes").mkdir()
    (folder / "nodes" / "rack7-0123456789ab.json").write_text(json.dumps(machine))
    for launch in (folder / "launches").iterdir():
        stdout = (launch / "stdout").read_text().replace('["a", "a"]', f'["{HOST}", "rack7"]')
        (launch / "stdout").write_text(stdout)
        (launch / "job.sh").write_text(
            f"cc -L{runs.parent}/lib {Path.home()}/x.c -o /tmp/x # Send/Recv in B/s on rack7\n"
        )
        facts_of = json.loads((launch / "launch.json").read_text())
        facts_of["node"] = {"facts": "nodes/rack7-0123456789ab.json"}
        (launch / "launch.json").write_text(json.dumps(facts_of))
    return folder


def made(source: Path, *words: str) -> tuple[int, Path]:
    target = source.parents[2] / "sample"
    return sample.main([str(source), "--out", str(target), "--cells", CELLS, *words]), target


def texts_of(folder: Path) -> dict[str, str]:
    """Return what a sample holds, without what analysis made of it."""
    files = [folder / "manifest.json", folder / "imported.json", *folder.glob("nodes/*"),
             *folder.glob("launches/*/*")]  # fmt: skip
    return {path.relative_to(folder).as_posix(): path.read_text() for path in files}


def test_names_are_replaced_and_numbers_kept(source: Path) -> None:
    code, target = made(source)
    assert code == 0
    texts = texts_of(target)
    together = "\n".join([*texts, *texts.values()])
    for name in ("rack", "example.org", str(source.parents[1]), f"{Path.home()}/", "/tmp/", "key="):
        assert name not in together
    assert "cc -L/checkout/lib /home-folder/x.c -o /temporary/x # Send/Recv in B/s on node1" in (
        together
    )
    before, after = read_campaign(source), read_campaign(target)
    kept = {launch.record.launch: launch for launch in after.launches}
    assert after.problems == [] and 0 < len(kept) < len(before.launches)
    for name, launch in kept.items():
        was, now = (folder / "launches" / name for folder in (source, target))
        expected = (
            (was / "stdout").read_text().replace(f'["{HOST}", "rack7"]', '["node1", "node1"]')
        )
        assert (now / "stdout").read_text() == expected
        old, new = (json.loads((folder / "launch.json").read_text()) for folder in (was, now))
        assert old == new | {"node": old["node"]}
        assert (target / str(launch.record.node["facts"])).is_file() and launch.output is not None
    said = f"{len(kept)} of {len(before.launches)} launches; paths and host names replaced"
    assert after.manifest["sample"].startswith(said)


def test_again_it_is_the_same(source: Path) -> None:
    _, target = made(source)
    first = texts_of(target)
    (target / "report.html").write_text("of the first")
    assert made(source) == (0, target) and texts_of(target) == first
    assert not (target / "report.html").exists()


def test_a_dry_run_writes_nothing(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, target = made(source, "--dry-run")
    assert code == 0 and not target.exists()
    assert "nodes/node1-0123456789ab.json" in capsys.readouterr().out


@pytest.mark.parametrize(
    "said", ["/scratch/project42/x", "-L/scratch/lib", "ghp_" + 36 * "a", "password=abcdefgh"]
)
def test_what_may_name_somebody_is_refused(
    source: Path, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    launch = next((source / "launches").glob("*PointToPoint*"))
    (launch / "stderr").write_text(f"warning:\n {said}\n")
    code, target = made(source)
    assert code == 1 and not target.exists()
    assert f"launches/{launch.name}/stderr:2" in capsys.readouterr().err


def test_no_campaign_is_overwritten(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = source.parents[2] / "sample"
    shutil.copytree(source, target)
    assert made(source)[0] == 1
    assert "no campaign is overwritten" in capsys.readouterr().err
    assert (target / "manifest.json").read_text() == (source / "manifest.json").read_text()


@pytest.mark.parametrize("pattern", ["Nothing", "("])
def test_cells_that_are_none_are_a_sentence(
    source: Path, pattern: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert made(source, "--cells", pattern)[0] == 1
    assert pattern in capsys.readouterr().err


def test_a_sample_is_not_of_a_sample(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert sample.main([str(COMMITTED), "--out", str(tmp_path / "s")]) == 1
    assert "is a sample itself" in capsys.readouterr().err


def test_nothing_in_the_committed_sample_names_a_machine() -> None:
    texts = texts_of(COMMITTED)
    assert sample.foreign_paths(texts) == []
    hosts = sample.hosts_of(read_manifest(COMMITTED), texts)
    assert hosts and all(re.fullmatch(r"node\d+", host) for host in hosts)
    members = {name: Member(text.encode()) for name, text in texts.items()}
    assert leaks.scan(members, COMMITTED) == ([], [])
    personal = re.compile(r"(?<![\w.])/(root|home|Users|tmp|work|scratch|mnt|srv|data)\b")
    assert not [name for name, text in texts.items() if personal.search(text)]
    assert sum(map(len, texts.values())) < 1_500_000


def test_the_committed_sample_is_whole_and_passed_over(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    shutil.copytree(COMMITTED, runs / "sample")
    found = read_campaign(find_campaign(tmp_path, "sample"))
    assert found.problems == [] and is_imported(found.path)
    assert {launch.record.round for launch in found.sound()} == {1, 2, 3}
    said: list[str] = []
    assert history_rows(runs, said.append).is_empty() and said == []
    with pytest.raises(CampaignError, match="holds no campaign yet"):
        find_campaign(tmp_path, "latest")
