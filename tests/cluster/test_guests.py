"""What programs in containers may try where Slurm starts one for each rank: all in one job.

They also leave something running that is in no session of theirs.

The nodes show their containers the folder that the checkout is in, as a site may do with its
parallel file system.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from records.kept import kept_launches
from records.launch import LaunchRecord, record_in, text_in
from tests.cluster.conftest import Checkout, Cluster, new_checkout, wait_for
from tests.other_user import SECRET, give
from tests.reframe_checks.attacks import ATTACKS, CHECK, NOT_READ

pytestmark = pytest.mark.cluster
IMAGE = "mpich-5.0.2"
#: Each on a node of its own.
RANKS = range(2)
#: Slurm takes a process for one of a job's by its parents, and this one's have ended.
LEAVES = "setsid sleep 1234 </dev/null >/dev/null 2>&1 &"
#: What closes the work folder would keep the others from being tried.
TRIED = {name: words for name, words in ATTACKS.items() if name != "closed"}
UNHARMED = ("none", "script", "stderr", "asked", "mounts", "processes", "machine", "terminal",
            "others", "namespaces", "setuid", "deep", "input")  # fmt: skip


@dataclass(frozen=True)
class AttackedLaunch:
    """What became of the one launch."""

    record: LaunchRecord
    files: dict[str, str]
    #: By attack and rank: what was collected, or why nothing was.
    became: dict[str, str]
    #: Something that a program of the job user's has done outside of its container.
    trace: Path
    #: What was said of it, and what of it runs on the nodes afterwards.
    said: str
    left: str


@pytest.fixture(scope="module")
def attacked(running_cluster: Cluster) -> Iterator[AttackedLaunch]:
    wait_for(running_cluster.is_idle, 300, "an idle cluster")
    with new_checkout() as checkout:
        yield attack(checkout, running_cluster)


def attack(checkout: Checkout, cluster: Cluster) -> AttackedLaunch:
    """Have the ranks of one launch try everything, one after the other."""
    checkout.give_image(IMAGE)
    root, campaign = checkout.root, checkout.root / "runs" / "attacked"
    secret, trace, shown = root / "secret", root / "trace", root / "apptainer.conf"
    # Ranks share the node's /dev/shm.
    told = {"SECRET": str(secret), "TRACE": str(trace), "PLACE": str(root), "DECOYS": "/dev/none",
            "SHARED": "", "TERMINAL": "", "ALIVE": "", "SEGMENT": ""}  # fmt: skip
    words = [f"RESULT={name}.$SLURM_PROCID; ( {words} )" for name, words in TRIED.items()]
    words.append(f"{LEAVES} true")
    facts = {
        "attacks": {"all": "; ".join(words)}, "told": told, "ranks": len(RANKS),
        "each": [f"{name}.{rank}" for name in TRIED for rank in RANKS],
    }  # fmt: skip
    campaign.mkdir(parents=True)
    secret.write_text(SECRET)
    shown.write_text(f"bind path = {root.parent}\n")
    (root / "attacked.py").write_text(CHECK)
    (root / "attacked.json").write_text(json.dumps(facts))
    for path in (campaign.parent, secret):
        give(path, root.stat().st_uid)
    done = checkout.run(
        f"export APPTAINER_CONFIG_FILE={shown} OUTSIDE='{SECRET}' RFM_SYSTEM=virtual "
        f"WYEAST_CAMPAIGN={campaign} WYEAST_IMAGES={IMAGE} && reframe -c attacked.py -r"
    )
    kept = list(kept_launches(campaign))
    assert len(kept) == 1, done.stdout + done.stderr
    files = {name: text_in(kept[0], name) for name in kept[0].names()}
    record = record_in(kept[0])
    assert record.outcome == "sound", record.sentence
    left = cluster.execute("pgrep -fax 'sleep 1234' || true", user="root")
    became = json.loads(files["became"])
    return AttackedLaunch(record, files, became, trace, done.stdout, left)


@pytest.mark.parametrize("name", UNHARMED)
def test_it_sees_and_changes_nothing_of_the_launch(attacked: AttackedLaunch, name: str) -> None:
    assert [attacked.became[f"{name}.{rank}"].strip() for rank in RANKS] == ["good"] * len(RANKS)


@pytest.mark.parametrize(("name", "said"), NOT_READ.items())
def test_what_it_leaves_is_a_file_or_not_read(
    attacked: AttackedLaunch, name: str, said: str
) -> None:
    for rank in RANKS:
        assert said in attacked.became[f"{name}.{rank}"]


def test_all_that_was_tried_is_judged(attacked: AttackedLaunch) -> None:
    assert {*UNHARMED, *NOT_READ} == set(TRIED)
    assert len(attacked.became) == len(TRIED) * len(RANKS)


def test_no_secret_is_kept_and_nothing_done_outside(attacked: AttackedLaunch) -> None:
    assert SECRET not in json.dumps({**attacked.files, "job.sh": ""})
    assert not attacked.trace.exists()
    assert attacked.record.launch.startswith("round001_Attacked")


def test_what_it_leaves_running_is_ended_with_it_and_told(attacked: AttackedLaunch) -> None:
    assert attacked.record.left_running == len(RANKS), attacked.said
    assert "left 2 processes running, ended since: sleep" in attacked.said
    assert not attacked.left
