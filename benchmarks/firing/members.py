"""Wraps the members of the rooms, so that each call in which a member does something is noted.

A room is a folder that `onnxsmith.base.rooms` walks. `ROOMS` says which method of its members does the work, and which
result of that method means that the member did something.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from inspect import isgenerator
from typing import Any

from onnxsmith.base import rooms


@dataclass(frozen=True)
class Room:
    """A kind of member: its package, its base class, and the method that does the work. `label` returns what a result
    of the method means: "" if the member did nothing, else a word for what it did. If the result does not tell whether
    anything changed, `state` returns what the method may change; a call that leaves it equal did nothing."""

    package: str
    base: str
    method: str
    label: Callable[[Any], str]
    state: Callable[..., Any] = lambda *_, **__: object()

    def classes(self) -> dict[str, type]:
        """Returns the room's classes by id."""
        module, name = f"onnxsmith.{self.package}.base", self.base
        return rooms.classes(f"onnxsmith.{self.package}", getattr(importlib.import_module(module), name))


def _always(_: Any) -> str:
    return "fired"


def _captured(_: Any) -> str:
    return "captured"


def _translated(result: Any) -> str:
    return "" if result is NotImplemented else "fired"


def _remarked(remark: Any) -> str:
    return "patch" if remark.swaps else "finding"


def _node(node: Any, write: Any) -> Any:
    attributes = [(name, str(attribute)) for name, attribute in node.attributes.items()]
    return list(node.inputs), attributes, node.graph is None, len(write.made)


ROOMS = (
    Room("optimizer.rules", "Rule", "rewrite", _always),
    Room("exporter.strategies", "Strategy", "capture", _captured),
    Room("exporter.rewrites", "Rewrite", "apply", lambda changed: "fired" if changed else ""),
    Room("exporter.translations", "Translation", "decompose", _translated),
    Room("exporter.lint", "Check", "look", _remarked),
    Room("exporter.causes", "Cause", "read", lambda found: "" if found is None else "fired"),
    Room("graph.surgery.lowerings", "Lowering", "lower", lambda reason: "" if reason else "fired", _node),
    Room("deployment.checking.fixes", "Fix", "tries", lambda offer: offer[0]),
)

Note = tuple[str, str, str]
"""A room's package, a member's id, and the label."""

_notes: set[Note] = set()


def wrap() -> None:
    """Wraps the method of every member of every room, once in a process. A method that members inherit is wrapped where
    it is defined, and counts for the class of the instance."""
    for room in ROOMS:
        names = {kind: id_ for id_, kind in room.classes().items()}
        for kind in names:
            owner = next(one for one in kind.__mro__ if room.method in vars(one))
            method = vars(owner)[room.method]
            if not hasattr(method, "noted"):
                setattr(owner, room.method, _noting(method, room, names))


def _noting(method: Callable[..., Any], room: Room, names: dict[type, str]) -> Callable[..., Any]:
    def note(member: Any, result: Any) -> None:
        label = room.label(result)
        if label and type(member) in names:
            _notes.add((room.package, names[type(member)], label))

    def noted_each(member: Any, results: Iterator[Any]) -> Iterator[Any]:
        for one in results:
            note(member, one)
            yield one

    @functools.wraps(method)
    def noting(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = room.state(*args, **kwargs)
        result = method(self, *args, **kwargs)
        if isgenerator(result):
            return noted_each(self, result)
        if room.state(*args, **kwargs) != before:
            note(self, result)
        return result

    noting.noted = True  # type: ignore[attr-defined]
    return noting


@contextmanager
def noted(*packages: str) -> Iterator[set[Note]]:
    """Yields a set that holds, after the block, the notes of these rooms that were taken in the block. An error in the
    block leaves it as it is filled until then."""
    _notes.clear()
    found: set[Note] = set()
    try:
        yield found
    finally:
        found.update(one for one in _notes if one[0] in packages)
        _notes.clear()
