"""The base class of overlays."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import onnx_ir as ir

from onnxsmith.viewer.scene import Figure

_STORED = "initializer "
"""What reports of `simplify` write before the name of a stored tensor."""


class Names:
    """Finds the nodes of a scene by the names that a report uses, and counts what it found."""

    def __init__(
        self,
        nodes: Mapping[str, list[int]],
        values: Mapping[str, int],
        modules: Mapping[str, list[int]],
        source: ir.Model | None = None,
        numbers: Mapping[ir.Node, int] | None = None,
    ):
        """`values` are the nodes that compute them, -1 for inputs and stored tensors. `source` is the model with
        inferred shapes, `numbers` its nodes in the scene."""
        self._nodes, self._values, self._modules = nodes, values, modules
        self.source, self._numbers = source, numbers or {}
        self._around = {"", *(path[:at] for path in modules for at, sign in enumerate(path) if sign in "./")}
        """Modules that hold only modules."""
        self._asked: dict[str, bool] = {}
        self.absent: list[str] = []
        """Names of nothing that the model has."""
        self.stored: list[str] = []
        """Names of inputs and stored tensors, which no node computes."""

    @property
    def asked(self) -> int:
        """How many names the report uses: a name in several rows counts once."""
        return len(self._asked)

    @property
    def found(self) -> int:
        """How many of these are names of the model."""
        return sum(self._asked.values())

    def node(self, name: str) -> list[int]:
        """The nodes of a name: several, if graphs inside the model share it."""
        return self._counted(name, self._nodes.get(name, []))

    def node_or_maker(self, name: str) -> list[int]:
        """The nodes of a name, else the node that computes the value of that name."""
        return self._counted(name, self._nodes.get(name) or self._made(name))

    def seen(self, name: str) -> list[int]:
        """As `node_or_maker`, for a name that most models do not have: it does not count."""
        return self._nodes.get(name) or self._made(name)

    def every(self) -> list[int]:
        """All nodes, which is no match of a name."""
        return sorted({node for nodes in self._nodes.values() for node in nodes})

    def maker(self, value: str) -> list[int]:
        """The node that computes the value of a name."""
        return self._counted(value, self._made(value))

    def module(self, path: str) -> list[int]:
        """The nodes of a torch module, without those of the modules in it."""
        found = self._modules.get(path, [])
        if not found and path in self._around:
            self._asked[path] = True
            return []
        return self._counted(path, found)

    def group(self, name: str, nodes: list[int]) -> list[int]:
        """Counts the name of a group of nodes that the caller found, such as all nodes of an operator."""
        return self._counted(name, nodes)

    def number(self, node: ir.Node) -> int | None:
        """The number of a node of the model in the scene."""
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
    """Figures for nodes, with a line of text for each. `worst` is the bad end, `scale` is `linear`, `log` or
    `classes`; with classes, a figure is an index into them."""

    title: str
    unit: str = ""
    scale: str = "log"
    worst: str = "high"
    classes: list[str] = field(default_factory=list)
    figures: dict[int, tuple[Figure, str]] = field(default_factory=dict)


class Overlaying(ABC):
    """Turns a part of a report into figures for nodes. One class each, called as the part's kind."""

    newer: ClassVar[bool] = False
    """Whether the part is about the newer of two models, if it fits both equally well."""
    made: ClassVar[str] = ""
    """Why the part may name nodes that the model does not have: the command made them. "" if it names only nodes of
    the file."""

    def subject(self, part: Any) -> str:
        """The file whose nodes the part names, as the command was given it; "" if the part does not say."""
        return ""

    def remarks(self, part: Any) -> Iterator[str]:
        """Yields what the part says of the model as a whole, which no node can show: that it is refused, or that the
        command found nothing."""
        yield from ()

    @abstractmethod
    def layers(self, part: Any, names: Names) -> Iterator[Layer]:
        """Yields what can be coloured; a layer without figures is left out."""
