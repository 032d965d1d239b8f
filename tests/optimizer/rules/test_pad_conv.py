"""fuse/pad-conv: amounts that are known and in the right order, and paddings that a convolution cannot do."""

from __future__ import annotations

import pytest

from tests.refusals import refusals
from tests.rewrites import assert_left_alone, assert_refused, assert_rewritten

RULE = "fuse/pad-conv"
HEAD = "g (float[N,1,4,5] x) => (float[N,1,H,V] y)"
W = "float[1,1,2,3] w = {1, 2, 3, 4, 5, 6}"
P = "int64[8] p = {0, 0, 1, 2, 0, 0, 0, 3}"


def pads_of(text: str, **how: int) -> list[int]:
    (conv,) = assert_rewritten(RULE, "Conv", text, **how).graph
    assert "auto_pad" not in conv.attributes
    return list(conv.attributes["pads"].as_ints())


def test_begins_come_before_ends() -> None:
    assert pads_of(f"{HEAD} <{W}, {P}> {{ a = Pad(x, p)\n y = Conv(a, w) }}") == [1, 2, 0, 3]


def test_own_padding_and_strides() -> None:
    text = f"""{HEAD} <{W}, {P}, float zero = {{0}}> {{
        a = Pad(x, p, zero)\n y = Conv<pads = [0, 1, 2, 3], strides = [2, 1], dilations = [1, 2]>(a, w) }}"""
    assert pads_of(text) == [1, 3, 2, 6]


@pytest.mark.parametrize(
    ("mode", "wanted"), [("VALID", [1, 2, 0, 3]), ("SAME_UPPER", [1, 3, 1, 4]), ("SAME_LOWER", [2, 3, 0, 4])]
)
def test_written_out(mode: str, wanted: list[int]) -> None:
    text = f'{HEAD} <{W}, {P}> {{ a = Pad(x, p)\n y = Conv<auto_pad = "{mode}">(a, w) }}'
    if mode == "SAME_LOWER":  # which the reference evaluator does not shift
        assert_rewritten(RULE, "Conv", text, runtime="onnxruntime")
        return
    assert pads_of(text) == wanted


def test_amounts_by_attribute() -> None:
    text = f"{HEAD} <{W}> {{ a = Pad<pads = [0, 0, 1, 2, 0, 0, 0, 3]>(x)\n y = Conv(a, w) }}"
    assert pads_of(text, opset=10) == [1, 2, 0, 3]


def test_some_axes() -> None:
    text = f"""{HEAD} <{W}, int64[4] p = {{2, 1, 3, 0}}, int64[2] axes = {{-1, 2}}> {{
        a = Pad(x, p, , axes)\n y = Conv(a, w) }}"""
    assert pads_of(text, opset=18) == [1, 2, 0, 3]


def test_amounts_that_are_computed() -> None:
    text = f"""g (float[N,1,4,5] x, float[N,M] z) => (float[N,1,H,V] y)
    <{W}, int64[2] last = {{2, 3}}, int64[1] two = {{2}}, int64[1] at = {{0}}, int64[2] swap = {{-1, 2}},
     int64[1] flat = {{-1}}, int64[1] one = {{1}}, int64[1] zero = {{0}}> {{
        shape = Shape(z)\n rank = Shape(shape)\n none = ConstantOfShape<value = int64[1] {{0}}>(rank)
        p = Concat<axis = 0>(none, one, zero, none, zero, two)\n a = Pad(x, p)\n y = Conv(a, w)
    }}"""
    assert pads_of(text) == [1, 0, 0, 2]


def test_two_convolutions() -> None:
    text = f"""{HEAD} <{W}, {P}, float[1,1,2,3] v = {{6, 5, 4, 3, 2, 1}}> {{
        a = Pad(x, p)\n b = Conv(a, w)\n c = Conv(a, v)\n y = Mul(b, c) }}"""
    assert_rewritten(RULE, "Conv Conv Mul", text)


def test_one_axis_in_double() -> None:
    text = """g (double[N,1,4] x) => (double[N,1,5] y) <double[1,1,2] w = {1, 2}, int64[6] p = {0, 0, 2, 0, 0, 0}> {
        a = Pad(x, p)\n y = Conv(a, w) }"""
    assert pads_of(text) == [2, 0]


REFUSED = {
    "1: ones": ("not pad with zero", f"{HEAD} <{W}, {P}, float v = {{1}}> {{ a = Pad(x, p, v)\n y = Conv(a, w) }}"),
    "1: a mirror": (
        "not pad with a constant",
        f'{HEAD} <{W}, {P.replace("3}", "2}")}> {{ a = Pad<mode = "reflect">(x, p)\n y = Conv(a, w) }}',
    ),
    "2: channels": (
        "channels are also padded",
        f"""{HEAD} <float[1,2,2,3] w = {{1, 2, 3, 4, 5, 6, 6, 5, 4, 3, 2, 1}}, {P.replace("0, 0, 1", "0, 1, 1", 1)}> {{
            a = Pad(x, p)\n y = Conv(a, w) }}""",
    ),
    "3: cropping": ("it crops", f"{HEAD} <{W}, {P.replace('0, 3}', '-1, 3}')}> {{ a = Pad(x, p)\n y = Conv(a, w) }}"),
    "4: amounts from outside": (
        "not known",
        f"g (float[N,1,4,5] x, int64[8] p) => (float[N,1,H,V] y) <{W}, {P}> {{ a = Pad(x, p)\n y = Conv(a, w) }}",
    ),
    "4: a value from outside": (
        "not a constant number",
        f"""g (float[N,1,4,5] x, float v) => (float[N,1,H,V] y) <{W}, {P}, float v = {{0}}> {{
            a = Pad(x, p, v)\n y = Conv(a, w) }}""",
    ),
    "5: own padding that depends on the size": (
        "depend on the size",
        f'{HEAD} <{W}, {P}> {{ a = Pad(x, p)\n y = Conv<auto_pad = "SAME_UPPER", strides = [2, 2]>(a, w) }}',
    ),
    "5: own padding with holes": (
        "not known",
        f"""{HEAD} <{W}, {P}> {{
            a = Pad(x, p)\n b = Conv<auto_pad = "SAME_UPPER", dilations = [2, 2]>(a, w)\n y = Relu(b) }}""",
    ),
}


@pytest.mark.parametrize("case", refusals(RULE, REFUSED))
def test_refused(case: str) -> None:
    runtime = "onnxruntime" if "cropping" in case else "reference"  # which cannot crop
    assert_refused(RULE, *REFUSED[case], runtime=runtime)


def test_transposed() -> None:
    text = f"{HEAD} <{W}, {P}> {{ a = Pad(x, p)\n y = ConvTranspose(a, w) }}"
    assert_left_alone(RULE, text)


def test_in_a_branch() -> None:
    text = f"""g (float[N,1,4,5] x, bool f) => (float[N,1,H,V] y) <{W}, {P}> {{
        y = If(f) <then_branch = t () => (float[N,1,H,V] a) {{ b = Pad(x, p)\n a = Conv(b, w) }},
                   else_branch = e () => (float[N,1,H,V] c) {{ c = Neg(x) }}>
    }}"""
    assert_rewritten(RULE, "If", text)
