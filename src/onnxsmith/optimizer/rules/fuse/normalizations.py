"""Fuses normalisations that are written out."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.optimizer.rules import _written_out_norms
from onnxsmith.optimizer.rules._pattern_rule import Answer, PatternRule
from onnxsmith.optimizer.rules._patterns import is_number, maker, only_reader, read_elsewhere, too_old
from onnxsmith.optimizer.rules._written_out_norms import Affine, affine
from onnxsmith.optimizer.rules.base import Exactness, Match, NoMatch, Rule

if TYPE_CHECKING:
    from onnxsmith.graph.patterns.match import Match as Found


class _WrittenOut(Rule):
    """Replaces a written-out normalisation by its operator."""

    exactness = Exactness.REASSOCIATES
    operator: ClassVar[str]
    since: ClassVar[int]
    follows: ClassVar[tuple[str, ...]]
    """Lists the operators that may follow the normalisation: for its factor, its summand, a Cast back to 16 bits."""

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
            return NoMatch("the sizes of the normalised axes are not known", source)
        if not _axes_agree(found):
            return NoMatch("the axes of scale or bias are not the normalised axes")
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
        reader = only_reader(node)
        if reader is None or len(node.outputs[0].uses()) != 1 or found.bias is not None:
            return False
        if reader.op_type not in self.follows:
            return False
        whole = self._whole(reader)
        return whole is not None and len(whole[0].nodes) > len(found.nodes) and _axes_agree(whole[0])


def _axes_agree(found: Affine) -> bool:
    """Whether the rank of factor and summand is the number of normalised axes."""
    given = [facts.dims(value) for value in (found.scale, found.bias) if value is not None]
    return all(dims is not None and len(dims) == found.normed.axes for dims in given)


class LayerNorm(_WrittenOut):
    """With d = x - mean(x), d / sqrt(mean(d²) + epsilon) · scale + bias over the last axes is LayerNormalization (J.
    Ba, J. Kiros and G. Hinton, 2016). Without a scale, the operator gets a scale of ones, which it requires. Casts of
    16-bit floats to float before it, and back before scale and bias, are removed, because the operator computes in
    float by itself.

    Equal up to rounding if the sum of the elements and the sum of the squares stay within the dtype. Otherwise, in
    float from about 1e19 on, both forms give zeros or NaN, but not always the same.

    Refused:
    1. The model's opset is below 17, which introduced LayerNormalization.
    2. An intermediate result has other readers, or is a graph output.
    3. The dtype is not known to be float, or 16 bits that are widened to float: the operator computes in float, which
       is less exact than double and more exact than float16.
    4. The sizes of the normalised axes are not known numbers.
    5. Scale or bias do not have exactly the normalised axes.

    No match: means that drop their axes, or go over other axes than the last; an epsilon of 0.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,2] x) => (float[N,2] y)
        <float two = {2}, float eps = {0.00001}, float[2] s = {2, 3}, float[2] b = {1, -1}> {
            m = ReduceMean <axes = [-1]> (x)
            d = Sub(x, m)
            q = Pow(d, two)
            v = ReduceMean <axes = [-1]> (q)
            e = Add(v, eps)
            r = Sqrt(e)
            n = Div(d, r)
            p = Mul(n, s)
            y = Add(p, b)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,2] x) => (float[N,2] y) <float[2] s = {2, 3}, float[2] b = {1, -1}> {
            y = LayerNormalization <axis = -1, epsilon = 0.00001> (x, s, b)
        }
    """

    anchor = ("Add", "Mul", "Div", "Cast")
    operator = "LayerNormalization"
    since = 17
    follows = ("Add", "Mul", "Cast")

    def source(self, found: _written_out_norms.Affine, node: ir.Node) -> tuple[ir.Value, tuple[ir.Node, ...]] | None:
        centre = maker(found.normed.value, node, "Sub")
        mean = maker(centre.inputs[1], node, "ReduceMean") if centre is not None else None
        data = centre.inputs[0] if centre is not None else None
        if centre is None or mean is None or data is None or mean.inputs[0] is not data:
            return None
        return (data, (centre, mean)) if _written_out_norms.last_axes(mean) == found.normed.axes else None


class RmsNorm(_WrittenOut):
    """x / sqrt(mean(x²) + epsilon) · scale over the last axes is RMSNormalization (B. Zhang and R. Sennrich, 2019).
    Without a scale, the operator gets a scale of ones, which it requires. A bias after it stays an Add. Casts of 16-bit
    floats to float before it, and back before the scale, are removed, because the operator computes in float by itself.

    Equal up to rounding if the sum of the squares stays within the dtype. Otherwise, in float from about 1e19 on, both
    forms give zeros or NaN, but not always the same.

    Refused:
    1. The model's opset is below 23, which introduced RMSNormalization.
    2. An intermediate result has other readers, or is a graph output.
    3. The dtype is not known to be float, or 16 bits that are widened to float: the operator computes in float, which
       is less exact than double and more exact than float16.
    4. The sizes of the normalised axes are not known numbers.
    5. The scale does not have exactly the normalised axes.

    No match: means that drop their axes, or go over other axes than the last; an epsilon of 0.

    Before:
        <ir_version: 10, opset_import: ["": 23]>
        g (float[N,2] x) => (float[N,2] y)
        <float two = {2}, float eps = {0.00001}, float[2] s = {2, 3}, int64[1] last = {-1}> {
            q = Pow(x, two)
            v = ReduceMean(q, last)
            e = Add(v, eps)
            r = Sqrt(e)
            i = Reciprocal(r)
            n = Mul(x, i)
            y = Mul(s, n)
        }

    After:
        <ir_version: 10, opset_import: ["": 23]>
        g (float[N,2] x) => (float[N,2] y) <float[2] s = {2, 3}> {
            y = RMSNormalization <axis = -1, epsilon = 0.00001> (x, s)
        }
    """

    anchor = ("Mul", "Div", "Cast")
    makes = operator = "RMSNormalization"
    since = 23
    follows = ("Mul", "Cast")

    def source(self, found: _written_out_norms.Affine, node: ir.Node) -> tuple[ir.Value, tuple[ir.Node, ...]] | None:
        centre = maker(found.normed.value, node, "Sub")
        is_centred = centre is not None and maker(centre.inputs[1], node, "ReduceMean") is not None
        return None if is_centred else (found.normed.value, ())


class ReciprocalDiv(PatternRule):
    """x * Reciprocal(Sqrt(v)), as torch writes x * rsqrt(v), is x / Sqrt(v); so is x * (1 / Sqrt(v)).

    Only for a root: the reciprocal of another value may overflow or underflow although the quotient does not. A root is
    never so small or so large.

    Refused:
    1. The reciprocal has other readers, or is a graph output.

    The rule does not match before opset 7, where attributes controlled broadcasting.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,4] x, float[N,1] v) => (float[N,4] y) {
            r = Sqrt(v)
            i = Reciprocal(r)
            y = Mul(x, i)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,4] x, float[N,1] v) => (float[N,4] y) {
            r = Sqrt(v)
            y = Div(x, r)
        }
    """

    anchor = ("Mul",)
    exactness = Exactness.REASSOCIATES
    pattern = "r = Sqrt(v)  y = Mul(x, either(Reciprocal(r), Div(c_one, r)))"
    replacement = "Div(x, r)"
    since = 7
    form = "operands that broadcast by themselves"
    sole_reader = True

    def check(self, found: Found) -> Answer:
        one = found.bindings.get("c_one")
        return {} if one is None or is_number(one, 1, found["r"]) else None
