"""The further comparisons where one cannot tell: when each is asked, and what its result settles."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self

import pytest

from onnxsmith.base.problem import problem
from onnxsmith.base.report.parts.verification import OutputCheck, Power, Verification
from onnxsmith.verification.by_layer.part_verification import Inside
from onnxsmith.verification.ladder import RUNGS, Subject, climbed

CANNOT = Power(kind="weights", of=4, tried=4, seen=2, only_large=("a", "b"))
UNSURE = Verification("a", "b", verified=True, equal=False, power=CANNOT, unsure=(CANNOT.shortcoming(),))
OTHERWISE = replace(UNSURE, unsure=("refuses all inputs",))
SURE = Verification("a", "b", verified=True, equal=True, power=Power(kind="weights", of=4, tried=4, seen=4))
DIFFERS = replace(SURE, equal=False)
AGREE = Inside(3, SURE.power, {})
APART = Inside(0, None, {"t": "values differ"})
WAYS = ("plain", "opened", "seeded", "single", "inside")
"""What a subject can serve, in the order in which the rungs ask for it."""


class Scripted(Subject):
    """Serves the results that it was given by way; asked for `seeded`, a result for each seed."""

    def __init__(self, result: Any = None, *, settles: bool = True, **serves: Any) -> None:
        self.result, self.settles, self.serves = result, settles, serves
        self.asked: list[str] = []
        self.taken: Any = None

    def compared(self) -> Verification:
        if callable(self.result):
            self.result()
        found: Verification = self.result
        return found

    def _served(self, way: str) -> Any:
        self.asked.append(way)
        result = self.serves.get(way)
        return result if result is None or isinstance(result, Subject) else type(self)(result)

    def plain(self) -> Self | None:
        return self._served("plain")  # type: ignore[no-any-return]

    def opened(self) -> Self | None:
        return self._served("opened")  # type: ignore[no-any-return]

    def seeded(self, seed: int) -> Self | None:
        self.asked.append(f"seed {seed}")
        results = self.serves.get("seeded")
        return None if results is None else type(self)(results[seed - 1])

    def single(self) -> Subject | None:
        return self._served("single")  # type: ignore[no-any-return]

    def inside(self) -> Inside | None:
        self.asked.append("inside")
        result = self.serves.get("inside")
        return result() if callable(result) else result

    def overrules(self, found: Verification) -> bool:
        return self.settles

    def adopt(self, other: Self) -> None:
        self.taken = other


def failing() -> Any:
    raise problem("runtime/failed", "it cannot be run")


def test_a_sure_result_asks_for_nothing() -> None:
    for found in (SURE, DIFFERS):
        subject = Scripted()
        assert climbed(subject, found) is found
        assert subject.asked == []


def test_rungs_are_asked_in_order_until_one_decides() -> None:
    subject = Scripted()
    assert climbed(subject, UNSURE) is UNSURE
    assert subject.asked == ["plain", "opened", "seed 1", "single", "inside"]
    assert len(RUNGS) == len(WAYS)
    for place, way in enumerate(WAYS):
        served = {"seeded": [SURE]}.get(way, AGREE if way == "inside" else SURE)
        subject = Scripted(**{way: served})
        found = climbed(subject, UNSURE)
        assert found.equal
        assert found.unsure == ()
        assert found.notes
        assert len(subject.asked) == place + 1


def test_copies_and_tensors_inside_are_asked_about_too_few_faults_only() -> None:
    subject = Scripted()
    assert climbed(subject, OTHERWISE) is OTHERWISE
    assert subject.asked == ["plain", "opened", "seed 1"]
    still = replace(UNSURE, power=Power(kind="weights", of=4, tried=4, seen=0, inert=("a", "b", "c", "d")))
    subject = Scripted()
    climbed(subject, still)
    assert "opened" not in subject.asked


@pytest.mark.parametrize("result", [UNSURE, DIFFERS, failing])
@pytest.mark.parametrize("way", ["plain", "opened", "single"])
def test_a_rung_that_does_not_agree_decides_nothing(way: str, result: Verification | Callable[[], Any]) -> None:
    found = climbed(Scripted(**{way: result}), UNSURE)
    assert replace(found, notes=()) == UNSURE
    assert bool(found.notes) == (result is failing)
    assert all("could not be compared: it cannot be run" in note for note in found.notes)


def test_the_power_is_that_of_the_rung_which_decides() -> None:
    outputs = tuple(OutputCheck(name, "float", True, 0, 0, 1, 0, "", 4) for name in "pqr")
    for way in ("opened", "single"):
        found = climbed(Scripted(**{way: replace(SURE, outputs=outputs)}), replace(UNSURE, outputs=outputs[:1]))
        assert found.power is SURE.power
        assert len(found.outputs) == 1
        assert ("2 intermediate tensors also agree" in found.notes[0]) == (way == "opened")


def test_other_seeds_are_tried_until_one_decides() -> None:
    subject = Scripted(seeded=[UNSURE, SURE])
    found = climbed(subject, UNSURE)
    assert found.equal
    assert found.notes == ("the inputs of seed 0 show too little, so those of seed 2 were used",)
    assert subject.taken.result is SURE
    subject = Scripted(seeded=[DIFFERS, SURE])
    assert climbed(subject, UNSURE).differs
    assert subject.taken.result is DIFFERS


def test_other_inputs_do_not_settle_a_difference_that_was_found() -> None:
    assert climbed(Scripted(seeded=[SURE, SURE], settles=False), OTHERWISE) is OTHERWISE
    assert climbed(Scripted(seeded=[SURE, DIFFERS], settles=False), OTHERWISE).differs


def test_tensors_inside_that_differ_are_named() -> None:
    found = climbed(Scripted(inside=APART), UNSURE)
    assert found.unsure == (*UNSURE.unsure, APART.shortcoming)
    found = climbed(Scripted(inside=replace(AGREE, power=CANNOT)), UNSURE)
    assert found.unsure == UNSURE.unsure
    assert "also show too little" in found.notes[0]
    assert climbed(Scripted(inside=AGREE), UNSURE).inside == 3

    def raises() -> Any:
        raise ValueError("an operation\nof the trace")

    found = climbed(Scripted(inside=raises), UNSURE)
    assert found.notes == ("tensors inside could not be compared: an operation of the trace",)
