"""What a program in a container may try on the machine that measures it, as root and as a user.

Each attack is the program of a check of its own, which real ReFrame starts in a real image. The
checkout and its stage folders are in /tmp, which containers see by default.
"""

import ctypes
import json
import os
import pwd
import shutil
import stat
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from containers import images, store
from containers.apptainer import apptainer_command, call, launch_options, on_path
from containers.guarded import BEFORE_DEV, MEMORY
from records import acting_user
from records.kept import kept_launches
from records.launch import record_in, text_in
from reframe_checks.mixins.job_script import INTO_CONTAINER, into_container
from tests.other_user import SECRET, give, in_child, ordinary_user
from tests.reframe_checks.attacks import ATTACKS, CHECK, NOT_READ
from tests.unmeasured import unmeasured

pytestmark = pytest.mark.real
PROJECT = Path(__file__).resolve().parents[2]
IMAGE = "mpich-5.0.2"
#: Those that are heard of after their launch alone.
HERE = ATTACKS | {
    "stderr": f"{ATTACKS['stderr']}; exit 3", "asked": f"{ATTACKS['asked']}; sleep 100",
}  # fmt: skip
#: Of each attack its launch's outcome, the sentence about it, and the files that were kept.
Became = dict[str, tuple[str, str | None, dict[str, str]]]
#: Of memory that processes share by a number.
IPC_CREAT, IPC_RMID = 0o1000, 0


@dataclass(frozen=True)
class Decoys:
    """What a program may try to reach: all of it was made for that."""

    paths: list[str]
    process: int
    terminal: str
    segment: int

    @property
    def told(self) -> dict[str, str]:
        """Return the variables that attacks know them by."""
        return {"DECOYS": " ".join(self.paths), "SHARED": self.paths[0], "ALIVE": str(self.process),
                "TERMINAL": self.terminal, "SEGMENT": str(self.segment)}  # fmt: skip


@pytest.fixture(scope="module", params=["root", "ordinary"])
def attacked(request: pytest.FixtureRequest) -> Iterator[Became]:
    """Yield what became of each attack."""
    if os.geteuid() != 0 and request.param == "root":
        pytest.skip("there is no other user to become")
    images.verify(PROJECT, IMAGE)
    place = Path("/tmp") / f"wyeast-test-{os.getpid()}-{request.param}"
    place.mkdir()
    try:
        if request.param == "root" or os.geteuid() != 0:
            with made_for_it(None) as decoys:
                yield attack(place, None, decoys)
            return
        with ordinary_user() as name, made_for_it(name) as decoys:
            yield attack(place, name, decoys)
    finally:
        # A program may have made more folders than Python descends.
        subprocess.run(["rm", "-rf", place], check=True)


@contextmanager
def made_for_it(user: str | None) -> Iterator[Decoys]:
    """Make what a user has besides: a device node where one can, shared memory, a process, ..."""
    name = f"wyeast-decoy-{uuid.uuid4().hex[:8]}"
    uid = pwd.getpwnam(user).pw_uid if user else os.geteuid()
    memory, node = Path("/dev/shm") / name, Path("/dev") / name
    memory.touch()
    if os.geteuid() == 0:
        # As /dev/null.
        os.mknod(node, stat.S_IFCHR, os.makedev(1, 3))
        node.chmod(0o666)
        os.chown(memory, uid, -1)
    made = [path for path in (memory, node) if path.exists()]
    desk, terminal = os.openpty()
    os.set_blocking(desk, False)
    os.chown(os.ttyname(terminal), uid, -1)
    key = int(name[-7:], 16)
    memories = ctypes.CDLL(None, use_errno=True)
    segment = memories.shmget(key, 1, IPC_CREAT | 0o666)
    assert segment >= 0, os.strerror(ctypes.get_errno())
    process = subprocess.Popen(["sleep", "1000"], user=uid if os.geteuid() == 0 else None)
    try:
        yield Decoys([str(one) for one in made], process.pid, os.ttyname(terminal), key)
        assert all(path.exists() for path in made), "a program has removed what is not its own"
        assert process.poll() is None, "a program has ended a process of the machine's"
        with pytest.raises(BlockingIOError):
            # Nothing was written there.
            os.read(desk, 1)
    finally:
        process.kill()
        process.wait()
        memories.shmctl(segment, IPC_RMID, None)
        os.close(desk)
        os.close(terminal)
        for path in made:
            path.unlink(missing_ok=True)


def attack(place: Path, user: str | None, decoys: Decoys) -> Became:
    """Run all attacks in a checkout; return what became of each."""
    (place / "literature").symlink_to(PROJECT / "literature")
    # ReFrame writes its log beside it.
    shutil.copytree(PROJECT / "site_configs", place / "site_configs")
    (place / "containers").mkdir()
    shutil.copy(PROJECT / "containers" / "images.lock", place / "containers")
    shutil.copy(PROJECT / "containers" / "implementations.yaml", place / "containers")
    images_folder = place / ".wyeast" / "images"
    images_folder.mkdir(parents=True)
    (images_folder / f"{IMAGE}.sif").symlink_to(store.folder(PROJECT) / f"{IMAGE}.sif")
    campaign, secret, trace = place / "runs" / "campaign", place / "secret", place / "trace"
    campaign.mkdir(parents=True)
    secret.write_text(SECRET)
    told = {"SECRET": str(secret), "TRACE": str(trace), "PLACE": str(place), **decoys.told}
    check = place / "attacked.py"
    check.write_text(CHECK)
    facts = {"attacks": HERE, "told": told, "ranks": 1, "each": []}
    check.with_suffix(".json").write_text(json.dumps(facts))
    environment = {
        **unmeasured(),
        "PATH": f"{PROJECT}/.wyeast/bin:{os.environ['PATH']}",
        "PYTHONPATH": str(PROJECT), "PYTHONDONTWRITEBYTECODE": "1",
        "RFM_CONFIG_PATH": str(place / "site_configs"),
        "RFM_SYSTEM": "local", "RFM_COLORIZE": "no", "RFM_PREFIX": str(place / "reframe"),
        "WYEAST_ROOT": str(place), "WYEAST_IMAGES": IMAGE, "WYEAST_CAMPAIGN": str(campaign),
        "WYEAST_TIER": "quick", "OUTSIDE": SECRET,
    }  # fmt: skip
    command = [str(PROJECT / "reframe_checks/bin/reframe"), "-c", str(check), "-r",
               "--exec-policy=serial"]  # fmt: skip

    def work() -> str:
        if user:
            acting_user.become(pwd.getpwnam(user).pw_uid, PROJECT)
            environment.update(HOME=f"/home/{user}", USER=user)
        done = subprocess.run(
            command, env=environment, cwd=PROJECT, stdin=subprocess.DEVNULL, capture_output=True,
            text=True, check=False,
        )  # fmt: skip
        return (done.stdout + done.stderr)[-3000:]

    if user:
        give(place, pwd.getpwnam(user).pw_uid)
    said = in_child(work)
    assert not trace.exists()
    found: Became = {}
    for one in kept_launches(campaign):
        record = record_in(one)
        files = {name: text_in(one, name) for name in one.names()}
        found[str(record.parameters["attack"])] = (record.outcome, record.sentence, files)
    assert sorted(found) == sorted(HERE), said
    tools = list(place.rglob("tool"))
    assert tools and all(tool.stat().st_mode & stat.S_ISUID for tool in tools), said
    reached = [str(tool) for tool in tools if is_open_to_all(tool, place)]
    found["setuid"][2]["reached"] = "\n".join(reached)
    return found


def is_open_to_all(path: Path, place: Path) -> bool:
    """Return whether anybody may go to a path in a folder."""
    folders = path.relative_to(place).parents
    return all((place / one).stat().st_mode & stat.S_IXOTH for one in folders)


def test_what_it_is_asked_for_is_collected(attacked: Became) -> None:
    outcome, sentence, files = attacked["none"]
    assert (outcome, files["result"]) == ("sound", "good\n"), sentence


@pytest.mark.parametrize("attack", [
    "script", "mounts", "processes", "machine", "terminal", "others", "namespaces", "deep",
])  # fmt: skip
def test_it_sees_and_changes_nothing_of_the_checkout(attacked: Became, attack: str) -> None:
    outcome, sentence, files = attacked[attack]
    assert outcome == "sound", sentence
    assert files["result"] == "good\n"


def test_its_streams_are_what_it_has_printed(attacked: Became) -> None:
    outcome, sentence, files = attacked["stderr"]
    assert outcome == "failed" and "sh ended with exit code 3" in str(sentence)
    assert SECRET not in files["stderr"]


def test_it_does_not_say_what_was_asked_of_it(attacked: Became) -> None:
    outcome, sentence, files = attacked["asked"]
    assert outcome == "failed" and "timed out" in str(sentence)
    assert json.loads(files["launch.json"])["launch"].startswith("round001_Attacked")


def test_what_it_leaves_with_its_user_s_rights_nobody_else_reaches(attacked: Became) -> None:
    outcome, sentence, files = attacked["setuid"]
    assert outcome == "failed" and "sh ended with exit code 4" in str(sentence)
    assert not files["reached"]


def test_its_input_stays_as_it_is(attacked: Became) -> None:
    outcome, sentence, files = attacked["input"]
    assert (outcome, files["result"]) == ("sound", "good"), sentence


@pytest.mark.parametrize(("attack", "said"), NOT_READ.items())
def test_what_it_leaves_is_a_file_or_not_read(attacked: Became, attack: str, said: str) -> None:
    outcome, sentence, files = attacked[attack]
    assert outcome == "failed" and f"result, which the launch left behind, {said}" in (
        str(sentence).replace("has 3221 MB; ", "")
    )
    assert files["result"] == ""


def test_what_it_closes_costs_its_own_launch_at_most(attacked: Became) -> None:
    outcome, sentence, _ = attacked["closed"]
    # Root reads it all the same.
    assert outcome == "sound" or "cannot be read: Permission denied" in str(sentence)


def test_no_secret_is_kept(attacked: Became) -> None:
    for attack, (_, _, files) in attacked.items():
        kept = {name: text for name, text in files.items() if name != "job.sh"}
        assert SECRET not in json.dumps(kept), attack


#: Stands before Apptainer: by then the script has looked at everything that it looks at.
BEFORE_APPTAINER = """#!/bin/sh
echo began; read go; exec "{apptainer}" -c "{config}" "$@"
"""


@pytest.mark.parametrize("dev", ["yes", "minimal"])
def test_terminals_that_open_and_close_meanwhile_fail_no_launch_and_are_not_seen(
    tmp_path: Path, dev: str
) -> None:
    if os.geteuid() != 0 and on_path():
        pytest.skip("an Apptainer with its setuid part lets only root name a configuration")
    said = call("buildcfg").splitlines()
    [config] = [one.partition("=")[2] for one in said if one.startswith("APPTAINER_CONF_FILE=")]
    lines = Path(config).read_text().splitlines()
    changed = [f"mount dev = {dev}" if one.startswith("mount dev =") else one for one in lines]
    assert f"mount dev = {dev}" in changed
    (tmp_path / "apptainer.conf").write_text("\n".join(changed) + "\n")
    before = tmp_path / "apptainer"
    before.write_text(BEFORE_APPTAINER.format(
        apptainer=apptainer_command(), config=tmp_path / "apptainer.conf"
    ))  # fmt: skip
    before.chmod(0o755)
    words = [str(INTO_CONTAINER), "named:-", "", "", *launch_options(alone=True)]
    desk, terminal = os.openpty()
    with subprocess.Popen(
        [*words, str(images.verify(PROJECT, IMAGE)), "sh", "-c", "echo runs; ls -A /dev/pts"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
    ) as launch:  # fmt: skip
        assert launch.stdout
        began = launch.stdout.readline()
        os.close(desk)
        os.close(terminal)
        opened = os.openpty()
        printed, complaint = launch.communicate("go\n")
        for one in opened:
            os.close(one)
    assert (began, printed) == ("began\n", "runs\n"), complaint


#: A rank in a container of its own: it meets the other one in /dev/shm, and tries to remove what is
#: another launch's, and to see the checkout through the processes of Apptainer.
MEETS = (
    'for p in /proc/[0-9]*; do [ ! -e "$p/root$0/Makefile" ] || echo "seen"; done; '
    'touch "/dev/shm/own.$1"; for n in $(seq 600); do [ ! -e "/dev/shm/own.$2" ] || break; '
    'sleep 0.1; done; rm -rf /dev/shm/wyeast-decoy-*; ls /dev/shm | tr "\\n" " "'
)


@pytest.mark.skipif(os.geteuid() != 0, reason="whoever is not root shares the node's own")
def test_root_s_ranks_in_several_containers_share_memory_of_their_own() -> None:
    image = images.verify(PROJECT, IMAGE)
    options = launch_options(alone=False, together=True)
    words = [
        *into_container("mpirun"),
        "",
        BEFORE_DEV + MEMORY,
        *options,
        str(image),
        "sh",
        "-c",
        MEETS,
        str(PROJECT),
    ]
    with made_for_it(None):
        done = subprocess.run(
            ["sh", "-c", '"$@" 1 2 & "$@" 2 1 & wait', "_", *words], stdin=subprocess.DEVNULL,
            env={**os.environ, "PATH": f"{PROJECT}/.wyeast/bin:{os.environ['PATH']}"},
            capture_output=True, text=True, check=False, cwd=image.parent,
        )  # fmt: skip
    assert done.stdout == 2 * "own.1 own.2 ", done.stderr
