"""fuse/attention: softmax(Q·Kᵀ·scale + mask)·V."""

from __future__ import annotations

import pytest

import onnxsmith
from onnxsmith.model.files.text import from_text
from onnxsmith.report.parts.simplification import Simplification
from onnxsmith.settings import Verify
from tests.refusals import refusals, refuses
from tests.rewrites import assert_left_alone, assert_refused, assert_rewritten, head

RULE = "fuse/attention"
KV = "k = Abs(q)\n v = Tanh(q)"
T = f"{KV}\n t = Transpose<perm = [0, 1, 3, 2]>(k)"
HEAD = "g (float[N,2,S,4] q)"
MASKED = f"""g (float[N,2,S,4] q, bool[SHAPE] c) => (float y) <float zero = {{0}}, float low = {{LOW}}> {{
    {T}\n m = MatMul(q, t)\n b = Where(c, zero, low)\n a = Add(m, b)\n p = Softmax(a)\n GUARD y = MatMul(w, v) }}"""
GUARD = "n = IsNaN(p)\n w = Where(n, zero, p)\n"


def masked(shape: str = "1,1,7,7", low: str = "-inf", guard: str = GUARD) -> str:
    text = MASKED.replace("SHAPE", shape).replace("LOW", low).replace("GUARD", guard)
    return text.replace("float[N,2,S,4] q", "float[N,2,7,4] q")


REWRITTEN = {
    "as it is": ("Abs Tanh Attention", f"""{HEAD} => (float y) {{ {T}\n m = MatMul(q, t)\n p = Softmax(m)
        y = MatMul(p, v) }}"""),
    "divided": ("Abs Tanh Attention", f"""{HEAD} => (float y) <float two = {{2}}> {{ {T}\n m = MatMul(q, t)
        d = Div(m, two)\n p = Softmax<axis = 3>(d)\n y = MatMul(p, v) }}"""),
    "heads behind the sequence": ("Transpose Tanh Abs Attention", """g (float[N,S,2,4] x) => (float y) {
        q = Transpose<perm = [0, 2, 1, 3]>(x)\n k = Abs(x)\n v = Tanh(q)\n t = Transpose<perm = [0, 2, 3, 1]>(k)
        m = MatMul(q, t)\n p = Softmax(m)\n y = MatMul(p, v) }"""),
    "a choice of 0 and -inf": ("Abs Tanh Where Attention", masked()),
    "one row for all queries": ("Abs Tanh Where Expand Attention", masked("1,1,1,7")),
    "a constant mask": ("Abs Tanh Attention", f"""g (float[N,2,2,4] q) => (float y)
        <float[2,2] b = {{0, -inf, 0, 0}}> {{ {T}\n m = MatMul(q, t)\n a = Add(b, m)\n p = Softmax(a)
        y = MatMul(p, v) }}"""),
}  # fmt: skip


@pytest.mark.parametrize("runtime", ["reference", "onnxruntime"])
@pytest.mark.parametrize("case", REWRITTEN)
def test_rewritten(case: str, runtime: str) -> None:
    # kernels refuse an empty batch, which the graph takes: `test_an_empty_batch_is_kept`
    assert_rewritten(RULE, *REWRITTEN[case], opset=23, runtime=runtime, known={"N": 2, "S": 5})


def test_an_empty_batch_is_kept() -> None:
    model = from_text(head(23) + REWRITTEN["as it is"][1])
    result = onnxsmith.simplify(model, verify=Verify(runtime="onnxruntime"))
    assert result.ok
    assert any(RULE in str(one) for one in result.report.part(Simplification).switched_off)


PLAIN = REWRITTEN["as it is"][1]
REFUSED = {
    "2: a softmax that is read": ("used elsewhere", PLAIN.replace("float y)", "float y, float p)")),
    "3: heads of another input": ("provably the same", """g (float[N,2,S,4] q, float[N,2,S,4] k) => (float y) {
        t = Transpose<perm = [0, 1, 3, 2]>(k)\n m = MatMul(q, t)\n p = Softmax(m)\n y = MatMul(p, k) }"""),
    "3: three axes": ("four axes", """g (float[N,4,4] q) => (float y) {
        k = Abs(q)\n t = Transpose<perm = [0, 2, 1]>(k)\n m = MatMul(q, t)\n p = Softmax(m)\n y = MatMul(p, k) }"""),
    "4: one row for an unknown number of queries": ("a row for each query", masked("1,1,1,7").replace(
        "float[N,2,7,4] q", "float[1,2,S,4] q, float[1,2,7,4] k").replace(KV, "v = Tanh(k)")),
    "5: nothing where all is hidden": ("hide all", masked(guard="w = Identity(p)\n")),
    "5: a mask of large numbers": ("hide all", masked(low="-3.4e38")),
    "5: a mask that is an input": ("hide all", f"""g (float[N,2,7,4] q, float[7,7] b) => (float y) {{ {T}
        m = MatMul(q, t)\n a = Add(m, b)\n p = Softmax(a)\n y = MatMul(p, v) }}"""),
    "5: a row that is hidden": ("hide all", REWRITTEN["a constant mask"][1].replace("{0, -inf,", "{-inf, -inf,")),
    "4: a column that broadcasts": ("a column for each key", masked("1,1,7,1")),
    "4: a mask that widens the batch": ("batch and heads", f"""g (float[1,2,2,4] q) => (float y)
        <float[5,1,2,2] b = {{{", ".join("1234" * 5)}}}> {{ {T}\n m = MatMul(q, t)\n a = Add(m, b)\n p = Softmax(a)
        y = MatMul(p, v) }}"""),
}  # fmt: skip


@pytest.mark.parametrize("case", refusals(RULE, REFUSED))
def test_refused(case: str) -> None:
    assert_refused(RULE, *REFUSED[case], opset=23)


@refuses(RULE, 1)
def test_an_opset_without_it() -> None:
    assert_refused(RULE, "opset 22", PLAIN, opset=22)


LEFT_ALONE = {
    "another axis": PLAIN.replace("Softmax", "Softmax<axis = 2>"),
    "half precision": PLAIN.replace("float", "float16"),
    "a scale for each head": f"""{HEAD} => (float y) <float[2,1,1] h = {{1, 2}}> {{ {T}\n m = MatMul(q, t)
        d = Mul(m, h)\n p = Softmax(d)\n y = MatMul(p, v) }}""",
    "a negative scale": f"""{HEAD} => (float y) <float h = {{-2}}> {{ {T}\n m = MatMul(q, t)
        d = Mul(m, h)\n p = Softmax(d)\n y = MatMul(p, v) }}""",
    "a scale that raises the rank": f"""g (float[N,2,S,4] q) => (float y) <float[1,1,1,1,1] h = {{2}}> {{
        {T}\n m = MatMul(q, t)\n d = Mul(m, h)\n p = Softmax(d)\n y = MatMul(p, v) }}""",
    "zeros that widen the batch": masked(guard=GUARD.replace("zero", "zeros"))
    .replace("float zero", "float[5,1,1,1] zeros = {0, 0, 0, 0, 0}, float zero")
    .replace("[N,2", "[1,2"),
}


@pytest.mark.parametrize("case", LEFT_ALONE)
def test_left_alone(case: str) -> None:
    assert_left_alone(RULE, LEFT_ALONE[case], opset=23)
