"""A single bool may decide a branch: both values are tried, also where one branch refuses every input."""

from __future__ import annotations

import onnx_ir as ir
import pytest
from onnx import parser

from onnxsmith.verification.sessions import verify_models

FAILS, WORKS = "r = Reshape(x, t) u = ReduceSum<keepdims = 0>(r)", "q = Relu(x) u = ReduceSum<keepdims = 0>(q)"


def model(then: str, other: str, shape: str = "bool") -> ir.Model:
    branches = f"<then_branch = a () => (float u) {{ {then} }}, else_branch = b () => (float v) {{ {other} }}>"
    text = f'<ir_version: 8, opset_import: ["": 17]> g ({shape} c, float[n,4] x) => (float y) <int64[2] t = {{3, 5}}>'
    return ir.from_proto(parser.parse_model(f"{text} {{ y = If (c) {branches} }}"))


def renamed(text: str) -> str:
    return text.replace("u = ", "v = ").replace("(r)", "(p)").replace("r = ", "p = ").replace("q", "w")


@pytest.mark.parametrize("shape", ["bool", "bool[1]"])
def test_both_values_are_tried(shape: str) -> None:
    one = model(WORKS, renamed(FAILS.replace("{3, 5}", "")), shape)
    found = verify_models(one, one)
    assert found.equal
    both = model(WORKS, "w = Neg(x) v = ReduceSum<keepdims = 0>(w)", shape)
    runs = verify_models(both, both).runs
    assert any("c:=0" in run for run in runs)
    assert any("c:=1" in run for run in runs)


def test_a_difference_in_the_other_branch_is_found() -> None:
    right = model(WORKS, "w = Neg(x) v = ReduceSum<keepdims = 0>(w)")
    wrong = model(WORKS, "w = Abs(x) v = ReduceSum<keepdims = 0>(w)")
    assert verify_models(right, wrong).differs


@pytest.mark.parametrize("first", [True, False])
def test_a_branch_that_refuses_every_input_is_left(first: bool) -> None:
    one = model(FAILS, renamed(WORKS)) if first else model(WORKS, renamed(FAILS))
    found = verify_models(one, one)
    assert found.equal
    assert any(f"c = {int(first)}" in note and "refused" in note for note in found.notes), found.notes
