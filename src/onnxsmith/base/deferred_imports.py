"""Imports slow modules of other libraries at the first use of a name in them.

onnx-ir and onnx-shape-inference import sympy, a third of a second, and use it for arithmetic with symbolic dimensions
only. `importlib.util.LazyLoader` would load a module at its second import: up to Python 3.12 every import reads
`__spec__`, and its modules load at any read."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

_NAMES = frozenset(
    {
        "sympy",
        "onnx_ir._symbolic_shapes",
        "onnx_shape_inference._constraints",
        "onnx_shape_inference._symbolic_shapes",
    }
)
"""Lists the slow module, and the modules that use names of it while they are imported."""
_LOCK = threading.RLock()
_waiting: dict[str, list[tuple[int, Callable[[], None]]]] = {}
"""Holds for modules that are not loaded yet what to do then, and in which thread."""


def begin() -> None:
    """Defers the imports of this process. Meant for the command line: a library leaves imports to its caller, and a
    child with a memory limit would try to load a module again at each use."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())  # importlib.abc is slow to import


@contextmanager
def when_loaded(name: str, action: Callable[[], None]) -> Iterator[None]:
    """Runs an action now if a module is loaded, else when this thread loads it while the block runs."""
    entry = (threading.get_ident(), action)
    with _LOCK:
        waits = isinstance(sys.modules.get(name), _Deferred)
        if waits:
            _waiting.setdefault(name, []).append(entry)
    if not waits:
        action()
    try:
        yield
    finally:
        with _LOCK:
            if waits and entry in _waiting.get(name, ()):
                _waiting[name].remove(entry)


class _Deferred(ModuleType):
    """A module whose code has not run yet. Python calls `__getattr__` for names that it lacks, so that reads of
    `__spec__`, as each import makes, do not run it."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        _load(self)
        return getattr(self, name)

    def __dir__(self) -> list[str]:
        _load(self)
        return dir(self)


class _Finder:
    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        parent = sys.modules.get(name.rpartition(".")[0])
        if isinstance(parent, _Deferred):
            _load(parent)  # a part may need that its package was loaded before
        found = PathFinder.find_spec(name, path) if name in _NAMES and name not in sys.modules else None
        if found is not None and found.loader is not None:
            found.loader = _Loader(found.loader)  # type: ignore[assignment]
        return found


class _Loader:
    def __init__(self, real: Any) -> None:
        self._real = real

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _Deferred(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Gives the module its real loader, which `_load` uses."""
        assert module.__spec__ is not None
        module.__spec__.loader = module.__loader__ = self._real


def _load(module: ModuleType) -> None:
    """Runs the code of a module, unless it ran or runs already."""
    with _LOCK:
        if not isinstance(module, _Deferred):
            return
        assert module.__spec__ is not None
        assert module.__spec__.loader is not None
        module.__class__ = ModuleType  # type: ignore[assignment]
        try:
            module.__spec__.loader.exec_module(module)
        except BaseException:
            module.__class__ = _Deferred  # the next use tries again
            raise
        here = threading.get_ident()
        for thread, action in _waiting.pop(module.__name__, ()):
            if thread == here:
                action()
