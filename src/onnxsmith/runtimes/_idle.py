"""Keeps idle children for the next models, up to two of each kind. Starting a child takes longer than running most
small models."""

from __future__ import annotations

import atexit
import os
import sys
import threading
from dataclasses import dataclass
from typing import Any

from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.base.system import forks, usage
from onnxsmith.runtimes._child import Child

_PATIENCE = 20.0
"""Limits the seconds that an idle child waits before it is ended. A choice."""
_LARGEST = 2**29
"""Limits the memory of an idle child, in bytes; a library keeps memory that large models took. A choice: 512 MiB."""
_MOST = 2
"""Limits the idle children of each kind. A comparison uses two children, either of two models or of one model with and
without optimisations."""
_LIMIT = 5.0
"""Limits the seconds that a child takes to drop its sessions. A choice."""

_CHANGING = "PYTEST_"
"""Is the prefix of environment variables that test runners change from test to test; runtimes do not read these
variables."""


@dataclass
class _Waiting:
    child: Child
    timer: threading.Timer


_lock = threading.Lock()
_waiting: dict[tuple[str, str], list[_Waiting]] = {}
"""Holds the idle children by module and runtime. The child that has waited longest is first."""


def started(module: str, what: str) -> Child:
    """Returns a child that serves `module`. This is an idle child if there is one, else a new child."""
    while (found := _taken((module, what))) is not None:
        found.timer.cancel()
        if found.child.began == _circumstances() and found.child.is_alive:
            return found.child
        _close(found)
    made = Child(module, "main", what=what)
    made.began = _circumstances()
    return made


def _taken(kind: tuple[str, str]) -> _Waiting | None:
    with _lock:
        return _waiting[kind].pop() if _waiting.get(kind) else None


def retire(child: Child, module: str, sessions: list[int]) -> None:
    """Makes the child drop its sessions and wait as an idle child. If enough children wait, the child that has waited
    longest is ended. A child that has grown too large is ended instead."""
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
        present.append(_Waiting(child, timer))
        surplus = present.pop(0) if len(present) > _MOST else None
    timer.start()
    if surplus is not None:
        _close(surplus)


def end_all() -> None:
    """Ends all idle children."""
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
    found.child.close()


def _circumstances() -> tuple[Any, ...]:
    """Returns the paths and environment that a child copies from its parent when it starts."""
    return tuple(sys.path), tuple(sorted(item for item in os.environ.items() if not item[0].startswith(_CHANGING)))


atexit.register(end_all)
forks.wait_for(_lock)
forks.in_child(end_all)  # the children belong to the parent: `close` ends none of them
