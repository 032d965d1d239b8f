"""If, Loop, Scan and functions: what they compute, and what is refused without a trace."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onnxsmith
from onnxsmith import OnnxsmithError

X = np.arange(-3, 3, dtype=np.float32).reshape(3, 2)


def computed(make: Callable[[Any, Any], Any]) -> list[Any]:
    """The results of what `make` builds on an input of shape [n, 2]."""
    with onnxsmith.build() as g:
        made = make(g, g.input("x", "float32", ["n", 2]))
        for index, one in enumerate(made if isinstance(made, tuple) else (made,)):
            g.output(f"y{index}", one)
    return list(onnxsmith.run(g.model, {"x": X}).outputs.values())


def test_if() -> None:
    y, z = computed(lambda g, x: g.If(g.ReduceMax(x, keepdims=0) > 1, lambda: (x * 2, x), lambda: (-x, x + 1)))
    np.testing.assert_array_equal(y, X * 2)
    np.testing.assert_array_equal(z, X)


def test_nested_branches_and_captures() -> None:
    def make(g: Any, x: Any) -> Any:
        big, odd = g.ReduceMax(x, keepdims=0) > 1, g.ReduceMin(x, keepdims=0) > 1
        y = x + 1
        return g.If(big, lambda: g.If(odd, lambda: y, lambda: y * 3), lambda: y)

    np.testing.assert_array_equal(computed(make)[0], (X + 1) * 3)


def test_loop() -> None:
    def body(i: Any, condition: Any, total: Any) -> Any:
        return condition, total + i, total

    total, steps = computed(lambda g, x: g.Loop(4, None, 10, body=body))
    assert (int(total), steps.tolist()) == (16, [10, 10, 11, 13])
    assert int(computed(lambda g, x: g.Loop(4, None, 10, body))[0]) == 16  # the body as the last operand


def test_the_shape_of_a_loop() -> None:
    with onnxsmith.build() as g:
        x = g.input("x", "float32", ["n", 2])
        grown = g.Loop(2, None, x, body=lambda i, c, s: (c, g.Concat(s, x, axis=0)))
        assert grown.rank == 2
        assert grown.shape is not None
        assert grown.shape[1] == 2
        assert grown.shape[0] != "n"
        kept, stack = g.Loop(3, None, x, body=lambda i, c, s: (c, s * 2, s))
        assert (kept.shape, stack.shape) == (("n", 2), (3, "n", 2))
        _, ended = g.Loop(3, True, x, body=lambda i, c, s: (g.Less(i, 1), s * 2, s))
        assert ended.shape[1:] == ("n", 2)
        assert ended.shape[0] != 3
        for index, one in enumerate((grown, kept, stack, ended)):
            g.output(f"y{index}", one)
    assert onnxsmith.run(g.model, {"x": X}).outputs["y0"].shape == (9, 2)


def test_scan() -> None:
    weight = np.array([[0.5, 1], [0, 2]], np.float32)

    def make(g: Any, x: Any) -> Any:
        def body(state: Any, element: Any) -> Any:
            new = g.Tanh(state @ weight + element)
            return new, new

        return g.Scan(np.zeros(2, np.float32), x, num_scan_inputs=1, body=body)

    last, states = computed(make)
    state = np.zeros(2, np.float32)
    for row in X:
        state = np.tanh(state @ weight + row)
    np.testing.assert_allclose(last, state, rtol=1e-5)
    assert states.shape == (3, 2)


def test_a_function() -> None:
    with onnxsmith.build() as g:
        x = g.input("x", "float32", ["n", 2])
        swish = g.function("my.layers::Swish", lambda a: a * g.Sigmoid(a * 1.5))
        y = swish(swish(x))
        assert y.shape == ("n", 2)
        g.output("y", y)
    assert [node.op_type for node in g.model.graph] == ["Swish", "Swish"]
    assert len(g.model.functions) == 1

    def expected(a: Any) -> Any:
        return a / (1 + np.exp(-1.5 * a))

    found = onnxsmith.run(g.model, {"x": X}).outputs["y"]
    np.testing.assert_allclose(found, expected(expected(X)), rtol=1e-5)


REFUSED: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "dtypes of branches": (lambda g, x: g.If(c(g), lambda: x, lambda: g.Cast(x, to="int64")), "build/body"),
    "numbers of branches": (lambda g, x: g.If(c(g), lambda: x, lambda: (x, x)), "build/body"),
    "no function": (lambda g, x: g.If(c(g), x, x), "build/body"),
    "no result": (lambda g, x: g.If(c(g), lambda: None, lambda: x), "build/body"),
    "parameters": (lambda g, x: g.Loop(3, None, x, body=lambda i, s: s), "build/body"),
    "too few results": (lambda g, x: g.Loop(3, None, x, body=lambda i, k, s: s), "build/body"),
    "the dtype of a state": (
        lambda g, x: g.Loop(3, None, x, body=lambda i, k, s: (k, g.Cast(s, to="int32"))), "build/body",
    ),
    "the condition of a loop": (lambda g, x: g.Loop(3, None, x, body=lambda i, k, s: (s, s)), "build/body"),
    "the condition of If": (lambda g, x: g.If(x, lambda: x, lambda: x), "build/type"),
    "the size of a condition": (lambda g, x: g.If(np.ones(2, bool), lambda: x, lambda: x), "build/shape"),
    "the size of a loop's count": (
        lambda g, x: g.Loop(np.ones(2, np.int64), None, x, body=lambda i, k, s: (k, s)), "build/shape",
    ),
    "an error inside": (lambda g, x: g.If(c(g), lambda: g.Covn(x), lambda: x), "build/operator"),
    "an error in the second branch": (lambda g, x: g.If(c(g), lambda: x * 2, lambda: g.Covn(x)), "build/operator"),
    "what Scan scans": (lambda g, x: g.Scan(x, num_scan_inputs=2, body=lambda s: s), "build/operands"),
    "a scalar to scan": (lambda g, x: g.Scan(1.0, body=lambda s: s), "build/shape"),
    "a function without a domain": (lambda g, x: g.function("Swish", lambda a: a), "build/function"),
    "a function of the standard": (lambda g, x: g.function("ai.onnx.ml::Swish", lambda a: a), "build/function"),
    "a function with a capture": (lambda g, x: g.function("my::F", lambda a: a + x)(x), "build/tensor"),
}  # fmt: skip


def c(g: Any) -> Any:
    return g.constant(True)


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    call, id_ = REFUSED[case]
    g = onnxsmith.build()
    x = g.input("x", "float32", ["n", 2])
    with pytest.raises(OnnxsmithError) as refused:
        call(g, x)
    assert refused.value.problem.id == id_
    assert "test_control_flow.py:" in refused.value.problem.where
    assert (g.made, x.value.uses()) == ((), ())


def test_a_tensor_of_a_branch_outside() -> None:
    g = onnxsmith.build()
    x = g.input("x", "float32", ["n", 2])
    kept: list[Any] = []
    g.If(c(g), lambda: kept.append(x * 2) or kept[0], lambda: x)
    with pytest.raises(OnnxsmithError, match="inside a branch or a body that has ended"):
        g.Relu(kept[0])


def test_a_function_that_is_another_in_a_later_call() -> None:
    g = onnxsmith.build()
    x = g.input("x", "float32", ["n", 2])
    f = g.function("my::F", lambda a: a * len(a.shape))
    f(x)
    with pytest.raises(OnnxsmithError, match="build/function"):
        f(g.Unsqueeze(x, axes=[0]))


def test_attributes_of_a_function_are_references(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    one, two = (rng.normal(size=(4, 4)).astype(np.float32) for _ in range(2))
    x = rng.normal(size=(2, 3, 4)).astype(np.float32)
    with onnxsmith.build(tmp_path / "m.onnx") as g:

        def attention(x: Any, *, weight: Any, scale: Any = 2.0, perm: Any) -> Any:
            keys = x @ weight
            return g.Softmax(x @ g.Transpose(keys, perm=perm) / scale) @ keys

        block = g.function("my::Attention", attention)
        y = block(g.input("x", "float32", ["n", "t", 4]), weight=one, perm=[0, 2, 1])
        g.output("y", block(y, weight=two, scale=4.0, perm=[0, 2, 1]))
    (function,) = g.model.functions.values()
    assert set(function.attributes) == {"weight", "scale", "perm"}
    refs = {a.ref_attr_name for node in function for a in node.attributes.values() if a.is_ref()}
    assert refs == {"weight", "scale", "perm"}

    def block_of(x: Any, weight: Any, scale: float) -> Any:
        keys = x @ weight
        scores = np.exp(x @ keys.transpose(0, 2, 1) / scale)
        return scores / scores.sum(-1, keepdims=True) @ keys

    found = onnxsmith.run(tmp_path / "m.onnx", {"x": x}).outputs["y"]
    np.testing.assert_allclose(found, block_of(block_of(x, one, 2.0), two, 4.0), rtol=1e-4, atol=1e-5)


def test_attributes_of_a_function_that_do_not_fit() -> None:
    g = onnxsmith.build()
    f = g.function("my::F", lambda a, *, axis, limit=None: g.Softmax(a, axis=axis))
    x = g.constant(np.ones((2, 3), np.float32))
    assert f(x, axis=1).shape == (2, 3)
    for wrong in ({}, {"axes": 1}, {"axis": 1, "more": 2}, {"axis": "one"}):
        with pytest.raises(OnnxsmithError, match="build/attribute"):
            f(x, **wrong)
    h = g.function("my::H", lambda a, *, scale: a * scale)
    h(x, scale=2.0)
    with pytest.raises(OnnxsmithError, match="build/"):
        h(x, scale=2)  # a body with an integer is another body


def test_every_kind_of_attribute_is_a_constant_too(tmp_path: Path) -> None:
    with onnxsmith.build(tmp_path / "m.onnx") as g:

        def all_of(x: Any, *, axes: Any, shift: Any, gains: Any, text: Any) -> Any:
            same = g.StringConcat(text, text)
            y = g.ReduceSum(x, axes=axes, keepdims=0) + g.constant(shift) + g.Cast(g.Size(same), to="float32")
            return y * gains

        x = g.input("x", "float32", [2, 3])
        g.output("y", g.function("my::All", all_of)(x, axes=[1], shift=0.5, gains=[1.0, 2.0], text="a"))
    found = onnxsmith.run(tmp_path / "m.onnx", {"x": np.ones((2, 3), np.float32)}).outputs["y"]
    assert found.tolist() == [4.5, 9.0]
