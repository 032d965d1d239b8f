"""The common part of written-out normalisations: v / sqrt(mean(v²) + epsilon), over the last axes."""

from __future__ import annotations

from dataclasses import dataclass

import onnx_ir as ir

from onnxsmith.model import facts
from onnxsmith.rules._patterns import fits, integer, is_number, maker, two_ways
from onnxsmith.rules.base import NoMatch


@dataclass(frozen=True)
class Normed:
    """v divided by the root of its mean square over its last `axes` axes, and the nodes, outermost first."""

    value: ir.Value
    axes: int
    epsilon: float
    nodes: tuple[ir.Node, ...]


@dataclass(frozen=True)
class Affine:
    """A normalisation with what follows it: a factor and a summand, where there are any."""

    normed: Normed
    scale: ir.Value | None
    bias: ir.Value | None
    nodes: tuple[ir.Node, ...]


def normed(node: ir.Node) -> Normed | None:
    """What the node computes, where it is the last of a normalisation: v / s, v * (1 / s), with s the root."""
    pairs: list[tuple[ir.Value, ir.Value | None, tuple[ir.Node, ...]]] = []
    if node.op_type == "Div":
        pairs += [(value, root, ()) for value, root in two_ways(node)[:1]]
    for value, inverse in two_ways(node) if node.op_type == "Mul" else ():
        one_over = maker(inverse, node, "Reciprocal", "Div")
        if one_over is not None and (one_over.op_type == "Reciprocal" or is_number(one_over.inputs[0], 1, inverse)):
            pairs.append((value, one_over.inputs[-1], (one_over,)))
    for value, root, between in pairs:
        found = _root(root, value, node)
        if found is not None:
            axes, epsilon, nodes = found
            return Normed(value, axes, epsilon, (node, *between, *nodes))
    return None


def _root(root: ir.Value | None, value: ir.Value, reader: ir.Node) -> tuple[int, float, tuple[ir.Node, ...]] | None:
    """The number of axes, epsilon and the nodes, where `root` is sqrt(mean(value²) + epsilon)."""
    sqrt = maker(root, reader, "Sqrt")
    total = maker(sqrt.inputs[0], reader, "Add") if sqrt is not None else None
    if sqrt is None or total is None:
        return None
    for mean_value, added in two_ways(total):
        mean, epsilon = maker(mean_value, reader, "ReduceMean"), facts.constant(added)
        if mean is None or epsilon is None or epsilon.size != 1 or epsilon.dtype.kind != "f" or not epsilon.item() > 0:
            continue
        square = maker(mean.inputs[0], reader, "Pow", "Mul")
        axes = last_axes(mean)
        if square is None or axes is None or not fits(epsilon.shape, value) or square.inputs[0] is not value:
            continue
        if square.inputs[1] is value if square.op_type == "Mul" else is_number(square.inputs[1], 2, value):
            return axes, float(epsilon.item()), (sqrt, total, mean, square)
    return None


def last_axes(mean: ir.Node) -> int | None:
    """Over how many of the last axes a ReduceMean goes that keeps its dimensions; None where it is another."""
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
    """The whole of a normalisation that ends at the node, with its factor and summand; None where more follows."""
    bias: ir.Value | None = None
    scale: ir.Value | None = None
    at, outer = node, tuple[ir.Node, ...]()
    if at.op_type == "Add":
        for value, other in two_ways(at):
            inner = maker(value, node, "Mul", "Div")
            if inner is not None and _is_affine(other, inner):
                bias, at, outer = other, inner, (node,)
                break
        else:
            return None
    found = normed(at)
    if found is None and at.op_type == "Mul":
        for value, other in two_ways(at):
            inner = maker(value, node, "Mul", "Div")
            found = normed(inner) if inner is not None and _is_affine(other, inner) else None
            if found is not None:
                scale, outer = other, (*outer, at)
                break
    return None if found is None else Affine(found, scale, bias, (*outer, *found.nodes))


def _is_affine(value: ir.Value, normalised: ir.Node) -> bool:
    """Whether a value may be a normalisation's factor or summand: as wide as the data's last axes, dimension by
    dimension."""
    dims, data = facts.dims(value), facts.dims(normalised.outputs[0])
    if not dims or data is None or len(dims) > len(data) or not all(isinstance(dim, int) for dim in dims):
        return False
    return value.producer() is None and facts.same(dims, data[len(data) - len(dims) :])


def goes_on(node: ir.Node, found: Affine) -> bool:
    """Whether the only reader of the node is the normalisation's factor or summand, which will match with it."""
    readers = node.outputs[0].uses()
    if len(readers) != 1 or node.outputs[0].is_graph_output() or found.bias is not None:
        return False
    reader = next(iter(node.outputs[0].consumers()))
    if reader.domain or reader.graph is not node.graph:
        return False
    if reader.op_type not in (("Add",) if found.scale is not None else ("Add", "Mul")):
        return False
    more = affine(reader)
    return more is not None and len(more.nodes) > len(found.nodes) and axes_agree(more)


def axes_agree(found: Affine) -> bool:
    """Whether factor and summand have as many axes as are normalised."""
    given = [facts.dims(value) for value in (found.scale, found.bias) if value is not None]
    return all(dims is not None and len(dims) == found.normed.axes for dims in given)


def sizes(found: Affine) -> list[int] | NoMatch:
    """The dimensions that are normalised, as numbers."""
    dims = facts.dims(found.normed.value) or ()
    last = dims[len(dims) - found.normed.axes :]
    if not all(isinstance(dim, int) for dim in last):
        return NoMatch("the size of the axes that it goes over is not known", found.normed.value.name or "")
    return [dim for dim in last if isinstance(dim, int)]
