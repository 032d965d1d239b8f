"""Children that nobody uses just now: starting one takes longer than most small models do, so that one of each kind
waits a while for the next model."""

from __future__ import annotations

import atexit
import os
import sys
import threading
from dataclasses import dataclass
from typing import Any

from onnxsmith.problem import OnnxsmithError
from onnxsmith.runtimes import _bounds
from onnxsmith.runtimes._child import Child

_PATIENCE = 20.0
"""Seconds that one waits."""
_LARGEST = 2**29
"""Bytes of memory with which one may wait: libraries keep what large models took."""
_LIMIT = 5.0

_Kind = tuple[Any, ...]


@dataclass
class _Waiting:
    child: Child
    timer: threading.Timer
    process: int
    """Whose child it is: after a fork its pipes are still the parent's."""


_lock = threading.Lock()
_waiting: dict[_Kind, _Waiting] = {}


def started(module: str, what: str) -> Child:
    """A child that serves `module`: one that waited, or a new one."""
    with _lock:
        found = _waiting.pop(_kind(module, what), None)
    if found is not None and found.process == os.getpid():
        found.timer.cancel()
        if found.child.is_alive:
            return found.child
        found.child.close()
    return Child(module, "main", what=what)


def let_go(child: Child, module: str, sessions: list[int]) -> None:
    """Has the child forget its sessions and wait; ends it where one waits already, or it has grown large."""
    kind = _kind(module, child.what)
    with _lock:
        is_one_too_many = kind in _waiting
    try:
        if is_one_too_many or (_bounds.resident(child.pid) or 0) > _LARGEST:
            raise OSError
        child.ask({"do": "about", "release": sessions}, time_limit=_LIMIT)
    except (OnnxsmithError, OSError):
        child.close()
        return
    timer = threading.Timer(_PATIENCE, _end, [kind, child])
    timer.daemon = True
    with _lock:
        before = _waiting.pop(kind, None)
        _waiting[kind] = _Waiting(child, timer, os.getpid())
    timer.start()
    if before is not None:
        _close(before)


def end_all() -> None:
    """Ends all that wait."""
    with _lock:
        found = list(_waiting.values())
        _waiting.clear()
    for one in found:
        _close(one)


def _end(kind: _Kind, child: Child) -> None:
    with _lock:
        found = _waiting.get(kind)
        if found is None or found.child is not child:
            return
        del _waiting[kind]
    _close(found)


def _close(found: _Waiting) -> None:
    found.timer.cancel()
    if found.process == os.getpid():
        found.child.close()


def _kind(module: str, what: str) -> _Kind:
    """Two children are alike when they were started alike."""
    return module, what, tuple(sys.path), tuple(sorted(os.environ.items()))


atexit.register(end_all)
