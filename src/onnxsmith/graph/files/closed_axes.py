"""Finds axes that a model declares as open, and at which the shapes of its nodes fit together at one size only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import onnx
import onnx_ir as ir

from onnxsmith.base.problem import Problem
from onnxsmith.base.words import pasted
from onnxsmith.graph.files.light_message import light_message
from onnxsmith.graph.files.operand_clashes import blamed
from onnxsmith.graph.structure import walk
from onnxsmith.graph.structure.model_copy import cloned
from onnxsmith.graph.structure.signature import Port, Signature, is_symbol, signature

_USUAL = 64
"""The size of symbols that are no batch. A choice: many networks take multiples of 32."""


@dataclass(frozen=True)
class Closed:
    """An axis that is declared dynamic: its symbol, the inputs' axes that have it, the size at which the model runs,
    another size at which it does not, the node that stops it if it is known, and why."""

    symbol: str
    places: tuple[str, ...]
    size: int
    other: int
    node: str
    why: str


class _Shapes:
    """The message of a model, of which only the inputs declare shapes. It is changed at each question."""

    def __init__(self, message: onnx.ModelProto) -> None:
        self._message = message
        axes = [dim for value in message.graph.input for dim in value.type.tensor_type.shape.dim]
        self._symbols = [(dim, dim.dim_param) for dim in axes if dim.dim_param]
        del message.graph.value_info[:]
        for value in message.graph.output:  # names of outputs are no sizes
            value.type.tensor_type.ClearField("shape")

    def conflict(self, sizes: Mapping[str, int]) -> str | None:
        """Returns the message of onnx's strict inference at these sizes of the inputs; None if all shapes fit."""
        for dim, symbol in self._symbols:
            if symbol in sizes:
                dim.dim_value = sizes[symbol]
        try:
            onnx.shape_inference.infer_shapes(self._message, strict_mode=True, data_prop=True)
        except Exception as error:  # noqa: BLE001 — a message on any node
            return str(error)
        return None


def closed(model: ir.Model, message: onnx.ModelProto | None = None) -> tuple[Closed, ...]:
    """Returns the open axes along which shapes conflict at a second size, by onnx's own inference. Nothing is run.
    `message` is the model's light message, if there is one; it is changed."""
    interface = signature(model)
    sizes = {name: 1 if name in first_axes(interface) else _USUAL for name in interface.symbols() if is_symbol(name)}
    if not sizes or model.functions:
        return ()
    shapes = _Shapes(message or light_message(model))
    doubled = {name: 2 * size for name, size in sizes.items()}
    if shapes.conflict(doubled) is None or shapes.conflict(sizes) is not None:
        return ()
    found = []
    for name, size in sizes.items():
        one = {**sizes, name: 2 * size}
        # A table may end between. Axes that belong together fit only if both change: `doubled`.
        others = [{**sizes, name: size + 1}, {**sizes, name: max(size // 2, 1)}] if size > 1 else []
        if all(shapes.conflict(other) is not None for other in (one, *others)):
            op_type, label, why = blamed(_labelled(model).conflict(one) or "")
            found.append(Closed(name, places(interface, name), size, 2 * size, f"{op_type} {label}".strip(), why))
    return tuple(found)


def conflict(model: ir.Model, sizes: Mapping[str, int]) -> str | None:
    """Returns the node whose operands do not fit together at these sizes of the inputs, with the reason, if they fit at
    the size 1 of the same symbols. Returns None if no conflict is known."""
    shapes = _Shapes(light_message(model))
    if shapes.conflict(sizes) is None or shapes.conflict(dict.fromkeys(sizes, 1)) is not None:
        return None
    op_type, label, why = blamed(_labelled(model).conflict(sizes) or "")
    return f"{op_type} {label}: {why.rpartition(']')[2].strip()}"


def _labelled(model: ir.Model) -> _Shapes:
    """Returns the shapes of a copy in which all nodes have names, because onnx's reasons name nodes by them."""
    copy = cloned(model)
    for node in walk.all_nodes(copy):
        node.name = node.name or walk.node_label(node)
    return _Shapes(light_message(copy))


def first_axes(interface: Signature) -> set[str]:
    """Returns the symbols that are the first axis of an input of two axes or more."""

    def first(port: Port) -> str:
        shape = port.shape or ()
        return str(shape[0]) if len(shape) > 1 else ""

    return {first(port) for port in interface.inputs}


def places(interface: Signature, symbol: str) -> tuple[str, ...]:
    """Returns the axes of inputs that are a symbol, as `set-dim` takes them: `x:0`."""
    return tuple(
        f"{port.name}:{axis}" for port in interface.inputs for axis, dim in enumerate(port.shape or ()) if dim == symbol
    )


def problem_of(one: Closed, where: str) -> Problem:
    """Says that an axis is not open."""
    again = " ".join(pasted(f"{place}={one.symbol}") for place in one.places)
    file = "MODEL" if where == "the model" else pasted(where)
    return Problem(
        "model/closed-axis",
        f"{one.symbol} is declared dynamic, but the model does not run at {one.symbol} = {one.other}",
        where=f"{where}: {one.node}" if one.node else where,
        why=f"the model runs at {one.size}, but not at {one.other}: {one.why}",
        fix=f"declare the size: `onnxsmith set-dim {file} {pasted(f'{one.symbol}={one.size}')} -o fixed.onnx`; then "
        f"`onnxsmith set-dim fixed.onnx {again} -o open.onnx` may make it dynamic again",
    )
