"""The system calls that no worker needs and that reach around its namespaces. A short list, not a full filter.

The kernel's keyrings know no mount or pid namespace: a worker would have its host's session keyring.
What is written into a memfd counts for no limit of a process; a worker's own ones are its host's.
Tracing is closed by other means as well (`first_process`); it is here so that it is closed twice.
"""

import ctypes
import errno
import os
import struct

_SET_MODE_FILTER, _SPEC_ALLOW = 1, 4
_LOAD_WORD, _JUMP_IF_EQUAL, _JUMP_IF_AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_OFFSET_NUMBER, _OFFSET_ARCHITECTURE = 0, 4
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000 | errno.EPERM
_X32 = 0x40000000

_KEYCTL = "keyctl"
# By machine: the audit architecture, seccomp's own number, and the numbers refused.
_MACHINES = {
    "x86_64": (
        0xC000003E,
        317,
        {
            "ptrace": 101,
            "add_key": 248,
            "request_key": 249,
            _KEYCTL: 250,
            "process_vm_readv": 310,
            "process_vm_writev": 311,
            "memfd_create": 319,
            "memfd_secret": 447,
        },
    ),
    "aarch64": (
        0xC00000B7,
        277,
        {
            "ptrace": 117,
            "add_key": 217,
            "request_key": 218,
            _KEYCTL: 219,
            "process_vm_readv": 270,
            "process_vm_writev": 271,
            "memfd_create": 279,
            "memfd_secret": 447,
        },
    ),
}
_SESSION_KEYRING = -3
_GET_KEYRING_ID = 0

_libc = ctypes.CDLL(None, use_errno=True)


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))


def forbid() -> bool:
    """Refuse the listed calls to this process and all its children, for good; tell whether the kernel took it."""
    machine = _MACHINES.get(os.uname().machine)
    if machine is None:
        return False
    architecture, seccomp, refused = machine
    code = _filter(architecture, sorted(refused.values()))
    program = _Program(len(code) // 8, code)
    # Without the flag kernels before 5.16 slow every computation down to hide from Spectre.
    return int(_libc.syscall(seccomp, _SET_MODE_FILTER, _SPEC_ALLOW, ctypes.byref(program))) == 0


def reaches_keyrings() -> bool:
    """Tell whether the kernel's keyrings answer this process."""
    machine = _MACHINES.get(os.uname().machine)
    if machine is None:
        return True
    got = _libc.syscall(machine[2][_KEYCTL], _GET_KEYRING_ID, _SESSION_KEYRING, 0)
    return got >= 0 or ctypes.get_errno() not in {errno.EPERM, errno.ENOSYS}


def _filter(architecture: int, refused: list[int]) -> bytes:
    """Return classic BPF: another architecture's calls and the x32 ones are refused whole."""
    checks = len(refused) + 1
    steps = [
        (_LOAD_WORD, 0, 0, _OFFSET_ARCHITECTURE),
        (_JUMP_IF_EQUAL, 0, checks + 2, architecture),
        (_LOAD_WORD, 0, 0, _OFFSET_NUMBER),
        (_JUMP_IF_AT_LEAST, checks, 0, _X32),
        *((_JUMP_IF_EQUAL, len(refused) - place, 0, number) for place, number in enumerate(refused)),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _REFUSE),
    ]
    return b"".join(struct.pack("HBBI", *step) for step in steps)
