"""Finds the members of a room by walking its folder: there is no list to keep.

A room is a package whose modules define subclasses of one base class: rules, passes, runtimes, metrics, strategies,
commands, report parts. The id of a member alone in its file is the path: `optimizer/rules/fuse/rotary.py` is
`fuse/rotary`. In a file of several members, an id ends in the name of the class: `ConvBatchnorm` in
`optimizer/rules/fuse/batch_normalizations.py` is `fuse/conv-batchnorm`. Other distributions add members by an entry
point (`docs/stability.md` lists the groups). Two members with the same id are an error.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil
import re
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any, TypeVar

from onnxsmith.base.problem import problem

T = TypeVar("T")

_NOT_MEMBERS = {"base"}
_GROUPS = {
    "base.report.parts": "report.parts",
    "cli.commands": "commands",
    "comparison.reduction.checks": "reduction.checks",
    "deployment.bundles.forms": "bundles.forms",
    "deployment.bundles.tasks": "bundles.tasks",
    "deployment.checking.fixes": "checking.fixes",
    "editor.steps": "editing.steps",
    "exporter.causes": "causes",
    "graph.surgery.lowerings": "model.surgery.lowerings",
    "graph.surgery.raisings": "model.surgery.raisings",
    "optimizer.rules": "rules",
    "targets.judges": "targets",
    "targets.profiles.rules": "profiles.rules",
    "verification.metrics": "metrics",
    "viewer.inspection.mac_rules": "inspection.mac_rules",
    "viewer.overlays": "viewing.overlays",
}
"""Entry point groups by package, both below `onnxsmith.`. Listed are the packages whose group has another name:
packages move, but the groups are public."""


def classes(room: str, base: type[T]) -> dict[str, type[T]]:
    """Returns the member classes of `room` (a package name), by id, sorted by id.

    Raises:
        OnnxsmithError: `room/clash` when two members share an id; `room/no-member` when a module of the room, or an
            entry point, defines none.
    """
    found: dict[str, type[T]] = {}
    for path, module in _own_modules(room):
        for id_, kind in _members_of(module, path, base).items():
            if id_ in found:
                raise problem(
                    "room/clash",
                    f"two members of {room} are called {id_!r}",
                    where=f"{found[id_].__module__} and {kind.__module__}",
                    why="the id of a member is the name of its file, or of its class if the file has several members",
                    fix="rename one of them",
                )
            found[id_] = kind
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


def own_name(kind: type, base: type[Any]) -> str:
    """Returns the last part of the id that `classes` gives a member: the name of its module or its class."""
    stem = kind.__module__.rpartition(".")[2].replace("_", "-")
    defined = _defined(sys.modules[kind.__module__], base)
    return stem if len(defined) < 2 else _in_words(kind)


def group(room: str) -> str:
    """Returns the entry point group of `room`, a package name."""
    package = room.removeprefix("onnxsmith.")
    return room.replace(package, _GROUPS.get(package, package))


def _entry_points(room: str) -> Any:
    return _installed(tuple(sys.path)).select(group=group(room))


@functools.lru_cache(maxsize=1)
def _installed(path: tuple[str, ...]) -> Any:
    """Returns the entry points on the path, of all distributions. Cached: reading them takes as long as a small
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


def _members_of(module: ModuleType, path: str, base: type[T]) -> dict[str, type[T]]:
    defined = _defined(module, base)
    if not defined:
        raise problem(
            "room/no-member",
            f"{module.__name__} defines no member",
            where=str(module.__file__),
            why=f"each module of a room needs at least one subclass of {base.__name__}",
            fix="start the name of the module with an underscore if it only contains code for members in other files",
        )
    if len(defined) == 1:
        return {path: defined[0]}
    folder = path[: path.rfind("/") + 1]
    return {folder + _in_words(kind): kind for kind in defined}


def _defined(module: ModuleType, base: type[T]) -> list[type[T]]:
    return [
        value
        for name, value in vars(module).items()
        if inspect.isclass(value)
        and issubclass(value, base)
        and value.__module__ == module.__name__
        and not name.startswith("_")
    ]


def _in_words(kind: type) -> str:
    return _WORD.sub("-", kind.__name__).lower()


_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
"""Where a word begins in the name of a class."""
