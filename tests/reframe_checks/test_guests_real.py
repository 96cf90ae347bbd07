"""What a program in a container may try on the machine that measures it, as root and as a user.

Each attack is the program of a check of its own, which real ReFrame starts in a real image. The
checkout and its stage folders are in /tmp, which containers see by default.
"""

import json
import os
import pwd
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from containers import images, store
from records import acting_user
from records.kept import kept_launches
from records.launch import record_in, text_in
from tests.other_user import SECRET, give, in_child, ordinary_user
from tests.unmeasured import unmeasured

pytestmark = pytest.mark.real
PROJECT = Path(__file__).resolve().parents[2]
IMAGE = "mpich-5.0.2"
#: Of each attack its launch's outcome, the sentence about it, and the files that were kept.
Became = dict[str, tuple[str, str | None, dict[str, str]]]
#: What each program does; it may know all paths. The first rank does it, the others wait for MPI.
ATTACKS = {
    "none": "echo good >result",
    # bash reads a script while it runs it: this has it do more after the launch.
    "script": "for f in rfm_job.sh $STAGE/rfm_job.sh $(ls -d /proc/[0-9]*/cwd/rfm_job.sh); do "
    '[ ! -e "$f" ] || { text=$(sed "s#^launch_exit_code=#cat $SECRET; touch $TRACE; &#" "$f"); '
    'printf "%s\\n" "$text" >"$f"; }; done; echo good >result',
    "stderr": "for d in . $STAGE $(ls -d /proc/[0-9]*/cwd); do "
    'ln -sf "$SECRET" "$d/rfm_job.err"; done; echo good >result; exit 3',
    # The host would record what the program says was asked of it.
    "asked": "for f in launch_asked.json $STAGE/launch_asked.json; do "
    '[ ! -e "$f" ] || sed -i s/round001_/other_/ "$f"; done; echo good >result; sleep 100',
    "mounts": 'umount "$PLACE" /tmp; unshare --user --map-root-user --mount umount "$PLACE"; '
    'for d in "$PLACE" $STAGE/.. "$SECRET"; do ls -A "$d" 2>/dev/null; done >result; '
    "echo good >>result",
    "input": 'echo bad >input; rm -f input; mv other input; cat input >result',
    "link": 'ln -s "$SECRET" result',
    "pipe": "mkfifo result",
    "device": "ln -s /dev/zero result",
    "folder": "mkdir result",
    "huge": "truncate -s 3G result",
    "closed": "echo good >result; chmod 0 result .",
}  # fmt: skip
CHECK = """
import json, sys
from pathlib import Path
import reframe as rfm
from reframe.core.builtins import parameter, run_after, run_before
from reframe.core.exceptions import SanityError
from reframe_checks.mixins.experiment import Experiment

FACTS = json.loads(Path(__file__).with_suffix(".json").read_text())

@rfm.simple_test
class Attacked(Experiment):
    program, needs_preflight, require_reference, num_tasks = "sh", False, False, 1
    attack = parameter(sorted(FACTS["attacks"]))

    def cell_parameters(self):
        return {"attack": self.attack}

    @run_after("setup")
    def arm(self):
        told = {**FACTS["told"], "STAGE": self.stagedir}
        words = " ".join(f"{name}='{value}'" for name, value in told.items())
        self.program_arguments = ["-c", f"{words}; {FACTS['attacks'][self.attack]}"]
        if self.attack == "asked":
            self.time_limit = "2s"
        if self.attack == "input":
            (Path(self.stagedir) / "input").write_text("good")

    @run_before("run")
    def show_input(self):
        if self.attack == "input" and hasattr(self.container_platform, "inputs"):
            self.container_platform.inputs = ("input",)
            (Path(self.stagedir) / "work" / "input").touch()

    def outputs(self):
        return ["result"]

    def other_files(self):
        return {"result": Path(self.stagedir) / "result"}

    def examine(self):
        said = (Path(self.stagedir) / "result").read_text()
        if said.strip() != "good":
            raise SanityError(f"it has left {said[:200]!r}")
"""


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
            yield attack(place, None)
            return
        with ordinary_user() as name:
            yield attack(place, name)
    finally:
        shutil.rmtree(place)


def attack(place: Path, user: str | None) -> Became:
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
    told = {"SECRET": str(secret), "TRACE": str(trace), "PLACE": str(place)}
    check = place / "attacked.py"
    check.write_text(CHECK)
    check.with_suffix(".json").write_text(json.dumps({"attacks": ATTACKS, "told": told}))
    environment = {
        **unmeasured(),
        "PATH": f"{PROJECT}/.wyeast/bin:{os.environ['PATH']}",
        "PYTHONPATH": str(PROJECT), "PYTHONDONTWRITEBYTECODE": "1",
        "RFM_CONFIG_PATH": str(place / "site_configs"),
        "RFM_SYSTEM": "local", "RFM_COLORIZE": "no", "RFM_PREFIX": str(place / "reframe"),
        "WYEAST_ROOT": str(place), "WYEAST_IMAGES": IMAGE, "WYEAST_CAMPAIGN": str(campaign),
        "WYEAST_TIER": "quick",
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
    found = {}
    for one in kept_launches(campaign):
        record = record_in(one)
        files = {name: text_in(one, name) for name in one.names()}
        found[str(record.parameters["attack"])] = (record.outcome, record.sentence, files)
    assert sorted(found) == sorted(ATTACKS), said
    return found


def test_what_it_is_asked_for_is_collected(attacked: Became) -> None:
    outcome, sentence, files = attacked["none"]
    assert (outcome, files["result"]) == ("sound", "good\n"), sentence


@pytest.mark.parametrize("attack", ["script", "mounts"])
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


def test_its_input_stays_as_it_is(attacked: Became) -> None:
    outcome, sentence, files = attacked["input"]
    assert (outcome, files["result"]) == ("sound", "good"), sentence


@pytest.mark.parametrize(
    ("attack", "said"),
    [
        ("link", "is a link and not a file"),
        ("device", "is a link and not a file"),
        ("pipe", "is a pipe and not a file"),
        ("folder", "is a folder and not a file"),
        ("huge", "at most 1074 MB are read"),
    ],
)
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
