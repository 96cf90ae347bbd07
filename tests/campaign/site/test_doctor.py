"""What the doctor says of an output, of nodes, and when there is nothing to say."""

import os
import time
from pathlib import Path

import pytest

from campaign.site import check, doctor
from records.ailments.table import KNOWN
from records.node_ailments import AILMENTS, Ailing
from tests.records.test_node_ailments import GOVERNOR, told


@pytest.mark.parametrize("known", KNOWN, ids=lambda one: one.examples[0][:30])
def test_what_a_failed_launch_said_is_explained_with_its_source(
    known: object, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = next(each for each in KNOWN if each is known)
    assert one.source.startswith("https://")
    (tmp_path / "said").write_text(f"first words\nn1: {one.examples[0]}\nsrun: error: task 0\n")
    assert doctor.of_output(str(tmp_path / "said")) == 1
    said = capsys.readouterr().out
    assert said.startswith("fix: ") and one.sentence in said and one.source in said


def test_an_output_without_a_known_cause(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "said").write_text("FATAL: it is Tuesday\n")
    assert doctor.of_output(str(tmp_path / "said")) == 0
    assert (
        "it shows no known cause; the line that best says what failed: it is Tuesday"
        in capsys.readouterr().out
    )


def test_an_output_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["doctor", "--output", "/nowhere/at/all"])
    assert doctor.main() == 1


def test_nodes_with_one_ailment_are_named_together() -> None:
    found = [Ailing(f"n{number}", AILMENTS[0], "it is full") for number in range(5)]
    [said] = doctor.sentences([*found])
    assert said.startswith("n0, n1, n2 and 2 more: it is full; ")
    assert said.endswith(f"({AILMENTS[0].source})")


def test_each_node_is_read_once_however_many_ranks_it_has() -> None:
    text = told() + told() + told({"/proc/sys/kernel/hostname": "n2", GOVERNOR: "powersave"})
    assert [node.name for node in doctor.nodes_in(text)] == ["n1", "n2"]
    assert doctor.nodes_in("") == []


def test_what_ails_nodes_is_said_and_counted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The preflight's job is played: it leaves what two nodes have seen."""
    site = {"name": "mine", "scheduler": "slurm", "cores_per_node": 4, "memory_bytes_per_node": 1e9}

    def played(name: str, names: list[str]) -> tuple[Path, dict[str, str]]:
        text = told() + told({"/proc/sys/kernel/hostname": "n2", GOVERNOR: "powersave"})
        now = f"==> /time <==\n{int(time.time())}\n"
        Path(os.environ[doctor.NODES_TOLD]).write_text(
            text.replace("==> /time <==\n1000000\n", now)
        )
        return Path(), {names[0]: "the ranks are on 1 host(s), not 2"}

    monkeypatch.setenv(doctor.NODES_TOLD, "")
    monkeypatch.setattr(check, "preflight", played)
    found, outcome, nodes = doctor.by_nodes(site, ["mpich-5.0.2"])
    assert nodes == 2 and outcome.startswith("the ranks are on 1")
    said = list(doctor.sentences(found))
    assert len(said) == 2 and all(one.startswith("n2: ") for one in said)
    assert "governor is powersave" in said[0] and "performance on others" in said[1]
