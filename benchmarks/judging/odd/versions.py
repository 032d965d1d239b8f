"""Every IR version and opset, and the ways in which a file says which operators it means."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx
from onnx import helper

from judging.odd.base import Odd, X, affine, floats, model, text, value, weight


def models() -> Iterator[Odd]:
    yield from _versions()
    yield from _domains()
    yield from _deprecated()
    yield from _initializers_as_inputs()


def _versions() -> Iterator[Odd]:
    for ir in range(3, onnx.IR_VERSION + 1):
        made = affine(ir=ir, opset=min(6 + ir, 20))
        if ir == 3:
            made.graph.input.extend([value("w", (3, 4)), value("b", (4,))])
        yield Odd(f"ir_{ir}", made, X)
    for opset in range(7, onnx.defs.onnx_opset_version() + 1):
        yield Odd(f"opset_{opset}", affine(opset=opset), X)
        nodes = [helper.make_node("Softmax", ["x"], ["s"]), helper.make_node("Flatten", ["s"], ["y"])]
        made = model(nodes, [value("x", ("N", 3, "M"))], [value("y", ("N", "K"))], opset=opset)
        yield Odd(f"opset_{opset}_softmax", made, {"x": floats(2, 3, 4)})


def _domains() -> Iterator[Odd]:
    yield Odd("domain_alias_import", affine(imports={"ai.onnx": 17}), X)
    yield Odd("domain_alias_both", affine(imports={"": 17, "ai.onnx": 17}), X)
    made = affine()
    for node in made.graph.node:
        node.domain = "ai.onnx"
    yield Odd("domain_alias_nodes", made, X)
    made = affine(imports={"ai.onnx": 17})
    for node in made.graph.node:
        node.domain = "ai.onnx"
    yield Odd("domain_alias_everywhere", made, X)
    made = affine(imports={"ai.onnx": 17})
    made.graph.node[1].domain = "ai.onnx"
    yield Odd("domain_alias_some_nodes", made, X)
    yield Odd("domain_twice_same", _twice(affine()), X)
    for domain, version in (("com.microsoft", 1), ("ai.onnx.ml", 3), ("nobody.uses.this", 7), ("ai.onnx.training", 1)):
        yield Odd(f"domain_unused_{domain}", affine(imports={"": 17, domain: version}), X)
    for version in range(1, onnx.defs.onnx_ml_opset_version() + 1):
        nodes = [helper.make_node("Normalizer", ["x"], ["y"], domain="ai.onnx.ml", norm="L2")]
        made = model(nodes, [value("x")], [value("y")], imports={"": 17, "ai.onnx.ml": version})
        yield Odd(f"ml_{version}", made, X)
    nodes = [helper.make_node("Normalizer", ["x"], ["y"], domain="ai.onnx.ml", norm="MAX")]
    yield Odd("ml_only", model(nodes, [value("x")], [value("y")], imports={"ai.onnx.ml": 3}), X)
    nodes = [helper.make_node("Gelu", ["x"], ["y"], domain="com.microsoft")]
    yield Odd("microsoft_only", model(nodes, [value("x")], [value("y")], imports={"com.microsoft": 1}), X)


def _twice(made: onnx.ModelProto) -> onnx.ModelProto:
    made.opset_import.append(helper.make_opsetid("", 17))
    return made


def _deprecated() -> Iterator[Odd]:
    image = floats(1, 4, 3, 5)
    scale, shift = weight("s", floats(2)), weight("b", floats(2))
    node = helper.make_node("GroupNormalization", ["x", "s", "b"], ["y"], num_groups=2)
    ports = [value("x", ("N", 4, "H", "W"))], [value("y", ("N", 4, "H", "W"))]
    yield Odd("group_norm_18", model([node], *ports, [scale, shift], opset=18), {"x": image})
    yield Odd("group_norm_20", model([node], *ports, [scale, shift], opset=20), {"x": image})
    scale, shift = weight("s", floats(4)), weight("b", floats(4))
    yield Odd("group_norm_21", model([node], *ports, [scale, shift], opset=21, ir=10), {"x": image})
    yield text(
        "upsample_7",
        'g (float[1,1,H,W] x) => (float[1,1,A,B] y) { y = Upsample<mode="nearest", scales=[1.0,1.0,2.0,2.0]>(x) }',
        {"x": floats(1, 1, 2, 3)},
        opset=7,
    )
    yield text(
        "upsample_9",
        "g (float[1,1,H,W] x) => (float[1,1,A,B] y) { s = Constant<value = float[4] {1.0,1.0,2.0,2.0}>() "
        'y = Upsample<mode="linear">(x, s) }',
        {"x": floats(1, 1, 2, 3)},
        opset=9,
    )
    for opset, operator in ((9, "Scatter"), (10, "Scatter")):
        yield text(
            f"scatter_{opset}",
            f"g (float[3,3] x, int64[1,2] i, float[1,2] u) => (float[3,3] y) {{ y = {operator}<axis=0>(x, i, u) }}",
            {"x": floats(3, 3), "i": np.array([[0, 2]], np.int64), "u": floats(1, 2)},
            opset=opset,
        )
    yield _scan_8()
    yield text(
        "reduce_sum_axes_attribute",
        "g (float[N,3] x) => (float[N] y) { y = ReduceSum<axes=[1], keepdims=0>(x) }",
        X,
        opset=11,
    )
    yield text(
        "batchnorm_7",
        """g (float[N,3] x, float[3] s) => (float[N,3] y) { y = BatchNormalization(x, s, s, s, s) }""",
        {**X, "s": np.abs(floats(3)) + 1},
        opset=7,
    )
    yield text(
        "dropout_7", "g (float[N,3] x) => (float[N,3] y, float[N,3] m) { y, m = Dropout<ratio=0.4>(x) }", X, opset=7
    )
    yield text("dropout_12_mask", "g (float[N,3] x) => (float[N,3] y, bool[N,3] m) { y, m = Dropout(x) }", X, opset=12)
    yield text(
        "slice_1", "g (float[N,3] x) => (float[A,B] y) { y = Slice<axes=[1], starts=[1], ends=[3]>(x) }", X, opset=9
    )
    yield text("clip_6", "g (float[N,3] x) => (float[N,3] y) { y = Clip<min=-0.5, max=0.5>(x) }", X, opset=10)
    yield text("pad_2", "g (float[2,3] x) => (float[A,B] y) { y = Pad<pads=[0,1,0,1], value=2.0>(x) }", X, opset=10)
    yield text("cast_6", "g (float[N,3] x) => (int32[N,3] y) { y = Cast<to=6>(x) }", X, opset=7)
    yield text("topk_1", "g (float[N,3] x) => (float[N,2] y, int64[N,2] i) { y, i = TopK<k=2>(x) }", X, opset=9)


def _scan_8() -> Odd:
    body = helper.make_graph(
        [helper.make_node("Add", ["a", "v"], ["c"]), helper.make_node("Identity", ["c"], ["w"])],
        "body",
        [value("a", (1,)), value("v", (1,))],
        [value("c", (1,)), value("w", (1,))],
    )
    node = helper.make_node("Scan", ["", "s", "x"], ["t", "y"], num_scan_inputs=1, body=body)
    made = model(
        [node],
        [value("s", ("B", 1)), value("x", ("B", "T", 1))],
        [value("t", ("B", 1)), value("y", ("B", "T", 1))],
        opset=8,
    )
    return Odd("scan_8", made, {"s": floats(2, 1), "x": floats(2, 4, 1)})


def _initializers_as_inputs() -> Iterator[Odd]:
    yield Odd("ir_3_initializer_no_input", affine(ir=3, opset=8), X)
    made = affine(ir=3, opset=8)
    made.graph.input.append(value("w", (3, 4)))
    yield Odd("ir_3_one_initializer_input", made, X)
    made = affine(ir=8)
    made.graph.input.extend([value("w", (3, 4)), value("b", (4,))])
    yield Odd("initializers_are_inputs", made, X)
    made = affine(ir=8)
    made.graph.input.insert(0, value("w", (3, 4)))
    yield Odd("initializer_is_first_input", made, X)
    made = affine(ir=8)
    made.graph.input.append(value("w", None))
    yield Odd("initializer_input_unknown_rank", made, X)
