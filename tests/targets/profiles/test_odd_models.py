"""Models that are unusual, or not valid: every node still gets an entry."""

from __future__ import annotations

import onnx_ir as ir
import pytest

from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.structure import walk
from onnxsmith.targets.profiles.condition_result import Outlook
from onnxsmith.targets.profiles.node_acceptance import foresee
from onnxsmith.targets.profiles.profile_format import Profile
from onnxsmith.targets.profiles.profile_reader import built_in, named, parsed
from onnxsmith.targets.profiles.rules.base import kinds

EVERYTHING = (
    'extends = "tensorrt-10"\ntitle = "All conditions"\nmax_ir_version = 8\nmax_rank = 3\nmax_dim = 4\n'
    "max_tensor_bytes = 64\nmax_weight_bytes = 64\nstatic = true\nfunctions = true\n"
    '[[operators]]\nnames = ["SequenceConstruct", "SequenceAt", "StringConcat", "OptionalHasElement", "Det"]\n'
    "rank = 1\n" + "".join(f'[[rules]]\nuse = "{name}"\n' for name in kinds())
)

HEAD = '<ir_version: 10, opset_import: ["": 20, "com.microsoft": 1, "own": 1]>\n'
GRAPHS = {
    "empty": "g (float[2] x) => (x) {}",
    "unknown shapes": "g (float[] x) => (y) { a = com.microsoft.Mystery(x) b = Add(a, x) y = Conv(b, a) }",
    "sequence": (
        "g (float[2] x) => (y) { s = SequenceConstruct(x, x) i = Constant<value_int = 0>() y = SequenceAt(s, i) }"
    ),
    "optional": "g (optional(float[2]) x) => (y) { y = OptionalHasElement(x) }",
    "strings": 'g (string[2] x) => (y) { c = Constant<value_strings = ["a", "b"]>() y = StringConcat(x, c) }',
    "no operands": "g () => (y) { y = RandomNormal<shape = [2, 3]>() }",
    "empty operand": "g (float[2,3] x, float h) => (y) { y = Clip(x, , h) }",
    "zero": "g (float[0,3] x) => (y) { y = Relu(x) }",
    "large rank": "g (float[1,1,1,1,1,1,1] x) => (y) { y = Softmax(x) }",
    "negative zero point": (
        "g (float[2] x) => (y) <float s = {0.5}, int8 z = {-1}> { q = QuantizeLinear(x, s, z) "
        "y = DequantizeLinear(q, s, z) }"
    ),
    "constants of constants": (
        "g (float[4] x) => (y) { a = Constant<value_ints = [2]>() b = Add(a, a) c = Mul(b, a) y = Reshape(x, c) }"
    ),
    "branches": (
        "g (bool c, float[2] x) => (y) { y = If<then_branch = t () => (a) { a = If<then_branch = u () => (p) "
        "{ p = Neg(x) }, else_branch = v () => (q) { q = Det(x) }>(c) }, else_branch = e () => (b) { b = Abs(x) }>(c) }"
    ),
    "loop": (
        "g (int64 n, float[2] x) => (y) { t = Constant<value_int = 1>() cond = Cast<to = 9>(t) "
        "y = Loop<body = f (int64 i, bool c, float[2] s) => (c2, r) { c2 = Identity(c) r = Neg(s) }>(n, cond, x) }"
    ),
    "attribute of a function": (
        'g (float[2] x) => (y) { y = own.f<k = 3>(x) }\n<domain: "own", opset_import: ["": 20]> '
        "f <k> (p) => (q) { q = Softmax<axis: int = @k>(p) }"
    ),
}  # fmt: skip


def profiles() -> list[Profile]:
    return [*map(named, built_in()), parsed(EVERYTHING, "all.toml", "all")]


@pytest.mark.parametrize("name", GRAPHS)
def test_an_odd_model(name: str) -> None:
    model = from_text(HEAD + GRAPHS[name])
    nodes = [node for node in walk.all_nodes(model) if node.op_type != "Constant"]
    for profile in profiles():
        entries = foresee(model, profile)
        assert [one.node for one in entries if one.node is not None] == nodes
        for one in entries:
            assert one.reason or one.outlook is Outlook.FITS
            listed = one.node is None or walk.op_name(one.node) in profile.listed or one.node.domain == "own"
            assert listed or one.outlook is not Outlook.FITS


def test_a_model_without_imports() -> None:
    model = from_text(HEAD + GRAPHS["zero"])
    model.graph.opset_imports.clear()
    for profile in profiles():
        assert {str(one.outlook) for one in foresee(model, profile)} <= {"refused", "unknown", "fits"}
    assert {one.outlook for one in foresee(model, named("webgpu"))} == {Outlook.UNKNOWN}  # its version is not known


def test_an_attribute_of_another_kind() -> None:
    model = from_text(HEAD + "g (float[1,1,4,4] x) => (y) { y = MaxPool<kernel_shape = [2, 2]>(x) }")
    (node,) = model.graph
    node.attributes["dilations"] = ir.AttrString("dilations", "two")
    assert str(foresee(model, named("tensorrt-10"))[0].outlook) == "refused"


def test_the_alias_of_the_domain() -> None:
    model = from_text(HEAD + "g (float[4] x) => (y) { y = Relu(x) }")
    (node,) = model.graph
    node.domain = "ai.onnx"
    assert [str(one.outlook) for one in foresee(model, named("tensorrt-10"))] == ["fits"]


def test_a_sequence_of_unknown_dtype() -> None:
    model = from_text(HEAD + "g (float[2] x) => (y) { a = com.microsoft.Mystery(x) y = SequenceConstruct(a) }")
    for profile in profiles():
        assert len([one for one in foresee(model, profile) if one.node is not None]) == 2
    profile = parsed(EVERYTHING, "all.toml", "all")
    assert foresee(model, profile)[-1].outlook is not Outlook.FITS
