"""Finds the members of a room by walking its folder: one file for each member, no list to keep.

A room is a package whose modules define subclasses of one base class: rules, passes, runtimes, metrics, strategies,
commands, report parts. A member's id is its path: `rules/fuse/conv_batchnorm.py` is `fuse/conv-batchnorm`. Other
distributions add members by an entry point named after the room (`onnxsmith.rules`). Two members with the same id are
an error.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any, TypeVar

from onnxsmith.problem import problem

T = TypeVar("T")

_NOT_MEMBERS = {"base"}


def classes(room: str, base: type[T]) -> dict[str, type[T]]:
    """Returns the member classes of `room` (a package name), by id, sorted by id.

    Raises:
        OnnxsmithError: `room/clash` when two members share an id; `room/no-member` when a module of the room, or an
            entry point, does not define exactly one member.
    """
    found = {id_: _only_class(module, base) for id_, module in _own_modules(room)}
    for entry in _entry_points(room):
        where = f"entry point {entry.name} = {entry.value}"
        if entry.name in found:
            raise problem(
                "room/clash",
                f"two members of {room} are called {entry.name!r}",
                where=where,
                why="the installed packages define the same id twice",
                fix="rename one of them, or uninstall the package that is not wanted",
            )
        try:
            loaded = entry.load()
        except Exception as error:
            raise problem(
                "room/no-member",
                f"entry point {entry.name!r} of {room} cannot be loaded",
                where=where,
                why=f"{type(error).__name__}: {error}",
                fix="reinstall or uninstall its package",
            ) from error
        if not (inspect.isclass(loaded) and issubclass(loaded, base)):
            raise problem(
                "room/no-member",
                f"entry point {entry.name!r} of {room} is not a {base.__name__}",
                where=where,
                fix=f"point it at a subclass of {base.__module__}.{base.__qualname__}",
            )
        found[entry.name] = loaded
    return dict(sorted(found.items()))


def members(room: str, base: type[T]) -> dict[str, T]:
    """Returns an instance of each class in `classes`, by id."""
    return {id_: kind() for id_, kind in classes(room, base).items()}


def _entry_points(room: str) -> Any:
    return _installed(tuple(sys.path)).select(group=room)


@functools.lru_cache(maxsize=1)
def _installed(path: tuple[str, ...]) -> Any:
    """Returns the entry points of all distributions on the path. Cached: reading them takes as long as a small
    export."""
    from importlib.metadata import entry_points

    return entry_points()


def _own_modules(room: str) -> Iterator[tuple[str, ModuleType]]:
    package = importlib.import_module(room)
    for info in pkgutil.walk_packages(package.__path__, prefix=f"{room}.", onerror=importlib.import_module):
        path = info.name.removeprefix(f"{room}.").split(".")
        if info.ispkg or path[-1] in _NOT_MEMBERS or any(part.startswith("_") for part in path):
            continue
        yield "/".join(path).replace("_", "-"), importlib.import_module(info.name)


def _only_class(module: ModuleType, base: type[T]) -> type[T]:
    defined = [
        value
        for name, value in vars(module).items()
        if inspect.isclass(value)
        and issubclass(value, base)
        and value.__module__ == module.__name__
        and not name.startswith("_")
    ]
    if len(defined) != 1:
        raise problem(
            "room/no-member",
            f"{module.__name__} defines {len(defined)} members, not one",
            where=str(module.__file__),
            why=f"each module of a room holds exactly one subclass of {base.__name__}",
            fix="split the module, or start its helper's name with an underscore",
        )
    return defined[0]
