"""A copy is the caller's to change."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.shapes.symbolic_inference import inferred
from onnxsmith.graph.structure.model_copy import cloned
from onnxsmith.optimizer.simplification_rounds import simplified

TEXT = """
<ir_version: 10, opset_import: ["": 20]>
g (float[2] x) => (float[2] y) <float[2] w = {3, 4}> {
    c = Constant<value = float[2] named {1, 2}>()
    a = Add(x, c)
    y = Add(a, w)
}
"""


def test_renaming_in_a_copy_leaves_the_original() -> None:
    model = from_text(TEXT)
    before = ir.to_proto(model).SerializeToString()
    copy = cloned(model)
    copy.graph.initializers["w"].name = "renamed"
    copy.graph.node(0).attributes["value"].as_tensor().name = "renamed too"
    assert ir.to_proto(model).SerializeToString() == before


def test_large_values_are_shared() -> None:
    model = from_text(TEXT)
    model.graph.initializers["w"].const_value = ir.tensor(np.zeros(10_000, np.float32), name="w")
    a, b = model.graph.initializers["w"].const_value, cloned(model).graph.initializers["w"].const_value
    assert a is not None
    assert b is not None
    assert a is not b
    assert np.shares_memory(a.numpy(), b.numpy())


def test_no_verb_changes_what_it_is_given() -> None:
    model = from_text(TEXT)
    before = ir.to_proto(model).SerializeToString()
    inferred(model)
    simplified(model)
    assert ir.to_proto(model).SerializeToString() == before
