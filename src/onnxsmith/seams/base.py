"""Puts something in the place of a part of another library, for as long as a block runs.

There is one lock for all of it. Two threads that replace the same function one after the other, and end in another
order, would leave the first one's replacement for good. So a second thread waits until the first has put back what was
there. One thread may enter as often as it likes.
"""

from __future__ import annotations

import importlib
import threading
from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import AbstractContextManager, contextmanager
from importlib import metadata
from typing import Any

from onnxsmith.problem import problem

_LOCK = threading.RLock()
_ABSENT = object()
_COMPARED_WITH = {"torch": "2.13.0", "onnx_ir": "1.1.0", "onnx_shape_inference": "0.4.0"}
"""The newest version of each library that the contract tests were run with."""


def private(path: str) -> Any:
    """What another library has at `package.module:name.name`; None where it is gone. Each module of this room lists
    the paths that it asks for in `REACHES`, and a contract test asks for them all."""
    module, _, names = path.partition(":")
    try:
        found: Any = importlib.import_module(module)
        for name in names.split(".") if names else ():
            found = getattr(found, name)
    except (ImportError, AttributeError):
        return None
    return found


def required(path: str) -> Any:
    """The same of a name that nothing can be done without.

    Raises:
        OnnxsmithError: `library/changed` where it is gone.
    """
    found = private(path)
    if found is None:
        package = path.partition(".")[0].partition(":")[0]
        raise problem(
            "library/changed",
            f"the {package} that is installed has no {path.replace(':', '.')}",
            where=f"{package} {_version(package)}",
            why="onnxsmith reaches for it, and no version that it was compared with lacks it",
            fix=f"pip install '{package}=={_COMPARED_WITH.get(package, '')}'",
        )
    return found


def _version(package: str) -> str:
    try:
        return metadata.version(package.replace("_", "-"))
    except metadata.PackageNotFoundError:
        return "is not installed"


@contextmanager
def alone() -> Iterator[None]:
    """Inside, no other thread of this process replaces anything."""
    with _LOCK:
        yield


@contextmanager
def replaced(owner: Any, name: str, value: Any, *, create: bool = False) -> Iterator[None]:
    """Inside, attribute `name` of `owner` is `value`. An attribute that `owner` does not have stays absent, unless
    `create` is given. At the end what stood there is put back, or nothing where it was inherited."""
    if not create and not hasattr(owner, name):
        yield
        return
    with _LOCK:
        before = vars(owner).get(name, _ABSENT)
        setattr(owner, name, value)
        try:
            yield
        finally:
            if before is _ABSENT:
                delattr(owner, name)
            else:
                setattr(owner, name, before)


def replaced_at(path: str, value: Any) -> AbstractContextManager[None]:
    """The same of a path as `private` takes it; nothing happens where it is gone."""
    module, _, names = path.partition(":")
    owner, _, name = names.rpartition(".")
    return replaced(private(f"{module}:{owner}"), name, value)


@contextmanager
def added(table: MutableMapping[str, Any], entries: Mapping[str, Any]) -> Iterator[None]:
    """Inside, a table of another library has these entries, too."""
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
