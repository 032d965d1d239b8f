"""Each kind of operator sums as many terms as its definition says; what the file does not say counts as 1024."""

from __future__ import annotations

import pytest

from onnxsmith.graph.files.text import from_text
from onnxsmith.verification.rounding_terms import UNKNOWN, own

HEAD = '<ir_version: 10, opset_import: ["": 20, "own": 1]>\n'
LSTM = """g (float[s,1,5] x, float[1,12,{columns}] w, float[1,12,3] r) => (float[s,1,1,3] y)
    {{ y = LSTM<hidden_size = 3>(x, w, r) }}"""
TERMS = {
    "Conv": (
        "g (float[1,4,9,9] x, float[8,2,3,5] w) => (float[1,8,7,5] y) { y = Conv<group = 2>(x, w) }",
        2 * 3 * 5,
    ),
    "Conv of an unknown weight": (
        "g (float[1,4,9,9] x, float[8,n,3,5] w) => (float[1,8,7,5] y) { y = Conv(x, w) }",
        UNKNOWN,
    ),
    "ConvTranspose": (
        "g (float[1,6,9,9] x, float[6,2,3,5] w) => (float[1,2,11,13] y) { y = ConvTranspose(x, w) }",
        6 * 3 * 5,
    ),
    "ConvTranspose of an unknown weight": (
        "g (float[1,6,9,9] x, float[6,n,3,5] w) => (float[1,2,11,13] y) { y = ConvTranspose(x, w) }",
        UNKNOWN,
    ),
    "MatMul": ("g (float[2,7] x, float[n,3] w) => (float[2,3] y) { y = MatMul(x, w) }", 7),
    "MatMul, known on the right": ("g (float[2,n] x, float[7,3] w) => (float[2,3] y) { y = MatMul(x, w) }", 7),
    "MatMul, not known": ("g (float[2,n] x, float[n,3] w) => (float[2,3] y) { y = MatMul(x, w) }", UNKNOWN),
    "MatMul of a vector": ("g (float[7] x, float[7,3] w) => (float[3] y) { y = MatMul(x, w) }", 7),
    "Gemm": ("g (float[2,7] x, float[7,3] w) => (float[2,3] y) { y = Gemm(x, w) }", 7),
    "Gemm, transA": ("g (float[7,2] x, float[7,3] w) => (float[2,3] y) { y = Gemm<transA = 1>(x, w) }", 7),
    "Gemm, transA = 0": ("g (float[2,7] x, float[7,3] w) => (float[2,3] y) { y = Gemm<transA = 0>(x, w) }", 7),
    "Gemm, transB": ("g (float[2,n] x, float[3,7] w) => (float[2,3] y) { y = Gemm<transB = 1>(x, w) }", 7),
    "Gemm, transB = 0": ("g (float[2,n] x, float[7,3] w) => (float[2,3] y) { y = Gemm<transB = 0>(x, w) }", 7),
    "Attention": ("g (float[1,2,4,8] q) => (float[1,2,4,8] y) { y = Attention(q, q, q) }", 3 * UNKNOWN),
    "LSTM": (LSTM.format(columns=5), (5 + 3) * 64),
    "LSTM of an unknown weight": (LSTM.format(columns="n"), UNKNOWN * 64),
    "ReduceSum": ("g (float[4,6] x, int64[1] a) => (float[4,1] y) { y = ReduceSum(x, a) }", 6),
    "ReduceSum of an open axis": ("g (float[4,n] x, int64[1] a) => (float[4,1] y) { y = ReduceSum(x, a) }", UNKNOWN),
    "ReduceSum to nothing": ("g (float[0,6] x, int64[1] a) => (float[0,1] y) { y = ReduceSum(x, a) }", UNKNOWN),
    "ReduceSum of one": ("g (float[4,1] x, int64[1] a) => (float[4,1] y) { y = ReduceSum(x, a) }", 1),
    "ReduceSum of an axis without elements": (
        "g (float[4,0] x, int64[1] a) => (float[4,1] y) { y = ReduceSum(x, a) }",
        1,
    ),
    "GlobalAveragePool": ("g (float[1,2,5,7] x) => (float[1,2,1,1] y) { y = GlobalAveragePool(x) }", 35),
    "Softmax": ("g (float[2,n,9] x) => (float[2,n,9] y) { y = Softmax(x) }", 9),
    "Softmax of an open axis": ("g (float[2,n] x) => (float[2,n] y) { y = Softmax(x) }", UNKNOWN),
    "Softmax of a scalar": ("g (float x) => (float y) { y = Softmax(x) }", UNKNOWN),
    "CumSum": ("g (float[4] x, int64 a) => (float[4] y) { y = CumSum(x, a) }", UNKNOWN),
    "Add": ("g (float[4] x) => (float[4] y) { y = Add(x, x) }", 1),
}


@pytest.mark.parametrize("kind", TERMS)
def test_a_node_sums_the_terms_of_its_definition(kind: str) -> None:
    text, terms = TERMS[kind]
    model = from_text(HEAD + text)
    assert own(next(iter(model.graph)), model) == (terms, 1)


BODIES = {
    "the costlier branch": (
        """g (float[4] x, bool c) => (float[4] y) { y = If(c) <
            then_branch = t () => (float[4] a) { b = Neg(x) a = Neg(b) },
            else_branch = e () => (float[4] d) { d = Neg(x) }> }""",
        (2, 2),
    ),
    "64 trips of a Loop": (
        """g (float[2,5] x, float[5,5] w, int64 m, bool c) => (float[2,5] y) { y = Loop(m, c, x) <
            body = b (int64 i, bool more, float[2,5] s) => (bool again, float[2,5] n) {
                again = Identity(more) n = MatMul(s, w) }> }""",
        (6 * 64, 2 * 64),
    ),
    "64 trips of a Scan": (
        """g (float[4,3] x) => (float[4,3] y) { y = Scan<num_scan_inputs = 1,
            body = b (float[3] s) => (float[3] n) { n = Mul(s, s) }>(x) }""",
        (64, 64),
    ),
    "a function": (
        """g (float[2,5] x, float[5,5] w) => (float[2,5] y) { y = own.twice(x, w) }
        <domain: "own", opset_import: ["": 20]> twice (a, k) => (b) { c = Add(a, k) d = Neg(c) b = Neg(d) }""",
        (3, 3),
    ),
}


@pytest.mark.parametrize("kind", BODIES)
def test_a_node_with_a_body_sums_what_its_body_sums(kind: str) -> None:
    text, expected = BODIES[kind]
    model = from_text(HEAD + text)
    assert own(next(iter(model.graph)), model) == expected
