"""The tolerance follows the formula in the module's docstring, computed here by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from onnxsmith.graph.files.text import from_text
from onnxsmith.verification.rounding import Rounding, asked, counted, quantises, roundings
from tests.conftest import Refused

HEAD = '<ir_version: 10, opset_import: ["": 20]>\n'
U = 2.0**-24
HALF = 2.0**-11


def near(value: float) -> object:
    """Equal but for the last digits; `pytest.approx` alone takes all values below 1e-12 for equal."""
    return pytest.approx(value, rel=1e-9, abs=0)


def of(text: str, **kwargs: object) -> Rounding:
    """The Rounding of output y."""
    return roundings(from_text(HEAD + text), **kwargs)["y"]  # type: ignore[arg-type]


def test_one_operation() -> None:
    found = of("g (float[4] x) => (float[4] y) { y = Exp(x) }")
    assert (found.terms, found.depth, found.unit) == (1, 1, U)
    assert found.tolerance == 8 * (math.sqrt(U**2) + math.sqrt(U**2))


def test_a_product_sums_as_many_terms_as_its_inner_dimension() -> None:
    found = of("g (float[2,64] x, float[64,3] w) => (float[2,3] y) { y = MatMul(x, w) }")
    assert (found.terms, found.depth) == (64, 1)
    assert found.tolerance == near(8 * (U + math.sqrt(64) * U))


def test_operations_in_sequence_add_up_in_squares() -> None:
    found = of("g (float[2,64] x, float[64,64] w) => (float[2,64] y) { a = MatMul(x, w) y = MatMul(a, w) }")
    assert (found.terms, found.depth) == (128, 2)
    assert found.rounded == 2 * U**2
    assert found.summed == 128 * U**2


def test_the_longest_path_counts() -> None:
    found = of("g (float[4] x) => (float[4] y) { a = Exp(x) b = Exp(a) c = Tanh(x) y = Add(c, b) }")
    assert found.depth == 3


def test_a_cast_adds_its_own_rounding_and_none_to_what_follows() -> None:
    found = of(
        "g (float[4] x) => (float[4] y) <float16[4] a, float[4] b, float[4] c> "
        "{ a = Cast<to = 10>(x) b = Cast<to = 1>(a) c = Exp(b) y = Exp(c) }"
    )
    assert found.rounded == near(2 * HALF**2 + 2 * U**2)
    assert found.summed == 4 * U**2  # kernels accumulate float16 in float32
    assert found.unit == HALF


def test_an_output_that_nothing_computes_is_rounded_to_its_dtype() -> None:
    found = of("g (float16[4] x) => (float16[4] y) { y = Identity(x) }")
    assert found.rounded == HALF**2
    assert found.summed == U**2


def test_a_sigmoid_has_a_floor_that_lasts_while_it_is_moved() -> None:
    moved = "g (float[4] x) => (float[4,1] y) <int64[2] s = {4, 1}> { a = Sigmoid(x) y = Reshape(a, s) }"
    assert of("g (float[4] x) => (float[4] y) { y = Sigmoid(x) }").floor == 8 * U / 2
    assert of(moved).floor == 8 * U / 2
    assert of("g (float[4] x) => (float[4] y) { a = Sigmoid(x) y = Mul(a, x) }").floor == 0.0


RESIZE = """g (float[1,2,{size},7] x) => (float[1,2,{new},7] y) <float[4] s = {{1, 1, 2, 1}}>
    {{ y = Resize<mode = "{mode}">(x, , s) }}"""


def test_interpolation_rounds_its_coordinates() -> None:
    found = of(RESIZE.format(size=500, new=1000, mode="linear"))
    assert found.rounded == near((2 * U * 500) ** 2)
    assert found.coordinates == near((2 * U * 500) ** 2)
    assert found.open == 0.0


def test_an_axis_of_unknown_length_counts_as_1024() -> None:
    found = of(RESIZE.format(size="h", new="k", mode="linear"))
    assert found.rounded == near((2 * U * 1024) ** 2)
    assert found.open == near((2 * U) ** 2)
    assert found.coordinates == 0.0


def test_nearest_copies_elements() -> None:
    found = of(RESIZE.format(size=500, new=1000, mode="nearest"))
    assert found.rounded == U**2
    assert found.coordinates == found.open == 0.0


def test_no_axis_counts_as_longer_than_the_longest_of_the_run() -> None:
    found = of(RESIZE.format(size="h", new="k", mode="linear"))
    assert found.unmoved(10) == near(8 * 2 * U * 10)
    assert found.unmoved() == found.unmoved(5000) == near(8 * 2 * U * 1024)


def test_sums_without_weights_are_not_shown_by_movements() -> None:
    weight = f"<float[64,1] w = {{{', '.join(['1'] * 64)}}}>"
    assert of("g (float[2,64] x, float[64,1] w) => (float[2,1] y) { y = MatMul(x, w) }").free == 64 * U**2
    assert of(f"g (float[2,64] x) => (float[2,1] y) {weight} {{ y = MatMul(x, w) }}").free == 0.0
    assert of("g (float[2,1] x) => (float[2,1] y) { y = Softmax(x) }").free == 0.0


def test_a_path_begins_anew_at_a_cut() -> None:
    text = "g (float[4] x) => (float[4] y) { a = Exp(x) b = Exp(a) y = Exp(b) }"
    assert of(text, cuts={"b"}).depth == 1
    assert of(text).depth == 3


def test_an_exact_operation_on_given_values_adds_nothing() -> None:
    model = from_text(HEAD + "g (float[4] x) => (float[4] y) { a = Exp(x) y = Relu(a) }")
    exact = roundings(model, names={"y"}, cuts={"a"})["y"]
    assert (exact.terms, exact.depth) == (0, 0)
    assert roundings(model, names={"y"}, cuts={"x"})["y"].terms == 2


def test_a_cast_of_given_values_is_exact_and_one_of_computed_values_to_more_digits_is_not() -> None:
    model = from_text(HEAD + "g (float16[4] x) => (float[4] y) <float16[4] a> { a = Relu(x) y = Cast<to = 1>(a) }")
    assert roundings(model, names={"y"}, cuts={"a"})["y"].terms == 0
    assert roundings(model, names={"y"}, cuts={"x"})["y"].unit == HALF


def test_a_quantiser_may_round_either_way_by_one_step() -> None:
    model = from_text(
        HEAD + "g (float[4] x) => (uint8[4] y) <float s = {0.1}, uint8 z = {0}> { y = QuantizeLinear(x, s, z) }"
    )
    found = roundings(model, names={"y"})["y"]
    assert found.levels == 1
    assert found.unit == 2.0**-9
    assert quantises(model)
    assert not quantises(from_text(HEAD + "g (float[4] x) => (float[4] y) { y = Exp(x) }"))


def test_the_noise_of_quantisers_adds_up_in_squares() -> None:
    text = """g (float[4] x) => (float[4] y) <float s = {0.1}, uint8 z = {0}> {
        q = QuantizeLinear(x, s, z) d = DequantizeLinear(q, s, z)
        r = QuantizeLinear(d, s, z) y = DequantizeLinear(r, s, z) }"""
    found = of(text, scales={"x": 1.0, "d": 0.5})
    step = float(np.float32(0.1)) / math.sqrt(12)
    assert found.noise == near(math.hypot(step, step / 0.5))
    assert found.tolerance == near(
        8 * (math.sqrt(found.rounded) + math.sqrt(found.summed) + math.hypot(step, step / 0.5))
    )
    assert of(text).noise == 0.0


def test_a_quantised_weight_may_be_multiplied_as_integers() -> None:
    text = """g (float[2,2] x) => (float[2,2] y) <float s = {0.1}, int8 z = {0}, int8[2,2] w = {1, 2, 3, 4}> {
        k = DequantizeLinear(w, s, z) y = MatMul(x, k) }"""
    assert of(text, cuts={"x"}).unit == 2.0**-9
    assert of(text).unit == U


def test_the_tolerance_that_was_asked_for_takes_the_place_of_the_formula() -> None:
    assert asked(0.25).tolerance == 0.25
    assert asked(0.0).bounds == (0.0, 0.0)
    assert str(asked(0.25)) == "0.25, as requested"


@pytest.mark.parametrize("tolerance", [-0.1, math.inf, math.nan])
def test_a_tolerance_that_is_no_number_is_refused(tolerance: float, refused: Refused) -> None:
    with refused("verify/tolerance"):
        asked(tolerance)


def test_the_formula_is_written_with_its_figures() -> None:
    said = str(counted(100, 4, U))
    assert "rounding of 4 operations that sum 100 terms" in said
    assert "u = 2^-24" in said
    assert "q =" not in said
    assert "Sigmoid" not in said
