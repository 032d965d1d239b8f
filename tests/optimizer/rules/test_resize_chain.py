"""algebra/resize-chain: two Resizes that repeat elements are one."""

from __future__ import annotations

import pytest

from tests.refusals import refuses
from tests.rewrites import assert_left_alone, assert_refused, assert_rewritten

RULE = "algebra/resize-chain"
HOW = 'mode = "nearest", coordinate_transformation_mode = "asymmetric", nearest_mode = "floor"'


def text(
    first: str = HOW, second: str = HOW, scales: str = "1, 1, 3, 2", more: str = "", out: str = "", roi: str = ""
) -> str:
    return f"""g (float[N,2,H,W] x) => (float[N,2,A,B] y{out})
        <float[4] s = {{1, 1, 2, 1}}, float[4] t = {{{scales}}}, float[0] roi = {{}}> {{
            a = Resize<{first}>(x, {roi}, s)\n y = Resize<{second}>(a, {roi}, t)\n {more} }}"""


def test_scales_multiply() -> None:
    result = assert_rewritten(RULE, "Resize", text())
    scales = result.graph.node(0).inputs[2]
    assert scales is not None
    assert scales.const_value is not None
    assert scales.const_value.numpy().tolist() == [1, 1, 6, 2]


def test_before_opset_13() -> None:
    assert_rewritten(RULE, "Resize", text(roi="roi"), opset=12, runtime="onnxruntime")


@refuses(RULE, 1)
def test_read_elsewhere() -> None:
    assert_refused(RULE, "used elsewhere", text(more="z = Relu(a)", out=", float[N,2,C,D] z"))


@pytest.mark.parametrize(
    "case",
    [
        text(first='mode = "linear"'),
        text(second='mode = "nearest"'),
        text(second=HOW.replace("floor", "ceil")),
        text(scales="1, 1, 1.5, 2"),
        text(scales="1, 1, 0.5, 1"),
        text(scales="1, 1, 1000, 1"),
    ],
)
def test_no_match(case: str) -> None:
    # the last case has a thousand times as many elements: at the default sizes that takes half a minute
    assert_left_alone(RULE, case, runtime="onnxruntime", known={"N": 2, "H": 3, "W": 5})
