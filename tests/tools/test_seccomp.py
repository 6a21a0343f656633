"""The filter of system calls, run here as the kernel would run it."""

import struct

import pytest

from reasonry.tools.seccomp import filter_program

X86, ARM = ("x86_64", 0xC000003E), ("aarch64", 0xC00000B7)
ALLOWED, KILLED, NOT_PERMITTED, UNKNOWN_CALL = 0x7FFF0000, 0x80000000, 0x00050001, 0x00050026


def ruling(machine: str, architecture: int, number: int, first: int = 0) -> int:
    """Interpret the program over the data of one call."""
    program = filter_program(machine)
    assert program is not None
    steps = [struct.unpack_from("=HBBI", program, at) for at in range(0, len(program), 8)]
    data = struct.pack("=IIQQ", number, architecture, 0, first)
    taken, at = 0, 0
    while True:
        code, if_true, if_false, value = steps[at]
        at += 1
        if code == 0x06:
            return value
        if code == 0x20:
            taken = struct.unpack_from("=I", data, value)[0]
        else:
            holds = {0x15: taken == value, 0x35: taken >= value, 0x45: bool(taken & value)}[code]
            at += if_true if holds else if_false


@pytest.mark.parametrize(
    ("machine", "number"),
    [
        *[(X86, number) for number in (57, 58, 41, 101, 319, 272, 165, 321, 425, 0x40000000 + 57)],
        *[(ARM, number) for number in (198, 117, 279, 97, 40, 280, 425)],
    ],
)
def test_what_it_names_is_not_permitted(machine: tuple[str, int], number: int) -> None:
    assert ruling(*machine, number) == NOT_PERMITTED


@pytest.mark.parametrize(
    ("machine", "number"), [(X86, 0), (X86, 1), (X86, 9), (X86, 59), (X86, 231), (ARM, 63)]
)
def test_all_else_is_allowed(machine: tuple[str, int], number: int) -> None:
    assert ruling(*machine, number) == ALLOWED


@pytest.mark.parametrize(("machine", "clone"), [(X86, 56), (ARM, 220)])
def test_threads_may_be_made_and_processes_not(machine: tuple[str, int], clone: int) -> None:
    assert ruling(*machine, clone, first=0x00010000 | 0x100) == ALLOWED
    assert ruling(*machine, clone, first=0x11) == NOT_PERMITTED
    assert ruling(*machine, 435) == UNKNOWN_CALL


def test_calls_of_another_architecture_kill() -> None:
    assert ruling("x86_64", 0x40000003, 2) == KILLED
    assert ruling("aarch64", X86[1], 57) == KILLED


def test_a_machine_that_is_not_known_has_no_filter() -> None:
    assert filter_program("vax") is None
