"""What is noted about a model before rules read it."""

from __future__ import annotations

from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.shapes import facts
from onnxsmith.graph.structure import walk


def test_a_body_has_the_model_s_opsets_whatever_an_exporter_noted_there() -> None:
    model = from_text(
        """<ir_version: 10, opset_import: ["": 20]>
        g (float[2] x, bool c) => (float[2] y) {
            y = If (c) <then_branch = a () => (float[2] p) { p = Neg(x) },
                        else_branch = b () => (float[2] q) { q = Abs(x) }>
        }"""
    )
    first, second = walk.nested(model.graph)
    first.opset_imports[""] = 1
    facts.spread_opsets(model)
    assert [facts.opset(body[0]) for body in (first, second)] == [20, 20]


def test_a_short_tensor_of_a_file_is_decoded_once() -> None:
    model = from_text(
        '<ir_version: 10, opset_import: ["": 20]> g (float[2] x) => (float[2] y) <float[2] w = {1, 4}> '
        "{ y = Add(x, w) }"
    )
    weight = model.graph.initializers["w"]
    first = facts.constant(weight)
    assert first is not None
    assert first.tolist() == [1, 4]
    assert facts.constant(weight) is first
