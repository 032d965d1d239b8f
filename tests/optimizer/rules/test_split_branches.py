"""algebra/split-branches and algebra/split-chain: what may go before a Split, and what has to stay behind it."""

from __future__ import annotations

import pytest

from tests.refusals import refuses
from tests.rewrites import assert_left_alone, assert_refused, assert_rewritten

RULE = "algebra/split-branches"
CONSTANTS = """float[2] c = {1, 2}, float[2] d = {3, 4}, float[1] one = {1}, float two = {2}, float three = {3},
    int64[1] k0 = {0}, int64[1] k1 = {1}, int64[1] k2 = {2}, int64[3] r = {0, 2, 3}, int64[2] f = {0, 6},
    float low = {0}, float high = {6}, float[3] s = {2, 3, 4}"""


def graph(body: str, x: str = "N,4", sizes: str = "2, 2", axis: int = 1, out: str = "N,2", more: str = "") -> str:
    """A Split into `a`, `b` and so on."""
    parts = ", ".join("abcd"[: sizes.count(",") + 1])
    constants = f"int64[{sizes.count(',') + 1}] sizes = {{{sizes}}}, {CONSTANTS}"
    return f"""g (float[{x}] x{more}) => (float[{out}] y) <{constants}> {{
        {parts} = Split<axis = {axis}>(x, sizes)\n {body} }}"""


def both(op: str, *, end: str = "y = Concat<axis = 0>(e, g)") -> str:
    """The operator on both parts."""
    return f"e = {op.format('a')}\n g = {op.format('b')}\n {end}"


WIDE = {"x": "N,4,6", "out": "A,B,C"}
REWRITTEN = {
    "one operator": (graph(both("Relu({})")), "Relu Split Concat"),
    "constants for each part": (
        graph("e = Add(a, c)\n g = Add(b, d)\n h = Mul(two, e)\n i = Mul(three, g)\n y = Sub(h, i)"),
        "Add Mul Split Sub",
    ),
    "one constant for both": (graph(both("Add({}, c)")), "Add Split Concat"),
    "a constant that is broadcast": (graph(both("Add({}, one)")), "Add Split Concat"),
    "a constant for one of them": (
        graph("e = Add(a, c)\n h = Relu(e)\n i = Relu(b)\n y = Sub(h, i)"),
        "Add Relu Split Sub",
    ),
    "bounds": (graph(both("Clip({}, low, high)")), "Clip Split Concat"),
    "a Transpose": (graph(both("Transpose<perm = [1, 0, 2]>({})"), **WIDE), "Transpose Split Concat"),
    "a Reshape": (graph(both("Reshape({}, f)"), sizes="2, 2", x="N,4,3", out="A,B"), "Reshape Split Concat"),
    "a Softmax along another axis": (graph(both("Softmax<axis = 2>({})"), **WIDE), "Softmax Split Concat"),
    "a normalisation of another axis": (
        graph(both("LayerNormalization({}, s)"), x="N,4,3", out="A,B,C"),
        "LayerNormalization Split Concat",
    ),
    "a Slice of another axis": (graph(both("Slice({}, k0, k2, k2)"), **WIDE), "Slice Split Concat"),
    "a new axis before": (graph(both("Unsqueeze({}, k1)"), **{**WIDE, "out": "A,B,C,D"}), "Unsqueeze Split Concat"),
    "an axis less": (graph(both("Squeeze({}, k2)"), x="N,4,1", out="A,B"), "Squeeze Split Concat"),
    "the first of three": (
        graph("e = Relu(a)\n h = Relu(b)\n i = Neg(c)\n j = Exp(e)\n k = Exp(h)\n l = Mul(j, k)\n y = Mul(l, i)",
            sizes="2, 2, 2", x="N,6").replace("float[2] c = {1, 2}, ", ""),
        "Split Relu Exp Split Neg Mul Mul",
    ),
    "a graph of operators": (
        graph("""e = Mul(a, z)\n h = Slice(a, k0, k1, k2)\n i = Slice(a, k1, k2, k2)\n j = Neg(i)
            k = Concat<axis = 2>(j, h)\n l = Mul(k, z)\n m = Add(e, l)
            n = Mul(b, z)\n o = Slice(b, k0, k1, k2)\n p = Slice(b, k1, k2, k2)\n q = Neg(p)
            t = Concat<axis = 2>(q, o)\n u = Mul(t, z)\n v = Add(n, u)\n y = MatMul(m, v)""",
            x="N,4,2", out="A,B,C", more=", float[1,1,2] z"),
        "Mul Split Neg Concat Mul Add Split MatMul",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REWRITTEN)
def test_rewritten(case: str) -> None:
    text, left = REWRITTEN[case]
    assert_rewritten(RULE, left, text)


@pytest.mark.parametrize("opset", [8, 11, 13, 18])
def test_opsets(opset: int) -> None:
    text = graph(both("Relu({})"))
    if opset < 13:
        text = text.replace("<axis = 1>(x, sizes)", "<axis = 1, split = [2, 2]>(x)")
    assert_rewritten(RULE, "Relu Split Concat", text, opset)


def test_the_majority_of_permutations() -> None:
    turns = {"a": "1, 0, 2", "b": "1, 2, 0", "c": "1, 0, 2"}
    lines = [f"t{name} = Transpose<perm = [{perm}]>({name})" for name, perm in turns.items()]
    text = graph("\n ".join([*lines, "p = MatMul(ta, tb)\n y = MatMul(p, tc)"]), "N,6,3", "2, 2, 2", out="A,B,C")
    assert_rewritten(RULE, "Transpose Split Transpose MatMul MatMul", text.replace("float[2] c = {1, 2}, ", ""))


def test_a_part_that_is_an_output() -> None:
    text = graph("e = Relu(a)\n g = Relu(b)\n h = Exp(e)\n i = Exp(g)\n y = Sub(h, i)").replace(
        "(float[N,2] y)", "(float[N,2] y, float[N,2] e)"
    )
    assert_rewritten(RULE, "Relu Split Exp Exp Sub", text)


ALONE = {
    "different operators": graph("e = Relu(a)\n g = Exp(b)\n y = Sub(e, g)"),
    "different attributes": graph("e = Elu<alpha = 1.0>(a)\n g = Elu<alpha = 2.0>(b)\n y = Sub(e, g)"),
    "different bounds": graph("e = Clip(a, low, high)\n g = Clip(b, low, two)\n y = Sub(e, g)"),
    "a Softmax along the axis": graph(both("Softmax<axis = 1>({})")),
    "a Reshape that mixes": graph(both("Reshape({}, m)", end="y = Concat<axis = 0>(e, g)"), x="3,4").replace(
        "float low", "int64[2] m = {2, 3}, float low"
    ),
    "a Slice along the axis": graph(both("Slice({}, k0, k1, k1)"), out="N,1"),
    "a value that is not broadcast": graph(both("Add({}, z)"), more=", float[N,2] z"),
    "a part that is read in another way too": graph("e = Relu(a)\n g = Relu(b)\n h = Sub(e, g)\n y = Sub(h, a)"),
    "parts that need each other": graph("e = Relu(a)\n h = Mul(e, b)\n g = Add(h, b)\n j = Relu(g)\n y = Sub(j, e)"),
    "unknown sizes": graph(both("Relu({})"), x="N,M").replace("(x, sizes)", "(x)"),
}  # fmt: skip


@pytest.mark.parametrize("case", ALONE)
def test_left_alone(case: str) -> None:
    assert_left_alone(RULE, ALONE[case])


@refuses(RULE, 1)
def test_constants_that_would_take_more_room() -> None:
    text = graph(both("Add({}, big)"), "N,4,300", out="A,B,C").replace("float low", "float[1,2,300] big, float low")
    text = text.replace("float[1,2,300] big, ", f"float[1,2,300] big = {{{', '.join('1' * 600)}}}, ")
    assert_left_alone(RULE, text)


CHAIN = """g (float[N,6] x) => (float[N,2] a, float[N,1] c, float[N,3] y) <int64[2] p = {2, 4}, int64[2] q = {1, 3}> {
    a, b = Split<axis = 1>(x, p)\n c, d = Split<axis = -1>(b, q)\n y = Neg(d) }"""


def test_a_split_of_a_part() -> None:
    assert_rewritten("algebra/split-chain", "Split Neg", CHAIN)
    assert_rewritten("algebra/split-chain", "Split Neg", CHAIN.replace("axis = 1", "axis = -1"), 18)


@refuses("algebra/split-chain", 1)
def test_a_split_of_a_part_that_is_not_alone() -> None:
    assert_refused("algebra/split-chain", "used elsewhere", CHAIN.replace("float[N,1] c", "float[N,4] b, float[N,1] c"))
    other = CHAIN.replace("[N,6]", "[2,6]").replace("axis = -1", "axis = 0").replace("q = {1, 3}", "q = {1, 1}")
    assert_left_alone(
        "algebra/split-chain", other.replace("float[N,3] y", "float[1,4] y").replace("[N,1] c", "[1,4] c")
    )


def test_parts_that_the_body_of_a_loop_reads() -> None:
    body = """turns = Constant<value_int = 2>()
        y = Loop(turns, , one) <body = body (int64 i, bool go, float[M,K] u) => (bool on, float[L,J] v) {
            on = Identity(go)
            e = Relu(a)
            g = Relu(b)
            h = Mul(e, g)
            v = Add(u, h)
        }>"""
    assert_left_alone(RULE, graph(body, out="A,B"))
