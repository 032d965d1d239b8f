"""Operands that do not fit: the node or input that gives the wrong shape is named, not the node at which they meet."""

from __future__ import annotations

from pathlib import Path

import pytest

import onnxsmith
from onnxsmith.base.report.parts.target_checks import TargetChecks
from onnxsmith.graph.files.operand_clashes import blamed
from onnxsmith.graph.files.save import save
from onnxsmith.graph.files.text import from_text

HEAD = '<ir_version: 8, opset_import: ["": 17]>\n'
ADD = "g (float[2,3] x, float[2,4] z) => (float[2,3] y) { a = Relu(x)\n b = Relu(z)\n y = Add(a, b) }"
CONV = (
    "g (float[1,1,8,8] x, float[1,1,3,3] w) => (float[1,1,8,8] y) { a = Conv<pads = [1, 1, 1, 1]>(x, w)\n r = Relu(a)\n"
    "c = Conv<pads = [0, 0, 0, 0]>(r, w)\n t = Tanh(c)\n y = Add(r, t) }"
)
CASES = {
    ADD: ("the input z", "z"),
    CONV: ("Conv -> c", "pads=[0, 0, 0, 0]"),
    "g (float[2,3] x) => (float[2,3] y) <int64[2] s = {3, 2}> { a = Reshape(x, s)\n y = Add(a, x) }": (
        "Reshape -> a",
        "a [3, 2]",
    ),
    "g (float[2,3] x) => (float[2,3] y) { a = Transpose<perm = [1, 0]>(x)\n b = Relu(a)\n y = Mul(b, x) }": (
        "Transpose -> a",
        "perm=[1, 0]",
    ),
    "g (float[2,8] x) => (float[2,4] y) <int64[1] zero = {0}, int64[1] four = {4}, int64[1] three = {3}, "
    "int64[1] end = {8}, int64[1] axis = {1}> { a = Slice(x, zero, four, axis)\n b = Slice(x, three, end, axis)\n"
    "y = Sub(a, b) }": ("Slice -> b", "b [2, 5]"),
    "g (float[2,3] x, float[3] z) => (float[2,3] y) <int64[1] axis = {1}> { u = Unsqueeze(z, axis)\n y = Div(x, u) }": (
        "Unsqueeze -> u",
        "u [3, 1]",
    ),
    "g (float[1,3,8,8] x) => (float[1,3,4,4] y) { a = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(x)\n"
    "b = AveragePool<kernel_shape = [3, 3], strides = [2, 2]>(x)\n"
    "y = Max(a, b) }": (
        "AveragePool -> b",
        "[1, 3, 3, 3]",
    ),
    "g (float[2,3] x) => (float[2,3] y) <float[4] w = {1, 2, 3, 4}> { y = Add(x, w) }": ("the weight w", "w [4]"),
    "g (float[2,3] x, float[4,5] z) => (float[2,5] y) { y = MatMul(x, z) }": ("MatMul -> y", "z [4, 5]"),
    "g (float[2,3] x, float[4,3] z) => (float[6,3] y) { a = Concat<axis = 1>(x, z)\n y = Relu(a) }": (
        "Concat -> a",
        "z [4, 3], from the input z",
    ),
    "g (bool c, float[2,3] x, float[2,4] z) => (float[2,3] y) { y = If(c)<then_branch = t () => (float[2,3] a) "
    "{ r = Relu(z)\n a = Add(x, r) }, else_branch = e () => (float[2,3] b) { b = Relu(x) }> "
    "}": (
        "the input z",
        "r [2, 4]",
    ),
}


@pytest.mark.parametrize("text", CASES)
def test_the_source_of_the_wrong_shape_is_named(text: str, tmp_path: Path) -> None:
    file = tmp_path / "m.onnx"
    save(from_text(HEAD + text), file)
    (found,) = onnxsmith.inspect(file).problems
    place, shown = CASES[text]
    assert found.id == "model/shape-conflict"
    assert found.where == f"{file}, {place}"
    assert shown in found.why
    command = found.fix.partition("`onnxsmith inspect ")[2].partition("`")[0]
    assert onnxsmith.inspect(file, name=command.rpartition(" ")[2].strip("'")).parts


def test_a_wrong_declaration_is_no_clash(tmp_path: Path) -> None:
    file = tmp_path / "m.onnx"
    save(from_text(HEAD + "g (float[2,3] x) => (float[2,4] y) { a = Relu(x)\n y = Tanh(a) }"), file)
    (found,) = onnxsmith.inspect(file).problems
    assert found.what.startswith("a declared shape")
    assert found.where == f"{file}, Tanh -> y"


def test_an_error_that_follows_from_another_is_not_blamed() -> None:
    first = "(op_type:Concat, node name: a): [ShapeInferenceError] Can't merge shape info"
    later = "(op_type:Relu, node name: y): [TypeInferenceError] Input 0 expected to have type but instead is null"
    start = "[ShapeInferenceError] Inference error(s): "
    assert blamed(f"{start}{first} {later}")[:2] == ("Concat", "a")
    assert blamed(f"{start}(op_type:If, node name: if): {start}{first} {later}")[:2] == ("Concat", "a")


@pytest.mark.parametrize("text", [ADD, CONV])
def test_a_check_offers_no_form_of_a_model_that_nothing_computes(text: str, tmp_path: Path) -> None:
    file = tmp_path / "m.onnx"
    save(from_text(HEAD + text), file)
    part = onnxsmith.check(file, ["onnxruntime"]).report.part(TargetChecks)
    assert [(one.stage.value, one.rewrite) for one in part.checks] == [("refused", "")]
