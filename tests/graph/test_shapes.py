"""Shapes that follow from the inputs; a failure of the engine is a note."""

from __future__ import annotations

import logging

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import helper

from onnxsmith.graph.files.load import load
from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.shapes.symbolic_inference import inferred
from onnxsmith.runtimes import base as runtimes
from onnxsmith.runtimes.base import Options

HEAD = '<ir_version: 10, opset_import: ["": 20]>\n'


def shape(model: ir.Model, name: str) -> list[int | str | None] | None:
    found = next(value for node in model.graph for value in node.outputs if value.name == name)
    return None if found.shape is None else [d if isinstance(d, int) else d.value for d in found.shape]


def test_shapes_follow_from_the_inputs() -> None:
    model, note = inferred(from_text(HEAD + "g (float[n,3] x) => (float y) { t = Transpose(x)\n y = ReduceSum(t) }"))
    assert shape(model, "t") == [3, "n"]
    assert note is None


def test_the_given_model_is_not_changed() -> None:
    model = from_text(HEAD + "g (float[n,3] x) => (float y) { t = Transpose(x)\n y = ReduceSum(t) }")
    inferred(model)
    assert shape(model, "t") is None


@pytest.mark.parametrize("nameless", ["?", "-1", -1])
def test_dimensions_that_name_nothing_do_not_become_sizes(nameless: int | str) -> None:
    value = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [nameless, 3])
    middle = helper.make_tensor_value_info("t", onnx.TensorProto.FLOAT, [nameless, 3])
    nodes = [helper.make_node("Abs", ["x"], ["t"]), helper.make_node("Concat", ["t", "t"], ["y"], axis=0)]
    graph = helper.make_graph(nodes, "g", [value], [helper.make_value_info("y", onnx.TypeProto())], value_info=[middle])
    model, note = inferred(load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)))
    assert note is None
    found = shape(model, "y")
    assert found is not None
    assert found[1] == 3
    assert not isinstance(found[0], int)


def test_a_failure_of_the_engine_is_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> None:
        raise RecursionError("too deep")

    monkeypatch.setattr("onnxsmith.base.seams.shape_engine.walk", fails)
    given = from_text(HEAD + "g (float[n] x) => (float[n] y) { y = Abs(x) }")
    model, note = inferred(given)
    assert note == "only some shapes are known: RecursionError: too deep"
    assert model is not given


def test_the_engine_is_quiet_and_its_log_level_is_given_back(caplog: pytest.LogCaptureFixture) -> None:
    log = logging.getLogger("onnx_shape_inference")
    before = log.level
    inferred(from_text(HEAD + "g (float[n] x) => (float[n] y) { y = other.Op(x) }"))
    assert log.level == before
    assert not [record for record in caplog.records if record.name.startswith("onnx_shape_inference")]


@pytest.mark.parametrize(
    ("data", "indices", "wanted"),
    [("3", "n,1", [1, "n"]), ("3", "2", [1, 2]), ("b,3", "2,2", ["b", 4]), ("b,3", "1", ["b", 1])],
)
def test_extracted_features_are_columns(data: str, indices: str, wanted: list[int | str]) -> None:
    model = from_text(
        '<ir_version: 10, opset_import: ["": 20, "ai.onnx.ml": 3]> '
        f"g (float[{data}] x, int64[{indices}] i) => (float y) "
        "{ t = ai.onnx.ml.ArrayFeatureExtractor(x, i) y = ReduceSum(t) }"
    )
    assert shape(inferred(model)[0], "t") == wanted


REGRESSORS = {
    "LinearRegressor<coefficients = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0], targets = 2>": 2,
    "LinearRegressor<coefficients = [1.0, 2.0, 3.0, 4.0]>": 1,
    "FeatureVectorizer<inputdimensions = [4]>": 4,
    "TreeEnsembleRegressor<n_targets = 2, nodes_treeids = [0], nodes_nodeids = [0], nodes_featureids = [0], "
    'nodes_modes = ["LEAF"], nodes_values = [0.0], nodes_truenodeids = [0], nodes_falsenodeids = [0], '
    "target_treeids = [0], target_nodeids = [0], target_ids = [0], target_weights = [1.5]>": 2,
}


@pytest.mark.parametrize("operator", REGRESSORS)
def test_columns_of_machine_learning(operator: str) -> None:
    """The shape that is inferred is the one that onnxruntime gives."""
    model = from_text(
        '<ir_version: 10, opset_import: ["": 20, "ai.onnx.ml": 3]> '
        f"g (float[N,4] x) => (float[A,B] y) {{ t = ai.onnx.ml.{operator}(x) y = Identity(t) }}"
    )
    assert shape(inferred(model)[0], "t") == ["N", REGRESSORS[operator]]
    with runtimes.get("onnxruntime").prepare(model, Options()) as session:
        assert session.run({"x": np.ones((3, 4), np.float32)})["y"].shape == (3, REGRESSORS[operator])


def test_rows_of_a_classifier() -> None:
    model = from_text(
        '<ir_version: 10, opset_import: ["": 20, "ai.onnx.ml": 3]> '
        "g (float[N,4] x) => (int64[A] m, float[B,C] u) { l, t = ai.onnx.ml.TreeEnsembleClassifier"
        "<classlabels_int64s = [3, 5, 7], nodes_treeids = [0], nodes_nodeids = [0], nodes_featureids = [0], "
        'nodes_modes = ["LEAF"], nodes_values = [0.0], nodes_truenodeids = [0], nodes_falsenodeids = [0], '
        "class_treeids = [0], class_nodeids = [0], class_ids = [1], class_weights = [1.5]>(x) "
        "m = Identity(l) u = Identity(t) }"
    )
    known = inferred(model)[0]
    assert (shape(known, "l"), shape(known, "t")) == (["N"], ["N", 3])
    with runtimes.get("onnxruntime").prepare(model, Options()) as session:
        outputs = session.run({"x": np.ones((2, 4), np.float32)})
    assert (outputs["m"].shape, outputs["u"].shape) == ((2,), (2, 3))


OLD_FORMS = {
    "Slice <axes=[2], starts=[1], ends=[-1]> (x)": ["n", 3, 2, 5],
    "Slice <starts=[0, 1], ends=[9223372036854775807, 2]> (x)": ["n", 1, 4, 5],
    "Upsample <scales=[1.0, 1.0, 2.0, 2.5]> (x)": ["n", 3, 8, 12],
    "TopK <k=2> (x)": ["n", 3, 4, 2],
    "Pad <pads=[0, 0, 0, 1, 0, 0, 0, 2]> (x)": ["n", 3, 4, 8],
    "Squeeze <axes=[1]> (one)": ["n", 4],
    "ReduceSum <axes=[1], keepdims=0> (x)": ["n", 4, 5],
}
"""Operators as opset 7 has them, with attributes that are operands today, and the shapes of their results."""


@pytest.mark.parametrize("operator", OLD_FORMS)
def test_forms_of_old_opsets_have_shapes(operator: str) -> None:
    second = ", i" if operator.startswith("TopK") else ""
    text = f"g (float[n,3,4,5] x, float[n,1,4] one) => (int64[r] y) {{ t{second} = {operator}\n y = Shape(t) }}"
    model, note = inferred(from_text('<ir_version: 4, opset_import: ["": 7]>\n' + text))
    assert note is None
    assert shape(model, "t") == OLD_FORMS[operator]


@pytest.mark.parametrize(("since", "operator"), [(6, "Add <broadcast=1, axis=1> (x, c)"), (6, "Sum (x, x)")])
def test_operators_without_a_rule_of_the_engine_are_inferred_by_the_standard(since: int, operator: str) -> None:
    text = f"g (float[n,3,4] x, float[3] c) => (int64[r] y) {{ t = {operator}\n y = Shape(t) }}"
    model, _ = inferred(from_text(f'<ir_version: 4, opset_import: ["": {since}]>\n' + text))
    assert shape(model, "t") == ["n", 3, 4]
