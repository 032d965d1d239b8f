"""What a caller relies on besides the numbers: names, texts, metadata, declared shapes; one call is like another."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from onnxsmith.base.settings import Save
from onnxsmith.graph.files.save import save
from onnxsmith.optimizer.simplify import simplify
from tests.suites.agreement import assert_sound, read

TEXT = """<ir_version: 10, opset_import: ["": 20], producer_name: "p", producer_version: "1.2", domain: "d",
model_version: 7, doc_string: "of the model", metadata_props: ["licence": "MIT", "x": ""]>
g (float[batch,3] x, float[3] unused) => (float[batch,3] y, float[batch,3] z, float[batch,3] also)
<float[3] w = {1, 2, 3}, float one = {1}, float[batch,3] a> {
    [first] a = Identity(x)
    [second] b = Mul(a, one)
    [third] y = Add(b, w)
    [fourth] c = Dropout(b)
    [fifth] z = Tanh(c)
    [sixth] also = Exp(c)
}"""


def described() -> onnx.ModelProto:
    """A model with every text that the format has room for."""
    model: onnx.ModelProto = ir.to_proto(read(TEXT))
    graph = model.graph
    graph.doc_string = "of the graph"
    graph.metadata_props.add(key="graph", value="props")
    for number, value in enumerate((*graph.input, *graph.output)):
        value.doc_string = f"of {value.name}"
        value.metadata_props.add(key="number", value=str(number))
        value.type.denotation = "TENSOR"
        value.type.tensor_type.shape.dim[0].denotation = "DATA_BATCH"
    for node in graph.node:
        node.doc_string = f"of {node.name}"
        node.metadata_props.add(key="from", value=node.name)
    for tensor in graph.initializer:
        tensor.doc_string = f"of {tensor.name}"
        tensor.metadata_props.add(key="of", value=tensor.name)
    annotation = graph.quantization_annotation.add(tensor_name="w")
    annotation.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="one")
    return model


def simple(model: onnx.ModelProto) -> onnx.ModelProto:
    result = simplify(model, verify=False).model
    assert result is not None
    proto: onnx.ModelProto = ir.to_proto(result)
    assert_sound(model, proto)
    return proto


KEPT: dict[str, Callable[[onnx.ModelProto], object]] = {
    "versions": lambda m: (m.ir_version, list(m.opset_import), m.model_version),
    "producer": lambda m: (m.producer_name, m.producer_version, m.domain),
    "texts": lambda m: (m.doc_string, m.graph.doc_string, m.graph.name),
    "metadata": lambda m: (list(m.metadata_props), list(m.graph.metadata_props)),
    "inputs": lambda m: list(m.graph.input),
    "outputs": lambda m: list(m.graph.output),
    "descriptions of what is left of the nodes": lambda m: [
        (n.name, n.doc_string, list(n.metadata_props)) for n in m.graph.node if n.name in ("third", "fifth", "sixth")
    ],
    "weights": lambda m: [t for t in m.graph.initializer if t.name == "w"],
    "quantisation": lambda m: list(m.graph.quantization_annotation),
}


@pytest.mark.parametrize("what", KEPT)
def test_kept(what: str) -> None:
    before = described()
    after = simple(before)
    assert KEPT[what](after) == KEPT[what](before)
    assert len(after.graph.node) < len(before.graph.node)


def test_training_is_not_dropped_without_a_word() -> None:
    model = described()
    model.training_info.add().algorithm.name = "steps"
    assert "left out: training information" in simplify(model, verify=False).report.headline


def test_configurations_of_devices_are_kept() -> None:
    model = described()
    model.ir_version = 11
    model.configuration.add(name="two", num_devices=2)
    held = model.graph.node[4].device_configurations.add(configuration_id="two")
    held.sharding_spec.add(tensor_name="z", device=[0, 1])
    after = simple(model)
    assert list(after.configuration) == list(model.configuration)
    kept = next(node for node in after.graph.node if node.name == "fifth")
    assert list(kept.device_configurations) == [held]


SHAPES = ("", "[3]", "[n]", "[n,3]", "[?]", "[batch,seq,64]")


@pytest.mark.parametrize(("given", "made"), list(itertools.product(SHAPES, SHAPES)))
def test_declared_shapes_of_ports_are_kept(given: str, made: str) -> None:
    """Whatever they say; outputs' may be false."""
    simple(ir.to_proto(read(f"(float{given} x) => (float{made} y) {{ a = Identity(x)\n b = Abs(a)\n y = Neg(b) }}")))


def test_a_shape_that_was_not_declared_stays_so() -> None:
    after = simple(ir.to_proto(read("(float[2,3] x) => (float[?,?] y) { a = Transpose(x)\n b = Exp(a)\n y = Exp(b) }")))
    assert not after.graph.value_info


MODELS = {
    "folds": "(float[2] x) => (float[2] y) <float[2] w = {1, 4}> { a = Sqrt(w)\n y = Add(x, a) }",
    "reshapes": "(float[n,2,3] x) => (float[n,6] y) <int64[1] z = {0}, int64[1] l = {6}> { s = Shape(x)\n"
                " g = Gather(s, z)\n t = Concat<axis = 0>(g, l)\n y = Reshape(x, t) }",
    "broadcasts": "(float[a,3] x, float[b,3] z) => (float[c,3] y) { t = Add(x, z)\n s = Shape(t)\n"
                  " u = Expand(x, s)\n y = Neg(u) }",
    "branches": "(float[2] x) => (float[2] y) <bool c = {1}> { y = If(c) <then_branch = t () => (float[2] p) {"
                " p = Neg(x) }, else_branch = e () => (float[2] q) { q = Exp(x) }> }",
    "refuses": "(float[2] x, bool t) => (float[2] y) <float r = {0.5}> { a = Dropout(x, r, t)\n y = Neg(a) }",
}  # fmt: skip


def test_one_call_is_like_another(whole: bool) -> None:
    """Names that were made up, rules of the shape engine, whatever is cached: nothing adds up over calls."""
    first: dict[str, bytes] = {}
    for round_ in range(40 if whole else 8):
        for name, text in MODELS.items() if round_ % 2 else reversed(MODELS.items()):
            for opset in (17, 20):
                result = simplify(read(text, opset), verify=False)
                assert result.model is not None
                data = ir.to_proto(result.model).SerializeToString(deterministic=True)
                assert first.setdefault(f"{name} {opset}", data) == data


@pytest.mark.parametrize("name", MODELS)
def test_nothing_is_left_in_the_current_folder(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    save(read(MODELS[name]), tmp_path / "in.onnx")
    simplify(tmp_path / "in.onnx", tmp_path / "out.onnx", verify=False)
    assert not list((tmp_path / "work").iterdir())
    assert sorted(file.name for file in tmp_path.iterdir()) == ["in.onnx", "out.onnx", "work"]


def test_the_given_model_keeps_its_weights_and_names() -> None:
    model = read(MODELS["folds"])
    before = ir.to_proto(model).SerializeToString(deterministic=True)
    tensors = {name: value.const_value for name, value in model.graph.initializers.items()}
    result = simplify(model, verify=False)
    assert ir.to_proto(model).SerializeToString(deterministic=True) == before
    assert all(model.graph.initializers[name].const_value is tensor for name, tensor in tensors.items())
    assert result.model is not model


def test_the_result_does_not_depend_on_how_the_model_is_given(tmp_path: Path) -> None:
    """As text, as a graph, as a message, as a file, as a file with its weights outside."""
    weights = ", ".join(["0.5"] * 1024)
    text = f"""<ir_version: 10, opset_import: ["": 20]> g (float[n,32] x) => (float[n,32] y)
        <float[32,32] w = {{{weights}}}, float[32] b = {{{", ".join(["1"] * 32)}}}> {{
        t = Transpose(w)\n a = MatMul(x, t)\n c = Add(a, b)\n y = Identity(c) }}"""
    (tmp_path / "m.onnxtxt").write_text(text)
    save(read(text), tmp_path / "m.onnx")
    save(read(text), tmp_path / "e.onnx", external_data=True)
    found = set()
    for source in (read(text), ir.to_proto(read(text)), *(tmp_path / f for f in ("m.onnxtxt", "m.onnx", "e.onnx"))):
        result = simplify(source, tmp_path / "out.onnx", verify=False, save=Save(external_data=False))
        assert result.path is not None
        found.add(result.path.read_bytes())
    assert len(found) == 1
    assert np.all(onnx.numpy_helper.to_array(onnx.load(tmp_path / "out.onnx").graph.initializer[0]) > 0)
