"""Counts are tried at small numbers, at larger ones, and around the numbers with which either model compares them."""

from __future__ import annotations

import numpy as np
import pytest

from onnxsmith.base.problem import problem
from onnxsmith.base.report.parts.verification import Verification
from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.shapes.symbolic_inference import inferred
from onnxsmith.runtimes.base import Feeds, Outputs
from onnxsmith.runtimes.fake import Answer, FakeSession
from onnxsmith.verification.explore import Plan
from onnxsmith.verification.inputs import counts
from onnxsmith.verification.inputs.generate import Generator
from onnxsmith.verification.sessions import verify_models
from onnxsmith.verification.verify import Side, verify

HEAD = '<ir_version: 10, opset_import: ["": 20]>\n'


def loop(body: str, *, inputs: str = "float[4] x, int64 n", before: str = "m = Identity(n)") -> str:
    return f"""g ({inputs}) => (float[4] y) <bool on = {{1}}, int64 one = {{1}}, int64 zero = {{0}}> {{
    {before}
    y = Loop (m, on, x) <body = body (int64 i, bool c, float[4] a) => (bool d, float[4] b) {{ {body} }}>
}}"""


def until(last: int) -> str:
    return f"b = Add(a, a) k = Constant<value_int = {last}>() d = Less(i, k)"


def late(after: int) -> str:
    return (
        f"k = Constant<value_int = {after}>() late = Greater(i, k) p = Sub(a, x) q = Add(a, x) "
        "b = Where(late, p, q) d = Identity(c)"
    )


ADD = "b = Add(a, x) d = Identity(c)"


def least(number: int) -> str:
    return loop(ADD, before=f"k = Constant<value_int = {number}>() m = Min(n, k)")


def scanned(stop: int) -> str:
    return f"""g (float[4] x, int64 n) => (float[4] y, float[m,4] w)
    <bool on = {{1}}, int64[1] first = {{0}}, int64[1] stop = {{{stop}}}> {{
        y, v = Loop (n, on, x) <body = body (int64 i, bool c, float[4] a) => (bool d, float[4] b, float[4] s) {{
            b = Add(a, x) s = Identity(b) d = Identity(c) }}>
        w = Slice(v, first, stop, first)
    }}"""


def carried(after: int) -> str:
    return f"""g (float[4] x, int64 n) => (float[4] y) <int64 zero = {{0}}, int64 one = {{1}}> {{
        go = Less(zero, n)
        j, y = Loop (, go, zero, x) <body = body (int64 i, bool c, int64 h, float[4] a)
        => (bool d, int64 g, float[4] b) {{
            k = Constant<value_int = {after}>() late = Less(k, h) p = Sub(a, x) q = Add(a, x)
            b = Where(late, p, q) g = Add(h, one) d = Less(g, n) }}>
    }}"""


def rows(after: int, *, inputs: str = "float[s,4] x", count: str = "m = Identity(r)") -> str:
    return f"""g ({inputs}) => (float[4] y) <bool on = {{1}}, float[4] none = {{0, 0, 0, 0}}> {{
        s = Shape<start = 0, end = 1>(x) r = Squeeze(s) {count}
        y = Loop (m, on, none) <body = body (int64 i, bool c, float[4] a) => (bool d, float[4] b) {{
            k = Constant<value_int = {after}>() late = Greater(i, k) e = Gather(x, i) p = Sub(a, e) q = Add(a, e)
            b = Where(late, p, q) d = Identity(c) }}>
    }}"""


def cut(most: int, operator: str, inputs: str = "float[3] x, int64[1] n") -> str:
    return f"""g ({inputs}) => (float[m] y) <int64[1] k = {{{most}}}, int64[1] zero = {{0}}> {{
        q = Min(n, k) {operator}
    }}"""


LARGE = "float[50] x, int64[1] n"
PAIRS = {
    "a condition on the iteration": (loop(until(7)), loop(until(6))),
    "another step after three iterations": (loop(late(3)), loop(late(1000))),
    "after forty iterations": (loop(late(40)), loop(ADD)),
    "after forty iterations of the candidate": (loop(ADD), loop(late(40))),
    "a least of the count": (least(5), least(4)),
    "no iteration": (loop(ADD), loop(ADD, before="m = Max(n, one)")),
    "one iteration": (loop(ADD), loop(ADD, before="o = Equal(n, one) m = Where(o, zero, n)")),
    "a scan that is cut": (scanned(9999), scanned(6)),
    "a count of shape [1]": tuple(
        loop(late(k), inputs="float[4] x, int64[1] n", before="m = Squeeze(n)") for k in (5, 6)
    ),
    "an int32": tuple(loop(late(k), inputs="float[4] x, int32 n", before="m = Cast<to = 7>(n)") for k in (5, 6)),
    "a float": tuple(loop(late(k), inputs="float[4] x, float n", before="m = Cast<to = 7>(n)") for k in (5, 6)),
    "a carried counter": (carried(9), carried(10)),
    "a size": (rows(4), rows(5)),
    "a large size": (rows(300), rows(301)),
    "a large size of the candidate": (rows(5000), rows(300)),
    "a count and a size": tuple(
        rows(k, inputs="float[s,4] x, int64 n", count="m = Min(n, r)") for k in (6, 7)
    ),
    "two counts": tuple(
        loop(late(k), inputs="float[4] x, int64 n, int64 w", before="m = Min(n, w)") for k in (6, 60)
    ),
    "repeats": (cut(99, "y = Tile(x, q)"), cut(7, "y = Tile(x, q)")),
    "a shape": (cut(99, "y = ConstantOfShape(q)", "int64[1] n"), cut(9, "y = ConstantOfShape(q)", "int64[1] n")),
    "a count of largest": (cut(50, "y, i = TopK(x, q)", LARGE), cut(12, "y, i = TopK(x, q)", LARGE)),
    "a start from the end": tuple(
        "g (float[9] x, int64[1] n) => (float[k] y) <int64[1] z = {0}, int64[1] e = {99}> "
        f"{{ {made} y = Slice(x, q, e) }}"
        for made in ("q = Identity(n)", "q = Max(n, z)")
    ),
    "an end": (cut(50, "y = Slice(x, zero, q)", LARGE), cut(20, "y = Slice(x, zero, q)", LARGE)),
}  # fmt: skip


def held(reference: str, candidate: str) -> Verification:
    return verify_models(from_text(HEAD + reference), from_text(HEAD + candidate))


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
def test_a_difference_at_some_counts_is_seen(pair: tuple[str, str]) -> None:
    assert held(*pair).differs
    assert held(pair[0], pair[0]).equal


def test_the_report_names_the_counts() -> None:
    part = held(loop(until(7)), loop(until(7)))
    assert {0, 1, 2, 3, 7, 8, 17} <= set(part.counts["n"])
    assert not part.untried


def test_a_model_without_counts_has_no_more_runs() -> None:
    text = "g (float[a,4] x, int64[a] n) => (float[a,4] y) { y = Neg(x) }"
    generator = Generator.for_model(inferred(from_text(HEAD + text))[0])
    assert not generator.counted()
    assert not generator.numbers.counted


def test_an_index_stays_in_its_table() -> None:
    text = "g (float[5] x, int64 n) => (float y) { y = Gather(x, n) }"
    part = held(text, text)
    assert part.equal
    assert part.counts["n"] == (0, 1, 2, 3, 4)
    assert not part.refused


def test_a_divisor_is_not_zero() -> None:
    text = "g (int64[4] x, int64 n) => (int64[4] y, int64[4] z) { y = Div(x, n) z = Max(x, n) }"
    assert 0 not in held(text, text).counts["n"]


def test_numbers_follow_the_arithmetic_of_a_count() -> None:
    text = """g (int64 n) => (bool y) <int64 two = {2}, int64 k = {40}> {
        p = Mul(n, two)
        y = Less(p, k)
    }"""
    assert counts.numbers(from_text(HEAD + text)) == {20}


SIMPLE = "g (float[4] x, int64 n) => (float[4] y) { m = Max(n, n) f = Cast<to = 1>(m) y = Mul(x, f) }"


def side(answer: Answer, provider: str) -> Side:
    session = FakeSession(Plan(Generator.for_model(from_text(HEAD + SIMPLE))).generator.signature, answer)
    session.provider = provider
    return Side(provider, session)


def product(feeds: Feeds) -> Outputs:
    x, n = np.asarray(feeds["x"]), np.asarray(feeds["n"])
    return {"y": x * n.astype(x.dtype)}


def test_a_refused_count_is_no_refusal_but_a_limit_is_said() -> None:
    def few(feeds: Feeds) -> Outputs:
        if np.asarray(feeds["n"]) > 3:
            raise problem("runtime/failed", "too large")
        return product(feeds)

    generator = Generator.for_model(inferred(from_text(HEAD + SIMPLE))[0])
    part = verify(side(few, "a"), side(few, "a"), Plan(generator), {})
    assert part.equal
    assert {0, 1, 2, 3} <= set(part.counts["n"])
    assert part.untried == ("n was refused above 3",)


def test_a_count_of_zero_says_nothing_about_another_runtime() -> None:
    def ones(feeds: Feeds) -> Outputs:
        found = np.asarray(product(feeds)["y"])
        return {"y": found if feeds["n"] else found + found.dtype.type(1)}

    generator = Generator.for_model(inferred(from_text(HEAD + SIMPLE))[0])
    assert verify(side(product, "a"), side(ones, "a"), Plan(generator), {}).differs
    other = verify(side(product, "a"), side(ones, "b"), Plan(generator), {})
    assert other.equal
    assert "n = 0 is answered differently by b" in other.untried
