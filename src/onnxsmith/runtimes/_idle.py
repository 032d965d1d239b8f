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
from onnxsmith.runtimes._child import Child
from onnxsmith.system import usage

_PATIENCE = 20.0
"""Seconds that one waits."""
_LARGEST = 2**29
"""Bytes of memory with which one may wait: libraries keep what large models took."""
_LIMIT = 5.0

_CHANGING = "PYTEST_"
"""What test runners keep in the environment changes from test to test, and says nothing to a runtime."""


@dataclass
class _Waiting:
    child: Child
    timer: threading.Timer
    process: int
    """Whose child it is: after a fork its pipes are still the parent's."""


_lock = threading.Lock()
_waiting: dict[tuple[str, str], _Waiting] = {}


def started(module: str, what: str) -> Child:
    """A child that serves `module`: one that waited, or a new one."""
    with _lock:
        found = _waiting.pop((module, what), None)
    if found is not None:
        found.timer.cancel()
        if found.process == os.getpid() and found.child.began == _circumstances() and found.child.is_alive:
            return found.child
        _close(found)
    made = Child(module, "main", what=what)
    made.began = _circumstances()
    return made


def let_go(child: Child, module: str, sessions: list[int]) -> None:
    """Has the child forget its sessions and wait, in the place of one that waits already; ends it where it has grown
    large."""
    try:
        if (usage.HERE.resident(child.pid) or 0) > _LARGEST:
            raise OSError
        child.ask({"do": "about", "release": sessions}, time_limit=_LIMIT)
    except (OnnxsmithError, OSError):
        child.close()
        return
    timer = threading.Timer(_PATIENCE, _end, [module, child])
    timer.daemon = True
    with _lock:
        before = _waiting.pop((module, child.what), None)
        _waiting[module, child.what] = _Waiting(child, timer, os.getpid())
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


def _end(module: str, child: Child) -> None:
    with _lock:
        found = _waiting.get((module, child.what))
        if found is None or found.child is not child:
            return
        del _waiting[module, child.what]
    _close(found)


def _close(found: _Waiting) -> None:
    found.timer.cancel()
    if found.process == os.getpid():
        found.child.close()


def _circumstances() -> tuple[Any, ...]:
    """What a child takes from its parent when it starts."""
    return tuple(sys.path), tuple(sorted(item for item in os.environ.items() if not item[0].startswith(_CHANGING)))


atexit.register(end_all)
