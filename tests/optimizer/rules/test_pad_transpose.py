"""algebra/pad-transpose: a Pad goes behind the Transpose where a convolution or a pool can take it."""

from __future__ import annotations

import pytest

from tests.refusals import refusals
from tests.rewrites import assert_left_alone, assert_refused, assert_rewritten

RULE = "algebra/pad-transpose"
W = "float[1,1,2,3] w = {1, 2, 3, 4, 5, 6}"
P = "int64[8] p = {0, 1, 2, 0, 0, 0, 3, 0}"


def text(body: str, pads: str = P, more: str = "", out: str = "") -> str:
    return f"g (float[N,4,5,1] x{more}) => (float[N,1,H,V] y{out}) <{W}, {pads}> {{ {body} }}"


TURNED = "b = Transpose<perm = [0, 3, 1, 2]>(a)"


def test_a_convolution_takes_it() -> None:
    result = assert_rewritten(RULE, "Transpose Conv", text(f"a = Pad(x, p)\n {TURNED}\n y = Conv(b, w)"))
    assert list(result.graph.node(1).attributes["pads"].as_ints()) == [1, 2, 0, 3]


def test_two_convolutions_take_it() -> None:
    body = f"a = Pad(x, p)\n {TURNED}\n c = Conv(b, w)\n d = Conv<pads = [1, 0, 1, 0]>(b, w)\n z = Relu(d)\n y = Neg(c)"
    assert_rewritten(RULE, "Transpose Conv Conv Relu Neg", text(body, out=", float[N,1,I,J] z"))


def test_a_pool_takes_it() -> None:
    pads = "int64[8] p = {0, 1, 1, 0, 0, 0, 0, 0}"
    body = f"r = Relu(x)\n a = Pad(r, p)\n {TURNED}\n y = MaxPool<kernel_shape = [2, 2]>(b)"
    assert_rewritten(RULE, "Relu Transpose MaxPool", text(body, pads), runtime="onnxruntime")


REFUSED = {
    "1: read elsewhere": (
        "used elsewhere",
        text(f"a = Pad(x, p)\n {TURNED}\n y = Conv(b, w)\n z = Relu(a)", out=", float[N,I,J,1] z"),
    ),
    "2: not known": ("not known", text(f"a = Pad(x, q)\n {TURNED}\n y = Conv(b, w)", more=", int64[8] q")),
    "2: crops": ("crops", text(f"a = Pad(x, p)\n {TURNED}\n y = Conv(b, w)", "int64[8] p = {0, -1, 0, 0, 0, 0, 0, 0}")),
    "3: batch": (
        "batch or channels",
        text(f"a = Pad(x, p)\n {TURNED}\n y = Conv(b, w)", "int64[8] p = {1, 0, 0, 0, 0, 0, 0, 0}"),
    ),
}


@pytest.mark.parametrize("case", refusals(RULE, REFUSED))
def test_refused(case: str) -> None:
    assert_refused(RULE, *REFUSED[case], runtime="onnxruntime")


@pytest.mark.parametrize(
    "body",
    [
        f'a = Pad<mode = "reflect">(x, p)\n {TURNED}\n y = Conv(b, w)',
        f"a = Pad(x, p)\n {TURNED}\n y = Relu(b)",
    ],
)
def test_no_match(body: str) -> None:
    assert_left_alone(RULE, text(body))
