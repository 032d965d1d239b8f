"""Replaces a part of another library while a block runs.

One lock guards all replacements. Without it, two threads that replace the same function and end in another order would
leave the first thread's replacement in place forever. A second thread waits until the first has restored the original.
One thread may nest replacements. A fork waits, too: it would keep the replacements of a thread that it does not have.
"""

from __future__ import annotations

import importlib
import threading
from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import AbstractContextManager, contextmanager
from importlib import metadata
from typing import Any

from onnxsmith.base.library_versions import NEWEST_TESTED
from onnxsmith.base.problem import problem
from onnxsmith.base.system import forks

_LOCK = threading.RLock()
forks.wait_for(_LOCK, outermost=True)
_ABSENT = object()


def private(path: str) -> Any:
    """Returns the object of another library at `package.module:name.name`; None if it does not exist. Each module of
    this room lists its paths in `REACHES`, and a contract test looks all of them up. If some supported releases lack a
    path, the module's `LIFETIMES` gives its `Lifetime`, too."""
    module, _, names = path.partition(":")
    try:
        found: Any = importlib.import_module(module)
        for name in names.split(".") if names else ():
            found = getattr(found, name)
    except (ImportError, AttributeError):
        return None
    return found


def required(path: str) -> Any:
    """Returns the object of another library at a path; onnxsmith cannot work without it.

    Raises:
        OnnxsmithError: `library/changed` if it does not exist.
    """
    found = private(path)
    if found is None:
        package = path.partition(".")[0].partition(":")[0]
        distribution = package.replace("_", "-")
        raise problem(
            "library/changed",
            f"the installed {package} has no {path.replace(':', '.')}",
            where=f"{package} {_version(distribution)}",
            why="onnxsmith uses this private name; every version of the library that it was tested with has it",
            fix=f"`pip install '{distribution}=={NEWEST_TESTED[distribution]}'`",
        )
    return found


def _version(distribution: str) -> str:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return "is not installed"


@contextmanager
def alone() -> Iterator[None]:
    """Keeps other threads of this process from replacing a part of a library while the block runs."""
    with _LOCK:
        yield


@contextmanager
def replaced(owner: Any, name: str, value: Any, *, create: bool = False) -> Iterator[None]:
    """Sets the attribute `name` of `owner` to `value` while the block runs, then restores it. A missing attribute stays
    missing, unless `create` is True."""
    if not create and not hasattr(owner, name):
        yield
        return
    with _LOCK:
        before = vars(owner).get(name, _ABSENT)
        setattr(owner, name, value)
        try:
            yield
        finally:
            if before is _ABSENT:  # the attribute was inherited, or missing
                delattr(owner, name)
            else:
                setattr(owner, name, before)


def replaced_at(path: str, value: Any) -> AbstractContextManager[None]:
    """Replaces the object at a path of `private` by `value` while the block runs. Does nothing if the path does not
    exist."""
    module, _, names = path.partition(":")
    owner, _, name = names.rpartition(".")
    return replaced(private(f"{module}:{owner}"), name, value)


@contextmanager
def added(table: MutableMapping[str, Any], entries: Mapping[str, Any]) -> Iterator[None]:
    """Adds entries to a table of another library while the block runs."""
    with _LOCK:
        before = {name: table.get(name, _ABSENT) for name in entries}
        table.update(entries)
        try:
            yield
        finally:
            for name, value in before.items():
                if value is _ABSENT:
                    table.pop(name, None)
                else:
                    table[name] = value
