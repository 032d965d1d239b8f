"""A factor on one of two paths between linear operators goes into their weights."""

from __future__ import annotations

from collections.abc import Mapping

import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.optimizer.rules import _activations
from onnxsmith.optimizer.rules._channels import Step, steps
from onnxsmith.optimizer.rules._fold_into_weights import LINEAR, Folded, Linear, fold, fold_input, linear
from onnxsmith.optimizer.rules._patterns import read_elsewhere
from onnxsmith.optimizer.rules.base import Exactness, Match, NoMatch, Rule


class SharedFactor(Rule):
    """The result v of a linear operator is read by g(v * c) and by a product v * g, which another linear operator
    reads. Then the factor c goes into the weights of the first operator, and 1 / c into those of the second: with u = v
    * c the graph computes g(u) and (u * g) / c.

    Weights and bias are computed in float64 and stored in their old dtype.

    Refused:
    1. Weights or bias of one of the two are not constants, or have other readers: the model would store them twice.
    2. A product overflows, or all products of a sum are too small to be normal numbers of the weights' dtype.

    No match: factors that are not one number; values with other readers; products with other readers than one linear
    operator; factors of a written-out Gelu or Swish, which a runtime computes as one operator.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,2] x) => (float[N,2] y)
        <float[2,2] w = {2, 4, 6, 8}, float[2,2] v = {1, 2, 3, 4}, float two = {2}> {
            a = MatMul(x, w)
            b = Div(a, two)
            c = Erf(b)
            d = Mul(a, c)
            y = MatMul(d, v)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,2] x) => (float[N,2] y) <float[2,2] w = {1, 2, 3, 4}, float[2,2] v = {2, 4, 6, 8}> {
            b = MatMul(x, w)
            c = Erf(b)
            d = Mul(b, c)
            y = MatMul(d, v)
        }
    """

    anchor = ("Mul", "Div")
    exactness = Exactness.REASSOCIATES

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        for where, step in steps(node):
            if isinstance(step, NoMatch) or step.scale.size != 1 or step.scale.ndim > 0:
                continue
            product = _product(step.source, node)
            after = _after(product) if product is not None else None
            before = linear(step.source, node, *LINEAR) if after is not None else None
            if (
                product is None
                or after is None
                or not isinstance(before, Linear)
                or read_elsewhere(before.nodes) is not None
            ):
                continue
            first = fold(before, step, where, underflow=False)
            if isinstance(first, NoMatch):
                return first
            inverse = Step(step.source, 1 / step.scale, step.shift)
            second = fold_input(after, inverse, where, underflow=False)
            if isinstance(second, NoMatch):
                return second
            if _activations.is_part(node):
                return None
            found = {"first": first, "second": second, "source": step.source}
            return Match(node, (node, *before.nodes), found, before.node, (step.source, *product.outputs))
        return None

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> Mapping[ir.Value, ir.Value]:
        first: Folded = match.found["first"]
        second: Folded = match.found["second"]
        scaled = first.write(tape, first.linear.node.inputs[0])
        replaced = {match.found["source"]: scaled, match.node.outputs[0]: scaled}
        if second.weight is not None:
            weight = second.linear.weight
            replaced[weight] = tape.initializer(ir.tensor(second.weight), name=f"{weight.name}_folded")
        return replaced


def _product(value: ir.Value, step: ir.Node) -> ir.Node | None:
    """Returns the product that is the value's only other reader, if its other factor is not constant."""
    readers = [reader for reader in value.consumers() if reader is not step]
    if len(readers) != 1 or value.is_graph_output() or len(value.uses()) != 2:
        return None
    (product,) = readers
    if product.op_type != "Mul" or product.domain or product.graph is not step.graph:
        return None
    others = [other for other in product.inputs if other is not None and other is not value]
    return product if len(others) == 1 and not facts.is_constant(others[0]) else None


def _after(product: ir.Node) -> Linear | None:
    """Returns the linear operator with constant weights that is the product's only reader."""
    result = product.outputs[0]
    readers = result.consumers()
    if len(readers) != 1 or len(result.uses()) != 1 or result.is_graph_output():
        return None
    (reader,) = readers
    if reader.op_type not in LINEAR or reader.domain or reader.graph is not product.graph:
        return None
    if reader.inputs[0] is not result or facts.constant(reader.inputs[1]) is None:
        return None
    found = linear(reader.outputs[0], reader, reader.op_type)
    return found if isinstance(found, Linear) else None
