"""A part of a campaign for version control: no name of a machine in it, every number as it was."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from analysis.history.index import history_rows
from campaign.bundle import leaks, sample
from containers.guarded import BEFORE_DEV
from records import archive
from records.archive import Member
from records.base import CampaignError
from records.campaign import find_campaign, is_imported, read_campaign
from records.manifest import read_manifest
from records.sample import ARCHIVE, sample_folder
from tests.analysis.support.synthetic import TWICE, Synthetic

PROJECT = Path(__file__).resolve().parents[3]
COMMITTED = sample_folder(PROJECT)
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
            'pid=${old##*/own.} mktemp "${TMPDIR:-/tmp}/own.$$" '
            f"{BEFORE_DEV}/dev/shm\n"
        )
        facts_of = json.loads((launch / "launch.json").read_text())
        facts_of["node"] = {"facts": "nodes/rack7-0123456789ab.json"}
        (launch / "launch.json").write_text(json.dumps(facts_of))
    return folder


def made(source: Path, *words: str) -> tuple[int, Path]:
    """Make a sample as of another checkout; return the exit code and that checkout."""
    there = source.parents[2] / "there"
    out = str(there / ARCHIVE)
    return sample.main([str(source), "--out", out, "--cells", CELLS, *words]), there


def texts_of(folder: Path) -> dict[str, str]:
    """Return what a sample holds, without what analysis made of it."""
    files = [folder / "manifest.json", folder / "imported.json", *folder.glob("nodes/*"),
             *folder.glob("launches/*/*")]  # fmt: skip
    return {path.relative_to(folder).as_posix(): path.read_text() for path in files}


def test_names_are_replaced_and_numbers_kept(source: Path) -> None:
    code, there = made(source)
    assert code == 0
    target = find_campaign(there, "sample")
    texts = texts_of(target)
    # Whoever's home is called as a process's own root is not named by that.
    together = "\n".join([*texts, *texts.values()]).replace(f"{BEFORE_DEV}/", "")
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
    _, there = made(source)
    first = (there / ARCHIVE).read_bytes()
    for path in source.rglob("*"):
        os.utime(path, (0, 0))
    assert made(source) == (0, there) and (there / ARCHIVE).read_bytes() == first


def test_it_is_unpacked_where_it_is_not_what_the_archive_holds(source: Path) -> None:
    """What is whole stays with the report beside it; damage and another archive replace it all."""
    _, there = made(source)
    folder = find_campaign(there, "sample")
    assert folder == there / "runs" / "sample"
    first = texts_of(folder)
    [launch, *_] = sorted((folder / "launches").iterdir())

    def found_again(is_kept: bool) -> None:
        (folder / "report.html").touch()
        assert find_campaign(there, "sample") == folder and texts_of(folder) == first
        assert (folder / "report.html").exists() == is_kept

    found_again(is_kept=True)
    (launch / "stdout").write_text("another")
    found_again(is_kept=False)
    (launch / "stdout").unlink()
    found_again(is_kept=False)
    shutil.copytree(launch, launch.with_name("round009_of_another"))
    found_again(is_kept=False)
    other = ["--out", str(there / ARCHIVE), "--cells", "Linpack grid=1x1 .*"]
    assert sample.main([str(source), *other]) == 0
    (folder / "report.html").touch()
    assert 0 < len(texts_of(find_campaign(there, "sample"))) < len(first)
    assert not (folder / "report.html").exists()
    assert {path.name for path in (there / "runs").iterdir()} == {"sample", "sample.tar.gz"}


def test_many_at_once_find_one_sample(source: Path) -> None:
    """Nobody reads what another is unpacking or replacing."""
    _, there = made(source)
    ask = "import sys; from pathlib import Path; from records.sample import sample_folder"
    ask += "; print(len(list(sample_folder(Path(sys.argv[1])).glob('launches/*/stdout'))))"
    readers = [
        subprocess.Popen([sys.executable, "-c", ask, str(there)], cwd=PROJECT, text=True,
                         stdout=subprocess.PIPE)
        for _ in range(4)
    ]  # fmt: skip
    counted = {reader.communicate()[0] for reader in readers}
    launches = len(list((there / "runs" / "sample" / "launches").iterdir()))
    assert counted == {f"{launches}\n"} and launches > 0


def test_its_lock_follows_no_link(source: Path, tmp_path: Path) -> None:
    _, there = made(source)
    lock = there / ".wyeast" / "locks" / "sample.lock"
    lock.parent.mkdir(parents=True)
    lock.symlink_to(tmp_path / "made")
    with pytest.raises(CampaignError, match=r"cannot be written"):
        find_campaign(there, "sample")
    assert not (tmp_path / "made").exists() and not (there / "runs" / "sample").exists()


def test_a_damaged_archive_is_a_sentence(source: Path) -> None:
    _, there = made(source)
    content = (there / ARCHIVE).read_bytes()
    for damaged in (content[: len(content) // 2], b"", b"no archive"):
        (there / ARCHIVE).write_bytes(damaged)
        with pytest.raises(CampaignError, match=r"sample\.tar\.gz"):
            find_campaign(there, "sample")
    assert {path.name for path in (there / "runs").iterdir()} == {"sample.tar.gz"}


def test_a_dry_run_writes_nothing(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, there = made(source, "--dry-run")
    assert code == 0 and not there.exists()
    assert "nodes/node1-0123456789ab.json" in capsys.readouterr().out


@pytest.mark.parametrize(
    "said", ["/scratch/project42/x", "-L/scratch/lib", "ghp_" + 36 * "a", "password=abcdefgh"]
)
def test_what_may_name_somebody_is_refused(
    source: Path, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    launch = next((source / "launches").glob("*PointToPoint*"))
    (launch / "stderr").write_text(f"warning:\n {said}\n")
    code, there = made(source)
    assert code == 1 and not there.exists()
    assert f"launches/{launch.name}/stderr:2" in capsys.readouterr().err


def test_nothing_else_is_overwritten(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = source.parents[2] / "there" / ARCHIVE
    out.parent.mkdir(parents=True)
    members = {"a": Member(b"a")}
    archive.write(out, "a-bundle", members, archive.sums_of(members), 0)
    for content in (out.read_bytes(), b"anything"):
        out.write_bytes(content)
        assert made(source)[0] == 1
        assert str(out) in capsys.readouterr().err
        assert out.read_bytes() == content


@pytest.mark.parametrize("pattern", ["Nothing", "("])
def test_unknown_cells_are_refused_with_a_sentence(
    source: Path, pattern: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert made(source, "--cells", pattern)[0] == 1
    assert pattern in capsys.readouterr().err


def test_a_sample_is_not_of_a_sample(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert sample.main([str(COMMITTED), "--out", str(tmp_path / "s.tar.gz")]) == 1
    assert "is itself a sample" in capsys.readouterr().err


def test_hosts_of_a_large_world_are_found_in_what_its_header_says() -> None:
    text = '{"record":"header","hosts":[["deep/n1",600],["n2.site",600]],"processors":[["0",1200]]}'
    hosts = sample.hosts_of(read_manifest(COMMITTED), {"launches/one/stdout": text})
    assert {"deep/n1", "n2.site", "n2"} <= set(hosts) and not {"0", "600"} & set(hosts)


def test_nothing_in_the_committed_sample_names_a_machine() -> None:
    texts = texts_of(COMMITTED)
    assert sample.foreign_paths(texts, read_manifest(COMMITTED).images) == []
    hosts = sample.hosts_of(read_manifest(COMMITTED), texts)
    assert hosts and all(re.fullmatch(r"node\d+", host) for host in hosts)
    members = {name: Member(text.encode()) for name, text in texts.items()}
    assert leaks.scan(members, COMMITTED) == []
    personal = re.compile(r"(?<![\w.])/(root|home|Users|tmp|work|scratch|mnt|srv|data)\b")
    assert not [name for name, text in texts.items() if personal.search(text)]
    assert sum(map(len, texts.values())) < 4_000_000


def test_the_committed_sample_is_whole_and_passed_over(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    runs.mkdir()
    shutil.copy(PROJECT / ARCHIVE, runs)
    found = read_campaign(find_campaign(tmp_path, "sample"))
    assert found.problems == [] and is_imported(found.path)
    assert {launch.record.round for launch in found.sound()} >= {1, 2, 3}
    said: list[str] = []
    assert history_rows(runs, said.append).is_empty() and said == []
    with pytest.raises(CampaignError, match="holds no campaign yet"):
        find_campaign(tmp_path, "latest")
