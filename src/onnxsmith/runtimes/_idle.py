"""Keeps idle children: starting a child takes longer than running most small models, so two of each kind wait a while
for the next models."""

from __future__ import annotations

import atexit
import os
import sys
import threading
from dataclasses import dataclass
from typing import Any

from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.base.system import usage
from onnxsmith.runtimes._child import Child

_PATIENCE = 20.0
"""Seconds that a child waits. A choice."""
_LARGEST = 2**29
"""Largest memory in bytes of a waiting child: libraries keep what large models took. A choice: 512 MiB."""
_MOST = 2
"""Children of each kind that wait. A comparison of two models, or of one with and without optimisations, uses two."""
_LIMIT = 5.0
"""Seconds for a child to drop its sessions. A choice."""

_CHANGING = "PYTEST_"
"""Prefix of environment variables that test runners change from test to test; runtimes do not read them."""


@dataclass
class _Waiting:
    child: Child
    timer: threading.Timer
    process: int
    """The process whose child it is: after a fork the pipes still belong to the parent."""


_lock = threading.Lock()
_waiting: dict[tuple[str, str], list[_Waiting]] = {}
"""By module and runtime; the one that has waited longest is first."""


def started(module: str, what: str) -> Child:
    """A child that serves `module`: a waiting one, or a new one."""
    while (found := _taken((module, what))) is not None:
        found.timer.cancel()
        if found.process == os.getpid() and found.child.began == _circumstances() and found.child.is_alive:
            return found.child
        _close(found)
    made = Child(module, "main", what=what)
    made.began = _circumstances()
    return made


def _taken(kind: tuple[str, str]) -> _Waiting | None:
    with _lock:
        return _waiting[kind].pop() if _waiting.get(kind) else None


def retire(child: Child, module: str, sessions: list[int]) -> None:
    """Lets the child drop its sessions and wait, in place of the one that has waited longest if enough wait already.
    Ends it if it has grown too large."""
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
        present = _waiting.setdefault((module, child.what), [])
        present.append(_Waiting(child, timer, os.getpid()))
        surplus = present.pop(0) if len(present) > _MOST else None
    timer.start()
    if surplus is not None:
        _close(surplus)


def end_all() -> None:
    """Ends all waiting children."""
    with _lock:
        found = [waiting for present in _waiting.values() for waiting in present]
        _waiting.clear()
    for waiting in found:
        _close(waiting)


def _end(module: str, child: Child) -> None:
    with _lock:
        present = _waiting.get((module, child.what), [])
        found = next((waiting for waiting in present if waiting.child is child), None)
        if found is None:
            return
        present.remove(found)
    _close(found)


def _close(found: _Waiting) -> None:
    found.timer.cancel()
    if found.process == os.getpid():
        found.child.close()


def _circumstances() -> tuple[Any, ...]:
    """The circumstances that a child copies from its parent when it starts: paths and environment."""
    return tuple(sys.path), tuple(sorted(item for item in os.environ.items() if not item[0].startswith(_CHANGING)))


atexit.register(end_all)
