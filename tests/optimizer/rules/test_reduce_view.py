"""algebra/reduce-view: axes that go after all, and axes that stay."""

from __future__ import annotations

import pytest

from tests.refusals import refuses
from tests.rewrites import assert_left_alone, assert_refused, assert_rewritten

RULE = "algebra/reduce-view"
AXES = """int64[1] one = {1}, int64[2] both = {1, 3}, int64[2] last = {2, 3}, int64[2] flat = {0, 3},
    int64[4] full = {0, 1, 3, 1}"""

REWRITTEN = {
    "Squeeze": ("ReduceMax", "N,4,3,5", "A,B", "a = ReduceMax<axes = [1, 3]>(x)\n y = Squeeze(a, both)"),
    "Reshape": ("ReduceMax", "N,4,3,5", "A,B", "a = ReduceMax<axes = [1, -1]>(x)\n y = Reshape(a, flat)"),
    "Unsqueeze": (
        "ReduceL2",
        "N,4,3,5",
        "A,B,C,D",
        "a = ReduceL2<axes = [1, 3], keepdims = 0>(x)\n y = Unsqueeze(a, both)",
    ),
    "Reshape back": (
        "ReduceMean",
        "N,4,3,5",
        "A,B,C,D",
        "a = ReduceMean<axes = [1, 3], keepdims = 0>(x)\n y = Reshape(a, full)",
    ),
    "ReduceSum": ("ReduceSum", "N,4,3,5", "A,B", "a = ReduceSum(x, both)\n y = Squeeze(a, both)"),
    "a pool": ("ReduceMean", "N,4,H,W", "A,B", "a = GlobalAveragePool(x)\n y = Flatten(a)"),
    "a pool of one axis": ("ReduceMax", "N,4,W", "A,B", "a = GlobalMaxPool(x)\n y = Flatten(a)"),
}


@pytest.mark.parametrize("case", REWRITTEN)
@pytest.mark.parametrize("opset", [13, 18])
def test_rewritten(case: str, opset: int) -> None:
    op, x, y, body = REWRITTEN[case]
    if opset == 18 and "axes = " in body:
        start = body.index("axes = ")
        end = body.index("]", start) + 1
        body = (body[:start] + body[end:].lstrip(", ")).replace("<>", "").replace("(x)", "(x, both)", 1)
    text = f"g (float[{x}] x) => (float[{y}] y) <{AXES}> {{ {body} }}"
    runtime = "onnxruntime" if "MaxPool" in body else "reference"  # whose GlobalMaxPool takes channels together
    result = assert_rewritten(RULE, op, text, opset, runtime)
    assert ("axes" in result.graph.node(0).attributes) == (opset == 13 and op != "ReduceSum")


@refuses(RULE, 1)
def test_another_reader() -> None:
    text = f"""g (float[N,4,3,5] x) => (float[N,4] y, float[A,B,C,D] z) <{AXES}> {{
        a = GlobalAveragePool(x)\n y = Flatten(a)\n z = Mul(x, a) }}"""
    assert_refused(RULE, "used elsewhere", text)


LEFT_ALONE = {
    "some of the axes": f"""g (float[N,4,3,5] x) => (float[A,B,C] y) <{AXES}> {{
        a = ReduceMax<axes = [1, 3]>(x)\n y = Squeeze(a, one) }}""",
    "others": f"""g (float[N,4,3,5] x) => (float[A,B,C,D] y) <{AXES}> {{
        a = ReduceMax<axes = [1, 3], keepdims = 0>(x)\n y = Unsqueeze(a, last) }}""",
}


@pytest.mark.parametrize("case", LEFT_ALONE)
def test_left_alone(case: str) -> None:
    assert_left_alone(RULE, LEFT_ALONE[case])
