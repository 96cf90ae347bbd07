"""The description of the cluster in a box, and what is written from it."""

from pathlib import Path

import pytest

from cluster import accounts, gridengine, inside, network, programs, scrontab, serialisation, slurm
from cluster.description import ClusterError, Link, describe

PROJECT = Path(__file__).resolve().parents[2]


def test_the_command_line_overrides_the_file() -> None:
    plain, chosen = describe(), describe(nodes="2", link="1gbit")
    assert (plain.nodes, plain.link_bytes_per_s()) == (4, 12.5e6)
    assert (chosen.nodes, chosen.link_bytes_per_s()) == (2, 125e6)
    assert describe(link="none").link_bytes_per_s() is None


def test_nodes_that_share_cores_are_in_the_topology(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {2, 5})
    assert inside.nodes_by_cores(describe(nodes="3")) == {
        "core2": ["^node1$", "^node3$"], "core5": ["^node2$"],
    }  # fmt: skip
    assert inside.nodes_by_cores(describe(nodes="2")) == {}


@pytest.mark.parametrize("text", ["", "nodes: 4\n", "links: []\nnodes: 1\n", "nodes: {"])
def test_a_broken_description_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "cluster.yaml"
    path.write_text(text)
    with pytest.raises(ClusterError, match=r"cluster\.yaml is not valid"):
        describe(path=path)


def test_slurm_knows_every_node(tmp_path: Path) -> None:
    text = slurm.configuration(describe(nodes="3"), tmp_path)
    assert text.count("NodeName=") == 3 and "NodeAddr=10.77.0.3" in text
    assert "DisableRootJobs=YES" in text and "JobRequeue=0" in text
    assert "ScronParameters=enable" in text and "batch_sched_delay=0,sched_interval=2" in text


def test_grid_engine_has_a_queue_of_every_node_with_a_slot_a_core() -> None:
    cluster = describe(nodes="3", scheduler="sge")
    lines = dict(line.split(maxsplit=1) for line in gridengine.queue(cluster).splitlines())
    assert (lines["hostlist"], lines["slots"]) == ("node1 node2 node3", "1")
    # Jobs get the first nodes first, as from Slurm, and so cores of their own where there are two.
    assert lines["seq_no"] == "0,[node1=0],[node2=1],[node3=2]"
    assert gridengine.SCHEDULING["queue_sort_method"] == "seqno"
    # However busy the one machine is, and whatever limits Debian's example has.
    assert lines["load_thresholds"] == "NONE" and lines["h_vmem"] == lines["s_rt"] == "INFINITY"
    assert "control_slaves     TRUE" in gridengine.ENVIRONMENT_OF_RANKS


def test_of_a_configuration_some_keys_get_other_values() -> None:
    text = "# Version: 6.2\nmailer  /usr/bin/mail\nmin_uid 1000\n"
    said = gridengine.replaced(text, {"mailer": "/bin/true", "xterm": "/bin/true"})
    assert [line.split() for line in said.splitlines()] == [
        ["#", "Version:", "6.2"], ["mailer", "/bin/true"], ["min_uid", "1000"]
    ]  # fmt: skip


def test_a_scheduler_that_it_cannot_have_is_refused() -> None:
    assert (describe().scheduler, describe(scheduler="sge").scheduler) == ("slurm", "sge")
    with pytest.raises(ClusterError, match="SCHEDULER=pbs is unknown; choose one of: slurm, sge"):
        describe(scheduler="pbs")


def test_every_site_in_the_box_has_a_folder_for_its_job_user() -> None:
    sites = {path.parent.name for path in (PROJECT / "site_configs").glob("*/cluster.yaml")}
    assert sites == set(accounts.SITES)


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
    assert network.slow_links(network.check_links([1, 2, 3], link), link) is None
    payload = 86e6
    rates = network.check_links([1, 2, 3], link)
    assert "91.3 of 100 Mbit/s" in str(network.slow_links(rates, link))
    payload = 78e6
    with pytest.raises(ClusterError, match=r"82\.8 Mbit/s, not 85% to"):
        network.check_links([1, 2, 3], link)
    payload = 100e6
    with pytest.raises(ClusterError, match="not 85% to 105% of 100 Mbit/s"):
        network.check_links([1, 2, 3], link)
    assert network.check_links([1], link) == []


def test_a_link_is_measured_again_where_iperf3_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    link = Link("100mbit", 100_000_000, 200, each_frame=True)
    answers: list[float] = [0, 94.1e6, 0, 0, 94.1e6]

    def measured(*_: object) -> tuple[float, int]:
        if rate := answers.pop(0):
            return rate, 1448
        raise ClusterError("iperf3 did not end; look at cluster-status")

    monkeypatch.setattr(network, "payload_rate", measured)
    monkeypatch.setattr(network, "PAUSE_S", 0)
    assert network.check_links([1, 2], link) == pytest.approx([100e6] * 2, rel=1e-3)
    answers = [0] * network.TRIES
    with pytest.raises(ClusterError, match="iperf3 did not end"):
        network.check_links([1, 2], link)


@pytest.mark.parametrize("each_frame", [True, False])
def test_a_rate_is_changed_where_it_was_set(each_frame: bool) -> None:
    link = Link("90mbit", 90_000_000, 200, each_frame)
    changes = network.reshaping(1, "port1", link)
    [change] = [command for command in changes if "rate" in command]
    [added] = [command for command in network.shaping(1, "port1", link) if "rate" in command]
    assert change[:3] == ["tc", added[1], "change"] and change[3:] == added[3:]
    assert f"{90_000_000 * (2 if each_frame else 1)}bit" in change
    # The programs count by the rate, too, and are laid anew.
    assert (
        changes[-2:] == network.shaping(1, "port1", link)[-2:]
        if each_frame
        else changes == [change]
    )


def test_scrontab_is_of_slurms_own_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert scrontab.version_number("22.05.8-4+deb12u3") == "0x160508"
    state = tmp_path / ".wyeast" / "cluster"
    versions = programs.folder_of(state) / programs.COMPLETE
    with pytest.raises(ClusterError, match="make cluster-up"):
        scrontab.build(tmp_path)
    versions.parent.mkdir(parents=True)
    # Built again from the same source.
    versions.write_text('{"slurm-client": "22.05.8-4+deb12u3+b1"}')
    program = tmp_path / ".wyeast" / "bin" / "scrontab"
    note = tmp_path / ".wyeast" / "scrontab" / "version"
    for path, text in ((program, "program"), (note, "22.05.8-4+deb12u3")):
        path.parent.mkdir(parents=True)
        path.write_text(text)
    assert scrontab.build(tmp_path) == program

    def refuse(*_: object) -> Path:
        raise ClusterError("it would be built")

    monkeypatch.setattr(scrontab, "unpacked", refuse)
    note.write_text("22.05.7-1")
    with pytest.raises(ClusterError, match="it would be built"):
        scrontab.build(tmp_path)


def test_programs_are_whole_instructions() -> None:
    link = Link("100mbit", 100_000_000, 1538, each_frame=True)
    for program in (serialisation.sending(link, 3), serialisation.receiving(link, 3)):
        assert len(program) % 8 == 0 and program.endswith(bytes.fromhex("9500000000000000"))
