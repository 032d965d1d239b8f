"""fuse/attention: softmax(Q·Kᵀ·scale + mask)·V."""

from __future__ import annotations

import numpy as np
import pytest

import onnxsmith
from onnxsmith.base.report.parts.edits import Simplification
from onnxsmith.base.settings import Verify
from onnxsmith.graph.files.text import from_text
from onnxsmith.optimizer.simplification_rounds import simplified
from onnxsmith.verification.sessions import verify_models
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


LENGTH = "l = Shape<start = 2, end = 3>(q)\n r = Concat<axis = 0>(l, l)"
NUMBERS = "float one = {1}, float low = {-3.4028235e38}, float none = {-inf}, float lot = {-10000}, float zero = {0}"


def through(body: str, head: str = HEAD, more: str = "") -> str:
    """Attention whose scores m become a in the body."""
    return f"""{head} => (float y) <{NUMBERS}{more}> {{ {T}\n m = MatMul(q, t)\n {body}\n p = Softmax(a)
        y = MatMul(p, v) }}"""


def triangle(body: str, fill: str, upper: int = 1, diagonal: int = 1) -> str:
    value = f"value = float[1] {{{fill}}}"
    start = f"{LENGTH}\n w = ConstantOfShape<{value}>(r)\n u = Trilu<upper = {upper}>(w, i)\n "
    return through(start + body, more=f", int64 i = {{{diagonal}}}")


def padded(body: str, length: str = "5") -> str:
    """A mask of one row for each query, as transformers makes it: 1 where a key is shown."""
    head = f"g (float[2,2,{length},4] q, int64[2,1,1,{length}] c)"
    return through(f"f = Cast<to = 1>(c)\n h = Sub(one, f)\n {body}", head)


CAUSAL = ", bool[1,1,9,9] tri = {" + ", ".join(str(int(j <= i)) for i in range(9) for j in range(9)) + "}"
CUT = "l = Shape<start = 2, end = 3>(q)\n s = Slice(tri, o, l, second)\n e = Slice(s, o, l, third)\n "
CUT_FROM = CAUSAL + ", int64[1] o = {0}, int64[1] second = {2}, int64[1] third = {3}"
RANKS = f"""{LENGTH}\n h = Squeeze(l)\n j = Range(o, h, d)\n e = Add(j, d)\n f = Unsqueeze(e, d)\n """
MASKS = {
    "bert": padded("b = Mul(h, lot)\n a = Add(m, b)"),
    "older transformers": padded("b = Mul(h, low)\n a = Add(m, b)"),
    "masked_fill with the lowest number": padded("e = Cast<to = 9>(c)\n a = Where(e, m, low)"),
    "a mask filled, then added": padded("e = Cast<to = 9>(h)\n b = Where(e, low, h)\n a = Add(m, b)"),
    "gpt2": padded(CUT + "w = Where(e, m, low)\n b = Mul(h, low)\n a = Add(w, b)").replace(
        NUMBERS, NUMBERS + CUT_FROM
    ),
    "gpt2, the padding first": padded(CUT + "b = Mul(h, low)\n w = Add(m, b)\n a = Where(e, w, none)").replace(
        NUMBERS, NUMBERS + CUT_FROM
    ),
    "two masks summed": padded("u = Mul(h, low)\n b = Add(u, g)\n a = Add(m, b)", "3").replace(
        NUMBERS, NUMBERS + ", float[3,3] g = {0, -3.4028235e38, -3.4028235e38, 0, 0, -3.4028235e38, 0, 0, 0}"
    ),
    "a slice of a causal mask": through(CUT + "a = Where(e, m, none)", more=CUT_FROM),
    "nanogpt": through(CUT + "f = Cast<to = 1>(e)\n z = Equal(f, zero)\n a = Where(z, none, m)", more=CUT_FROM),
    "a triangle of numbers": triangle("a = Add(m, u)", "-inf"),
    "a triangle that fills": triangle("c = Cast<to = 9>(u)\n a = Where(c, none, m)", "1.0"),
    "a lower triangle that keeps": triangle("c = Cast<to = 9>(u)\n a = Where(c, m, none)", "1.0", 0, 0),
    "positions that are compared": through(
        RANKS + "c = Less(j, f)\n z = Where(c, zero, low)\n a = Add(m, z)", more=", int64 o = {0}, int64 d = {1}"
    ).replace("Unsqueeze(e, d)", "Unsqueeze(e, n)").replace("int64 d = {1}", "int64 d = {1}, int64[1] n = {1}"),
    "the lowest number, where NaN become zeros": masked(low="-3.4e38"),
}  # fmt: skip


@pytest.mark.parametrize("runtime", ["reference", "onnxruntime"])
@pytest.mark.parametrize("case", MASKS)
def test_masks(case: str, runtime: str) -> None:
    model = from_text(head(23) + MASKS[case])
    made, part = simplified(model)
    assert [entry for entry in part.fired if entry.rule == RULE], part.refused
    assert verify_models(model, made, Verify(runtime=runtime, sizes={"N": 2, "S": 5})).equal


HIDING = {
    "a row of the lowest number": "older transformers",
    "a row that is filled": "masked_fill with the lowest number",
    "a row that the padding and the future hide": "gpt2",
    "a row that is filled later": "a mask filled, then added",
    "a row of two masks": "two masks summed",
}


@pytest.mark.parametrize("case", HIDING)
@pytest.mark.parametrize("runtime", ["reference", "onnxruntime"])
def test_a_query_from_which_all_keys_are_hidden_gets_what_it_got(case: str, runtime: str) -> None:
    model = from_text(head(23) + MASKS[HIDING[case]])
    made, _ = simplified(model)
    length = model.graph.inputs[0].shape[2]
    shown = np.zeros((2, 1, 1, length), np.int64)
    shown[1, ..., 1:] = 1
    q = np.random.default_rng(0).normal(size=(2, 2, length, 4)).astype(np.float32)
    one, two = (onnxsmith.run(each, {"q": q, "c": shown}, runtime=runtime).outputs["y"] for each in (model, made))
    np.testing.assert_allclose(one, two, rtol=1e-4, atol=1e-6)


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
    "5: a mask that fills with -inf": ("NaN there", padded("e = Cast<to = 9>(c)\n a = Where(e, m, none)")),
    "5: a triangle without its diagonal": ("hide all", triangle("a = Add(m, u)", "-inf", 1, 0)),
    "5: two masks with -inf": ("two masks together", padded("w = Where(e, m, none)\n a = Add(w, g)", "2").replace(
        NUMBERS, NUMBERS + ", bool[2,2] e = {1, 0, 1, 1}, float[2,2] g = {-inf, 0, 0, 0}")),
    "5: two masks that overflow, and NaN become zeros": ("two masks together may overflow", padded(
        "b = Mul(h, low)\n u = Add(m, b)\n a = Add(u, g)", "2").replace("y = MatMul(p, v)", GUARD + "y = MatMul(w, v)")
        .replace(NUMBERS, NUMBERS + ", float[2,2] g = {-3.4028235e38, 0, 0, 0}")),
    "6: a number that scores may reach": ("a score of -10000 may not hide", padded(
        "e = Cast<to = 9>(c)\n a = Where(e, m, lot)")),
    "4: inputs with one name for two sizes": ("inputs may have two sizes for S (a size of S, given", padded(
        "b = Mul(h, lot)\n a = Add(m, b)", "S")),
    "5: a mask that is an input": ("hide all", f"""g (float[N,2,7,4] q, float[7,7] b) => (float y) {{ {T}
        m = MatMul(q, t)\n a = Add(m, b)\n p = Softmax(a)\n y = MatMul(p, v) }}"""),
    "5: a row that is hidden": ("hide all", REWRITTEN["a constant mask"][1].replace("{0, -inf,", "{-inf, -inf,")),
    "4: a column that broadcasts": ("a column for each key", masked("1,1,7,1")),
    "4: a mask that widens the batch": ("batch or heads", f"""g (float[1,2,2,4] q) => (float y)
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
