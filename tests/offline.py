"""Takes the network away from a test and the processes it starts: a network namespace with a loopback alone."""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager

_NEW_NETWORK = 0x40000000
"""CLONE_NEWNET of unshare(2)."""
_SET_FLAGS, _UP = 0x8914, 0x1
"""SIOCSIFFLAGS and IFF_UP of netdevice(7)."""


def is_possible() -> bool:
    """Whether this process may make a network namespace: on Linux, as root."""
    return os.path.exists("/proc/self/ns/net") and os.geteuid() == 0  # noqa: PTH110 — a name of /proc


@contextmanager
def no_network() -> Iterator[None]:
    """Puts this thread, and what it starts in the block, into a network namespace without interfaces to the outside.
    Where that is not possible, the block runs with the network."""
    if not is_possible():
        yield
        return
    libc = ctypes.CDLL(None, use_errno=True)
    before = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    try:
        _called(libc.unshare(_NEW_NETWORK))
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as handle:
            fcntl.ioctl(handle, _SET_FLAGS, struct.pack("16sH14s", b"lo", _UP, b""))
        try:
            yield
        finally:
            _called(libc.setns(before, _NEW_NETWORK))
    finally:
        os.close(before)


def _called(status: int) -> None:
    if status:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
