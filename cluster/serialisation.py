"""A link on which every frame takes its time, so that it is never faster than a real one.

A token bucket, which is what the kernel's shapers are, lets frames pass at the speed of memory
after an idle moment: a short message then crosses a "100 Mbit/s" link in no time. A real link holds
each frame for as long as it is on the wire. To get that from a shaper, every frame is sent with a
clone of itself in front, at twice the link's rate: the clone passes and the frame waits for as long
as the clone takes, half its time on the wire. With two such hops, node to switch and switch to
node, n frames take n times their length over the rate. The other end of each hop drops the clones.

Timers wake a shaper some microseconds late, how many depends on the machine, and a link would lose
that time with every frame. So the shaper has a burst, with which it catches up while frames wait.
An idle link must not use what it has saved up in this way: except for the little that the
description leaves it, it is spent on one more clone, as long as that, before the first
frame that finds the link idle. For this each way of a hop has a memory that the programs at its
two ends share, and that shows what the shaper has saved up: the time of all frames that
entered the hop, of those that left it, and when they would have been sent without a pause.

Two programs for the kernel's own virtual machine (eBPF) do this, one for what leaves an interface
and one for what comes in. They are few instructions, so they are written out here and need no
compiler. In the kernel's include/uapi/linux/bpf.h: the calls, the functions and the fields of
`__sk_buff`.
"""

import ctypes
import os
import struct
from pathlib import Path

from cluster.description import FRAME_OVERHEAD_BYTES, ClusterError, Link
from cluster.instructions import (
    IF_EQUAL,
    IF_GREATER_THAN_REGISTER,
    IF_NOT_LESS,
    IF_NOT_LESS_THAN_REGISTER,
    IF_OTHER_WORD,
    RESULT,
    STACK,
    Jump,
    add_number,
    add_register,
    add_to_long,
    and_number,
    assembled,
    call_function,
    copy_register,
    divide,
    leave,
    leave_with_result,
    load_long,
    load_short,
    load_word,
    multiply,
    or_number,
    set_map,
    set_number,
    shift_right,
    store_long,
    store_number,
    store_word,
    subtract_register,
)

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
CONTEXT, NOW, MEMORY, KEPT = 6, 7, 8, 9
#: The memory of one way of a hop: three long integers in ns. The time on the wire of all that
#: entered, with clones, and of all that left. And what makes of the first the time, by the kernel's
#: monotonic clock, from which on the hop is free, and of the second that from which on it saves up.
ENTERED, LEFT, OFFSET, MEMORY_BYTES = 0, 8, 16, 24


def _recall(memory: int) -> list[bytes]:
    """Return how the result becomes the address of what a map keeps, or 0."""
    return [
        store_number(STACK, -4, 0),
        set_map(1, memory),
        copy_register(2, STACK),
        add_number(2, -4),
        call_function(LOOK_UP),
    ]


def _send_clone(mark: int) -> list[bytes]:
    """Return how the frame's clone is sent, with the mark in a register."""
    return [
        store_word(CONTEXT, MARK, mark),
        copy_register(1, CONTEXT),
        load_word(2, CONTEXT, INTERFACE),
        set_number(3, 0),
        call_function(CLONE_REDIRECT),
    ]


def _time_on_the_wire(rate_byte_per_s: int) -> list[bytes]:
    """Return how the length of a frame in register 2 becomes its time in ns."""
    return [add_number(2, FRAME_OVERHEAD_BYTES), multiply(2, NS_PER_S), divide(2, rate_byte_per_s)]


def sending(link: Link, memory: int) -> bytes:
    """Return the program for outgoing frames: it puts clones before each frame.

    `memory` is the descriptor of the map that it shares with the program at the other end.
    """
    rate = 2 * link.rate_bit_per_s // 8
    catch_up_ns = CATCH_UP_BYTES * NS_PER_S // rate
    left_ns = link.burst_bytes * NS_PER_S // rate
    return assembled(
        [
            copy_register(CONTEXT, 1),
            load_word(2, CONTEXT, MARK),
            copy_register(3, 2),
            shift_right(3, 16),
            Jump(IF_EQUAL, "clone", 3, number=CLONE_MARK),
            call_function(NANOSECONDS),
            copy_register(NOW, RESULT),
            *_recall(memory),
            Jump(IF_EQUAL, "frame", RESULT),
            copy_register(MEMORY, RESULT),
            load_long(3, MEMORY, ENTERED),
            load_long(4, MEMORY, OFFSET),
            add_register(4, 3),
            add_number(4, left_ns),
            Jump(IF_NOT_LESS_THAN_REGISTER, "link is busy", 4, NOW),
            # What the shaper has saved up since it was free, beside what is left to it.
            copy_register(2, NOW),
            subtract_register(2, 4),
            set_number(4, catch_up_ns - left_ns),
            Jump(IF_GREATER_THAN_REGISTER, "not all", 4, 2),
            copy_register(2, 4),
            # All that entered has left, or was lost, as with a cable that was pulled.
            store_long(MEMORY, LEFT, 3),
            copy_register(4, NOW),
            add_number(4, -catch_up_ns),
            subtract_register(4, 3),
            store_long(MEMORY, OFFSET, 4),
            "not all",
            multiply(2, rate),
            divide(2, NS_PER_S),
            Jump(IF_NOT_LESS, "long enough", 2, number=SHORTEST_CLONE_BYTES),
            set_number(2, SHORTEST_CLONE_BYTES),
            "long enough",
            add_number(2, -FRAME_OVERHEAD_BYTES),
            copy_register(KEPT, 2),
            *_time_on_the_wire(rate),
            add_to_long(MEMORY, ENTERED, 2),
            or_number(KEPT, CLONE_MARK << 16),
            *_send_clone(KEPT),
            "link is busy",
            load_word(2, CONTEXT, LENGTH),
            *_time_on_the_wire(rate),
            # Of the frame and of its clone.
            multiply(2, 2),
            add_to_long(MEMORY, ENTERED, 2),
            set_number(2, CLONE_MARK << 16 | ORDINARY),
            *_send_clone(2),
            "frame",
            set_number(2, 0),
            store_word(CONTEXT, MARK, 2),
            *leave(ACCEPT),
            # A clone comes through here again, by its mark, and gets the address that is dropped.
            "clone",
            store_number(STACK, -8, ADDRESS_START),
            store_number(STACK, -4, ADDRESS_REST),
            and_number(2, 0xFFFF),
            Jump(IF_EQUAL, "addressed", 2, number=ORDINARY),
            store_number(STACK, -4, SPENT_REST),
            Jump(IF_EQUAL, "addressed", 2, number=SPENT),
            # The shaper counts by the length with which it came here, so it comes here once more.
            copy_register(1, CONTEXT),
            set_number(3, 0),
            call_function(CHANGE_TAIL),
            set_number(2, CLONE_MARK << 16 | SPENT),
            store_word(CONTEXT, MARK, 2),
            load_word(1, CONTEXT, INTERFACE),
            set_number(2, 0),
            call_function(REDIRECT),
            leave_with_result(),
            "addressed",
            set_number(2, 0),
            store_word(CONTEXT, MARK, 2),
            copy_register(1, CONTEXT),
            set_number(2, 0),
            copy_register(3, STACK),
            add_number(3, -8),
            set_number(4, len(CLONE_ADDRESS)),
            set_number(5, 0),
            call_function(STORE_BYTES),
            *leave(ACCEPT),
        ]
    )


def receiving(link: Link, memory: int) -> bytes:
    """Return the program for incoming frames: it drops the clones, and counts what left the hop.

    `memory` is the descriptor of the map that it shares with the program at the other end.
    """
    rate = 2 * link.rate_bit_per_s // 8
    catch_up_ns = CATCH_UP_BYTES * NS_PER_S // rate
    return assembled(
        [
            copy_register(CONTEXT, 1),
            set_number(KEPT, 0),
            load_word(2, CONTEXT, DATA),
            load_word(3, CONTEXT, DATA_END),
            copy_register(4, 2),
            add_number(4, len(CLONE_ADDRESS)),
            # Shorter than an address: no clone.
            Jump(IF_GREATER_THAN_REGISTER, "frame", 4, 3),
            load_word(5, 2, 0),
            Jump(IF_OTHER_WORD, "frame", 5, number=ADDRESS_START),
            load_short(KEPT, 2, 4),
            "frame",
            *_recall(memory),
            Jump(IF_EQUAL, "counted", RESULT),
            copy_register(MEMORY, RESULT),
            # What was spent is where the other end put it; all else shows if more was lost.
            Jump(IF_EQUAL, "all is kept", KEPT, number=SPENT_REST),
            call_function(NANOSECONDS),
            copy_register(NOW, RESULT),
            add_number(NOW, -catch_up_ns),
            load_long(3, MEMORY, OFFSET),
            load_long(4, MEMORY, LEFT),
            add_register(4, 3),
            Jump(IF_NOT_LESS_THAN_REGISTER, "all is kept", 4, NOW),
            subtract_register(NOW, 4),
            add_to_long(MEMORY, OFFSET, NOW),
            "all is kept",
            load_word(2, CONTEXT, LENGTH),
            *_time_on_the_wire(rate),
            add_to_long(MEMORY, LEFT, 2),
            "counted",
            Jump(IF_EQUAL, "accepted", KEPT),
            *leave(DROP),
            "accepted",
            *leave(ACCEPT),
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
            f"the kernel does not accept the program that shapes links (bpf: {reason}); use "
            "LINK=none, which limits nothing, or a kernel with CONFIG_BPF_SYSCALL"
        )
    return result


def load(program: bytes, path: Path) -> None:
    """Load a program into the kernel and give it a name in a BPF file system, where tc finds it.

    Raises ClusterError if the kernel does not accept it.
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

    Raises ClusterError if the kernel does not accept them.
    """
    memory = _bpf(MAP_CREATE, struct.pack("<IIII", ARRAY, 4, MEMORY_BYTES, 1))
    try:
        load(sending(link, memory), sending_end)
        load(receiving(link, memory), receiving_end)
    finally:
        os.close(memory)
