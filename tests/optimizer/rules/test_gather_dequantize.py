"""algebra/gather-dequantize: rows of a quantised table, with one scale and with one for each column."""

from __future__ import annotations

import pytest

from tests.refusals import refusals
from tests.rewrites import assert_left_alone, assert_refused, assert_rewritten

RULE = "algebra/gather-dequantize"
T = "int8[3,2] t = {1, -2, 3, 4, -5, 6}"
ONE = "float s = {0.5}, int8 z = {1}"
COLUMNS = "float[2] s = {0.5, 0.25}, int8[2] z = {1, -3}"
ROWS = "float[3] s = {0.5, 0.25, 2}, int8[3] z = {1, -3, 0}"


def text(body: str, constants: str = ONE, table: str = T, out: str = "") -> str:
    return f"g (int64[N,M] i) => (float y{out}) <{table}, {constants}> {{ {body} }}".replace(
        "(float y", "(float[A,B,C] y"
    )


def test_one_scale() -> None:
    assert_rewritten(
        RULE, "Gather DequantizeLinear", text("d = DequantizeLinear(t, s, z)\n y = Gather(d, i)"), opset=21
    )


def test_a_scale_for_each_column() -> None:
    body = "d = DequantizeLinear<axis = 1>(t, s, z)\n y = Gather(d, i)"
    result = assert_rewritten(RULE, "Gather DequantizeLinear", text(body, COLUMNS), opset=21)
    assert result.graph.node(1).attributes["axis"].as_int() == 2


def test_columns_of_rows_with_a_scale() -> None:
    body = "d = DequantizeLinear<axis = 0>(t, s, z)\n y = Gather<axis = 1>(d, i)"
    result = assert_rewritten(RULE, "Gather DequantizeLinear", text(body, ROWS), opset=21)
    assert result.graph.node(1).attributes["axis"].as_int() == 0


REFUSED = {
    "1: read elsewhere": (
        "used elsewhere",
        text("d = DequantizeLinear(t, s, z)\n y = Gather(d, i)\n w = Relu(d)", out=", float[P,Q] w"),
    ),
    "2: each row": ("scale of its own", text("d = DequantizeLinear<axis = 0>(t, s, z)\n y = Gather(d, i)", ROWS)),
    "3: quantised again": (
        "quantised again",
        text(
            "d = DequantizeLinear(t, s, z)\n g = Gather(d, i)\n q = QuantizeLinear(g, s, z)\n"
            " y = DequantizeLinear(q, s, z)"
        ),
    ),
}


@pytest.mark.parametrize("case", refusals(RULE, REFUSED))
def test_refused(case: str) -> None:
    assert_refused(RULE, *REFUSED[case], runtime="onnxruntime")


def test_other_dtypes() -> None:
    table, constants = "int32[3,2] t = {1, -2, 3, 4, -5, 6}", "float s = {0.5}"
    assert_left_alone(RULE, text("d = DequantizeLinear(t, s)\n y = Gather(d, i)", constants, table), opset=21)
