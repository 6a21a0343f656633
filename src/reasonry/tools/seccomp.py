"""A system-call filter for Linux, for code in a sandbox.

It denies the calls that the other layers permit: child processes, memory outside every limit (memfd, System V),
sockets, namespaces, mounts, tracing, and the most attacked parts of the kernel.
"""

import platform
import struct
from collections.abc import Collection

_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_EPERM, _ENOSYS = 1, 38
_LOAD, _EQUAL, _ATLEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_CLONE_THREAD = 0x00010000
_X32 = 0x40000000
_AT_NUMBER, _AT_ARCHITECTURE, _AT_FIRST_ARGUMENT = 0, 4, 16

_ARCHITECTURES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
"""Maps each machine type to the kernel's number for it, and to its column in `_DENIED`."""

_CLONE, _CLONE3 = (56, 220), 435

_DENIED: dict[str, tuple[int | None, int | None]] = {
    "fork": (57, None),
    "vfork": (58, None),
    "socket": (41, 198),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "pidfd_getfd": (438, 438),
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "shmget": (29, 194),
    "shmat": (30, 196),
    "msgget": (68, 186),
    "semget": (64, 190),
    "mq_open": (240, 180),
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "keyctl": (250, 219),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "personality": (135, 92),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
}


def filter_program(machine: str | None = None, only: Collection[str] = ()) -> bytes | None:
    """Return the filter in the kernel's binary format, or None for a machine whose call numbers are unknown.

    Args:
        only: The calls to deny. Defaults to every call forbidden in a sandbox.
    """
    known = _ARCHITECTURES.get(machine or platform.machine())
    if known is None:
        return None
    architecture, column = known
    program = [
        _do(_LOAD, _AT_ARCHITECTURE),
        _do(_EQUAL, architecture, 1, 0),
        _do(_RETURN, _KILL),
        _do(_LOAD, _AT_NUMBER),
        # The x32 ABI has additional numbers for the same calls.
        _do(_ATLEAST, _X32, 0, 1),
        _do(_RETURN, _ERRNO | _EPERM),
    ]
    for name, numbers in _DENIED.items():
        number = numbers[column]
        if number is not None and (name in only or not only):
            program += [_do(_EQUAL, number, 0, 1), _do(_RETURN, _ERRNO | _EPERM)]
    if not only:
        program += [
            # The flags of clone3 are in memory, where a filter cannot see them. Without clone3, libraries use clone.
            _do(_EQUAL, _CLONE3, 0, 1),
            _do(_RETURN, _ERRNO | _ENOSYS),
            _do(_EQUAL, _CLONE[column], 0, 3),
            _do(_LOAD, _AT_FIRST_ARGUMENT),
            _do(_ANY_BIT, _CLONE_THREAD, 1, 0),
            _do(_RETURN, _ERRNO | _EPERM),
        ]
    return b"".join([*program, _do(_RETURN, _ALLOW)])


def _do(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)
