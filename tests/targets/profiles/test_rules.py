"""Each named condition: a node that it refuses, with the reason, one that meets it, one that cannot be judged."""

from __future__ import annotations

import onnx_ir as ir
import pytest

from onnxsmith.graph.files.text import from_text
from onnxsmith.targets.profiles.node_acceptance import foresee
from onnxsmith.targets.profiles.profile_reader import parsed
from onnxsmith.targets.profiles.rules.base import kinds
from tests.targets.profiles.asking import START, foreseen, told

FITS = ("fits", "")


def rule(name: str, operators: str, keys: str = "") -> str:
    return f'[[operators]]\nnames = [{operators}]\n[[rules]]\nuse = "{name}"\n{keys}\n'


def test_every_rule_is_tested_here_and_documents_its_source() -> None:
    text = __import__("pathlib").Path(__file__).read_text(encoding="utf-8")
    for name, kind in kinds().items():
        assert f'rule("{name}"' in text
        assert kind.__doc__ is not None
        assert "Source: " in kind.__doc__
        assert kind.source.startswith("https://")


def test_strong_typing() -> None:
    profile = parsed(START + rule("strong-typing", '"Add", "com.microsoft::Mystery"'), "board.toml")
    model = from_text('<ir_version: 10, opset_import: ["": 17]> g (float[2] x, float[2] z) => (y) { y = Add(x, z) }')
    assert [str(one.outlook) for one in foresee(model, profile)] == ["fits"]
    model.graph.inputs[1].dtype = ir.DataType.FLOAT16  # a file like this is invalid, and weakly typed builders took it
    (found,) = foresee(model, profile)
    assert (str(found.outlook), found.reason) == ("refused", "A is float32 and B is float16; both must have one dtype")
    assert "migration" in found.source
    graph = "g (float[2] x) => (y) { a = com.microsoft.Mystery(x) y = Add(a, x) }"
    assert told(rule("strong-typing", '"Add", "com.microsoft::Mystery"'), graph) == [
        ("unknown", "the schema of com.microsoft::Mystery is not known, so its dtypes cannot be compared"),
        ("unknown", "the dtype of A is not known"),
    ]


def test_no_zero_size() -> None:
    graph = "g (float[%s] x) => (float[%s] y) { y = Relu(x) }"
    profile = rule("no-zero-size", '"Relu"')
    assert told(profile, graph % ("2,0", "2,0")) == [("refused", "X is empty: its shape is [2, 0]")]
    assert told(profile, graph % ("2,n", "2,n")) == [("unknown", "X may be empty: a dimension is not a fixed size")]
    assert told(profile, graph % ("2,1", "2,1")) == [FITS]
    assert told(profile, graph % ("", "")) == [("unknown", "the shape of X is not known, so it may be empty")]


def test_operators_of_a_rule() -> None:
    graph = "g (float[0] x) => (float[0] y) { a = Relu(x) y = Neg(a) }"
    profile = rule("no-zero-size", '"Relu", "Neg"', 'operators = ["Neg"]')
    assert told(profile, graph) == [FITS, ("refused", "X is empty: its shape is [0]")]


def test_int64_in_int32() -> None:
    profile = rule("int64-in-int32", '"Add", "Slice"')
    graph = "g (int64[2] x) => (y) { c = Constant<value_ints = [%s]>() y = Add(c, c) }"
    assert told(profile, graph % "1, 2147483648") == [("refused", "A holds values outside int32")]
    assert told(profile, graph % "-2147483649, 1") == [("refused", "A holds values outside int32")]
    assert told(profile, graph % "-2147483648, 2147483647") == [FITS]
    assert told(profile, "g (int64[2] x) => (y) { y = Add(x, x) }") == [
        ("unknown", "A may hold int64 values that are known at run time only")
    ]
    to_the_end = (
        "g (float[9] x) => (y) { s = Constant<value_ints = [1]>() "
        "e = Constant<value_ints = [9223372036854775807]>() y = Slice(x, s, e) }"
    )
    assert told(profile, to_the_end) == [FITS]


QUANTIZE = (
    "g (float[2] x) => (y) <float s = {0.5}, %s z = {%d}> { y = QuantizeLinear(x, s, z) }",
    "g (%s[2] x) => (y) <float s = {0.5}, %s z = {%d}> { y = DequantizeLinear(x, s, z) }",
)


def test_symmetric_quantisation() -> None:
    profile = rule("symmetric-quantisation", '"QuantizeLinear", "DequantizeLinear"')
    no_uint8 = rule("symmetric-quantisation", '"QuantizeLinear", "DequantizeLinear"', "uint8 = false")
    assert told(profile, QUANTIZE[0] % ("uint8", 128)) == [("refused", "y_zero_point is not 0")]
    assert told(profile, QUANTIZE[1] % ("uint8", "uint8", 3)) == [("refused", "x_zero_point is not 0")]
    assert told(profile, QUANTIZE[0] % ("uint8", 0)) == [FITS]
    assert told(profile, QUANTIZE[0] % ("int8", 0)) == [FITS]
    assert told(no_uint8, QUANTIZE[0] % ("uint8", 0)) == [("refused", "y is uint8; quantised tensors must be int8")]
    assert told(no_uint8, QUANTIZE[0] % ("int8", 0)) == [FITS]
    given = "g (float[2] x, uint8 z) => (y) <float s = {0.5}> { y = QuantizeLinear(x, s, z) }"
    assert told(profile, given) == [("unknown", "y_zero_point is not constant, so it may differ from 0")]
    assert told(profile, "g (float[2] x) => (y) <float s = {0.5}> { y = QuantizeLinear(x, s) }") == [FITS]


def test_no_int32_dequantisation() -> None:
    profile = rule("no-int32-dequantisation", '"DequantizeLinear", "com.microsoft::Mystery"')
    assert told(profile, QUANTIZE[1] % ("int32", "int32", 0)) == [
        ("refused", "x is int32: keep the bias of a convolution in floating point")
    ]
    assert told(profile, QUANTIZE[1] % ("int8", "int8", 0)) == [FITS]
    graph = "g (float[2] x) => (y) <float s = {0.5}> { a = com.microsoft.Mystery(x) y = DequantizeLinear(a, s) }"
    assert told(profile, graph)[1] == ("unknown", "the dtype of x is not known")


def branches(one: str, other: str, inputs: str) -> str:
    return (
        f"g (bool c, {inputs}) => (y) {{ y = If<then_branch = t () => (a) {{ a = Neg({one}) }}, "
        f"else_branch = e () => (b) {{ b = Neg({other}) }}>(c) }}"
    )


def test_equal_branch_shapes() -> None:
    profile = rule("equal-branch-shapes", '"If", "Neg"')
    ranks = rule("equal-branch-shapes", '"If", "Neg"', 'compare = "rank"')
    two_shapes = branches("x", "z", "float[2] x, float[1] z")
    two_ranks = branches("x", "z", "float[2] x, float[1,2] z")
    assert told(profile, two_shapes)[0] == ("refused", "the branches return [2] and [1]; both must have the same shape")
    assert told(ranks, two_shapes)[0] == FITS
    for asked in (profile, ranks):
        assert told(asked, two_ranks)[0] == (
            "refused",
            "the branches return [2] and [1, 2]; both must have the same rank",
        )
    assert told(profile, branches("x", "z", "float[n] x, float[m] z"))[0] == (
        "unknown",
        "the branches return [n] and [m], which may differ",
    )
    assert told(profile, branches("x", "z", "float[n,2] x, float[n,2] z"))[0] == FITS
    assert told(profile, branches("x", "z", "float[] x, float[2] z"))[0][0] == "unknown"


def test_suppression_boxes() -> None:
    profile = rule("suppression-boxes", '"NonMaxSuppression"', "most = 8")
    graph = "g (float[1,%s,4] b, float[1,2,%s] s) => (y) { y = NonMaxSuppression(b, s) }"
    assert told(profile, graph % (9, 9)) == [("unknown", "there are 9 boxes, but only the 8 best boxes are considered")]
    assert told(profile, graph % ("n", "n")) == [("unknown", "the number of boxes is not known; only 8 are considered")]
    assert told(profile, graph % (8, 8)) == [FITS]


@pytest.mark.parametrize(
    ("activations", "expected"),
    [
        ('["Sigmoid", "Tanh", "Sigmoid", "Relu"]',
         ("refused", "the directions have different activations: Sigmoid, Tanh, Sigmoid, Relu")),
        ('["Sigmoid", "Tanh", "Sigmoid", "Tanh"]', FITS),
    ],
)  # fmt: skip
def test_same_activations(activations: str, expected: tuple[str, str]) -> None:
    profile = rule("same-activations", '"GRU"')
    graph = (
        "g (float[3,1,2] x, float[2,12,2] w, float[2,12,4] r) => (y) "
        f'{{ y = GRU<direction = "bidirectional", hidden_size = 4, activations = {activations}>(x, w, r) }}'
    )
    assert told(profile, graph) == [expected]


def test_the_source_of_a_rule() -> None:
    (found,) = foreseen(rule("no-zero-size", '"Relu"'), "g (float[0] x) => (float[0] y) { y = Relu(x) }")
    assert found.source == kinds()["no-zero-size"].source
