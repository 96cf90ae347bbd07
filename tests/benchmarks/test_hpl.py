"""HPL by hand, with two MPIs: its input, its output, and that it fails aloud."""

import subprocess
import tarfile
from pathlib import Path

import pytest

from containers.sources import fetch_archive, load_sources
from records.ending import told_in
from records.hpl import read_hpl_output
from tests.benchmarks.conftest import PROJECT, UNSHARE, Built, of_all_workers

pytestmark = pytest.mark.real


def test_hpl_dat_refuses_what_does_not_fit(one: Built, tmp_path: Path) -> None:
    command = [str(one.build / "bin/hpl_dat"), "--p", "1", "--q", "2", "--nb", "64", "--n"]

    def run(*more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*command, *more], capture_output=True, text=True, check=False)

    too_large = run("2000,9000000")
    assert too_large.returncode == 1 and too_large.stdout == ""
    assert "N=9000000 needs 648000.00 GB" in too_large.stderr
    # 8 N^2 = 512 MB at N = 8000: exactly at the limit fits, one more does not.
    limit = ["--memory-bytes-per-node", "640000000"]
    assert run("8000", *limit).returncode == 0
    assert run("8001", *limit).returncode == 1
    assert run("8001", *limit, "--nodes", "2").returncode == 0
    for bad in (["0"], ["10,"], ["x"], ["5", "--p", "0"], ["5", "--memory-fraction", "1.5"]):
        done = run(*bad)
        assert done.returncode == 2 and done.stderr.startswith("hpl_dat: ")
        assert len(done.stderr.splitlines()) == 1


def test_hpl_dat_is_the_thesis_appendix(one: Built) -> None:
    rows = (PROJECT / "literature/kearns2003/hpl_dat.csv").read_text().splitlines()[1:]
    labels = {"swap", "depth", "bcast", "rfact", "ndiv", "nbmin", "pfact", "threshold"}
    values = {
        name: value for name, _, value, *_ in (row.split(",") for row in rows) if name in labels
    }
    command = [str(one.build / "bin/hpl_dat"), "--p", "4", "--q", "6", "--n", "2000", "--nb", "150"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    marks = {
        "swap": "SWAP", "depth": "DEPTHs", "bcast": "BCASTs", "rfact": "RFACTs", "ndiv": "NDIVs",
        "nbmin": "NBMINs", "pfact": "PFACTs", "threshold": "threshold",
    }  # fmt: skip
    for name, value in values.items():
        [line] = [
            line for line in text.splitlines()
            if marks[name] in line.split() and not line.startswith("80")
        ]  # fmt: skip
        assert line.split()[0] == value, name
    assert "swapping threshold" in text and set(values) == labels


@pytest.fixture(scope="session")
def hpcc_source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return HPL's source, unpacked from the archive that sources.lock pins."""
    sources = load_sources(PROJECT)
    archive = fetch_archive(
        sources.archives["hpcc-1.5.0"], PROJECT / ".wyeast", sources.debian.suite
    )
    folder = tmp_path_factory.mktemp("hpcc")
    with tarfile.open(archive) as tar:
        # Pinned by its digest, so its member names need no filter (which Python 3.11.2 lacks).
        tar.extractall(folder)
    return folder / "hpcc-1.5.0"


@pytest.fixture(scope="session")
def hpl(built: Built, hpcc_source: Path, tmp_path_factory: pytest.TempPathFactory) -> Built:
    """Return HPL, built as quickly as a compiler can: nothing asks how fast it is."""
    folder = of_all_workers(tmp_path_factory, f"hpl-{built.implementation}")
    found = Built(built.implementation, built.prefix, folder, "-O0")
    done = found.make("-j2", f"HPL_SOURCE={hpcc_source}", "xhpl", f"{folder}/bin/hpl_dat")
    assert done.returncode == 0, done.stderr
    return found


def test_hpl_solves_and_checks(hpl: Built, tmp_path: Path) -> None:
    missing = hpl.run("xhpl", folder=tmp_path)
    assert missing.returncode == 1 and "HPL.dat cannot be read" in missing.stderr
    subprocess.run(
        [hpl.build / "bin/hpl_dat", "--p", "1", "--q", "2", "--n", "100,200", "--nb", "32",
         "--output", "HPL.dat"],
        cwd=tmp_path, check=True,
    )  # fmt: skip
    done = hpl.run("xhpl", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    (tmp_path / "out").write_text(done.stdout)
    runs = read_hpl_output(tmp_path / "out")
    assert [(run.n, run.nb, run.p, run.q, run.passed) for run in runs] == [
        (100, 32, 1, 2, True), (200, 32, 1, 2, True),
    ]  # fmt: skip
    # None was stopped, which is counted.
    told = told_in(tmp_path / "out")
    assert (told.stopped, told.carriers) == (0, 0)
    assert told.placement and told.waiting


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("100 ", "-7 ", "illegal value"),
        ("100 ", "0 ", "nothing was solved"),
        ("1            Ps", "5            Ps", "asks for more ranks than there are"),
        ("8            memory alignment in double (> 0)\n", "", "30 lines, and HPL reads 31"),
        # A residual that does not pass is a failure, and HPL says so itself.
        ("16.0", "1e-9", None),
    ],
)
def test_hpl_fails_aloud(
    hpl: Built, old: str, new: str, sentence: str | None, tmp_path: Path
) -> None:
    command = [str(hpl.build / "bin/hpl_dat"), "--p", "1", "--q", "2", "--n", "100", "--nb", "32"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert old in text
    (tmp_path / "HPL.dat").write_text(text.replace(old, new))
    done = hpl.run("xhpl", folder=tmp_path)
    assert done.returncode != 0
    if sentence:
        said = [line for line in done.stderr.splitlines() if line.startswith("xhpl: ")]
        assert len(said) == 1 and sentence in said[0]
    else:
        assert "FAILED" in done.stdout
        (tmp_path / "out").write_text(done.stdout)
        assert not read_hpl_output(tmp_path / "out")[0].passed


@pytest.mark.parametrize(
    ("group", "file"),
    [
        ("0::/job/step", "job/memory.max"),
        ("0::/job/step", "job/step/memory.max"),
        ("0::/", "memory.max"),
        ("4:cpu,cpuacct:/\n9:memory:/job/step\n0::/", "memory/job/memory.limit_in_bytes"),
    ],
)
def test_hpl_dat_heeds_the_control_group(one: Built, group: str, file: str, tmp_path: Path) -> None:
    """A job's limit, on any level and in both versions of control groups, is the memory."""
    (tmp_path / "groups").write_text(group + "\n")
    limit = tmp_path / "limits" / file
    limit.parent.mkdir(parents=True)
    script = (
        f"mount --bind {tmp_path}/groups /proc/$$/cgroup && "
        f"mount --bind {tmp_path}/limits /sys/fs/cgroup && "
        f"exec {one.build}/bin/hpl_dat --p 1 --q 2 --n 8000 --nb 64 --output /dev/null $0"
    )
    command = [*UNSHARE, "--mount", "sh", "-c", script]
    # A campaign always says what the site's nodes have; the job may have less of it.
    for option in ("", "--memory-bytes-per-node=640000000"):
        for allowed, code in (("640000000", 0), ("639000000", 1), ("max", 0)):
            limit.write_text(allowed + "\n")
            done = subprocess.run([*command, option], capture_output=True, text=True, check=False)
            assert done.returncode == code, done.stderr
            assert ("N=8000 needs 0.51 GB" in done.stderr) == bool(code)
            if option and code:
                assert "node(s), as the control group limits it, is 0.51 GB" in done.stderr
