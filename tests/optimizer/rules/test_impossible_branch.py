"""control/impossible-branch: ranks that what follows does not take."""

from __future__ import annotations

import pytest

from onnxsmith.graph.files.text import from_text
from onnxsmith.optimizer.simplification_rounds import simplified
from tests.refusals import refuses
from tests.rewrites import assert_left_alone, assert_refused, assert_rewritten, head

RULE = "control/impossible-branch"
WEIGHTS = "int64[1] one = {1}, int64[1] last = {-1}, int64[1] end = {2}, int64 two = {2}, float[3,1] w = {1, 2, 3}"
CONDITION = "s = Shape(x)\n d = Gather(s, end)\n c = Equal(d, one)"
SQUEEZE = """a = If (c) <then_branch = t () => (float[2,n] p) { p = Squeeze(x, last) },
                 else_branch = e () => (float[2,3,m] q) { q = Identity(x) }>"""


def squeezed(rest: str, head: str = "g (float[2,3,T] x) => (float[2,1] y)", more: str = "") -> str:
    return f"{head} <{WEIGHTS}{more}> {{ {CONDITION}\n {SQUEEZE}\n {rest} }}"


@pytest.mark.parametrize("between", ["", "Relu", "Relu Tanh"])
def test_rewritten(between: str) -> None:
    ops = between.split()
    body = "\n ".join(f"a{n + 1} = {op}(a{n})" for n, op in enumerate(ops))
    text = squeezed(f"a0 = Identity(a)\n {body}\n y = Gemm(a{len(ops)}, w)")
    assert_rewritten(RULE, f"Squeeze {between} Gemm", text, runtime="onnxruntime")  # the evaluator's takes any rank


def test_transpose() -> None:
    text = squeezed("y = Transpose<perm = [1, 0]>(a)", "g (float[2,3,T] x) => (float[3,2] y)")
    assert_rewritten(RULE, "Squeeze Transpose", text)


def test_conditions_that_follow() -> None:
    """What torch.nn.LSTM does with batches and single examples, as TorchScript writes it."""
    rest = """z = Shape(a)\n n = Size(z)\n i = Equal(n, two)\n j = Not(i)
        b = If (j) <then_branch = f () => (float[l,2,o] h) { h = Unsqueeze(a, one) },
                    else_branch = k () => (float[2,u] l) { l = Identity(a) }>
        y = Gemm(b, w)"""
    assert_rewritten(RULE, "Squeeze Gemm", squeezed(rest), runtime="onnxruntime")


def test_convolution() -> None:
    text = f"""g (float[2,3,T] x) => (float[2,1,T] y) <{WEIGHTS}, float[1,3,1] v = {{1, 2, 3}}> {{
        {CONDITION}\n {SQUEEZE}\n y = Conv(a, v) }}"""
    result = assert_rewritten(RULE, "Conv", text)
    assert result.graph.node(0).inputs[0] is result.graph.inputs[0]


def test_in_a_branch() -> None:
    text = f"""g (float[2,3,T] x, bool f) => (float[2,1] y) <{WEIGHTS}> {{
        y = If (f) <then_branch = m () => (float[2,1] yes) {{ {CONDITION}\n {SQUEEZE}\n yes = Gemm(a, w) }},
                    else_branch = o () => (float[2,1] no) {{ no = ReduceMax<axes = [1], keepdims = 0>(x) }}>
    }}"""
    assert_rewritten(RULE, "If", text, runtime="onnxruntime")  # the reference evaluator's Gemm takes any rank


LEFT_ALONE = {
    "both ranks will do": squeezed("r = Relu(a)\n y = ReduceMax<keepdims = 0>(r)", "g (float[2,3,T] x) => (float y)"),
    "the same rank": f"""g (float[2,3] x, bool c) => (float[2,1] y) <{WEIGHTS}> {{
        a = If (c) <then_branch = t () => (float[2,3] p) {{ p = Neg(x) }},
                    else_branch = e () => (float[2,3] q) {{ q = Abs(x) }}>\n y = Gemm(a, w) }}""",
    "a condition from outside": f"""g (float[2,3,T] x, bool c) => (float[2,1] y) <{WEIGHTS}> {{
        {SQUEEZE}\n y = Gemm(a, w) }}""",
}


@pytest.mark.parametrize("case", LEFT_ALONE)
def test_left_alone(case: str) -> None:
    assert_left_alone(RULE, LEFT_ALONE[case])


def test_what_fails_may_not_run() -> None:
    text = f"""g (float[2,3,T] x, bool f) => (float y) <{WEIGHTS}> {{
        {CONDITION}\n {SQUEEZE}
        y = If (f) <then_branch = m () => (float yes) {{ g = Gemm(a, w)\n yes = ReduceMax<keepdims = 0>(g) }},
                    else_branch = o () => (float no) {{ no = ReduceMax<keepdims = 0>(a) }}> }}"""
    assert_left_alone(RULE, text)


@refuses(RULE, 1)
def test_neither_branch_leads_to_a_result() -> None:
    text = squeezed(
        "y = Gemm(a, w)\n z = Conv(a, v)",
        "g (float[2,3,T] x) => (float[2,1] y, float[2,1,T] z)",
        ", float[1,3,1] v = {1, 2, 3}",
    )
    _, part = simplified(from_text(head(17) + text))  # no runtime computes it
    assert not [entry for entry in part.fired if entry.rule == RULE]
    assert any(entry.rule == RULE and "neither branch" in entry.why_not for entry in part.refused)


@refuses(RULE, 2)
def test_a_condition_of_another_graph() -> None:
    text = f"""g (float[2,3,T] x, bool f) => (float[2,1] y) <{WEIGHTS}> {{ {CONDITION}
        y = If (f) <then_branch = m () => (float[2,1] yes) {{ {SQUEEZE}\n yes = Gemm(a, w) }},
                    else_branch = o () => (float[2,1] no) {{ no = ReduceMax<axes = [1], keepdims = 0>(x) }}> }}"""
    # the reference evaluator's Gemm takes any rank
    assert_refused(RULE, "outside the graph", text, runtime="onnxruntime")


@refuses(RULE, 2)
def test_an_output() -> None:
    text = squeezed("y = Gemm(a, w)", "g (float[2,3,T] x) => (float[2,1] y, bool[1] c)")
    assert_refused(RULE, "outside the graph", text)
