"""fuse/expand-resize: whole scales along rows and columns."""

from __future__ import annotations

import pytest

from tests.refusals import refusals, refuses
from tests.rewrites import assert_left_alone, assert_refused, assert_rewritten

RULE = "fuse/expand-resize"


def repeated(
    axes: str, expand: str, last: str, x: str = "N,2,3,4", op: str = "Expand", dtype: str = "float", more: str = ""
) -> str:
    count, to = axes.count(",") + 1, expand.count(",") + 1
    return f"""g ({dtype}[{x}] x) => ({dtype}[A,B,C,D] y)
    <int64[{count}] axes = {{{axes}}}, int64[{to}] e = {{{expand}}}, int64[{last.count(",") + 1}] l = {{{last}}}> {{
        a = Unsqueeze(x, axes)\n b = {op}(a, e)\n y = Reshape(b, l)\n {more} }}"""


REWRITTEN = {
    "rows and columns": ("2,3", repeated("3,5", "1,1,1,2,1,3", "0,2,6,12")),
    "Tile": ("2,3", repeated("3,5", "1,1,1,2,1,3", "0,2,6,12", op="Tile")),
    "columns of an unknown number": ("1,3", repeated("4", "1,1,1,1,3", "0,2,3,-1", "N,2,3,W")),
    "two axes behind one": (
        "4,1",
        repeated("3,4", "1,1,1,2,2,1", "0,2,12,4", "N,2,H,4").replace("0,2,12,4", "0,2,-1,4"),
    ),
    "bytes": ("2,2", repeated("3,5", "1,1,1,2,1,2", "0,2,6,8", dtype="uint8")),
}


@pytest.mark.parametrize("case", REWRITTEN)
def test_rewritten(case: str) -> None:
    wanted, text = REWRITTEN[case]
    result = assert_rewritten(RULE, "Resize", text, runtime="onnxruntime")
    scales = result.graph.node(0).inputs[2]
    assert scales is not None
    assert scales.const_value is not None
    assert scales.const_value.numpy().tolist() == [1, 1, *(float(n) for n in wanted.split(","))]


@refuses(RULE, 2)
def test_opset_11() -> None:
    text = repeated("3,5", "1,1,1,2,1,3", "0,2,6,12").replace("Unsqueeze(x, axes)", "Unsqueeze<axes = [3, 5]>(x)")
    assert_rewritten(RULE, "Resize", text, opset=11)
    assert_refused(RULE, "which came with 11", text, opset=10)


REFUSED = {
    "3: double": ("dtype", repeated("3,5", "1,1,1,2,1,3", "0,2,6,12", dtype="double")),
    "1: another reader": (
        "used elsewhere",
        repeated("3,5", "1,1,1,2,1,3", "0,2,6,12", more="z = Neg(b)").replace("D] y)", "D] y, float[E,F,G,H,I,J] z)"),
    ),
}


@pytest.mark.parametrize("case", refusals(RULE, REFUSED))
def test_refused(case: str) -> None:
    assert_refused(RULE, *REFUSED[case])


LEFT_ALONE = {
    "the whole, and not each element": repeated("2,5", "1,1,2,1,1,3", "0,2,6,12"),
    "channels": repeated("2,4", "1,1,2,1,2,1", "0,4,6,4"),
    "merged with the wrong one": repeated("3,5", "1,1,1,2,1,3", "0,2,9,8"),
    "two axes": repeated("1,3", "1,2,1,3", "-1,12", "N,4").replace("[A,B,C,D]", "[A,B]"),
}


@pytest.mark.parametrize("case", LEFT_ALONE)
def test_left_alone(case: str) -> None:
    assert_left_alone(RULE, LEFT_ALONE[case])
