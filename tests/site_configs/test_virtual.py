"""The description of the cluster in a box, and what is written from it."""

from pathlib import Path

import pytest

from site_configs.virtual import network, serialisation, slurm
from site_configs.virtual.description import ClusterError, Link, describe


def test_the_command_line_overrides_the_file() -> None:
    plain, chosen = describe(), describe(nodes="2", link="1gbit")
    assert (plain.nodes, plain.link_bytes_per_s()) == (4, 12.5e6)
    assert (chosen.nodes, chosen.link_bytes_per_s()) == (2, 125e6)
    assert describe(link="none").link_bytes_per_s() is None


@pytest.mark.parametrize("text", ["", "nodes: 4\n", "links: []\nnodes: 1\n", "nodes: {"])
def test_a_broken_description_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "cluster.yaml"
    path.write_text(text)
    with pytest.raises(ClusterError, match=r"cluster\.yaml is not as it must be"):
        describe(path=path)


def test_slurm_knows_every_node(tmp_path: Path) -> None:
    text = slurm.configuration(describe(nodes="3"), tmp_path)
    assert text.count("NodeName=") == 3 and "NodeAddr=10.77.0.3" in text
    assert "DisableRootJobs=YES" in text and "JobRequeue=0" in text


def test_what_the_wire_carries_is_more_than_the_payload() -> None:
    # A full segment of 1448 bytes is a frame of 1514, and takes 1538 on the wire.
    assert network.on_the_wire(94.1e6, 1448) == pytest.approx(100e6, rel=1e-3)


def test_links_are_measured_against_their_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    link = Link("100mbit", 100_000_000, 200, each_frame=True)
    payload = 94.1e6

    def measured(*_: object) -> tuple[float, int]:
        return payload, 1448

    monkeypatch.setattr(network, "payload_rate", measured)
    monkeypatch.setattr(network, "PAUSE_S", 0)
    assert len(network.check_links([1, 2, 3], link)) == 3
    payload = 88e6
    with pytest.raises(ClusterError, match="not within 5% of 100 Mbit/s"):
        network.check_links([1, 2, 3], link)
    assert network.check_links([1], link) == []


def test_programs_are_whole_instructions() -> None:
    for program in (serialisation.sending(), serialisation.receiving()):
        assert len(program) % 8 == 0 and program.endswith(bytes.fromhex("9500000000000000"))
