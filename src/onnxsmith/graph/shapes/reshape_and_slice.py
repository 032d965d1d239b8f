"""Infers shapes that depend on the elements of integer tensors: the targets of Reshape, the bounds of Slice and so on.

The engine follows such integers through sympy, and assumes that bounds lie inside the dimension. Here they come from
`known_integers.elements`, element by element, so that one unknown element does not hide the others. An uncertain
dimension gets a new name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import ml_dtypes
import onnx_ir as ir

from onnxsmith.base.seams.constant_tensors import const_tensor
from onnxsmith.graph.shapes import symbols
from onnxsmith.graph.shapes.dims import written
from onnxsmith.graph.shapes.known_integers import Elements, elements
from onnxsmith.graph.shapes.symbols import Element

Infer = Callable[[Any, ir.Node], None]
_TO_THE_END = 2**31 - 1
"""Is the end that exporters write for an open end; some write the largest 64-bit integer."""


def dims(value: ir.Value | None) -> Elements | None:
    """Returns a value's dimensions in canonical form, None for an unknown dimension; returns None if the rank is
    unknown."""
    if value is None or value.shape is None:
        return None
    return [None if dim is None else symbols.canonical(dim) for dim in written(value.shape)]


def shaped(context: Any, value: ir.Value, found: Iterable[Element | None], dtype: ir.DataType | None) -> None:
    """Sets a value's shape and dtype in the engine; an unknown dimension gets a new name."""
    made = [context.new_symbolic_dim() if dim is None else dim for dim in found]
    shape = ir.Shape([ir.SymbolicDim(dim) if isinstance(dim, str) else dim for dim in made])
    context.set_shape_and_dtype(value, shape, dtype)


def reshape(infer: Infer) -> Infer:
    """Uses the known elements of the target, resolves 0 and -1, and computes one unknown element from the others."""

    def careful(context: Any, node: ir.Node) -> None:
        target = elements(node.inputs[1]) if len(node.inputs) > 1 else None
        data, allowzero = node.inputs[0], node.attributes.get("allowzero")
        if data is None or target is None or (allowzero is not None and allowzero.is_ref()):
            infer(context, node)
            return
        copies = allowzero is None or not allowzero.as_int()
        shaped(context, node.outputs[0], _reshaped(dims(data), target, copies), data.dtype)

    return careful


def _reshaped(data: Elements | None, target: Elements, copies: bool) -> Elements:
    result: Elements = []
    for index, element in enumerate(target):
        own = data[index] if data is not None and index < len(data) else None
        if element is None or element == -1:
            result.append(None)
        elif element == 0:
            result.append(own if copies else 0)
        else:
            beyond = data is not None and index >= len(data)  # a 0 here has no dimension to copy, so the node fails
            sure = _is_said(element, own, data, target[:index] + target[index + 1 :], copies and not beyond)
            result.append(element if sure else None)
    unknown = [index for index, element in enumerate(result) if element is None]
    if len(unknown) == 1 and data is not None:
        rest = symbols.product(element for index, element in enumerate(result) if index != unknown[0])
        everything = symbols.product(data)
        # the -1 follows from the others unless one may be 0: then -1 is invalid, and another value cannot be excluded
        if rest is not None and rest != 0 and (target[unknown[0]] == -1 or symbols.is_size(rest, positive=True)):
            result[unknown[0]] = None if everything is None else symbols.floor_divide(everything, rest)
    return result


def _is_said(element: Element, own: Element | None, data: Elements | None, others: Elements, copies: bool) -> bool:
    """Whether an element of a target is certainly the dimension of the result: it is never -1 and, if a 0 copies the
    data's dimension, never 0 where that dimension differs."""
    if isinstance(element, int) or symbols.is_size(element, positive=copies):
        return True
    if not copies:
        return element in (data or ())
    if own is not None and (element == own or (_is_size(element) and symbols.is_empty_with(own, element))):
        return True  # both are 0 together
    everything = None if data is None else symbols.product(data)
    fails = everything is not None and symbols.is_empty_with(everything, element)
    return fails and _is_size(element) and all(one is not None and symbols.at_least(one, 1) for one in others)


def _is_size(element: Element) -> bool:
    return symbols.is_size(element, positive=False)


def constant_of_shape(infer: Infer) -> Infer:
    """Uses known elements of the shape; the engine reads constants only."""

    def careful(context: Any, node: ir.Node) -> None:
        infer(context, node)
        found = elements(node.inputs[0]) if node.outputs[0].shape is None else None
        if found is not None:
            shaped(context, node.outputs[0], found, None)

    return careful


def tile(infer: Infer) -> Infer:
    """Multiplies each dimension by its repeats, if both are known."""

    def careful(context: Any, node: ir.Node) -> None:
        data, repeats = dims(node.inputs[0]), elements(node.inputs[1]) if len(node.inputs) == 2 else None
        if data is None or repeats is None or len(data) != len(repeats) or node.inputs[0] is None:
            infer(context, node)
            return
        found = [symbols.product(pair) for pair in zip(data, repeats, strict=True)]
        shaped(context, node.outputs[0], found, node.inputs[0].dtype)

    return careful


def range_(infer: Infer) -> Infer:
    """Counts the integers between known bounds. The number of floats depends on rounding, so it is counted only if all
    three operands are whole numbers."""

    def careful(context: Any, node: ir.Node) -> None:
        dtype = node.inputs[0].dtype if node.inputs[0] is not None else None
        if dtype is None:
            return
        if not dtype.is_integer() and not all(map(_is_whole, node.inputs)):
            shaped(context, node.outputs[0], [None], dtype)
            return
        found = [elements(value) for value in node.inputs]
        start, limit, delta = [one[0] if one is not None and len(one) == 1 else None for one in found]
        if start is None or limit is None or not isinstance(delta, int) or delta == 0:
            infer(context, node)
            return
        # counted downwards, the range has the same number of steps as upwards
        width = symbols.subtract(limit, start) if delta > 0 else symbols.subtract(start, limit)
        length = symbols.largest([0, _steps(width, abs(delta))])
        shaped(context, node.outputs[0], [length], dtype)

    return careful


def _is_whole(value: ir.Value | None) -> bool:
    """Whether a value is a whole number in the range in which its dtype represents all whole numbers."""
    tensor = None if value is None else const_tensor(value)
    if tensor is None or tensor.size != 1:
        return False
    number = float(tensor.numpy().item())
    bits: int = ml_dtypes.finfo(tensor.dtype.numpy()).nmant  # type: ignore[no-untyped-call]
    return number.is_integer() and abs(number) < 2.0**bits


def _steps(width: Element | None, step: int) -> Element | None:
    """Returns ceil(width / step)."""
    if width is None:
        return None
    more = symbols.add(width, step - 1)
    return None if more is None else symbols.floor_divide(more, step)


def slice_(infer: Infer) -> Infer:
    """Clamps the bounds to the dimension; bounds may be expressions."""

    def careful(context: Any, node: ir.Node) -> None:
        data = dims(node.inputs[0])
        if data is None or node.inputs[0] is None:
            infer(context, node)
            return
        if len(node.inputs) < 3:
            starts, ends, axes = (_listed(node, name) for name in ("starts", "ends", "axes"))
            found = _taken(data, axes, [starts, ends, None if starts is None else [1] * len(starts)])
        else:
            found = _sliced(data, node.inputs)
        shaped(context, node.outputs[0], found, node.inputs[0].dtype)

    return careful


def _sliced(data: Elements, inputs: Sequence[ir.Value | None]) -> Elements:
    """Returns the dimensions of a Slice's result; None for an unknown dimension."""
    starts, ends, axes, steps = ([elements(value) for value in inputs[1:]] + [None, None])[:4]
    names_axes, has_steps = (len(inputs) > index and inputs[index] is not None for index in (3, 4))
    if not names_axes:
        bounds = starts if starts is not None else ends
        axes = None if bounds is None else list(range(len(bounds)))
    return _taken(data, axes, [starts, ends, steps if has_steps else [1] * len(axes or ())])


def _listed(node: ir.Node, name: str) -> Elements | None:
    """Returns the elements of an attribute of a Slice before opset 10; the axes are the first ones by default."""
    attribute = node.attributes.get(name)
    if attribute is None:
        starts = _listed(node, "starts") if name == "axes" else None
        return None if starts is None else list(range(len(starts)))
    return None if attribute.is_ref() else list(attribute.as_ints())


def _taken(data: Elements, axes: Elements | None, columns: list[Elements | None]) -> Elements:
    """Returns the dimensions of a slice along `axes`, with columns for the starts, ends and steps."""
    unknown: Elements = [None] * len(data)
    if axes is None or not all(isinstance(axis, int) and -len(data) <= axis < len(data) for axis in axes):
        return unknown
    known = [[None] * len(axes) if column is None else column for column in columns]
    if any(len(column) != len(axes) for column in known):
        return unknown
    result = list(data)
    for axis, start, end, step in zip(axes, *known, strict=True):
        if isinstance(axis, int):
            result[axis] = extent(data[axis], start, end, step)
    return result


def extent(dim: Element | None, start: Element | None, end: Element | None, step: Element | None) -> Element | None:
    """Returns how many elements `[start:end:step]` takes of a dimension; None if unknown."""
    if dim is None or not isinstance(step, int) or step == 0:
        return None
    if step < 0:
        # x[::-1] keeps the dimension, whatever its size
        turned = step == -1 and start in (-1, _TO_THE_END, 2**63 - 1)
        if turned and isinstance(end, int) and end <= -_TO_THE_END:
            return dim
        if not isinstance(dim, int) or not isinstance(start, int) or not isinstance(end, int):
            return None
        if start < -dim or end >= _TO_THE_END:
            return None  # numpy and the specification differ beyond both ends
        return len(range(dim)[start:end:step])
    first, last = _bound(start, dim), symbols.smallest([_bound(end, dim), dim])
    if first is None or last is None:
        return None
    steps = _steps(symbols.subtract(last, first), step)
    return steps if first == 0 else symbols.largest([0, steps])


def _bound(bound: Element | None, dim: Element) -> Element | None:
    """Returns the position of a bound, counted from the first element; 0 or more, not clamped to the end."""
    if bound is None:
        return None
    if isinstance(bound, int):
        if abs(bound) >= _TO_THE_END:
            return dim if bound > 0 else 0
        if bound >= 0:
            return bound
        return symbols.largest([0, symbols.add(dim, bound)])
    return bound if symbols.at_least(bound, 0) else None


def split(infer: Infer) -> Infer:
    """Leaves unknown parts unknown; the engine assumes that they are equal."""

    def careful(context: Any, node: ir.Node) -> None:
        data, axis = dims(node.inputs[0]), node.attributes.get("axis")
        if node.inputs[0] is None or len(node.inputs) < 2 or node.inputs[1] is None or data is None:
            infer(context, node)
            return
        at = 0 if axis is None else None if axis.is_ref() else axis.as_int()
        tensor = const_tensor(node.inputs[1])
        fits = tensor is not None and tensor.size == len(node.outputs) and not node.inputs[1].is_graph_input()
        parts = [int(n) for n in tensor.numpy().ravel()] if fits and tensor is not None else elements(node.inputs[1])
        for index, value in enumerate(node.outputs):
            part = parts[index] if parts is not None and len(parts) == len(node.outputs) else None
            found = [part if at is not None and i == at % len(data) else dim for i, dim in enumerate(data)]
            shaped(context, value, found if at is not None else [None] * len(data), node.inputs[0].dtype)

    return careful


def concat(infer: Infer) -> Infer:
    """Adds the sizes at once. The engine adds them one by one, and makes a name for each element of every vector."""

    def careful(context: Any, node: ir.Node) -> None:
        every, attribute = [dims(value) for value in node.inputs], node.attributes.get("axis")
        shapes = [one for one in every if one is not None]
        ranks = {len(one) for one in shapes}
        at = 1 if attribute is None else None if attribute.is_ref() else attribute.as_int()
        if (
            not shapes
            or len(shapes) < len(every)
            or len(ranks) != 1
            or at is None
            or not -min(ranks) <= at < min(ranks)
        ):
            infer(context, node)
            return
        found = list(shapes[0])
        axis = at % len(found)
        found[axis] = symbols.total(one[axis] for one in shapes)
        shaped(context, node.outputs[0], found, next(value.dtype for value in node.inputs if value is not None))

    return careful


def squeeze(infer: Infer) -> Infer:
    """Leaves the rank unknown if the axes are unknown, or if all dimensions of size 1 are removed and some dimensions
    are names."""

    def careful(context: Any, node: ir.Node) -> None:
        data, dtype = dims(node.inputs[0]), node.inputs[0].dtype if node.inputs[0] is not None else None
        given = len(node.inputs) > 1 and node.inputs[1] is not None
        axes = elements(node.inputs[1]) if given else None
        if data is None or (not given and ("axes" in node.attributes or all(isinstance(dim, int) for dim in data))):
            infer(context, node)
        elif axes is None or not all(isinstance(axis, int) for axis in axes):
            context.set_shape_and_dtype(node.outputs[0], None, dtype)
        else:
            gone = {axis % len(data) for axis in axes if isinstance(axis, int)} if data else set()
            shaped(context, node.outputs[0], [dim for index, dim in enumerate(data) if index not in gone], dtype)

    return careful


RULES: dict[str, Callable[[Infer], Infer]] = {
    "Concat": concat,
    "ConstantOfShape": constant_of_shape,
    "Range": range_,
    "Reshape": reshape,
    "Slice": slice_,
    "Split": split,
    "Squeeze": squeeze,
    "Tile": tile,
}
"""Maps operators of ONNX's own domain to rules."""
