"""A link that takes its time over every frame, and is never ahead of a real one.

A token bucket, which is what the kernel's shapers are, lets frames pass at the speed of memory
after an idle moment: a short message then crosses a "100 Mbit/s" link in no time. A real link holds
each frame for as long as it is on the wire. To get that from a shaper, every frame is sent with a
clone of itself in front, at twice the link's rate: the clone passes and the frame waits for as long
as the clone takes, half its time on the wire. With two such hops, node to switch and switch to
node, n frames take n times their length over the rate. The other end of each hop drops the clones.

Timers wake a shaper late, each machine's by its own some microseconds, and a link would lose that
time with every frame. So the shaper has a burst, by which it catches up with what it is behind
while frames wait. What an idle link has saved up in the same way is nobody's: but for the little
that the description leaves it, it is spent on one more clone, as long as that, before the first
frame that finds the link idle. For this each way of a hop has a memory that the programs at its
two ends share, and from which follows what the shaper has saved up: the time that all took which
entered the hop, that which left it, and when it would have been sent without a pause.

Two programs for the kernel's own virtual machine (eBPF) do this, one for what leaves an interface
and one for what comes in. They are few instructions, so they stand here as such and need no
compiler. In the kernel's include/uapi/linux/bpf.h: the calls, the functions and the fields of
`__sk_buff`.
"""

import ctypes
import os
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from site_configs.virtual.description import FRAME_OVERHEAD_BYTES, ClusterError, Link

BPF_SYSCALL = {"x86_64": 321, "aarch64": 280}
MAP_CREATE, PROGRAM_LOAD, OBJECT_PIN = 0, 5, 6
ARRAY = 2
SCHEDULER_CLASSIFIER = 3
LOOK_UP, NANOSECONDS, STORE_BYTES, CLONE_REDIRECT, REDIRECT, CHANGE_TAIL = 1, 5, 9, 13, 23, 38
ACCEPT, DROP = 0, 2
# Fields of __sk_buff.
LENGTH, MARK, INTERFACE, DATA, DATA_END = 0, 8, 40, 76, 80
#: By the upper half of its mark a clone is known on its way through the interface that it was made
#: at. The lower half says that it is as long as the frame, or that it spends what was saved up, or
#: the length that it shall get for that.
CLONE_MARK, ORDINARY, SPENT = 0x5779, 0, 1
#: And by this destination, a locally administered address that nobody has, at the other end.
CLONE_ADDRESS = bytes.fromhex("02ffffffff77")
ADDRESS_START, ADDRESS_REST = struct.unpack("<ih", CLONE_ADDRESS)
#: One that only spends what was saved up has another end of the address.
SPENT_REST = 0x78FF
#: The kernel shortens no frame into its headers, so this is spent at least.
SHORTEST_CLONE_BYTES = 64 + FRAME_OVERHEAD_BYTES
#: What a shaper catches up with, while frames wait, after a timer that was late: as much as one
#: clone can spend, a full frame of Ethernet, and 62 us of 100 Mbit/s.
CATCH_UP_BYTES = 1514 + FRAME_OVERHEAD_BYTES
NS_PER_S = 1_000_000_000
RESULT, CONTEXT, NOW, MEMORY, KEPT, STACK = 0, 6, 7, 8, 9, 10
#: The memory of one way of a hop: three long integers in ns. The time on the wire of all that
#: entered, with clones, and of all that left. And what makes of the first the time, by the kernel's
#: monotonic clock, from which on the hop is free, and of the second that from which on it saves up.
ENTERED, LEFT, OFFSET, MEMORY_BYTES = 0, 8, 16, 24


@dataclass(frozen=True)
class _Jump:
    """A jump to a label, if the register `target` compares so with another or with a number."""

    code: int
    label: str
    target: int = 0
    source: int = 0
    number: int = 0


IF_EQUAL, IF_NOT_LESS = 0x15, 0x35
IF_NOT_LESS_THAN_REGISTER, IF_GREATER_THAN_REGISTER = 0x3D, 0x2D
#: A comparison of 32 bits: the wider one would extend the number's sign.
IF_OTHER_WORD = 0x56
#: A label is a string, whatever else is whole instructions.
Part = bytes | str | _Jump


def _assembled(parts: Sequence[Part]) -> bytes:
    """Return a program whose jumps lead to its labels."""
    at, labels = 0, {}
    for part in parts:
        if isinstance(part, str):
            labels[part] = at
        else:
            at += 1 if isinstance(part, _Jump) else len(part) // 8
    code = b""
    for part in parts:
        if isinstance(part, _Jump):
            offset = labels[part.label] - len(code) // 8 - 1
            code += _instruction(part.code, part.target, part.source, offset, part.number)
        elif isinstance(part, bytes):
            code += part
    return code


def _instruction(
    code: int, target: int = 0, source: int = 0, offset: int = 0, number: int = 0
) -> bytes:
    return struct.pack("<BBhi", code, target | source << 4, offset, number)


def _copy(target: int, source: int) -> bytes:
    return _instruction(0xBF, target, source)


def _set(target: int, number: int) -> bytes:
    return _instruction(0xB7, target, number=number)


def _set_map(target: int, descriptor: int) -> bytes:
    """Set a register to a map, which takes two instructions' room; the kernel puts in which."""
    return _instruction(0x18, target, 1, number=descriptor) + _instruction(0)


def _add(target: int, number: int) -> bytes:
    return _instruction(0x07, target, number=number)


def _add_register(target: int, source: int) -> bytes:
    return _instruction(0x0F, target, source)


def _subtract_register(target: int, source: int) -> bytes:
    return _instruction(0x1F, target, source)


def _multiply(target: int, number: int) -> bytes:
    return _instruction(0x27, target, number=number)


def _divide(target: int, number: int) -> bytes:
    return _instruction(0x37, target, number=number)


def _or(target: int, number: int) -> bytes:
    return _instruction(0x47, target, number=number)


def _and(target: int, number: int) -> bytes:
    return _instruction(0x57, target, number=number)


def _shift_right(target: int, bits: int) -> bytes:
    return _instruction(0x77, target, number=bits)


def _load(target: int, source: int, offset: int) -> bytes:
    return _instruction(0x61, target, source, offset)


def _load_short(target: int, source: int, offset: int) -> bytes:
    return _instruction(0x69, target, source, offset)


def _load_long(target: int, source: int, offset: int) -> bytes:
    return _instruction(0x79, target, source, offset)


def _store(target: int, offset: int, source: int) -> bytes:
    return _instruction(0x63, target, source, offset)


def _store_long(target: int, offset: int, source: int) -> bytes:
    return _instruction(0x7B, target, source, offset)


def _store_number(target: int, offset: int, number: int) -> bytes:
    return _instruction(0x62, target, offset=offset, number=number)


def _add_to_long(target: int, offset: int, source: int) -> bytes:
    """Add a register to memory at once, whoever else does so."""
    return _instruction(0xDB, target, source, offset)


def _call(function: int) -> bytes:
    return _instruction(0x85, number=function)


def _leave(verdict: int) -> list[bytes]:
    return [_set(RESULT, verdict), _instruction(0x95)]


def _recall(memory: int) -> list[bytes]:
    """Return how the result becomes the address of what a map keeps, or 0."""
    return [
        _store_number(STACK, -4, 0),
        _set_map(1, memory),
        _copy(2, STACK),
        _add(2, -4),
        _call(LOOK_UP),
    ]


def _send_clone(mark: int) -> list[bytes]:
    """Return how the frame's clone is sent, with the mark in a register."""
    return [
        _store(CONTEXT, MARK, mark),
        _copy(1, CONTEXT),
        _load(2, CONTEXT, INTERFACE),
        _set(3, 0),
        _call(CLONE_REDIRECT),
    ]


def _time_on_the_wire(rate_byte_per_s: int) -> list[bytes]:
    """Return how the length of a frame in register 2 becomes its time in ns."""
    return [_add(2, FRAME_OVERHEAD_BYTES), _multiply(2, NS_PER_S), _divide(2, rate_byte_per_s)]


def sending(link: Link, memory: int) -> bytes:
    """Return the program for what leaves an interface: it puts clones before each frame.

    `memory` is the descriptor of the map that it shares with the program at the other end.
    """
    rate = 2 * link.rate_bit_per_s // 8
    catch_up_ns = CATCH_UP_BYTES * NS_PER_S // rate
    left_ns = link.burst_bytes * NS_PER_S // rate
    return _assembled(
        [
            _copy(CONTEXT, 1),
            _load(2, CONTEXT, MARK),
            _copy(3, 2),
            _shift_right(3, 16),
            _Jump(IF_EQUAL, "clone", 3, number=CLONE_MARK),
            _call(NANOSECONDS),
            _copy(NOW, RESULT),
            *_recall(memory),
            _Jump(IF_EQUAL, "frame", RESULT),
            _copy(MEMORY, RESULT),
            _load_long(3, MEMORY, ENTERED),
            _load_long(4, MEMORY, OFFSET),
            _add_register(4, 3),
            _add(4, left_ns),
            _Jump(IF_NOT_LESS_THAN_REGISTER, "link is busy", 4, NOW),
            # What the shaper has saved up since it was free, beside what is left to it.
            _copy(2, NOW),
            _subtract_register(2, 4),
            _set(4, catch_up_ns - left_ns),
            _Jump(IF_GREATER_THAN_REGISTER, "not all", 4, 2),
            _copy(2, 4),
            # All that entered has left, or was lost, as with a cable that was pulled.
            _store_long(MEMORY, LEFT, 3),
            _copy(4, NOW),
            _add(4, -catch_up_ns),
            _subtract_register(4, 3),
            _store_long(MEMORY, OFFSET, 4),
            "not all",
            _multiply(2, rate),
            _divide(2, NS_PER_S),
            _Jump(IF_NOT_LESS, "long enough", 2, number=SHORTEST_CLONE_BYTES),
            _set(2, SHORTEST_CLONE_BYTES),
            "long enough",
            _add(2, -FRAME_OVERHEAD_BYTES),
            _copy(KEPT, 2),
            *_time_on_the_wire(rate),
            _add_to_long(MEMORY, ENTERED, 2),
            _or(KEPT, CLONE_MARK << 16),
            *_send_clone(KEPT),
            "link is busy",
            _load(2, CONTEXT, LENGTH),
            *_time_on_the_wire(rate),
            # Of the frame and of its clone.
            _multiply(2, 2),
            _add_to_long(MEMORY, ENTERED, 2),
            _set(2, CLONE_MARK << 16 | ORDINARY),
            *_send_clone(2),
            "frame",
            _set(2, 0),
            _store(CONTEXT, MARK, 2),
            *_leave(ACCEPT),
            # A clone comes through here again, by its mark, and gets the address that is dropped.
            "clone",
            _store_number(STACK, -8, ADDRESS_START),
            _store_number(STACK, -4, ADDRESS_REST),
            _and(2, 0xFFFF),
            _Jump(IF_EQUAL, "addressed", 2, number=ORDINARY),
            _store_number(STACK, -4, SPENT_REST),
            _Jump(IF_EQUAL, "addressed", 2, number=SPENT),
            # The shaper counts by the length with which it came here, so it comes here once more.
            _copy(1, CONTEXT),
            _set(3, 0),
            _call(CHANGE_TAIL),
            _set(2, CLONE_MARK << 16 | SPENT),
            _store(CONTEXT, MARK, 2),
            _load(1, CONTEXT, INTERFACE),
            _set(2, 0),
            _call(REDIRECT),
            _instruction(0x95),
            "addressed",
            _set(2, 0),
            _store(CONTEXT, MARK, 2),
            _copy(1, CONTEXT),
            _set(2, 0),
            _copy(3, STACK),
            _add(3, -8),
            _set(4, len(CLONE_ADDRESS)),
            _set(5, 0),
            _call(STORE_BYTES),
            *_leave(ACCEPT),
        ]
    )


def receiving(link: Link, memory: int) -> bytes:
    """Return the program for what comes in: it drops the clones, and keeps what left the hop.

    `memory` is the descriptor of the map that it shares with the program at the other end.
    """
    rate = 2 * link.rate_bit_per_s // 8
    catch_up_ns = CATCH_UP_BYTES * NS_PER_S // rate
    return _assembled(
        [
            _copy(CONTEXT, 1),
            _set(KEPT, 0),
            _load(2, CONTEXT, DATA),
            _load(3, CONTEXT, DATA_END),
            _copy(4, 2),
            _add(4, len(CLONE_ADDRESS)),
            # Shorter than an address: no clone.
            _Jump(IF_GREATER_THAN_REGISTER, "frame", 4, 3),
            _load(5, 2, 0),
            _Jump(IF_OTHER_WORD, "frame", 5, number=ADDRESS_START),
            _load_short(KEPT, 2, 4),
            "frame",
            *_recall(memory),
            _Jump(IF_EQUAL, "counted", RESULT),
            _copy(MEMORY, RESULT),
            # What was spent is where the other end put it; all else shows if more was lost.
            _Jump(IF_EQUAL, "all is kept", KEPT, number=SPENT_REST),
            _call(NANOSECONDS),
            _copy(NOW, RESULT),
            _add(NOW, -catch_up_ns),
            _load_long(3, MEMORY, OFFSET),
            _load_long(4, MEMORY, LEFT),
            _add_register(4, 3),
            _Jump(IF_NOT_LESS_THAN_REGISTER, "all is kept", 4, NOW),
            _subtract_register(NOW, 4),
            _add_to_long(MEMORY, OFFSET, NOW),
            "all is kept",
            _load(2, CONTEXT, LENGTH),
            *_time_on_the_wire(rate),
            _add_to_long(MEMORY, LEFT, 2),
            "counted",
            _Jump(IF_EQUAL, "accepted", KEPT),
            *_leave(DROP),
            "accepted",
            *_leave(ACCEPT),
        ]
    )


def _bpf(command: int, attributes: bytes) -> int:
    number = BPF_SYSCALL.get(os.uname().machine)
    if number is None:
        raise ClusterError(
            f"links cannot be shaped on {os.uname().machine}; use LINK=none, which limits nothing"
        )
    library = ctypes.CDLL(None, use_errno=True)
    # The kernel takes more than it knows of as long as the rest is zero.
    buffer = ctypes.create_string_buffer(attributes, 128)
    result = int(library.syscall(number, command, buffer, len(buffer)))
    if result < 0:
        reason = os.strerror(ctypes.get_errno())
        raise ClusterError(
            f"the kernel does not take the program that shapes links (bpf: {reason}); use "
            "LINK=none, which limits nothing, or a kernel with CONFIG_BPF_SYSCALL"
        )
    return result


def load(program: bytes, path: Path) -> None:
    """Load a program into the kernel and give it a name in a BPF file system, where tc finds it.

    Raises ClusterError where the kernel does not take it.
    """
    code = ctypes.create_string_buffer(program, len(program))
    licence = ctypes.create_string_buffer(b"Apache-2.0")
    attributes = struct.pack(
        "<IIQQ",
        SCHEDULER_CLASSIFIER,
        len(program) // 8,
        ctypes.addressof(code),
        ctypes.addressof(licence),
    )
    descriptor = _bpf(PROGRAM_LOAD, attributes)
    name = ctypes.create_string_buffer(os.fsencode(path))
    try:
        # A name that a program has already is free once that is unlinked; who runs it keeps it.
        path.unlink(missing_ok=True)
        _bpf(OBJECT_PIN, struct.pack("<QI", ctypes.addressof(name), descriptor))
    finally:
        os.close(descriptor)


def load_hop(link: Link, sending_end: Path, receiving_end: Path) -> None:
    """Load the programs for one way of a hop, with a memory of their own, under two names.

    Raises ClusterError where the kernel does not take them.
    """
    memory = _bpf(MAP_CREATE, struct.pack("<IIII", ARRAY, 4, MEMORY_BYTES, 1))
    try:
        load(sending(link, memory), sending_end)
        load(receiving(link, memory), receiving_end)
    finally:
        os.close(memory)
