"""What is said of places that nearly match."""

from __future__ import annotations

import pytest

from onnxsmith.graph.patterns.near_misses import near_misses
from tests.graph.patterns.models import BRANCHES, model
from tests.graph.patterns.test_pattern_search import chain, nest
from tests.work import grows_linearly

GIVEN = """
   a = Relu(x)  b = Mul(half, a)  c = Softmax <axis = 1> (b)  d = HardSigmoid(c)  e = Mul(d, c)
   f = ReduceMean(e)  g = Sub(e, f)  h = Mul(g, g)  i = Sqrt(h)  j = Add(i, g)  y = Clip(j, half, half)
"""


@pytest.mark.parametrize(
    ("pattern", "sentence"),
    [
        ("Softmax <axis = -1> (x)", "-> c: matches except for axis=1 at -> c (pattern: axis=-1)"),
        ("Mul(Relu(x), 0.5)", "-> b: matches except for the constant half is 0.4, but the pattern requires 0.5"),
        ("Clip(x, c_least)", "-> y: matches except for a third operand is there at -> y"),
        ("Mul(Sigmoid(x), x)", "-> e: 1 of 2 operators match; `Sigmoid` expected, `HardSigmoid` -> d found"),
        (
            "{ m = ReduceMean(x) s = Sub(x, m) v = Sqrt(Mul(s, s)) y = Div(s, v) }",
            "-> i: 4 of 5 operators match; no Div reads -> i",
        ),
        ("Softmax(Relu(x))", "-> c: matches except for `Mul` -> b stands after -> a"),
        ("Sigmoyd(x)", "the model has no Sigmoyd (it has HardSigmoid)"),
        ("(x) => (r, t) { r = Relu(x) t = Tanh(x) }", "-> a: 1 of 2 operators match; no Tanh has the same operands"),
        ("Sub(x, x)", "-> g: matches except for x stands for both e and f, which differ"),
        ("Sub(x, c_mean)", "-> g: matches except for f is not a constant, but c_mean must be one"),
    ],
)
def test_the_nearest_place_comes_first(pattern: str, sentence: str) -> None:
    given = model(GIVEN, inputs="float[N,4] x", outputs="float[N,4] y", held="float half = {0.4}")
    assert str(near_misses(given, pattern)[0]) == sentence


def test_at_most_a_few_and_no_matches() -> None:
    given = model("a = Mul(x, s) b = Mul(a, t) c = Mul(b, t) d = Mul(c, t) e = Mul(d, t) y = Mul(e, t)",
                  held="float s = {1}, float t = {2}")  # fmt: skip
    found = near_misses(given, "Mul(x, 1)")
    assert [str(one).split(":")[0] for one in found] == ["-> b", "-> c", "-> d"]
    assert len(near_misses(given, "Mul(x, 1)", most=1)) == 1
    assert near_misses(model("y = Relu(x)"), "Relu(x)") == []


def test_bodies_and_functions_count() -> None:
    given = model(BRANCHES, inputs="float[N] x, bool b", held="float s = {2}")
    assert "the constant s is 2.0, but the pattern requires 3" in str(near_misses(given, "Mul(x, 3)")[0])


def test_a_large_model() -> None:
    pattern = nest(8, "Relu(z), z")
    assert near_misses(chain(200, 1), pattern)
    assert grows_linearly(lambda size: near_misses(chain(size, 1), pattern), 80)
