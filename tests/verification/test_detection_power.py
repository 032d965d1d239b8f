"""Which planted faults count as seen, and in which weights they are planted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import onnx_ir as ir
import pytest

from onnxsmith.base.report.parts.verification import Power
from onnxsmith.graph.surgery.weights_as_inputs import Weight
from onnxsmith.runtimes.base import Outputs
from onnxsmith.verification.detection_power import measured
from onnxsmith.verification.input_search import Run
from onnxsmith.verification.inputs.generate import Feed
from onnxsmith.verification.probe import ADDED, EACH, TABLE, Probe

Fault = tuple[str, float, str, str]
"""The name of what is changed, its share, its manner, and the label of the run."""


def weight(name: str, dtype: Any = np.float32) -> Weight:
    return Weight(name, ir.tensor(np.ones(2, dtype), name=name), 1)


class _Plants(Probe):
    """A probe whose answer to a fault is the fault itself; faults in `solid` cannot be planted."""

    def __init__(self, *weights: Weight, solid: str = "", runs: bool = True) -> None:
        self.weights = weights
        self.solid, self.runs = solid, runs
        self.planted: list[Fault] = []

    def plain(self, feed: Feed) -> Outputs | None:
        return {} if self.runs else None

    def _plant(self, fault: Fault) -> Outputs | None:
        self.planted.append(fault)
        return {"fault": fault} if fault[0] not in self.solid.split() else None

    def faulty(self, feed: Feed, weight: Weight, share: float, seed: int, *, manner: str = EACH) -> Outputs | None:
        return self._plant((weight.name, share, manner, feed.label))

    def faulty_input(self, feed: Feed, name: str, share: float, seed: int, *, manner: str = EACH) -> Outputs | None:
        return self._plant((name, share, manner, feed.label))


class _Sees:
    """A check that sees some faults; their effect is `times` their share."""

    def __init__(self, seen: Callable[[Fault], bool], times: float = 1000.0) -> None:
        self.seen, self.times = seen, times

    def sees(self, run: Run, usual: Outputs, faulty: Outputs) -> bool:
        return self.seen(faulty["fault"])

    def effect(self, run: Run, usual: Outputs, faulty: Outputs) -> float:
        return float(faulty["fault"][1] * self.times)


def run(label: str = "first", elements: int = 1) -> Run:
    return Run(Feed(label, {}, {"x": np.zeros(elements, np.float32)}), {})


def power(seen: Callable[[Fault], bool], *, times: float = 1000.0, probe: Probe | None = None) -> Power:
    found = measured(probe or _Plants(weight("w")), [run()], _Sees(seen, times))
    assert found is not None
    return found


def above(share: float) -> Callable[[Fault], bool]:
    return lambda fault: fault[2] == EACH and fault[1] >= share


def test_a_fault_is_seen_at_one_percent_at_five_at_a_hundred_or_never() -> None:
    assert power(above(0.01)) == Power("weights", of=1, tried=1, seen=1)
    assert power(above(0.011)) == Power("weights", of=1, tried=1, seen=0, only_large=("w",))
    assert power(above(0.051)) == Power("weights", of=1, tried=1, seen=0, blind=("w",))
    assert power(above(1.01)) == Power("weights", of=1, tried=1, seen=0, inert=("w",))


@pytest.mark.parametrize(("least", "kind"), [(0.05, "only_large"), (1.0, "blind")])
def test_a_fault_whose_next_smaller_one_moves_no_more_than_rounding_is_slight(least: float, kind: str) -> None:
    times = {0.05: 100.0, 1.0: 20.0}[least]  # a fault of 1%, or of 5%, has then the effect of one usual difference
    assert power(above(least), times=times) == Power("weights", of=1, tried=1, seen=0, slight=("w",))
    found = power(above(least), times=times * 1.001)
    assert getattr(found, kind) == ("w",)


def test_other_values_of_a_table_count_as_a_small_fault() -> None:
    assert power(lambda fault: fault[1:3] == (0.01, TABLE)).seen == 1


def test_an_added_fault_counts_where_one_percent_changes_nothing_that_is_read() -> None:
    def seen(fault: Fault) -> bool:
        return fault[1:3] == (0.01, ADDED) or above(1.0)(fault)

    assert power(seen).seen == 0
    assert power(seen, times=np.inf).seen == 1


def test_a_fault_is_looked_for_on_two_inputs_and_small_ones_on_the_others_too() -> None:
    runs = [run("first"), run("small", 2), run("large", 9), run("middle", 5)]
    probe = _Plants(weight("w"))
    found = measured(probe, runs, _Sees(lambda fault: fault[1] >= 0.05 or fault[3] == "small"))
    assert found is not None
    assert found.seen == 1
    # the first, then the largest ones
    assert [fault[3] for fault in probe.planted if fault[1:3] == (0.01, EACH)] == ["first", "large", "middle", "small"]
    assert {fault[3] for fault in probe.planted if fault[1] > 0.01} == {"first"}


def test_a_much_smaller_input_is_asked_first() -> None:
    runs = [run("first", 9), run("empty", 0), run("small", 4), run("large", 20)]
    probe = _Plants(weight("w"))
    assert measured(probe, runs, _Sees(above(0.01))) is not None
    assert [fault[3] for fault in probe.planted] == ["small"]


def test_what_a_smaller_input_does_not_show_is_looked_for_as_before() -> None:
    runs = [run("first", 9), run("small", 4), run("large", 20)]
    probe = _Plants(weight("w"))
    found = measured(probe, runs, _Sees(lambda fault: fault[3] != "small" and fault[1] >= 0.05))
    assert found is not None
    assert found.only_large == ("w",)
    assert [fault[3] for fault in probe.planted][:3] == ["small", "first", "large"]
    probe = _Plants(weight("w"))
    assert measured(probe, [run("first", 9), run("half", 5)], _Sees(above(0.01))) is not None
    assert [fault[3] for fault in probe.planted] == ["first"]


def test_the_answers_that_no_fault_is_looked_for_in_are_not_computed() -> None:
    asked: list[str] = []

    class Counts(_Plants):
        def plain(self, feed: Feed) -> Outputs | None:
            asked.append(feed.label)
            return None if feed.label == "refused" else {}

    runs = [run("refused", 9), run("second", 8), run("third", 7), run("fourth", 6)]
    assert measured(Counts(weight("w")), runs, _Sees(above(0.01))) is not None
    assert set(asked) == {"refused", "second", "third"}


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_a_fault_in_16_bits_is_one_of_5_percent(dtype: Any) -> None:
    found = power(above(0.03), probe=_Plants(weight("w", dtype)))
    assert (found.seen, found.small, found.large) == (1, 0.05, 0.05)


def test_a_fault_is_at_least_eight_roundings_of_its_dtype() -> None:
    probe = _Plants(weight("w", ml_dtypes.float8_e4m3fn))
    found = power(above(0.3), probe=probe)
    assert (found.seen, found.small, found.large) == (1, 8 * 2.0**-4, 8 * 2.0**-4)
    assert probe.planted[0][1] == 8 * 2.0**-4
    levels = _Plants(Weight("w", ir.tensor(np.ones(2, np.int8), name="w"), 1))
    assert power(above(0.01), probe=levels).small == 0.01


def test_24_weights_from_the_first_to_the_last_are_tried() -> None:
    for count, tried in ((24, range(24)), (47, range(0, 47, 2))):
        probe = _Plants(*(weight(str(place)) for place in range(count)))
        found = power(above(0.01), probe=probe)
        assert (found.of, found.tried, found.seen) == (count, 24, 24)
        assert [int(fault[0]) for fault in probe.planted] == list(tried)


def test_once_more_than_one_in_twenty_is_missed_no_other_weight_is_tried() -> None:
    probe = _Plants(*(weight(str(place)) for place in range(20)))
    found = power(above(0.05), probe=probe)
    assert (found.tried, found.only_large) == (2, ("0", "1"))  # one of twenty would be few enough
    probe = _Plants(*(weight(str(place)) for place in range(20)))
    assert power(above(1.0), probe=probe).blind == ("0", "1")


def test_what_cannot_be_changed_is_not_counted() -> None:
    found = power(above(0.01), probe=_Plants(weight("a"), weight("b"), solid="a"))
    assert (found.of, found.tried, found.seen) == (2, 1, 1)
    assert measured(_Plants(weight("a"), solid="a"), [run()], _Sees(above(0.01))) is None
    assert measured(_Plants(weight("a"), runs=False), [run()], _Sees(above(0.01))) is None


def test_faults_are_planted_in_the_inputs_where_no_weight_moves_an_output() -> None:
    assert power(above(0.01), probe=_Plants()) == Power("inputs", of=1, tried=1, seen=1)
    still = _Plants(weight("a"), weight("b"))
    found = power(lambda fault: fault[0] == "x" and fault[1] >= 0.01, probe=still)
    assert found == Power("inputs", of=1, tried=1, seen=1, idle=2)
    weak = power(lambda fault: fault[0] == "x" and fault[1] >= 0.5, probe=_Plants(weight("a"), weight("b")))
    assert weak == Power("weights", of=2, tried=2, seen=0, inert=("a", "b"))
    one = power(lambda fault: fault[0] in "ax" and fault[1] >= 0.01, probe=_Plants(weight("a"), weight("b")))
    assert one == Power("weights", of=2, tried=2, seen=1, inert=("b",))


class _Swallows(_Sees):
    """A check of a model that takes faults below 5% without moving a bit."""

    def effect(self, run: Run, usual: Outputs, faulty: Outputs) -> float:
        return np.inf if faulty["fault"][1] < 0.05 else super().effect(run, usual, faulty)


@pytest.mark.parametrize("quantises", [False, True])
def test_a_fault_that_vanishes_in_the_steps_of_a_quantiser_is_slight(quantises: bool) -> None:
    names = [f"w{index}" for index in range(4)]
    check = _Swallows(lambda fault: fault[0] != "w0" or fault[1] >= 0.05)
    feed = Feed("a", {}, {"x": np.ones(2, np.float32)})
    run = Run(feed, {"y": np.ones(2, np.float32)})
    power = measured(_Plants(*map(weight, names)), [run], check, quantises=quantises)
    assert power is not None
    assert (power.slight, power.only_large) == ((("w0",), ()) if quantises else ((), ("w0",)))
    assert bool(power.shortcoming()) is not quantises


def test_one_missed_weight_of_few_that_move_the_outputs_is_followed_by_more() -> None:
    names = [f"w{index}" for index in range(40)]
    idle = {f"w{index}" for index in range(0, 40, 2)}

    def seen(missed: str) -> Callable[[Fault], bool]:
        return lambda fault: fault[0] not in idle and (fault[0] not in missed.split() or fault[1] >= 1)

    probe = _Plants(*map(weight, names))
    one = power(seen("w1"), probe=probe)
    assert one is not None
    assert one.blind == ("w1",)
    assert one.moving == 20
    assert not one.shortcoming()
    two = power(seen("w1 w3"), probe=probe)
    assert two is not None
    assert two.shortcoming()


def test_a_large_fault_that_was_measured_to_move_no_more_than_rounding_is_slight() -> None:
    class Levels(_Sees):
        def effect(self, run: Run, usual: Outputs, faulty: Outputs) -> float:
            return 100.0 if faulty["fault"][1] >= 1 else self.times

    for effect, is_slight in ((0.9, True), (1.1, False)):
        check = Levels(lambda fault: fault[1] >= 1, effect)
        run = Run(Feed("a", {}, {"x": np.ones(2, np.float32)}), {"y": np.ones(2, np.float32)})
        found = measured(_Plants(weight("w")), [run], check)
        assert found is not None
        assert (found.slight == ("w",), found.blind == ("w",)) == (is_slight, not is_slight)


def test_no_fault_is_planted_in_a_weight_that_was_seen_elsewhere() -> None:
    probe = _Plants(weight("w"), weight("v"))
    probe.settled = {"w"}
    assert power(above(0.01), probe=probe) == Power("weights", of=1, tried=1, seen=1)
