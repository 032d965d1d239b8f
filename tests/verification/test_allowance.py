"""How much an output may differ, from counts and from measured movement."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from onnxsmith.verification.allowance import Allowance, Allowed, _count
from onnxsmith.verification.input_search import Run
from onnxsmith.verification.inputs.generate import Feed
from onnxsmith.verification.noise import ALL, FIRST, SECOND, Movement, Noise
from onnxsmith.verification.rounding import asked, counted

U = 2.0**-24
WIDE = counted(1, 2**20, U)
"""Its bound is far above the rounding of one operation: 8 · 2^-24 · (1 + 2^10) or so."""


class _Moves(Noise):
    """Noise of known movements: what one and two samples show, and what six show."""

    def __init__(self, few: Movement | None, all_: Movement | None = None) -> None:
        self.few, self.all, self.asked = few, all_ or few, list[int]()

    def movement(self, run: Run, name: str, samples_in_all: int = SECOND) -> Movement | None:
        self.asked.append(samples_in_all)
        return self.all if samples_in_all == ALL else self.few


def run(*values: float, dtype: Any = np.float32) -> Run:
    return Run(Feed("any", {}, {}), {"y": np.array(values, dtype)})


ONES = run(1.0, 1.0)


def test_without_a_rounding_values_have_to_be_equal() -> None:
    allowance = Allowance({})
    assert allowance.counted("y") == Allowed(0.0)
    found, _ = allowance.judged(ONES, "y", np.float32([1.0, 1.0 + 2.0**-23]))
    assert found.reason
    assert not allowance.judged(ONES, "y", np.float32([1.0, 1.0]))[0].reason


def test_one_operation_may_err_by_two_roundings_of_the_result_and_sixteen_of_the_sum() -> None:
    assert Allowance({"y": WIDE}).finest(np.float32([1.0]), "y") == 18 * U
    half = Allowance({"y": counted(1, 2**20, 2.0**-11)})
    assert half.finest(np.float16([1.0]), "y") == 2 * 2.0**-11 + 16 * U  # sums are in float32
    assert Allowance({"y": WIDE}, scale={"y": 3.0}).finest(np.float32([1.0]), "y") == 54 * U
    assert Allowance({"y": WIDE}, scale={"y": 0.5}).finest(np.float32([1.0]), "y") == 18 * U
    assert Allowance({"y": asked(1e-7)}).finest(np.float32([1.0]), "y") == 1e-7


def test_the_tolerance_that_was_asked_for_decides_alone() -> None:
    noise = _Moves(Movement(1.0, 1.0, 1.0, 0))
    allowance = Allowance({"y": asked(0.25)}, noise)
    assert not allowance.judged(ONES, "y", np.float32([1.0, 1.5]))[0].reason  # a quarter of 1 + 1
    assert allowance.judged(ONES, "y", np.float32([1.0, 1.6]))[0].reason
    assert noise.asked == []


def test_without_noise_the_count_decides() -> None:
    allowance = Allowance({"y": WIDE})
    bound = WIDE.tolerance * 2  # relative to 1 + 1
    found, allowed = allowance.judged(ONES, "y", np.float32([1.0, 1.0 + 0.9 * bound]))
    assert not found.reason
    assert allowed.worst == WIDE.tolerance
    assert allowance.judged(ONES, "y", np.float32([1.0, 1.0 + 1.1 * bound]))[0].reason


def test_a_small_difference_needs_no_measurement() -> None:
    noise = _Moves(None)
    found, allowed = Allowance({"y": WIDE}, noise).judged(ONES, "y", np.float32([1.0, 1.0 + 16 * U]))
    assert not found.reason
    assert (allowed.worst, allowed.measured) == (18 * U, False)
    assert noise.asked == []


def test_eight_times_the_measured_movement_is_allowed_and_more_samples_are_taken_where_it_is_exceeded() -> None:
    off = np.float32([1.0, 1.0 + 2.0**-12])  # 2^-13 of the scale; in root mean square 2^-12.5
    enough = Movement(worst=2.0**-16, spread=2.0**-14, absolute=0.0, changed=0)
    noise = _Moves(enough)
    found, allowed = Allowance({"y": WIDE}, noise).judged(ONES, "y", off)
    assert (found.reason, allowed.worst, allowed.spread, allowed.measured) == ("", 2.0**-13, np.inf, True)
    assert noise.asked == [FIRST]
    little = Movement(worst=2.0**-17, spread=2.0**-14, absolute=0.0, changed=0)
    noise = _Moves(little, enough)
    assert not Allowance({"y": WIDE}, noise).judged(ONES, "y", off)[0].reason
    assert noise.asked == [FIRST, SECOND, ALL]
    found, allowed = Allowance({"y": WIDE}, _Moves(little)).judged(ONES, "y", off)
    assert found.reason
    assert allowed.ill == ""
    assert not Allowance({"y": WIDE}, _Moves(little), {"y": 2.0}).judged(ONES, "y", off)[0].reason  # twice as coarse
    assert not Allowance({"y": WIDE}, _Moves(little), same=True).judged(ONES, "y", off)[0].reason
    assert not Allowance({"y": WIDE}, _Moves(None)).judged(ONES, "y", off)[0].reason  # unknown: by the count


def test_an_output_that_differs_takes_more_samples_only_for_a_larger_difference() -> None:
    little = Movement(worst=2.0**-20, spread=2.0**-20, absolute=0.0, changed=0)
    noise = _Moves(little)
    allowance = Allowance({"y": WIDE}, noise)
    asked_for = []
    for step, generated in ((-10, True), (-11, True), (-9, True), (-11, False)):
        there = replace(ONES, generated=generated)
        assert allowance.judged(there, "y", np.float32([1.0, 1.0 + 2.0**step]))[0].reason
        asked_for.append(noise.asked[:])
        noise.asked.clear()
    whole = [FIRST, SECOND, ALL]
    assert asked_for == [whole, [SECOND], whole, whole]  # a given input is always judged whole


def test_steps_of_quantisers_are_allowed_only_where_rounding_does_not_explain_a_difference() -> None:
    stepped = replace(WIDE, rounded=2.0**-14, steps=2.0**-16)  # half a step is 2^-8 of the scale
    off = np.float32([1.0, 1.0 + 2.0**-12])
    enough = Movement(worst=2.0**-16, spread=2.0**-14, absolute=0.0, changed=0)
    found, allowed = Allowance({"y": stepped}, _Moves(enough)).judged(ONES, "y", off)
    assert (found.reason, allowed.worst) == ("", 2.0**-13)  # as without steps: planted faults show beyond that
    none = _Moves(Movement(worst=0.0, spread=0.0, absolute=0.0, changed=0))
    found, allowed = Allowance({"y": stepped}, none).judged(ONES, "y", off)
    assert (found.reason, allowed.worst > 2.0**-9) == ("", True)


def test_half_a_step_of_every_quantiser_is_allowed_where_less_was_measured() -> None:
    stepped = replace(WIDE, rounded=2.0**-14, steps=2.0**-16)  # half a step is 2^-8 of the scale
    none = _Moves(Movement(worst=0.0, spread=0.0, absolute=0.0, changed=0))
    many = run(*[1.0] * 64)
    one, every = np.ones(64, np.float32), np.full(64, 1.0 + 2.0**-7, np.float32)
    one[0] += 2.0**-5
    for rounding, values, differs in ((WIDE, one, True), (stepped, one, False), (stepped, every, True)):
        found, _ = Allowance({"y": rounding}, none).judged(many, "y", values)
        assert bool(found.reason) == differs


def test_of_many_elements_the_root_mean_square_counts_too() -> None:
    many = run(*[1.0] * 32)
    every = np.full(32, 1.0 + 2.0**-12, np.float32)  # 2^-13 of the scale each, 2^-12 in root mean square
    for spread, differs in ((2.0**-14, False), (2.0**-15, True)):  # four times this is allowed
        noise = _Moves(Movement(worst=2.0**-16, spread=spread, absolute=0.0, changed=0))
        found, allowed = Allowance({"y": WIDE}, noise).judged(many, "y", every)
        assert bool(found.reason) == differs
        assert allowed.spread == 4 * spread
    few = run(*[1.0] * 31)
    noise = _Moves(Movement(worst=2.0**-16, spread=2.0**-15, absolute=0.0, changed=0))
    assert not Allowance({"y": WIDE}, noise).judged(few, "y", every[:31])[0].reason


def test_an_input_on_which_rounding_moves_more_than_the_count_cannot_decide() -> None:
    noise = _Moves(Movement(worst=0.125, spread=1.0, absolute=0.25, changed=0))
    allowance = Allowance({"y": WIDE}, noise)
    found, allowed = allowance.judged(ONES, "y", np.float32([1.0, 1.5]))
    assert found.reason == ""
    assert (allowed.worst, allowed.floor) == (1.0, 2.0)
    assert allowed.ill == "rounding alone moves it by 1.2e-01 of its scale"
    found, allowed = allowance.judged(ONES, "y", np.float32([1.0, 9.0]))  # more than that explains
    assert found.reason
    assert allowed.ill == ""
    found, allowed = allowance.judged(ONES, "y", np.float32([1.0, 1.0 + WIDE.tolerance]))  # within the count anyway
    assert (found.reason, allowed.ill, allowed.worst) == ("", "", WIDE.tolerance)


def test_integers_may_change_in_eight_times_as_many_places_as_rounding_changes_them() -> None:
    reference = run(*range(20), dtype=np.int64)
    noise = _Moves(Movement(worst=0.0, spread=0.0, absolute=0.0, changed=1))
    for count, differs in ((8, False), (9, True)):
        other = np.arange(20)
        other[:count] += 1
        found, allowed = Allowance({"y": WIDE}, noise).judged(reference, "y", other)
        assert bool(found.reason) == differs
        assert (allowed.changed, found.unequal) == (8, count)


def test_a_shape_that_rounding_changes_cannot_decide() -> None:
    for unsteady, ill in (("shape [2] became [3]", "rounding alone decides this: shape [2] became [3]"), ("", "")):
        noise = _Moves(Movement(0.0, 0.0, 0.0, 0, unsteady))
        found, allowed = Allowance({"y": WIDE}, noise).judged(ONES, "y", np.zeros(3, np.float32))
        assert found.reason == "shape [2] became [3]"
        assert allowed.ill == ill
    noise = _Moves(Movement(0.0, 0.0, 0.0, 0, "it is NaN"))
    found, allowed = Allowance({"y": WIDE}, noise).judged(ONES, "y", np.float32([1.0, 2.0]))
    assert (found.reason, allowed.ill) == ("", "rounding alone changes it: it is NaN")


def test_the_usual_difference_is_between_one_operation_and_eight() -> None:
    allowance, value = Allowance({"y": WIDE}), np.float32([1.0])
    assert allowance.usual(value, "y", None) == 18 * U
    assert allowance.usual(value, "y", Allowed(1.0)) == 18 * U  # not measured
    assert allowance.usual(value, "y", Allowed(400 * U, measured=True)) == 100 * U  # twice what was seen: 2 / 8
    assert allowance.usual(value, "y", Allowed(1.0, measured=True)) == 8 * 18 * U


@pytest.mark.parametrize(
    ("value", "count"),
    [
        (np.ones(7, np.float32), 7.0),
        (np.float32([1, 0, 0]), 1.0),
        (np.float32([3, 4]), 25**2 / (81 + 256)),
        (np.float32([1, 1, np.nan, np.inf]), 2.0),
        (np.zeros(3, np.float32), 0.0),
        (np.zeros(0, np.float32), 0.0),
        (np.arange(3), 0.0),
        ([np.ones(7, np.float32), np.ones(2, np.float32)], 2.0),
        ([], 0.0),
    ],
)
def test_the_elements_that_make_the_scale_are_counted(value: Any, count: float) -> None:
    assert _count(value) == pytest.approx(count)
