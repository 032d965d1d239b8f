"""algebra/zero-state: recurrent layers that are given the zeros that they start from."""

from __future__ import annotations

import pytest

from tests.rewrites import assert_left_alone, assert_rewritten

RULE = "algebra/zero-state"

LSTM = """g (float[T,N,1] x) => (float y, float h)
<float[1,4,1] w = {1, 2, 3, 4}, float[1,4,1] r = {1, 2, 3, 4}, float[1,8] b = {0, 0, 0, 0, 0, 0, 0, 0},
 float[1,1,1] z = {0}, float[1,1,1] o = {1}, int64[1] one = {1}> {
    n = Shape<start = 1, end = 2>(x)\n s = Concat<axis = 0>(one, n, one)\n zeros = Expand(z, s)\n ones = Expand(o, s)
    y, h = LSTM<hidden_size = 1>(CALL) }"""


@pytest.mark.parametrize(
    ("call", "ops", "inputs"),
    [
        ("x, w, r, , , zeros, zeros", "LSTM", 3),
        ("x, w, r, b, , zeros, zeros", "LSTM", 4),
        ("x, w, r, , , zeros, ones", "Shape Concat Expand LSTM", 7),
        ("x, w, r, , , ones, zeros", "Shape Concat Expand LSTM", 6),
        ("x, w, r, , , ones, ones", None, 7),
    ],
)
def test_what_is_zero_is_left_out(call: str, ops: str | None, inputs: int) -> None:
    text = LSTM.replace("CALL", call)
    if ops is None:
        assert_left_alone(RULE, text)
        return
    result = assert_rewritten(RULE, ops, text)
    assert len(result.graph[-1].inputs) == inputs


def test_an_output_that_is_not_there_stays_away() -> None:
    text = LSTM.replace("CALL", "x, w, r, , , zeros").replace("float y, float h", "float h").replace("y, h =", ", h =")
    result = assert_rewritten(RULE, "LSTM", text)
    assert [value.name for value in result.graph[-1].outputs] == ["", "h"]
    assert result.graph.outputs[0].name == "h"
