"""Finds the common part of written-out normalisations: v / sqrt(mean(v²) + epsilon), over the last axes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.optimizer.rules._patterns import fits, integer, is_number, maker, read_elsewhere, too_old, two_ways
from onnxsmith.optimizer.rules.base import Exactness, Match, NoMatch, Rule

_NARROW = (ir.DataType.FLOAT16, ir.DataType.BFLOAT16)


@dataclass(frozen=True)
class Normed:
    """v divided by the root of its mean square over its last `axes` axes, and the nodes, outermost first."""

    value: ir.Value
    axes: int
    epsilon: float
    nodes: tuple[ir.Node, ...]


@dataclass(frozen=True)
class Affine:
    """A normalisation with the nodes after it, each optional: a Cast to a narrower dtype, a factor and a summand."""

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
    orders = two_ways(node) if node.op_type == "Mul" else two_ways(node)[:1] if node.op_type == "Div" else ()
    for value, other in orders:
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


class WrittenOut(Rule):
    """Replaces a written-out normalisation by its operator."""

    exactness = Exactness.REASSOCIATES
    operator: ClassVar[str]
    since: ClassVar[int]
    follows: ClassVar[tuple[str, ...]]
    """The operators that may follow the normalisation: for its factor, its summand, a Cast back to 16 bits."""

    @abstractmethod
    def source(self, found: Affine, node: ir.Node) -> tuple[ir.Value, tuple[ir.Node, ...]] | None:
        """Returns the normalised value, and the nodes before those in `found`; None for another kind of
        normalisation."""

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        whole = self._whole(node)
        if whole is None:
            return None
        found, source, every = whole
        if self._goes_on(node, found):
            return None
        if source.dtype is not (found.narrowed or ir.DataType.FLOAT):
            return NoMatch("the dtype is not known to be float", source)
        dims = facts.dims(found.normed.value) or ()
        last = dims[len(dims) - found.normed.axes :]
        if not all(isinstance(dim, int) for dim in last):
            return NoMatch("the size of the axes that it goes over is not known", source)
        if not _axes_agree(found):
            return NoMatch("scale or bias do not have the normalised axes")
        refusal = too_old(node, self.operator, self.since) or read_elsewhere(every)
        return refusal or Match(node, every, {"source": source, "sizes": last, "affine": found})

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        found: Affine = match.found["affine"]
        source: ir.Value = match.found["source"]
        inputs = [source, found.scale]
        if found.scale is None:
            assert source.dtype is not None
            ones = ir.Tensor(np.ones(match.found["sizes"], source.dtype.numpy()), dtype=source.dtype)
            inputs[1] = tape.initializer(ones, name="ones")
        if found.bias is not None:
            inputs.append(found.bias)
        return tape.op(self.operator, inputs, {"axis": -found.normed.axes, "epsilon": found.normed.epsilon})

    def _whole(self, node: ir.Node) -> tuple[Affine, ir.Value, tuple[ir.Node, ...]] | None:
        """Returns the normalisation that ends at the node, the normalised value, and all its nodes, the last first."""
        found = affine(node)
        data = self.source(found, node) if found is not None else None
        if found is None or data is None:
            return None
        source, nodes = data
        if found.narrowed is not None:
            widened = maker(source, node, "Cast")
            if widened is None or widened.inputs[0] is None or widened.inputs[0].dtype is not found.narrowed:
                return None
            source = widened.inputs[0]
        return found, source, (*found.nodes, *nodes)

    def _goes_on(self, node: ir.Node, found: Affine) -> bool:
        """Whether the only reader of the node belongs to the normalisation, and will match with it."""
        if len(node.outputs[0].uses()) != 1 or node.outputs[0].is_graph_output() or found.bias is not None:
            return False
        reader = next(iter(node.outputs[0].consumers()))
        if reader.domain or reader.graph is not node.graph or reader.op_type not in self.follows:
            return False
        whole = self._whole(reader)
        return whole is not None and len(whole[0].nodes) > len(found.nodes) and _axes_agree(whole[0])


def _axes_agree(found: Affine) -> bool:
    """Whether the rank of factor and summand is the number of normalised axes."""
    given = [facts.dims(value) for value in (found.scale, found.bias) if value is not None]
    return all(dims is not None and len(dims) == found.normed.axes for dims in given)
