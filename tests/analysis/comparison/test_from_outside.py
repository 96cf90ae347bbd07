"""What came from outside is stated with the launches that it hit, and leaves none out."""

from pathlib import Path

from analysis.comparison.caveats.from_outside import from_outside
from records.campaign import Campaign
from records.hpl import HplRun
from records.launch import Launch
from tests.whole_records import launch, manifest


def campaign(*disturbances: dict[str, object] | None, left: int = 0) -> Campaign:
    """Return a campaign of one launch for each."""
    output: list[HplRun] = []
    launches = [
        Launch(launch(f"round00{number}_cell", disturbance=one, left_running=left), output)
        for number, one in enumerate(disturbances, 1)
    ]
    return Campaign(Path("runs/one"), manifest(), launches)


def busy(seconds: float, **more: object) -> dict[str, object]:
    return {"looked_s": 10.0, "others_s": seconds, "others": {"make": seconds}, **more}


def test_others_beyond_the_share_are_named_and_less_is_not() -> None:
    assert from_outside(campaign(None, busy(0.9))) == []
    [found] = from_outside(campaign(busy(3.0), busy(0.9), busy(12.0)))
    assert "During 2 of 3 launches other processes used more than 10% of a" in found.sentence
    assert "most during round003_cell (1.2 processors); in total make 15 s" in found.sentence


def test_stops_links_and_what_was_left_are_stated() -> None:
    found = from_outside(campaign(busy(0.0, stopped=1), busy(0.0, carriers=2), left=3))
    assert [one.few for one in found] == [
        "stopped processes", "a link went down", "processes left running",
    ]  # fmt: skip
    assert "as in round001_cell" in found[0].sentence
    assert "as during round002_cell" in found[1].sentence
    assert "2 launches of alpha-1.0 left processes running" in found[2].sentence


def test_variables_that_nobody_here_has_set_are_named() -> None:
    record = launch("round001_cell", from_elsewhere=["OMPI_MCA_btl", "UCX_TLS"])
    [found] = from_outside(Campaign(Path("runs/one"), manifest(), [Launch(record, [])]))
    assert found.few == "variables from elsewhere"
    assert "(alpha-1.0: OMPI_MCA_btl, UCX_TLS)" in found.sentence


def test_limits_of_the_machine_are_stated() -> None:
    one = campaign(None)
    one.manifest.machine["limited"] = ["A quota gives this campaign the time of 0.5 of 2 cores."]
    [found] = from_outside(one)
    assert found.few == "a limit of the machine" and "0.5 of 2 cores" in found.sentence
    one.manifest.machine["limited"] = {"of": "a damaged manifest"}
    assert from_outside(one) == []


def test_blocks_whose_launches_began_on_different_nodes_are_stated() -> None:
    names = ("n1-0a", "n2-0b", "n1-0a", "n1-1a", "n3-0c", None)
    launches = [
        Launch(
            launch(
                f"round00{1 + at // 2}_{at}", round=1 + at // 2,
                node={"facts": name and f"nodes/{name}.json"},
            ),
            [],
        )
        for at, name in enumerate(names)
    ]  # fmt: skip
    one = Campaign(Path("runs/one"), manifest(), launches)
    assert one.moved() == {(1, "Dgemm ranks=2")}
    assert [found.sentence[:24] for found in from_outside(one)] == ["The launches of 1 block "]


def test_blocks_that_were_not_measured_in_one_go_are_stated() -> None:
    one = campaign(None)
    one.split, one.repeated = {(1, "a")}, {(1, "b"), (2, "b")}
    again, interrupted = (found.sentence for found in from_outside(one))
    assert ": 2 blocks. The first results" in again and ": 1 block, with launches" in interrupted
