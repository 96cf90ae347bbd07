"""A link that takes its time over every frame, the first one too.

A token bucket, which is what the kernel's shapers are, lets frames pass at the speed of memory
after an idle moment: a short message then crosses a "100 Mbit/s" link in no time. A real link holds
each frame for as long as it is on the wire. To get that from a shaper, every frame is sent with a
clone of itself in front, at twice the link's rate: the clone passes at once and the frame waits for
as long as the clone takes, half its time on the wire. With two such hops, node to switch and switch
to node, n frames take n times their length over the rate. The other end of each hop drops the
clones.

Two programs for the kernel's own virtual machine (eBPF) do this, one for what leaves an interface
and one for what comes in. They are few instructions, so they stand here as such and need no
compiler. In the kernel's include/uapi/linux/bpf.h: the calls, the functions and the fields of
`__sk_buff`.
"""

import ctypes
import os
import struct
from pathlib import Path

from site_configs.virtual.description import ClusterError

BPF_SYSCALL = {"x86_64": 321, "aarch64": 280}
PROGRAM_LOAD, OBJECT_PIN = 5, 6
SCHEDULER_CLASSIFIER = 3
CLONE_REDIRECT, STORE_BYTES = 13, 9
ACCEPT, DROP = 0, 2
# Fields of __sk_buff.
MARK, INTERFACE, DATA, DATA_END = 8, 40, 76, 80
#: By this mark a clone is known on its way through the interface that it was made at.
CLONE_MARK = 0x57796561
#: And by this destination, a locally administered address that nobody has, at the other end.
CLONE_ADDRESS = bytes.fromhex("02ffffffff77")
ADDRESS_START, ADDRESS_REST = struct.unpack("<ih", CLONE_ADDRESS)
CONTEXT, STACK = 6, 10


def _instruction(
    code: int, target: int = 0, source: int = 0, offset: int = 0, number: int = 0
) -> bytes:
    return struct.pack("<BBhi", code, target | source << 4, offset, number)


def _copy(target: int, source: int) -> bytes:
    return _instruction(0xBF, target, source)


def _set(target: int, number: int) -> bytes:
    return _instruction(0xB7, target, number=number)


def _add(target: int, number: int) -> bytes:
    return _instruction(0x07, target, number=number)


def _load(target: int, source: int, offset: int) -> bytes:
    return _instruction(0x61, target, source, offset)


def _store(target: int, offset: int, source: int) -> bytes:
    return _instruction(0x63, target, source, offset)


def _store_number(target: int, offset: int, number: int) -> bytes:
    return _instruction(0x62, target, offset=offset, number=number)


def _call(function: int) -> bytes:
    return _instruction(0x85, number=function)


def _leave(verdict: int) -> list[bytes]:
    return [_set(0, verdict), _instruction(0x95)]


def sending() -> bytes:
    """Return the program for what leaves an interface: it puts a clone before each frame."""
    of_frame = [
        _set(2, CLONE_MARK),
        _store(CONTEXT, MARK, 2),
        _copy(1, CONTEXT),
        _load(2, CONTEXT, INTERFACE),
        _set(3, 0),
        _call(CLONE_REDIRECT),
        _set(2, 0),
        _store(CONTEXT, MARK, 2),
        *_leave(ACCEPT),
    ]
    # The clone comes through here again, by its mark, and gets the address that is dropped.
    of_clone = [
        _set(2, 0),
        _store(CONTEXT, MARK, 2),
        _store_number(STACK, -8, ADDRESS_START),
        _store_number(STACK, -4, ADDRESS_REST),
        _copy(1, CONTEXT),
        _set(2, 0),
        _copy(3, STACK),
        _add(3, -8),
        _set(4, len(CLONE_ADDRESS)),
        _set(5, 0),
        _call(STORE_BYTES),
        *_leave(ACCEPT),
    ]
    jump_if_clone = _instruction(0x15, 2, offset=len(of_frame), number=CLONE_MARK)
    start = [_copy(CONTEXT, 1), _load(2, CONTEXT, MARK), jump_if_clone]
    return b"".join([*start, *of_frame, *of_clone])


def receiving() -> bytes:
    """Return the program for what comes in: it drops the clones."""
    return b"".join(
        [
            _load(2, 1, DATA),
            _load(3, 1, DATA_END),
            _copy(4, 2),
            _add(4, len(CLONE_ADDRESS)),
            # Shorter than an address: no clone (on to the last two instructions).
            _instruction(0x2D, 4, 3, offset=4),
            _load(5, 2, 0),
            # A comparison of 32 bits: the wider one would extend the number's sign.
            _instruction(0x56, 5, offset=2, number=ADDRESS_START),
            *_leave(DROP),
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
        _bpf(OBJECT_PIN, struct.pack("<QI", ctypes.addressof(name), descriptor))
    finally:
        os.close(descriptor)
