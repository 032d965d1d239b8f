"""Notes the elements of integer tensors of rank 0 and 1, as expressions over symbolic dimensions.

`integer_rules.py` computes the elements, operator by operator. An unknown element is None. Booleans are 0 and 1. Floats
are not followed, because they round.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

import onnx_ir as ir

from onnxsmith.base.seams.constant_tensors import const_tensor
from onnxsmith.base.seams.shape_engine import SYM_DATA_KEY
from onnxsmith.graph.shapes import symbols
from onnxsmith.graph.shapes.symbols import Element

Elements = list[Element | None]

MOST = 64
"""Limits the elements of a tensor that is followed. A choice: shapes and their pieces are far shorter."""
FOLLOWED = {ir.DataType.INT64, ir.DataType.INT32, ir.DataType.BOOL}
_RANGES = {
    ir.DataType.INT64: (-(2**63), 2**63 - 1, 2**31),
    ir.DataType.INT32: (-(2**31), 2**31 - 1, 2**16),
    ir.DataType.BOOL: (0, 1, 1),
}
"""Holds for each dtype its least and largest number, and the largest product of sizes assumed in the comparison with
these. An expression that may leave the range may overflow, and is not followed."""


def elements(value: ir.Value | None) -> Elements | None:
    """Returns the elements of an integer or bool tensor of rank 0 or 1, None for each unknown element. Returns None if
    not even the number of elements is known."""
    if value is None:
        return None
    tensor = constant_tensor(value)
    if tensor is not None:
        return of_tensor(tensor)
    return None if value.is_graph_input() else noted(value)


def noted(value: ir.Value) -> Elements | None:
    """Returns the elements that `note` stored."""
    text = value.metadata_props.get(SYM_DATA_KEY)
    return None if text is None else list(_read(text, symbols.assumptions()))


@lru_cache(maxsize=4096)
def _read(text: str, _: object) -> tuple[Element | None, ...]:
    """Returns the elements in a note. The second argument is only the cache key: assumptions decide how an expression
    is simplified."""
    return tuple(None if element is None else symbols.canonical(element) for element in json.loads(text))


def note(context: Any, value: ir.Value, found: Elements | None) -> None:
    """Stores the elements of a value; tells the engine, too, if all of them are known."""
    if found is None or len(found) > MOST or not _fits(value, found):
        return
    limits = _RANGES.get(value.dtype, (0, 1, 1)) if value.dtype is not None else (0, 1, 1)
    found = [one if one is not None and symbols.fits(one, *limits) else None for one in found]
    if found and all(element is None for element in found):
        return  # an empty vector is known: the shape of a scalar
    value.metadata_props[SYM_DATA_KEY] = json.dumps(found)
    if all(element is not None and symbols.is_expression(element) for element in found):
        context.hold(value, [one if isinstance(one, int) else ir.SymbolicDim(one) for one in found if one is not None])


def copy_noted(value: ir.Value, new: ir.Value) -> None:
    """Copies the noted elements of `value` to `new`."""
    if SYM_DATA_KEY in value.metadata_props:
        new.metadata_props[SYM_DATA_KEY] = value.metadata_props[SYM_DATA_KEY]


def _fits(value: ir.Value, found: Elements) -> bool:
    axes = rank(value)
    length = None if value.shape is None or axes != 1 else value.shape[0]
    return len(found) == 1 if axes == 0 else not isinstance(length, int) or length == len(found)


def rank(value: ir.Value | None) -> int | None:
    return None if value is None or value.shape is None else len(value.shape)


def constant_tensor(value: ir.Value) -> ir.TensorProtocol | None:
    """Returns the tensor of a Constant, or of an initializer that no caller may replace; None for other values."""
    if value.is_initializer():
        return None if value.is_graph_input() else value.const_value
    node = value.producer()
    is_constant = node is not None and node.op_type == "Constant" and not node.domain
    return const_tensor(value) if is_constant else None


def of_tensor(tensor: ir.TensorProtocol) -> Elements | None:
    if tensor.dtype not in FOLLOWED or len(tensor.shape) > 1 or tensor.size > MOST:
        return None
    return [int(number) for number in tensor.numpy().ravel()]


def runs_to_its_limit(node: ir.Node, body: ir.Graph) -> bool:
    """Whether the condition of a Loop is true at the start and stays true. A missing condition is true."""
    start = node.inputs[1] if len(node.inputs) > 1 else None
    given = body.inputs[1] if len(body.inputs) > 1 else None
    after: ir.Value | None = body.outputs[0] if body.outputs else None
    while after is not None and after is not given:
        producer = after.producer()
        if producer is None or producer.op_type != "Identity" or producer.domain:
            break
        after = producer.inputs[0]
    stays = after is not None and (after is given or elements(after) == [1])
    return stays and (start is None or elements(start) == [1])
