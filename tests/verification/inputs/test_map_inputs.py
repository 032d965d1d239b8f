"""Maps as inputs and outputs: made, given, run, and held to each other key by key."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import onnxsmith
from onnxsmith.graph.files.load import load
from onnxsmith.runtimes._maps import of_map
from onnxsmith.verification.inputs.generate import Generator
from tests.conftest import Refused

_DTYPES = {"string": TensorProto.STRING, "int64": TensorProto.INT64, "float": TensorProto.FLOAT}


def vectorizer(folder: Path, keys: str = "string", held: str = "float") -> Path:
    vocabulary = {"string_vocabulary": ["a", "b", "c"]} if keys == "string" else {"int64_vocabulary": [3, 5, 8]}
    node = helper.make_node("DictVectorizer", ["x"], ["y"], domain="ai.onnx.ml", **vocabulary)
    pair = helper.make_map_type_proto(_DTYPES[keys], helper.make_tensor_type_proto(_DTYPES[held], None))
    output = helper.make_tensor_value_info("y", _DTYPES[held], [1, 3])
    return written(folder / "vectorizer.onnx", node, helper.make_value_info("x", pair), output)


def zip_map(folder: Path, name: str, labels: list[str]) -> Path:
    node = helper.make_node("ZipMap", ["x"], ["z"], domain="ai.onnx.ml", classlabels_strings=labels)
    pair = helper.make_map_type_proto(TensorProto.STRING, helper.make_tensor_type_proto(TensorProto.FLOAT, None))
    output = helper.make_value_info("z", helper.make_sequence_type_proto(pair))
    return written(folder / name, node, helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3]), output)


def written(path: Path, node: onnx.NodeProto, given: onnx.ValueInfoProto, made: onnx.ValueInfoProto) -> Path:
    graph = helper.make_graph([node], "g", [given], [made])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    return path


@pytest.mark.parametrize(("keys", "held"), [("string", "float"), ("string", "int64"), ("int64", "float")])
def test_a_map_has_keys_that_the_graph_knows(tmp_path: Path, keys: str, held: str) -> None:
    path = vectorizer(tmp_path, keys, held)
    made = Generator.for_model(load(path))
    assert str(made.signature.inputs[0]) == f"map({keys}, {held})"
    names, values = made.feed({}).values["x"]
    assert set(names.tolist()) <= ({"a", "b", "c"} if keys == "string" else {3, 5, 8})
    assert len(names) == len(values) > 0
    if held == "float":  # onnxruntime makes maps of floats only from what Python gives it
        assert onnxsmith.compare(path, path, thorough=True).ok


def test_a_dictionary_is_taken(tmp_path: Path) -> None:
    path = vectorizer(tmp_path)
    found = onnxsmith.run(path, {"x": {"b": 2.0, "a": 1.5}}).outputs["y"]
    np.testing.assert_array_equal(found, [[1.5, 2.0, 0.0]])


def test_what_is_no_map_is_refused(tmp_path: Path, refused: Refused) -> None:
    with refused("run/not-an-array"):
        onnxsmith.run(vectorizer(tmp_path), {"x": np.zeros(3, np.float32)})


def test_other_keys_are_a_difference(tmp_path: Path) -> None:
    right = zip_map(tmp_path, "right.onnx", ["a", "b", "c"])
    assert onnxsmith.compare(right, right, thorough=True).ok
    assert not onnxsmith.compare(right, zip_map(tmp_path, "wrong.onnx", ["a", "b", "d"])).ok
    assert not onnxsmith.compare(right, zip_map(tmp_path, "swapped.onnx", ["b", "a", "c"])).ok


def test_the_order_of_keys_is_none(tmp_path: Path) -> None:
    path = zip_map(tmp_path, "model.onnx", ["c", "a", "b"])
    x = np.array([[1, 2, 3]], np.float32)
    (found,) = onnxsmith.run(path, {"x": x}).outputs["z"]
    assert [part.tolist() for part in found] == [["a", "b", "c"], [2, 3, 1]]
    assert [part.tolist() for part in of_map({"c": 1.0, "a": 2.0})] == [["a", "c"], [2, 1]]


def test_the_reference_evaluator_takes_maps(tmp_path: Path) -> None:
    found = onnxsmith.run(vectorizer(tmp_path), {"x": {"b": 2.0}}, runtime="reference").outputs["y"]
    np.testing.assert_array_equal(np.ravel(found), [0.0, 2.0, 0.0])


def test_it_is_simplified_and_dumped(tmp_path: Path) -> None:
    path = vectorizer(tmp_path)
    assert onnxsmith.simplify(path, tmp_path / "out.onnx").ok
    assert onnxsmith.dump(path).ok
