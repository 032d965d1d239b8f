"""The specification's own checks, with external data where it is, and doubts told apart from errors."""

from __future__ import annotations

import shlex
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import parser

import onnxsmith
from onnxsmith.graph.files.load import load
from onnxsmith.graph.files.save import save
from onnxsmith.graph.files.specification_check import check
from onnxsmith.graph.files.text import from_text
from tests.conftest import Refused

HEAD = '<ir_version: 10, opset_import: ["": 20]>\n'


def test_a_valid_model_has_no_doubts() -> None:
    assert check(from_text(HEAD + "g (float[n] x) => (float[n] y) { y = Abs(x) }")) == ()


@pytest.mark.parametrize(
    ("nodes", "said"),
    [
        ("y = Nonsense(x)", "Nonsense"),
        ("y = Add(x)", "Add"),
        ("y = Abs(x)\n z = LeakyRelu<alpha = 1>(x)", "alpha"),
        ("y = other.domain.Op(x)", "other.domain"),
    ],
)
def test_an_invalid_model_is_refused_with_the_reason(nodes: str, said: str, refused: Refused) -> None:
    with refused("model/invalid") as refusal:
        check(from_text(f"{HEAD}g (float[n] x) => (float[n] y) {{ {nodes} }}"), where="m.onnx")
    assert said in refusal.problem.why
    assert refusal.problem.where == "m.onnx"


def test_shapes_that_contradict_each_other_are_a_doubt() -> None:
    (doubt,) = check(from_text(HEAD + "g (float[2,3] x) => (float[7] y) { y = Transpose(x) }"), where="m.onnx")
    assert (doubt.id, doubt.where) == ("model/shape-conflict", "m.onnx, Transpose -> y")
    assert doubt.why.startswith("the operator computes 2 dimensions, but the file declares 1. ")


@pytest.mark.parametrize(
    ("text", "where", "why"),
    [
        ("g (float[2,4] x) => (float[2,3] y) { a = Relu(x) [neg] y = Neg(a) }", "Neg neg", "computes 4 in dimension 1"),
        (
            "g (float[2,4] x) => (int64[2,4] y) { y = Neg(x) }",
            "Neg -> y",
            "computes float, but the file declares int64",
        ),
        (
            "g (float[2,4] x) => (float[2,4] y) <float[3] w = {1,2,3}> { y = Add(x, w) }",
            "the weight w",
            "the operands of Add -> y do not",
        ),
        (
            (
                "g (float[2] x, bool c) => (float[2] y) { y = If(c) <"
                "then_branch = t () => (float[2] u) { u = Neg(x) }, "
                "else_branch = e () => (float[3] v) { v = Abs(x) }> }"
            ),
            "Abs -> v",
            "computes 2 in dimension 0",
        ),
        (
            "g (float[2,4] x, int64[2] to) => (float[3,4] y) <int64[2] s = {2,4}> { a = Neg(x) y = Reshape(a, s) }",
            "Reshape -> y",
            "computes 2 in dimension 0, but the file declares 3",
        ),
    ],
)
def test_a_conflict_names_the_node_and_both_sides(text: str, where: str, why: str) -> None:
    (doubt,) = check(from_text(HEAD + text), where="m.onnx")
    assert doubt.where == f"m.onnx, {where}"
    assert why in doubt.why
    assert "InferenceError" in doubt.why  # the words that a search finds


def test_checking_changes_nothing() -> None:
    model = from_text(HEAD + "g (float[n] x) => (float[n] y) { y = Abs(x) }")
    model.graph.register_initializer(ir.Value(name="w", const_value=ir.Tensor(np.zeros(500), name="w")))
    before = ir.to_proto(model).SerializeToString()
    check(model)
    assert ir.to_proto(model).SerializeToString() == before


@pytest.mark.parametrize("size", [3, 5000])
@pytest.mark.parametrize("constant", [False, True])
def test_external_data_is_not_looked_for_in_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, constant: bool
) -> None:
    proto = parser.parse_model(HEAD + "g (double[n] x) => (double[n] y) { y = Add(x, w) }")
    tensor = onnx.TensorProto(name="w", data_type=11, dims=[size], data_location=1)
    tensor.external_data.add(key="location", value="w.data")
    if constant:
        proto.graph.node.insert(0, onnx.NodeProto(op_type="Constant", output=["w"]))
        proto.graph.node[0].attribute.add(name="value", type=onnx.AttributeProto.TENSOR).t.CopyFrom(tensor)
    else:
        proto.graph.initializer.append(tensor)
    np.zeros(size).tofile(tmp_path / "w.data")
    (tmp_path / "m.onnx").write_bytes(proto.SerializeToString())
    monkeypatch.chdir("/")
    assert check(load(tmp_path / "m.onnx")) == ()


def test_a_model_with_large_weights_is_checked_without_them(tmp_path: Path) -> None:
    with (tmp_path / "w.data").open("wb") as data:
        data.truncate(3 * 2**30)
    model = from_text(HEAD + "g (float[n] x) => (float[n] y) { y = Abs(x) }")
    elements = 3 * 2**28
    tensor = ir.ExternalTensor(
        "w.data", 0, 4 * elements, ir.DataType.FLOAT, shape=ir.Shape([elements]), name="w", base_dir=tmp_path
    )
    model.graph.register_initializer(ir.Value(name="w", const_value=tensor))
    assert check(model) == ()


def test_a_saved_model_is_as_valid_as_before(tmp_path: Path) -> None:
    model = from_text(HEAD + "g (float[n] x) => (float[n] y) { y = Abs(x) }")
    save(model, tmp_path / "m.onnx")
    onnx.checker.check_model(str(tmp_path / "m.onnx"), full_check=True)


def test_a_valid_model_is_checked_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    model = from_text(HEAD + "g (float[n] x) => (float[n] y) { y = Abs(x) }")
    save(model, path)
    asked: list[bool] = []
    whole = onnx.checker.check_model

    def counted(given: object, full_check: bool = False) -> None:
        asked.append(full_check)
        whole(given, full_check=full_check)

    monkeypatch.setattr(onnx.checker, "check_model", counted)
    assert check(model, file=path) == ()
    assert asked == [True]


NEWER = """<ir_version: 8, opset_import: ["": 17]>
g (float[1,4,3] x) => (float[1,4,3] y) <float[2] s = {0.5, 2}, float[2] b = {1, -1}> {
    a = LayerNormalization(x, w)  c = OPERATOR  d = Softmax<axis = 1>(c)  y = If<then_branch = t () => (float[1,4,3] u)
    { u = Mish(d) }, else_branch = e () => (float[1,4,3] v) { v = Neg(d) }>(k) }
""".replace("float[2] s", "float[3] w = {1, 2, 3}, bool k = {1}, float[2] s")


@pytest.mark.parametrize("operator", ["GroupNormalization<num_groups = 2>(a, s, b)", "Gelu(a)"])
def test_a_newer_operator_than_the_opset_names_the_opset_to_declare(
    operator: str, refused: Refused, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    opset, name = (20, "Gelu") if "Gelu" in operator else (18, "GroupNormalization")
    model = from_text(NEWER.replace("OPERATOR", operator))
    onnx.save(ir.to_proto(model), "m.onnx")
    with refused("model/invalid") as refusal:
        check(load("m.onnx"), where="m.onnx")
    exist = f"{name} exists since opset {opset}, Mish exists since opset 18"
    assert refusal.problem.why.endswith(f". The file declares opset 17, but {exist}")
    assert refusal.problem.fix.startswith(f"declare opset {opset}: ")
    exec(shlex.split(refusal.problem.fix.split("`")[1])[2])
    assert onnx.load("m.onnx").opset_import[0].version == 17, "the given file stays as it was"
    assert onnx.load("m-fixed.onnx").opset_import[0].version == opset
    onnxsmith.run("m-fixed.onnx", random=True)


def test_a_newer_operator_beside_one_that_is_gone_has_no_opset_to_declare(refused: Refused) -> None:
    text = '<ir_version: 8, opset_import: ["": 12]> g (float[2,3] x) => (float[2] y) '
    with refused("model/invalid") as refusal:
        check(from_text(text + "{ a = HardSwish(x)  y = ReduceSum<axes = [1], keepdims = 0>(a) }"))
    assert "HardSwish exists since opset 14" in refusal.problem.why
    assert refusal.problem.fix == "export it again at opset 14 or newer"


ODD = {
    "axes of opset 12": (
        "g (float[n,1,4] x) => (float[n] y) { a = Squeeze<axes = [1]>(x) y = ReduceSum<axes = [1], keepdims = 0>(a) }",
        "Squeeze has the attribute axes up to opset 12, ReduceSum has the attribute axes up to opset 12",
        "declare opset 12: ",
        12,
    ),
    "a default of opset 14": (
        "g (float[2,3,4] x) => (float[2,12] y) <int64[2] s = {2, -1}> { y = Reshape<allowzero = 0>(x, s) }",
        "Reshape has the attribute allowzero since opset 14",
        "remove the attribute, which has its default value: ",
        13,
    ),
    "a value of opset 14": (
        "g (float[2,3,4] x) => (float[2,12] y) <int64[2] s = {2, -1}> { y = Reshape<allowzero = 1>(x, s) }",
        "Reshape has the attribute allowzero since opset 14",
        "declare opset 14: ",
        14,
    ),
}


@pytest.mark.parametrize("name", ODD)
def test_an_attribute_of_another_opset_names_the_opset_or_goes(
    name: str, refused: Refused, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, has, fix, opset = ODD[name]
    monkeypatch.chdir(tmp_path)
    onnx.save(onnx.parser.parse_model(f'<ir_version: 7, opset_import: ["": 13]> {text}'), "m.onnx")
    with refused("model/invalid") as refusal:
        check(load("m.onnx"), where="m.onnx")
    assert refusal.problem.why.endswith(f". The file declares opset 13, but {has}")
    assert refusal.problem.fix.startswith(fix)
    exec(shlex.split(refusal.problem.fix.split("`")[1])[2])
    assert check(load("m-fixed.onnx"), where="m-fixed.onnx") == ()
    assert onnx.load("m-fixed.onnx").opset_import[0].version == opset
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4) if "Reshape" in text else np.ones((2, 1, 4), np.float32)
    expected = x.reshape(2, 12) if "Reshape" in text else x.sum((1, 2))
    np.testing.assert_array_equal(onnxsmith.run("m-fixed.onnx", {"x": x}).outputs["y"], expected)


def test_a_default_that_changes_the_numbers_stays(refused: Refused) -> None:
    text = """<ir_version: 7, opset_import: ["": 13]>
    g (float[1,2,8,8] x, float[1,4] r, int64[1] b) => (float[1,2,1,1] y) {
        y = RoiAlign<coordinate_transformation_mode = "half_pixel">(x, r, b) }"""
    with refused("model/invalid") as refusal:
        check(from_text(text))
    assert refusal.problem.fix.startswith("declare opset 16: ")


def test_attributes_that_no_opset_has_together_are_to_be_exported_again(refused: Refused) -> None:
    text = """<ir_version: 7, opset_import: ["": 13]> g (float[2,3] x) => (float[2] y) <int64[2] s = {2, -1}> {
        a = Reshape<allowzero = 1>(x, s) y = ReduceSum<axes = [1], keepdims = 0>(a) }"""
    with refused("model/invalid") as refusal:
        check(from_text(text))
    assert refusal.problem.fix == "export it again: no opset has all these attributes"
