"""Before a quantiser no rewrite reassociates, unless it was asked for."""

from __future__ import annotations

import pytest

from onnxsmith.base.report.parts.edits import Simplification
from onnxsmith.graph.files.text import from_text
from onnxsmith.optimizer.simplification_rounds import simplified

RULE = "fuse/reciprocal-div"
HEAD = '<ir_version: 10, opset_import: ["": 21, "own": 1]>\n'
ROOT = "r = Sqrt(v)\n i = Reciprocal(r)\n m = Mul(x, i)\n"
X = "float[N,4] x, float[N,1] v, bool c"


def part(text: str, exactness: str | None = None) -> Simplification:
    return simplified(from_text(HEAD + text), exactness=exactness)[1]


def fired(found: Simplification) -> bool:
    return any(entry.rule == RULE for entry in found.fired)


REACHING = {
    "a dynamic quantiser": f"g ({X}) => (uint8[N,4] y) {{ {ROOT} y, s, z = DynamicQuantizeLinear(m) }}",
    "a quantiser": f"g ({X}) => (uint8[N,4] y) <float s = {{0.1}}> {{ {ROOT} y = QuantizeLinear(m, s) }}",
    "its scale": f"""g ({X}) => (uint8[N,4] y) {{ {ROOT}
        s = ReduceMax<keepdims = 0>(m)\n y = QuantizeLinear(x, s) }}""",
    "Round": f"g ({X}) => (float[N,4] y) {{ {ROOT} y = Round(m) }}",
    "a Cast to integers": f"g ({X}) => (int64[N,4] y) {{ {ROOT} y = Cast<to = 7>(m) }}",
    "operators between": f"""g ({X}) => (float[N,4] y) <float s = {{0.1}}> {{ {ROOT}
        a = Tanh(m)\n b = Add(a, x)\n q = QuantizeLinear(b, s)\n y = DequantizeLinear(q, s) }}""",
    "one of two ways": f"""g ({X}) => (float[N,4] y, float[N,4] w) <float s = {{0.1}}> {{ {ROOT}
        w = Tanh(m)\n q = QuantizeLinear(m, s)\n y = DequantizeLinear(q, s) }}""",
    "a quantiser in a branch": f"""g ({X}) => (float[N,4] y) {{ {ROOT}
        y = If(c) <then_branch = a () => (float[N,4] p) {{ p = Round(m) }},
                   else_branch = b () => (float[N,4] q) {{ q = Tanh(m) }}> }}""",
    "a quantiser behind a branch": f"""g ({X}) => (float[N,4] y) {{
        w = If(c) <then_branch = a () => (float[N,4] p) {{ r = Sqrt(v)\n i = Reciprocal(r)\n p = Mul(x, i) }},
                   else_branch = b () => (float[N,4] q) {{ q = Tanh(x) }}>
        y = Round(w) }}""",
    "a quantiser in a loop": f"""g ({X}, int64 n) => (float[N,4] y) {{ {ROOT}
        y = Loop(n, c, m) <body = a (int64 at, bool go, float[N,4] p) => (bool on, float[N,4] q)
            {{ on = Identity(go)\n q = Round(p) }}> }}""",
    "a quantiser in a function": f"""g ({X}) => (float[N,4] y) {{ {ROOT} y = own.f(m) }}
        <domain: "own", opset_import: ["": 21]> f (p) => (q) {{ q = Round(p) }}""",
    "a quantiser behind a function": f"""g ({X}) => (float[N,4] y) {{ w = own.f(x, v)\n y = Round(w) }}
        <domain: "own", opset_import: ["": 21]> f (x, v) => (m) {{ {ROOT} }}""",
}


@pytest.mark.parametrize("case", REACHING)
def test_nothing_reassociates_before_a_quantiser_unless_asked(case: str) -> None:
    found = part(REACHING[case])
    assert not fired(found)
    (entry,) = [entry for entry in found.refused if entry.rule == RULE]
    assert "--exactness reassociates allows it" in entry.why_not
    assert fired(part(REACHING[case], "reassociates"))


NOT_REACHING = {
    "no quantiser": f"g ({X}) => (float[N,4] y) {{ {ROOT} y = Tanh(m) }}",
    "weights that were quantised": f"""g ({X}) => (float[N,2] y)
        <int8[4,2] w = {{1, 2, 3, 4, 5, 6, 7, 8}}, float s = {{0.1}}> {{ {ROOT}
        d = DequantizeLinear(w, s)\n y = MatMul(m, d) }}""",
    "a quantiser of something else": f"""g ({X}) => (float[N,4] y, float[N,4] w) {{ {ROOT}
        y = Tanh(m)\n w = Round(x) }}""",
    "a quantiser before it": f"g ({X}) => (float[N,4] y) {{ k = Round(x)\n {ROOT.replace('x', 'k')} y = Tanh(m) }}",
    "its size only": f"""g ({X}) => (float[N,4] y, float[2] w) {{ {ROOT} y = Tanh(m)
        s = Shape(m)\n f = Cast<to = 1>(s)\n w = Round(f) }}""",
    "a Cast to bool": f"g ({X}) => (bool[N,4] y) {{ {ROOT} y = Cast<to = 9>(m) }}",
}


@pytest.mark.parametrize("case", NOT_REACHING)
def test_elsewhere_they_do(case: str) -> None:
    assert fired(part(NOT_REACHING[case]))


def test_what_a_rewrite_puts_in_reaches_it_too() -> None:
    """The Identity goes first, and the quantiser then reads what was made in the place of its result."""
    text = f"g ({X}) => (float[N,4] y) {{ {ROOT} a = Neg(m)\n b = Neg(a)\n d = Identity(b)\n y = Floor(d) }}"
    assert not fired(part(text))
    chain = """g (float[N] x) => (float[N] y) <float a = {2}, float b = {3}, float z = {0}> {
        s = Add(x, z)\n t = Mul(s, a)\n u = Mul(t, b)\n y = Floor(u) }"""
    assert [entry.rule for entry in part(chain).fired if entry.rule == "algebra/constant-chain"] == []


def test_exact_rewrites_fire_before_a_quantiser() -> None:
    text = "g (float[N] x) => (float[N] y) { a = Identity(x)\n b = Transpose<perm = [0]>(a)\n y = Round(b) }"
    assert len(part(text).fired) >= 2
