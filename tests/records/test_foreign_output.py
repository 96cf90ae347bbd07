"""What NetPIPE and IMB wrote on a real machine is read whole; anything less is refused."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from records.base import RecordError
from records.imb import one_way_time, read_imb_output
from records.netpipe import read_netpipe_hosts, read_netpipe_output

CAPTURED = Path(__file__).with_name("captured")
NETPIPE = (CAPTURED / "netpipe.out").read_text()
PINGPONG = (CAPTURED / "imb_pingpong.stdout").read_text()
ALLREDUCE = (CAPTURED / "imb_allreduce.stdout").read_text()
BARRIER = (CAPTURED / "imb_barrier.stdout").read_text()


def test_netpipe() -> None:
    points = read_netpipe_output(CAPTURED / "netpipe.out")
    assert [point.message_bytes for point in points[:5]] == [64, 96, 128, 192, 256]
    assert len(points) == 15 and points[-1].message_bytes == 8192
    # Finer than the eight decimals of the time: 64 bytes at 360.753919 x 2^20 bits a second.
    assert points[0].one_way_s == pytest.approx(512 / (360.753919 * 2**20))
    assert read_netpipe_hosts(CAPTURED / "netpipe.stdout") == ["vm", "vm"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", ":1: the output is empty"),
        (NETPIPE[:-3], ":15: the last line is cut off"),
        (NETPIPE.replace("489.561753", "489.5617"), ":2: not a size, a rate and a time"),
        (NETPIPE.replace("489.561753", "nan"), ":2: not a size, a rate and a time"),
        (NETPIPE.replace("489.561753", "0.000000"), ":2: 96 bytes at 0 Mbps are not a measurement"),
        (NETPIPE.replace("0.00000150", "0.00000250"), ":2: 96 bytes at 489.562 Mbps take"),
        (NETPIPE + NETPIPE, ":16: 64 bytes after 8192: two outputs"),
        ("Now starting the main loop\n" + NETPIPE, ":1: not a size"),
        (NETPIPE.replace("64", "9" * 400, 1), f":1: {'9' * 30}… is more than any program counts"),
    ],
)
def test_netpipe_damaged(tmp_path: Path, text: str, sentence: str) -> None:
    path = tmp_path / "np.out"
    path.write_text(text)
    with pytest.raises(RecordError) as caught:
        read_netpipe_output(path)
    assert f"{path}{sentence}" in str(caught.value)


@pytest.mark.parametrize(
    "text", ["", "0: a\n0: a\n", "1: a\n", "1: a\n2: b\n", f"{'9' * 9000}: a\n"]
)
def test_netpipe_hosts_of_no_world(tmp_path: Path, text: str) -> None:
    path = tmp_path / "stdout"
    path.write_text(text)
    with pytest.raises(RecordError, match="stdout:"):
        read_netpipe_hosts(path)


@pytest.mark.parametrize("read", [read_netpipe_output, read_netpipe_hosts, read_imb_output])
def test_no_file_at_all(tmp_path: Path, read: Callable[[Path], object]) -> None:
    with pytest.raises(RecordError, match="none:1: "):
        read(tmp_path / "none")


def test_imb() -> None:
    found = read_imb_output(CAPTURED / "imb_pingpong.stdout")
    first = found[0]
    assert (first.benchmark, first.processes, first.repetitions) == ("PingPong", 2, 1000)
    assert first.message_bytes == 64
    # 3.02 usec and 21.17 Mbytes/sec are printed, of which the first is as fine as the second.
    assert first.time_s == pytest.approx(3.02e-6, rel=2e-3)
    reduced = read_imb_output(CAPTURED / "imb_allreduce.stdout")
    assert {one.benchmark for one in reduced} == {"Allreduce"}
    assert all(0 < one.least_s <= one.time_s <= one.most_s < 1e-3 for one in reduced)
    barriers = read_imb_output(CAPTURED / "imb_barrier.stdout")
    assert [one.most_s for one in barriers] == pytest.approx([5.9e-7, 6.5e-7, 5.7e-7])
    assert {one.message_bytes for one in barriers} == {0}


@given(size=st.integers(1, 1 << 22), time_us=st.floats(0.05, 1e6))
def test_whatever_imb_prints_of_a_time_is_read(size: int, time_us: float) -> None:
    """A low rate tells little: of 1 byte in 15.36 µs it is printed as 0.07."""
    time, rate = float(f"{time_us:.2f}"), float(f"{size / time_us:.2f}")
    read = one_way_time(size, time * 1e-6, rate)
    assert read == pytest.approx(time_us * 1e-6, abs=0.0051e-6)


def test_a_low_rate_that_contradicts_its_time_is_refused() -> None:
    assert one_way_time(1, 15.36e-6, 0.07) == 15.36e-6
    for time in (15.40e-6, 13.30e-6):
        with pytest.raises(ValueError, match=r"0\.07 Mbytes/sec take"):
            one_way_time(1, time, 0.07)


def cut(text: str, before: str) -> str:
    """Return the text up to a piece of it."""
    assert before in text
    return text[: text.index(before)]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "truncated or empty"),
        (cut(PINGPONG, "# All processes"), "truncated or empty"),
        (cut(PINGPONG, "37.56"), "neither a comment nor a line of a table"),
        (PINGPONG.replace("           64 ", f" {'9' * 400} ", 1), "is more than any program"),
        (PINGPONG.replace("37.56", "47.56"), "47.56 Mbytes/sec take"),
        (PINGPONG.replace("         1000         3.02", "            0         3.02"),
         "a result of zero repetitions"),
        (PINGPONG.replace("        3.02", "         nan"), "neither a comment nor"),
        (PINGPONG.replace("# PingPong\n", "# PingPong\n# PingPing\n"),
         "was to run PingPong, PingPing but ran PingPong"),
        (BARRIER.replace("         1000         0.65         0.65         0.65\n", ""),
         "there is no result of Barrier"),
        (BARRIER.replace("0.65         0.65         0.65", "0.65         0.64         0.65"),
         "are not in order"),
        (PINGPONG + "Abort(1)\n", "there is more output after IMB's last line"),
        ("a warning of some library\n" + PINGPONG, ":1: neither a comment nor a line of a table"),
        (ALLREDUCE.replace("# #processes = 2", "# processes"), "a table without a benchmark"),
    ],
)  # fmt: skip
def test_imb_damaged(tmp_path: Path, text: str, sentence: str) -> None:
    path = tmp_path / "stdout"
    path.write_text(text)
    with pytest.raises(RecordError) as caught:
        read_imb_output(path)
    assert f"{path}:" in str(caught.value) and sentence in str(caught.value)
