"""Adds Python functions as model-local functions: one definition in the model, and a node for each call."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import onnx_ir as ir

from onnxsmith.base.problem import problem
from onnxsmith.graph.operators import function_attributes
from onnxsmith.graph.operators.bodies import traced
from onnxsmith.graph.operators.function_attributes import Parameter
from onnxsmith.graph.operators.tensor import Tensor
from onnxsmith.graph.structure import attribute_keys

if TYPE_CHECKING:
    from onnxsmith.graph.operators.operator_methods import Operators


@dataclass
class LocalFunction:
    """A model-local function. Every call adds a node; the first call also adds the definition."""

    home: Operators
    domain: str
    name: str
    python: Callable[..., Any]
    key: Hashable = None

    def __call__(self, *operands: Any, name: str | None = None, **attributes: Any) -> Any:
        """Adds a call. Traces the Python function in every call, to check it on these operands and attributes.

        Raises: OnnxsmithError: `build/function` if the body differs from that of the first call; `build/attribute` if
            the Python function has no such keyword-only parameter, or such a parameter has no value.
        """
        where = self.home.blame()
        with self.home.atomic():
            given = [_handle(self.home, one) for one in operands]
            attributes = function_attributes.given_to(self.python, attributes, where)
            graph = self._traced(given, {key: Parameter(key, value) for key, value in attributes.items()})
            function_attributes.refer(graph)
            untyped = [ir.Attr(key, ir.AttributeType.UNDEFINED, None) for key in attributes]
            function = ir.Function(self.domain, self.name, graph=graph, attributes=untyped)
            key = attribute_keys.of_body(graph)
            if self.key is None:
                self.home.define(function)
                self.key = key
            elif key != self.key:
                raise problem(
                    "build/function",
                    f"the function {self.domain}::{self.name} makes other nodes in this call than in its first",
                    where=where,
                    why="a function of the model has one body; the Python code may depend on a shape or a variable",
                    fix="give the other variant another name, with g.function, or call the Python function directly",
                )
            outputs = [(value.type, value.shape) for value in graph.outputs]
            call = f"{self.domain}::{self.name}"
            found = self.home.node(call, *given, outputs=len(outputs), name=name, **attributes)
            for handle, (type_, shape) in zip(found if isinstance(found, tuple) else (found,), outputs, strict=True):
                handle.value.type, handle.value.shape = type_, None if shape is None else ir.Shape(list(shape))
            return found

    def _traced(self, given: Sequence[Tensor], attributes: Mapping[str, Parameter]) -> ir.Graph:
        inputs = [
            ir.Value(name=f"input_{index}", type=one.value.type, shape=one.value.shape)
            for index, one in enumerate(given)
        ]
        with self.home.apart():
            return traced(self.home, f"function {self.name}", partial(self.python, **attributes), inputs)


def _handle(home: Operators, given: Any) -> Tensor:
    if isinstance(given, Tensor | ir.Value):
        return home.tensor(given.value if isinstance(given, Tensor) else given)
    return home.constant(given)
