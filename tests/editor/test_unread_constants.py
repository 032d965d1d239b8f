"""Constants that no node reads: removed and named, or kept; those of quantization annotations stay."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import onnxsmith
from onnxsmith.base.report.parts.edits import Edits


def model(path: Path, *, annotated: bool) -> Path:
    """Writes a Relu beside two initializers that it does not read."""
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [3]) for name in ("x", "y")]
    held = [numpy_helper.from_array(np.float32(2), name) for name in ("scale", "zero")]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", ports[:1], ports[1:], held)
    if annotated:
        one = graph.quantization_annotation.add()
        one.tensor_name = "y"
        for key, name in (("SCALE_TENSOR", "scale"), ("ZERO_POINT_TENSOR", "zero")):
            entry = one.quant_parameter_tensor_names.add()
            entry.key, entry.value = key, name
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9), path)
    return path


@pytest.mark.parametrize("keep", [False, True])
def test_an_unread_constant_is_removed_and_named_or_kept(keep: bool, tmp_path: Path) -> None:
    with onnxsmith.edit(model(tmp_path / "m.onnx", annotated=False), keep_unused=keep) as m:
        m.rename("x", "image")
    assert m.result is not None
    names = {one.name for one in onnx.load(tmp_path / "m.onnx").graph.initializer}
    assert names == ({"scale", "zero"} if keep else set())
    said = "removed 2 constants that nothing reads: scale, zero"
    assert (said in m.result.report.part(Edits).notes) is not keep


def test_what_an_annotation_names_stays_and_is_renamed_with_it(tmp_path: Path) -> None:
    with onnxsmith.edit(model(tmp_path / "m.onnx", annotated=True)) as m:
        m.rename("scale", "s")
    graph = onnx.load(tmp_path / "m.onnx").graph
    assert {one.name for one in graph.initializer} == {"s", "zero"}
    (one,) = graph.quantization_annotation
    assert {entry.key: entry.value for entry in one.quant_parameter_tensor_names} == {
        "SCALE_TENSOR": "s",
        "ZERO_POINT_TENSOR": "zero",
    }
