"""The cluster's network: a switch, a shaped link from it to each node, and what the links carry.

The switch is a bridge in the box's own network namespace, a link is a pair of virtual Ethernet
interfaces, and both of its ends are shaped, as a real switch's port is; `serialisation` says how.
"""

import json
import statistics
import subprocess
import time
from contextlib import suppress
from pathlib import Path

from cluster import serialisation
from cluster.description import (
    CONTROLLER_ADDRESS,
    FRAME_OVERHEAD_BYTES,
    ClusterError,
    Link,
    address_of,
)
from records.causes import sentence_in

SWITCH = "switch"
#: A private BPF file system of the box, so that what is loaded vanishes with the box.
PROGRAMS = Path("/run/programs")
#: What a node calls its own end of its link.
NODES_END = "eth0"
#: Ethernet, IP and TCP (with timestamps) around a segment's payload.
HEADER_BYTES = 14 + 20 + 32
#: How far a link's measured rate may be from the requested one.
TOLERANCE = 0.05
#: How often a link that seems too slow is measured: a busy machine only ever makes it slower, and
#: it is often busy for a moment, so that there is a longer pause before each further try.
TRIES = 6
#: A machine that is busy all the time serves its timers late, and a link loses what it may not
#: catch up. Down to this share of its rate it is still used, but said.
SLOWEST = 0.85
PAUSE_S = 0.5
#: Of its rate, what a link carries that nothing holds up.
FULL = 0.93
MEASURED_S = 0.9
#: The rate is the median over intervals of this length. The whole time holds the start, and each
#: moment for which a shared machine was taken away.
INTERVAL_S = 0.1
UNSHAPED_BYTES = 100_000_000
#: What a server may take to end after its client, in s.
SERVER_S = 10


def run(*command: str) -> str:
    """Run a command and return its output; raise ClusterError with its complaint."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        said = sentence_in(done.stderr or done.stdout)
        raise ClusterError(f"`{' '.join(command)}` failed: {said or '?'}")
    return done.stdout


def in_network_of(pid: int, *command: str) -> str:
    """Run a command in the network namespace of a process."""
    return run("nsenter", f"--target={pid}", "--net", *command)


def make_switch(link: Link | None) -> None:
    """Make the switch, with the controller's address on it, and load what its links need."""
    run("ip", "link", "set", "lo", "up")
    # No spanning tree: there is no second path, and its delay would hold up the first packets.
    run("ip", "link", "add", SWITCH, "type", "bridge", "stp_state", "0", "forward_delay", "0")
    run("ip", "address", "add", f"{CONTROLLER_ADDRESS}/24", "dev", SWITCH)
    run("ip", "link", "set", SWITCH, "up")
    if link and link.each_frame:
        PROGRAMS.mkdir()
        run("mount", "-t", "bpf", "none", str(PROGRAMS))


def port_of(number: int) -> str:
    """Return the name of the switch's port for a node."""
    return f"port{number}"


def connect(number: int, pid: int, link: Link | None) -> None:
    """Lay a link from the switch to the node whose first process is `pid`."""
    port = port_of(number)
    # Of a node that has just died: Linux removes its links later, once nobody holds its network.
    with suppress(ClusterError):
        run("ip", "link", "delete", port)
    run("ip", "link", "add", port, "type", "veth", "peer", "name", NODES_END, "netns", str(pid))
    in_network_of(pid, "ip", "link", "set", "lo", "up")
    in_network_of(pid, "ip", "address", "add", f"{address_of(number)}/24", "dev", NODES_END)
    if link:
        load_programs(number, link)
        for command in shaping(number, port, link):
            run(*command)
        for command in shaping(number, NODES_END, link):
            in_network_of(pid, *command)
    run("ip", "link", "set", port, "master", SWITCH, "up")
    in_network_of(pid, "ip", "link", "set", NODES_END, "up")


def program_at(number: int, interface: str, side: str) -> Path:
    """Return the path of the program for a side, egress or ingress, of an end of a node's link."""
    return PROGRAMS / f"{number}-{interface}-{side}"


def load_programs(number: int, link: Link) -> None:
    """Load the programs of both ways of a node's link."""
    ends = (port_of(number), NODES_END)
    for sender, receiver in (ends, ends[::-1]) if link.each_frame else ():
        serialisation.load_hop(
            link,
            program_at(number, sender, "egress"),
            program_at(number, receiver, "ingress"),
        )


def shaping(number: int, interface: str, link: Link) -> list[list[str]]:
    """Return the commands that give one end of a node's link its rate."""
    end = ["dev", interface]
    if not link.each_frame:
        return [
            ["tc", "qdisc", "add", *end, "root", "tbf",
             "rate", f"{link.rate_bit_per_s}bit", "burst", str(link.burst_bytes),
             "latency", "50ms", "overhead", str(FRAME_OVERHEAD_BYTES)]
        ]  # fmt: skip
    twice = f"{2 * link.rate_bit_per_s}bit"
    burst = f"{serialisation.CATCH_UP_BYTES}b"
    return [
        # TCP hands several frames over as one, which would be cloned as one.
        ["ip", "link", "set", *end, "gso_max_segs", "1"],
        ["tc", "qdisc", "add", *end, "root", "handle", "1:", "htb", "default", "1"],
        ["tc", "class", "add", *end, "parent", "1:", "classid", "1:1", "htb", "rate", twice,
         "ceil", twice, "burst", burst, "cburst", burst, "quantum", "1600",
         "overhead", str(FRAME_OVERHEAD_BYTES)],
        ["tc", "qdisc", "add", *end, "clsact"],
        *(["tc", "filter", "add", *end, side, "bpf", "direct-action",
           "object-pinned", str(program_at(number, interface, side))]
          for side in ("egress", "ingress")),
    ]  # fmt: skip


def cut(number: int) -> None:
    """Cut a node's link, as a pulled cable does."""
    run("ip", "link", "set", port_of(number), "down")


def mend(number: int) -> None:
    """Mend a node's link."""
    run("ip", "link", "set", port_of(number), "up")


def set_rate(number: int, pid: int, link: Link) -> None:
    """Set both ends of an existing link to another rate, like a port that negotiated down."""
    load_programs(number, link)
    for command in reshaping(number, port_of(number), link):
        run(*command)
    for command in reshaping(number, NODES_END, link):
        in_network_of(pid, *command)


def reshaping(number: int, interface: str, link: Link) -> list[list[str]]:
    """Return the commands that change the rate of one end of a shaped link."""
    commands = shaping(number, interface, link)
    if not link.each_frame:
        return [["change" if word == "add" else word for word in line] for line in commands]
    *_, rated, attach, outgoing, incoming = commands
    changed = ["change" if word == "add" else word for word in rated]
    detach = ["del" if word == "add" else word for word in attach]
    return [changed, detach, attach, outgoing, incoming]


def payload_rate(sender: int, receiver: int, address: str, payload_bytes: int) -> tuple[float, int]:
    """Return iperf3's rate between the networks of two processes: (bit/s, segment in bytes).

    The rate is the median over the receiver's intervals, or the bytes moved over the
    whole time if that is too short for an interval.
    """
    server = subprocess.Popen(
        ["nsenter", f"--target={receiver}", "--net", "iperf3", "--server", "--one-off", "--json",
         "--interval", str(INTERVAL_S)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        _wait_for_listener(receiver)
        text = in_network_of(
            sender, "iperf3", "--client", address, "--bytes", str(payload_bytes), "--json"
        )
        received, _ = server.communicate(timeout=SERVER_S)
    except subprocess.TimeoutExpired:
        raise ClusterError("iperf3 did not end; see make cluster-status") from None
    finally:
        server.kill()
        server.wait()
    result = json.loads(text)
    intervals = [
        float(interval["sum"]["bits_per_second"])
        for interval in json.loads(received)["intervals"]
        if interval["sum"]["seconds"] > INTERVAL_S / 2
    ]
    whole = float(result["end"]["sum_received"]["bits_per_second"])
    return (
        statistics.median(intervals) if len(intervals) > 1 else whole,
        int(result["start"]["tcp_mss_default"]),
    )


def _wait_for_listener(pid: int) -> None:
    """Wait until iperf3's port, 5201, is open in the network of a process."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        if ":1451 " in Path(f"/proc/{pid}/net/tcp6").read_text():
            return
        time.sleep(0.01)
    raise ClusterError("iperf3 does not start on a node; is its port taken?")


def on_the_wire(payload_bit_per_s: float, segment_bytes: int) -> float:
    """Return the rate of whole frames, bit/s, for a rate of TCP payload in full segments."""
    frame = segment_bytes + HEADER_BYTES + FRAME_OVERHEAD_BYTES
    return payload_bit_per_s * frame / segment_bytes


def rate_between(pids: list[int], sender: int, receiver: int, link: Link | None) -> float:
    """Measure what one of the nodes sends to another; return the rate on the wire, bit/s."""
    payload = int(link.rate_bit_per_s / 8 * MEASURED_S) if link else UNSHAPED_BYTES
    return on_the_wire(
        *payload_rate(pids[sender], pids[receiver], address_of(receiver + 1), payload)
    )


def check_links(pids: list[int], link: Link | None) -> list[float]:
    """Measure each node's link, sending to the next node, and return the rates on the wire, bit/s.

    Raises ClusterError for a link that is more than 5% above its rate or 15% below: a cluster that
    lies about its network must not be measured on.
    """
    if len(pids) < 2:
        return []
    rates = []
    for index in range(len(pids)):
        following = (index + 1) % len(pids)
        rates.append(0.0)
        for attempt in range(TRIES):
            time.sleep(attempt * PAUSE_S)
            try:
                rate = rate_between(pids, index, following, link)
            except ClusterError:
                # A server that waits for a client's last words for ever is no fault of the link.
                if attempt == TRIES - 1:
                    raise
                continue
            rates[-1] = max(rates[-1], rate)
            if not link or rates[-1] >= link.rate_bit_per_s * FULL:
                break
        if link and not SLOWEST <= rates[-1] / link.rate_bit_per_s <= 1 + TOLERANCE:
            raise ClusterError(
                f"the link from node{index + 1} to node{following + 1} carries "
                f"{rates[-1] / 1e6:.1f} Mbit/s, not {SLOWEST:.0%} to {1 + TOLERANCE:.0%} "
                f"of {link.rate_bit_per_s / 1e6:g} Mbit/s; is the machine busy? Try again, or "
                "choose a slower LINK"
            )
    return rates


def slow_links(rates: list[float], link: Link | None) -> str | None:
    """Return a sentence on links that the machine is too busy for, or None."""
    if not link or all(rate >= link.rate_bit_per_s * FULL for rate in rates):
        return None
    return (
        f"note: a link carries {min(rates) / 1e6:.1f} of {link.rate_bit_per_s / 1e6:g} Mbit/s, "
        "since the machine is busy; what is measured now is slower than the link"
    )
