"""A batch normalisation after a convolution goes into its weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from onnxsmith.model.facts import constant
from onnxsmith.rules.base import Exactness, Match, NoMatch, Rule, is_sole_use


class ConvBatchNorm(Rule):
    """BatchNormalization(Conv(x)) in inference is one Conv: with s = scale / sqrt(var + epsilon), its weights are W·s
    for each output channel and its bias is (b - mean)·s + B (S. Ioffe and C. Szegedy, 2015, section 3.1).

    The weights are computed in float64 and stored in the dtype they had.

    Refused:
    1. The convolution's result is read by others too, or is a graph output.
    2. Weights, bias or statistics are not constants (a graph input with a default is none).
    3. The normalisation is in training mode, or gives more than one output.
    4. `spatial` is 0 (opsets 7 and 8): statistics then differ by position.
    5. Others read the weights too: they would be stored twice.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,1,4,4] x) => (float[N,1,4,4] y)
        <float[1,1,1,1] w = {2}, float[1] s = {3}, float[1] b = {1}, float[1] m = {0.5}, float[1] v = {0.99999}> {
            a = Conv(x, w)
            y = BatchNormalization(a, s, b, m, v)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,1,4,4] x) => (float[N,1,4,4] y)
        <float[1,1,1,1] w2 = {6}, float[1] b2 = {-0.5}> {
            y = Conv(x, w2, b2)
        }
    """

    anchor = ("BatchNormalization",)
    exactness = Exactness.REASSOCIATES

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        source = node.inputs[0]
        conv = source.producer() if source is not None else None
        if source is None or conv is None or conv.op_type != "Conv" or conv.domain or conv.graph is not node.graph:
            return None
        if not is_sole_use(source):
            return NoMatch("the convolution's result is used elsewhere too", source.name or "")
        weight = conv.inputs[1]
        if weight is not None and (len(weight.uses()) > 1 or weight.is_graph_output()):
            return NoMatch("the weights are used elsewhere too", weight.name or "")
        training = node.attributes.get("training_mode")
        if len(node.outputs) > 1 or (training is not None and (training.is_ref() or training.as_int())):
            return NoMatch("the normalisation is in training mode", node.name or "")
        spatial = node.attributes.get("spatial")
        if spatial is not None and not spatial.as_int():
            return NoMatch("it normalises each position by itself", node.name or "")
        names = ("scale", "shift", "mean", "variance")
        found: dict[str, Any] = {name: constant(value) for name, value in zip(names, node.inputs[1:], strict=False)}
        found["weight"] = constant(conv.inputs[1])
        found["bias"] = constant(conv.inputs[2]) if len(conv.inputs) > 2 and conv.inputs[2] is not None else 0.0
        missing = [name for name in (*names, "weight", "bias") if found.get(name) is None]
        if missing:
            return NoMatch(f"{missing[0]} is not a constant", node.name or "")
        return Match(node, (node, conv), found)

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        conv, found = match.nodes[1], match.found
        epsilon = match.node.attributes.get("epsilon")
        wide = {name: np.asarray(found[name], np.float64) for name in found}
        factor = wide["scale"] / np.sqrt(wide["variance"] + (epsilon.as_float() if epsilon else 1e-5))
        weight = wide["weight"] * factor.reshape(-1, *[1] * (wide["weight"].ndim - 1))
        bias = (wide["bias"] - wide["mean"]) * factor + wide["shift"]
        dtype = found["weight"].dtype
        name = conv.inputs[1].name if conv.inputs[1] is not None else "conv"
        return tape.op(
            "Conv",
            [
                conv.inputs[0],
                tape.initializer(ir.tensor(weight.astype(dtype)), name=f"{name}_folded"),
                tape.initializer(ir.tensor(bias.astype(dtype)), name=f"{name}_folded_bias"),
            ],
            dict(conv.attributes),
        )
