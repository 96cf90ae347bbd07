"""Instructions of the kernel's own virtual machine (eBPF), and programs built from them.

As in the kernel's include/uapi/linux/bpf.h: eight bytes an instruction. A program's first argument
is in register 1, those of a function that it calls in 1 to 5, results in 0; 10 is the stack.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass

RESULT, STACK = 0, 10


@dataclass(frozen=True)
class Jump:
    """A jump to a label, if register `target` compares that way with another or with a number."""

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
InstructionPart = bytes | str | Jump


def assembled(parts: Sequence[InstructionPart]) -> bytes:
    """Return a program whose jumps lead to its labels."""
    at, labels = 0, {}
    for part in parts:
        if isinstance(part, str):
            labels[part] = at
        else:
            at += 1 if isinstance(part, Jump) else len(part) // 8
    code = b""
    for part in parts:
        if isinstance(part, Jump):
            offset = labels[part.label] - len(code) // 8 - 1
            code += instruction(part.code, part.target, part.source, offset, part.number)
        elif isinstance(part, bytes):
            code += part
    return code


def instruction(
    code: int, target: int = 0, source: int = 0, offset: int = 0, number: int = 0
) -> bytes:
    """Return one instruction, as the kernel has it in memory."""
    return struct.pack("<BBhi", code, target | source << 4, offset, number)


def copy_register(target: int, source: int) -> bytes:
    """Return how a register becomes another."""
    return instruction(0xBF, target, source)


def set_number(target: int, number: int) -> bytes:
    """Return how a register becomes a number."""
    return instruction(0xB7, target, number=number)


def set_map(target: int, descriptor: int) -> bytes:
    """Set a register to a map, which takes two instructions' room; the kernel puts in which."""
    return instruction(0x18, target, 1, number=descriptor) + instruction(0)


def add_number(target: int, number: int) -> bytes:
    """Return how a number is added to a register."""
    return instruction(0x07, target, number=number)


def add_register(target: int, source: int) -> bytes:
    """Return how a register is added to another."""
    return instruction(0x0F, target, source)


def subtract_register(target: int, source: int) -> bytes:
    """Return how a register is taken from another."""
    return instruction(0x1F, target, source)


def multiply(target: int, number: int) -> bytes:
    """Return how a register is multiplied by a number."""
    return instruction(0x27, target, number=number)


def divide(target: int, number: int) -> bytes:
    """Return how a register is divided by a number, without signs."""
    return instruction(0x37, target, number=number)


def or_number(target: int, number: int) -> bytes:
    """Return how the bits of a number are set in a register."""
    return instruction(0x47, target, number=number)


def and_number(target: int, number: int) -> bytes:
    """Return how the bits that a number does not have are cleared in a register."""
    return instruction(0x57, target, number=number)


def shift_right(target: int, bits: int) -> bytes:
    """Return how a register is moved right, without signs."""
    return instruction(0x77, target, number=bits)


def load_word(target: int, source: int, offset: int) -> bytes:
    """Return how a register becomes 32 bits of memory."""
    return instruction(0x61, target, source, offset)


def load_short(target: int, source: int, offset: int) -> bytes:
    """Return how a register becomes 16 bits of memory."""
    return instruction(0x69, target, source, offset)


def load_long(target: int, source: int, offset: int) -> bytes:
    """Return how a register becomes 64 bits of memory."""
    return instruction(0x79, target, source, offset)


def store_word(target: int, offset: int, source: int) -> bytes:
    """Return how 32 bits of a register are written to memory."""
    return instruction(0x63, target, source, offset)


def store_long(target: int, offset: int, source: int) -> bytes:
    """Return how a register is written to memory."""
    return instruction(0x7B, target, source, offset)


def store_number(target: int, offset: int, number: int) -> bytes:
    """Return how a number of 32 bits is written to memory."""
    return instruction(0x62, target, offset=offset, number=number)


def add_to_long(target: int, offset: int, source: int) -> bytes:
    """Add a register to memory at once, whoever else does so."""
    return instruction(0xDB, target, source, offset)


def call_function(function: int) -> bytes:
    """Return how one of the kernel's functions is called."""
    return instruction(0x85, number=function)


def leave(verdict: int) -> list[bytes]:
    """Return how a program ends with a verdict."""
    return [set_number(RESULT, verdict), leave_with_result()]


def leave_with_result() -> bytes:
    """Return how a program ends with what is in the register of results."""
    return instruction(0x95)
