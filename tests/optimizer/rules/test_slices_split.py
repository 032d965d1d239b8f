"""algebra/slices-split: parts that are all of a value, and those that are not."""

from __future__ import annotations

import pytest

from tests.refusals import refuses
from tests.rewrites import assert_left_alone, assert_refused, assert_rewritten

RULE = "algebra/slices-split"
END = 2**63 - 1


def slices(*cuts: tuple[int, int], axis: int = 1, step: int = 1, dims: str = "N,6", dtype: str = "float") -> str:
    """The sum of the largest of each Slice."""
    ends = [
        f"int64[1] {name}{n} = {{{bound}}}" for n, cut in enumerate(cuts) for name, bound in zip("se", cut, strict=True)
    ]
    parts = [f"p{n} = Slice(x, s{n}, e{n}, axis, step)" for n in range(len(cuts))]
    largest = [f"m{n} = ReduceMax<axes = [1], keepdims = 0>(p{n})" for n in range(len(cuts))]
    names = ", ".join(f"m{n}" for n in range(len(cuts)))
    return f"""g ({dtype}[{dims}] x) => ({dtype}[M] y)
    <{", ".join(ends)}, int64[1] axis = {{{axis}}}, int64[1] step = {{{step}}}> {{
        {chr(10).join((*parts, *largest))}\n y = {"Max" if dtype != "float" else "Sum"}({names}) }}"""


REWRITTEN = {
    "two": (((0, 2), (2, END)), 1),
    "three, out of order": (((4, 6), (0, 2), (2, 4)), 1),
    "from the end": (((0, -2), (-2, END)), -1),
}


@pytest.mark.parametrize("case", REWRITTEN)
@pytest.mark.parametrize("opset", [11, 17])
def test_rewritten(case: str, opset: int) -> None:
    cuts, axis = REWRITTEN[case]
    left = " ReduceMax" * len(cuts)
    assert_rewritten(RULE, f"Split{left} Sum", slices(*cuts, axis=axis), opset)


def test_one_that_is_no_part() -> None:
    assert_rewritten(RULE, "Split Slice ReduceMax ReduceMax ReduceMax Sum", slices((0, 2), (1, 3), (2, 6)))


def test_integers() -> None:
    text = slices((0, 2), (2, 6), dtype="int32")
    assert_rewritten(RULE, "Split ReduceMax ReduceMax Max", text, runtime="onnxruntime")


def test_outputs() -> None:
    text = """g (float[N,6] x) => (float[N,2] p, float[N,4] q)
    <int64[1] zero = {0}, int64[1] two = {2}, int64[1] end = {6}, int64[1] one = {1}> {
        q = Slice(x, two, end, one)\n p = Slice(x, zero, two, one) }"""
    assert_rewritten(RULE, "Split", text)


def test_a_part_read_in_a_branch() -> None:
    text = """g (float[N,6] x, bool f) => (float[N,3] y)
    <int64[1] zero = {0}, int64[1] three = {3}, int64[1] end = {6}, int64[1] one = {1}> {
        p = Slice(x, zero, three, one)\n q = Slice(x, three, end, one)
        y = If (f) <then_branch = t () => (float[N,3] a) { a = Neg(p) },
                    else_branch = e () => (float[N,3] b) { b = Abs(q) }>
    }"""
    assert_rewritten(RULE, "Split If", text)


LEFT_ALONE = {
    "a gap": slices((0, 2), (3, 6)),
    "an overlap": slices((0, 3), (2, 6)),
    "not to the end": slices((0, 2), (2, 5)),
    "not from the beginning": slices((1, 2), (2, 6)),
    "in steps": slices((0, 6), (1, 6), step=2),
    "two of a beginning": slices((0, 2), (0, 3), (3, 6)),
}


@pytest.mark.parametrize("case", LEFT_ALONE)
def test_left_alone(case: str) -> None:
    assert_left_alone(RULE, LEFT_ALONE[case])


def test_bounds_from_outside() -> None:
    assert_left_alone(RULE, slices((0, 2), (2, END)).replace("x)", "x, int64[1] e0)", 1))


@refuses(RULE, 1)
def test_unknown_size() -> None:
    assert_refused(RULE, "size of the dimension", slices((0, 2), (2, END), dims="N,K"))
