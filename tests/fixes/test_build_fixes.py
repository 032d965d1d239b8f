"""Fixes of problems of building models, of patterns and of registered operators: calls in Python."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onnxsmith
from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.patterns.pattern_conversion import pattern_of
from onnxsmith.graph.patterns.pattern_search import find
from tests.fixes.harness import Call, helps, parameters

Step = Callable[[Any, Any], Any]


def built(step: Step, **options: Any) -> Callable[[], object]:
    """Builds a model from an input x of two rows and four columns and an input i of integers; `step` gives its
    output."""

    def make() -> object:
        with onnxsmith.build(**options) as g:
            x, _ = g.input("x", "float32", [2, 4]), g.input("i", "int64", [2])
            found = step(g, x)
            if found is not None:
                g.output("result", found)
        return g.result

    return make


def asked_inside() -> None:
    with onnxsmith.build() as g:
        g.output("y", g.Relu(g.input("x", "float32", [2])))
        _ = g.model


def asked_after() -> None:
    with onnxsmith.build() as g:
        g.output("y", g.Relu(g.input("x", "float32", [2])))
    _ = g.model


def line_after() -> None:
    with onnxsmith.build() as g:
        x = g.input("x", "float32", [2])
        g.output("y", g.Relu(x))
    g.output("z", g.Neg(x))


def line_inside() -> None:
    with onnxsmith.build() as g:
        x = g.input("x", "float32", [2])
        g.output("y", g.Relu(x))
        g.output("z", g.Neg(x))


def named_twice(second: str) -> Step:
    def step(g: Any, x: Any) -> None:
        g.output("y", x * 2)
        g.output(second, x * 3)

    return step


def nothing(_: object) -> None:
    """Is the result of a step that names its outputs itself."""


def odd(g: Any, x: Any) -> Any:
    return g.node("com.example::Odd", x).declare("float32", [2, 4])


def distances(*shape: int) -> Step:
    return lambda g, x: g.node("com.microsoft::CDist", x, np.ones((3, 4), np.float32), metric="euclidean").declare(
        "float32", list(shape)
    )


def stft(g: Any, _: Any) -> Any:
    return g.STFT(g.input("s", "float32", ["n", 400, 1]), 100, g.HannWindow(200), 200)


def both(then: Step, other: Step) -> Step:
    return lambda g, x: g.If(g.constant(True), lambda: then(g, x), lambda: other(g, x))


def matched(pattern: Any) -> Callable[[], object]:
    return lambda: pattern_of(pattern)


def narrow() -> Any:
    import ml_dtypes

    return np.array([1], ml_dtypes.float8_e4m3fn)


def sums(count: int) -> Callable[[], object]:
    names = ", ".join(f"r{index}" for index in range(count))
    nodes = "".join(f"r{index} = Relu(x) " for index in range(count))
    text = f'<ir_version: 10, opset_import: ["": 20]> g (float[4] x) => (float[4] y) {{ {nodes} y = Sum({names}) }}'
    operands = ", ".join(f"Relu(a{index})" for index in range(count))
    return lambda: find(from_text(text), f"Sum({operands})")


def registered(name: str, translation: Any, **options: Any) -> Callable[[], object]:
    def call() -> None:
        from onnxsmith.exporter.translating.register import forget
        from onnxsmith.exporter.translating.register import registered as all_registered

        onnxsmith.register(name, translation, **options)
        for one in all_registered():
            forget(one.target)

    return call


CASES = [
    Call(
        "build/attribute", built(lambda g, x: g.Softmax(x, dim=1)), built(lambda g, x: g.Softmax(x, axis=1)), ["axis=…"]
    ),
    Call(
        "build/attribute",
        built(lambda g, x: g.LeakyRelu(x, alhpa=0.1)),
        built(lambda g, x: g.LeakyRelu(x, alpha=0.1)),
        ["alpha=…"],
        name="misspelt",
    ),
    Call(
        "build/body",
        built(both(lambda g, x: x, lambda g, x: (x, x))),
        built(both(lambda g, x: x, lambda g, x: x)),
        ["return the same number of results from both branches"],
    ),
    Call(
        "build/body",
        built(lambda g, x: g.Loop(3, None, x, body=lambda i, s: s)),
        built(lambda g, x: g.Loop(3, None, x, body=lambda i, k, s: (k, s))),
        ["give it 3 parameters"],
        name="a loop",
    ),
    Call("build/closed", line_after, line_inside, ["into the `with` block"]),
    Call(
        "build/constant",
        built(lambda g, x: g.tensor("i") * 1.5),
        built(lambda g, x: g.Cast(g.tensor("i"), to="float32") * 1.5),
        ["g.Cast"],
        name="a float",
    ),
    Call("build/declared", built(distances(2, 2)), built(distances(2, 3)), ['.declare("float", [2, 3])']),
    Call(
        "build/dtype",
        built(lambda g, x: g.Cast(x, to="flaot32")),
        built(lambda g, x: g.Cast(x, to="float32")),
        ["'float32'"],
    ),
    Call(
        "build/function",
        built(lambda g, x: g.function("Swish", lambda a: a * g.Sigmoid(a))(x)),
        built(lambda g, x: g.function("my::Swish", lambda a: a * g.Sigmoid(a))(x)),
        ["::Swish"],
    ),
    Call("build/index", built(lambda g, x: x[:, 4]), built(lambda g, x: x[:, 3]), ["-4 to 3"]),
    Call(
        "build/index",
        built(lambda g, x: x[x > 0]),
        built(lambda g, x: g.Compress(x, x > 0)),
        ["g.Compress"],
        name="a mask",
    ),
    Call(
        "build/input",
        built(lambda g, x: x + g.input("z", "float32", [-1])),
        built(lambda g, x: x[:1, :1] + g.Unsqueeze(g.input("z", "float32", ["batch"]), [1])),
        ['"batch"'],
    ),
    Call(
        "build/input",
        built(lambda g, x: x + g.input("z", "float32")),
        built(lambda g, x: x + g.input("z", "float32", [])),
        ["[]"],
        name="no shape",
    ),
    Call("build/invalid", built(stft, verify=False), built(stft), ["leave verify=False out"]),
    Call(
        "build/name",
        built(lambda g, x: g.Relu(g.Neg(x, name="act"), name="act")),
        built(lambda g, x: g.Relu(g.Neg(x, name="act"), name="act_1")),
        ["'act_1'"],
    ),
    Call(
        "build/no-output",
        built(lambda g, x: nothing(g.Relu(x))),
        built(lambda g, x: nothing(g.output("y", g.Relu(x)))),
        ['g.output("y", y)'],
    ),
    Call("build/open", asked_inside, asked_after, ["after the `with` block"]),
    Call("build/operands", built(lambda g, x: g.Softmax(x, 1)), built(lambda g, x: g.Softmax(x, axis=1)), ["axis=1"]),
    Call(
        "build/operands",
        built(lambda g, x: g.MatMul(x)),
        built(lambda g, x: g.MatMul(x, B=np.eye(4, dtype="float32"))),
        ["B=…"],
        name="a missing operand",
    ),
    Call("build/operator", built(lambda g, x: g.Gelue(x)), built(lambda g, x: g.Gelu(x)), ["write Gelu"]),
    Call(
        "build/operator",
        built(lambda g, x: g.Swish(x), opset=21),
        built(lambda g, x: g.Swish(x), opset=24),
        ["opset=24"],
        name="a later operator",
    ),
    Call(
        "build/opset",
        built(lambda g, x: x * 2, opset=99),
        built(lambda g, x: x * 2, opset=21),
        ["give a whole number, "],
    ),
    Call("build/output", built(named_twice("y")), built(named_twice("y_1")), ["y_1"]),
    Call(
        "build/output",
        built(lambda g, x: g.output(x * 2, "y")),
        built(lambda g, x: nothing(g.output("y", x * 2))),
        ["the name is first"],
        name="another order",
    ),
    Call(
        "build/outputs",
        built(lambda g, x: g.Split(x, axis=1)),
        built(lambda g, x: g.Split(x, axis=1, num_outputs=2)[0]),
        ["num_outputs=2"],
    ),
    Call("build/refused", built(odd), built(odd, verify=False), ["verify=False"]),
    Call(
        "build/shape",
        built(lambda g, x: x @ np.zeros((8, 4), np.float32)),
        built(lambda g, x: x @ g.Transpose(np.zeros((8, 4), np.float32), perm=[1, 0])),
        ["perm=[1, 0]"],
    ),
    Call(
        "build/symbolic", built(lambda g, x: x if x > 0 else -x), built(lambda g, x: g.Where(x > 0, x, -x)), ["g.Where"]
    ),
    Call("build/symbolic", built(lambda g, x: np.exp(x)), built(lambda g, x: g.Exp(x)), ["g.Exp"], name="numpy"),
    Call("build/tensor", built(lambda g, x: g.Relu(g.tensor("xx"))), built(lambda g, x: g.Relu(g.tensor("x"))), ["x"]),
    Call(
        "build/type",
        built(lambda g, x: x + g.tensor("i")),
        built(lambda g, x: g.Transpose(x) + g.Cast(g.tensor("i"), to="float32")),
        ['g.Cast(i, to="float32")'],
    ),
    Call(
        "pattern/attribute",
        matched("{ y = Softmax<axs = 1>(x) }"),
        matched("{ y = Softmax<axis = 1>(x) }"),
        ["write axis"],
    ),
    Call("pattern/function", matched(lambda op, x: x * 2), matched(lambda op, x: op.Mul(x, 2)), ["op.Mul("]),
    Call(
        "pattern/function",
        matched(lambda op, x: op.relu(x)),
        matched(lambda op, x: op.Relu(x)),
        ["op.Relu"],
        name="torch's name",
    ),
    Call(
        "pattern/invalid",
        matched("(x, z) => (y) { y = Relu(x) }"),
        matched("(x) => (y) { y = Relu(x) }"),
        ["leave z out"],
    ),
    Call(
        "pattern/no-text",
        lambda: pattern_of(lambda op, x: op.Mul(x, narrow())).text(),
        lambda: pattern_of(lambda op, x: op.Mul(x, op.constant("scale"))).text(),
        ["op.constant("],
    ),
    Call("pattern/too-many-ways", sums(16), sums(4), ["a smaller part"]),
    Call(
        "pattern/unconnected",
        matched("(x, z) => (a, b) { a = Relu(x) b = Neg(z) }"),
        matched("(x) => (a, b) { a = Relu(x) b = Neg(x) }"),
        ["use one variable in both results"],
    ),
    Call(
        "register/unknown-operator",
        registered("aten::special_zta", lambda x, y: x),
        registered("aten::special_zeta", lambda x, y: x),
        ["aten::special_zeta"],
    ),
    Call(
        "register/signature",
        registered("aten::special_zeta", lambda x: x),
        registered("aten::special_zeta", lambda self, other: self),
        ["lambda self, other: …"],
    ),
    Call(
        "register/delivery",
        registered("aten::special_zeta", lambda self, other: self, deliver="mail"),
        registered("aten::special_zeta", lambda self, other: self, deliver="operators"),
        ["operators"],
    ),
]


@pytest.mark.parametrize("one", parameters(CASES))
def test_the_fix_helps(one: Call, tmp_path: Path) -> None:
    helps(one, tmp_path)
