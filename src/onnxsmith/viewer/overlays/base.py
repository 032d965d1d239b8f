"""Defines the base of overlays."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import onnx_ir as ir

from onnxsmith.viewer.scene import Figure

_STORED = "initializer "
"""Is the prefix that reports of `simplify` write before the name of a stored tensor."""


class Names:
    """Finds the nodes of a scene by the names in a report, and counts the names for which it found nodes."""

    def __init__(
        self,
        nodes: Mapping[str, list[int]],
        values: Mapping[str, int],
        modules: Mapping[str, list[int]],
        source: ir.Model | None = None,
        numbers: Mapping[ir.Node, int] | None = None,
    ):
        """Indexes the names. `values` has the node that computes each value, -1 for inputs and stored tensors. `source`
        is the model with inferred shapes, and `numbers` has the number of each of its nodes in the scene."""
        self._nodes, self._values, self._modules = nodes, values, modules
        self.source, self._numbers = source, numbers or {}
        self._around = {"", *(path[:at] for path in modules for at, sign in enumerate(path) if sign in "./")}
        """Holds the paths of modules that hold only modules."""
        self._asked: dict[str, bool] = {}
        self.absent: list[str] = []
        """Lists names that nothing in the model has."""
        self.stored: list[str] = []
        """Lists the names of inputs and stored tensors, which no node computes."""

    @property
    def asked(self) -> int:
        """Counts the names in the report. A name in several rows counts once."""
        return len(self._asked)

    @property
    def found(self) -> int:
        """Counts the names in the report that the model has."""
        return sum(self._asked.values())

    def node(self, name: str) -> list[int]:
        """Returns the nodes of a name: several nodes, if graphs of the model share the name."""
        return self._counted(name, self._nodes.get(name, []))

    def node_or_maker(self, name: str) -> list[int]:
        """Returns the nodes of a name. If there are none, returns the node that computes the value of this name."""
        return self._counted(name, self._nodes.get(name) or self._made(name))

    def seen(self, name: str) -> list[int]:
        """Returns the same as `node_or_maker` without counting the name, because most models do not have it."""
        return self._nodes.get(name) or self._made(name)

    def every(self) -> list[int]:
        """Returns all nodes, without counting a name."""
        return sorted({node for nodes in self._nodes.values() for node in nodes})

    def maker(self, value: str) -> list[int]:
        """Returns the node that computes the value of this name."""
        return self._counted(value, self._made(value))

    def module(self, path: str) -> list[int]:
        """Returns the nodes of a torch module, without the nodes of the modules in it."""
        found = self._modules.get(path, [])
        if not found and path in self._around:
            self._asked[path] = True
            return []
        return self._counted(path, found)

    def group(self, name: str, nodes: list[int]) -> list[int]:
        """Counts the name of a group of nodes that the caller found, such as all nodes of an operator."""
        return self._counted(name, nodes)

    def number(self, node: ir.Node) -> int | None:
        """Returns the scene's number of a node of the model; None if the node has no number."""
        return self._numbers.get(node)

    def _made(self, value: str) -> list[int]:
        node = self._values.get(value, -1)
        return [node] if node >= 0 else []

    def _counted(self, name: str, found: list[int]) -> list[int]:
        is_new = name not in self._asked
        self._asked[name] = bool(found) or self._asked.get(name, False)
        if not found and is_new:
            is_stored = name in self._values or name.startswith(_STORED)
            (self.stored if is_stored else self.absent).append(name)
        return found


@dataclass(eq=False)
class Layer:
    """Holds figures for nodes, each with a line of text. `worst` is the bad end of the scale. `scale` is `linear`,
    `log` or `classes`; with `classes`, a figure is an index into the classes."""

    title: str
    unit: str = ""
    scale: str = "log"
    worst: str = "high"
    classes: list[str] = field(default_factory=list)
    figures: dict[int, tuple[Figure, str]] = field(default_factory=dict)


class Overlaying(ABC):
    """Turns a part of a report into figures for nodes. Each kind of part has a class of the same name."""

    newer: ClassVar[bool] = False
    """Whether a part that fits two models equally well is about the newer model."""
    made: ClassVar[str] = ""
    """Says why the part may name nodes that the model does not have: the command made them. "" if the part names only
    nodes of the file."""

    def subject(self, part: Any) -> str:
        """Returns the file whose nodes the part names, as written on the command line; "" if the part does not say."""
        return ""

    def remarks(self, part: Any) -> Iterator[str]:
        """Yields remarks on the model as a whole, which no node can show: that it is refused, or that the command found
        nothing."""
        yield from ()

    @abstractmethod
    def layers(self, part: Any, names: Names) -> Iterator[Layer]:
        """Yields the layers that can colour nodes. Layers without figures are left out."""
