"""Finds the common part of written-out normalisations: v / sqrt(mean(v²) + epsilon), over the last axes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.optimizer.rules._patterns import fits, integer, is_number, maker, two_ways

_NARROW = (ir.DataType.FLOAT16, ir.DataType.BFLOAT16)


@dataclass(frozen=True)
class Normed:
    """Divides v by the root of its mean square over its last `axes` axes. `nodes` are the nodes, outermost first."""

    value: ir.Value
    axes: int
    epsilon: float
    nodes: tuple[ir.Node, ...]


@dataclass(frozen=True)
class Affine:
    """Holds a normalisation with the nodes after it, each optional: a Cast to a narrower dtype, a factor and a
    summand."""

    normed: Normed
    narrowed: ir.DataType | None
    scale: ir.Value | None
    bias: ir.Value | None
    nodes: tuple[ir.Node, ...]


def normed(node: ir.Node) -> Normed | None:
    """Returns the normalisation that ends at the node: v / s or v * (1 / s), with the root s; None if there is none."""
    for value, total, between in _quotients(node):
        found = _mean_square(total, value, node)
        if found is not None:
            axes, epsilon, nodes = found
            return Normed(value, axes, epsilon, (node, *between, *nodes))
    return None


def _quotients(node: ir.Node) -> Iterator[tuple[ir.Value, ir.Value | None, tuple[ir.Node, ...]]]:
    """Yields v, w and the nodes that make the root, for each way to read the node as v / sqrt(w)."""
    for value, other in two_ways(node) if node.op_type in ("Mul", "Div") else ():
        power = maker(other, node, "Pow")
        root: ir.Value | None = other
        between: tuple[ir.Node, ...] = ()
        if node.op_type == "Div":
            pass
        elif power is not None and is_number(power.inputs[1], -0.5, other):
            yield value, power.inputs[0], (power,)
            continue
        else:
            inverse = maker(other, node, "Reciprocal", "Div")
            if inverse is None or (inverse.op_type == "Div" and not is_number(inverse.inputs[0], 1, other)):
                continue
            root, between = inverse.inputs[-1], (inverse,)
        made = maker(root, node, "Sqrt", "Pow")
        if made is not None and (made.op_type == "Sqrt" or is_number(made.inputs[1], 0.5, made.outputs[0])):
            yield value, made.inputs[0], (*between, made)


def _mean_square(
    total_value: ir.Value | None, value: ir.Value, reader: ir.Node
) -> tuple[int, float, tuple[ir.Node, ...]] | None:
    """Returns the number of axes, epsilon and the nodes, if a value is mean(value²) + epsilon."""
    total = maker(total_value, reader, "Add")
    for mean_value, added in two_ways(total) if total is not None else ():
        mean, epsilon = maker(mean_value, reader, "ReduceMean"), facts.constant(added)
        if mean is None or epsilon is None or epsilon.size != 1 or epsilon.dtype.kind != "f" or not epsilon.item() > 0:
            continue
        square = maker(mean.inputs[0], reader, "Pow", "Mul")
        axes = last_axes(mean)
        if square is None or axes is None or not fits(epsilon.shape, value) or square.inputs[0] is not value:
            continue
        if square.inputs[1] is value if square.op_type == "Mul" else is_number(square.inputs[1], 2, value):
            assert total is not None
            return axes, float(epsilon.item()), (total, mean, square)
    return None


def last_axes(mean: ir.Node) -> int | None:
    """Returns how many of the last axes a ReduceMean with `keepdims` reduces; None for other reductions."""
    dims = facts.dims(mean.inputs[0])
    if dims is None or integer(mean, "keepdims", 1) != 1:
        return None
    attribute = mean.attributes.get("axes")
    if attribute is not None:
        axes = () if attribute.is_ref() else tuple(attribute.as_ints())
    else:
        array = facts.constant(mean.inputs[1]) if len(mean.inputs) > 1 else None
        axes = () if array is None else tuple(array.ravel().tolist())
    places = sorted(axis % len(dims) for axis in axes) if dims else []
    count = len(places)
    return count if count and places == list(range(len(dims) - count, len(dims))) else None


def affine(node: ir.Node) -> Affine | None:
    """Returns the normalisation that ends at the node, with its factor and summand; None if a later node belongs to
    it."""
    at, nodes = node, tuple[ir.Node, ...]()
    bias: ir.Value | None = None
    scale: ir.Value | None = None
    if at.op_type == "Add":
        step = _step(at, node)
        if step is None:
            return None
        bias, at, nodes = step[0], step[1], (at,)
    found = _narrowed(at, node)
    step = _step(at, node) if found is None and at.op_type == "Mul" else None
    if step is not None:
        scale, inner = step
        found, nodes = _narrowed(inner, node), (*nodes, at)
    if found is None:
        return None
    narrowed, whole, casts = found
    return Affine(whole, narrowed, scale, bias, (*nodes, *casts, *whole.nodes))


def _step(at: ir.Node, reader: ir.Node) -> tuple[ir.Value, ir.Node] | None:
    """Returns the summand or factor of a normalisation, and the node before it."""
    for value, other in two_ways(at):
        inner = maker(value, reader, "Mul", "Div", "Cast")
        if inner is not None and _is_affine(other, inner):
            return other, inner
    return None


def _narrowed(at: ir.Node, reader: ir.Node) -> tuple[ir.DataType | None, Normed, tuple[ir.Node, ...]] | None:
    """Returns the normalisation that ends at a node, or before the node if that is a Cast to 16 bits."""
    if at.op_type != "Cast":
        whole = normed(at)
        return None if whole is None else (None, whole, ())
    inner, dtype = maker(at.inputs[0], reader, "Mul", "Div"), at.outputs[0].dtype
    whole = normed(inner) if inner is not None and dtype in _NARROW else None
    return None if whole is None else (dtype, whole, (at,))


def _is_affine(value: ir.Value, normalised: ir.Node) -> bool:
    """Whether a value may be a normalisation's factor or summand: whether its dimensions equal the data's last
    dimensions."""
    dims, data = facts.dims(value), facts.dims(normalised.outputs[0])
    if not dims or data is None or len(dims) > len(data) or not all(isinstance(dim, int) for dim in dims):
        return False
    if value.producer() is not None and not facts.is_constant(value):
        return False
    return facts.same(dims, data[len(data) - len(dims) :])
