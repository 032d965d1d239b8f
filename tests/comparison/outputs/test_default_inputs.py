"""Inputs with a default value are optional: the weights of a file with an IR version below 4 are also graph inputs."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import onnxsmith
from onnxsmith.base.report.parts.layers import Layers
from onnxsmith.base.report.parts.verification import Verification
from onnxsmith.base.report.verdict import Verdict


def model(
    *, old: bool, prefix: str = "", factor: float = 1.0, alpha: float = 0.1, name: str = "x", version: int = 3
) -> onnx.ModelProto:
    """Two layers, as an old exporter writes them or with weights that are no inputs."""
    rng = np.random.default_rng(0)
    arrays = {"w": rng.standard_normal((8, 8)), "b": rng.standard_normal(8), "v": rng.standard_normal((8, 4)) * factor}
    tensors = [numpy_helper.from_array(one.astype(np.float32), prefix + key) for key, one in arrays.items()]
    nodes = [
        helper.make_node("MatMul", [name, f"{prefix}w"], ["m"], name="first"),
        helper.make_node("Add", ["m", f"{prefix}b"], ["a"], name="bias"),
        helper.make_node("LeakyRelu", ["a"], ["l"], name="act", alpha=alpha),
        helper.make_node("MatMul", ["l", f"{prefix}v"], ["y"], name="second"),
    ]
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 8])]
    if old:
        ports += [helper.make_tensor_value_info(one.name, one.data_type, one.dims) for one in tensors]
    result = [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 4])]
    graph = helper.make_graph(nodes, "g", ports, result, tensors)
    return helper.make_model(graph, ir_version=version if old else 8, opset_imports=[helper.make_opsetid("", 13)])


@pytest.mark.parametrize("prefix", ["", "renamed_"])
@pytest.mark.parametrize("sides", [(True, False), (False, True), (True, True)])
def test_a_file_of_an_old_exporter_agrees(sides: tuple[bool, bool], prefix: str) -> None:
    ours, theirs = model(old=sides[0]), model(old=sides[1], prefix=prefix)
    result = onnxsmith.compare(ours, theirs, per_layer=True)
    assert result.report.verdict is Verdict.DONE
    layers = result.report.part(Layers)
    assert layers.culprits == ()
    assert layers.share == 1.0
    told = [note for note in result.report.part(Verification).notes if "kept their default values" in note]
    kept_by_both = sides == (True, True) and not prefix
    assert len(told) == (0 if kept_by_both else sum(sides))
    assert all("3 optional inputs" in note for note in told)


def test_the_input_that_is_needed_may_have_another_name() -> None:
    result = onnxsmith.compare(model(old=True), model(old=True, name="data"))
    assert result.ok
    assert any("paired by position: x=data" in note for note in result.report.part(Verification).notes)


@pytest.mark.parametrize("old", [False, True])
def test_a_fault_is_found_beside_such_a_file(old: bool) -> None:
    result = onnxsmith.compare(model(old=True), model(old=old, alpha=0.2), per_layer=True)
    layers = result.report.part(Layers)
    assert layers.layer(layers.culprits[0]).steps[0] == "act"
    assert layers.cause is not None
    assert layers.cause.agrees


def test_a_weight_is_a_weight_of_both() -> None:
    result = onnxsmith.compare(model(old=True), model(old=False, factor=1.01), per_layer=True)
    layers = result.report.part(Layers)
    assert layers.layer(layers.culprits[0]).steps[0] == "second"
    assert layers.cause is not None
    assert layers.cause.agrees


def test_a_default_that_both_have_may_be_given() -> None:
    """onnxruntime takes no value in place of a default before IR version 4."""
    rng = np.random.default_rng(1)
    given = {"x": rng.standard_normal((2, 8)).astype(np.float32), "v": np.zeros((8, 4), np.float32)}
    wrong = model(old=True, factor=2.0, version=8)
    assert onnxsmith.compare(model(old=True, version=8), wrong, inputs=given, generate=False).report.verdict is not (
        Verdict.DIFFERENT
    ), "the factor is in the default, in whose place another value was given"
    assert onnxsmith.compare(model(old=True, version=8), wrong).report.verdict is Verdict.DIFFERENT


def test_a_default_that_one_side_lacks_cannot_be_given() -> None:
    given = {"x": np.zeros((2, 8), np.float32), "v": np.zeros((8, 4), np.float32)}
    with pytest.raises(onnxsmith.OnnxsmithError) as caught:
        onnxsmith.compare(model(old=True), model(old=False), inputs=given, generate=False)
    assert "v" in caught.value.problem.what


def test_an_input_that_one_side_requires_gets_a_value() -> None:
    required = model(old=True, version=8)
    kept = [one for one in required.graph.initializer if one.name != "v"]
    del required.graph.initializer[:]
    required.graph.initializer.extend(kept)
    assert onnxsmith.compare(model(old=True, version=8), required).ok
    assert onnxsmith.compare(required, model(old=True, version=8)).ok
