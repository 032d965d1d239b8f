"""Follows integer arithmetic, operator by operator: computes elements of small integer tensors as expressions over
dimensions.

`sound_shapes.py` puts these rules around those of the engine. The engine's own rules treat an unknown number as a new
dimension, and a rounded float as exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import onnx_ir as ir

from onnxsmith.graph.shapes import symbols
from onnxsmith.graph.shapes.dims import written
from onnxsmith.graph.shapes.facts import integer
from onnxsmith.graph.shapes.known_integers import (
    FOLLOWED,
    MOST,
    Elements,
    constant_tensor,
    elements,
    note,
    of_tensor,
    rank,
)
from onnxsmith.graph.shapes.symbols import Element

Rule = Callable[[ir.Node], Elements | None]
"""Returns the elements of the first result, or None if nothing is known."""
_ALL = 2**31 - 1
"""Is the default end of `Shape`, beyond any rank. Exporters also write it for an open end of a Slice."""
_EXACT = 2**53
"""Is the largest sum or product that is exact in a double: onnxruntime reduces 64-bit integers in double."""


def around(rule: Rule) -> Callable[[Callable[[Any, ir.Node], None]], Callable[[Any, ir.Node], None]]:
    """Wraps the engine's inference of an operator: afterwards, `rule` computes the elements of the result."""

    def wrap(infer: Callable[[Any, ir.Node], None]) -> Callable[[Any, ir.Node], None]:
        def careful(context: Any, node: ir.Node) -> None:
            for value in node.outputs:
                context.forget(value)
            infer(context, node)
            if not node.outputs or node.outputs[0].dtype not in FOLLOWED or rank(node.outputs[0]) not in (0, 1):
                return
            found = _pieces(node) if rule is _split else [rule(node)]
            for value, held in zip(node.outputs, found, strict=False):
                note(context, value, held)

        return careful

    return wrap


def _numbers(value: ir.Value | None) -> list[int] | None:
    """Returns the elements if all of them are integers."""
    found = elements(value)
    if found is None or not all(isinstance(element, int) for element in found):
        return None
    return [element for element in found if isinstance(element, int)]


def _scalar(value: ir.Value | None) -> Element | None:
    found = elements(value)
    return found[0] if found is not None and len(found) == 1 else None


def _passed_on(node: ir.Node) -> Elements | None:
    return elements(node.inputs[0])


def _shape(node: ir.Node) -> Elements | None:
    data = node.inputs[0]
    start, end = integer(node, "start", 0), integer(node, "end", _ALL)
    if data is None or data.shape is None or start is None or end is None:
        return None
    return [None if dim is None else symbols.canonical(dim) for dim in written(data.shape)[start:end]]


def _size(node: ir.Node) -> Elements | None:
    data = node.inputs[0]
    if data is None or data.shape is None:
        return None
    return [symbols.product(written(data.shape))]


def _cast(node: ir.Node) -> Elements | None:
    data, to = elements(node.inputs[0]), node.outputs[0].dtype
    if data is None or to is not ir.DataType.BOOL:
        return data
    # true for all elements other than 0
    return [_truth(symbols.differ, element, 0) for element in data]


def _gather(node: ir.Node) -> Elements | None:
    data, indices = elements(node.inputs[0]), _numbers(node.inputs[1])
    if data is None or indices is None or rank(node.inputs[0]) != 1 or integer(node, "axis", 0) not in (0, -1):
        return None
    if any(not -len(data) <= index < len(data) for index in indices):
        return None
    return [data[index] for index in indices]


def _gather_nd(node: ir.Node) -> Elements | None:
    indices = node.inputs[1]
    return _gather(node) if rank(indices) == 1 and not integer(node, "batch_dims", 0) else None


def _slice(node: ir.Node) -> Elements | None:
    data = elements(node.inputs[0])
    bounds = [_numbers(value) for value in node.inputs[1:]]
    if data is None or len(bounds) < 2 or any(bound is None or len(bound) != 1 for bound in bounds):
        return None
    start, end, _, step = [bound[0] for bound in bounds if bound is not None] + [0, 1][len(bounds) - 2 :]
    if step == 0 or (
        step < 0 and (start < -len(data) or end >= _ALL)
    ):  # ONNX then starts at the first element, Python takes none
        return None
    return data[start:end:step]


def _concat(node: ir.Node) -> Elements | None:
    length = node.outputs[0].shape[0] if node.outputs[0].shape else None
    parts: Elements = []
    for value in node.inputs if not isinstance(length, int) or length <= MOST else ():
        found = elements(value)
        if found is None:
            length = value.shape[0] if value is not None and value.shape is not None and len(value.shape) == 1 else None
            if not isinstance(length, int) or length > MOST:
                return None
            # an operand with unknown elements still counts for the positions of the others
            found = [None] * length
        parts += found
        if len(parts) > MOST:
            return None
    return parts


def _split(node: ir.Node) -> Elements | None:
    return _pieces(node)[0]


def _pieces(node: ir.Node) -> list[Elements | None]:
    """Returns the elements of every result of a Split."""
    data = elements(node.inputs[0])
    pieces: list[Elements | None] = []
    at = 0
    for value in node.outputs:
        size = value.shape[0] if value.shape is not None and len(value.shape) == 1 else None
        if data is None or not isinstance(size, int):
            return [None] * len(node.outputs)
        pieces.append(data[at : at + size])
        at += size
    return pieces


def _binary(operation: Callable[[Element, Element], Element | None]) -> Rule:
    def rule(node: ir.Node) -> Elements | None:
        found = _aligned([elements(value) for value in node.inputs])
        if found is None:
            return None
        a, b = found
        return [None if x is None or y is None else operation(x, y) for x, y in zip(a, b, strict=True)]

    return rule


def _variadic(operation: Callable[[list[Element | None]], Element | None]) -> Rule:
    def rule(node: ir.Node) -> Elements | None:
        found = _aligned([elements(value) for value in node.inputs])
        return None if found is None else [operation(list(column)) for column in zip(*found, strict=True)]

    return rule


def _aligned(given: Sequence[Elements | None]) -> list[Elements] | None:
    """Broadcasts the operands to one length."""
    known = [found for found in given if found is not None]
    if len(known) < len(given) or not known:
        return None
    # an empty operand broadcasts with operands of one element to an empty result
    length = max(len(found) for found in known) if all(known) else 0
    if any(len(found) not in (1, length) for found in known):
        return None
    return [found * length if len(found) == 1 else found for found in known]


def _modulo(node: ir.Node) -> Elements | None:
    return None if integer(node, "fmod", 0) != 0 else _binary(symbols.modulo)(node)


def _logic(operation: Callable[[Element | None, Element | None], int | None]) -> Rule:
    return _variadic(lambda column: operation(*column))


def _each(operation: Callable[[Element], Element | None]) -> Rule:
    def rule(node: ir.Node) -> Elements | None:
        data = elements(node.inputs[0])
        return None if data is None else [None if element is None else operation(element) for element in data]

    return rule


def _where(node: ir.Node) -> Elements | None:
    found = _aligned([elements(value) for value in node.inputs])
    if found is None:
        return None
    columns = zip(*found, strict=True)
    return [x if condition == 1 or x == y else y if condition == 0 else None for condition, x, y in columns]


def _range(node: ir.Node) -> Elements | None:
    start, limit, delta = (_scalar(value) for value in node.inputs)
    width = None if start is None or limit is None else symbols.subtract(limit, start)
    if start is None or not isinstance(width, int) or not isinstance(delta, int) or delta == 0:
        return None
    length = max(0, -(-width // delta))
    return [symbols.add(start, step * delta) for step in range(length)] if length <= MOST else None


def _constant_of_shape(node: ir.Node) -> Elements | None:
    length, value = _numbers(node.inputs[0]), node.attributes.get("value")
    if length is None or len(length) > 1 or value is None or value.is_ref():
        return None
    number = of_tensor(value.as_tensor())
    size = math.prod(length)
    return number * size if number is not None and 0 <= size <= MOST else None


def _repeated(node: ir.Node) -> Elements | None:
    """Follows Expand of one element, and Tile of several."""
    data, shape = elements(node.inputs[0]), node.outputs[0].shape
    length = shape[0] if shape is not None and len(shape) == 1 else 1
    if not data or not isinstance(length, int) or length > MOST or length % len(data):
        return None
    return data * (length // len(data))


def _reduced(operation: Callable[[Elements], Element | None]) -> Rule:
    def rule(node: ir.Node) -> Elements | None:
        data = elements(node.inputs[0])
        given = len(node.inputs) > 1 and node.inputs[1] is not None
        if data is None or (not given and integer(node, "noop_with_empty_axes", 0) != 0):
            return None
        # a vector has one axis only
        if given and _numbers(node.inputs[1]) not in ([0], [-1]):
            return None
        found = operation(data)
        # a maximum or minimum is one of the elements, so a runtime cannot round it
        exact = found is not None and symbols.fits(found, -_EXACT, _EXACT, 2**31)
        return [found if exact or operation in (symbols.largest, symbols.smallest) else None]

    return rule


def _scattered(node: ir.Node) -> Elements | None:
    """Follows ScatterND and ScatterElements into a vector."""
    data, updates = elements(node.inputs[0]), elements(node.inputs[2])
    tensor = None if node.inputs[1] is None else constant_tensor(node.inputs[1])
    if data is None or updates is None or tensor is None or "reduction" in node.attributes:
        return None
    indices = [int(index) for index in tensor.numpy().ravel()]
    if rank(node.inputs[0]) != 1 or len(indices) != len(updates):
        return None
    if any(not -len(data) <= index < len(data) for index in indices):
        return None
    result = list(data)
    for index, update in zip(indices, updates, strict=True):
        result[index] = update
    return result


def _negative(element: Element) -> Element | None:
    return symbols.multiply(element, -1)


def _absolute(element: Element) -> Element | None:
    return element if symbols.at_least(element, 0) else _negative(element) if symbols.at_least(0, element) else None


# Comparisons for all sizes at once: 1 is true, 0 false; None depends on the sizes.


def _truth(decide: Callable[[Element, Element], bool], a: Element | None, b: Element | None) -> int | None:
    """Returns 1 if `decide(a, b)` is true for all sizes, 0 if `a` and `b` are the same expression, else None."""
    if a is None or b is None:
        return None
    return 1 if decide(a, b) else 0 if a == b else None


def _equal(a: Element, b: Element) -> int | None:
    differs = _truth(symbols.differ, a, b)
    return None if differs is None else 1 - differs


def _less(a: Element, b: Element) -> int | None:
    return 0 if symbols.at_least(a, b) else 1 if symbols.at_least(b, a) and symbols.differ(a, b) else None


def _not_above(a: Element, b: Element) -> int | None:
    above = _less(b, a)
    return None if above is None else 1 - above


def _both(a: Element | None, b: Element | None) -> int | None:
    return 0 if 0 in (a, b) else 1 if a == b == 1 else None


def _either(a: Element | None, b: Element | None) -> int | None:
    return 1 if 1 in (a, b) else 0 if a == b == 0 else None


RULES: dict[str, Rule] = {
    **dict.fromkeys(("Identity", "Squeeze", "Unsqueeze", "Reshape", "Flatten", "Transpose"), _passed_on),
    **dict.fromkeys(("Expand", "Tile"), _repeated),
    **dict.fromkeys(("ScatterND", "ScatterElements"), _scattered),
    "Abs": _each(_absolute),
    "Add": _binary(symbols.add),
    "And": _logic(_both),
    "Cast": _cast,
    "Ceil": lambda _: None,
    "Concat": _concat,
    "ConstantOfShape": _constant_of_shape,
    "Div": _binary(symbols.truncate_divide),
    "Equal": _binary(_equal),
    "Floor": lambda _: None,
    "Gather": _gather,
    "GatherElements": _gather,
    "GatherND": _gather_nd,
    "Greater": _binary(lambda a, b: _less(b, a)),
    "GreaterOrEqual": _binary(lambda a, b: _not_above(b, a)),
    "Less": _binary(_less),
    "LessOrEqual": _binary(_not_above),
    "Max": _variadic(symbols.largest),
    "Min": _variadic(symbols.smallest),
    "Mod": _modulo,
    "Mul": _binary(symbols.multiply),
    "Neg": _each(_negative),
    "Not": _each(lambda element: 1 - element if isinstance(element, int) else None),
    "Or": _logic(_either),
    "Range": _range,
    "ReduceMax": _reduced(symbols.largest),
    "ReduceMin": _reduced(symbols.smallest),
    "ReduceProd": _reduced(symbols.product),
    "ReduceSum": _reduced(symbols.total),
    "Shape": _shape,
    "Size": _size,
    "Slice": _slice,
    "Split": _split,
    "Sub": _binary(symbols.subtract),
    "Sum": _variadic(symbols.total),
    "Where": _where,
}
"""Maps operators of ONNX's own domain to rules."""
