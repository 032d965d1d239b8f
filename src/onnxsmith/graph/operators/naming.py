"""Chooses the names of new nodes and values: readable, unique, with the prefix of the current scope."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import onnx_ir as ir

from onnxsmith.base.problem import problem
from onnxsmith.graph.operators.insertion_point import Place
from onnxsmith.graph.structure import walk
from onnxsmith.graph.structure.fresh import Names


class Naming:
    """Finds free names in a model. A node has the same name as its result."""

    def __init__(self, model: ir.Model, place: Place) -> None:
        self._names = Names(model)
        self._nodes = {node.name for node in walk.all_nodes(model) if node.name}
        self._local: set[str] = set()
        self._prefix = ""
        self._given: list[str] = []
        self.enter(place)

    def enter(self, place: Place) -> None:
        """Marks the names of a function's values as used; the model's own names do not include them."""
        self._local = set(place.names()) if place.is_function else set()

    @contextmanager
    def scope(self, name: str) -> Iterator[None]:
        """Puts `name.` before names inside the block."""
        before, self._prefix = self._prefix, f"{self._prefix}{name}."
        try:
            yield
        finally:
            self._prefix = before

    def free(self, wish: str, *, scoped: bool = True) -> str:
        """Reserves and returns the wished name, with a number if it is taken."""
        wish = self._prefix + wish if scoped else wish
        while True:
            name = self._names.free(wish)
            if name not in self._nodes and name not in self._local:
                self._given.append(name)
                return name

    def exact(self, name: str, where: str, *, scoped: bool = True) -> str:
        """Reserves this name, with the prefix of the scope.

        Raises:
            OnnxsmithError: `build/name` if it is taken or empty.
        """
        prefix = self._prefix if scoped else ""
        wish = prefix + name if isinstance(name, str) else ""
        if not isinstance(name, str) or not name:
            raise problem("build/name", f"{name!r} is not a name", where=where, fix="give a text with a character")
        found = self._names.free(wish)
        if found != wish or found in self._nodes or found in self._local:
            self._names.drop(found)
            free = found if found != wish else f"{wish}_new"
            raise problem(
                "build/name",
                f"the name {wish!r} is taken",
                where=where,
                why="in a model, each name can be defined only once",
                fix=f"write {free.removeprefix(prefix)!r}",
            )
        self._given.append(wish)
        return wish

    def count(self) -> int:
        """The number of reserved names."""
        return len(self._given)

    def drop_after(self, count: int) -> None:
        """Frees the names that were reserved after the first `count`."""
        for name in self._given[count:]:
            self._names.drop(name)
        del self._given[count:]
