"""Tensors of one number."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.shapes.inference import Inference
from onnxsmith.graph.shapes.uniform_tensors import uniform

HEAD = '<ir_version: 10, opset_import: ["": 20]>\n'
SHAPE = "s = Shape(x)\n o = ConstantOfShape<value = int64[1] {1}>(s)\n p = Gather(s, i)\n r = Range(z, p, i)\n"
CONSTANTS = "int64 z = {0}, int64 i = {1}, int64[1] a = {0}, float half = {0.5}, bool true = {1}, int64 m = {-1}"
CASES: dict[str, tuple[str, object]] = {
    "a shape of ones": ("y = Identity(o)", 1),
    "zeros by default": ("y = ConstantOfShape(s)", 0.0),
    "other shapes": ("b = Unsqueeze(o, a)\n c = Expand(b, s)\n d = Transpose(c)\n y = Slice(d, a, a)", 1),
    "taken from it": ("y = Gather(o, r)", 1),
    "as a float": ("y = Cast<to = 1>(o)", 1.0),
    "as a bool": ("y = Cast<to = 9>(o)", True),
    "what a cast would lose": ("y = Cast<to = 7>(half)", None),
    "never below zero": ("y = GreaterOrEqual(r, z)", True),
    "never below itself": ("y = Less(r, r)", None),
    "always below one more": ("t = Sub(z, i)\n y = Less(r, t)", False),
    "at least the least": ("t = Sub(z, i)\n y = LessOrEqual(t, r)", True),
    "not above": ("t = Sub(z, i)\n y = Greater(t, r)", False),
    "the other way": ("n = Mul(r, m)\n y = GreaterOrEqual(z, n)", True),
    "a condition": ("c = GreaterOrEqual(r, z)\n y = Where(c, half, x)", 0.5),
    "both the same": ("c = Cast<to = 9>(x)\n y = Where(c, half, half)", 0.5),
    "two numbers": ("c = Cast<to = 9>(x)\n d = Cast<to = 1>(o)\n y = Where(c, half, d)", None),
    "and": ("c = Cast<to = 9>(x)\n n = Not(true)\n y = And(c, n)", False),
    "or": ("c = Cast<to = 9>(x)\n y = Or(true, c)", True),
    "unknown": ("c = Cast<to = 9>(x)\n y = And(true, c)", None),
    "put together": ("y = Concat<axis = 0>(o, o)", 1),
    "put together, not the same": ("y = Concat<axis = 0>(o, s)", None),
    "the larger": ("y = Max(o, o)", 1),
    "times zero": ("y = Mul(z, s)", 0),
    "times a zero that may meet NaN": ("f = Cast<to = 1>(z)\n y = Mul(x, f)", None),
}


def number(text: str) -> object:
    model = from_text(f"{HEAD}g (float[n,t] x) => (float y) <{CONSTANTS}> {{ {SHAPE} {text} }}")
    for node in model.graph:
        for value in node.outputs:
            value.type, value.shape = None, None
    Inference(model)
    return uniform(model.graph.outputs[0])


@pytest.mark.parametrize("case", CASES)
def test_found(case: str) -> None:
    text, expected = CASES[case]
    found = number(text)
    assert found == expected
    assert type(found) is type(expected)


def test_resized_to_the_nearest() -> None:
    text = 'f = ConstantOfShape(s)\n k = Shape(x)\n y = Resize<mode = {!r}>(f, "", "", k)'
    assert number(text.format("nearest").replace("'", '"')) == 0.0
    assert number(text.format("cubic").replace("'", '"')) is None


@pytest.mark.parametrize(("values", "expected"), [("", None), ("2, 2", 2.0), ("2, 3", None)])
def test_constants(values: str, expected: float | None) -> None:
    size = len([part for part in values.split(",") if part])
    text = f"g (float x) => (float y) <float[{size}] w = {{{values}}}> {{ y = Add(x, w) }}"
    assert uniform(from_text(HEAD + text).graph.initializers["w"]) == expected


def test_what_is_not_a_number_is_none() -> None:
    model = from_text(HEAD + "g (float x) => (float y) <float[2] w = {0, 0}> { y = Add(x, w) }")
    value = model.graph.initializers["w"]
    value.const_value = ir.tensor(np.full(2, np.nan, np.float32))
    assert uniform(value) is None


@pytest.mark.parametrize(
    ("last", "expected"), [("v = Identity(i)", 1), ("v = Identity(m)", None), ("v = Neg(i)", None)]
)
def test_either_branch(last: str, expected: int | None) -> None:
    text = f"""g (bool k) => (int64 y) <{CONSTANTS}> {{
        y = If (k) <then_branch = t () => (int64 u) {{ u = Identity(i) }},
                    else_branch = e () => (int64 v) {{ {last} }}> }}"""
    assert uniform(from_text(HEAD + text).graph.outputs[0]) == expected


@pytest.mark.parametrize(
    ("op", "expected"), [("Equal", False), ("Less", True), ("LessOrEqual", True), ("Greater", False)]
)
def test_two_numbers(op: str, expected: bool) -> None:
    assert number(f"f = Cast<to = 1>(z)\n y = {op}(f, half)") is expected
