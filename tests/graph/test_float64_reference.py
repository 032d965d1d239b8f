"""A graph in float64."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.structure import walk
from onnxsmith.graph.surgery.float64_reference import doubled

TEXT = """<ir_version: 8, opset_import: ["" : 17]>
    g (float[4] x, int64 n) => (float[4] y, seq(float[4]) q) <float[4] w = {1, 2, 3, 4}> {
        c = Constant <value = bool {1}> ()
        a = Add (x, w)
        h = Cast <to = 10> (a)
        f = Cast <to = 1> (h)
        y = Loop (n, c, f) <body = b (int64 i, bool ci, float[4] v) => (bool co, float[4] vo) {
            co = Identity (ci)  vo = Tanh (v) }>
        q = SequenceConstruct (y, a) }"""


def dtypes(model: ir.Model) -> list[ir.DataType | None]:
    values = [value for graph in walk.graphs(model) for value in (*graph.inputs, *graph.initializers.values())]
    return [value.dtype for value in (*values, *(v for node in walk.all_nodes(model) for v in node.outputs))]


def test_every_float_is_wide_and_the_original_stays() -> None:
    model = from_text(TEXT)
    before = dtypes(model)
    made = doubled(model)
    assert dtypes(model) == before
    assert not {ir.DataType.FLOAT, ir.DataType.FLOAT16} & set(dtypes(made))
    assert isinstance(made.graph.outputs[1].type, ir.SequenceType)
    assert made.graph.outputs[1].dtype == ir.DataType.DOUBLE
