"""How far an output moves when rounding is added."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from onnxsmith.runtimes.base import Outputs
from onnxsmith.verification.input_search import Run
from onnxsmith.verification.inputs.generate import Feed
from onnxsmith.verification.noise import ALL, FIRST, Movement, Noise
from onnxsmith.verification.probe import Probe


class _Moves(Probe):
    """A probe of [1, 1] that moves by a step for each seed; without `steps` it does not run."""

    def __init__(self, *steps: float) -> None:
        self.steps = steps
        self.asked: list[dict[str, Any]] = []
        self.usual = {"y": np.ones(2)} if steps else None

    def plain(self, feed: Feed) -> Outputs | None:
        return self.usual

    def moved(
        self, feed: Feed, seed: int, *, whole: bool = False, inputs: bool = True, ties: bool = False
    ) -> Outputs | None:
        self.asked.append({"seed": seed, "whole": whole, "inputs": inputs, "ties": ties})
        return {"y": np.array([1 + self.steps[seed], 1.0])} if seed < len(self.steps) else None


def run(reference: float = 1.0, **how: bool) -> Run:
    return Run(Feed("any", {}, {}, **how), {"y": np.array([reference, 1.0])})


def movement(step: float) -> Movement:
    """One of two elements of [1, 1] moves: relative to its scale and itself, 1 + 1; in root mean square of both."""
    return Movement(worst=step / 2, spread=step / 2**0.5, absolute=step, changed=0)


def almost(found: Movement | None, expected: Movement) -> bool:
    return found is not None and (found.worst, found.spread, found.absolute, found.changed) == pytest.approx(
        (expected.worst, expected.spread, expected.absolute, expected.changed)
    )


def test_samples_are_taken_as_asked_for_and_none_twice() -> None:
    probe = _Moves(0.125, 0.25, 0.5, 0.0, 0.0, 1.0, 4.0)
    noise, here = Noise(probe), run()
    assert almost(noise.movement(here, "y", FIRST), movement(0.125))
    assert almost(noise.movement(here, "y"), movement(0.25))
    assert almost(noise.movement(here, "y", ALL), movement(1.0))
    assert [asked["seed"] for asked in probe.asked] == [0, 1, 2, 3, 4, 5]
    assert almost(noise.movement(here, "y", ALL), movement(1.0))
    assert len(probe.asked) == 6


def test_the_distance_of_probe_and_reference_counts_where_they_are_one_model() -> None:
    assert almost(Noise(_Moves(0.125, 0.125)).movement(run(3.0), "y"), Movement(0.381966, 0.632456, 2.0, 0))
    assert almost(Noise(_Moves(0.125, 0.125), is_reference=False).movement(run(3.0), "y"), movement(0.125))


@pytest.mark.parametrize(("at_edges", "is_reference", "whole"), [(True, False, True), (True, True, False)])
def test_whole_numbers_move_where_the_reference_is_no_graph(at_edges: bool, is_reference: bool, whole: bool) -> None:
    probe = _Moves(0.125, 0.125)
    Noise(probe, is_reference=is_reference).movement(run(at_edges=at_edges), "y")
    assert [asked["whole"] for asked in probe.asked] == [whole, whole]


def test_inputs_that_mean_one_answer_do_not_move() -> None:
    probe, other = _Moves(*[0.125] * 6), _Moves(0.5, 0.5)
    noise = Noise(probe, other=other)
    assert almost(noise.movement(run(meant=True), "y", ALL), movement(0.5))
    assert {asked["inputs"] for asked in probe.asked + other.asked} == {False}


def test_the_candidate_is_asked_only_closely_and_need_not_run() -> None:
    probe, other = _Moves(*[0.125] * 6), _Moves(0.5, 0.25, 2.0)
    noise = Noise(probe, other=other)
    assert almost(noise.movement(run(), "y"), movement(0.125))
    assert almost(noise.movement(run(), "y", ALL), movement(0.5))  # two samples of it
    still = Noise(_Moves(*[0.125] * 6), other=_Moves())
    assert almost(still.movement(run(), "y", ALL), movement(0.125))


def test_a_model_that_does_not_run_with_other_weights_moves_by_nobody_knows_what() -> None:
    assert Noise(_Moves()).movement(run(), "y") is None
    assert Noise(_Moves(0.125)).movement(run(), "z") is None
