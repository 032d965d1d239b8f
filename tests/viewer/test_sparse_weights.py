"""Sparse tensors in the page."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from onnxsmith.viewer.view import view
from tests.viewer.test_view import scene_in


def test_a_sparse_tensor_says_what_it_stores(tmp_path: Path) -> None:
    values = numpy_helper.from_array(np.array([1, 2, 3], np.float32), "w")
    places = numpy_helper.from_array(np.array([0, 5, 11], np.int64), "w_indices")
    graph = helper.make_graph(
        [helper.make_node("Add", ["x", "w"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [3, 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [3, 4])],
        sparse_initializer=[helper.make_sparse_tensor(values, places, [3, 4])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    onnx.save(model, tmp_path / "m.onnx")
    (found,) = scene_in(view(tmp_path / "m.onnx").page)["models"][0]["constants"].values()
    assert (found["form"], found["bytes"]) == ("sparse, 3 of 12 values", 3 * 4 + 3 * 8)
