"""Patterns from functions and texts, as text again, and what is refused."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.graph.patterns.pattern_conversion import pattern_of
from onnxsmith.graph.patterns.pattern_tracing import Const, Scalar, near
from tests.graph.patterns.models import model, places


@pytest.mark.parametrize(
    "text",
    [
        "{ a = Relu(x)  y = Mul(a, c_scale) }",
        "find (x, const scale) => (y) { a = Relu(x) y = Mul(a, scale) }",
        "Mul(Relu(x), 0.5)",
        "y = Relu(x)",
        "{ y = Softmax <axis = ?> (x) }",
        "{ y = Transpose <perm = ?p> (x) z = Transpose <perm = ?p> (x) }",
        "{ y = Resize <mode = \"linear\", axes = [2, 3], coordinate_transformation_mode = none> (x, , [1.0, 2.0]) }",
        "(x) => (a, y) { a, b = TopK(x, [1]) y = custom.Foo <e = near(1e-5), m = []> (a, , either(b, x), ...) }",
        "{ c = Constant <value = float16[2] {1, 15360}> ()  y = Add(x, c) }",
        "{ c = Constant <value_string = \"a, \\\"b\\\"\"> ()  y = Equal(x, c) }",
        "{ y = Where(c, true, -inf)  z = Where(c, nan, -1e-30) }",
        "{ y = any(x, _) }",
        '<ir_version: 8, opset_import: ["": 17]> g (float[N,M] x) => (float[N] y) { y = LeakyRelu <alpha = 0.1> (x) }',
    ],
)  # fmt: skip
def test_text_is_read_back_equal(text: str) -> None:
    pattern = pattern_of(text)
    written = pattern.text()
    assert pattern_of(written).text() == written
    if "nan" not in text:
        assert pattern_of(written) == pattern


def everything(op, x, s: Const, t: "Scalar", _, c_k):  # type: ignore[no-untyped-def]  # noqa: UP037
    v, i = op.TopK(op.maybe("Cast", x, to=1), np.array([3]), axis=op.attribute("k"), sorted=1)
    w = op.Where(i, t, near(0.5))
    return op.Mul(v, s), op.either(op.Relu(w), w), op.any(v, True, ...), op.Add(_, op.Sum(v, 2, [1, 2], c_k, None, x))


@pytest.mark.parametrize(
    "array",
    [
        np.array([[1.5, -2]], np.float32), np.array(0.1, np.float64), np.array([1, 2], np.int8),
        np.array([True, False]), np.array(0.1, np.float16), np.array([0.1], ml_dtypes.bfloat16),
        np.zeros((0, 3), np.int64),
        np.array([1e-40, np.inf, -0.0], np.float32), np.array(["a", "ü\n"]),
    ],
)  # fmt: skip
def test_a_function_as_text(array: np.ndarray) -> None:  # type: ignore[type-arg]
    pattern = pattern_of(everything)
    assert [one.kind.value for one in pattern.variables] == ["", "const", "scalar", "const"]
    assert pattern_of(pattern.text()).text() == pattern.text()
    pattern = pattern_of(lambda op, x: op.Mul(x, array))
    again = pattern_of(pattern.text())
    assert again.nodes[0].inputs == pattern.nodes[0].inputs


def test_what_text_cannot_say_is_said() -> None:
    pattern = pattern_of(lambda op, x: op.Mul(x, np.array([1], ml_dtypes.float8_e4m3fn)))
    with pytest.raises(OnnxsmithError, match=r"pattern/no-text.*float8e4m3fn"):
        pattern.text()


def test_names_in_text_do_not_clash() -> None:
    pattern = pattern_of(lambda op, relu_0: op.Mul(op.Relu(relu_0), relu_0))
    assert places(model("r = Relu(x) y = Mul(r, x)"), pattern.text()) == ["y"]


@pytest.mark.parametrize(
    ("text", "id_"),
    [
        ("{ y = Relu(x", "text"), ("Relu x", "text"), ("x", "text"), ("$", "text"),
        ("{ y = Softmax<axis=>(x) }", "text"),
        ('{ y = Softmax<axis="a(x) }', "text"), ("{ y = Relu(a) a = Neg(x) }", "text"), ("{ y = Relu(x) } z", "text"),
        ("{ y = Softmax<axis = 1x>(x) }", "text"), ("(x) => (z) { y = Relu(x) }", "text"), ("{ y = either() }", "text"),
        ("{ y = If<then_branch = g () => (z) { z = Relu(x) }>(x) }", "text"), ("{ y = Relu(x)) }", "text"),
        ("", "invalid"), ("{}", "invalid"), ("(x, z) => (y) { y = Relu(x) }", "invalid"),
        ("{ y = Add(..., x) }", "invalid"),
        ("(x) => (y) { y = Relu(x) z = Neg(x) }", "invalid"), ("{ y = Relu(near(1, 2)) }", "invalid"),
        ("{ y = Softmax<axs = 1>(x) }", "attribute"), ("{ y = Relu(x) z = Neg(q) }", "unconnected"),
        ("(x) => (y) { y = either(Relu(x), x) }", "text"),
    ],
)  # fmt: skip
def test_wrong_texts(text: str, id_: str) -> None:
    with pytest.raises(OnnxsmithError) as raised:
        pattern_of(text)
    assert raised.value.problem.id == f"pattern/{id_}"


@pytest.mark.parametrize(
    ("function", "id_"),
    [
        (lambda op, x: x * 2, "function"), (lambda op, x: op.relu(x), "function"), (lambda op, x: x, "invalid"),
        (lambda op, x: op.Mul(x, object()), "invalid"), (lambda op, x, y: op.Relu(x), "invalid"),
        (lambda op, *x: op.Relu(*x), "invalid"), (lambda: None, "invalid"), (lambda op, x: None, "invalid"),
        (lambda op, x: (op.Neg(x), op.Relu(x))[0], "invalid"), (lambda op, x: op.Softmax(x, axs=1), "attribute"),
        (lambda op, x: op.Softmax(x, axis=x), "invalid"), (lambda op, x: op.Softmax(x, axis=object()), "invalid"),
        (lambda op, x: op.Mul(x, op.constant("x")), "invalid"), (lambda op, x: op.Add(x, []), "invalid"),
        (lambda op, nan: op.Relu(nan), "invalid"), (lambda op, x: op.either(op.Relu(x), x), "invalid"),
    ],
)  # fmt: skip
def test_wrong_functions(function: object, id_: str) -> None:
    with pytest.raises(OnnxsmithError) as raised:
        pattern_of(function)  # type: ignore[arg-type]
    assert raised.value.problem.id == f"pattern/{id_}"


def test_a_deep_pattern_is_refused() -> None:
    with pytest.raises(OnnxsmithError, match="pattern/invalid"):
        pattern_of("Relu(" * 150 + "x" + ")" * 150)
