"""A link of the cluster in a box takes the time of a real one over every frame, and never less."""

import json
import statistics

import pytest

from cluster.description import FRAME_OVERHEAD_BYTES
from tests.cluster.conftest import Cluster

pytestmark = pytest.mark.cluster
#: Of Ethernet, IP and UDP.
HEADERS = 14 + 20 + 8
TURNS = 200

#: Run as two tasks: the first sends datagrams to the second, which says how long each group of them
#: took, in s, from before the first was sent until the last was there. The nodes share one clock.
TIMED = """
import json, os, random, socket, struct, time
port = 5333
if os.environ["SLURM_PROCID"] == "1":
    receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
    receiver.bind(("", port))
    receiver.settimeout(300)
    taken = {}
    while True:
        data, whose = receiver.recvfrom(2000)
        now = time.monotonic_ns()
        size, frames, number, begun = struct.unpack_from("<qqqq", data)
        if not size:
            receiver.sendto(data, whose)
            if frames:
                break
            continue
        if number == frames - 1:
            taken.setdefault(f"{size} {frames}", []).append((now - begun) / 1e9)
    print(json.dumps(taken))
else:
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sender.connect(("node2", port))

    def tell(is_end):
        # Until it is answered: the receiver may not be there yet, or may be late.
        sender.settimeout(0.5)
        answer, said = b"", struct.pack("<qqqq", 0, is_end, 0, 0)
        while answer != said:
            try:
                sender.send(said)
                answer = sender.recv(2000)
            except TimeoutError:
                continue
            except ConnectionRefusedError:
                if is_end:
                    break
                time.sleep(0.1)
        sender.settimeout(None)

    tell(False)
    chance = random.Random(7)
    for turn in range(TURNS):
        for size in (32, 300, 700, 1400):
            for frames in (1, 2, 8):
                begun = time.monotonic_ns()
                for number in range(frames):
                    sender.send(struct.pack("<qqqq", size, frames, number, begun).ljust(size))
                # Idle for less and for more than what the shaper's burst takes.
                time.sleep(frames * 300e-6 + chance.choice((0, 20e-6, 100e-6, 1e-3)))
    tell(True)
"""


def test_no_frame_is_ahead_of_a_real_link(cluster: Cluster) -> None:
    script = TIMED.replace("TURNS", str(TURNS)).replace("'", '"')
    groups = json.loads(cluster.execute(f"srun -N2 -w node1,node2 python3 -c '{script}'"))
    assert len(groups) == 12 and all(len(taken) > TURNS // 2 for taken in groups.values())
    link = cluster.describe()["link"]
    rate = link["rate_bit_per_s"] / 8
    for group, taken in groups.items():
        size, frames = map(int, group.split())
        least = frames * (size + HEADERS + FRAME_OVERHEAD_BYTES) / rate
        # At each of the two hops, of twice the rate, so much may pass at once.
        assert min(taken) >= least - 2 * link["burst_bytes"] / (2 * rate), group
        assert statistics.median(taken) >= least, group
