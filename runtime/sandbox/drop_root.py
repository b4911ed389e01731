"""A launcher for hosts that run as root: gives the view to an ordinary uid, then becomes bubblewrap. Run as a script.

A uid without rights cannot reach folders such as /root, where an interpreter may live. So root first opens what the
worker may see and binds it on a tmpfs in a mount namespace of its own; then it is root no more, for good.
Usage: drop_root.py FD [WORD ...]
FD gives {"uid": N, "gid": N, "stage": DIR, "sources": [PATH], "binary": PATH, "options": [WORD]}; source number N is
at DIR/N for bubblewrap, which gets its options by a descriptor and then the other words.
It uses only the standard library, since it runs before any view exists.
"""

import ctypes
import json
import os
import stat
import sys

_CLONE_NEWNS = 0x00020000
_MS_NOSUID, _MS_NODEV = 2, 4
_MS_BIND, _MS_REC, _MS_PRIVATE = 0x1000, 0x4000, 0x40000

_libc = ctypes.CDLL(None, use_errno=True)


def main(descriptor: int, more: list[str]) -> None:
    with open(descriptor, "rb") as file:
        plan = json.load(file)
    _check(_libc.unshare(_CLONE_NEWNS), "unshare the mount namespace")
    _mount(None, "/", None, _MS_REC | _MS_PRIVATE)
    # Opened in the new namespace, since only its own mounts can be bound; before the stage covers sources below it.
    descriptors = [os.open(source, os.O_PATH | os.O_CLOEXEC) for source in plan["sources"]]
    _mount("tmpfs", plan["stage"], "tmpfs", _MS_NOSUID | _MS_NODEV, "mode=755,size=1m")
    for number, descriptor in enumerate(descriptors):
        _stage(descriptor, f"{plan['stage']}/{number}")
    os.setgroups([])
    os.setresgid(plan["gid"], plan["gid"], plan["gid"])
    os.setresuid(plan["uid"], plan["uid"], plan["uid"])
    _become([plan["binary"], "--args", str(_options(plan["options"])), *more])


def _options(words: list[str]) -> int:
    descriptor = os.memfd_create("spm-options", 0)
    # Not closed with the object: bubblewrap reads it.
    with open(descriptor, "wb", closefd=False) as file:
        file.write("\0".join(words).encode(errors="surrogateescape"))
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _become(command: list[str]) -> None:
    try:
        os.execve(command[0], command, {})
    except OSError as error:
        sys.exit(f"spm cannot start bubblewrap as the uid {os.getuid()}: {error.strerror}")


def _stage(descriptor: int, target: str) -> None:
    if stat.S_ISDIR(os.fstat(descriptor).st_mode):
        os.mkdir(target, 0o755)
    else:
        os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644))
    _mount(f"/proc/self/fd/{descriptor}", target, None, _MS_BIND | _MS_REC)
    os.close(descriptor)


def _mount(source: str | None, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    words = [None if word is None else word.encode() for word in (source, target, kind, data)]
    _check(_libc.mount(words[0], words[1], words[2], ctypes.c_ulong(flags), words[3]), f"mount {target}")


def _check(result: int, what: str) -> None:
    if result != 0:
        sys.exit(f"spm cannot {what} to drop root: {os.strerror(ctypes.get_errno())}")


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
