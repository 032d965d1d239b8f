"""Files whose nodes are out of order, as some converters write them and onnxruntime runs them."""

from __future__ import annotations

from pathlib import Path

import onnx
from onnx import TensorProto, helper

import onnxsmith


def test_a_file_out_of_order_is_sorted_and_compared(tmp_path: Path) -> None:
    nodes = [helper.make_node("Relu", ["n"], ["y"]), helper.make_node("Neg", ["x"], ["n"])]
    ports = [[helper.make_tensor_value_info(name, TensorProto.FLOAT, [3])] for name in "xy"]
    for name, order in (("odd", nodes), ("plain", nodes[::-1])):
        graph = helper.make_graph(order, "g", *ports)
        made = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 20)])
        onnx.save(made, tmp_path / f"{name}.onnx")
    result = onnxsmith.compare(tmp_path / "plain.onnx", tmp_path / "odd.onnx")
    assert result.ok
    assert any("were sorted" in note for note in result.report.parts[0].notes)  # type: ignore[attr-defined]
