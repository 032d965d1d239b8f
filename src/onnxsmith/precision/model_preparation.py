"""Prepares a model for quantisation: in float32, simplified, inlined, with constants as initializers and named
nodes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.graph.shapes.symbolic_inference import inferred
from onnxsmith.graph.structure import walk
from onnxsmith.graph.structure.fresh import Names
from onnxsmith.graph.structure.model_copy import cloned
from onnxsmith.graph.surgery import opset_conversion as opsets
from onnxsmith.graph.surgery.float32_copy import is_double, single
from onnxsmith.graph.surgery.inlining import inlined
from onnxsmith.optimizer.simplify import simplify
from onnxsmith.precision.input_scaling import scaled_inputs
from onnxsmith.precision.narrowable_nodes import Operators, fill_dtypes, labels
from onnxsmith.precision.weight_counts import own_defaults, own_weights, replaceable, said_constant
from onnxsmith.precision.weight_storage import LEAST
from onnxsmith.runtimes import base as runtimes


@dataclass(frozen=True)
class Prepared:
    """The prepared model, with node names of the original where possible, and notes on the preparation."""

    model: ir.Model
    notes: tuple[str, ...] = ()
    is_simplified: bool = True


def prepared(loaded: ir.Model, *, opset: int, simplified: bool = True) -> Prepared:
    """Returns a copy of the model at `opset` or newer, with inferred shapes, in float32 if it was in float64. It is
    simplified if `simplified` is set. Nothing is compared here: the caller scores the result.

    Raises:
        OnnxsmithError: `opset/…` if the model cannot be raised to `opset`; the errors of `simplify`.
    """
    own, gone = own_defaults(own_weights(loaded))
    notes = [said_constant(gone), replaceable(own)]
    model = opsets.convert(own, opset if opsets.of(own) < opset else None)
    if is_double(model):
        plain, _ = inlined(model)
        made = single(plain)
        notes.append(
            "" if made is None else "the model is in float64: nodes that are not made narrower compute in float32"
        )
        model = model if made is None else made
    widen(model)
    if simplified:
        model = _simplified(model)
    model, not_inlined = inlined(model)
    model, not_inferred = inferred(model)
    notes += [not_inlined or "", not_inferred or ""]
    widen(model)  # again: the simplifier may have folded what lay between a weight and its Cast
    straighten(model)
    fill_dtypes(model, Operators(model, runtimes.get(runtimes.default())))
    _name(model)
    return Prepared(model, tuple(note for note in notes if note), simplified)


def _simplified(model: ir.Model) -> ir.Model:
    """Simplifies a model without making its file larger. Scales of inputs that differ from feature to feature stay
    where they are."""
    given = cloned(model)
    extra = [value for value in scaled_inputs(given) if value.name]
    given.graph.outputs.extend(extra)  # an output is never folded into a weight
    made = simplify(given, verify=False, max_growth=0).model or given
    kept = [value for value in made.graph.outputs if value.name not in {one.name for one in extra}]
    made.graph.outputs.clear()
    made.graph.outputs.extend(kept)
    return made


def _name(model: ir.Model) -> None:
    """Gives each node a unique name, so that keep-lists can name it."""
    for node, name in zip(list(walk.nodes(model.graph)), labels(model), strict=True):
        node.name = name


def widen(model: ir.Model) -> None:
    """Replaces each Cast of a 16-bit float constant to float32 by a float32 initializer, in place, because methods
    change float32 weights. The simplifier leaves such Casts, because without them the file is larger."""
    for node in list(walk.nodes(model.graph)):
        array = _widened(node)
        if array is None:
            continue
        given, graph = node.inputs[0], node.graph
        assert given is not None
        assert isinstance(graph, ir.Graph)
        made = _initializer(node, node.outputs[0].name or "", array.astype(np.float32))
        node.outputs[0].replace_all_uses_with(made)
        graph.remove(node, safe=True)
        _drop(given)


def narrow_again(model: ir.Model, given: ir.Model) -> None:
    """Stores float32 weights of the result in 16 bits behind a Cast again, in place, if `given` has such weights and no
    value changes. Otherwise weights that stay would take twice their bytes."""
    arrays = (_widened(node) for node in walk.nodes(given.graph))
    dtype = next((array.dtype for array in arrays if array is not None), None)
    first = next(iter(model.graph), None)
    if dtype is None or first is None:
        return
    names = Names(model)
    for value in list(model.graph.initializers.values()):
        array = facts.constant(value) if value.dtype == ir.DataType.FLOAT and not value.is_graph_output() else None
        if array is None or array.size < LEAST or not np.array_equal(array.astype(dtype).astype(np.float32), array):
            continue
        name = value.name
        stored = _initializer(first, names.free(f"{name}_{dtype.name}"), array.astype(dtype))
        cast = ir.Node("", "Cast", [stored], [ir.AttrInt64("to", ir.DataType.FLOAT.value)])
        cast.outputs[0].type, cast.outputs[0].shape = value.type, value.shape
        model.graph.insert_before(first, cast)
        value.replace_all_uses_with(cast.outputs[0])
        _drop(value)
        cast.outputs[0].name = name


def _widened(node: ir.Node) -> npt.NDArray[Any] | None:
    """Returns the 16-bit float constant that the node casts to float32; None for other nodes."""
    to = node.attributes.get_int("to", 0) if node.op_type == "Cast" and not node.domain else 0
    array = facts.constant(node.inputs[0]) if to == ir.DataType.FLOAT else None
    return array if array is not None and array.dtype in _NARROW and not node.outputs[0].is_graph_output() else None


_NARROW = (ir.DataType.FLOAT16.numpy(), ir.DataType.BFLOAT16.numpy())
_BIAS = 2
"""The index of the bias among the inputs of Gemm."""


def straighten(model: ir.Model) -> None:
    """Rewrites the constant biases of Gemm in all graphs, in place.

    1. `beta` is multiplied into the bias, because onnxruntime's quantiser ignores `beta`.
    2. A bias of shape [], [1], [1, 1] or [1, N] becomes [N], because quantisers divide it by the N scales of the
       weight.
    3. A bias with a number for each row, [M, 1] or [M, N], is added by an Add after the Gemm.

    A bias that is computed, or is also a graph input, stays as it is: quantisers leave it in float.
    """
    names = Names(model)
    for node in list(walk.nodes(model.graph)):
        bias = node.inputs[_BIAS] if node.op_type == "Gemm" and not node.domain and len(node.inputs) > _BIAS else None
        if bias is None or bias.const_value is None or bias.is_graph_input():
            continue
        given = bias.const_value.numpy()
        beta = node.attributes.get_float("beta", 1.0)
        array = given if beta == 1 else (given * np.asarray(beta, given.dtype)).astype(given.dtype)
        is_vector = all(size == 1 for size in array.shape[:-1])
        if is_vector:
            wanted = _columns(node) if array.size == 1 else None
            array = np.ascontiguousarray(np.broadcast_to(array.reshape(-1), (wanted or array.size,)))
        if beta != 1 or array.shape != given.shape:
            node.attributes.pop("beta", None)
            node.replace_input_with(_BIAS, _initializer(node, names.free(f"{bias.name}_vector"), array))
            _drop(bias)
        if not is_vector:
            _behind(node, names)


def _drop(value: ir.Value) -> None:
    """Removes an initializer that nothing reads any more."""
    if not value.uses() and not value.is_graph_output() and isinstance(value.graph, ir.Graph):
        value.graph.initializers.pop(value.name or "", None)


def _columns(node: ir.Node) -> int | None:
    """Returns the number of output channels; None if it is unknown."""
    weight = node.inputs[1]
    if weight is None or weight.shape is None or len(weight.shape) != 2:
        return None
    size = weight.shape[0 if node.attributes.get_int("transB", 0) else 1]
    return size if isinstance(size, int) else None


def _initializer(node: ir.Node, name: str, array: npt.NDArray[Any]) -> ir.Value:
    assert isinstance(node.graph, ir.Graph)
    tensor = ir.tensor(array, name=name)
    made = ir.Value(name=name, const_value=tensor, type=ir.TensorType(tensor.dtype), shape=ir.Shape(array.shape))
    node.graph.initializers[name] = made
    return made


def _behind(node: ir.Node, names: Names) -> None:
    """Moves the bias of a Gemm into an Add after it. The Add's output takes over the name of the Gemm's output."""
    assert isinstance(node.graph, ir.Graph)
    bias = node.inputs[_BIAS]
    node.resize_inputs(_BIAS)
    result = node.outputs[0]
    add = ir.Node("", "Add", [result, bias], name=names.free(f"{node.name}_bias") if node.name else None)
    added = add.outputs[0]
    added.type, added.shape = result.type, result.shape
    node.graph.insert_after(node, add)
    for use in list(result.uses()):
        if use.node is not add:
            use.node.replace_input_with(use.idx, added)
    for index, output in enumerate(node.graph.outputs):
        if output is result:
            node.graph.outputs[index] = added
    name = result.name
    result.name = names.free(f"{name}_product")
    added.name = name
