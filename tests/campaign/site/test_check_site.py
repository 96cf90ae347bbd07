"""What a site is told to fix, before a job and after the preflights."""

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from campaign.site import check as check_site
from containers import apptainer, trust
from containers.trust import TrustError
from records.reframe_reports import keep_last
from site_configs.machine import Machine
from tests.site_configs.fake_machine import PBS, SINFO, SLURM, machine
from tests.whole_records import launch_facts

PROJECT = Path(__file__).resolve().parents[3]
IMAGES = ["openmpi-5.0.11", "mpich-5.0.2", "lam-7.1.4"]
MIXED = SINFO.replace("2|128|2|32", "2|128|2|64")
SITE = {
    "name": "mine", "scheduler": "slurm", "launch": "srun", "access": ["--partition=batch"],
    "nodes": 4, "cores_per_node": 64, "memory_bytes_per_node": 200 << 30,
    "places": {key: f"site_configs/mine/site.yaml:{line}"
               for key, line in (("access", 3), ("nodes", 4), ("cores_per_node", 5))},
}  # fmt: skip


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a checkout with a site's files and the table of images, none of which is built."""
    (tmp_path / "containers").mkdir()
    table = PROJECT / "containers/implementations.yaml"
    (tmp_path / "containers/implementations.yaml").symlink_to(table)
    (tmp_path / "site_configs/mine").mkdir(parents=True)
    for name in ("site.yaml", "references.yaml"):
        (tmp_path / "site_configs/mine" / name).write_text("# Nothing.\n")
    return tmp_path


def findings(root: Path, here: Machine, **changes: Any) -> list[check_site.SiteFinding]:
    site = {**SITE, **changes}
    return [*check_site.of_scheduler(site, here), *check_site.of_pmi(root, site, IMAGES, here)]


def fixes(root: Path, here: Machine, **changes: Any) -> list[str]:
    found = findings(root, here, **changes)
    assert all(finding.bad for finding in found)
    return [finding.sentence for finding in found]


def test_a_right_site_has_nothing_to_fix(root: Path) -> None:
    assert fixes(root, machine(root, SLURM)) == []
    # No partition is asked for: the default one.
    assert fixes(root, machine(root, SLURM), access=["--qos=high", "-q low"]) == []
    queue = {"scheduler": "pbs", "launch": "mpiexec", "access": ["-q long"], "cores_per_node": 36}
    memory = {"memory_bytes_per_node": 100 << 30}
    assert fixes(root, machine(root / "pbs", PBS), nodes=1, **queue, **memory) == []


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"access": ["--partition=gpu"]},
            "site_configs/mine/site.yaml:3: the scheduler has no partition or queue `gpu`, which",
        ),
        ({"access": ["--qos=high", "-q low", "-p gpu"]}, "available: batch, debug"),
        ({"access": ["-p batsh"]}, "batch, debug; did you mean `batch`?"),
        (
            {"nodes": 43},
            "site_configs/mine/site.yaml:4: `nodes` is 43, but it is 42 according to",
        ),
        (
            {"cores_per_node": 65},
            "site.yaml:5: `cores_per_node` is 65, but it is 64 according to sinfo",
        ),
        (
            {"access": ["--partition=debug"]},
            "`nodes` is 4, but it is 2 according to sinfo, partition debug",
        ),
        ({"scheduler": "lsf", "launch": "mpiexec"}, "needs bsub, bjobs, bkill, not found on PATH"),
    ],
)
def test_what_the_scheduler_does_not_have(
    root: Path, changes: dict[str, Any], sentence: str
) -> None:
    [said] = fixes(root, machine(root, SLURM), **changes)
    assert sentence in said


@pytest.mark.parametrize(
    ("key", "most", "more"),
    [("cores_per_node", 64, 65), ("memory_bytes_per_node", 257001 << 20, 300 << 30)],
)
def test_a_node_that_may_have_more_stops_nothing(
    root: Path, key: str, most: int, more: int
) -> None:
    here = machine(root, SLURM | {"sinfo": f'echo "{MIXED}"'})
    assert findings(root, here, **{key: most}) == []
    [finding] = findings(root, here, **{key: more})
    assert f"`{key}` is {more}, but it is" in finding.sentence and not finding.bad


def test_more_cores_than_the_largest_node_has_are_impossible(root: Path) -> None:
    here = machine(root, SLURM | {"sinfo": f'echo "{MIXED}"'})
    assert not findings(root, here, cores_per_node=128)[0].bad
    [said] = fixes(root, here, cores_per_node=129)
    assert "site.yaml:5: `cores_per_node` is 129, but it is 64 to 128 according to sinfo" in said


def test_keys_are_found_in_the_file_that_has_them(root: Path) -> None:
    """Of the overrides where they have the key."""
    (root / "more.yaml").write_text("# One line.\nnodes: 5\n")
    (root / "site_configs/mine/site.yaml").write_text("nodes: 4\noverrides: more.yaml\nlaunch: x\n")
    site = check_site.with_places(root, "mine", {})
    assert check_site.place_of(site, "nodes") == "more.yaml:2"
    assert check_site.place_of(site, "launch") == "site_configs/mine/site.yaml:3"
    assert check_site.place_of(site, "access") == "site_configs/mine/site.yaml"


def test_accounting_that_is_off(root: Path) -> None:
    here = machine(root, SLURM | {"scontrol": "exit 0"})
    [said] = fixes(root, here)
    assert "write `squeue`" in said and fixes(root, here, scheduler="squeue") == []


def test_a_pmi_that_srun_does_not_have(root: Path) -> None:
    srun = {"srun": 'echo "MPI plugin types are...\n\tpmi2"'}
    [said] = fixes(root, machine(root, SLURM | srun))
    assert said.startswith("openmpi-5.0.11 starts by `srun --mpi=pmix`")
    assert "plugin mpi/pmix installed" in said


def test_what_a_site_has_installed_is_looked_at_without_a_container(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "openmpi-5.0.11+site"
    (root / "prefix" / "bin").mkdir(parents=True)
    entry = {"prefix": str(root / "prefix"), "family": "openmpi", "version": "5.0.11"}
    site = {**SITE, "installations": {"openmpi-5.0.11": entry}}
    [finding] = check_site.of_installations(root, site, [name, "mpich-5.0.2"])
    assert finding.bad and finding.sentence.startswith(f"site_configs/mine/site.yaml: {name}: ")
    assert "has no program preflight: give the prefix" in finding.sentence
    shutil.copy("/bin/true", root / "prefix" / "bin" / "preflight")
    assert [*check_site.of_installations(root, site, [name])] == []
    # It starts as an image of its family does.
    srun = machine(root, SLURM | {"srun": 'echo "MPI plugin types are...\n\tpmi2"'})
    [finding] = check_site.of_pmi(root, site, [name], srun)
    assert finding.sentence.startswith(f"{name} starts by `srun --mpi=pmix`")
    assert check_site.launcher_of(root, site, name) == "srun --mpi=pmix"
    # Whether containers can start does not matter to it.
    monkeypatch.setattr(check_site, "command", lambda *_: pytest.fail("Apptainer was asked"))
    assert [*check_site.of_apptainer(root, site, [name])] == []


def test_what_is_left_to_do_is_said_and_stops_nothing(root: Path) -> None:
    (root / "site_configs/mine/site.yaml").write_text("# to do: the account.\naccess: []\n")
    [finding] = check_site.left_to_do(root, "mine")
    assert not finding.bad
    assert finding.sentence == "site_configs/mine/site.yaml:1: still to do: the account."


def test_images_that_are_not_there(root: Path) -> None:
    found = list(check_site.of_images(root, SITE, IMAGES))
    assert len(found) == 3 and "make images IMAGES=openmpi-5.0.11" in found[0].sentence


def test_nothing_of_an_image_runs_that_the_site_refuses(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Apptainer is asked for its version alone where no image is admitted, else by the first."""
    asked = root / "asked"
    here = machine(root, {"apptainer": f'echo "$@" >>{asked}'})
    monkeypatch.setenv("PATH", f"{here.path}:{os.environ['PATH']}")
    monkeypatch.setattr(apptainer, "apptainer_command", lambda: "apptainer")
    admitted = ["lam-7.1.4"]

    alone = {**SITE, "launch": "mpiexec"}

    def admit(root: Path, name: str, site: dict[str, Any]) -> apptainer.Admitted:
        assert site in (SITE, alone)
        if name not in admitted:
            raise TrustError(f"{name} is not signed")
        (root / name).touch()
        return apptainer.Admitted(root / name, apptainer.state_of(root / name))

    monkeypatch.setattr(trust, "admit", admit)
    assert list(check_site.of_apptainer(root, SITE, IMAGES)) == []
    said = asked.read_text()
    assert said.endswith(f"{root}/lam-7.1.4 true\n")
    # As launches are: containers of a node share its process ids.
    assert "--no-mount=cwd" in said and "--pid" not in said
    assert len(list(check_site.of_images(root, SITE, IMAGES))) == 2
    admitted.clear()
    assert list(check_site.of_apptainer(root, SITE, IMAGES)) == []
    assert asked.read_text().splitlines()[1:] == ["--version"]
    admitted.append("lam-7.1.4")
    assert list(check_site.of_apptainer(root, alone, IMAGES)) == []
    assert "--pid --ipc" in asked.read_text().splitlines()[2]


def test_an_apptainer_that_cannot_start(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = "FATAL: Failed to create user namespace: not allowed"
    broken = machine(root, {"apptainer": f"echo {said} >&2; exit 255"})
    monkeypatch.setenv("PATH", broken.path)
    [finding] = check_site.of_apptainer(root, SITE, [])
    said = "cannot start here: Failed to create user namespace: not allowed; containers need user"
    assert said in finding.sentence


@pytest.mark.parametrize(
    ("said", "helps"),
    [
        (
            "container creation failed: mount hook function failure: mount proc->/proc error: "
            "while mounting proc: can't mount proc filesystem to /proc: operation not permitted",
            "(--security-opt systempaths=unconfined; Podman: unmask=ALL; Kubernetes: procMount",
        ),
        (
            "Failed to create user namespace: not allowed to create user namespace",
            "(user.max_user_namespaces above 0",
        ),
        ("Failed to open /dev/fuse: Permission denied", "(mode 0666)"),
    ],
)
def test_a_container_that_does_not_start_has_its_cause_and_what_helps(
    root: Path, monkeypatch: pytest.MonkeyPatch, said: str, helps: str
) -> None:
    words = shlex.quote(f"\x1b[31mERROR: {said}\nFATAL: it failed")
    broken = machine(root, {"apptainer": f"printf '%s\\n' {words} >&2; exit 255"})
    monkeypatch.setenv("PATH", broken.path)
    [finding] = check_site.of_apptainer(root, SITE, [])
    assert f"cannot start here: {said}; " in finding.sentence
    assert helps in finding.sentence and finding.sentence.isprintable()


@pytest.mark.real
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can cover a part of /proc")
@pytest.mark.parametrize("launch", ["mpiexec", "srun"])
def test_a_covered_proc_is_reported_where_launches_need_their_own(launch: str) -> None:
    """As in a container of Docker, in a mount namespace; containers that share it can start."""
    script = (
        "import sys; from campaign.site import check; "
        f"site = {{'name': 'local', 'scheduler': 'local', 'launch': {launch!r}}}; "
        "[print(one.sentence) for one in check.of_apptainer(check.ROOT, site, ['mpich-5.0.2'])]"
    )
    covered = 'mount -t tmpfs tmpfs /proc/sys/kernel && exec "$@"'
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", covered, "sh", sys.executable, "-c", script],
        cwd=PROJECT, env={**os.environ, "WYEAST_ROOT": str(PROJECT), "PYTHONPATH": str(PROJECT)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    if launch == "srun":
        assert done.stdout == ""
    else:
        assert "a launch has process ids of its own, for which the kernel mounts no" in done.stdout


def test_more_cores_than_the_machine_gives() -> None:
    site = {**SITE, "scheduler": "local", "launch": "mpiexec", "cores_per_node": 10**6}
    [finding] = check_site.of_this_machine(site)
    said = "site_configs/mine/site.yaml:5: `cores_per_node` is 1000000, but this machine has"
    assert finding.sentence.startswith(said)


def test_every_image_has_an_outcome(root: Path) -> None:
    """Of a launch by its record, of one that never was by ReFrame's report."""
    campaign = root / "runs/mine"
    (campaign / "reframe").mkdir(parents=True)
    cases = [
        ("ContainerImage %implementation=mpich-5.0.2 ~mine", "fail", "sanity error: no such file"),
        ("ContainerImage %implementation=openmpi-5.0.11 ~mine", "pass", None),
        ("Preflight %image.implementation=openmpi-5.0.11", "fail", "sanity error: one rank"),
    ]
    keys = ("display_name", "result", "fail_reason")
    report = {"runs": [{"testcases": [dict(zip(keys, case, strict=True)) for case in cases]}]}
    (campaign / "reframe/report.json").write_text(json.dumps(report))
    keep_last(campaign)
    for name, outcome, sentence in (("openmpi-5.0.11", "failed", "1 rank"), ("a-1", "sound", None)):
        folder = campaign / "launches" / f"round001_{name}"
        folder.mkdir(parents=True)
        record = launch_facts(folder.name, implementation=name, outcome=outcome, sentence=sentence)
        (folder / "launch.json").write_text(json.dumps(record))
    became = check_site.outcomes(campaign, ["a-1", *IMAGES])
    assert list(became.values())[:3] == ["ok", "1 rank", "sanity error: no such file"]
    assert became["lam-7.1.4"].startswith("it did not run; see ")
    table = check_site.table(root, SITE, became, {"mpich-5.0.2": "eth0"})
    started = {row.values[0]: row.values[1] for row in table.rows}
    assert {row.values[0]: row.values[2] for row in table.rows if row.values[2]} == {
        "mpich-5.0.2": "eth0"
    }
    assert started["openmpi-5.0.11"] == "srun --mpi=pmix"
    assert started["lam-7.1.4"] == "srun, and its own launcher"


def look_only(root: Path, script: str) -> subprocess.CompletedProcess[str]:
    here = machine(root, {"apptainer": script})
    return subprocess.run(
        [sys.executable, "-m", "campaign.site.check", "--site=local", "--look"],
        cwd=PROJECT, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(PROJECT), "PATH": f"{here.path}:{os.environ['PATH']}"},
    )  # fmt: skip


def test_looking_starts_no_job(root: Path) -> None:
    good = look_only(root, "echo apptainer version 1.4.5")
    assert good.returncode == 0 and good.stderr == ""
    assert good.stdout == "site local: no obstacle found without starting a job\n"
    bad = look_only(root, "echo FATAL: no user namespaces >&2; exit 255")
    assert bad.returncode == 1 and bad.stdout.startswith("fix: ")
    assert bad.stderr == "check-site: no job was started; fix the above and try again\n"


@pytest.mark.real
def test_every_kind_of_image_has_a_check_that_proves_it() -> None:
    for image, found in (("mpich-5.0.2", "Preflight"), ("pvm-3.4.6", "PvmEcho")):
        command = f". ./activate && WYEAST_IMAGES={image} reframe -c reframe_checks -l -n "
        done = subprocess.run(
            ["bash", "-c", command + shlex.quote(check_site.CHECKS)],
            cwd=PROJECT, capture_output=True, text=True,
        )  # fmt: skip
        listed = [line for line in done.stdout.splitlines() if line.startswith("- ")]
        assert len(listed) == 1 and listed[0].startswith(f"- {found} "), done.stdout + done.stderr


@pytest.mark.real
@pytest.mark.serial
def test_this_machine_is_proven() -> None:
    before = set((PROJECT / "runs").glob("*-local-*"))
    command = ". ./activate && python -m campaign.site.check --images mpich-5.0.2,openmpi-5.0.11"
    done = subprocess.run(["bash", "-c", command], cwd=PROJECT, capture_output=True, text=True)
    new = set((PROJECT / "runs").glob("*-local-*")) - before
    for campaign in new:
        shutil.rmtree(campaign)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [line for line in done.stdout.splitlines() if "the image's mpiexec" in line]
    assert len(new) == 1 and len(rows) == 2 and all("ok" in row for row in rows)
