"""What is known of shape arithmetic where a dimension is 0, or a number does not fit its dtype."""

from __future__ import annotations

import pytest

from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.shapes import symbols
from onnxsmith.graph.shapes.inference import Inference
from onnxsmith.graph.shapes.known_integers import elements

HEAD = '<ir_version: 8, opset_import: ["": 18]>\n'
SIZES = "n = Shape<start = 0, end = 1>(x)\n"
NUMBERS = """int64[1] zero = {0}, int64[1] one = {1}, int64[1] two = {2}, int64[1] minus = {-1}, int64[1] top = {6},
    int64[1] far = {2147483655}, int64[1] most = {9223372036854775807}, int64[1] axis = {0}"""


def held(body: str) -> list[int | str | None] | None:
    """What `y` holds, for x of n rows and 6 columns."""
    model = from_text(f"{HEAD}g (float[n,6] x, float[m,n] z) => (int64[K] y) <{NUMBERS}> {{ {SIZES} {body} }}")
    Inference(model)
    return elements(model.graph.outputs[0])


def dims(body: str) -> list[int | str | None]:
    """The dimensions of `y`; None for what is not known."""
    model = from_text(f"{HEAD}g (float[n,6] x, float[m,n] z) => (float[R] y) <{NUMBERS}> {{ {SIZES} {body} }}")
    model.graph.outputs[0].shape = None
    inference = Inference(model)
    shape = model.graph.outputs[0].shape
    assert shape is not None
    with inference.assumed():
        found = [dim if isinstance(dim, int) else symbols.canonical(dim.value or "") for dim in shape]
    return [None if isinstance(dim, str) and dim.startswith("_d") else dim for dim in found]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("y = Max(n, one)", ["Max(1, n)"]),
        ("y = Min(n, one)", ["Min(1, n)"]),
        ("c = Concat<axis = 0>(n, one)\n y = ReduceMax(c, axis)", ["Max(1, n)"]),
        ("c = Max(n, one)\n y = Div(top, c)", ["((6)//(Max(1, n)))"]),
        ("e = Equal(n, zero)\n y = Where(e, one, n)", [None]),
        ("e = Greater(n, minus)\n y = Where(e, one, n)", [1]),
        ("d = Sub(n, one)\n y = Div(d, two)", ["((Max(0, n - 1))//2)"]),
        ("d = Sub(n, two)\n y = Div(d, two)", [None]),
        ("d = Sub(n, one)\n y = Mod(d, two)", ["n - 2*((n - 1)//2) - 1"]),
        ("f = Mul(n, far)\n c = Cast<to = 6>(f)\n y = Cast<to = 7>(c)", [None]),
        ("c = Cast<to = 6>(n)\n y = Cast<to = 7>(c)", ["n"]),
        ("c = Cast<to = 6>(far)\n y = Cast<to = 7>(c)", [None]),
        ("f = Mul(n, most)\n y = Div(f, most)", [None]),
        ("f = Add(n, most)\n y = Sub(f, most)", [None]),
        ("f = Mul(n, top)\n y = Div(f, top)", ["n"]),
        ("f = Min(n, far)\n y = Mul(f, two)", ["2*Min(2147483655, n)"]),
    ],
)
def test_integers(body: str, expected: list[int | str | None]) -> None:
    found = held(body)
    assert (found or [None]) == [one if one is None else symbols.canonical(one) for one in expected]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("y = Slice(x, zero, minus, axis)", ["Max(0, n - 1)", 6]),
        ("t = Concat<axis = 0>(n, top)\n y = Reshape(x, t)", ["n", 6]),
        ("t = Concat<axis = 0>(top, n)\n y = Reshape(x, t)", [6, "n"]),  # 0 would copy 6, and fail
        ("t = Concat<axis = 0>(n, minus)\n y = Reshape(z, t)", [None, None]),  # 0 copies m, and -1 is 0 then
        ("t = Concat<axis = 0>(n, minus)\n y = Reshape(x, t)", ["n", 6]),
        ("d = Sub(n, two)\n t = Concat<axis = 0>(d, minus)\n y = Reshape(x, t)", [None, None]),
        ("d = Sub(n, one)\n t = Concat<axis = 0>(d, top)\n q = Cast<to = 1>(one)\n y = Expand(q, t)", [None, 6]),
        ("t = Concat<axis = 0>(n, top)\n q = Cast<to = 1>(one)\n y = Expand(q, t)", ["n", 6]),
    ],
)
def test_shapes(body: str, expected: list[int | str | None]) -> None:
    assert dims(body) == [one if one is None else symbols.canonical(one) for one in expected]


def test_what_the_model_needs_to_run_is_assumed() -> None:
    """-1 beside an empty dimension fails, so that n is 1 or more wherever the model runs."""
    first = "t = Concat<axis = 0>(n, two, minus)\n w = Reshape(x, t)\n"
    ports = "g (float[n,6] x) => (int64[1] y, float[a,b,c] w)"
    model = from_text(f"{HEAD}{ports} <{NUMBERS}> {{ {SIZES} {first} y = Max(n, one) }}")
    inference = Inference(model)
    with inference.assumed():
        assert elements(model.graph.outputs[0]) == ["n"]
    assert elements(model.graph.outputs[0]) == ["Max(1, n)"]


def test_what_the_model_needs_is_assumed_in_the_next_inference() -> None:
    """A rewrite may remove the Reshape that needs n; it does not change the sizes at which the model runs."""
    first = "t = Concat<axis = 0>(n, two, minus)\n w = Reshape(x, t)\n"
    ports = "g (float[n,6] x) => (int64[1] y, float[a,b,c] w)"
    before = Inference(from_text(f"{HEAD}{ports} <{NUMBERS}> {{ {SIZES} {first} y = Max(n, one) }}"))
    after = from_text(f"{HEAD}g (float[n,6] x) => (int64[1] y) <{NUMBERS}> {{ {SIZES} y = Max(n, one) }}")
    with Inference(after, before).assumed():
        assert elements(after.graph.outputs[0]) == ["n"]


def test_names_that_inference_made_up_are_not_assumed_in_the_next_one() -> None:
    body = "i = NonZero(x)\n s = Shape<start = 1>(i)\n t = Concat<axis = 0>(s, two, minus)\n w = Reshape(i, t)"
    model = from_text(f"{HEAD}g (float[n,6] x) => (int64[a,b,c] w) <{NUMBERS}> {{ {body} }}")
    before = Inference(model)
    assert before._least
    assert not Inference(model, before)._lasting()
